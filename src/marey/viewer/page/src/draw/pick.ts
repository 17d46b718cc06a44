/** What is under the pointer: joints and markers by nearness on the screen, then bones. */
import { Raycaster, Vector2, Vector3 } from "three";
import type { Selection } from "../state";
import type { Theatre } from "./theatre";

const REACH = { mouse: 10, touch: 22 };
const CLICK_SLACK = 4;

export class Picker {
  private caster = new Raycaster();
  private spot = new Vector3();
  private down: { x: number; y: number } | null = null;
  /** Set while something else has the pointer, such as a drag. */
  paused = false;

  constructor(private theatre: Theatre) {
    const canvas = theatre.stage.renderer.domElement;
    canvas.addEventListener("pointerdown", (e) => (this.down = { x: e.clientX, y: e.clientY }));
    canvas.addEventListener("pointerup", (e) => this.click(e));
    canvas.addEventListener("pointermove", (e) => {
      if (!e.buttons && !this.paused) theatre.state.hover(this.at(e));
    });
    canvas.addEventListener("pointerleave", () => theatre.state.hover(null));
  }

  private click(event: PointerEvent): void {
    const { down } = this;
    this.down = null;
    if (!down || this.paused) return;
    if (Math.hypot(event.clientX - down.x, event.clientY - down.y) > CLICK_SLACK) return;
    this.theatre.state.select(this.at(event));
  }

  private at(event: PointerEvent): Selection | null {
    const box = this.theatre.stage.host.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const reach = event.pointerType === "touch" ? REACH.touch : REACH.mouse;
    return this.nearest(x, y, reach, box) ?? this.bone(x, y, box);
  }

  private nearest(x: number, y: number, reach: number, box: DOMRect): Selection | null {
    let best: Selection | null = null;
    let least = Infinity;
    for (const what of this.candidates()) {
      if (!this.theatre.locate(what, this.spot)) continue;
      this.spot.project(this.theatre.stage.camera);
      if (this.spot.z > 1) continue;
      const dx = ((this.spot.x + 1) / 2) * box.width - x;
      const dy = ((1 - this.spot.y) / 2) * box.height - y;
      const away = Math.hypot(dx, dy);
      // Of things as near as each other the one in front wins.
      if (away <= reach && away + 400 * this.spot.z < least) {
        least = away + 400 * this.spot.z;
        best = what;
      }
    }
    return best;
  }

  private *candidates(): Generator<Selection> {
    const { performance, scene, options } = this.theatre.state;
    if (options.joints)
      for (const [subject, { joints }] of scene.subjects.entries())
        for (let joint = 0; joint < joints.length; joint++) yield { type: "joint", subject, joint };
    if (options.markers)
      for (let marker = 0; marker < performance.take.markers.length; marker++)
        yield { type: "marker", marker };
    if (options.sensors)
      for (let sensor = 0; sensor < performance.take.sensors.length; sensor++)
        yield { type: "sensor", sensor };
  }

  private bone(x: number, y: number, box: DOMRect): Selection | null {
    const pointer = new Vector2((2 * x) / box.width - 1, 1 - (2 * y) / box.height);
    this.caster.setFromCamera(pointer, this.theatre.stage.camera);
    const { bones } = this.theatre;
    bones.group.children.forEach((mesh) => {
      // Copies move at every frame; a bound of an old frame would hide them.
      if ("boundingSphere" in mesh) mesh.boundingSphere = null;
    });
    const [hit] = this.caster.intersectObjects(bones.group.children, false);
    const bone = hit && bones.bone(hit.object, hit.instanceId!);
    return bone ? { type: "joint", ...bone } : null;
  }
}
