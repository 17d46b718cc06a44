/** Talk with `marey view`: scenes, edits, files and the progress of solving. */
import { decode } from "./decode";
import type { Edit, Finding } from "./scene";
import type { Readiness, State } from "./state";

export interface Score {
  marker_rms: number | null;
  sensor_rms: number | null;
  gap_rms: number | null;
  bodies: number;
  joints: number;
}

export interface Change {
  what: string;
  before: number | null;
  after: number | null;
  unit: string;
}

export interface Trial {
  before: Score;
  after: Score;
  changes: Change[];
  findings: Finding[];
  text: string;
}

export interface Desk {
  edits: Edit[];
  can_undo: boolean;
  can_redo: boolean;
  trial: boolean;
  saved: string;
  busy: string;
  version: number;
  stages: StageTime[];
}

/** A stage of a job: what the server says of it, and its seconds until now. */
export interface StageTime {
  stage: string;
  seconds: number;
}

export interface Recording {
  path: string;
  bytes: number;
  format: string;
}

export type Message =
  | { type: "stage"; stages: StageTime[] }
  | ({ type: "state" } & Desk)
  | { type: "error"; message: string }
  | ({ type: "live" } & LiveState)
  | ({ type: "pose" } & LivePose)
  | { type: "line"; lost: boolean };

/** What a stream does, and what still needs to move. */
export interface LiveState {
  version: number;
  is_live: boolean;
  trouble: string;
  recording: boolean;
  received: number;
  lost: number;
  rate: number | null;
  learning: boolean;
  virtual: boolean;
  joints: { subject: string; joint: string; state: Readiness; fraction: number; advice: string }[];
}

/** One frame: numbers in metres, null where something is not seen. */
export interface LivePose {
  version: number;
  number: number;
  points: (number | null)[];
  sensors: (number | null)[];
  turns: (number | null)[];
  subjects: { place: (number | null)[]; wxyz: (number | null)[]; apart: (number | null)[] }[];
}

const RETRY_MS = 2000;

export class Server {
  private series_: { key: string; values: Promise<Record<string, Float32Array>> } | null = null;

  /** Which scene was fetched last: a page may have missed the news of the next one. */
  version = -1;

  async scene(trial = false): Promise<Uint8Array<ArrayBuffer>> {
    const answer = await this.ask(`/api/scene${trial ? "?trial=1" : ""}`);
    this.version = Number(answer.headers.get("Scene-Version"));
    return new Uint8Array(await answer.arrayBuffer());
  }

  /** Exact values of the selected joint or marker at every recorded frame. */
  async series({ selected, performance }: State): Promise<Record<string, Float32Array> | null> {
    const take = performance.index;
    let query = "";
    if (selected?.type === "marker") query = `take=${take}&marker=${selected.marker}`;
    if (selected?.type === "joint") query = `take=${take}&subject=${selected.subject}&joint=${selected.joint}`;
    if (!query) return null;
    if (this.series_?.key !== query) this.series_ = { key: query, values: this.fetchSeries(query) };
    return this.series_.values;
  }

  private async fetchSeries(query: string): Promise<Record<string, Float32Array>> {
    const blob = await decode(await this.bytes(`/api/series?${query}`));
    const keys = Object.keys(blob.header.arrays);
    return Object.fromEntries(keys.map((key) => [key, blob.array(key) as Float32Array]));
  }

  /** What was fetched of the former scene is of no use any more. */
  forget(): void {
    this.series_ = null;
  }

  desk(): Promise<Desk> {
    return this.json("/api/state");
  }

  folder(): Promise<{ root: string; files: Recording[] }> {
    return this.json("/api/folder");
  }

  attempt(edit: Edit): Promise<Trial> {
    return this.post("/api/try", edit);
  }

  decide(what: "keep" | "drop" | "undo" | "redo"): Promise<Desk> {
    return this.post(`/api/${what}`, {});
  }

  open(path: string): Promise<unknown> {
    return this.post("/api/open", { path });
  }

  upload(file: File): Promise<unknown> {
    const name = encodeURIComponent(file.name);
    return this.json(`/api/upload?name=${name}`, {
      method: "POST",
      body: file,
      headers: { "Content-Type": "application/octet-stream" },
    });
  }

  /** Start or stop a recording of a stream, mark a moment or set the zero pose. */
  act(what: "record" | "stop" | "mark" | "zero"): Promise<LiveState> {
    return this.post("/api/live", { do: what });
  }

  /** Make and solve a recording of a performer who does not exist. */
  generate(): Promise<unknown> {
    return this.post("/api/generate", {});
  }

  /** A file of what is open in another format, and what that format does not hold. */
  async export(suffix: string, content: string): Promise<{ name: string; bytes: Blob; findings: string[] }> {
    const answer = await this.ask("/api/export", {
      method: "POST",
      body: JSON.stringify({ suffix, content }),
      headers: { "Content-Type": "application/json" },
    });
    const named = /filename\*?=(?:utf-8'')?"?([^";]+)/i.exec(answer.headers.get("Content-Disposition") ?? "");
    const findings = JSON.parse(answer.headers.get("Export-Findings") ?? "[]") as string[];
    return { name: decodeURIComponent(named?.[1] ?? `recording${suffix}`), bytes: await answer.blob(), findings };
  }

  /** Listen to what the server says; the line is taken up again when it breaks. */
  listen(hear: (message: Message) => void): void {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/ws`);
    socket.addEventListener("open", () => {
      hear({ type: "line", lost: false });
      socket.send(JSON.stringify({ type: "hello" }));
    });
    socket.addEventListener("message", ({ data }) => {
      if (typeof data === "string") hear(JSON.parse(data) as Message);
    });
    socket.addEventListener("close", () => {
      hear({ type: "line", lost: true });
      setTimeout(() => this.listen(hear), RETRY_MS);
    });
  }

  private async bytes(path: string): Promise<Uint8Array<ArrayBuffer>> {
    const answer = await this.ask(path);
    return new Uint8Array(await answer.arrayBuffer());
  }

  private async json<T>(path: string, request?: RequestInit): Promise<T> {
    return (await (await this.ask(path, request)).json()) as T;
  }

  private post<T>(path: string, body: unknown): Promise<T> {
    const headers = { "Content-Type": "application/json" };
    return this.json(path, { method: "POST", body: JSON.stringify(body), headers });
  }

  /** Fetch, or raise what the server says is wrong in its own words. */
  private async ask(path: string, request?: RequestInit): Promise<Response> {
    const answer = await fetch(path, { credentials: "same-origin", ...request });
    if (answer.ok) return answer;
    if (answer.status === 401)
      throw new Error("not allowed any more: open the address that marey printed again");
    const said = await answer.json().catch(() => null);
    throw new Error(said?.error ?? `the server answered ${answer.status}`);
  }
}
