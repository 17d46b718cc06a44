/** Colours of the page: two themes, a colour per body, residuals from blue to orange. */
import { Color } from "three";
import type { Side } from "./scene";

/** Chosen to stay apart for people with red-green or blue-yellow blindness. */
const BODIES = [
  "#5aa5e6", "#e69f00", "#22a384", "#cc74ab", "#d9642a", "#8d7be0", "#b3b440", "#48bcd4",
  "#bf5b56", "#7cae6c", "#a98055", "#93a4b8", "#e0b285", "#a1699c", "#e390b0", "#74c2aa",
];
const GOLDEN_TURN = 0.381966;
const NO_BODY = "#8a929c";

/** Blue is small, orange is large: they differ for any colour vision, and in lightness. */
const SCALE = ["#2f6fb5", "#7fa3bd", "#c9b48f", "#e8952e", "#c2410c"].map((c) => new Color(c));

/** Names of the colours of left, right and middle in the style sheet. */
export const SIDES: Record<Side, string> = { Left: "left", Right: "right", "": "middle" };

/** Names of the colours of how far a joint is known in the style sheet. */
export const READINESS = { unknown: "unknown", "hinge seen": "partly", ready: "ready" };

export function sideColour(side: Side): Color {
  return new Color(css(SIDES[side]));
}

export function bodyColour(body: number): Color {
  if (body < 0) return new Color(NO_BODY);
  if (body < BODIES.length) return new Color(BODIES[body]);
  const hue = (body * GOLDEN_TURN) % 1;
  return new Color().setHSL(hue, 0.45, body % 2 ? 0.5 : 0.65);
}

/** The colour of a share between nothing (0) and much (1). */
export function scaleColour(share: number, out: Color): Color {
  const at = Math.max(0, Math.min(0.9999, share)) * (SCALE.length - 1);
  const step = Math.floor(at);
  return out.copy(SCALE[step]).lerp(SCALE[step + 1], at - step);
}

export type Theme = "dark" | "light";

export interface SceneColours {
  background: Color;
  grid: Color;
  gridMajor: Color;
  ink: Color;
  accent: Color;
  warning: Color;
  ghost: Color;
}

export const SCENE: Record<Theme, SceneColours> = {
  dark: {
    background: new Color("#0f1214"),
    grid: new Color("#252c32"),
    gridMajor: new Color("#414c56"),
    ink: new Color("#d7dde2"),
    accent: new Color("#4c8dff"),
    warning: new Color("#ff7a45"),
    ghost: new Color("#c8d2dc"),
  },
  light: {
    background: new Color("#f7f8f9"),
    grid: new Color("#dde2e6"),
    gridMajor: new Color("#b6bfc8"),
    ink: new Color("#1d242b"),
    accent: new Color("#1f63e0"),
    warning: new Color("#d9480f"),
    ghost: new Color("#4a5560"),
  },
};

export function theme(): Theme {
  return document.documentElement.dataset.theme === "light" ? "light" : "dark";
}

const sheets = new Map<string, string>();

/** A colour as the style sheet of the present theme has it, for canvases. */
export function css(name: string): string {
  const key = `${theme()} ${name}`;
  let colour = sheets.get(key);
  if (colour === undefined) {
    colour = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    sheets.set(key, colour);
  }
  return colour;
}
