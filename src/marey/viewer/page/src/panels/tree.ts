/** The tree of joints with the markers they carry; click selects, hover highlights. */
import { bodyOfJoints, type Side } from "../scene";
import { same, type Selection, type State } from "../state";
import { el, section } from "./dom";
import { keepFocus, Rover } from "./keyboard";
import { millimetres } from "./numbers";

interface Row {
  element: HTMLElement;
  what: Selection;
}

export class TreePanel {
  readonly root: HTMLElement;
  private body: HTMLElement;
  private note: HTMLElement;
  private rows: Row[] = [];
  private opened = new Set<string>();
  private rover: Rover;

  constructor(private state: State) {
    const { root, body, note } = section("Tree");
    this.root = root;
    this.root.classList.add("fill");
    this.body = body;
    this.note = note;
    this.body.setAttribute("role", "tree");
    this.body.ariaLabel = "Joints, markers and sensors";
    this.rover = new Rover(this.body, "[role=treeitem]", (row, key) => this.pressRow(row, key));
    this.body.addEventListener("pointerleave", () => state.hover(null));
    state.on(["take", "colours"], () => keepFocus(this.body, () => this.build()));
    state.on(["selection", "hover"], () => this.mark());
    state.on("selection", () => this.reveal());
  }

  private build(): void {
    const { scene, performance } = this.state;
    this.rows = [];
    this.body.replaceChildren();
    scene.subjects.forEach((subject, index) => {
      if (scene.subjects.length > 1) this.addTitle(subject.name);
      this.addSubject(index);
    });
    this.addLooseBodies();
    const loose = performance.take.markers.flatMap((m, i) =>
      performance.owner[i] || m.body >= 0 ? [] : [i],
    );
    this.addList("Markers of no body", loose.map((marker) => ({ type: "marker", marker })));
    this.addList(
      "Sensors",
      performance.take.sensors.map((_, sensor) => ({ type: "sensor", sensor })),
    );
    const joints = scene.subjects.reduce((sum, s) => sum + s.joints.length, 0);
    this.note.textContent = joints ? "markers   gap mm" : "";
    this.mark();
    this.rover.refresh(this.rows.find(({ what }) => same(what, this.state.selected))?.element);
  }

  /** Right and left unfold and fold the markers of a bone, or go to the row above. */
  private pressRow(row: HTMLElement, key: string): boolean {
    if (key !== "ArrowRight" && key !== "ArrowLeft") return false;
    const twist = row.querySelector<HTMLElement>(".twist");
    if (twist && (row.ariaExpanded === "true") === (key === "ArrowLeft")) twist.click();
    else if (key === "ArrowLeft") this.above(row)?.focus();
    return true;
  }

  private above(row: HTMLElement): HTMLElement | undefined {
    const before = this.rows.slice(0, this.rows.findIndex(({ element }) => element === row));
    return before.reverse().find(({ element }) => Number(element.ariaLevel) < Number(row.ariaLevel))?.element;
  }

  private addTitle(text: string): void {
    const title = el("div", "group", text);
    title.setAttribute("role", "presentation");
    this.body.append(title);
  }

  private addSubject(subject: number): void {
    const { joints } = this.state.scene.subjects[subject];
    const { performance } = this.state;
    const bodies = bodyOfJoints(this.state.scene.subjects[subject]);
    const children = joints.map((_, i) => joints.flatMap((j, k) => (j.parent === i ? [k] : [])));
    const add = (joint: number, depth: number) => {
      const markers = performance.markersOf(subject, joint);
      const { name, residual, kind, side } = joints[joint];
      const row = this.addRow({ type: "joint", subject, joint }, depth, bodies[joint], name, side);
      if (kind === "fixed") row.classList.add("quiet");
      row.append(el("span", "number", residual === null ? "" : millimetres(residual)));
      if (markers.length) this.addMarkers(row, markers, depth + 1, `${subject}/${name}`);
      children[joint].forEach((child) => add(child, depth + 1));
    };
    if (joints.length) add(0, 0);
  }

  /** Markers of a bone are folded away until asked for. */
  private addMarkers(row: HTMLElement, markers: number[], depth: number, key: string): void {
    const twist = el("button", "twist", `${markers.length}`);
    twist.type = "button";
    twist.title = "Show the markers on this bone";
    twist.ariaLabel = `Markers: ${markers.length}`;
    twist.tabIndex = -1;
    row.insertBefore(twist, row.lastElementChild);
    const box = el("div");
    box.setAttribute("role", "group");
    box.hidden = !this.opened.has(key);
    row.ariaExpanded = twist.ariaExpanded = String(!box.hidden);
    twist.addEventListener("click", (event) => {
      event.stopPropagation();
      box.hidden = !box.hidden;
      row.ariaExpanded = twist.ariaExpanded = String(!box.hidden);
      if (box.hidden) this.opened.delete(key);
      else this.opened.add(key);
    });
    const { take } = this.state.performance;
    for (const marker of markers) {
      const { label, body } = take.markers[marker];
      this.addRow({ type: "marker", marker }, depth, body, label, undefined, box);
    }
    this.body.append(box);
  }

  /** Bodies that no joint of a figure has, such as props or those of an unsolved take. */
  private addLooseBodies(): void {
    const { scene, performance } = this.state;
    const placed = new Set(scene.subjects.flatMap((s) => s.joints.map((j) => j.body)));
    const loose = scene.bodies.flatMap((_, body) => (placed.has(body) ? [] : [body]));
    if (loose.length) this.addTitle("Bodies outside the figures");
    for (const body of loose) {
      const row = this.addRow({ type: "body", body }, 0, body, scene.bodies[body].name);
      row.append(el("span", "number"));
      const markers = performance.take.markers.flatMap((m, i) => (m.body === body ? [i] : []));
      if (markers.length) this.addMarkers(row, markers, 1, `body/${body}`);
    }
  }

  private addList(title: string, things: Selection[]): void {
    if (!things.length) return;
    this.addTitle(title);
    const { take } = this.state.performance;
    for (const what of things) {
      if (what.type === "marker") this.addRow(what, 0, -1, take.markers[what.marker].label);
      if (what.type === "sensor")
        this.addRow(what, 0, take.sensors[what.sensor].body, take.sensors[what.sensor].name);
    }
  }

  private addRow(what: Selection, depth: number, body: number, name: string, side?: Side, into = this.body): HTMLElement {
    const row = el("div", `row ${what.type}`);
    row.setAttribute("role", "treeitem");
    row.ariaLevel = String(depth + 1);
    row.style.paddingLeft = `${10 + 11 * depth}px`;
    const swatch = el("span", "swatch");
    swatch.style.background = this.state.colourOf(body, side).getStyle();
    row.append(swatch, el("span", "text", name));
    row.title = name;
    row.addEventListener("click", () => this.state.select(what));
    row.addEventListener("pointerenter", () => this.state.hover(what));
    into.append(row);
    this.rows.push({ element: row, what });
    return row;
  }

  private mark(): void {
    const { selected, hovered } = this.state;
    for (const { element, what } of this.rows) {
      const chosen = same(what, selected);
      element.classList.toggle("selected", chosen);
      element.classList.toggle("hovered", same(what, hovered));
      element.ariaSelected = String(chosen);
    }
  }

  /** Unfold and scroll to what was selected elsewhere. */
  private reveal(): void {
    const row = this.rows.find(({ what }) => same(what, this.state.selected))?.element;
    if (row && row.parentElement !== this.body) {
      row.parentElement!.hidden = false;
      const bearer = row.parentElement!.previousElementSibling as HTMLElement;
      bearer.ariaExpanded = bearer.querySelector(".twist")!.ariaExpanded = "true";
    }
    if (row) this.rover.refresh(row);
    row?.scrollIntoView({ block: "nearest" });
  }
}
