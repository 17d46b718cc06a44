/** The card of a running job: its stages, the seconds of each, and what takes long. */
import type { StageTime } from "../server";
import { el } from "./dom";
import { plain } from "./numbers";

/** A job that is shorter than this has no card, s. */
const PATIENCE_S = 0.6;
const TICK_MS = 200;

export class ProgressCard {
  readonly root = el("div", "progress");
  private title = el("div", "title");
  private list = el("ol");
  private stages: StageTime[] = [];
  private receivedAt = 0;
  private timer = 0;
  private running: HTMLElement | null = null;

  constructor() {
    this.root.hidden = true;
    this.root.append(this.title, this.list);
    this.title.setAttribute("role", "status");
  }

  /** Show the stages as the server knows them now; none hides the card. */
  show(stages: StageTime[]): void {
    this.stages = stages;
    this.receivedAt = performance.now();
    clearInterval(this.timer);
    if (!stages.length) {
      this.root.hidden = true;
      return;
    }
    this.build();
    this.timer = setInterval(() => this.tick(), TICK_MS);
    this.tick();
  }

  private build(): void {
    const items = this.stages.map(({ stage, seconds }, i) => {
      const [name, ...more] = plain(stage).split(",");
      const now = i === this.stages.length - 1;
      const item = el("li", now ? "now" : "done");
      const time = el("b", "", now ? "" : spent(seconds));
      item.append(el("span", "", name), time);
      if (more.length) item.append(el("i", "", more.join(",").trim()));
      if (now) this.running = time;
      return item;
    });
    this.list.replaceChildren(...items);
    const [name] = plain(this.stages[this.stages.length - 1].stage).split(",");
    const title = `Working: ${name}`;
    if (this.title.textContent !== title) this.title.textContent = title;
  }

  private tick(): void {
    const since = (performance.now() - this.receivedAt) / 1000;
    const total = this.stages.reduce((sum, { seconds }) => sum + seconds, 0) + since;
    this.root.hidden = total < PATIENCE_S;
    const last = this.stages[this.stages.length - 1];
    if (this.running) this.running.textContent = spent(last.seconds + since);
  }
}

function spent(seconds: number): string {
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}
