/** Camera, light and canvas; draws when something has changed and never otherwise. */
import {
  DirectionalLight, HemisphereLight, PerspectiveCamera, Scene, Vector3, WebGLRenderer,
} from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { SCENE, theme } from "../colours";

export type View = "front" | "side" | "top" | "three-quarter";

const DIRECTIONS: Record<View, Vector3> = {
  front: new Vector3(0, -1, 0.12),
  side: new Vector3(1, 0, 0.12),
  top: new Vector3(0, -0.001, 1),
  "three-quarter": new Vector3(0.75, -1, 0.45),
};
/** Without a graphics card a picture is drawn coarse while things move, fine at rest. */
const COARSE = 1;
const FINE = 2;
const REST_MS = 160;
const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|microsoft basic/i;

/** What a stage is drawn with. */
export interface Device {
  renderer: WebGLRenderer;
  inSoftware: boolean;
}

/** The means to draw in 3-D, or null where the browser has none: it needs WebGL 2. */
export function openDevice(): Device | null {
  const name = deviceName();
  if (name === null) return null;
  const inSoftware = SOFTWARE.test(name);
  try {
    const renderer = new WebGLRenderer({ antialias: !inSoftware, powerPreference: "high-performance" });
    return { renderer, inSoftware };
  } catch {
    // The browser may refuse these wishes though it draws with others.
    return null;
  }
}

export class Stage {
  readonly scene = new Scene();
  readonly camera = new PerspectiveCamera(36, 1, 0.01, 500);
  readonly renderer: WebGLRenderer;
  readonly controls: OrbitControls;
  /** Called before each picture, when the camera stands. */
  readonly beforeDraw: (() => void)[] = [];
  readonly inSoftware: boolean;
  private asked = false;
  private refining = 0;
  private followed = new Vector3();
  private following = false;

  constructor(
    readonly host: HTMLElement,
    device: Device,
  ) {
    this.inSoftware = device.inSoftware;
    this.renderer = device.renderer;
    this.renderer.setPixelRatio(this.inSoftware ? COARSE : Math.min(devicePixelRatio, 2));
    const { domElement } = this.renderer;
    domElement.setAttribute("role", "img");
    domElement.ariaLabel = "The scene; its joints and numbers are in the tree and in the panels";
    host.append(domElement);
    this.camera.up.set(0, 0, 1);
    this.controls = new OrbitControls(this.camera, this.renderer.domElement);
    this.controls.enableDamping = false;
    this.controls.zoomToCursor = true;
    this.controls.addEventListener("change", () => this.draw());
    const sun = new DirectionalLight("#ffffff", 1.9);
    sun.position.set(2, -3, 5);
    this.scene.add(sun, new HemisphereLight("#ffffff", "#7b858f", 1.5));
    new ResizeObserver(() => this.resize()).observe(host);
    this.resize();
    this.paint();
  }

  /** Take over the colours of the theme. */
  paint(): void {
    this.scene.background = SCENE[theme()].background;
    this.draw();
  }

  draw(): void {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => this.drawNow());
  }

  private drawNow(): void {
    this.asked = false;
    clearTimeout(this.refining);
    this.render(COARSE);
    if (this.inSoftware) this.refining = setTimeout(() => this.render(FINE), REST_MS);
  }

  /** Draw at once, as fine as it gets. */
  drawFine(): void {
    clearTimeout(this.refining);
    this.render(FINE);
  }

  private render(ratio: number): void {
    if (this.inSoftware && this.renderer.getPixelRatio() !== ratio) this.renderer.setPixelRatio(ratio);
    this.camera.updateMatrixWorld();
    this.beforeDraw.forEach((prepare) => prepare());
    this.renderer.render(this.scene, this.camera);
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (!width || !height) return;
    this.renderer.setSize(width, height);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    // Drawn at once: an emptied canvas must not flash.
    this.drawNow();
  }

  /** Look at a ball from one of the standard sides, so that it fills the canvas. */
  look(view: View, middle: Vector3, radius: number): void {
    this.place(DIRECTIONS[view].clone().normalize(), middle, radius);
  }

  /** Keep the side one looks from, and fill the canvas with a ball. */
  fit(middle: Vector3, radius: number): void {
    const side = this.camera.position.clone().sub(this.controls.target);
    this.place(side.lengthSq() ? side.normalize() : DIRECTIONS["three-quarter"], middle, radius);
  }

  private place(side: Vector3, middle: Vector3, radius: number): void {
    const half = (this.camera.fov * Math.PI) / 360;
    const narrow = Math.atan(Math.tan(half) * Math.min(1, this.camera.aspect));
    this.controls.target.copy(middle);
    this.camera.position.copy(middle).addScaledVector(side, radius / Math.sin(narrow));
    this.camera.near = Math.max(radius / 200, 1e-3);
    this.camera.far = radius * 200;
    this.camera.updateProjectionMatrix();
    this.controls.update();
    this.draw();
  }

  /** Look at a point from the same side and distance. */
  centre(point: Vector3): void {
    this.move(point.clone().sub(this.controls.target));
  }

  private move(step: Vector3): void {
    this.controls.target.add(step);
    this.camera.position.add(step);
  }

  /** Move the camera along with a point; null lets it rest. */
  follow(point: Vector3 | null): void {
    if (point && this.following) this.move(point.clone().sub(this.followed));
    this.following = point !== null;
    if (point) this.followed.copy(point);
  }
}

/** What draws, as far as the browser tells; null where nothing does. */
function deviceName(): string | null {
  const gl = document.createElement("canvas").getContext("webgl2");
  if (!gl) return null;
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  const name = info ? String(gl.getParameter(info.UNMASKED_RENDERER_WEBGL)) : "";
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return name;
}
