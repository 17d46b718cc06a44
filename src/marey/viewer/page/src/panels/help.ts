/** The card of keyboard shortcuts, and the keys themselves. */
import type { Theatre } from "../draw/theatre";
import { SPEEDS, type State } from "../state";
import type { Timeline } from "../timeline";
import { button, el } from "./dom";
import { ACTS, typesText } from "./keyboard";

interface Shortcut {
  keys: string[];
  shown: string;
  text: string;
  run(event: KeyboardEvent): void;
}

const TURNING = "Drag turns, right drag or two fingers move, wheel or pinch zooms.";
const SCRUBBING = "Drag in the timeline scrubs, with shift it marks a range.";
const LOOKS =
  "Markers: ball = seen, diamond = filled, cross = outlier, box = of no body. Joints: blue = small gap, orange = large; the cloud is one standard deviation, magnified.";

export class Help {
  readonly root = el("div", "help");
  private shortcuts: Shortcut[];
  private close = button("Close", "Close (Esc)", () => this.toggle());
  private before: Element | null = null;

  constructor(state: State, theatre: Theatre | null, timeline: Timeline, toggleTheme: () => void) {
    const step = (by: number) => (e: KeyboardEvent) => state.seek(state.frame + by * (e.shiftKey ? 10 : 1));
    const faster = (by: number) => () => {
      const at = SPEEDS.indexOf(state.speed) + by;
      timeline.setSpeed(SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, at))]);
    };
    const ends = () => state.range ?? [0, state.performance.take.frames - 1];
    this.shortcuts = [
      key(" ", "space", "play or pause", () => state.play(!state.playing)),
      key("ArrowLeft", "←", "one frame back, ten with shift", step(-1)),
      key("ArrowRight", "→", "one frame on, ten with shift", step(1)),
      key("Home", "Home", "to the start", () => state.seek(ends()[0])),
      key("End", "End", "to the end", () => state.seek(ends()[1])),
      key(["-", "_"], "−", "slower", faster(-1)),
      key(["+", "="], "+", "faster", faster(1)),
      key("l", "l", "play over and over", () => {
        state.loop = !state.loop;
        state.tell("playing");
      }),
      key("i", "i", "the range begins here", () => timeline.setEnd(0)),
      key("o", "o", "the range ends here", () => timeline.setEnd(1)),
      ...(theatre ? drawing(theatre) : []),
      key("d", "d", "dark or light", toggleTheme),
      key("?", "?", "this card", () => this.toggle()),
      key("Escape", "Esc", "close this card, clear selection and range", () => this.escape(state)),
    ];
    this.build(theatre ? [TURNING, SCRUBBING, LOOKS] : [SCRUBBING]);
  }

  private escape(state: State): void {
    if (!this.root.hidden) return this.toggle();
    if (state.selected) state.select(null);
    else state.setRange(null);
  }

  private build(hints: string[]): void {
    const card = el("div", "card");
    const list = el("dl");
    for (const { shown, text } of this.shortcuts) list.append(el("dt", "", shown), el("dd", "", text));
    card.append(el("h2", "", "Shortcuts"), list, ...hints.map((text) => el("p", "hint", text)), this.close);
    this.root.append(card);
    this.root.hidden = true;
    this.root.setAttribute("role", "dialog");
    this.root.ariaModal = "true";
    this.root.ariaLabel = "Shortcuts";
    // The dialog has one thing to reach, and keys stay there.
    this.root.addEventListener("keydown", (event) => event.key === "Tab" && event.preventDefault());
    this.root.addEventListener("click", (e) => e.target === this.root && this.toggle());
  }

  toggle(): void {
    this.root.hidden = !this.root.hidden;
    if (this.root.hidden) {
      if (this.before instanceof HTMLElement) this.before.focus();
      return;
    }
    this.before = document.activeElement;
    this.close.focus();
  }

  /** Act on a key; false when it is none of ours or meant for a field. */
  press(event: KeyboardEvent): boolean {
    return press(this.shortcuts, event);
  }
}

/** Act on a key by one of some shortcuts; false when it is none of them or meant for a field. */
export function press(shortcuts: Shortcut[], event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  if (typesText(target)) return false;
  if ((event.key === " " || event.key === "Enter") && target.closest(ACTS)) return false;
  if (target instanceof HTMLSelectElement && event.key.startsWith("Arrow")) return false;
  const shortcut = shortcuts.find(({ keys }) => keys.includes(event.key));
  if (!shortcut) return false;
  event.preventDefault();
  shortcut.run(event);
  return true;
}

function key(keys: string | string[], shown: string, text: string, run: (e: KeyboardEvent) => void): Shortcut {
  return { keys: [keys].flat(), shown, text, run };
}

/** Keys for what is drawn, and from where. */
export function drawing(theatre: Theatre): Shortcut[] {
  const { state } = theatre;
  return [
    key(["1", "2", "3", "4"], "1 – 4", "front, side, top, ¾", (e) =>
      theatre.look((["front", "side", "top", "three-quarter"] as const)[Number(e.key) - 1]),
    ),
    key("f", "f", "fit to view", () => theatre.fit()),
    key("c", "c", "follow the figure", () => state.set({ follow: !state.options.follow })),
    key("m", "m", "markers", () => state.set({ markers: !state.options.markers })),
    key("b", "b", "bones", () => state.set({ bones: !state.options.bones })),
    key("j", "j", "joints", () => state.set({ joints: !state.options.joints })),
    key("n", "n", "names", () => state.set({ labels: !state.options.labels })),
    key("t", "t", "truth", () => state.set({ truth: !state.options.truth })),
    key("r", "r", "trails: off, selection, all", () => {
      const order = ["off", "selection", "all"] as const;
      state.set({ trails: order[(order.indexOf(state.options.trails) + 1) % 3] });
    }),
  ];
}
