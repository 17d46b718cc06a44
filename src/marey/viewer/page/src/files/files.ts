/** Recordings of the folder, and files dropped on the page. */
import type { Recording, Server } from "../server";
import type { State } from "../state";
import { el, section } from "../panels/dom";
import { keepFocus, Rover } from "../panels/keyboard";

export class FilesPanel {
  readonly root: HTMLElement;
  private note: HTMLElement;
  private list = el("div");
  private rover = new Rover(this.list, "[role=option]");
  private fold: (shut: boolean) => void;

  constructor(
    private state: State,
    private server: Server,
    private tell: (trouble: string) => void,
  ) {
    const { root, body, note, fold } = section("Files", false);
    [this.root, this.note, this.fold] = [root, note, fold];
    body.append(this.list, el("p", "hint drop", "Drop a recording on the page to open it."));
    this.root.classList.add("files");
    this.list.setAttribute("role", "listbox");
    this.list.ariaLabel = "Recordings of the folder";
    this.takeDrops();
    state.on("scene", () => void this.refresh());
  }

  async refresh(): Promise<void> {
    const { root, files } = await this.server.folder().catch(() => ({ root: "", files: [] }));
    this.note.textContent = root;
    keepFocus(this.list, () => {
      this.list.replaceChildren(...files.map((file) => this.row(file)));
      this.list.hidden = !files.length;
      this.rover.refresh(this.list.querySelector<HTMLElement>(".selected"));
    });
    const waiting = !this.state.scene.takes.length;
    this.root.hidden = waiting && !files.length;
    this.root.classList.toggle("roomy", waiting);
    if (waiting) this.fold(false);
  }

  private row(file: Recording): HTMLElement {
    const row = el("div", "row file-row");
    row.append(el("span", "text", file.path), el("span", "number", file.format));
    row.title = `${file.path}, ${size(file.bytes)}`;
    row.setAttribute("role", "option");
    const chosen = file.path === this.state.scene.title;
    row.ariaSelected = String(chosen);
    row.classList.toggle("selected", chosen);
    row.addEventListener("click", () => {
      this.tell("");
      void this.server.open(file.path).catch(this.complain);
    });
    return row;
  }

  private complain = (error: Error) => this.tell(error.message);

  private takeDrops(): void {
    const app = document.getElementById("app")!;
    addEventListener("dragover", (event) => {
      event.preventDefault();
      app.classList.add("dropping");
    });
    addEventListener("dragleave", () => app.classList.remove("dropping"));
    addEventListener("drop", (event) => {
      event.preventDefault();
      app.classList.remove("dropping");
      const [file] = event.dataTransfer?.files ?? [];
      if (file) this.upload(file);
    });
  }

  upload(file: File): void {
    this.tell("");
    void this.server.upload(file).catch(this.complain);
  }
}

function size(bytes: number): string {
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
