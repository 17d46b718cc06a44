/** The slim bar at the top: what is shown, from which side, and the look of the page. */
import type { Theatre } from "../draw/theatre";
import { rootMeanSquare } from "../performance";
import type { State } from "../state";
import { button, el, iconButton } from "./dom";
import { millimetres } from "./numbers";

export class TopBar {
  readonly root = el("header", "topbar");
  /** Room for what a server adds: files, undo, progress. */
  readonly extra = el("div", "extra");
  private title = el("div", "file");
  private takes = el("select", "takes");
  private score = el("div", "score");

  constructor(
    private state: State,
    theatre: Theatre | null,
    toggleTheme: () => void,
    toggleHelp: (() => void) | null,
  ) {
    const look = el("div", "views");
    look.append(iconButton("theme", "Dark or light (d)", toggleTheme));
    if (toggleHelp) look.append(iconButton("help", "Shortcuts (?)", toggleHelp));
    this.takes.title = this.takes.ariaLabel = "Take";
    this.takes.addEventListener("change", () => state.chooseTake(Number(this.takes.value)));
    this.root.append(el("h1", "brand", "marey"), this.title, this.takes, this.extra, this.score);
    if (theatre) this.root.append(this.views(theatre));
    this.root.append(look);
    state.on(["scene", "take"], () => this.build());
  }

  private views(theatre: Theatre): HTMLElement {
    const { state } = this;
    const views = el("div", "views");
    views.append(
      button("Front", "Look from the front (1)", () => theatre.look("front")),
      button("Side", "Look from the side (2)", () => theatre.look("side")),
      button("Top", "Look from above (3)", () => theatre.look("top")),
      button("¾", "Look at an angle (4)", () => theatre.look("three-quarter")),
      iconButton("fit", "Fit to view (f)", () => theatre.fit()),
    );
    const follow = iconButton("follow", "Follow the figure (c)", () =>
      state.set({ follow: !state.options.follow }),
    );
    state.on("options", () => (follow.ariaPressed = String(state.options.follow)));
    views.append(follow);
    return views;
  }

  private build(): void {
    const { scene, performance } = this.state;
    this.title.textContent = "";
    this.title.append(el("span", "", scene.title));
    this.takes.replaceChildren(
      ...scene.takes.map((take, i) => {
        const item = el("option", "", take.name);
        item.value = String(i);
        item.selected = i === performance.index;
        return item;
      }),
    );
    this.takes.hidden = scene.takes.length < 2;
    const parts = [];
    if (performance.take.markers.length) parts.push(`${performance.take.markers.length} markers`);
    if (performance.take.sensors.length) parts.push(`${performance.take.sensors.length} sensors`);
    if (scene.bodies.length) parts.push(`${scene.bodies.length} bodies`);
    const rms = rootMeanSquare(performance.residual);
    if (Number.isFinite(rms)) parts.push(`residual ${millimetres(rms)} mm rms`);
    if (performance.take.stride > 1) parts.push(`1 in ${performance.take.stride} frames drawn`);
    this.score.textContent = parts.join("   ");
  }
}
