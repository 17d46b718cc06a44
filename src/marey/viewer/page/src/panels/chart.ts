/** Curves over the frames of the take, and histograms; the cursor moves without redrawing. */
import { css } from "../colours";
import { rootMeanSquare } from "../performance";
import type { State } from "../state";
import { el } from "./dom";

export interface Curve {
  values: ArrayLike<number>;
  /** A colour of the style sheet. */
  colour: string;
}

interface Bounds {
  low: number;
  high: number;
}

const LEFT = 40;
const TOP = 4;
const BOTTOM = 4;

export class Chart {
  readonly root = el("div", "chart");
  private canvas = el("canvas");
  private cursor = el("div", "cursor");
  private curves: Curve[] = [];
  private bounds: Bounds = { low: 0, high: 1 };

  constructor(
    private state: State,
    private name: string,
    private label: (value: number) => string,
    private fromZero: boolean,
  ) {
    this.root.append(this.canvas, this.cursor);
    this.canvas.setAttribute("role", "img");
    new ResizeObserver(() => this.draw()).observe(this.root);
    const seek = (e: PointerEvent) => {
      const box = this.canvas.getBoundingClientRect();
      const share = (e.clientX - box.left - LEFT) / (box.width - LEFT);
      state.seek(share * (state.performance.take.frames - 1));
    };
    this.canvas.addEventListener("pointerdown", (e) => {
      this.canvas.setPointerCapture(e.pointerId);
      seek(e);
    });
    this.canvas.addEventListener("pointermove", (e) => e.buttons && seek(e));
  }

  show(curves: Curve[]): void {
    this.curves = curves;
    this.bounds = extremes(curves, this.fromZero);
    const { low, high } = this.bounds;
    this.canvas.ariaLabel = `${this.name}, from ${this.label(low)} to ${this.label(high)}`;
    this.draw();
  }

  moveCursor(): void {
    const { frame, performance } = this.state;
    const share = frame / Math.max(performance.take.frames - 1, 1);
    const x = LEFT + share * (this.root.clientWidth - LEFT - 1);
    this.cursor.style.transform = `translateX(${x}px)`;
  }

  draw(): void {
    const [paper, width, height] = sheet(this.canvas, this.root);
    if (!width) return;
    const { low, high } = this.bounds;
    const y = (v: number) => TOP + (1 - (v - low) / (high - low)) * (height - TOP - BOTTOM);
    paper.fillStyle = css("ink-3");
    paper.textAlign = "right";
    paper.textBaseline = "top";
    paper.fillText(this.label(high), LEFT - 5, TOP - 2);
    paper.textBaseline = "bottom";
    paper.fillText(this.label(low), LEFT - 5, height - BOTTOM + 2);
    paper.strokeStyle = css("line");
    const rule = low < 0 && high > 0 ? 0 : low;
    paper.strokeRect(LEFT, Math.round(y(rule)) + 0.5, width - LEFT, 0);
    for (const curve of this.curves) {
      paper.strokeStyle = css(curve.colour);
      trace(paper, curve.values, LEFT, width - LEFT, y);
    }
    this.moveCursor();
  }
}

/** Draw a long series as the band of values that fall on each column of pixels. */
export function trace(
  paper: CanvasRenderingContext2D, values: ArrayLike<number>, left: number, width: number,
  y: (value: number) => number,
): void {
  const n = values.length;
  const columns = Math.max(1, Math.round(width));
  paper.lineWidth = 1;
  paper.beginPath();
  let lifted = true;
  for (let column = 0; column < Math.min(columns, n); column++) {
    const count = Math.min(columns, n);
    const first = Math.floor((column * n) / count);
    const last = Math.max(first + 1, Math.floor(((column + 1) * n) / count));
    let [low, high] = [Infinity, -Infinity];
    for (let i = first; i < last; i++) {
      if (values[i] < low) low = values[i];
      if (values[i] > high) high = values[i];
    }
    if (low > high) {
      lifted = true;
      continue;
    }
    const x = left + ((column + 0.5) * width) / count;
    if (lifted) paper.moveTo(x, y(low));
    else paper.lineTo(x, y(low));
    if (high > low) paper.lineTo(x, y(high));
    lifted = false;
  }
  paper.stroke();
}

/** How often each size occurs; returns what the bars stand for. */
export class Histogram {
  readonly root = el("div", "chart histogram");
  private canvas = el("canvas");
  private values: number[] = [];

  constructor(private label: (value: number) => string) {
    this.root.append(this.canvas);
    new ResizeObserver(() => this.draw()).observe(this.root);
  }

  show(values: ArrayLike<number>): void {
    this.values = Array.from(values).filter((v) => v === v);
    this.canvas.setAttribute("role", "img");
    this.canvas.ariaLabel = `Histogram, rms ${this.label(rootMeanSquare(this.values))}`;
    this.draw();
  }

  private draw(): void {
    const [paper, width, height] = sheet(this.canvas, this.root);
    if (!width) return;
    const high = Math.max(...sample(this.values), 1e-9);
    const count = 40;
    const bars = new Array<number>(count).fill(0);
    for (const value of this.values) bars[Math.min(count - 1, Math.floor((value / high) * count))]++;
    const most = Math.max(...bars, 1);
    const base = height - 14;
    const step = (width - LEFT) / count;
    paper.fillStyle = css("curve-1");
    bars.forEach((bar, i) => {
      const tall = (bar / most) * (base - TOP);
      paper.fillRect(LEFT + i * step + 0.5, base - tall, step - 1, tall);
    });
    paper.fillStyle = css("ink-3");
    paper.textBaseline = "bottom";
    paper.textAlign = "left";
    paper.fillText("0", LEFT, height + 1);
    paper.textAlign = "right";
    paper.fillText(this.label(high), width, height + 1);
    const rms = rootMeanSquare(this.values);
    if (Number.isFinite(rms)) this.mark(paper, LEFT + (rms / high) * (width - LEFT), base, height, rms);
  }

  private mark(paper: CanvasRenderingContext2D, x: number, base: number, height: number, rms: number): void {
    paper.strokeStyle = css("accent");
    paper.strokeRect(Math.round(x) + 0.5, TOP, 0, base - TOP);
    paper.textAlign = "center";
    paper.fillStyle = css("ink-2");
    const text = `rms ${this.label(rms)}`;
    const half = paper.measureText(text).width / 2;
    const room = this.canvas.clientWidth - half - LEFT;
    paper.fillText(text, Math.max(LEFT + half + 12, Math.min(room, x)), height + 1);
  }
}

function sample(values: number[]): number[] {
  const step = Math.ceil(values.length / 20000);
  return step > 1 ? values.filter((_, i) => i % step === 0) : values;
}

function extremes(curves: Curve[], fromZero: boolean): Bounds {
  let [low, high] = fromZero ? [0, 0] : [Infinity, -Infinity];
  for (const { values } of curves)
    for (let i = 0; i < values.length; i++) {
      if (values[i] < low) low = values[i];
      if (values[i] > high) high = values[i];
    }
  if (low > high) return { low: 0, high: 1 };
  return high - low < 1e-9 ? { low: low - (fromZero ? 0 : 1), high: high + (fromZero ? 1e-3 : 1) } : { low, high };
}

/** A canvas as large as its host, in the page's own pixels, cleared. */
export function sheet(canvas: HTMLCanvasElement, host: HTMLElement): [CanvasRenderingContext2D, number, number] {
  const [width, height] = [host.clientWidth, host.clientHeight];
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const paper = canvas.getContext("2d")!;
  paper.setTransform(ratio, 0, 0, ratio, 0, 0);
  paper.font = "10px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
  return [paper, width, height];
}
