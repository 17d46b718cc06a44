/** The header of a scene as Python writes it, and the arrays behind its keys. */
import type { Blob } from "./decode";

export type Vec3 = [number, number, number];

export interface Joint {
  name: string;
  parent: number;
  kind: "root" | "ball" | "universal" | "hinge" | "fixed";
  offset: Vec3;
  axes: (Vec3 | null)[];
  limits: ([number, number] | [null, null] | null)[];
  length: number;
  length_sd: number | null;
  covariance: [Vec3, Vec3, Vec3] | null;
  residual: number | null;
  body: number;
  /** Whether the recording shows the joint, and not only anatomy. */
  observed: boolean;
  side: Side;
  /** What anatomy calls it, without its side; "" where that is unknown. */
  part: string;
}

export type Side = "Left" | "Right" | "";

export interface Subject {
  name: string;
  joints: Joint[];
}

/** What the bone that ends in a joint is called: as the body it runs along, with the joint where several part. */
export function boneName({ joints }: Subject, joint: number): string {
  const { name, parent } = joints[joint];
  const alone = joints.filter((other) => other.parent === parent).length === 1;
  return alone ? joints[parent].name : `${joints[parent].name} – ${name}`;
}

/** Joints between bodies belong to the body above. */
export function bodyOfJoints(subject: Subject): number[] {
  const bodies: number[] = [];
  for (const { body, parent } of subject.joints)
    bodies.push(body < 0 && parent >= 0 ? bodies[parent] : body);
  return bodies;
}

export interface Body {
  name: string;
  rms: number | null;
  confidence: number | null;
  determined: boolean;
}

export interface MarkerPlace {
  marker: number;
  joint: number;
  offset: Vec3;
}

/** How a sensor sits on its bone: place in m, rotation vector in radians, in the joint's axes. */
export interface NullModel {
  sensor: number;
  joint: number;
  offset: Vec3;
  rotation: Vec3;
}

export interface Contact {
  joint: string;
  start: number;
  end: number;
  anchor: Vec3;
}

export interface Finding {
  code: string;
  stage: string;
  severity: "info" | "warning" | "error";
  message: string;
  subject: string;
  take: number;
  frames: [number, number];
  value: number | null;
}

/** All findings of one cause, in one sentence. */
export interface Cause {
  stage: string;
  severity: "info" | "warning" | "error";
  message: string;
  /** Positions in `Scene.findings`. */
  findings: number[];
}

/** A finding as one line: its subject and its message. */
export const describeFinding = (finding: Finding): string =>
  finding.subject ? `${finding.subject}: ${finding.message}` : finding.message;

export interface Table {
  columns: string[];
  rows: (string | number | null)[][];
}

export type Edit = { do: string; text?: string } & Record<string, unknown>;

export interface Motion {
  root: Float32Array;
  wxyz: Float32Array;
  known: Uint8Array;
  gap: Float32Array;
  gapKnown: Uint8Array;
  markers: MarkerPlace[];
  sensors: NullModel[];
  contacts: Contact[];
  angles: Angle[];
}

/** A clinical angle of a person over the drawn frames. */
export interface Angle {
  /** Such as "Right knee flexion". */
  name: string;
  joint: number;
  /** NaN where it is unknown. */
  degrees: Float32Array;
}

export interface Take {
  name: string;
  rate: number;
  start: number;
  frames: number;
  recorded: number;
  stride: number;
  markers: { label: string; body: number; confidence: number | null }[];
  points: Float32Array;
  state: Uint8Array;
  sensors: { name: string; body: number }[];
  sensorPlace: Float32Array;
  sensorWxyz: Float32Array;
  sensorSeen: Uint8Array;
  motions: Motion[];
}

/** A format that what is shown can be written in. */
export interface Export {
  title: string;
  suffixes: string[];
  /** What a table may hold; empty where there is nothing to choose. */
  contents: string[];
}

export interface Scene {
  title: string;
  version: string;
  editable: boolean;
  /** Whether poses follow by messages. */
  live: boolean;
  unsolved: string;
  ground: { normal: Vec3; height: number };
  bodies: Body[];
  subjects: Subject[];
  takes: Take[];
  links: { bodies: [number, number]; kind: string; first: number; last: number }[];
  findings: Finding[];
  causes: Cause[];
  tables: Record<string, Table>;
  seconds: Record<string, number>;
  truth: { subjects: Subject[]; takes: { motions: Motion[] }[] } | null;
  measured: Record<string, number>;
  edits: Edit[];
  exports: Export[];
}

export const UNSEEN = 0;
export const SEEN = 1;
export const FILLED = 2;
export const OUTLIER = 3;

/** The columns of a table of angles, row by row. */
function columns(names: string[], joints: number[], degrees: Float32Array, known: Uint8Array): Angle[] {
  const n = names.length;
  return names.map((name, k) => {
    const values = Float32Array.from({ length: degrees.length / n }, (_, frame) =>
      known[frame * n + k] ? degrees[frame * n + k] : NaN,
    );
    return { name, joint: joints[k], degrees: values };
  });
}

/** The header with its array keys replaced by the arrays. */
export function readScene(blob: Blob): Scene {
  // The header is what scene.py wrote; its fields are described above.
  const head = blob.header as any;
  const floats = (key: string) => blob.array(key ?? "") as Float32Array;
  const bytes = (key: string) => new Uint8Array(blob.array(key ?? ""));
  const motion = (m: any): Motion => ({
    root: floats(m.root),
    wxyz: floats(m.wxyz),
    known: bytes(m.known),
    gap: floats(m.gap),
    gapKnown: bytes(m.gap_known),
    markers: m.markers ?? [],
    sensors: m.sensors ?? [],
    contacts: m.contacts ?? [],
    angles: m.angles ? columns(m.angles.names, m.angles.joints, floats(m.angles.degrees), bytes(m.angles.known)) : [],
  });
  return {
    title: head.title,
    version: head.marey,
    editable: head.editable,
    live: head.live ?? false,
    unsolved: head.unsolved,
    ground: head.ground,
    bodies: head.bodies,
    subjects: head.subjects,
    takes: head.takes.map((t: any) => ({
      ...t,
      points: floats(t.points),
      state: bytes(t.state),
      sensorPlace: floats(t.sensor_place),
      sensorWxyz: floats(t.sensor_wxyz),
      sensorSeen: bytes(t.sensor_seen),
      motions: t.motions.map(motion),
    })),
    links: head.links,
    findings: head.findings,
    causes: head.causes,
    tables: head.tables,
    seconds: head.seconds,
    truth: head.truth && {
      subjects: head.truth.subjects,
      takes: head.truth.takes.map((t: any) => ({ motions: t.motions.map(motion) })),
    },
    measured: head.measured ?? {},
    edits: head.edits ?? [],
    exports: head.exports ?? [],
  };
}
