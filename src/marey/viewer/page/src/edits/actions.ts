/** What can be done to the selected joint, body or marker. */
import { bodyOfJoints, type Edit } from "../scene";
import { handleOf, type Selection, type State } from "../state";
import { button, choose, el, single, triple, write } from "../panels/dom";
import { forSensor } from "./sensors";

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
  if (selected?.type === "sensor") return forSensor(state, selected.sensor, doer);
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
  const { name, kind, parent, body, offset, axes } = figure.joints[joint];
  const handle = handleOf(state, { type: "joint", subject, joint });
  const actions = [rename(name, handle, doer)];
  const { drag } = doer;
  if (parent >= 0) {
    actions.push(choose("Type", KINDS, kind, "Set", (to) => doer.attempt({ do: "kind", joint: handle, kind: to })));
    if (drag) actions.push(single("Centre", "Drag in the scene", () => drag({ type: "joint", subject, joint })));
    actions.push(
      triple("Centre, mm", offset.map((v) => 1000 * v), 1, "Place", (mm) =>
        doer.attempt({ do: "place-joint", joint: handle, offset: mm.map((v) => v / 1000) }),
      ),
      triple("Hinge axis", axes[0] ?? [0, 0, 0], 0.05, "Set", (axis) => doer.attempt({ do: "axis", joint: handle, axis })),
    );
  }
  if (body < 0) return actions;
  const above = state.scene.bodies[parent < 0 ? -1 : bodyOfJoints(figure)[parent]]?.name;
  if (above !== undefined)
    actions.push(
      single("Hangs here", `Cut from ${bare(above)}`, () => doer.attempt({ do: "cut", bodies: [above, handle] })),
      single("Root", "Make it the root", () => doer.attempt({ do: "reroot", body: handle })),
    );
  return [...actions, ...borne(state, subject, joint), ...pairs(state, handle, doer), ...split(state, body, doer)];
}

function forBody(state: State, body: number, doer: Doer): HTMLElement[] {
  const { name } = state.scene.bodies[body];
  return [rename(bare(name), name, doer), ...pairs(state, name, doer), ...split(state, body, doer)];
}

/** The sensors on a bone, to go to one of them. */
function borne(state: State, subject: number, joint: number): HTMLElement[] {
  const sensors = state.performance.motions[subject]?.sensors.filter((one) => one.joint === joint) ?? [];
  const names = sensors.map(({ sensor }) => state.performance.take.sensors[sensor].name);
  if (!names.length) return [];
  return [
    choose("Sensor", names, names[0], "Select", (name) =>
      state.select({ type: "sensor", sensor: sensors[names.indexOf(name)].sensor }),
    ),
  ];
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

/** Tick the markers and sensors that leave the body. */
function split(state: State, body: number, doer: Doer): HTMLElement[] {
  const { take } = state.performance;
  const labels = take.markers.filter((m) => m.body === body).map((m) => m.label);
  const sensors = take.sensors.filter((s) => s.body === body).map((s) => s.name);
  const all = [...labels, ...sensors];
  if (all.length < 2) return [];
  const box = el("details", "split");
  const list = el("div", "switches");
  const boxes = all.map((name, i) => {
    const line = el("label");
    const tick = el("input");
    tick.type = "checkbox";
    line.append(tick, el("span", "", i < labels.length ? name : `${name} (sensor)`));
    list.append(line);
    return tick;
  });
  const go = () => {
    const markers = labels.filter((_, i) => boxes[i].checked);
    const leaving = sensors.filter((_, i) => boxes[labels.length + i].checked);
    doer.attempt({ do: "split", body: state.scene.bodies[body].name, markers, sensors: leaving });
  };
  const what = [labels.length ? "markers" : "", sensors.length ? "sensors" : ""].filter(Boolean).join(" and ");
  box.append(el("summary", "", `Split: ${what} that leave`), list, button("Split", "Make them a body", go));
  return [box];
}
