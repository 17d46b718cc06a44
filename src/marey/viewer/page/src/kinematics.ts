/** Rotations and figures on flat arrays: no objects are made per frame. */
import type { Motion, Subject } from "./scene";

type Numbers = Float32Array | Float64Array | number[];

/** out[o..o+3] = q * p, quaternions w x y z. */
export function multiply(q: Numbers, i: number, p: Numbers, j: number, out: Numbers, o: number): void {
  const [a, b, c, d] = [q[i], q[i + 1], q[i + 2], q[i + 3]];
  const [e, f, g, h] = [p[j], p[j + 1], p[j + 2], p[j + 3]];
  out[o] = a * e - b * f - c * g - d * h;
  out[o + 1] = a * f + b * e + c * h - d * g;
  out[o + 2] = a * g - b * h + c * e + d * f;
  out[o + 3] = a * h + b * g - c * f + d * e;
}

/** out[o..o+2] = v turned by q; v and out may be the same. */
export function rotate(q: Numbers, i: number, v: Numbers, j: number, out: Numbers, o: number): void {
  const [w, x, y, z] = [q[i], q[i + 1], q[i + 2], q[i + 3]];
  const [a, b, c] = [v[j], v[j + 1], v[j + 2]];
  const tx = 2 * (y * c - z * b);
  const ty = 2 * (z * a - x * c);
  const tz = 2 * (x * b - y * a);
  out[o] = a + w * tx + y * tz - z * ty;
  out[o + 1] = b + w * ty + z * tx - x * tz;
  out[o + 2] = c + w * tz + x * ty - y * tx;
}

/** The rotation by one rotation vector after another, as a rotation vector of radians. */
export function turnedBy(turn: number[], first: number[]): [number, number, number] {
  const out = [0, 0, 0, 0];
  multiply(quaternion(turn), 0, quaternion(first), 0, out, 0);
  const [w, ...v] = out[0] < 0 ? out.map((x) => -x) : out;
  const sine = Math.hypot(...v);
  const scale = sine > 0 ? (2 * Math.atan2(sine, w)) / sine : 2;
  return [scale * v[0], scale * v[1], scale * v[2]];
}

function quaternion(turn: number[]): number[] {
  const angle = Math.hypot(...turn);
  const scale = angle > 0 ? Math.sin(angle / 2) / angle : 0.5;
  return [Math.cos(angle / 2), ...turn.map((x) => scale * x)];
}

/** Where every joint of a figure is and how it is turned, at every frame. */
export interface Poses {
  joints: number;
  place: Float32Array;
  wxyz: Float32Array;
}

/** Forward kinematics of a whole motion: parents stand before their children. */
export function forward(subject: Subject, motion: Motion, frames: number): Poses {
  const n = subject.joints.length;
  const place = new Float32Array(frames * n * 3);
  const wxyz = new Float32Array(frames * n * 4);
  const carried = [0, 0, 0];
  for (let frame = 0; frame < frames; frame++) {
    for (let joint = 0; joint < n; joint++) {
      const { parent, offset } = subject.joints[joint];
      const at = frame * n + joint;
      if (parent < 0) {
        place.set(motion.root.subarray(3 * frame, 3 * frame + 3), 3 * at);
        wxyz.set(motion.wxyz.subarray(4 * at, 4 * at + 4), 4 * at);
        continue;
      }
      const above = frame * n + parent;
      rotate(wxyz, 4 * above, offset, 0, carried, 0);
      for (let k = 0; k < 3; k++) place[3 * at + k] = place[3 * above + k] + carried[k];
      multiply(wxyz, 4 * above, motion.wxyz, 4 * at, wxyz, 4 * at);
    }
  }
  return { joints: n, place, wxyz };
}

const DEGREES = 180 / Math.PI;

/** Angles Z, X, Y in degrees with R = Rz Rx Ry, without jumps of whole turns. */
export function anglesZXY(motion: Motion, joints: number, joint: number, frames: number): Float32Array[] {
  const out = [0, 1, 2].map(() => new Float32Array(frames));
  const last = [0, 0, 0];
  let first = true;
  for (let frame = 0; frame < frames; frame++) {
    if (!motion.known[frame]) {
      out.forEach((series) => (series[frame] = NaN));
      continue;
    }
    const i = 4 * (frame * joints + joint);
    const [w, x, y, z] = motion.wxyz.subarray(i, i + 4);
    const sinX = Math.max(-1, Math.min(1, 2 * (y * z + w * x)));
    const angles = [
      Math.atan2(2 * (w * z - x * y), w * w - x * x + y * y - z * z) * DEGREES,
      Math.asin(sinX) * DEGREES,
      Math.atan2(2 * (w * y - x * z), w * w - x * x - y * y + z * z) * DEGREES,
    ];
    const flipped = [angles[0] + 180, 180 - angles[1], angles[2] + 180];
    const best = !first && away(flipped, last) < away(angles, last) ? flipped : angles;
    for (let k = 0; k < 3; k++) {
      last[k] = near(best[k], first ? 0 : last[k]);
      out[k][frame] = last[k];
    }
    first = false;
  }
  return out;
}

/** The turn about one axis in degrees, the angle of a hinge. */
export function turnAbout(motion: Motion, joints: number, joint: number, axis: Numbers, frames: number): Float32Array {
  const out = new Float32Array(frames);
  let last = 0;
  for (let frame = 0; frame < frames; frame++) {
    const i = 4 * (frame * joints + joint);
    const [w, x, y, z] = motion.wxyz.subarray(i, i + 4);
    const angle = 2 * Math.atan2(axis[0] * x + axis[1] * y + axis[2] * z, w) * DEGREES;
    out[frame] = motion.known[frame] ? (last = near(angle, last)) : NaN;
  }
  return out;
}

/** The angle that is nearest to another, whole turns aside. */
function near(angle: number, to: number): number {
  return angle - 360 * Math.round((angle - to) / 360);
}

function away(angles: number[], from: number[]): number {
  return angles.reduce((sum, angle, k) => sum + (near(angle, from[k]) - from[k]) ** 2, 0);
}

/** Standard deviations and axes of a covariance (Jacobi): ellipsoid of a place. */
export function ellipsoid(covariance: number[][]): { sd: number[]; axes: number[][] } {
  const a = covariance.map((row) => [...row]);
  const v = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
  for (let sweep = 0; sweep < 12; sweep++) {
    for (const [p, q] of [[0, 1], [0, 2], [1, 2]]) {
      if (Math.abs(a[p][q]) < 1e-18) continue;
      const theta = 0.5 * Math.atan2(2 * a[p][q], a[p][p] - a[q][q]);
      const [c, s] = [Math.cos(theta), Math.sin(theta)];
      for (let k = 0; k < 3; k++) [a[k][p], a[k][q]] = [c * a[k][p] + s * a[k][q], c * a[k][q] - s * a[k][p]];
      for (let k = 0; k < 3; k++) [a[p][k], a[q][k]] = [c * a[p][k] + s * a[q][k], c * a[q][k] - s * a[p][k]];
      for (let k = 0; k < 3; k++) [v[k][p], v[k][q]] = [c * v[k][p] + s * v[k][q], c * v[k][q] - s * v[k][p]];
    }
  }
  const axes = [0, 1, 2].map((k) => [v[0][k], v[1][k], v[2][k]]);
  return { sd: [0, 1, 2].map((k) => Math.sqrt(Math.max(a[k][k], 0))), axes };
}
