/** Bytes of a scene: "MRY1", a JSON header, then arrays. */

export interface ArrayEntry {
  offset: number;
  bytes: number;
  shape: number[];
  coding: "u8" | "i32" | "f32" | "track";
  step?: number;
}

export interface Blob {
  header: { arrays: Record<string, ArrayEntry> } & Record<string, unknown>;
  /** Values of an array in C order of its shape; empty for the key "". */
  array(key: string): Float32Array | Int32Array | Uint8Array;
}

const MAGIC = "MRY1";

export async function decodeBase64(text: string): Promise<Blob> {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return decode(bytes);
}

export async function decode(packed: Uint8Array<ArrayBuffer>): Promise<Blob> {
  const raw = await inflate(packed);
  if (new TextDecoder().decode(raw.subarray(0, 4)) !== MAGIC)
    throw new Error("this is not a scene of marey, or of another version");
  const length = new DataView(raw.buffer).getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(raw.subarray(8, 8 + length)));
  const first = 8 + length;
  return {
    header,
    array(key) {
      if (key === "") return new Float32Array(0);
      const entry: ArrayEntry | undefined = header.arrays[key];
      if (!entry) throw new Error(`the scene has no array ${key}`);
      const start = first + entry.offset;
      return values(entry, raw.subarray(start, start + entry.bytes));
    },
  };
}

async function inflate(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const source = new Response(packed).body!;
  const stream = source.pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function values(entry: ArrayEntry, bytes: Uint8Array): Float32Array | Int32Array | Uint8Array {
  if (entry.coding === "u8") return bytes;
  if (entry.coding === "track") return track(bytes, entry.shape, entry.step!);
  const copy = bytes.slice().buffer;
  return entry.coding === "i32" ? new Int32Array(copy) : new Float32Array(copy);
}

/** Undo byte planes, zig-zag and differences; frames come back slowest. */
function track(bytes: Uint8Array, shape: number[], step: number): Float32Array {
  const frames = shape[0];
  const count = bytes.length / 4;
  const items = frames ? count / frames : 0;
  const out = new Float32Array(count);
  for (let item = 0, at = 0; item < items; item++) {
    let value = 0;
    for (let frame = 0, to = item; frame < frames; frame++, at++, to += items) {
      const code =
        bytes[at] |
        (bytes[at + count] << 8) |
        (bytes[at + 2 * count] << 16) |
        (bytes[at + 3 * count] << 24);
      value += (code >>> 1) ^ -(code & 1);
      out[to] = value * step;
    }
  }
  return out;
}
