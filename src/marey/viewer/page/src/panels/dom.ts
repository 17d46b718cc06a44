/** Small helpers for the document. Text is always text, whatever a name contains. */
import { plain } from "./numbers";

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  text = "",
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = plain(text);
  return element;
}

export function button(label: string, title: string, action: () => void, className = ""): HTMLButtonElement {
  const element = el("button", className, label);
  element.type = "button";
  element.title = title;
  element.addEventListener("click", action);
  return element;
}

/** A button that shows one of the drawings of the page. */
export function iconButton(icon: Icon, title: string, action: () => void): HTMLButtonElement {
  const element = button("", title, action, "icon");
  element.ariaLabel = title;
  setIcon(element, icon);
  return element;
}

const ICONS = {
  play: "M4.5 2.8v10.4l8.4-5.2z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  back: "M10.5 3v10L4.6 8zM3 3h1.2v10H3z",
  forward: "M5.5 3v10l5.9-5zM11.8 3H13v10h-1.2z",
  start: "M12.6 3v10L7.2 8zM7.2 3v10L1.8 8z",
  loop: "M3 8a4 4 0 0 1 4-4h4V2l3 2.6L11 7.2V5.4H7A2.6 2.6 0 0 0 4.4 8zM13 8a4 4 0 0 1-4 4H5v2l-3-2.6L5 8.8v1.8h4A2.6 2.6 0 0 0 11.6 8z",
  fit: "M2 2h4v1.3H3.3V6H2zM10 2h4v4h-1.3V3.3H10zM2 10h1.3v2.7H6V14H2zM12.7 10H14v4h-4v-1.3h2.7zM6 6h4v4H6z",
  follow: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zm0 1.3a5.2 5.2 0 1 1 0 10.4A5.2 5.2 0 0 1 8 2.8zM8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z",
  theme: "M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zm0 1.3v9.8a4.9 4.9 0 0 1 0-9.8z",
  help: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zm0 1.2a5.3 5.3 0 1 1 0 10.6A5.3 5.3 0 0 1 8 2.7zM7.3 10.6h1.4V12H7.3zM8 4.2c-1.5 0-2.400.9-2.4 2.2h1.3c0-.7.4-1.1 1.1-1.100.6 0 1 .4 1 .9 0 .9-1.7 1.1-1.7 3v.4h1.3v-.3c0-1.2 1.8-1.4 1.8-3.2 0-1.1-1-1.9-2.4-1.9z",
} as const;

export type Icon = keyof typeof ICONS;

export function setIcon(element: HTMLElement, icon: Icon): void {
  const space = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(space, "svg");
  picture.setAttribute("viewBox", "0 0 16 16");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", ICONS[icon]);
  picture.append(path);
  element.replaceChildren(picture);
}

export interface Section {
  root: HTMLElement;
  body: HTMLElement;
  note: HTMLElement;
  fold(shut: boolean): void;
}

/** Whether the page is as narrow as a phone, where panels are below the scene. */
const NARROW = matchMedia("(max-width: 720px)").matches;

/** A titled part of a panel that can be folded away; on a phone most begin folded. */
export function section(title: string, open = !NARROW): Section {
  const root = el("section");
  const heading = el("h2");
  const head = el("button", "head");
  head.type = "button";
  const note = el("span", "note");
  head.append(el("span", "", title), note);
  const body = el("div", "body");
  const fold = (shut: boolean) => {
    root.classList.toggle("shut", shut);
    head.ariaExpanded = String(!shut);
  };
  head.addEventListener("click", () => fold(!root.classList.contains("shut")));
  fold(!open);
  heading.append(head);
  root.append(heading, body);
  return { root, body, note, fold };
}

/** A row of a name and a number, aligned in columns. */
export function fact(name: string, value: string, unit = ""): HTMLElement {
  const row = el("div", "fact");
  row.append(el("span", "", name), el("b", "", value), el("i", "", unit));
  return row;
}

/** A row of a curve: its colour in the style sheet, its name and its present value, which is the last element. */
export function nowRow(name: string, colour: string): HTMLElement {
  const row = el("div", "now");
  const swatch = el("span", "swatch");
  swatch.style.background = `var(--${colour})`;
  row.append(swatch, el("span", "text", name), el("b"));
  return row;
}

/** A row of something to do: what it is about, and the fields and buttons for it. */
export function row(name: string, ...parts: HTMLElement[]): HTMLElement {
  const element = el("div", "action");
  element.append(el("span", "", name), ...parts);
  return element;
}

export function single(name: string, label: string, run: () => void): HTMLElement {
  return row(name, button(label, label, run));
}

export function choose(
  name: string,
  values: string[],
  now: string,
  label: string,
  run: (value: string) => void,
): HTMLElement {
  const list = options(name, values, now);
  return row(name, list, button(label, `${name}: ${label}`, () => run(values[Number(list.value)])));
}

/** A list of values to choose from; its own value is the number of the one chosen. */
export function options(name: string, values: string[], now: string): HTMLSelectElement {
  const list = el("select");
  list.ariaLabel = name;
  values.forEach((value, i) => {
    const item = el("option", "", value);
    item.value = String(i);
    item.selected = value === now;
    list.append(item);
  });
  return list;
}

export function write(name: string, now: string, run: (value: string) => void): HTMLElement {
  const field = el("input");
  field.type = "text";
  field.defaultValue = now;
  field.ariaLabel = name;
  const go = () => field.value.trim() && run(field.value.trim());
  field.addEventListener("keydown", (event) => event.key === "Enter" && go());
  return row(name, field, button(name, name, go));
}

/** Three numbers, along x, y and z; the arrow keys change them by a step, and what is left alone stays exact. */
export function triple(
  name: string,
  now: number[],
  step: number,
  label: string,
  run: (values: [number, number, number]) => void,
): HTMLElement {
  const fields = now.map((value, k) => {
    const field = el("input");
    field.type = "number";
    field.step = String(step);
    // Steps are counted from the default.
    field.defaultValue = String(Number(value.toFixed(step < 1 ? 3 : 1)));
    field.ariaLabel = `${name}, ${"xyz"[k]}`;
    field.title = `${name}, along ${"xyz"[k]}`;
    return field;
  });
  const go = () => {
    const values = fields.map((field, k) => (field.value === field.defaultValue ? now[k] : field.valueAsNumber));
    if (values.every(Number.isFinite)) run(values as [number, number, number]);
  };
  fields.forEach((field) => field.addEventListener("keydown", (event) => event.key === "Enter" && go()));
  return row(name, ...fields, button(label, `${name}: ${label}`, go));
}
