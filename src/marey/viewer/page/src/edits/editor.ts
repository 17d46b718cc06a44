/** Putting the answer right: an edit is tried, looked at, then kept or dropped. */
import { decode } from "../decode";
import { Dragger } from "./drag";
import type { Theatre } from "../draw/theatre";
import { actionsFor } from "./actions";
import type { DetailsPanel } from "../panels/details";
import { button, el, section } from "../panels/dom";
import { FilesPanel } from "../files/files";
import { keepFocus, typesText } from "../panels/keyboard";
import { millimetres, plain } from "../panels/numbers";
import { ProgressCard } from "../panels/progress";
import { restPose } from "./sensors";
import type { TopBar } from "../panels/topbar";
import { Welcome } from "../files/welcome";
import { readScene, describeFinding, type Edit } from "../scene";
import type { Change, Desk, Message, Server, Trial } from "../server";
import { nameOf, type Selection, type State } from "../state";

const LOST = "marey has stopped or cannot be reached …";

/** The errors of an answer, and what they are called in its score. */
const ERRORS = [["Markers", "marker_rms"], ["Sensors", "sensor_rms"], ["Joint gaps", "gap_rms"]] as const;

/** Bones that the table of a trial lists at most. */
const SHOWN_CHANGES = 12;

export class Editor {
  readonly root: HTMLElement;
  readonly files: FilesPanel;
  private list = el("div");
  private trialBox = el("div");
  private trouble = el("div", "refused");
  private busy = el("span", "busy");
  private progress = new ProgressCard();
  private general = el("div", "actions");
  /** Stays open or shut from one selection to the next. */
  private folder = el("details", "actions");
  private undo = button("Undo", "Take back the last edit (Ctrl+Z)", () => void this.decide("undo"));
  private redo = button("Redo", "Do it again (Ctrl+Shift+Z)", () => void this.decide("redo"));
  private note: HTMLElement;
  private dragger: Dragger | null;
  /** Whether an edit that is being tried is shown. */
  private trying = false;
  /** Whether this page has asked for a change: its answer is the news of it. */
  private deciding = false;
  private loads = 0;

  constructor(
    private state: State,
    private server: Server,
    stage: HTMLElement,
    private theatre: Theatre | null,
    private details: DetailsPanel,
    topbar: TopBar,
  ) {
    const { root, body, note } = section("Edits");
    this.root = root;
    this.note = note;
    this.files = new FilesPanel(state, server, (trouble) => this.complain(trouble));
    this.dragger = theatre && new Dragger(state, theatre, (edit) => void this.attempt(edit));
    body.append(this.trialBox, this.list, this.general);
    const welcome = new Welcome(state, server, this.files, (trouble) => this.complain(trouble));
    const notices = el("div", "notices");
    notices.append(this.trouble, this.progress.root);
    stage.append(welcome.root, notices);
    this.trouble.title = "Click to close";
    this.trouble.setAttribute("role", "alert");
    this.trouble.addEventListener("click", () => this.complain(""));
    topbar.extra.append(this.undo, this.redo, this.busy);
    this.showDesk({ edits: [], can_undo: false, can_redo: false, trial: false, saved: "", busy: "", version: 0, stages: [] });
    this.complain("");
    state.on(["selection", "take", "range"], () => this.offer());
  }

  connect(): void {
    this.server.listen((message) => void this.hear(message));
    void this.catchUp();
  }

  /** Hear what was said while this page did not listen. */
  private async catchUp(): Promise<void> {
    const desk = await this.server.desk().catch(() => null);
    if (desk) await this.keepUp(desk);
  }

  press(event: KeyboardEvent): boolean {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return false;
    if (event.target instanceof Element && typesText(event.target)) return false;
    event.preventDefault();
    void this.decide(event.shiftKey ? "redo" : "undo");
    return true;
  }

  private async hear(message: Message): Promise<void> {
    if (message.type === "line") this.busy.textContent = message.lost ? LOST : "";
    if (message.type === "stage") this.progress.show(message.stages);
    if (message.type === "error") this.complain(message.message);
    if (message.type === "state") await this.keepUp(message);
  }

  /** Show what the server speaks of; news older than what is shown is no news. */
  private async keepUp(desk: Desk): Promise<void> {
    if (this.deciding || desk.version < this.server.version) return;
    this.showDesk(desk);
    if (desk.version === this.server.version && !(await this.isOver(desk))) return;
    this.server.version = Math.max(desk.version, this.server.version);
    if (this.trying) this.endTrial();
    await this.load(false);
  }

  /** Whether the edit tried here was kept or dropped elsewhere. */
  private async isOver(desk: Desk): Promise<boolean> {
    if (!this.trying || desk.trial || desk.busy) return false;
    // This may be news from before the trial that came late: ask.
    const turn = this.loads;
    const now = await this.server.desk().catch(() => null);
    return turn === this.loads && now?.trial === false;
  }

  private endTrial(): void {
    this.trying = false;
    const hadFocus = this.trialBox.contains(document.activeElement);
    this.trialBox.replaceChildren();
    if (hadFocus) this.root.querySelector<HTMLElement>(".head")!.focus();
    this.theatre?.showBefore(null);
  }

  /** Show the scene and return true, unless another was asked for in the meantime. */
  private async load(trial: boolean): Promise<boolean> {
    const turn = ++this.loads;
    this.server.forget();
    const scene = readScene(await decode(await this.server.scene(trial)));
    if (turn !== this.loads) return false;
    this.busy.textContent = "";
    this.state.show(scene);
    return true;
  }

  /** Name what is wrong, in the server's words; nothing clears it. */
  private complain(trouble: string): void {
    this.trouble.textContent = plain(trouble);
    this.trouble.hidden = !trouble;
    if (trouble) this.busy.textContent = "";
  }

  private offer(): void {
    const { editable } = this.state.scene;
    this.root.hidden = !editable;
    this.undo.hidden = this.redo.hidden = !editable;
    const { dragger } = this;
    const doer = {
      attempt: (edit: Edit) => void this.attempt(edit),
      drag: dragger && ((what: Selection) => (dragger.active ? dragger.stop() : dragger.start(what))),
    };
    const actions = editable && !this.trying ? actionsFor(this.state, doer) : [];
    keepFocus(this.details.actions, () => {
      this.folder.replaceChildren(el("summary", "", "Put right"), ...actions);
      this.details.actions.replaceChildren(...(actions.length ? [this.folder] : []));
    });
    keepFocus(this.general, () => this.offerGeneral());
  }

  /** What can be done without a selection: a bad range, the rest pose, the height of the ground. */
  private offerGeneral(): void {
    const { range, performance, selected, scene } = this.state;
    this.general.replaceChildren();
    if (this.trying || !scene.takes.length) return;
    const bad = el("div", "action");
    const only = selected?.type === "marker" || selected?.type === "sensor" ? [nameOf(this.state, selected)] : [];
    const mark = button(only.length ? `Mark as bad for ${plain(only[0])}` : "Mark as bad", "", () => {
      const [first, last] = range!.map((frame) => performance.recorded(frame));
      void this.attempt({ do: "bad", first, last, take: performance.index, markers: only });
    });
    mark.disabled = !range;
    mark.title = range ? "Leave these frames out" : "First mark a range: i and o, or shift and drag";
    bad.append(el("span", "", "Range"), mark);
    const ground = el("div", "action");
    const height = el("input");
    height.type = "text";
    height.inputMode = "decimal";
    height.defaultValue = (1000 * scene.ground.height).toFixed(1);
    height.ariaLabel = "Height of the ground in mm";
    const set = button("Set, mm", "Set the height of the ground", () => {
      const z = Number(height.value) / 1000;
      if (Number.isFinite(z)) void this.attempt({ do: "ground", normal: scene.ground.normal, height: z });
    });
    ground.append(el("span", "", "Ground"), height, set);
    this.general.append(bad);
    if (performance.take.sensors.length) this.general.append(restPose(this.state, (edit) => void this.attempt(edit)));
    this.general.append(ground);
  }

  private async attempt(edit: Edit): Promise<void> {
    this.complain("");
    this.busy.textContent = "trying …";
    const { scene, performance } = this.state;
    const before = { subjects: scene.subjects, motions: performance.motions, poses: performance.poses };
    let trial: Trial | null = null;
    try {
      trial = await this.server.attempt(edit);
      this.trying = true;
      const isByKeys = document.activeElement !== document.body;
      if (await this.load(true)) {
        this.theatre?.showBefore(before);
        this.showTrial(trial);
        if (isByKeys) this.trialBox.querySelector("button")!.focus();
      }
    } catch (error) {
      this.complain((error as Error).message);
      this.dragger?.stop();
      if (trial) this.endTrial();
    }
    this.offer();
  }

  private showTrial(trial: Trial): void {
    const box = el("div", "trial");
    box.append(el("div", "", trial.text));
    box.append(trialTable(trial));
    if (trial.changes.length > SHOWN_CHANGES)
      box.append(el("p", "hint", `and ${trial.changes.length - SHOWN_CHANGES} more bones that change less`));
    for (const finding of trial.findings.slice(0, 5)) box.append(el("p", "hint", describeFinding(finding)));
    const decide = el("div", "decide");
    decide.append(
      button("Keep", "Keep this edit", () => void this.decide("keep"), "primary"),
      button("Drop", "Go back to how it was", () => void this.decide("drop")),
    );
    box.append(decide);
    this.trialBox.replaceChildren(box);
  }

  private async decide(what: "keep" | "drop" | "undo" | "redo"): Promise<void> {
    this.complain("");
    this.deciding = true;
    try {
      const desk = await this.server.decide(what);
      this.endTrial();
      await this.load(false);
      this.showDesk(desk);
    } catch (error) {
      this.complain((error as Error).message);
    }
    this.deciding = false;
    await this.catchUp();
    this.offer();
  }

  private showDesk(desk: Desk): void {
    this.undo.disabled = !desk.can_undo;
    this.redo.disabled = !desk.can_redo;
    this.progress.show(desk.stages);
    this.note.textContent = plain(desk.edits.length ? desk.saved : "");
    const rows = desk.edits.map((edit, i) => {
      const row = el("div", "edit");
      row.append(el("b", "", String(i + 1)), el("span", "", edit.text ?? edit.do));
      return row;
    });
    this.list.replaceChildren(...(rows.length ? rows : [el("p", "hint", "No edits yet.")]));
  }
}

/** What an edit changes, before and after: errors, numbers of bodies and joints, then bones. */
function trialTable({ before, after, changes }: Trial): HTMLTableElement {
  const table = el("table", "sides");
  const head = table.createTHead().insertRow();
  head.append(el("td"), el("th", "", "before"), el("th", "", "after"));
  const body = table.createTBody();
  const add = (name: string, was: string, now: string, look = "") => {
    const line = body.insertRow();
    line.className = look;
    line.append(el("td", "name", name), el("td", "", was), el("td", "", now));
    line.title = name;
  };
  for (const [name, key] of ERRORS)
    if (before[key] !== null || after[key] !== null)
      add(`${name}, rms mm`, millimetres(before[key]), millimetres(after[key]));
  for (const key of ["bodies", "joints"] as const)
    if (before[key] !== after[key]) add(`Number of ${key}`, String(before[key]), String(after[key]));
  for (const { what, before: was, after: now, unit } of [...changes].sort(byChange).slice(0, SHOWN_CHANGES)) {
    const look = now === null ? "gone" : was === null ? "new" : "";
    const text = (value: number | null) => (unit === "m" ? millimetres(value) : String(value));
    add(`${what}, ${unit === "m" ? "mm" : unit}`, was === null ? "–" : text(was), now === null ? "gone" : text(now), look);
  }
  return table;
}

/** Bones that vanish or appear first, then those that change most. */
function byChange(a: Change, b: Change): number {
  const size = ({ before, after }: Change) =>
    before === null || after === null ? Infinity : Math.abs(after - before);
  const [sizeA, sizeB] = [size(a), size(b)];
  return sizeA === sizeB ? 0 : sizeB - sizeA;
}
