/** Files that the page makes by itself, of what it shows: a BVH, tables, a picture. */
import { anglesZXY } from "../kinematics";
import type { Performance } from "../performance";
import type { Motion, Subject, Vec3 } from "../scene";

const CENTIMETRES = 100;

/** Save something as a file among the browser's downloads. */
export function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // A download that has begun keeps the bytes.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A file's name without folder and suffix, in characters that every system allows. */
export function stemOf(title: string): string {
  const last = title.split(/[\\/]/).pop()!.replace(/(\.skel)?\.[^.]*$/, "");
  return last.replace(/[^\p{L}\p{N}._-]/gu, "_").replace(/^\.+/, "") || "recording";
}

/** The motion of a subject as BVH: cm, y up, rotations Z X Y; gaps hold the last pose. */
export function writeBvh({ joints }: Subject, motion: Motion, frames: number, rate: number): string {
  const lines = ["HIERARCHY"];
  const moving: number[] = [];
  const open = (joint: number, pad: string): void => {
    const { name, offset, parent, kind } = joints[joint];
    const children = joints.flatMap((other, i) => (other.parent === joint ? [i] : []));
    const isEnd = kind === "fixed" && !children.length;
    const place = `${pad}\tOFFSET ${decimals(yUp(offset).map((v) => CENTIMETRES * v), 4)}`;
    if (isEnd && name === `${joints[parent]?.name}_end`) {
      lines.push(`${pad}End Site`, `${pad}{`, place, `${pad}}`);
      return;
    }
    const channels = parent < 0 ? "6 Xposition Yposition Zposition " : "3 ";
    lines.push(`${pad}${parent < 0 ? "ROOT" : "JOINT"} ${name.replace(/[\s{}]+/g, "_")}`, `${pad}{`, place);
    lines.push(`${pad}\tCHANNELS ${isEnd ? "0" : `${channels}Zrotation Xrotation Yrotation`}`);
    if (!isEnd) moving.push(joint);
    children.forEach((child) => open(child, `${pad}\t`));
    if (!children.length) lines.push(`${pad}\tEnd Site`, `${pad}\t{`, `${pad}\t\tOFFSET 0 0 0`, `${pad}\t}`);
    lines.push(`${pad}}`);
  };
  open(0, "");
  lines.push("MOTION", `Frames: ${frames}`, `Frame Time: ${(1 / rate).toFixed(12)}`);
  const turned = { ...motion, wxyz: turnAxes(motion.wxyz) };
  const angles = moving.flatMap((joint) => anglesZXY(turned, joints.length, joint, frames));
  const held = angles.map(() => 0);
  for (let frame = 0; frame < frames; frame++) {
    const place = yUp(motion.root.subarray(3 * frame, 3 * frame + 3)).map((v) => CENTIMETRES * v);
    angles.forEach((values, k) => (held[k] = values[frame] === values[frame] ? values[frame] : held[k]));
    lines.push(`${decimals(place, 4)} ${decimals(held, 5)}`);
  }
  return `${lines.join("\n")}\n`;
}

/** A table over time as CSV: unknown values are empty. */
export function writeTable(performance: Performance, names: string[], columns: ArrayLike<number>[]): string {
  const value = (v: number) => (v === v ? String(Number(v.toFixed(5))) : "");
  const rows = Array.from({ length: performance.take.frames }, (_, frame) =>
    [performance.time(frame), ...columns.map((column) => column[frame])].map(value).join(","),
  );
  const quoted = names.map((name) => (/[",\n]/.test(name) ? `"${name.replace(/"/g, '""')}"` : name));
  return `${[["time", ...quoted].join(","), ...rows].join("\n")}\n`;
}

/** Columns of the places of all joints of a subject, in metres. */
export function placeColumns(performance: Performance, subject: number): [string[], Float32Array[]] {
  const { place, joints } = performance.poses[subject];
  const { frames, motions } = performance.take;
  const names: string[] = [];
  const columns: Float32Array[] = [];
  performance.scene.subjects[subject].joints.forEach(({ name }, joint) =>
    ["x", "y", "z"].forEach((axis, k) => {
      names.push(`${name}_${axis}`);
      columns.push(
        Float32Array.from({ length: frames }, (_, f) =>
          motions[subject].known[f] ? place[3 * (f * joints + joint) + k] : NaN,
        ),
      );
    }),
  );
  return [names, columns];
}

/** A vector of z up in axes with y up. */
function yUp(v: ArrayLike<number>): Vec3 {
  return [v[0], v[2], -v[1]];
}

/** Rotations w x y z in axes with y up. */
function turnAxes(wxyz: Float32Array): Float32Array {
  const out = new Float32Array(wxyz.length);
  for (let i = 0; i < wxyz.length; i += 4) out.set([wxyz[i], ...yUp(wxyz.subarray(i + 1, i + 4))], i);
  return out;
}

function decimals(values: ArrayLike<number>, digits: number): string {
  return Array.from(values, (v) => v.toFixed(digits)).join(" ");
}
