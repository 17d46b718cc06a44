/** What the user looks at: one object that everything reads and listens to. */
import type { Color } from "three";
import { bodyColour, sideColour } from "./colours";
import { Performance } from "./performance";
import type { Scene, Side } from "./scene";

export type Selection =
  | { type: "joint"; subject: number; joint: number }
  | { type: "marker"; marker: number }
  | { type: "sensor"; sensor: number }
  | { type: "body"; body: number };

export interface Options {
  markers: boolean;
  bones: boolean;
  joints: boolean;
  axes: boolean;
  plants: boolean;
  sensors: boolean;
  truth: boolean;
  labels: boolean;
  follow: boolean;
  trails: "off" | "selection" | "all";
  /** What the colours of bones, markers and sensors tell. */
  colours: "sides" | "bodies";
  /** How many times larger than life the uncertainty of joints is drawn. */
  magnify: number;
}

export type Readiness = "unknown" | "hinge seen" | "ready";

export type Topic =
  | "scene"
  | "take"
  | "frame"
  | "selection"
  | "hover"
  | "options"
  | "colours"
  | "playing"
  | "range"
  | "theme"
  | "server";

/** Steps of how much larger than life uncertainty is drawn. */
export const MAGNIFY = [1, 2, 5, 10, 20, 50];

export const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];

export class State {
  scene!: Scene;
  performance!: Performance;
  frame = 0;
  selected: Selection | null = null;
  hovered: Selection | null = null;
  playing = false;
  speed = 1;
  loop = true;
  /** First and last frame of the range that is played, or null for the whole take. */
  range: [number, number] | null = null;
  options: Options = {
    markers: true,
    bones: true,
    joints: true,
    axes: true,
    plants: true,
    sensors: true,
    truth: true,
    labels: false,
    follow: false,
    trails: "off",
    colours: "sides",
    magnify: 10,
  };
  /** Of a live figure: the state of each joint, by subject and joint. */
  readiness = new Map<string, Readiness>();
  /** Whether a joint of the scene is on the left or on the right. */
  hasSides = false;
  private bodySides = new Map<number, Side>();
  private listeners = new Map<Topic, (() => void)[]>();

  on(topics: Topic | Topic[], listener: () => void): void {
    for (const topic of [topics].flat())
      this.listeners.set(topic, [...(this.listeners.get(topic) ?? []), listener]);
  }

  tell(topic: Topic): void {
    this.listeners.get(topic)?.forEach((listener) => listener());
  }

  /** Show another scene; the frame and what is selected stay where they can. */
  show(scene: Scene): void {
    const kept = this.selected && markOf(this, this.selected);
    const take = Math.max(0, Math.min(this.scene ? this.performance.index : 0, scene.takes.length - 1));
    const fresh = !this.scene || this.scene.title !== scene.title;
    this.scene = scene;
    const joints = scene.subjects.flatMap((subject) => subject.joints);
    this.hasSides = joints.some(({ side }) => side);
    this.bodySides = new Map(joints.flatMap(({ body, side }) => (body < 0 ? [] : [[body, side]])));
    this.performance = new Performance(scene, take);
    this.frame = fresh ? 0 : Math.max(0, Math.min(this.frame, this.performance.take.frames - 1));
    if (fresh) this.range = null;
    this.hovered = null;
    this.selected = kept && again(this, kept);
    this.tell("scene");
    this.tell("take");
    this.tell("selection");
  }

  chooseTake(index: number): void {
    this.performance = new Performance(this.scene, index);
    this.frame = 0;
    this.range = null;
    if (this.selected?.type === "marker" || this.selected?.type === "sensor") this.selected = null;
    this.tell("take");
    this.tell("selection");
  }

  seek(frame: number): void {
    const last = Math.max(0, this.performance.take.frames - 1);
    const next = Math.max(0, Math.min(last, Math.round(frame)));
    if (next === this.frame) return;
    this.frame = next;
    this.tell("frame");
  }

  select(selection: Selection | null): void {
    this.selected = selection;
    this.tell("selection");
  }

  hover(selection: Selection | null): void {
    if (same(selection, this.hovered)) return;
    this.hovered = selection;
    this.tell("hover");
  }

  play(playing: boolean): void {
    this.playing = playing && this.performance.take.frames > 1;
    this.tell("playing");
  }

  setRange(range: [number, number] | null): void {
    const last = this.performance.take.frames - 1;
    this.range = range && [Math.max(0, Math.min(...range)), Math.min(last, Math.max(...range))];
    this.tell("range");
  }

  set(options: Partial<Options>): void {
    const { colours } = this.options;
    Object.assign(this.options, options);
    this.tell("options");
    if (this.options.colours !== colours) this.tell("colours");
  }

  get showsSides(): boolean {
    return this.hasSides && this.options.colours === "sides";
  }

  /** The colour of a body and of what is on it: of its side, or its own. */
  colourOf(body: number, side = this.bodySides.get(body)): Color {
    return this.showsSides && side !== undefined ? sideColour(side) : bodyColour(body);
  }
}

export function same(a: Selection | null, b: Selection | null): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** The name of what is selected, as people call it. */
export function nameOf(state: State, selection: Selection | null): string {
  if (!selection) return "";
  const { scene, performance } = state;
  if (selection.type === "joint")
    return scene.subjects[selection.subject]?.joints[selection.joint]?.name ?? "";
  if (selection.type === "marker") return performance.take.markers[selection.marker]?.label ?? "";
  if (selection.type === "sensor") return performance.take.sensors[selection.sensor]?.name ?? "";
  return scene.bodies[selection.body]?.name ?? "";
}

/** Its name as edits call it: a joint is called as its body, which says whose it is ("A:Hips"). */
export function handleOf(state: State, selection: Selection): string {
  const { subjects, bodies } = state.scene;
  const joint = selection.type === "joint" ? subjects[selection.subject].joints[selection.joint] : null;
  return bodies[joint?.body ?? -1]?.name ?? nameOf(state, selection);
}

/** The first thing of a name, as edits or as people call it: joints, then bodies, markers and sensors. */
export function named(state: State, name: string): Selection | null {
  const all = things(state);
  const joints = all.filter(({ type }) => type === "joint");
  return (
    joints.find((what) => handleOf(state, what) === name) ??
    all.find((what) => nameOf(state, what) === name) ??
    null
  );
}

function things({ scene, performance: { take } }: State): Selection[] {
  return [
    ...scene.subjects.flatMap(({ joints }, subject) =>
      joints.map((_, joint) => ({ type: "joint" as const, subject, joint })),
    ),
    ...scene.bodies.map((_, body) => ({ type: "body" as const, body })),
    ...take.markers.map((_, marker) => ({ type: "marker" as const, marker })),
    ...take.sensors.map((_, sensor) => ({ type: "sensor" as const, sensor })),
  ];
}

/** What a thing is known by from one scene to the next. */
interface Mark {
  type: Selection["type"];
  /** The subject of a joint. */
  subject: string;
  handle: string;
  name: string;
}

function markOf(state: State, what: Selection): Mark {
  const subject = what.type === "joint" ? state.scene.subjects[what.subject].name : "";
  return { type: what.type, subject, handle: handleOf(state, what), name: nameOf(state, what) };
}

/** The same thing in another scene: of its kind, and of its subject where that is still there. */
function again(state: State, mark: Mark): Selection | null {
  const own = things(state).filter(
    (what) => what.type === mark.type && nameOf(state, what) === mark.name,
  );
  const called = own.filter((what) => handleOf(state, what) === mark.handle);
  const same = called.find((what) => markOf(state, what).subject === mark.subject);
  return same ?? called[0] ?? own[0] ?? named(state, mark.name);
}
