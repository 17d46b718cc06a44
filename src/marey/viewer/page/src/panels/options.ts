/** What is drawn, and how much larger than life the uncertainty is. */
import { MAGNIFY, type Options, type State } from "../state";
import { el, section } from "./dom";

type Switch = { [K in keyof Options]: Options[K] extends boolean ? K : never }[keyof Options];

const SWITCHES: [Switch, string, string][] = [
  ["markers", "Markers", "ball: seen, diamond: filled, cross: outlier, box: of no body"],
  ["bones", "Bones", "solid shapes from joint to joint"],
  ["joints", "Joints", "coloured by the gap, cloud of their uncertainty"],
  ["axes", "Hinge axes", "the axes hinges turn about"],
  ["plants", "Foot plants", "disc: stands now, ring: at another time"],
  ["sensors", "Sensors", "6-DoF sensors with their axes"],
  ["truth", "Truth", "the true figure, see-through"],
  ["labels", "Names", "names of all joints"],
];

export class OptionsPanel {
  readonly root: HTMLElement;
  private boxes: Partial<Record<Switch, HTMLInputElement>> = {};

  constructor(private state: State) {
    const { root, body } = section("Show");
    this.root = root;
    const grid = el("div", "switches");
    for (const [key, name, title] of SWITCHES) grid.append(this.addSwitch(key, name, title));
    body.append(grid, this.choice("Trails", ["off", "selection", "all"], "trails", (v) => v));
    body.append(this.choice("Colours", ["sides", "bodies"], "colours", (v) => (v === "sides" ? "left, right" : "bodies")));
    body.append(this.choice("Uncertainty", MAGNIFY, "magnify", (v) => `× ${v}`));
    state.on("take", () => this.offer());
    state.on("options", () => this.mark());
  }

  private addSwitch(key: Switch, name: string, title: string): HTMLElement {
    const label = el("label");
    label.title = title;
    const box = el("input");
    box.type = "checkbox";
    box.checked = this.state.options[key];
    box.addEventListener("change", () => this.state.set({ [key]: box.checked }));
    label.append(box, el("span", "", name));
    this.boxes[key] = box;
    return label;
  }

  private choice<K extends "trails" | "magnify" | "colours">(
    name: string, values: Options[K][], key: K, text: (value: Options[K]) => string,
  ): HTMLElement {
    const row = el("label", "choice");
    const list = el("select");
    values.forEach((value, i) => {
      const item = el("option", "", text(value));
      item.value = String(i);
      item.selected = value === this.state.options[key];
      list.append(item);
    });
    list.addEventListener("change", () => this.state.set({ [key]: values[Number(list.value)] }));
    row.append(el("span", "", name), list);
    this.state.on("options", () => (list.value = String(values.indexOf(this.state.options[key]))));
    if (key === "colours") this.state.on("scene", () => (list.disabled = !this.state.hasSides));
    return row;
  }

  /** Switches of things that the take has none of are greyed, not taken away. */
  private offer(): void {
    const { scene, performance } = this.state;
    const solved = scene.subjects.length > 0;
    const there: Partial<Record<Switch, boolean>> = {
      markers: performance.take.markers.length > 0,
      bones: solved,
      joints: solved,
      axes: scene.subjects.some((s) => s.joints.some((j) => j.axes.some((a) => a) && j.kind !== "ball")),
      plants: performance.motions.some((m) => m.contacts.length > 0),
      sensors: performance.take.sensors.length > 0,
      truth: scene.truth !== null,
    };
    for (const [key, box] of Object.entries(this.boxes)) box.disabled = there[key as Switch] === false;
  }

  private mark(): void {
    for (const [key, box] of Object.entries(this.boxes)) box.checked = this.state.options[key as Switch];
  }
}
