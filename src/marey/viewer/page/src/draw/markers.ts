/** Markers, distinct in shape as well as colour: seen, filled, outlier, of no body. */
import {
  BoxGeometry, BufferGeometry, Color, Group, IcosahedronGeometry, MeshBasicMaterial, MeshLambertMaterial,
  OctahedronGeometry,
} from "three";
import { mergeGeometries } from "three/addons/utils/BufferGeometryUtils.js";
import { SCENE, theme } from "../colours";
import { FILLED, OUTLIER, UNSEEN } from "../scene";
import type { State } from "../state";
import { Instances } from "./instances";

const FADED = 0.35;

/** Two crossed bars: an outlier reads as a cross from anywhere. */
function cross(): BufferGeometry {
  const bars = [Math.PI / 4, -Math.PI / 4].flatMap((angle) => [
    new BoxGeometry(3.4, 0.7, 0.7).rotateZ(angle),
    new BoxGeometry(3.4, 0.7, 0.7).rotateY(angle),
  ]);
  return mergeGeometries(bars);
}

export class Markers {
  readonly group = new Group();
  private seen!: Instances;
  private filled!: Instances;
  private outlier!: Instances;
  private loose!: Instances;
  private colours: Color[] = [];
  private tint = new Color();
  radius = 0.008;

  constructor(private state: State) {}

  /** Make room for the markers of the take. */
  rebuild(): void {
    [this.seen, this.filled, this.outlier, this.loose].forEach((some) => some?.dispose());
    const { take, size } = this.state.performance;
    const n = take.markers.length;
    const solid = () => new MeshLambertMaterial({ color: "#ffffff" });
    this.seen = new Instances(new IcosahedronGeometry(1, 1), solid(), n);
    this.filled = new Instances(
      new OctahedronGeometry(1.7, 0),
      new MeshBasicMaterial({ wireframe: true }),
      n,
    );
    this.outlier = new Instances(cross(), new MeshBasicMaterial(), n);
    this.loose = new Instances(new BoxGeometry(1.5, 1.5, 1.5), solid(), n);
    this.group.add(this.seen.mesh, this.filled.mesh, this.outlier.mesh, this.loose.mesh);
    this.colours = take.markers.map((marker) => this.state.colourOf(marker.body));
    this.radius = Math.min(0.0085, Math.max(size / 250, 0.0015));
  }

  update(): void {
    const { performance, frame, options, hovered, selected } = this.state;
    const { take } = performance;
    const all = [this.seen, this.filled, this.outlier, this.loose];
    all.forEach((some) => some.begin());
    const { ink, warning } = SCENE[theme()];
    const n = options.markers ? take.markers.length : 0;
    const under = hovered?.type === "marker" ? hovered.marker : -1;
    const chosen = selected?.type === "marker" ? selected.marker : -1;
    for (let i = 0; i < n; i++) {
      const at = frame * n + i;
      const state = take.state[at];
      if (state === UNSEEN) continue;
      const aimed = i === under || i === chosen;
      const r = aimed ? this.radius * 1.35 : this.radius;
      const loose = take.markers[i].body < 0;
      const look =
        state === OUTLIER ? this.outlier
        : state === FILLED ? this.filled
        : loose ? this.loose
        : this.seen;
      this.tint.copy(state === OUTLIER ? warning : this.colours[i]);
      if (aimed) this.tint.lerp(ink, FADED);
      look.add(take.points[3 * at], take.points[3 * at + 1], take.points[3 * at + 2], this.tint, r);
    }
    all.forEach((some) => some.end());
  }
}
