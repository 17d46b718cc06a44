/** Many copies of one shape, written anew at each frame without making objects. */
import {
  type BufferGeometry, type Color, DynamicDrawUsage, InstancedMesh, type Material, Matrix4, Quaternion, Vector3,
} from "three";

const matrix = new Matrix4();
const place = new Vector3();
const turn = new Quaternion();
const size = new Vector3();

export class Instances {
  readonly mesh: InstancedMesh;

  constructor(
    private shape: BufferGeometry,
    private material: Material,
    capacity: number,
  ) {
    this.mesh = new InstancedMesh(shape, material, Math.max(capacity, 1));
    this.mesh.instanceMatrix.setUsage(DynamicDrawUsage);
    this.mesh.frustumCulled = false;
    this.mesh.count = 0;
  }

  begin(): void {
    this.mesh.count = 0;
  }

  /** Add a copy; the turn is w x y z at an index of an array. */
  add(
    x: number, y: number, z: number, colour: Color,
    sx: number, sy = sx, sz = sx, wxyz: ArrayLike<number> | null = null, at = 0,
  ): void {
    const i = this.mesh.count++;
    if (wxyz) turn.set(wxyz[at + 1], wxyz[at + 2], wxyz[at + 3], wxyz[at]);
    else turn.identity();
    matrix.compose(place.set(x, y, z), turn, size.set(sx, sy, sz));
    this.mesh.setMatrixAt(i, matrix);
    this.mesh.setColorAt(i, colour);
  }

  end(): void {
    this.mesh.visible = this.mesh.count > 0;
    this.mesh.instanceMatrix.needsUpdate = true;
    if (this.mesh.instanceColor) this.mesh.instanceColor.needsUpdate = true;
  }

  /** Give back the memory of the graphics card: the mesh frees neither shape nor material. */
  dispose(): void {
    this.mesh.removeFromParent();
    this.mesh.dispose();
    this.shape.dispose();
    this.material.dispose();
  }
}
