/** Joints: a ball coloured by residual, within the ellipsoid of its uncertainty. */
import {
  Color, CylinderGeometry, Group, IcosahedronGeometry, Matrix4, MeshBasicMaterial, MeshLambertMaterial, Quaternion,
  Vector3,
} from "three";
import { css, READINESS, SCENE, scaleColour, theme } from "../colours";
import { ellipsoid, multiply, rotate } from "../kinematics";
import { UNKNOWN_SD } from "../panels/numbers";
import type { Joint } from "../scene";
import { MAGNIFY, type Selection, type State } from "../state";
import { Instances } from "./instances";

interface Shape {
  sd: number[];
  /** The turn of the ellipsoid's axes in the parent's frame, w x y z. */
  turn: number[];
}

/** Joints that only anatomy or the end of a bone gives are drawn smaller. */
const SMALL = 0.55;
const AXIS_LENGTH = 0.14;
const CLOUD_SHARE = 0.03;

export class Joints {
  readonly group = new Group();
  private balls!: Instances;
  private clouds!: Instances;
  private axes!: Instances;
  private shapes: (Shape | null)[][] = [];
  private small: boolean[][] = [];
  private colour = new Color();
  private wxyz = [1, 0, 0, 0];
  private along = [0, 0, 0];
  private quaternion = new Quaternion();
  private vector = new Vector3();
  radius = 0.012;
  /** A centre that is free along its axis is drawn no longer than this, m. */
  private widest = 1;
  /** The gap that has the last colour of the scale, m. */
  full = 0.02;

  constructor(private state: State) {}

  rebuild(): void {
    [this.balls, this.clouds, this.axes].forEach((some) => some?.dispose());
    const { scene, performance } = this.state;
    const n = scene.subjects.reduce((sum, { joints }) => sum + joints.length, 0);
    this.balls = new Instances(new IcosahedronGeometry(1, 2), new MeshLambertMaterial(), n);
    this.clouds = new Instances(
      new IcosahedronGeometry(1, 3),
      new MeshBasicMaterial({ transparent: true, opacity: 0.22, depthWrite: false }),
      n,
    );
    const axis = new CylinderGeometry(1, 1, 1, 8).rotateX(Math.PI / 2);
    this.axes = new Instances(axis, new MeshBasicMaterial(), 2 * n);
    this.group.add(this.balls.mesh, this.clouds.mesh, this.axes.mesh);
    this.shapes = scene.subjects.map(({ joints }) => joints.map(shapeOf));
    this.small = scene.subjects.map(({ joints }) => {
      const parents = new Set(joints.map((joint) => joint.parent));
      return joints.map((joint, i) => !joint.observed || (joint.kind === "fixed" && !parents.has(i)));
    });
    this.radius = Math.min(0.018, Math.max(performance.size / 140, 0.003));
    this.full = niceCeiling(performance.summary.gap);
    this.widest = performance.size / 6;
  }

  update(): void {
    const { scene, performance, options, frame } = this.state;
    const all = [this.balls, this.clouds, this.axes];
    all.forEach((some) => some.begin());
    scene.subjects.forEach(({ joints }, subject) => {
      const motion = performance.motions[subject];
      if (motion?.known[frame]) joints.forEach((joint, i) => this.add(subject, i, joint));
    });
    all.forEach((some) => some.end());
    this.clouds.mesh.visible &&= options.joints;
  }

  /** How much to magnify the clouds so that they are seen beside a figure of this size. */
  readable(size: number): number {
    const sds = this.shapes.flat().flatMap((shape) => (shape ? [Math.max(...shape.sd)] : []));
    const middle = sds.sort((a, b) => a - b)[Math.floor(sds.length / 2)] ?? 0;
    const wanted = (CLOUD_SHARE * size) / Math.max(middle, 1e-9);
    return [...MAGNIFY].reverse().find((step) => step <= wanted) ?? 1;
  }

  private add(subject: number, index: number, joint: Joint): void {
    const { performance, options, frame, hovered, selected } = this.state;
    const { place, wxyz, joints } = performance.poses[subject];
    const at = frame * joints + index;
    const x = place[3 * at];
    const y = place[3 * at + 1];
    const z = place[3 * at + 2];
    const aimed = isJoint(hovered, subject, index) || isJoint(selected, subject, index);
    this.residual(subject, index, joint);
    if (options.joints) {
      const small = this.small[subject][index] ? SMALL : 1;
      this.balls.add(x, y, z, this.colour, this.radius * small * (aimed ? 1.3 : 1));
      const shape = this.shapes[subject][index];
      if (shape && joint.parent >= 0) {
        multiply(wxyz, 4 * (frame * joints + joint.parent), shape.turn, 0, this.wxyz, 0);
        const [a, b, c] = shape.sd;
        const wide = (sd: number) => Math.min(Math.max(sd * options.magnify, 1e-5), this.widest);
        this.clouds.add(x, y, z, this.colour, wide(a), wide(b), wide(c), this.wxyz);
      }
    }
    if (options.axes && (joint.kind === "hinge" || joint.kind === "universal"))
      joint.axes.forEach((axis) => axis && this.addAxis(x, y, z, axis, wxyz, at));
  }

  private addAxis(x: number, y: number, z: number, axis: number[], wxyz: Float32Array, at: number): void {
    rotate(wxyz, 4 * at, axis, 0, this.along, 0);
    this.vector.set(this.along[0], this.along[1], this.along[2]);
    const q = this.quaternion.setFromUnitVectors(Z, this.vector);
    [this.wxyz[0], this.wxyz[1], this.wxyz[2], this.wxyz[3]] = [q.w, q.x, q.y, q.z];
    const length = Math.min(AXIS_LENGTH, 10 * this.radius);
    const thin = this.radius * 0.16;
    this.axes.add(x, y, z, SCENE[theme()].ink, thin, thin, length, this.wxyz);
  }

  /** The gap at this frame decides; where none is known, the gap of the joint's fit. */
  private residual(subject: number, index: number, joint: Joint): void {
    const figure = this.state.scene.subjects[subject];
    const ready = this.state.readiness.get(`${figure.name}/${joint.name}`);
    if (ready) {
      this.colour.set(css(READINESS[ready]));
      return;
    }
    const { gap, gapKnown } = this.state.performance.motions[subject];
    const at = this.state.frame * this.state.scene.subjects[subject].joints.length + index;
    const value = gapKnown[at] ? gap[at] : joint.residual;
    if (value === null) this.colour.copy(SCENE[theme()].ghost);
    else scaleColour(value / this.full, this.colour);
  }
}

const Z = new Vector3(0, 0, 1);

function isJoint(what: Selection | null, subject: number, joint: number): boolean {
  return what?.type === "joint" && what.subject === subject && what.joint === joint;
}

function shapeOf(joint: Joint): Shape | null {
  if (!joint.covariance) return null;
  const { sd, axes } = ellipsoid(joint.covariance);
  if (Math.max(...sd) >= UNKNOWN_SD) return null;
  const [x, y, z] = axes.map((axis) => new Vector3(...(axis as [number, number, number])));
  if (x.clone().cross(y).dot(z) < 0) z.negate();
  const q = new Quaternion().setFromRotationMatrix(new Matrix4().makeBasis(x, y, z));
  return { sd, turn: [q.w, q.x, q.y, q.z] };
}

/** A round number that nearly all values stay below: 1, 2 or 5 of some unit. */
export function niceCeiling(values: ArrayLike<number>, share = 0.98): number {
  const known = Array.from(values).filter((v) => v > 0).sort((a, b) => a - b);
  const high = known[Math.min(known.length - 1, Math.floor(share * known.length))] ?? 0.01;
  const unit = 10 ** Math.floor(Math.log10(high));
  return unit * ([1, 2, 5, 10].find((step) => high <= step * unit * 1.0001) ?? 10);
}
