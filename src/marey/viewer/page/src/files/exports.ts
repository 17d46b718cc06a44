/** Write what is shown in other formats: by the server, else by the page or by a command. */
import type { Theatre } from "../draw/theatre";
import { placeColumns, save, stemOf, writeBvh, writeTable } from "./write";
import type { Export } from "../scene";
import type { Server } from "../server";
import type { State } from "../state";
import { button, el, options, row, section } from "../panels/dom";
import { plain } from "../panels/numbers";

/** A file to ask for: its suffix, and what a table holds. */
interface Wanted {
  suffix: string;
  content: string;
}

export class ExportsPanel {
  readonly root: HTMLElement;
  private body: HTMLElement;
  private said = el("div", "said");

  constructor(
    private state: State,
    private theatre: Theatre | null,
    private server: Server | null,
  ) {
    ({ root: this.root, body: this.body } = section("Export", false));
    this.said.setAttribute("role", "status");
    state.on("take", () => this.build());
  }

  private build(): void {
    const { exports } = this.state.scene;
    this.root.hidden = !exports.length;
    this.said.replaceChildren();
    const picture = row("Picture of the scene", button(".png", "Save the scene as a picture", () => this.savePicture()));
    picture.classList.add("export");
    const rows = this.server ? exports.map((one) => this.formatRow(one)) : [...this.ownRows(), this.command(exports)];
    this.body.replaceChildren(...rows, ...(this.theatre ? [picture] : []), this.said);
  }

  private formatRow(one: Export): HTMLElement {
    const buttons = wanted(one).map((file) =>
      button(file.content || file.suffix, `Save as ${file.suffix}${file.content && `: ${file.content}`}`, () => void this.ask(file)),
    );
    const line = row(one.contents.length ? `Table ${one.suffixes[0]}` : nameOf(one), ...buttons);
    line.classList.add("export");
    line.title = plain(one.title);
    return line;
  }

  private async ask(file: Wanted): Promise<void> {
    this.said.replaceChildren(el("p", "hint", `Writing ${file.suffix} …`));
    try {
      const { name, bytes, findings } = await this.server!.export(file.suffix, file.content);
      save(name, bytes);
      this.said.replaceChildren(el("p", "hint", `${name} is written.`), ...findings.map((text) => el("p", "hint", text)));
    } catch (error) {
      this.said.replaceChildren(el("p", "unsolved", (error as Error).message));
    }
  }

  /** What the page can write of its own data: every drawn frame, to 0.01 mm. */
  private ownRows(): HTMLElement[] {
    const { scene, performance } = this.state;
    const stem = stemOf(scene.title);
    const several = scene.subjects.length > 1;
    return performance.motions.flatMap((motion, subject) => {
      const figure = scene.subjects[subject];
      const mark = several ? `_${stemOf(figure.name)}` : "";
      const whose = several ? `${plain(figure.name)}: ` : "";
      const { frames, rate, stride } = performance.take;
      const bvh = button(".bvh", "Save the motion as BVH", () =>
        save(`${stem}${mark}.bvh`, new Blob([writeBvh(figure, motion, frames, rate / stride)])),
      );
      const places = button("joints", "Save the places of all joints in metres, as CSV", () =>
        save(`${stem}${mark}_joints.csv`, new Blob([writeTable(performance, ...placeColumns(performance, subject))])),
      );
      const angles = button("angles", "Save the clinical angles in degrees, as CSV", () => {
        const names = motion.angles.map(({ name }) => name.toLowerCase().replace(/ /g, "_"));
        const table = writeTable(performance, names, motion.angles.map(({ degrees }) => degrees));
        save(`${stem}${mark}_angles.csv`, new Blob([table]));
      });
      const tables = motion.angles.length ? [angles, places] : [places];
      return [row(`${whose}BVH`, bvh), row(`${whose}Table .csv`, ...tables)].map((line) => {
        line.classList.add("export");
        return line;
      });
    });
  }

  /** The command that writes a format, where there is no server to do it. */
  private command(exports: Export[]): HTMLElement {
    const files = exports.flatMap(wanted).filter(({ suffix }) => suffix !== ".html");
    const names = files.map(({ suffix, content }) => `${suffix}${content && `: ${content}`}`);
    const list = options("Format to write with marey", names, names[Math.max(names.indexOf(".fbx"), 0)]);
    const line = el("code");
    const spell = () => (line.textContent = plain(this.spell(files[Number(list.value)])));
    list.addEventListener("change", spell);
    spell();
    const box = el("div", "command");
    const head = row("By command", list);
    head.classList.add("export");
    box.append(head, line);
    return box;
  }

  private spell({ suffix, content }: Wanted): string {
    const { takes, title, bodies, edits } = this.state.scene;
    const name = stemOf(title) + suffix;
    const isInput = takes.some((take) => take.name === name); // never replaced
    const target = quote(isInput ? `${stemOf(title)}_marey${suffix}` : name);
    if (!bodies.length) return `marey convert ${quote(takes[0].name)} ${target}`;
    const parts = ["marey solve", ...takes.map(({ name }) => quote(name)), "-o", target];
    if (content) parts.push("--content", content);
    if (edits.length) parts.push("--edits", quote(`${takes[0].name}.edits.toml`));
    return parts.join(" ");
  }

  private savePicture(): void {
    const { stage } = this.theatre!;
    // The canvas has its pixels only until the browser takes over.
    stage.drawFine();
    stage.renderer.domElement.toBlob((picture) => picture && save(`${stemOf(this.state.scene.title)}.png`, picture));
  }
}

function wanted({ suffixes, contents }: Export): Wanted[] {
  if (contents.length) return contents.map((content) => ({ suffix: suffixes[0], content }));
  return suffixes.map((suffix) => ({ suffix, content: "" }));
}

/** The title of a format without what programs it comes from. */
function nameOf({ title }: Export): string {
  return plain(title.split(" (")[0]);
}

/** A word of a command line: in quotes where a shell needs them. */
function quote(word: string): string {
  return /^[\w./@%+=:,-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}
