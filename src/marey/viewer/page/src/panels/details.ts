/** The selected thing in numbers: where it is, how sure, and how far it strays. */
import { anglesZXY, ellipsoid, turnAbout } from "../kinematics";
import { rootMeanSquare } from "../performance";
import { FILLED, OUTLIER, SEEN, UNSEEN, type Joint } from "../scene";
import { nameOf, type State } from "../state";
import { Chart, Histogram, type Curve } from "./chart";
import { el, fact, nowRow, section } from "./dom";
import { actOnKeys, keepFocus } from "./keyboard";
import { degrees, lengthAndSd, millimetres, percent, plain, signed, UNKNOWN_SD, whole } from "./numbers";

const STATES: Record<number, string> = {
  [UNSEEN]: "not seen",
  [SEEN]: "seen",
  [FILLED]: "filled",
  [OUTLIER]: "outlier",
};
const AXES = ["z", "x", "y"];

/** Exact values at every recorded frame, for takes that are drawn with a stride. */
export type ExactSeries = (state: State) => Promise<Record<string, Float32Array> | null>;

interface Live {
  element: HTMLElement;
  text: () => string;
}

export class DetailsPanel {
  readonly root: HTMLElement;
  private body: HTMLElement;
  private note: HTMLElement;
  /** Said by a screen reader when the selection changes. */
  private title = el("div", "title");
  private live: Live[] = [];
  private charts: Chart[] = [];
  /** Filled by the editor with what can be done to the selection. */
  readonly actions = el("div");

  constructor(
    private state: State,
    private exact: ExactSeries,
  ) {
    const { root, body, note } = section("Selection", true);
    this.root = root;
    this.body = body;
    this.note = note;
    this.title.ariaLive = "polite";
    this.body.append(this.title, this.actions);
    state.on(["selection", "take"], () => keepFocus(this.body, () => this.build()));
    state.on("frame", () => this.refresh());
    state.on("theme", () => this.charts.forEach((chart) => chart.draw()));
  }

  private build(): void {
    const { selected } = this.state;
    this.live = [];
    this.charts = [];
    const title = nameOf(this.state, selected) || "Nothing selected";
    if (this.title.textContent !== plain(title)) this.title.textContent = plain(title);
    while (this.actions.nextSibling) this.actions.nextSibling.remove();
    this.note.textContent = selected?.type ?? "";
    if (!selected) this.body.append(el("p", "hint", "Click a joint, bone or marker, here or in the tree."));
    else if (selected.type === "joint") this.buildJoint(selected.subject, selected.joint);
    else if (selected.type === "marker") this.buildMarker(selected.marker);
    else if (selected.type === "sensor") this.buildSensor(selected.sensor);
    else this.buildBody(selected.body);
    this.refresh();
  }

  private refresh(): void {
    for (const { element, text } of this.live) element.textContent = text();
    this.charts.forEach((chart) => chart.moveCursor());
  }

  private addLive(name: string, unit: string, text: () => string): void {
    const row = fact(name, "", unit);
    this.live.push({ element: row.children[1] as HTMLElement, text });
    this.body.append(row);
  }

  private addChart(title: string, curves: Curve[], label: (v: number) => string, fromZero: boolean): Chart {
    const chart = new Chart(this.state, title, label, fromZero);
    this.body.append(el("div", "caption", title), chart.root);
    this.charts.push(chart);
    chart.show(curves);
    return chart;
  }

  private buildJoint(subject: number, index: number): void {
    const { scene, performance } = this.state;
    const joint = scene.subjects[subject].joints[index];
    const parent = scene.subjects[subject].joints[joint.parent];
    this.body.append(fact("Type", joint.kind));
    if (parent) this.body.append(fact("Parent", plain(parent.name)));
    if (parent) this.addLengths(joint, plain(parent.name));
    if (joint.covariance) {
      const sd = ellipsoid(joint.covariance).sd.sort((a, b) => b - a);
      this.body.append(fact("Centre ±", sd.map((v) => (v < UNKNOWN_SD ? millimetres(v) : "unsure")).join(" · "), "mm"));
    }
    const motion = performance.motions[subject];
    if (!motion) return;
    this.addAngles(subject, index, joint);
    const gap = performance.gapOf(subject, index);
    if (joint.residual !== null) this.body.append(fact("Gap of the fit", millimetres(joint.residual), "mm"));
    if (gap.some((v) => v === v)) this.addSeries("Gap", "gap", gap);
    this.addMarkersOf(subject, index);
  }

  private addLengths(joint: Joint, parent: string): void {
    const [length, sd] = lengthAndSd(joint.length, joint.length_sd);
    this.body.append(fact(`Bone to ${parent}`, `${length} ${sd}`.trim(), "mm"));
    const measured = this.state.scene.measured[joint.name];
    if (measured === undefined) return;
    this.body.append(fact("Measured", (1000 * measured).toFixed(1), "mm"));
    this.body.append(fact("Difference", signed(1000 * (joint.length - measured)), "mm"));
  }

  private addAngles(subject: number, index: number, joint: Joint): void {
    const { performance, scene } = this.state;
    if (joint.kind === "fixed") return;
    const motion = performance.motions[subject];
    const [n, frames] = [scene.subjects[subject].joints.length, performance.take.frames];
    const clinical = motion.angles.filter((angle) => angle.joint === index);
    const axis = joint.kind === "hinge" ? joint.axes[0] : null;
    const called = plain(joint.name);
    if (clinical.length) {
      const names = clinical.map(({ name }) => name);
      this.showAngles("Clinical angles (ISB), °", names, clinical.map((angle) => angle.degrees), "clinical");
    } else if (axis) this.showAngles("Angle, °", [`${called} about its hinge`], [turnAbout(motion, n, index, axis, frames)]);
    else {
      const names = AXES.map((name) => `${called} about ${name}`);
      this.showAngles("Angles, ° (R = Rz Rx Ry)", names, anglesZXY(motion, n, index, frames), "angles");
    }
  }

  /** Angles in one chart, each with its name and its present value. */
  private showAngles(title: string, names: string[], series: Float32Array[], key = ""): void {
    this.body.append(el("div", "caption", title));
    series.forEach((values, k) => {
      const row = nowRow(names[k], `curve-${k + 1}`);
      this.live.push({ element: row.lastElementChild as HTMLElement, text: () => `${degrees(values[this.state.frame])}°` });
      this.body.append(row);
    });
    const chart = new Chart(this.state, names.join(", "), (v) => degrees(v), false);
    this.body.append(chart.root);
    this.charts.push(chart);
    const curves = (columns: ArrayLike<number>[]) => columns.map((values, k) => ({ values, colour: `curve-${k + 1}` }));
    chart.show(curves(series));
    if (key)
      this.whenExact(({ [key]: all }) => chart.show(curves(series.map((_, k) => all.filter((_, i) => i % series.length === k)))));
  }

  /** A distance over time and how often each size occurs, with its present value. */
  private addSeries(name: string, key: string, values: Float32Array): void {
    const rms = fact(`${name} rms`, millimetres(rootMeanSquare(values)), "mm");
    this.body.append(rms);
    this.addLive(`${name} now`, "mm", () => millimetres(values[this.state.frame]));
    const chart = this.addChart(`${name} over the take, mm`, [{ values, colour: "curve-1" }], millimetres, true);
    const histogram = new Histogram(millimetres);
    this.body.append(el("div", "caption", "How often, mm"), histogram.root);
    histogram.show(values);
    this.whenExact(({ [key]: all }) => {
      rms.children[1].textContent = millimetres(rootMeanSquare(all));
      chart.show([{ values: all, colour: "curve-1" }]);
      histogram.show(all);
    });
  }

  /** Of a take that is drawn with a stride, do something with what is exact. */
  private whenExact(use: (all: Record<string, Float32Array>) => void): void {
    if (this.state.performance.take.stride === 1) return;
    void this.exact(this.state).then((all) => all && use(all), () => undefined);
  }

  private addMarkersOf(subject: number, joint: number): void {
    const { performance } = this.state;
    const markers = performance.markersOf(subject, joint);
    if (!markers.length) return;
    this.body.append(el("div", "caption", "Markers on this bone, rms mm"));
    for (const marker of markers) {
      const rms = rootMeanSquare(performance.residualOf(marker));
      const row = fact(plain(performance.take.markers[marker].label), millimetres(rms), "mm");
      row.classList.add("link");
      row.addEventListener("click", () => this.state.select({ type: "marker", marker }));
      actOnKeys(row);
      this.body.append(row);
    }
  }

  private buildMarker(marker: number): void {
    const { performance, scene } = this.state;
    const { take } = performance;
    const { body, confidence } = take.markers[marker];
    this.body.append(fact("Body", plain(scene.bodies[body]?.name ?? "none")));
    if (confidence !== null) this.body.append(fact("Sure of it", percent(confidence), "%"));
    const n = take.markers.length;
    let seen = 0;
    for (let f = 0; f < take.frames; f++) if (take.state[f * n + marker] % 2 === 1) seen++;
    this.body.append(fact("Seen", percent(seen / Math.max(take.frames, 1)), "%"));
    this.addLive("Now", "", () => STATES[performance.state(this.state.frame, marker)]);
    this.addLive("At", "mm", () => this.place(take.points, n, marker));
    if (performance.owner[marker])
      this.addSeries("Residual", "residual", performance.residualOf(marker));
  }

  private place(values: Float32Array, items: number, item: number): string {
    const at = 3 * (this.state.frame * items + item);
    return Array.from(values.subarray(at, at + 3), (v) => whole(1000 * v)).join("  ");
  }

  private buildSensor(sensor: number): void {
    const { take } = this.state.performance;
    const n = take.sensors.length;
    this.body.append(fact("Body", plain(this.state.scene.bodies[take.sensors[sensor].body]?.name ?? "none")));
    this.addLive("Now", "", () => (take.sensorSeen[this.state.frame * n + sensor] ? "seen" : "not seen"));
    this.addLive("At", "mm", () => this.place(take.sensorPlace, n, sensor));
    const seat = this.state.performance.bearer[sensor];
    if (!seat) return;
    const numbers = (values: number[], scale: number) => values.map((v) => (scale * v).toFixed(1)).join("  ");
    this.body.append(fact("On bone", numbers(seat.offset, 1000), "mm"));
    this.body.append(fact("Turned there", numbers(seat.rotation, 180 / Math.PI), "°"));
  }

  private buildBody(body: number): void {
    const { rms, confidence, determined } = this.state.scene.bodies[body];
    if (rms !== null) this.body.append(fact("Keeps its shape within", millimetres(rms), "mm"));
    if (confidence !== null) this.body.append(fact("Sure of it", percent(confidence), "%"));
    if (!determined) this.body.append(el("p", "hint", "Too few markers to tell how it is turned."));
  }
}
