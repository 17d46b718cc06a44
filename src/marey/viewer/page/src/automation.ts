/** `window.marey`: the page for programs, used by tests and benchmarks. */
import { Vector3 } from "three";
import type { Theatre } from "./draw/theatre";
import { named, nameOf, type State } from "./state";

export interface Automation {
  /** The drawn frame; setting it seeks. */
  frame: number;
  /** Select by name; "" selects nothing. */
  select(name: string): boolean;
  /** Where a named thing is on the screen, in pixels, or null when it is not seen or nothing is drawn. */
  where(name: string): { x: number; y: number } | null;
  /** Draw now, as fine as it gets, and return how many pictures have been drawn so far. */
  draw(): number;
  snapshot(): Record<string, unknown>;
}

declare global {
  interface Window {
    marey: Automation;
  }
}

export function automation(state: State, theatre: Theatre | null, decoded: number): Automation {
  let pictures = 0;
  theatre?.stage.beforeDraw.push(() => pictures++);
  const spot = new Vector3();
  return {
    get frame() {
      return state.frame;
    },
    set frame(frame: number) {
      state.seek(frame);
    },
    select(name) {
      const what = named(state, name);
      state.select(what);
      return what !== null;
    },
    where(name) {
      const what = named(state, name);
      if (!what || !theatre?.locate(what, spot)) return null;
      theatre.stage.camera.updateMatrixWorld();
      spot.project(theatre.stage.camera);
      const box = theatre.stage.host.getBoundingClientRect();
      return {
        x: box.left + ((spot.x + 1) / 2) * box.width,
        y: box.top + ((1 - spot.y) / 2) * box.height,
      };
    },
    draw() {
      theatre?.stage.drawFine();
      return pictures;
    },
    snapshot: () => ({
      title: state.scene.title,
      frame: state.frame,
      frames: state.performance.take.frames,
      take: state.performance.index,
      playing: state.playing,
      range: state.range,
      selected: nameOf(state, state.selected),
      type: state.selected?.type ?? "",
      theme: document.documentElement.dataset.theme,
      pictures,
      draws: theatre !== null,
      software: theatre?.stage.inSoftware ?? false,
      decodeMilliseconds: decoded,
      camera: theatre?.stage.camera.position.toArray() ?? null,
      target: theatre?.stage.controls.target.toArray() ?? null,
    }),
  };
}
