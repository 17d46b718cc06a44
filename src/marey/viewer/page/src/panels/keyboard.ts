/** Rows that keys reach: Tab comes to one of them, arrows go on to the others. */

/** Elements that Space and Enter are meant for when they have the focus. */
export const ACTS = "button, summary, input, [role=button], [role=treeitem], [role=option], [role=link]";

/** What a row does with a key; true when that was all. */
export type RowKey = (row: HTMLElement, key: string) => boolean;

export class Rover {
  constructor(
    private host: HTMLElement,
    private selector: string,
    private special: RowKey = () => false,
  ) {
    host.addEventListener("keydown", (event) => this.press(event));
    host.addEventListener("focusin", ({ target }) => this.hold((target as HTMLElement).closest<HTMLElement>(selector)));
  }

  /** Take up the rows that are there now; Tab comes to the given one, else to the first. */
  refresh(current: HTMLElement | null = null): void {
    const rows = this.rows();
    for (const row of rows) row.tabIndex = -1;
    this.hold(current && rows.includes(current) ? current : (this.visible()[0] ?? null));
  }

  private rows(): HTMLElement[] {
    return [...this.host.querySelectorAll<HTMLElement>(this.selector)];
  }

  private visible(): HTMLElement[] {
    return this.rows().filter((row) => !row.closest("[hidden]"));
  }

  private hold(row: HTMLElement | null): void {
    if (!row || row.tabIndex === 0) return;
    for (const other of this.rows()) other.tabIndex = -1;
    row.tabIndex = 0;
  }

  private press(event: KeyboardEvent): void {
    const row = (event.target as HTMLElement).closest<HTMLElement>(this.selector);
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!this.act(row, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  private act(row: HTMLElement, key: string): boolean {
    if (this.special(row, key)) return true;
    const rows = this.visible();
    const at = rows.indexOf(row);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[key];
    if (next !== undefined) rows[Math.max(0, Math.min(rows.length - 1, next))]?.focus();
    else if (key === "Enter" || key === " ") row.click();
    else return false;
    return true;
  }
}

/** Build the contents of a part again; typed text and the focus stay on controls of the same name, or the focus at its place. */
export function keepFocus(host: HTMLElement, build: () => void): void {
  const before = controls(host);
  const at = before.findIndex((control) => control === document.activeElement);
  const { selectionStart, selectionEnd } = textOf(before[at]) ?? {};
  build();
  const after = controls(host);
  for (const control of before) if (!control.isConnected) moveText(control, after);
  if (at < 0 || before[at].isConnected) return;
  const name = nameOf(before[at]);
  const same = after.filter((control) => nameOf(control) === name);
  const distance = (control: HTMLElement) => Math.abs(after.indexOf(control) - at);
  const [next] = (same.length ? same : after).toSorted((a, b) => distance(a) - distance(b));
  next?.focus();
  if (next && nameOf(next) === name) textOf(next)?.setSelectionRange(selectionStart ?? null, selectionEnd ?? null);
}

/** Write what was typed into the control of the same name, unless that replaces something else now. */
function moveText(from: HTMLElement, controls: HTMLElement[]): void {
  if (!(from instanceof HTMLInputElement) || from.value === from.defaultValue) return;
  for (const to of controls)
    if (to instanceof HTMLInputElement && nameOf(to) === nameOf(from) && to.defaultValue === from.defaultValue) to.value = from.value;
}

/** A control whose text has a selection. */
function textOf(control: HTMLElement | undefined): HTMLInputElement | null {
  return control instanceof HTMLInputElement && control.type === "text" ? control : null;
}

function controls(host: HTMLElement): HTMLElement[] {
  const all = host.querySelectorAll<HTMLElement>(`${ACTS}, select, [tabindex]`);
  return [...all].filter((control) => !control.closest("[hidden]") && !control.matches(":disabled"));
}

function nameOf(control: HTMLElement): string {
  return control.ariaLabel ?? (control.title || control.textContent!);
}

/** Let something that a click acts on also act on Enter and Space. */
export function actOnKeys(element: HTMLElement): void {
  element.tabIndex = 0;
  element.setAttribute("role", "button");
  element.addEventListener("keydown", (event) => {
    if (event.target !== element || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    event.stopPropagation();
    element.click();
  });
}

/** After a click by pointer, keys are for the whole page again: Space plays. */
export function freeKeysAfterClicks(): void {
  addEventListener("click", (event) => {
    const { activeElement } = document;
    if (event.detail > 0 && activeElement instanceof HTMLElement && activeElement.matches(ACTS) && !typesText(activeElement))
      activeElement.blur();
  });
}

/** Whether keys are letters of a field. */
export function typesText(element: Element): boolean {
  return element instanceof HTMLInputElement && element.type !== "checkbox";
}
