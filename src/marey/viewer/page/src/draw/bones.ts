/** Bones from joint to joint; a ghost is the same, see-through. */
import {
  Color, Group, LatheGeometry, MeshBasicMaterial, MeshLambertMaterial, Vector2, Vector3, Quaternion, type Material,
} from "three";
import { SCENE, theme } from "../colours";
import { multiply, rotate, type Poses } from "../kinematics";
import { bodyOfJoints, type Joint, type MarkerPlace, type Motion, type Side, type Subject } from "../scene";
import { Instances } from "./instances";

/** Radius over length of a bone: a knob, a swell, a long taper and a small knob. */
const TAPERED = [
  [0, 0], [0.45, 0.005], [0.62, 0.035], [0.68, 0.07], [0.9, 0.14], [1, 0.21],
  [0.86, 0.42], [0.6, 0.72], [0.46, 0.9], [0.44, 0.96], [0.3, 0.992], [0, 1],
];
/** The same of a bone that nothing follows, such as a head, a hand or toes: blunt, not a spike. */
const BLUNT = [
  [0, 0], [0.42, 0.04], [0.7, 0.14], [0.9, 0.3], [1, 0.5], [0.97, 0.66], [0.85, 0.81], [0.62, 0.92], [0.33, 0.98], [0, 1],
];

/** Radius of a bone as a share of its length; short bones are stouter, up to the second. */
const THICKNESS = 0.08;
const STOUTEST = 0.2;
const THICKNESS_OF_END = 0.2;
const THICKNESS_OF_HEAD = 0.4;
/** A short bone is at least this share of the thickest, so that it is no needle. */
const LEAST_OF_THICKEST = 0.55;
const THICKEST = 0.026;
const THICKEST_OF_FIGURE = 0.016;

export interface Bone {
  /** The joint whose frame carries the bone. */
  joint: number;
  /** Where it begins and how far it reaches, in that frame, m. */
  start: number[];
  tip: number[];
  body: number;
  side: Side;
  look: "bone" | "end" | "head";
}

/** The bones of a subject. Where bones fan out to joints near each other, one bone leads to their middle. */
export function bonesOf(subject: Subject, markers: MarkerPlace[]): Bone[] {
  const { joints } = subject;
  const bodies = bodyOfJoints(subject);
  return joints.flatMap((joint, index) => {
    const { side, part } = joint;
    const children = joints.filter(({ parent, offset }) => parent === index && Math.hypot(...offset) > 1e-6);
    const parts = children.length ? fan(children, joints) : tail(joint, index, markers);
    // Without a head of its own, the neck carries it.
    const isHead = part === "Head" || part === "Neck";
    return parts.map(({ start, tip, isEnd }) => {
      const look = isEnd ? (isHead ? "head" : "end") : ("bone" as const);
      return { joint: index, start, tip, body: bodies[index], side, look };
    });
  });
}

interface Part {
  start: number[];
  tip: number[];
  isEnd: boolean;
}

const ORIGIN = [0, 0, 0];

/** From a joint to those that follow: straight, or by way of their middle if that is far from the joint. */
function fan(children: Joint[], joints: Joint[]): Part[] {
  const leads = (joint: Joint) => joints.some(({ parent }) => joints[parent] === joint) || joint.kind !== "fixed";
  const moving = children.filter(leads);
  // An end beside joints that move says no more than they do.
  const shown = moving.length ? moving : children;
  const middle = [0, 1, 2].map((k) => shown.reduce((sum, { offset }) => sum + offset[k], 0) / shown.length);
  const far = Math.hypot(...middle);
  const away = shown.map(({ offset }) => Math.hypot(...offset.map((v, k) => v - middle[k])));
  if (shown.length < 2 || Math.max(...away) > far)
    return shown.map((child) => ({ start: ORIGIN, tip: child.offset, isEnd: !leads(child) }));
  const spread = shown.flatMap(({ offset }, i) =>
    away[i] > 1e-3 ? [{ start: middle, tip: offset.map((v, k) => v - middle[k]), isEnd: false }] : [],
  );
  return [{ start: ORIGIN, tip: middle, isEnd: false }, ...spread];
}

/** The last bone of a limb, as far as its markers show. */
function tail(joint: Joint, index: number, markers: MarkerPlace[]): Part[] {
  if (joint.kind === "fixed") return [];
  const tip = reach(markers.filter((m) => m.joint === index).map((m) => m.offset));
  return tip ? [{ start: ORIGIN, tip, isEnd: true }] : [];
}

/** From the joint towards the middle of the markers, as far as the farthest of them. */
function reach(offsets: number[][]): number[] | null {
  if (!offsets.length) return null;
  const mean = [0, 1, 2].map((k) => offsets.reduce((sum, o) => sum + o[k], 0) / offsets.length);
  const length = Math.hypot(...mean);
  if (length < 1e-3) return null;
  const far = Math.max(...offsets.map((o) => (o[0] * mean[0] + o[1] * mean[1] + o[2] * mean[2]) / length));
  return mean.map((v) => (v * far) / length);
}

interface Shape {
  subject: number;
  bones: Bone[];
  copies: Instances;
  turns: number[][];
  colours: Color[];
}

export class Bones {
  readonly group = new Group();
  private shapes: Shape[] = [];
  private wxyz = [1, 0, 0, 0];
  private start = [0, 0, 0];
  private thickest = THICKEST;

  constructor(private isGhost = false) {}

  dispose(): void {
    this.shapes.forEach(({ copies }) => copies.dispose());
    this.shapes = [];
    this.group.removeFromParent();
  }

  rebuild(subjects: Subject[], motions: Motion[], scale: number, colour: (body: number, side: Side) => Color): void {
    this.shapes.forEach(({ copies }) => copies.dispose());
    this.shapes = motions.flatMap((motion, subject) => {
      const bones = bonesOf(subjects[subject], motion.markers);
      const inner = bones.filter(({ look }) => look === "bone");
      const ends = bones.filter(({ look }) => look !== "bone");
      return [this.shape(subject, inner, TAPERED, colour), this.shape(subject, ends, BLUNT, colour)];
    });
    this.thickest = Math.min(THICKEST, scale * THICKEST_OF_FIGURE);
  }

  private shape(subject: number, bones: Bone[], profile: number[][], colour: (body: number, side: Side) => Color): Shape {
    const solid = new LatheGeometry(profile.map(([r, z]) => new Vector2(r, z)), 10).rotateX(Math.PI / 2);
    const copies = new Instances(solid, this.material(), bones.length);
    this.group.add(copies.mesh);
    const colours = bones.map(({ body, side }) => colour(body, side));
    return { subject, bones, copies, turns: bones.map(({ tip }) => pointing(tip)), colours };
  }

  private material(): Material {
    if (this.isGhost)
      return new MeshBasicMaterial({ color: "#ffffff", transparent: true, opacity: 0.28, depthWrite: false });
    return new MeshLambertMaterial({ color: "#ffffff" });
  }

  update(frame: number, poses: Poses[], motions: Motion[], visible: boolean, lit: (s: number, j: number) => number): void {
    const { accent } = SCENE[theme()];
    const { start } = this;
    for (const { subject, bones, copies, turns, colours } of this.shapes) {
      copies.begin();
      const { place, wxyz, joints } = poses[subject];
      if (visible && motions[subject].known[frame])
        bones.forEach((bone, i) => {
          const at = frame * joints + bone.joint;
          multiply(wxyz, 4 * at, turns[i], 0, this.wxyz, 0);
          rotate(wxyz, 4 * at, bone.start, 0, start, 0);
          for (let k = 0; k < 3; k++) start[k] += place[3 * at + k];
          const length = Math.hypot(bone.tip[0], bone.tip[1], bone.tip[2]);
          const radius = this.radius(bone, length) * (this.isGhost ? 0.7 : 1);
          tint.copy(colours[i]).lerp(accent, lit(subject, bone.joint));
          copies.add(start[0], start[1], start[2], tint, radius, radius, length, this.wxyz);
        });
      copies.end();
    }
  }

  private radius({ look }: Bone, length: number): number {
    if (look === "head") return THICKNESS_OF_HEAD * length;
    if (look === "end") return Math.min(THICKNESS_OF_END * length, this.thickest);
    const least = Math.min(LEAST_OF_THICKEST * this.thickest, STOUTEST * length);
    return Math.max(Math.min(THICKNESS * length, this.thickest), least);
  }

  /** What bone a ray met: the mesh and number of the copy give subject and joint. */
  bone(mesh: unknown, copy: number): { subject: number; joint: number } | null {
    const shape = this.shapes.find(({ copies }) => copies.mesh === mesh);
    return shape ? { subject: shape.subject, joint: shape.bones[copy].joint } : null;
  }
}

const tint = new Color();

function pointing(tip: number[]): number[] {
  const to = new Vector3(tip[0], tip[1], tip[2]).normalize();
  const q = new Quaternion().setFromUnitVectors(new Vector3(0, 0, 1), to);
  return [q.w, q.x, q.y, q.z];
}
