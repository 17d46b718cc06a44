/** Play, scrub and step; strips that show where in the take something is the matter. */
import { css, sideColour } from "./colours";
import { niceCeiling } from "./draw/joints";
import { sheet, trace } from "./panels/chart";
import { button, el, iconButton, setIcon } from "./panels/dom";
import { clock, millimetres, roundMillimetres } from "./panels/numbers";
import { describeFinding, type Contact, type Finding } from "./scene";
import { SPEEDS, type State } from "./state";

interface Strip {
  name: string;
  height: number;
  draw(paper: CanvasRenderingContext2D, top: number, height: number): void;
  /** Largest value, written at the end of the name. */
  full?: () => string;
}

const LABELS = 124;
const RULER = 18;
const REACH = 6;

export class Timeline {
  readonly root = el("footer", "timeline");
  private playButton: HTMLButtonElement;
  private readout = el("div", "readout");
  private clock = el("div", "clock");
  private seconds = el("span");
  private atFrame = el("span", "at-frame");
  private speed = el("select");
  private area = el("div", "strips");
  private canvas = el("canvas");
  private head = el("div", "playhead");
  private before = 0;
  private position = 0;
  private strips: Strip[];

  constructor(
    private state: State,
    private jump: (finding: Finding) => void,
  ) {
    this.playButton = iconButton("play", "Play or pause (space)", () => state.play(!state.playing));
    this.clock.append(this.seconds, this.atFrame);
    this.root.append(this.transport(), this.area);
    this.area.append(this.canvas, this.head);
    this.area.setAttribute("role", "slider");
    this.area.ariaLabel = "Time";
    this.area.tabIndex = 0;
    this.area.addEventListener("keydown", (event) => this.page(event));
    this.strips = this.makeStrips();
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.area);
    state.on(["take", "range", "theme", "colours"], () => this.draw());
    state.on(["frame", "take"], () => this.showFrame());
    state.on("playing", () => this.showPlaying());
  }

  private transport(): HTMLElement {
    const { state } = this;
    const row = el("div", "transport");
    const loop = iconButton("loop", "Play over and over (l)", () => {
      state.loop = !state.loop;
      state.tell("playing");
    });
    loop.ariaPressed = "true";
    state.on("playing", () => (loop.ariaPressed = String(state.loop)));
    for (const speed of SPEEDS) {
      const item = el("option", "", `× ${speed}`);
      item.value = String(speed);
      item.selected = speed === state.speed;
      this.speed.append(item);
    }
    this.speed.title = "Speed (- and +)";
    this.speed.ariaLabel = "Speed";
    this.speed.addEventListener("change", () => this.setSpeed(Number(this.speed.value)));
    row.append(
      iconButton("start", "To the start (Home)", () => state.seek(state.range?.[0] ?? 0)),
      iconButton("back", "One frame back (←)", () => state.seek(state.frame - 1)),
      this.playButton,
      iconButton("forward", "One frame on (→)", () => state.seek(state.frame + 1)),
      loop,
      this.speed,
      button("[", "The range begins here (i)", () => this.setEnd(0)),
      button("]", "The range ends here (o)", () => this.setEnd(1)),
      button("all", "Play the whole take (Esc)", () => state.setRange(null)),
      this.clock,
      this.readout,
    );
    return row;
  }

  /** A tenth of the take at a time; other keys are those of the whole page. */
  private page(event: KeyboardEvent): void {
    const way = { PageDown: 1, PageUp: -1, ArrowUp: 0.1, ArrowDown: -0.1 }[event.key];
    if (way === undefined) return;
    event.preventDefault();
    const { frame, performance } = this.state;
    this.state.seek(frame + (Math.abs(way) < 1 ? Math.sign(way) : (way * performance.take.frames) / 10));
  }

  setSpeed(speed: number): void {
    this.state.speed = speed;
    this.speed.value = String(speed);
  }

  setEnd(end: 0 | 1): void {
    const { frame, range, performance } = this.state;
    const next: [number, number] = [...(range ?? [0, performance.take.frames - 1])];
    next[end] = frame;
    if (next[0] > next[1]) next[1 - end] = end ? 0 : performance.take.frames - 1;
    this.state.setRange(next);
  }

  private makeStrips(): Strip[] {
    const sum = () => this.state.performance.summary;
    const curve = (key: "residual" | "gap" | "missing", colour: string) =>
      (paper: CanvasRenderingContext2D, top: number, height: number) => {
        const high = Math.max(niceCeiling(sum()[key], 1), key === "missing" ? 1 : 0);
        paper.strokeStyle = css(colour);
        trace(paper, sum()[key], LABELS, this.width(), (v) => top + height - 2 - (v / high) * (height - 4));
      };
    const full = (key: "residual" | "gap") => () =>
      sum()[key].some((v) => v === v) ? `${roundMillimetres(niceCeiling(sum()[key], 1))} mm` : "";
    const events = (pick: (f: Finding) => boolean) => (paper: CanvasRenderingContext2D, top: number, height: number) =>
      this.findings().filter(pick).forEach((finding) => this.drawFinding(paper, finding, top, height));
    return [
      { name: "Residual", height: 28, draw: curve("residual", "curve-1"), full: full("residual") },
      { name: "Joint gap", height: 28, draw: curve("gap", "curve-2"), full: full("gap") },
      { name: "Missing", height: 18, draw: curve("missing", "ink-3"), full: () => String(Math.max(Math.round(niceCeiling(sum().missing, 1)), 1)) },
      { name: "Contacts", height: 18, draw: (paper, top, height) => this.drawContacts(paper, top, height) },
      { name: "Slips", height: 12, draw: events(isSlip) },
      { name: "Swaps", height: 12, draw: events(isSwap) },
      { name: "Findings", height: 12, draw: events((f) => !isSlip(f) && !isSwap(f)) },
    ];
  }

  private findings(): Finding[] {
    const { scene, performance } = this.state;
    return scene.findings.filter(
      (f) => f.frames[0] >= 0 && (f.take < 0 || f.take === performance.index),
    );
  }

  private width(): number {
    return this.area.clientWidth - LABELS - 10;
  }

  private x(frame: number): number {
    return LABELS + (frame / Math.max(this.state.performance.take.frames - 1, 1)) * this.width();
  }

  private draw(): void {
    const [paper, width, height] = sheet(this.canvas, this.area);
    if (!width || !this.state.scene) return;
    this.drawRange(paper, height);
    this.drawRuler(paper);
    let top = RULER;
    for (const strip of this.strips) {
      paper.fillStyle = css("line");
      paper.fillRect(0, top - 0.5, width, 1);
      paper.fillStyle = css("ink-2");
      paper.textBaseline = "middle";
      paper.textAlign = "left";
      paper.fillText(strip.name, 10, top + strip.height / 2 + 0.5);
      paper.fillStyle = css("ink-3");
      paper.textAlign = "right";
      if (strip.full) paper.fillText(strip.full(), LABELS - 8, top + strip.height / 2 + 0.5);
      strip.draw(paper, top, strip.height);
      top += strip.height;
    }
    this.showFrame();
  }

  private drawRange(paper: CanvasRenderingContext2D, height: number): void {
    const { range } = this.state;
    if (!range) return;
    const [a, b] = range.map((frame) => this.x(frame));
    paper.fillStyle = css("range");
    paper.fillRect(a, 0, b - a, height);
    paper.fillStyle = css("accent");
    paper.fillRect(a, 0, 1, height);
    paper.fillRect(b, 0, 1, height);
  }

  private drawRuler(paper: CanvasRenderingContext2D): void {
    const { performance } = this.state;
    const last = performance.take.frames - 1;
    const span = performance.time(last) - performance.time(0);
    if (!(span > 0)) return;
    const rough = (span * 80) / this.width();
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * [1, 2, 5, 10].find((s) => s * unit >= rough)!;
    paper.font = paper.font.replace(/^\S+/, "10px");
    paper.textAlign = "center";
    paper.textBaseline = "middle";
    const digits = Math.max(0, -Math.floor(Math.log10(step)));
    for (let t = Math.ceil(performance.time(0) / step) * step; t <= performance.time(last) + 1e-9; t += step) {
      const x = LABELS + ((t - performance.time(0)) / span) * this.width();
      paper.fillStyle = css("line");
      paper.fillRect(Math.round(x), RULER - 5, 1, 5);
      paper.fillStyle = css("ink-3");
      paper.fillText(`${t.toFixed(digits)} s`, Math.min(x, LABELS + this.width() - 8), RULER / 2 - 1);
    }
  }

  private drawContacts(paper: CanvasRenderingContext2D, top: number, height: number): void {
    const { performance } = this.state;
    const contacts = performance.motions.flatMap((motion) => motion.contacts);
    const lanes = [...new Set(contacts.map((contact) => contact.joint))].sort();
    const tall = (height - 4) / Math.max(lanes.length, 2);
    const joints = this.state.scene.subjects.flatMap((subject) => subject.joints);
    const sides = new Map(joints.map(({ name, side }) => [name, side]));
    contacts.forEach(({ joint, start, end }: Contact) => {
      const a = this.x(performance.frameAt(start));
      const b = this.x(performance.frameAt(end));
      const side = sides.get(joint);
      paper.fillStyle = side && this.state.showsSides ? sideColour(side).getStyle() : css("curve-3");
      paper.fillRect(a, top + 2 + lanes.indexOf(joint) * tall, Math.max(b - a, 1), Math.max(tall - 1, 1));
    });
  }

  private drawFinding(paper: CanvasRenderingContext2D, finding: Finding, top: number, height: number): void {
    const { performance } = this.state;
    const [a, b] = finding.frames.map((frame) => this.x(performance.drawn(frame)));
    paper.fillStyle = css(finding.severity);
    paper.fillRect(Math.round(a) - 1, top + 2.5, Math.max(b - a, 2), height - 5);
  }

  private listen(): void {
    const { state, canvas } = this;
    let from = -1;
    const frameAt = (e: PointerEvent) => {
      const share = (e.clientX - canvas.getBoundingClientRect().left - LABELS) / this.width();
      return Math.round(share * (state.performance.take.frames - 1));
    };
    canvas.addEventListener("pointerdown", (e) => {
      canvas.setPointerCapture(e.pointerId);
      from = e.shiftKey ? frameAt(e) : -1;
      const finding = this.findingAt(e);
      if (finding) this.jump(finding);
      else if (from < 0) state.seek(frameAt(e));
    });
    canvas.addEventListener("pointermove", (e) => {
      const finding = this.findingAt(e);
      canvas.title = finding ? describeFinding(finding) : "";
      if (!e.buttons) return;
      if (from >= 0) state.setRange([from, frameAt(e)]);
      else state.seek(frameAt(e));
    });
  }

  /** The finding whose mark is under the pointer. */
  private findingAt(event: PointerEvent): Finding | null {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let top = RULER;
    const strip = this.strips.find(({ height }) => (top += height) > y && y >= RULER);
    const pick = { Slips: isSlip, Swaps: isSwap, Findings: (f: Finding) => !isSlip(f) && !isSwap(f) }[strip?.name ?? ""];
    if (!pick) return null;
    const away = ({ frames }: Finding) => {
      const [a, b] = frames.map((frame) => this.x(this.state.performance.drawn(frame)));
      return Math.max(a - x, x - b, 0);
    };
    const near = this.findings().filter(pick).filter((f) => away(f) <= REACH);
    return near.sort((a, b) => away(a) - away(b))[0] ?? null;
  }

  private showFrame(): void {
    const { frame, performance } = this.state;
    const { residual, gap, missing } = performance.summary;
    this.head.style.transform = `translateX(${this.x(frame)}px)`;
    this.seconds.textContent = `${clock(performance.time(frame))} s`;
    this.atFrame.textContent = `   frame ${performance.recorded(frame)} / ${Math.max(performance.take.recorded - 1, 0)}`;
    this.area.ariaValueMin = "0";
    this.area.ariaValueMax = String(Math.max(performance.take.recorded - 1, 0));
    this.area.ariaValueNow = String(performance.recorded(frame));
    this.area.ariaValueText = `${performance.time(frame).toFixed(2)} s, frame ${performance.recorded(frame)}`;
    const solved = this.state.scene.subjects.length > 0;
    const parts = solved
      ? [["residual", residual[frame]] as const, ["largest gap", gap[frame]] as const].flatMap(([name, value]) =>
          Number.isFinite(value) ? [`${name} ${millimetres(value)} mm`] : [],
        )
      : [];
    this.readout.textContent = [...parts, `${missing[frame] ?? 0} missing`].join("   ");
  }

  private showPlaying(): void {
    setIcon(this.playButton, this.state.playing ? "pause" : "play");
    if (!this.state.playing) return;
    this.before = performance.now();
    this.position = this.state.frame;
    requestAnimationFrame((now) => this.advance(now));
  }

  private advance(now: number): void {
    const { state } = this;
    if (!state.playing) return;
    const { rate, stride, frames } = state.performance.take;
    const [first, last] = state.range ?? [0, frames - 1];
    if (Math.round(this.position) !== state.frame) this.position = state.frame;
    this.position += (Math.max(now - this.before, 0) / 1000) * (rate / stride) * state.speed;
    this.before = now;
    if (this.position > last) {
      if (!state.loop) return void (state.seek(last), state.play(false));
      this.position = first + ((this.position - first) % Math.max(last - first, 1));
    }
    if (this.position < first) this.position = first;
    state.seek(this.position);
    requestAnimationFrame((next) => this.advance(next));
  }
}

function isSlip(finding: Finding): boolean {
  return finding.code.includes("slip");
}

function isSwap(finding: Finding): boolean {
  return finding.code.includes("swap");
}
