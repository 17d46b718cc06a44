/** What can be done to a sensor: where it sits on its bone, how it is turned, and since when. */
import { turnedBy } from "../kinematics";
import type { Edit, Vec3 } from "../scene";
import type { State } from "../state";
import type { Doer } from "./actions";
import { button, choose, options, row, triple } from "../panels/dom";

const RADIANS = Math.PI / 180;
const ALWAYS = "for all frames";
const FROM_HERE = "from this frame on";

export function forSensor(state: State, sensor: number, doer: Doer): HTMLElement[] {
  const { take, bearer } = state.performance;
  const { name, body } = take.sensors[sensor];
  const bodies = state.scene.bodies.map((b) => b.name);
  const actions = [
    choose("Move to", ["no body", ...bodies], bodies[body] ?? "no body", "Move", (to) =>
      doer.attempt({ do: "move-sensor", sensor: name, to: to === "no body" ? "" : to }),
    ),
  ];
  const seat = bearer[sensor];
  if (!seat) return actions;
  const holds = options("Holds", [ALWAYS, FROM_HERE], ALWAYS);
  const place = (how: Partial<Record<"offset" | "rotation", Vec3>>) =>
    doer.attempt({ do: "place-sensor", sensor: name, ...how, ...start(state, holds) });
  actions.push(
    triple("Place, mm", seat.offset.map((v) => 1000 * v), 1, "Place", (mm) =>
      place({ offset: mm.map((v) => v / 1000) as Vec3 }),
    ),
    triple("Turn by, °", [0, 0, 0], 1, "Turn", (by) =>
      place({ rotation: turnedBy(by.map((v) => v * RADIANS), seat.rotation) }),
    ),
    restPose(state, doer.attempt, [name], holds),
    row("Holds", holds),
  );
  return actions;
}

/** Take how sensors sit on their bones from the range, in which the performer stands in the rest pose. */
export function restPose(
  state: State,
  attempt: (edit: Edit) => void,
  sensors: string[] = [],
  holds = options("Holds", [ALWAYS, FROM_HERE], ALWAYS),
): HTMLElement {
  const { range, performance } = state;
  const take = button(sensors.length ? "Take from range" : "Take", "", () => {
    const [first, last] = range!.map((frame) => performance.recorded(frame));
    const since = Number(holds.value) ? Math.min(first, performance.recorded(state.frame)) : 0;
    attempt({ do: "null-model", first, last, sensors, since, take: performance.index });
  });
  take.disabled = !range;
  take.title = range
    ? `The performer stands in the rest pose in this range: take from it how ${sensors.length ? "this sensor sits on its bone" : "all sensors sit on their bones"}`
    : "First mark a range of the rest pose: i and o, or shift and drag";
  return sensors.length ? row("Rest pose", take) : row("Rest pose", holds, take);
}

/** Since when an edit holds: the present frame of the present take, or always. */
function start(state: State, holds: HTMLSelectElement): { since?: number; take?: number } {
  if (!Number(holds.value)) return {};
  const { performance, frame } = state;
  return { since: performance.recorded(frame), take: performance.index };
}
