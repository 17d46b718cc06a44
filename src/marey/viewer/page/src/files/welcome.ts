/** What the page shows before a recording is open: how to get one. */
import type { Server } from "../server";
import type { State } from "../state";
import { button, el } from "../panels/dom";
import type { FilesPanel } from "./files";

export class Welcome {
  readonly root = el("div", "welcome");

  constructor(state: State, server: Server, files: FilesPanel, tell: (trouble: string) => void) {
    const chooser = el("input");
    chooser.type = "file";
    chooser.hidden = true;
    chooser.ariaLabel = "Recording to open";
    chooser.addEventListener("change", () => {
      const [file] = chooser.files ?? [];
      if (file) files.upload(file);
      chooser.value = "";
    });
    const buttons = el("div", "decide");
    buttons.append(
      button("Choose a file …", "Open a recording of this machine", () => chooser.click(), "primary"),
      button("Show me a generated performer", "Make a recording of a performer who walks, and solve it", () => {
        tell("");
        void server.generate().catch((error: Error) => tell(error.message));
      }),
    );
    this.root.append(
      el("h2", "", "Drop a recording here"),
      el("p", "", "Markers or sensors in C3D, TRC, CSV, MVNX, BVH and more. marey finds the skeleton and shows how sure it is of every bone."),
      buttons,
      chooser,
      el("p", "hint", "Nothing leaves this machine."),
    );
    state.on("scene", () => (this.root.hidden = state.scene.takes.length > 0));
  }
}
