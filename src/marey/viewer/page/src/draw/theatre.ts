/** Everything on the stage, kept in step with the state. */
import { Vector3 } from "three";
import { SCENE, theme } from "../colours";
import { SEEN, UNSEEN } from "../scene";
import type { Selection, State } from "../state";
import { Bones } from "./bones";
import { Ground } from "./ground";
import { Joints } from "./joints";
import { Markers } from "./markers";
import { Picker } from "./pick";
import { Sensors } from "./sensors";
import { Stage, type Device, type View } from "./stage";
import { Plants, Trails } from "./tracks";
import type { Poses } from "../kinematics";
import type { Motion, Subject } from "../scene";

/** A second figure drawn see-through: the truth, or the answer before an edit. */
export interface Ghost {
  subjects: Subject[];
  motions: Motion[];
  poses: Poses[];
}

/** How many times its own size a figure covers when it is worth following. */
const TRAVELS = 1.6;

export class Theatre {
  readonly stage: Stage;
  readonly picker: Picker;
  readonly ground = new Ground();
  readonly markers: Markers;
  readonly joints: Joints;
  readonly bones = new Bones();
  private ghostBones = new Bones(true);
  private trails: Trails;
  private plants: Plants;
  private sensors: Sensors;
  private before: Ghost | null = null;
  private point = new Vector3();
  private fitted = "";
  private root = "";

  constructor(
    host: HTMLElement,
    readonly state: State,
    device: Device,
  ) {
    this.stage = new Stage(host, device);
    this.picker = new Picker(this);
    this.markers = new Markers(state);
    this.joints = new Joints(state);
    this.trails = new Trails(state);
    this.plants = new Plants(state);
    this.sensors = new Sensors(state);
    this.stage.scene.add(this.ground.lines, this.plants.group, this.bones.group, this.joints.group);
    this.stage.scene.add(this.markers.group, this.sensors.group, this.trails.group);
    state.on("take", () => this.rebuild());
    state.on(["selection", "options"], () => this.trails.rebuild());
    state.on("colours", () => this.rebuild());
    state.on(["frame", "selection", "hover", "options"], () => this.update());
    state.on("theme", () => this.repaint());
  }

  private rebuild(): void {
    const { scene, performance } = this.state;
    const { middle, size } = performance;
    this.ground.lay(scene, middle, size);
    this.bones.rebuild(scene.subjects, performance.motions, this.figureSize(), (body, side) => this.state.colourOf(body, side));
    [this.markers, this.joints, this.trails, this.plants, this.sensors].forEach((p) => p.rebuild());
    this.rebuildGhost();
    const isEmpty = !performance.take.markers.length && !performance.take.sensors.length;
    const shown = `${scene.title} ${performance.index} ${scene.subjects.length > 0} ${isEmpty}`;
    if (shown !== this.fitted) this.introduce();
    else if (scene.live) this.keepInSight();
    this.fitted = shown;
    this.root = this.nameOfRoot();
    this.update();
  }

  private nameOfRoot(): string {
    return this.state.scene.subjects[0]?.joints[0]?.name ?? "";
  }

  /** A root elsewhere in the figure must not move the camera; what it drifted by meanwhile is undone. */
  private keepInSight(): void {
    this.stage.follow(null);
    const middle = new Vector3();
    if (this.root !== this.nameOfRoot() && this.surroundings(middle)) this.stage.centre(middle);
  }

  /** A new take is looked at from an angle, so that doubts show; if it walks or is live it is followed. */
  private introduce(): void {
    const travels = this.state.scene.live || this.state.performance.size > TRAVELS * this.figureSize();
    this.state.set({ follow: travels, magnify: this.joints.readable(this.figureSize()) });
    this.look("three-quarter");
  }

  private ghost(): Ghost | null {
    const { scene, performance, options } = this.state;
    if (this.before) return this.before;
    if (!scene.truth || !options.truth) return null;
    const motions = scene.truth.takes[performance.index]?.motions ?? [];
    return { subjects: scene.truth.subjects, motions, poses: performance.truth };
  }

  /** Show how the figure was before an edit; null shows the truth again, if any. */
  showBefore(ghost: Ghost | null): void {
    this.before = ghost;
    this.rebuildGhost();
    this.update();
  }

  private rebuildGhost(): void {
    this.ghostBones.dispose();
    this.ghostBones = new Bones(true);
    this.stage.scene.add(this.ghostBones.group);
    const ghost = this.ghost() ?? { subjects: [], motions: [] };
    const { ghost: tint } = SCENE[theme()];
    this.ghostBones.rebuild(ghost.subjects, ghost.motions, this.figureSize(), () => tint);
  }

  private repaint(): void {
    const { scene, performance } = this.state;
    this.ground.lay(scene, performance.middle, performance.size);
    this.trails.rebuild();
    this.rebuildGhost();
    this.stage.paint();
    this.update();
  }

  private update(): void {
    const { performance, frame, options } = this.state;
    this.bones.update(frame, performance.poses, performance.motions, options.bones, (s, j) => this.lit(s, j));
    const ghost = this.ghost();
    if (ghost) {
      const shown = this.before !== null || options.truth;
      this.ghostBones.update(frame, ghost.poses, ghost.motions, shown, () => 0);
    }
    this.ghostBones.group.visible = ghost !== null;
    [this.markers, this.joints, this.trails, this.plants, this.sensors].forEach((p) => p.update());
    this.stage.follow(options.follow ? this.focus(this.point) : null);
    this.stage.draw();
  }

  private lit(subject: number, joint: number): number {
    const aims = (s: Selection | null) => {
      if (s?.type === "joint") return s.subject === subject && s.joint === joint;
      return s?.type === "body" && this.state.scene.subjects[subject].joints[joint].body === s.body;
    };
    return aims(this.state.hovered) ? 0.4 : aims(this.state.selected) ? 0.6 : 0;
  }

  /** Write where a thing is at the present frame; false when it is not to be seen. */
  locate(what: Selection, out: Vector3): boolean {
    const { performance, frame } = this.state;
    const { take } = performance;
    if (what.type === "joint") {
      const { place, joints } = performance.poses[what.subject];
      out.fromArray(place, 3 * (frame * joints + what.joint));
      return performance.motions[what.subject].known[frame] === 1;
    }
    if (what.type === "marker") {
      const at = frame * take.markers.length + what.marker;
      out.fromArray(take.points, 3 * at);
      return take.state[at] !== UNSEEN;
    }
    if (what.type === "sensor") {
      const at = frame * take.sensors.length + what.sensor;
      out.fromArray(take.sensorPlace, 3 * at);
      return take.sensorSeen[at] === 1;
    }
    const marker = take.markers.findIndex(
      (m, i) => m.body === what.body && take.state[frame * take.markers.length + i] === SEEN,
    );
    return marker >= 0 && this.locate({ type: "marker", marker }, out);
  }

  /** What the camera follows: the root of a figure, else the middle of the markers. */
  private focus(out: Vector3): Vector3 {
    const { selected, scene } = this.state;
    const subject = selected?.type === "joint" ? selected.subject : 0;
    if (scene.subjects.length && this.locate({ type: "joint", subject, joint: 0 }, out)) return out;
    return this.surroundings(out) ? out : out.set(...this.state.performance.middle);
  }

  /** Middle and radius of what is to be seen at this frame. */
  private surroundings(out: Vector3): number {
    const { performance } = this.state;
    const { take } = performance;
    const low = new Vector3(Infinity, Infinity, Infinity);
    const high = low.clone().negate();
    const spot = new Vector3();
    const grow = (what: Selection) => {
      if (!this.locate(what, spot)) return;
      low.min(spot);
      high.max(spot);
    };
    take.markers.forEach((_, marker) => grow({ type: "marker", marker }));
    take.sensors.forEach((_, sensor) => grow({ type: "sensor", sensor }));
    performance.poses.forEach(({ joints }, subject) => {
      for (let joint = 0; joint < joints; joint++) grow({ type: "joint", subject, joint });
    });
    if (low.x > high.x) return 0;
    out.copy(low).add(high).multiplyScalar(0.5);
    return Math.max(low.distanceTo(high) / 2, 0.02);
  }

  private figureSize(): number {
    const spot = new Vector3();
    return 2 * this.surroundings(spot) || this.state.performance.size;
  }

  look(view: View): void {
    const middle = new Vector3(...this.state.performance.middle);
    const radius = this.surroundings(middle) || this.state.performance.size / 2;
    this.stage.look(view, middle, radius * 1.04);
  }

  fit(): void {
    const middle = new Vector3();
    const radius = this.surroundings(middle);
    if (radius) this.stage.fit(middle, radius * 1.04);
  }
}
