/** Drag a marker's place on its bone, or a joint's centre, with handles in the scene. */
import { Object3D } from "three";
import { TransformControls } from "three/addons/controls/TransformControls.js";
import type { Theatre } from "../draw/theatre";
import { rotate } from "../kinematics";
import { handleOf, type Selection, type State } from "../state";
import type { Edit, Vec3 } from "../scene";

export class Dragger {
  private handle = new Object3D();
  private controls: TransformControls;
  private what: Selection | null = null;

  constructor(
    private state: State,
    private theatre: Theatre,
    private done: (edit: Edit) => void,
  ) {
    const { picker } = theatre;
    const { camera, renderer, scene, controls } = theatre.stage;
    this.controls = new TransformControls(camera, renderer.domElement);
    this.controls.setSize(0.7);
    scene.add(this.handle, this.controls.getHelper());
    this.controls.addEventListener("change", () => theatre.stage.draw());
    this.controls.addEventListener("dragging-changed", ({ value }) => {
      controls.enabled = !value;
      // The click that ends a drag must not select what lies behind.
      if (value) picker.paused = true;
      else setTimeout(() => (picker.paused = false));
    });
    this.controls.addEventListener("mouseUp", () => this.finish());
    state.on(["selection", "take"], () => this.stop());
    state.on("frame", () => this.settle());
  }

  get active(): boolean {
    return this.what !== null;
  }

  start(what: Selection): void {
    this.what = what;
    this.settle();
    this.controls.attach(this.handle);
    this.theatre.stage.draw();
  }

  stop(): void {
    this.what = null;
    this.controls.detach();
    this.theatre.stage.draw();
  }

  private settle(): void {
    if (!this.what || this.controls.dragging) return;
    const { performance, frame } = this.state;
    const spot = [0, 0, 0];
    if (this.what.type === "marker" && performance.calculated(frame, this.what.marker, spot))
      this.handle.position.fromArray(spot);
    else this.theatre.locate(this.what, this.handle.position);
  }

  private finish(): void {
    const { state, what } = this;
    if (!what) return;
    const name = handleOf(state, what);
    if (what.type === "marker") {
      const owner = state.performance.owner[what.marker]!;
      const offset = this.within(owner.subject, owner.joint);
      this.done({ do: "place-marker", marker: name, offset });
    }
    if (what.type === "joint") {
      const { parent } = state.scene.subjects[what.subject].joints[what.joint];
      this.done({ do: "place-joint", joint: name, offset: this.within(what.subject, parent) });
    }
  }

  /** Where the handle is in the frame of a joint, at the present frame. */
  private within(subject: number, joint: number): Vec3 {
    const { place, wxyz, joints } = this.state.performance.poses[subject];
    const at = this.state.frame * joints + joint;
    const [w, x, y, z] = wxyz.subarray(4 * at, 4 * at + 4);
    const offset = this.handle.position.toArray().map((v, k) => v - place[3 * at + k]) as Vec3;
    rotate([w, -x, -y, -z], 0, offset, 0, offset, 0);
    return offset;
  }
}
