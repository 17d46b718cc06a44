/** Over the stage: names of things, the colour scale, and which way the axes point. */
import { Vector3 } from "three";
import { css, sideColour, theme } from "../colours";
import { el } from "../panels/dom";
import { plain, roundMillimetres } from "../panels/numbers";
import { nameOf, same, type Selection } from "../state";
import type { Theatre } from "./theatre";

const GIZMO = 52;

export class Overlay {
  private pool: HTMLElement[] = [];
  private names = el("div", "names");
  private legend = el("div", "legend");
  private legendFull = el("span");
  private legendCloud = el("span", "cloud");
  private legendSides = el("div", "sides");
  private legendGap = el("div", "gap");
  private gizmo = el("canvas", "gizmo");
  private spot = new Vector3();
  private axesSeen = "";

  constructor(private theatre: Theatre) {
    const scale = el("span", "scale");
    this.legendGap.append(el("span", "", "joint gap"), el("span", "", "0"), scale, this.legendFull, this.legendCloud);
    for (const [side, name] of [["Left", "left"], ["Right", "right"]] as const) {
      const swatch = el("span", "swatch");
      swatch.style.background = sideColour(side).getStyle();
      this.legendSides.append(swatch, el("span", "", name));
    }
    this.legend.append(this.legendSides, this.legendGap);
    this.gizmo.width = this.gizmo.height = GIZMO * 2;
    theatre.stage.host.append(this.names, this.legend, this.gizmo);
    theatre.stage.beforeDraw.push(() => this.update());
    theatre.state.on(["take", "options"], () => {
      const { scene, options, showsSides } = theatre.state;
      this.legendGap.hidden = !scene.subjects.length || !options.joints;
      this.legendSides.hidden = !showsSides;
      this.legendFull.textContent = `${roundMillimetres(theatre.joints.full)} mm`;
      this.legendCloud.textContent = `cloud ± 1 sd × ${options.magnify}`;
    });
  }

  private update(): void {
    if (!this.theatre.state.scene) return;
    let used = 0;
    for (const [what, look] of this.named()) used += this.write(what, look, used) ? 1 : 0;
    for (const [what, name] of this.subjects()) used += this.write(what, "tag quiet subject", used, name) ? 1 : 0;
    this.pool.forEach((label, i) => (label.hidden = i >= used));
    this.drawAxes();
  }

  private *named(): Generator<[Selection, string]> {
    const { selected, hovered, options, scene, performance } = this.theatre.state;
    if (selected) yield [selected, "tag selected"];
    if (hovered && !same(hovered, selected)) yield [hovered, "tag"];
    if (!options.labels) return;
    for (const [subject, { joints }] of scene.subjects.entries())
      for (let joint = 0; joint < joints.length; joint++)
        yield [{ type: "joint", subject, joint }, "tag quiet"];
    if (!scene.subjects.length)
      for (let marker = 0; marker < performance.take.markers.length; marker++)
        yield [{ type: "marker", marker }, "tag quiet"];
  }

  /** Of several subjects, the name of each stands at its head. */
  private *subjects(): Generator<[Selection, string]> {
    const { selected, hovered, scene } = this.theatre.state;
    const { subjects } = scene;
    if (subjects.length < 2) return;
    for (const [subject, { joints, name }] of subjects.entries()) {
      const head = joints.findIndex(({ part }) => part === "Head");
      const top = joints.findIndex(({ parent }) => parent >= 0 && parent === head);
      const what = { type: "joint" as const, subject, joint: Math.max(head, top, 0) };
      if (!same(what, selected) && !same(what, hovered)) yield [what, name];
    }
  }

  private write(what: Selection, look: string, index: number, name = nameOf(this.theatre.state, what)): boolean {
    const { camera, host } = this.theatre.stage;
    if (!this.theatre.locate(what, this.spot) || this.spot.project(camera).z > 1) return false;
    const label = (this.pool[index] ??= this.names.appendChild(el("div")));
    label.className = look;
    const text = plain(name);
    if (label.textContent !== text) label.textContent = text;
    const x = Math.round(((this.spot.x + 1) / 2) * host.clientWidth);
    const y = Math.round(((1 - this.spot.y) / 2) * host.clientHeight);
    label.style.transform = `translate(${x + 12}px, ${y - 8}px)`;
    return true;
  }

  private drawAxes(): void {
    const seen = `${theme()} ${this.theatre.stage.camera.quaternion.toArray().join(" ")}`;
    if (seen === this.axesSeen) return;
    this.axesSeen = seen;
    const paper = this.gizmo.getContext("2d")!;
    paper.setTransform(2, 0, 0, 2, 0, 0);
    paper.clearRect(0, 0, GIZMO, GIZMO);
    paper.font = "10px system-ui, sans-serif";
    paper.textAlign = "center";
    paper.textBaseline = "middle";
    const turn = this.theatre.stage.camera.matrixWorldInverse;
    const axes = ["x", "y", "z"].map((name, k) => {
      this.spot.set(k === 0 ? 1 : 0, k === 1 ? 1 : 0, k === 2 ? 1 : 0).transformDirection(turn);
      return { name, x: this.spot.x, y: -this.spot.y, z: this.spot.z };
    });
    for (const { name, x, y, z } of axes.sort((a, b) => a.z - b.z)) {
      paper.strokeStyle = paper.fillStyle = css(z > -0.1 ? "ink-2" : "ink-3");
      paper.beginPath();
      paper.moveTo(GIZMO / 2, GIZMO / 2);
      paper.lineTo(GIZMO / 2 + 15 * x, GIZMO / 2 + 15 * y);
      paper.stroke();
      paper.fillText(name, GIZMO / 2 + 21 * x, GIZMO / 2 + 21 * y);
    }
  }
}
