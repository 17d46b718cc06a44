/** Bones as tapered solids from each joint to the next; a ghost is the same, see-through. */
import {
  Color, Group, LatheGeometry, MeshBasicMaterial, MeshLambertMaterial, Vector2, Vector3, Quaternion, type Material,
} from "three";
import { bodyColour, SCENE, theme } from "../colours";
import { multiply, type Poses } from "../kinematics";
import { bodyOfJoints, type MarkerPlace, type Motion, type Subject } from "../scene";
import { Instances } from "./instances";

/** Radius over length of the solid: a knob, a swell, a long taper and a small knob. */
const PROFILE = [
  [0, 0], [0.45, 0.005], [0.62, 0.035], [0.68, 0.07], [0.9, 0.14], [1, 0.21],
  [0.86, 0.42], [0.6, 0.72], [0.46, 0.9], [0.44, 0.96], [0.3, 0.992], [0, 1],
];
const THICKNESS = 0.08;
const THICKEST = 0.026;
const THICKEST_OF_FIGURE = 0.016;

export interface Bone {
  /** The joint whose frame carries the bone. */
  joint: number;
  /** The joint at its far end, or -1 where only markers show how far it reaches. */
  end: number;
  tip: number[];
  body: number;
}

export function bonesOf(subject: Subject, markers: MarkerPlace[]): Bone[] {
  const bodies = bodyOfJoints(subject);
  const bones: Bone[] = subject.joints.flatMap(({ parent, offset }, end) =>
    parent < 0 || Math.hypot(...offset) < 1e-6
      ? []
      : [{ joint: parent, end, tip: offset, body: bodies[parent] }],
  );
  const inner = new Set(bones.map((bone) => bone.joint));
  subject.joints.forEach((joint, index) => {
    if (inner.has(index) || joint.kind === "fixed") return;
    const tip = reach(markers.filter((m) => m.joint === index).map((m) => m.offset));
    if (tip) bones.push({ joint: index, end: -1, tip, body: bodies[index] });
  });
  return bones;
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

export class Bones {
  readonly group = new Group();
  private sets: { bones: Bone[]; shapes: Instances; turns: number[][]; colours: Color[] }[] = [];
  private wxyz = [1, 0, 0, 0];
  private thickest = THICKEST;

  constructor(private ghost: Color | null = null) {}

  dispose(): void {
    this.sets.forEach(({ shapes }) => shapes.dispose());
    this.sets = [];
    this.group.removeFromParent();
  }

  rebuild(subjects: Subject[], motions: Motion[], scale: number): void {
    this.sets.forEach(({ shapes }) => shapes.dispose());
    this.sets = motions.map((motion, i) => {
      const bones = bonesOf(subjects[i], motion.markers);
      const shapes = new Instances(
        new LatheGeometry(PROFILE.map(([r, z]) => new Vector2(r, z)), 10).rotateX(Math.PI / 2),
        this.material(),
        bones.length,
      );
      this.group.add(shapes.mesh);
      return {
        bones,
        shapes,
        turns: bones.map(({ tip }) => pointing(tip)),
        colours: bones.map(({ body }) => this.ghost ?? bodyColour(body)),
      };
    });
    this.thickest = Math.min(THICKEST, scale * THICKEST_OF_FIGURE);
  }

  private material(): Material {
    if (this.ghost)
      return new MeshBasicMaterial({ color: "#ffffff", transparent: true, opacity: 0.28, depthWrite: false });
    return new MeshLambertMaterial({ color: "#ffffff" });
  }

  update(frame: number, poses: Poses[], motions: Motion[], visible: boolean, lit: (s: number, j: number) => number): void {
    const { accent } = SCENE[theme()];
    this.sets.forEach(({ bones, shapes, turns, colours }, subject) => {
      shapes.begin();
      const { place, wxyz, joints } = poses[subject];
      if (visible && motions[subject].known[frame])
        bones.forEach(({ joint, tip }, i) => {
          const at = frame * joints + joint;
          multiply(wxyz, 4 * at, turns[i], 0, this.wxyz, 0);
          const length = Math.hypot(tip[0], tip[1], tip[2]);
          const radius = Math.min(THICKNESS * length, this.thickest) * (this.ghost ? 0.7 : 1);
          tint.copy(colours[i]).lerp(accent, lit(subject, joint));
          shapes.add(place[3 * at], place[3 * at + 1], place[3 * at + 2], tint, radius, radius, length, this.wxyz);
        });
      shapes.end();
    });
  }

  /** What bone a ray met: the mesh and number of the copy give subject and joint. */
  bone(mesh: unknown, copy: number): { subject: number; joint: number } | null {
    const subject = this.sets.findIndex(({ shapes }) => shapes.mesh === mesh);
    return subject < 0 ? null : { subject, joint: this.sets[subject].bones[copy].joint };
  }
}

const tint = new Color();

function pointing(tip: number[]): number[] {
  const to = new Vector3(tip[0], tip[1], tip[2]).normalize();
  const q = new Quaternion().setFromUnitVectors(new Vector3(0, 0, 1), to);
  return [q.w, q.x, q.y, q.z];
}
