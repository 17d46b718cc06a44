/** 6-DoF sensors: a small box with its three axes. */
import {
  BoxGeometry, BufferGeometry, Color, Float32BufferAttribute, Group, LineBasicMaterial, LineSegments,
  MeshLambertMaterial,
} from "three";
import { rotate } from "../kinematics";
import type { State } from "../state";
import { Instances } from "./instances";

const AXES = ["#d9642a", "#22a384", "#5aa5e6"].map((colour) => new Color(colour));
const HALF = 0.011;
const REACH = 0.06;

export class Sensors {
  readonly group = new Group();
  private boxes!: Instances;
  private axes = new LineSegments(new BufferGeometry(), new LineBasicMaterial({ vertexColors: true }));
  private place: Float32Array = new Float32Array(0);
  private colours: Color[] = [];

  constructor(private state: State) {
    this.axes.frustumCulled = false;
    this.group.add(this.axes);
  }

  rebuild(): void {
    this.boxes?.dispose();
    const { sensors } = this.state.performance.take;
    this.boxes = new Instances(new BoxGeometry(1, 1, 1), new MeshLambertMaterial(), sensors.length);
    this.group.add(this.boxes.mesh);
    this.colours = sensors.map(({ body }) => this.state.colourOf(body));
    this.place = new Float32Array(sensors.length * 18);
    const colour = sensors.flatMap(() => AXES.flatMap((c) => [c.r, c.g, c.b, c.r, c.g, c.b]));
    this.axes.geometry.dispose();
    this.axes.geometry = new BufferGeometry();
    this.axes.geometry.setAttribute("position", new Float32BufferAttribute(this.place, 3));
    this.axes.geometry.setAttribute("color", new Float32BufferAttribute(colour, 3));
    this.place = this.axes.geometry.getAttribute("position").array as Float32Array;
  }

  update(): void {
    const { frame, options, performance } = this.state;
    const { sensors, sensorPlace, sensorWxyz, sensorSeen } = performance.take;
    const n = sensors.length;
    const size = Math.min(1, performance.size / 2);
    this.boxes.begin();
    let drawn = 0;
    for (let i = 0; i < n && options.sensors; i++) {
      const at = frame * n + i;
      if (!sensorSeen[at]) continue;
      const [x, y, z] = sensorPlace.subarray(3 * at, 3 * at + 3);
      this.boxes.add(x, y, z, this.colours[i], 2 * HALF * size, 2 * HALF * size, HALF * size, sensorWxyz, 4 * at);
      for (let k = 0; k < 3; k++) {
        const o = 18 * drawn + 6 * k;
        rotate(sensorWxyz, 4 * at, UNIT[k], 0, this.place, o + 3);
        for (let c = 0; c < 3; c++) {
          this.place[o + c] = sensorPlace[3 * at + c];
          this.place[o + 3 + c] = sensorPlace[3 * at + c] + REACH * size * this.place[o + 3 + c];
        }
      }
      drawn++;
    }
    this.boxes.end();
    this.axes.geometry.setDrawRange(0, 6 * drawn);
    this.axes.geometry.getAttribute("position").needsUpdate = true;
  }
}

const UNIT = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
