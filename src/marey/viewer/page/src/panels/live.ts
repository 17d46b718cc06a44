/** A live stream: the figure moves by messages, and a list says what still needs to move. */
import { decode } from "../decode";
import { readScene, SEEN, UNSEEN } from "../scene";
import type { LivePose, LiveState, Server } from "../server";
import type { State } from "../state";
import { button, el, section } from "./dom";
import { millimetres, plain } from "./numbers";

const NO_LINE = "The connection to marey is lost.";

export class LivePanel {
  readonly root = el("div", "live");
  /** Connection and buttons, for the bar at the top. */
  readonly bar = el("div", "extra livebar");
  private lamp = el("span", "lamp");
  private facts = el("span", "facts");
  private banner = el("div", "banner");
  private list = section("What still needs to move", true);
  private gaps = section("Separation of bones", true);
  private record: HTMLButtonElement;
  private mark: HTMLButtonElement;
  private zero: HTMLButtonElement;
  private now: LiveState | null = null;
  private loading = false;
  private shown = "";

  constructor(
    private state: State,
    private server: Server,
    stage: HTMLElement,
  ) {
    this.record = button("Record", "Start or stop recording (r)", () => void this.toggle());
    this.mark = button("Mark", "Mark this moment in the recording (m)", () => void this.act("mark"));
    this.zero = button("Zero pose", "Take this moment for the rest pose of a virtual skeleton (z)", () => void this.act("zero"));
    this.lamp.setAttribute("role", "status");
    this.bar.append(this.lamp, this.facts, this.record, this.mark, this.zero);
    this.banner.setAttribute("role", "alert");
    this.banner.hidden = true;
    stage.append(this.banner);
    this.gaps.note.textContent = "mm";
    this.root.append(this.list.root, this.gaps.root);
    server.listen((message) => {
      if (message.type === "pose") this.move(message);
      if (message.type === "live") this.show(message);
      if (message.type === "line" && message.lost) this.silence(NO_LINE);
    });
  }

  /** Act on a key; false if it is none of the panel's. */
  press(event: KeyboardEvent): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return false;
    const acts: Record<string, () => void> = {
      r: () => void this.toggle(),
      m: () => void this.act("mark"),
      z: () => void this.act("zero"),
    };
    const act = acts[event.key];
    act?.();
    return act !== undefined;
  }

  private toggle(): Promise<void> {
    return this.act(this.now?.recording ? "stop" : "record");
  }

  private async act(what: "record" | "stop" | "mark" | "zero"): Promise<void> {
    try {
      this.show({ ...(await this.server.act(what)) });
    } catch (error) {
      this.facts.textContent = plain((error as Error).message);
    }
  }

  private show(now: LiveState): void {
    this.now = now;
    if (now.version !== this.server.version) void this.load();
    this.lamp.className = `lamp ${now.is_live ? "on" : "off"}`;
    this.lamp.textContent = now.is_live ? "live" : "no signal";
    const known = [now.lost ? `${now.lost} lost` : "", now.rate ? `${now.rate.toFixed(1)} Hz` : ""].filter(Boolean);
    this.facts.replaceChildren(el("span", "count", `${now.received} frames${known.length ? ", " : ""}`), known.join(", "));
    this.record.textContent = now.recording ? "Stop" : "Record";
    this.record.classList.toggle("recording", now.recording);
    this.mark.disabled = !now.recording;
    this.zero.hidden = !now.virtual;
    this.state.readiness = new Map(now.joints.map((j) => [`${j.subject}/${j.joint}`, j.state]));
    if (now.is_live) this.banner.hidden = true;
    else this.silence(now.trouble || (now.received ? "No frames come: the figure is hidden until they do." : "Waiting for the first frame."));
    this.list.root.hidden = now.virtual;
    this.gaps.root.hidden = !now.virtual;
    if (now.virtual) this.buildGaps();
    else this.build(now);
  }

  /** List how far the two bones of each joint of virtual skeletons are apart. */
  private buildGaps(): void {
    const { scene, performance } = this.state;
    const rows = scene.subjects.flatMap(({ joints }, s) => {
      const motion = performance?.motions[s];
      return joints.flatMap(({ name }, i) => {
        if (!motion?.gapKnown[i]) return [];
        const row = el("div", "separation");
        row.append(el("b", "", name), el("i", "", millimetres(motion.gap[i])));
        return [row];
      });
    });
    this.gaps.body.replaceChildren(...rows);
  }

  private build(now: LiveState): void {
    const content = JSON.stringify([now.joints, now.learning]);
    if (content === this.shown) return;
    this.shown = content;
    const ready = now.joints.filter(({ state }) => state === "ready").length;
    this.list.note.textContent = now.joints.length ? `${ready} of ${now.joints.length} ready` : "";
    const several = new Set(now.joints.map(({ subject }) => subject)).size > 1;
    const rows = [...now.joints]
      .sort((a, b) => a.fraction - b.fraction)
      .map(({ subject, joint, state, fraction, advice }) => {
        const name = several ? `${subject}: ${joint}` : joint;
        const row = el("div", `need ${state.replace(" ", "-")}`);
        const bar = el("div", "bar");
        const fill = el("div", "fill");
        fill.style.width = `${Math.round(100 * fraction)}%`;
        bar.append(fill);
        bar.setAttribute("role", "progressbar");
        bar.ariaLabel = name;
        bar.ariaValueNow = String(Math.round(100 * fraction));
        row.append(el("b", "", name), el("i", "", state), bar, el("span", "", advice));
        return row;
      });
    const hint = !now.learning
      ? "No skeleton: only markers are shown."
      : !rows.length
        ? "Nobody is known yet. Move every joint, one after the other."
        : ready < rows.length
          ? "Parts that never moved against each other are not in this list yet."
          : "All of these are ready. Is a part missing? It never moved against its neighbour.";
    if (now.learning || !rows.length) rows.unshift(el("p", "hint", hint));
    this.list.body.replaceChildren(...rows);
  }

  /** Fetch the figure again: it has grown, or markers have changed. */
  private async load(): Promise<void> {
    if (this.loading) return;
    this.loading = true;
    try {
      this.state.show(readScene(await decode(await this.server.scene())));
    } finally {
      this.loading = false;
    }
  }

  private move(pose: LivePose): void {
    const { performance } = this.state;
    const { take, poses } = performance;
    if (pose.version !== this.server.version || this.loading || !this.state.scene.takes.length) return;
    if (pose.points.length !== take.points.length) return;
    for (let i = 0; i < take.markers.length; i++) {
      take.state[i] = pose.points[3 * i] === null ? UNSEEN : SEEN;
      for (let k = 3 * i; k < 3 * i + 3; k++) take.points[k] = pose.points[k] ?? 0;
    }
    for (let i = 0; i < take.sensors.length; i++) {
      take.sensorSeen[i] = pose.sensors[3 * i] === null ? 0 : 1;
      for (let k = 3 * i; k < 3 * i + 3; k++) take.sensorPlace[k] = pose.sensors[k] ?? 0;
      for (let k = 4 * i; k < 4 * i + 4; k++) take.sensorWxyz[k] = pose.turns[k] ?? 0;
    }
    pose.subjects.forEach(({ place, wxyz, apart }, s) => {
      const motion = performance.motions[s];
      if (!motion) return;
      motion.known[0] = place[0] === null ? 0 : 1;
      for (let k = 0; k < place.length; k++) poses[s].place[k] = place[k] ?? 0;
      for (let k = 0; k < wxyz.length; k++) poses[s].wxyz[k] = wxyz[k] ?? 0;
      if (motion.gap.length !== apart.length) {
        motion.gap = new Float32Array(apart.length);
        motion.gapKnown = new Uint8Array(apart.length);
      }
      for (let k = 0; k < apart.length; k++) {
        motion.gapKnown[k] = apart[k] === null ? 0 : 1;
        motion.gap[k] = apart[k] ?? 0;
      }
    });
    this.state.tell("frame");
  }

  /** Hide what is not live any more, and say why. */
  private silence(reason: string): void {
    this.banner.hidden = false;
    this.banner.textContent = plain(reason);
    const { performance } = this.state;
    performance?.motions.forEach((motion) => motion.known.fill(0));
    performance?.take.state.fill(UNSEEN);
    performance?.take.sensorSeen.fill(0);
    this.lamp.className = "lamp off";
    this.lamp.textContent = "no signal";
    if (performance) this.state.tell("frame");
  }
}
