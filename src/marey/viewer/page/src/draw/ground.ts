/** The ground: a grid of half metres that fades out, with whole metres drawn stronger. */
import {
  BufferGeometry, Color, Float32BufferAttribute, LineBasicMaterial, LineSegments, Quaternion, Vector3,
} from "three";
import { SCENE, theme } from "../colours";
import type { Scene } from "../scene";

const UP = new Vector3(0, 0, 1);

export class Ground {
  readonly lines = new LineSegments(
    new BufferGeometry(),
    new LineBasicMaterial({ vertexColors: true, transparent: true, depthWrite: false }),
  );

  constructor() {
    this.lines.renderOrder = -1;
  }

  /** Lay the grid under what happens around a middle. */
  lay(scene: Scene, middle: readonly number[], size: number): void {
    const { normal, height } = scene.ground;
    const up = new Vector3(...normal).normalize();
    this.lines.quaternion.copy(new Quaternion().setFromUnitVectors(UP, up));
    this.lines.position.copy(up).multiplyScalar(height);
    const cell = size > 1 ? 0.5 : 0.5 * 10 ** Math.ceil(Math.log10(size));
    const radius = Math.max(Math.ceil((0.9 * size) / cell), 5) + 3;
    const [x, y] = [Math.round(middle[0] / cell), Math.round(middle[1] / cell)];
    this.build(x, y, Math.min(radius, 60), cell);
  }

  private build(x: number, y: number, radius: number, cell: number): void {
    const { grid, gridMajor } = SCENE[theme()];
    const place: number[] = [];
    const colour: number[] = [];
    const vertex = (i: number, j: number, tint: Color) => {
      const away = Math.hypot(i - x, j - y) / radius;
      place.push(i * cell, j * cell, 0);
      colour.push(tint.r, tint.g, tint.b, Math.max(0, 1 - away * away));
    };
    for (let i = -radius; i <= radius; i++)
      for (let j = -radius; j < radius; j++) {
        const across = (x + i) % 2 === 0 ? gridMajor : grid;
        vertex(x + i, y + j, across);
        vertex(x + i, y + j + 1, across);
        const along = (y + i) % 2 === 0 ? gridMajor : grid;
        vertex(x + j, y + i, along);
        vertex(x + j + 1, y + i, along);
      }
    this.lines.geometry.dispose();
    this.lines.geometry = new BufferGeometry();
    this.lines.geometry.setAttribute("position", new Float32BufferAttribute(place, 3));
    this.lines.geometry.setAttribute("color", new Float32BufferAttribute(colour, 4));
    this.lines.geometry.computeBoundingSphere();
  }
}
