"""Output of `marey papers`: tables, figures and files of the experiments."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from marey.cli.application import (
    err,
    make_folder,
    out,
    render_finding,
    rich_table,
    show_progress,
)
from marey.errors import MissingExtraError, printable
from marey.io.atomic import write_atomic
from marey.io.formats.html import to_json
from marey.papers import REGISTRY, Drawing, Effort, Experiment, experiments, run
from marey.plot.saving import encode_figure
from marey.plot.style import can_draw, new_figure, plot_style
from marey.report import Finding, Table

NO_FIGURES = Finding(
    "figures-missing",
    "papers",
    "warning",
    "figures are not drawn because matplotlib is not installed: "
    "pip install 'marey[plots]'",
)


def render_experiment_list() -> RenderableType:
    """Return the papers and their experiments as a table for the terminal."""
    shown = RichTable("paper", "experiment", "what it is", box=None, header_style="dim")
    for paper in REGISTRY:
        for i, (name, function) in enumerate(experiments(paper).items()):
            what = (function.__doc__ or "").split("\n")[0].rstrip(".")
            shown.add_row(paper if i == 0 else "", name, escape(what))
    return shown


def experiment_names() -> dict[str, list[str]]:
    """Return the names of the experiments by paper."""
    return {paper: list(experiments(paper)) for paper in REGISTRY}


def run_experiments(
    paper: str,
    effort: Effort,
    *,
    only: Sequence[str],
    folder: Path,
    figures: bool | None,
    quiet: bool,
) -> dict[str, Any]:
    """Run a paper's experiments; print and write each result as soon as it is there.

    Args:
        paper: A key of `marey.papers.REGISTRY`.
        effort: Number of runs and seed; progress is shown in a terminal.
        only: Names of experiments; all when empty.
        folder: Folder for tables and figures.
        figures: Whether to draw figures; None = if matplotlib is installed.
        quiet: Whether the tables are not printed.

    Returns:
        Tables and names of figures.

    Raises:
        MissingExtraError: If figures are requested and matplotlib is missing.
    """
    draw = can_draw() if figures is None else figures
    if draw and not can_draw():
        raise MissingExtraError("matplotlib", "plots")
    done: dict[str, Experiment] = {}
    with show_progress(paper) as progress:
        effort = replace(effort, progress=progress)
        for name, experiment in run(paper, effort, only):
            done[name] = experiment
            _write(folder, paper, done, _draw(experiment.figures) if draw else {})
            if not quiet:
                out.print(render(experiment))
    if figures is None and not draw:
        err.print(render_finding(NO_FIGURES))
    return experiments_data(done)


def render(experiment: Experiment) -> RenderableType:
    """Return the tables of one experiment for the terminal."""
    parts: list[RenderableType] = [Text(f"\n{experiment.title}", style="bold")]
    if experiment.note:
        parts.append(Text(experiment.note, style="dim"))
    for caption, table in experiment.tables.items():
        parts += [Text(f"\n{caption}", style="cyan"), rich_table(table)]
    return Group(*parts)


def experiments_data(done: Mapping[str, Experiment]) -> dict[str, Any]:
    """Return the tables and the names of the figures of experiments."""
    return {
        name: {
            "title": one.title,
            "note": one.note,
            "tables": {caption: asdict(table) for caption, table in one.tables.items()},
            "figures": [f"{figure}.png" for figure in one.figures],
        }
        for name, one in done.items()
    }


def _write(
    folder: Path,
    paper: str,
    done: Mapping[str, Experiment],
    pictures: Mapping[str, bytes],
) -> None:
    """Write all tables and the new figures, all of them or none."""
    make_folder(folder)
    text = json.dumps(to_json(experiments_data(done)), indent=1, ensure_ascii=False)
    files = {f"{name}.png": picture for name, picture in pictures.items()}
    files["tables.json"] = text.encode()
    files["tables.md"] = _markdown(paper, done).encode()
    write_atomic({folder / name: (content,) for name, content in files.items()})


def _draw(figures: Mapping[str, Drawing]) -> dict[str, bytes]:
    """Return the figures as PNG files, by name."""
    pictures = {}
    for name, draw in figures.items():
        with plot_style():
            figure = new_figure()
            draw(figure)
        pictures[name] = encode_figure(figure)
    return pictures


def _markdown(paper: str, done: Mapping[str, Experiment]) -> str:
    blocks = [f"# {paper}"]
    for experiment in done.values():
        blocks += [f"## {experiment.title}", experiment.note]
        for caption, table in experiment.tables.items():
            blocks += [f"### {caption}", _markdown_table(table)]
        blocks += [f"![{name}]({name}.png)" for name in experiment.figures]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _markdown_table(table: Table) -> str:
    lines = [table.columns, ("---", *("--:" for _ in table.columns[1:])), *table.rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value: str | float) -> str:
    text = value if isinstance(value, str) else f"{value:.6g}"
    return printable(text).replace("|", "\\|")
