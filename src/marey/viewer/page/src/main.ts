/** The page: reads the scene, builds the parts and joins them. */
import "./style.css";
import { decode, decodeBase64, type Blob } from "./decode";
import { Overlay } from "./draw/overlay";
import { openDevice } from "./draw/stage";
import { Theatre } from "./draw/theatre";
import { automation } from "./automation";
import { Editor } from "./edits/editor";
import { AnglesPanel } from "./panels/angles";
import { DetailsPanel } from "./panels/details";
import { el } from "./panels/dom";
import { ExportsPanel } from "./files/exports";
import { drawing, Help, press } from "./panels/help";
import { freeKeysAfterClicks } from "./panels/keyboard";
import { FindingsPanel, LengthsPanel, StagesPanel } from "./panels/lists";
import { LivePanel } from "./panels/live";
import { OptionsPanel } from "./panels/options";
import { TopBar } from "./panels/topbar";
import { TreePanel } from "./panels/tree";
import { readScene } from "./scene";
import { Server } from "./server";
import { State } from "./state";
import { Timeline } from "./timeline";

const UNDRAWN = [
  "This browser cannot draw in 3-D (WebGL 2), so the figure is not shown; all numbers are.",
  "Turn on graphics acceleration in the browser's settings and load the page again, or open it in an up-to-date Chrome, Edge, Firefox or Safari.",
];

const app = document.getElementById("app")!;
const inlined = document.getElementById("scene")!.textContent!.trim();

function startTheme(): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
}

/** Lay out the page around a scene that is still to come. */
function build(state: State, server: Server | null): { editor: Editor | null; theatre: Theatre | null } {
  const stage = el("main", "stage");
  const left = el("aside", "left");
  const right = el("aside", "right");
  left.ariaLabel = "Tree and display";
  right.ariaLabel = "Numbers";
  app.append(left, stage, right);
  const theatre = raise(stage, state);
  const findings = new FindingsPanel(state);
  const details = new DetailsPanel(state, (s) => server?.series(s) ?? Promise.resolve(null));
  const timeline = new Timeline(state, (finding) => findings.jump(finding));
  const help = new Help(state, theatre, timeline, () => toggleTheme(state));
  const topbar = new TopBar(state, theatre, () => toggleTheme(state), () => help.toggle());
  const editor = server && new Editor(state, server, stage, theatre, details, topbar);
  left.append(...(editor ? [editor.files.root] : []), new TreePanel(state).root);
  if (theatre) left.append(new OptionsPanel(state).root);
  right.append(...(editor ? [editor.root] : []), details.root, new AnglesPanel(state).root, new LengthsPanel(state).root);
  right.append(findings.root, new ExportsPanel(state, theatre, server).root, new StagesPanel(state).root);
  app.prepend(topbar.root);
  app.append(timeline.root, help.root);
  state.on("scene", () => app.classList.toggle("empty", !state.scene.takes.length));
  freeKeysAfterClicks();
  addEventListener("keydown", (event) => editor?.press(event) || help.press(event));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    startTheme();
    state.tell("theme");
  });
  return { editor, theatre };
}

/** Make the scene, or say in its place why there is none. */
function raise(stage: HTMLElement, state: State): Theatre | null {
  const device = openDevice();
  if (device) {
    const theatre = new Theatre(stage, state, device);
    new Overlay(theatre);
    return theatre;
  }
  const note = el("div", "undrawn");
  note.append(...UNDRAWN.map((text) => el("p", "", text)));
  stage.append(note);
  return null;
}

function fail(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  app.replaceChildren(el("p", "failure", `This page cannot show the take: ${message}.`));
}

/** Lay out the page of a stream. */
function buildLive(state: State, server: Server): { theatre: Theatre | null } {
  const stage = el("main", "stage");
  const left = el("aside", "left");
  const right = el("aside", "right");
  left.ariaLabel = "Tree and display";
  right.ariaLabel = "What still needs to move";
  app.classList.add("streaming");
  app.append(left, stage, right);
  const theatre = raise(stage, state);
  const topbar = new TopBar(state, theatre, () => toggleTheme(state), null);
  const live = new LivePanel(state, server, stage);
  topbar.extra.replaceWith(live.bar);
  left.append(new TreePanel(state).root);
  if (theatre) left.append(new OptionsPanel(state).root);
  right.append(live.root, new LengthsPanel(state).root);
  app.prepend(topbar.root);
  freeKeysAfterClicks();
  const shortcuts = theatre ? drawing(theatre) : [];
  addEventListener("keydown", (event) => live.press(event) || press(shortcuts, event));
  return { theatre };
}

function toggleTheme(state: State): void {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  state.tell("theme");
}

async function start(): Promise<void> {
  startTheme();
  const state = new State();
  const server = inlined ? null : new Server();
  const begun = performance.now();
  const blob: Blob = server ? await decode(await server.scene()) : await decodeBase64(inlined);
  const scene = readScene(blob);
  const decoded = performance.now() - begun;
  const live = scene.live && server;
  const { editor, theatre } = live ? { ...buildLive(state, live), editor: null } : build(state, server);
  state.show(scene);
  window.marey = automation(state, theatre, decoded);
  editor?.connect();
}

start().catch(fail);
