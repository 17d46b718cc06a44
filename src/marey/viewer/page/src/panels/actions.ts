/** What can be done to the selected joint, body or marker. */
import { bodyOfJoints, type Edit } from "../scene";
import { handleOf, type Selection, type State } from "../state";
import { button, el } from "./dom";

export interface Doer {
  attempt(edit: Edit): void;
  /** Let it be dragged in the scene; null where nothing is drawn. */
  drag: ((what: Selection) => void) | null;
}

const KINDS = ["ball", "universal", "hinge", "fixed"];

export function actionsFor(state: State, doer: Doer): HTMLElement[] {
  const { selected } = state;
  if (selected?.type === "marker") return forMarker(state, selected.marker, doer);
  if (selected?.type === "joint") return forJoint(state, selected.subject, selected.joint, doer);
  if (selected?.type === "body") return forBody(state, selected.body, doer);
  return [];
}

function forMarker(state: State, marker: number, doer: Doer): HTMLElement[] {
  const { take, owner } = state.performance;
  const { label, body } = take.markers[marker];
  const bodies = state.scene.bodies.map((b) => b.name);
  const actions = [
    choose("Move to", ["no body", ...bodies], bodies[body] ?? "no body", "Move", (to) =>
      doer.attempt({ do: "move-marker", marker: label, to: to === "no body" ? "" : to }),
    ),
  ];
  const { drag } = doer;
  if (owner[marker] && drag)
    actions.push(single("Its place", "Drag in the scene", () => drag({ type: "marker", marker })));
  actions.push(
    single("Ground", "Set to its height now", () => {
      const z = take.points[3 * (state.frame * take.markers.length + marker) + 2];
      doer.attempt({ do: "ground", normal: [0, 0, 1], height: z });
    }),
  );
  return actions;
}

function forJoint(state: State, subject: number, joint: number, doer: Doer): HTMLElement[] {
  const figure = state.scene.subjects[subject];
  const { name, kind, parent, body } = figure.joints[joint];
  const handle = handleOf(state, { type: "joint", subject, joint });
  const actions = [rename(name, handle, doer)];
  const { drag } = doer;
  if (parent >= 0) {
    actions.push(choose("Type", KINDS, kind, "Set", (to) => doer.attempt({ do: "kind", joint: handle, kind: to })));
    if (drag) actions.push(single("Centre", "Drag in the scene", () => drag({ type: "joint", subject, joint })));
  }
  if (body < 0) return actions;
  const above = state.scene.bodies[parent < 0 ? -1 : bodyOfJoints(figure)[parent]]?.name;
  if (above !== undefined)
    actions.push(
      single("Hangs here", `Cut from ${bare(above)}`, () => doer.attempt({ do: "cut", bodies: [above, handle] })),
      single("Root", "Make it the root", () => doer.attempt({ do: "reroot", body: handle })),
    );
  return [...actions, ...pairs(state, handle, doer), ...split(state, body, doer)];
}

function forBody(state: State, body: number, doer: Doer): HTMLElement[] {
  const { name } = state.scene.bodies[body];
  return [rename(bare(name), name, doer), ...pairs(state, name, doer), ...split(state, body, doer)];
}

/** A new name; whose it is, as in "A:Hips", stays as it was unless another is written. */
function rename(shown: string, handle: string, doer: Doer): HTMLElement {
  const whose = handle.slice(0, handle.length - bare(handle).length);
  return write("Rename", shown, (to) =>
    doer.attempt({ do: "rename", name: handle, to: to.includes(":") ? to : whose + to }),
  );
}

/** A name without the subject before it. */
function bare(name: string): string {
  return name.slice(name.lastIndexOf(":") + 1);
}

function pairs(state: State, name: string, doer: Doer): HTMLElement[] {
  const others = state.scene.bodies.map((b) => b.name).filter((other) => other !== name);
  if (!others.length) return [];
  return [
    choose("Join with", others, others[0], "Join", (to) => doer.attempt({ do: "join", bodies: [name, to] })),
    choose("Merge with", others, others[0], "Merge", (to) => doer.attempt({ do: "merge", bodies: [name, to] })),
  ];
}

/** Tick the markers that leave the body. */
function split(state: State, body: number, doer: Doer): HTMLElement[] {
  const labels = state.performance.take.markers.filter((m) => m.body === body).map((m) => m.label);
  if (labels.length < 2) return [];
  const box = el("details", "split");
  const list = el("div", "switches");
  const boxes = labels.map((label) => {
    const row = el("label");
    const tick = el("input");
    tick.type = "checkbox";
    row.append(tick, el("span", "", label));
    list.append(row);
    return tick;
  });
  const go = () => {
    const markers = labels.filter((_, i) => boxes[i].checked);
    doer.attempt({ do: "split", body: state.scene.bodies[body].name, markers });
  };
  box.append(el("summary", "", "Split: markers that leave"), list, button("Split", "Make them a body", go));
  return [box];
}

function row(name: string): HTMLElement {
  const element = el("div", "action");
  element.append(el("span", "", name));
  return element;
}

function single(name: string, label: string, run: () => void): HTMLElement {
  const element = row(name);
  element.append(button(label, label, run));
  return element;
}

function choose(name: string, values: string[], now: string, label: string, run: (value: string) => void): HTMLElement {
  const element = row(name);
  const list = el("select");
  values.forEach((value, i) => {
    const item = el("option", "", value);
    item.value = String(i);
    item.selected = value === now;
    list.append(item);
  });
  element.append(list, button(label, `${name}: ${label}`, () => run(values[Number(list.value)])));
  return element;
}

function write(name: string, now: string, run: (value: string) => void): HTMLElement {
  const element = row(name);
  const field = el("input");
  field.type = "text";
  field.value = now;
  field.ariaLabel = name;
  const go = () => field.value.trim() && run(field.value.trim());
  field.addEventListener("keydown", (event) => event.key === "Enter" && go());
  element.append(field, button(name, name, go));
  return element;
}
