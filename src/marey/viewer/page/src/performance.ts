/** One take played: figures at every frame, and how far they are from what was seen. */
import { forward, rotate, type Poses } from "./kinematics";
import { OUTLIER, SEEN, UNSEEN, type Motion, type Scene, type Take } from "./scene";

export interface Owner {
  subject: number;
  joint: number;
  offset: number[];
}

/** The bone that a sensor sits on, and how. */
export interface Bearer extends Owner {
  rotation: number[];
}

/** Numbers of one strip of the timeline: NaN where there is none. */
export interface Summary {
  residual: Float32Array;
  gap: Float32Array;
  missing: Float32Array;
}

/** What there is to play before a recording has been opened. */
const NO_TAKE: Take = {
  name: "",
  rate: 1,
  start: 0,
  frames: 0,
  recorded: 0,
  stride: 1,
  markers: [],
  points: new Float32Array(0),
  state: new Uint8Array(0),
  sensors: [],
  sensorPlace: new Float32Array(0),
  sensorWxyz: new Float32Array(0),
  sensorSeen: new Uint8Array(0),
  motions: [],
};

export class Performance {
  readonly take: Take;
  readonly poses: Poses[];
  readonly truth: Poses[];
  /** The bone that carries each marker; null for markers of no figure. */
  readonly owner: (Owner | null)[];
  /** The bone that carries each sensor; null for sensors of no figure. */
  readonly bearer: (Bearer | null)[];
  /** Distance of every marker from its place on the figure, (frame, marker), m. */
  readonly residual: Float32Array;
  readonly summary: Summary;
  readonly middle: [number, number, number];
  readonly size: number;

  constructor(
    readonly scene: Scene,
    readonly index: number,
  ) {
    this.take = scene.takes[index] ?? NO_TAKE;
    const frames = this.take.frames;
    this.poses = this.take.motions.map((m, i) => forward(scene.subjects[i], m, frames));
    const truth = scene.truth;
    this.truth = truth
      ? (truth.takes[index]?.motions ?? []).map((m, i) => forward(truth.subjects[i], m, frames))
      : [];
    this.owner = this.take.markers.map(() => null);
    this.bearer = this.take.sensors.map(() => null);
    this.take.motions.forEach((motion, subject) => {
      for (const { sensor, joint, offset, rotation } of motion.sensors)
        this.bearer[sensor] = { subject, joint, offset, rotation };
      for (const { marker, joint, offset } of motion.markers)
        this.owner[marker] = { subject, joint, offset };
    });
    this.residual = this.distances();
    this.summary = this.summarise();
    [this.middle, this.size] = this.extent();
  }

  get motions(): Motion[] {
    return this.take.motions;
  }

  time(frame: number): number {
    return this.take.start + (frame * this.take.stride) / this.take.rate;
  }

  /** The drawn frame that is nearest to a recorded one. */
  drawn(recorded: number): number {
    const frame = Math.round(recorded / this.take.stride);
    return Math.max(0, Math.min(this.take.frames - 1, frame));
  }

  recorded(frame: number): number {
    return Math.min(frame * this.take.stride, Math.max(this.take.recorded - 1, 0));
  }

  frameAt(time: number): number {
    return this.drawn((time - this.take.start) * this.take.rate);
  }

  state(frame: number, marker: number): number {
    return this.take.state[frame * this.take.markers.length + marker] ?? UNSEEN;
  }

  /** Write where the figure has a marker at a frame; false where it has none. */
  calculated(frame: number, marker: number, out: number[]): boolean {
    const owner = this.owner[marker];
    if (!owner || !this.motions[owner.subject].known[frame]) return false;
    const poses = this.poses[owner.subject];
    const at = frame * poses.joints + owner.joint;
    rotate(poses.wxyz, 4 * at, owner.offset, 0, out, 0);
    for (let k = 0; k < 3; k++) out[k] += poses.place[3 * at + k];
    return true;
  }

  /** Distances of one marker at every drawn frame. */
  residualOf(marker: number): Float32Array {
    const n = this.take.markers.length;
    return Float32Array.from({ length: this.take.frames }, (_, f) => this.residual[f * n + marker]);
  }

  /** Distances between the halves of a joint at every drawn frame. */
  gapOf(subject: number, joint: number): Float32Array {
    const { gap, gapKnown } = this.motions[subject];
    const n = this.scene.subjects[subject].joints.length;
    const at = (f: number) => f * n + joint;
    return Float32Array.from({ length: this.take.frames }, (_, f) =>
      gapKnown[at(f)] ? gap[at(f)] : NaN,
    );
  }

  /** The markers that sit on one bone. */
  markersOf(subject: number, joint: number): number[] {
    return this.owner.flatMap((o, i) => (o?.subject === subject && o.joint === joint ? [i] : []));
  }

  private distances(): Float32Array {
    const { frames, markers, points, state } = this.take;
    const n = markers.length;
    const out = new Float32Array(frames * n).fill(NaN);
    const place = [0, 0, 0];
    for (let frame = 0; frame < frames; frame++)
      for (let marker = 0; marker < n; marker++) {
        const at = frame * n + marker;
        if (state[at] !== SEEN && state[at] !== OUTLIER) continue;
        if (!this.calculated(frame, marker, place)) continue;
        out[at] = Math.hypot(
          points[3 * at] - place[0],
          points[3 * at + 1] - place[1],
          points[3 * at + 2] - place[2],
        );
      }
    return out;
  }

  private summarise(): Summary {
    const { frames, markers, state, sensors, sensorSeen } = this.take;
    const residual = new Float32Array(frames);
    const gap = new Float32Array(frames);
    const missing = new Float32Array(frames);
    const n = markers.length;
    for (let frame = 0; frame < frames; frame++) {
      residual[frame] = rootMeanSquare(this.residual, frame * n, n);
      gap[frame] = this.worstGap(frame);
      let lost = 0;
      for (let i = 0; i < n; i++) if (state[frame * n + i] % 2 === 0) lost++;
      for (let i = 0; i < sensors.length; i++) if (!sensorSeen[frame * sensors.length + i]) lost++;
      missing[frame] = lost;
    }
    return { residual, gap, missing };
  }

  private worstGap(frame: number): number {
    let worst = NaN;
    this.motions.forEach(({ gap, gapKnown }, subject) => {
      const n = this.scene.subjects[subject].joints.length;
      for (let at = frame * n; at < (frame + 1) * n; at++)
        if (gapKnown[at] && !(gap[at] <= worst)) worst = gap[at];
    });
    return worst;
  }

  private extent(): [[number, number, number], number] {
    const low = [Infinity, Infinity, Infinity];
    const high = [-Infinity, -Infinity, -Infinity];
    const take = this.take;
    const grow = (values: Float32Array, known: (item: number) => boolean) => {
      for (let item = 0; item < values.length / 3; item++)
        if (known(item))
          for (let k = 0; k < 3; k++) {
            low[k] = Math.min(low[k], values[3 * item + k]);
            high[k] = Math.max(high[k], values[3 * item + k]);
          }
    };
    grow(take.points, (i) => take.state[i] === SEEN);
    grow(take.sensorPlace, (i) => take.sensorSeen[i] === 1);
    this.poses.forEach((poses, s) =>
      grow(poses.place, (i) => this.motions[s].known[Math.floor(i / poses.joints)] === 1),
    );
    if (!Number.isFinite(low[0])) return [[0, 0, 0], 2];
    const middle = low.map((v, k) => (v + high[k]) / 2) as [number, number, number];
    return [middle, Math.max(Math.hypot(...high.map((v, k) => v - low[k])), 0.05)];
  }
}

export function rootMeanSquare(values: ArrayLike<number>, first = 0, count = values.length): number {
  let sum = 0;
  let n = 0;
  for (let i = first; i < first + count; i++) {
    const value = values[i];
    if (value === value) {
      sum += value * value;
      n++;
    }
  }
  return n ? Math.sqrt(sum / n) : NaN;
}
