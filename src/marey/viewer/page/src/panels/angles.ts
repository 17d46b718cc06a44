/** Clinical angles of people, left beside right, joint by joint. */
import { SIDES } from "../colours";
import type { Angle, Side } from "../scene";
import type { State } from "../state";
import { Chart } from "./chart";
import { nowRow, options, row, section } from "./dom";
import { degrees } from "./numbers";

/** An angle with its name taken apart: "Left knee flexion" is left, knee and flexion. */
interface Named {
  angle: Angle;
  subject: number;
  side: Side;
  joint: string;
  kind: string;
}

const FIRST = "knee";

export class AnglesPanel {
  readonly root: HTMLElement;
  private body: HTMLElement;
  private joint = FIRST;
  private all: Named[] = [];
  private live: { element: HTMLElement; values: Float32Array }[] = [];
  private charts: Chart[] = [];

  constructor(private state: State) {
    const { root, body, note } = section("Angles");
    this.root = root;
    this.body = body;
    note.textContent = "ISB, °";
    state.on("take", () => this.collect());
    state.on("selection", () => this.follow());
    state.on("frame", () => this.refresh());
    state.on("theme", () => this.charts.forEach((chart) => chart.draw()));
  }

  private collect(): void {
    this.all = this.state.performance.motions.flatMap((motion, subject) =>
      motion.angles.map((angle) => ({ angle, subject, ...parse(angle.name) })),
    );
    this.root.hidden = !this.all.length;
    if (!this.all.some(({ joint }) => joint === this.joint)) this.joint = this.all[0]?.joint ?? FIRST;
    this.build();
  }

  /** Show the angles of the joint that is selected, where it has any. */
  private follow(): void {
    const { selected } = this.state;
    if (selected?.type !== "joint") return;
    const found = this.all.find(({ angle, subject }) => angle.joint === selected.joint && subject === selected.subject);
    if (!found || found.joint === this.joint) return;
    this.joint = found.joint;
    this.build();
  }

  private build(): void {
    this.live = [];
    this.charts = [];
    this.body.replaceChildren();
    if (!this.all.length) return;
    const joints = [...new Set(this.all.map(({ joint }) => joint))];
    const list = options("Joint of the angles", joints, this.joint);
    list.addEventListener("change", () => {
      this.joint = joints[Number(list.value)];
      this.build();
    });
    this.body.append(row("Joint", list));
    const shown = this.all.filter(({ joint }) => joint === this.joint);
    for (const kind of new Set(shown.map((one) => one.kind))) this.addChart(shown.filter((one) => one.kind === kind));
    this.refresh();
  }

  private addChart(angles: Named[]): void {
    const several = this.state.scene.subjects.length > 1;
    for (const { angle, subject, side } of angles) {
      const whose = several ? `${this.state.scene.subjects[subject].name}: ` : "";
      const line = nowRow(whose + angle.name, SIDES[side]);
      this.live.push({ element: line.lastElementChild as HTMLElement, values: angle.degrees });
      this.body.append(line);
    }
    const chart = new Chart(this.state, angles.map(({ angle }) => angle.name).join(", "), (v) => degrees(v), false);
    this.body.append(chart.root);
    this.charts.push(chart);
    chart.show(angles.map(({ angle, side }) => ({ values: angle.degrees, colour: SIDES[side] })));
  }

  private refresh(): void {
    for (const { element, values } of this.live) element.textContent = `${degrees(values[this.state.frame])}°`;
    this.charts.forEach((chart) => chart.moveCursor());
  }
}

function parse(name: string): { side: Side; joint: string; kind: string } {
  const [, side = "", joint, kind] = /^(?:(Left|Right) )?(\S+) (.*)$/.exec(name) ?? ["", "", name, ""];
  return { side: side as Side, joint: joint.toLowerCase(), kind };
}
