/** What stays on the stage over time: trails of points, and where feet stand. */
import {
  BufferGeometry, CircleGeometry, Color, Float32BufferAttribute, Group, Line, LineBasicMaterial, MeshBasicMaterial,
  Quaternion, RingGeometry, Vector3,
} from "three";
import { SCENE, theme } from "../colours";
import type { Vec3 } from "../scene";
import type { State } from "../state";
import { Instances } from "./instances";

const TRAIL_SECONDS = 1.2;
const PLANT_RADIUS = 0.055;

export class Trails {
  readonly group = new Group();
  private lines: Line<BufferGeometry, LineBasicMaterial>[] = [];

  constructor(private state: State) {}

  /** Make the lines of what leaves a trail; they are cut to length at each frame. */
  rebuild(): void {
    for (const line of this.lines) {
      line.geometry.dispose();
      line.material.dispose();
      line.removeFromParent();
    }
    this.lines = [];
    const { options, selected, performance } = this.state;
    if (options.trails === "off") return;
    if (options.trails === "all")
      performance.take.markers.forEach((marker, i) => this.addMarker(i, this.state.colourOf(marker.body)));
    else if (selected?.type === "marker") this.addMarker(selected.marker, SCENE[theme()].accent);
    if (selected?.type === "joint") {
      const { place, joints } = performance.poses[selected.subject];
      this.add(place, joints, selected.joint, SCENE[theme()].accent);
    }
  }

  private addMarker(marker: number, colour: Color): void {
    const { points, markers } = this.state.performance.take;
    this.add(points, markers.length, marker, colour);
  }

  private add(values: Float32Array, items: number, item: number, colour: Color): void {
    const frames = this.state.performance.take.frames;
    const place = new Float32Array(3 * frames);
    for (let frame = 0; frame < frames; frame++)
      for (let k = 0; k < 3; k++) place[3 * frame + k] = values[3 * (frame * items + item) + k];
    const line = new Line(
      new BufferGeometry(),
      new LineBasicMaterial({ color: colour, transparent: true, opacity: 0.75 }),
    );
    line.geometry.setAttribute("position", new Float32BufferAttribute(place, 3));
    line.frustumCulled = false;
    this.lines.push(line);
    this.group.add(line);
  }

  update(): void {
    const { frame, performance } = this.state;
    const { rate, stride } = performance.take;
    const count = Math.min(frame, Math.round((TRAIL_SECONDS * rate) / stride)) + 1;
    for (const line of this.lines) line.geometry.setDrawRange(frame - count + 1, count);
  }
}

/** Discs where feet stand now, rings where they stand at other times. */
export class Plants {
  readonly group = new Group();
  private discs!: Instances;
  private rings!: Instances;
  private tint = new Color();
  private turn = [1, 0, 0, 0];

  constructor(private state: State) {}

  rebuild(): void {
    this.discs?.dispose();
    this.rings?.dispose();
    const n = this.contacts().length;
    const flat = () => new MeshBasicMaterial({ transparent: true, depthWrite: false, opacity: 0.55 });
    this.discs = new Instances(new CircleGeometry(1, 28), flat(), n);
    this.rings = new Instances(new RingGeometry(0.9, 1, 28), flat(), n);
    this.group.add(this.discs.mesh, this.rings.mesh);
    const normal = new Vector3(...this.state.scene.ground.normal);
    const q = new Quaternion().setFromUnitVectors(new Vector3(0, 0, 1), normal);
    this.turn = [q.w, q.x, q.y, q.z];
  }

  update(): void {
    const { frame, performance, options } = this.state;
    const { accent, gridMajor } = SCENE[theme()];
    const time = performance.time(frame);
    this.discs.begin();
    this.rings.begin();
    for (const { start, end, anchor } of options.plants ? this.contacts() : []) {
      const now = start <= time && time <= end;
      this.tint.copy(now ? accent : gridMajor);
      const look = now ? this.discs : this.rings;
      const [x, y, z] = this.onGround(anchor);
      look.add(x, y, z, this.tint, PLANT_RADIUS, PLANT_RADIUS, PLANT_RADIUS, this.turn);
    }
    this.discs.end();
    this.rings.end();
  }

  /** The spot of the ground that is nearest, a hair above it so that both are seen. */
  private onGround([x, y, z]: Vec3): Vec3 {
    const [a, b, c] = this.state.scene.ground.normal;
    const off = a * x + b * y + c * z - this.state.scene.ground.height - 0.002;
    return [x - off * a, y - off * b, z - off * c];
  }

  private contacts() {
    return this.state.performance.motions.flatMap((motion) => motion.contacts);
  }
}
