/** Lists below the selection: bone lengths, findings in plain words, seconds per stage. */
import { boneName, type Cause, type Finding } from "../scene";
import { named, same, type Selection, type State } from "../state";
import { button, el, fact, section } from "./dom";
import { actOnKeys, keepFocus, Rover } from "./keyboard";
import { lengthAndSd, seconds, signed } from "./numbers";

export class LengthsPanel {
  readonly root: HTMLElement;
  private body: HTMLElement;
  private note: HTMLElement;
  private rows: { element: HTMLElement; what: Selection }[] = [];
  private rover: Rover;

  constructor(private state: State) {
    ({ root: this.root, body: this.body, note: this.note } = section("Bone lengths"));
    this.note.textContent = "mm";
    this.rover = new Rover(this.body, "td.name button");
    state.on("scene", () => keepFocus(this.body, () => this.build()));
    state.on(["selection", "hover"], () => this.mark());
  }

  private build(): void {
    const { scene } = this.state;
    const measured = Object.keys(scene.measured).length > 0;
    const table = el("table");
    if (measured) table.append(this.heads());
    this.rows = [];
    scene.subjects.forEach((figure, subject) =>
      figure.joints.forEach((joint, index) => {
        if (joint.parent < 0) return;
        const row = table.insertRow();
        const [length, sd] = lengthAndSd(joint.length, joint.length_sd);
        const name = el("td", "name");
        const title = boneName(figure, index);
        name.append(button(title, title, () => undefined, "link"));
        row.append(name, el("td", "", length), el("td", "sd", sd));
        const tape = scene.measured[joint.name];
        if (measured) row.append(el("td", "", tape === undefined ? "" : (1000 * tape).toFixed(1)));
        if (measured) row.append(el("td", "", tape === undefined ? "" : signed(1000 * (joint.length - tape))));
        const what = { type: "joint" as const, subject, joint: index };
        row.addEventListener("click", () => this.state.select(what));
        row.addEventListener("pointerenter", () => this.state.hover(what));
        this.rows.push({ element: row, what });
      }),
    );
    table.addEventListener("pointerleave", () => this.state.hover(null));
    this.body.replaceChildren(table);
    this.rover.refresh();
    table.classList.toggle("wide", measured);
    this.root.hidden = !scene.subjects.length;
    this.mark();
  }

  private heads(): HTMLElement {
    const head = el("thead");
    const row = head.insertRow();
    for (const text of ["bone", "found", "± sd", "tape", "differ"]) row.append(el("th", "", text));
    return head;
  }

  private mark(): void {
    const { selected, hovered } = this.state;
    for (const { element, what } of this.rows) {
      element.classList.toggle("selected", same(what, selected));
      element.classList.toggle("hovered", same(what, hovered));
    }
  }
}

const AS_SEEN = "No skeleton was asked for: this is the recording as it was seen.";

export class FindingsPanel {
  readonly root: HTMLElement;
  private body: HTMLElement;
  private note: HTMLElement;
  private items = new Map<Finding, HTMLElement>();

  constructor(private state: State) {
    ({ root: this.root, body: this.body, note: this.note } = section("Findings"));
    state.on("scene", () => keepFocus(this.body, () => this.build()));
  }

  private build(): void {
    const { causes, subjects, takes } = this.state.scene;
    const unsolved = this.state.scene.unsolved || (subjects.length || !takes.length ? "" : AS_SEEN);
    this.items.clear();
    this.body.replaceChildren();
    if (unsolved) this.body.append(el("p", "unsolved", unsolved));
    for (const cause of causes) this.body.append(this.item(cause));
    if (!causes.length && !unsolved) this.body.append(el("p", "hint", "Nothing to report."));
    const bad = causes.filter((cause) => cause.severity !== "info").length;
    this.note.textContent = bad ? `${bad} to look at` : "";
  }

  /** One cause; every click goes to the next of its findings. */
  private item(cause: Cause): HTMLElement {
    const item = el("div", `finding ${cause.severity}`);
    const head = el("div", "where");
    const findings = cause.findings.map((number) => this.state.scene.findings[number]);
    head.append(el("span", "kind", cause.severity), el("span", "", cause.stage));
    const [first] = findings;
    if (findings.length > 1) head.append(el("span", "frames", `${findings.length} places`));
    else if (first.frames[0] >= 0) head.append(el("span", "frames", spell(first.frames)));
    item.append(head, el("div", "message", cause.message));
    let next = 0;
    item.addEventListener("click", () => this.jump(findings[next++ % findings.length]));
    actOnKeys(item);
    for (const finding of findings) this.items.set(finding, item);
    return item;
  }

  /** Go to the take, the frame and the thing a finding speaks of. */
  jump(finding: Finding): void {
    const { state } = this;
    if (finding.take >= 0 && finding.take !== state.performance.index) state.chooseTake(finding.take);
    if (finding.frames[0] >= 0) state.seek(state.performance.drawn(finding.frames[0]));
    const what = finding.subject ? named(state, finding.subject) : null;
    if (what) state.select(what);
    const chosen = this.items.get(finding);
    this.items.forEach((item) => item.classList.toggle("selected", item === chosen));
    chosen?.scrollIntoView({ block: "nearest" });
  }
}

function spell([first, last]: [number, number]): string {
  return first === last ? `frame ${first}` : `frames ${first}–${last}`;
}

export class StagesPanel {
  readonly root: HTMLElement;
  private body: HTMLElement;
  private note: HTMLElement;

  constructor(private state: State) {
    ({ root: this.root, body: this.body, note: this.note } = section("Time taken", false));
    state.on("scene", () => this.build());
  }

  private build(): void {
    const entries = Object.entries(this.state.scene.seconds);
    const total = entries.reduce((sum, [, value]) => sum + value, 0);
    this.note.textContent = entries.length ? `${seconds(total)} s` : "";
    this.body.replaceChildren(
      ...entries.map(([stage, value]) => {
        const row = fact(stage, seconds(value), "s");
        const bar = el("span", "bar");
        bar.style.width = `${(100 * value) / Math.max(total, 1e-9)}%`;
        row.append(bar);
        return row;
      }),
    );
    this.root.hidden = !entries.length;
  }
}
