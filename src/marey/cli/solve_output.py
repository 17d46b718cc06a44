"""Input files and output of `marey solve`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from marey.cli.application import render_cause, rich_table
from marey.errors import OptionError, printable
from marey.io import read_skeleton
from marey.options import read_toml
from marey.report import Report, Table, count_noun
from marey.segmentation import Template, read_template
from marey.skeleton import Skeleton
from marey.solution import Solution, Subject

MAX_ROWS = {"residuals": 10}
"""Largest number of rows of a table that the terminal shows; JSON has all."""

BY_SUBJECT = ("bones", "joints", "to move")
"""Tables that the terminal shows subject by subject."""

TINY_MM = 0.1
"""Length below which a bone or a residual is left out in the terminal, in millimetres:
ends of sensors without an extent, and poses that a program computed."""

MIN_SECONDS = 0.1
"""Time of a stage that the terminal shows, in seconds."""

TITLES = {
    "bones": "bones: lengths, and standard deviations of those that are observed",
    "joints": "joints: standard deviations of centres (along the worst direction) and "
    "angles, and in how many frames the angle is determined",
    "to move": "to move: joints that need more motion, and how far each has come",
    "sensors": "sensors: how well each fits its body, and how sure its place there is",
    "residuals": "residuals: distances of markers and sensors from the model",
    "plants": "plants: when feet stand, found in the motion",
    "pose": "motions: distances of markers from the model, and foot plants",
}
"""Titles of tables in the terminal."""


def read_section(path: Path, section: str) -> Mapping[str, Any]:
    """Return one section of a small TOML file.

    Raises:
        OptionError: If the file cannot be read or has no such section.
    """
    content = read_toml(section, path)
    if not isinstance(content.get(section), dict):
        raise OptionError(
            str(path), found=list(content), needed=f"a section [{section}]"
        )
    return dict(content[section])


def read_marker_map(path: Path) -> Template:
    """Return the marker map of a TOML file or of a skeleton with markers."""
    if path.suffix.lower() == ".toml":
        return read_template(path)
    return read_template(read_skeleton(path))


def lengths_table(skeleton: Skeleton, measured: Mapping[str, Any]) -> Table:
    """Return a table of measured and estimated bone lengths, as in OBrien2000.

    Args:
        skeleton: The estimated skeleton.
        measured: Length of the bone that ends in each joint, in metres, by joint name.

    Raises:
        OptionError: If a name is no joint or a length is no number.
    """
    rows: list[tuple[str | float, ...]] = []
    for name, length in measured.items():
        if name not in skeleton.names or not isinstance(length, int | float):
            needed = f"lengths in metres of {', '.join(skeleton.names)}"
            raise OptionError("measured", found=f"{name} = {length}", needed=needed)
        estimated = float(skeleton.lengths[skeleton.index(name)])
        rows.append(
            (name, 100.0 * length, 100.0 * estimated, 100.0 * (length - estimated))
        )
    return Table(("bone to", "measured cm", "calculated cm", "Δ cm"), tuple(rows))


def render(solution: Solution, tables: Mapping[str, Table]) -> RenderableType:
    """Return subjects, tables, causes and times of a solution for the terminal."""
    parts: list[RenderableType] = list(map(_headline, solution.subjects))
    for name, table in tables.items():
        if rendered := list(_render(name, table)):
            parts += [Text(TITLES.get(name, name), style="cyan"), *rendered]
    parts += map(render_cause, solution.report.causes)
    return Group(*parts, Text(_times(solution.report.seconds), style="dim"))


def _render(name: str, table: Table) -> Iterator[RenderableType]:
    """Return a table without the rows that say nothing, and how many there are."""
    rows = [row for row in table.rows if _says_something(name, row)]
    count = MAX_ROWS.get(name, len(rows))
    for subject, part in _parts(name, Table(table.columns, tuple(rows[:count]))):
        if subject:
            yield Text(subject, style="bold")
        yield rich_table(_without_constants(part))
    hidden = len(table.rows) - min(count, len(rows))
    if name in MAX_ROWS and hidden:
        below = f"{hidden} more with --json" if rows else f"none above {TINY_MM:g} mm"
        yield Text(below, style="dim")


def _parts(name: str, table: Table) -> Iterator[tuple[str, Table]]:
    """Yield the table of each subject with its name; one without where all are one."""
    names = [str(row[-1]) for row in table.rows] if name in BY_SUBJECT else [""]
    for subject in dict.fromkeys(names if table.rows else ()):
        rows = [row for row in table.rows if subject in ("", row[-1])]
        title = printable(subject) if len(set(names)) > 1 else ""
        yield title, Table(table.columns, tuple(rows))


def _says_something(name: str, row: Sequence[Any]) -> bool:
    """Return whether a bone has a length, or a target a residual that can be seen.

    A motion must have markers or plants.
    """
    if name == "pose":
        return any(cell not in ("", 0) for cell in row[2:])
    number = {"bones": 2, "residuals": 2}.get(name)
    return number is None or row[number] == "" or float(row[number]) >= TINY_MM


def _times(seconds: Mapping[str, float]) -> str:
    """Return the time of a solve, and of the stages that took some of it."""
    long = [f"{k} {v:.1f}" for k, v in seconds.items() if v >= MIN_SECONDS]
    return (
        f"{sum(seconds.values()):.1f} seconds" + (": " * bool(long)) + ", ".join(long)
    )


def _headline(subject: Subject) -> Text:
    """Return what a subject has: joints, frames, seconds and takes."""
    joints = int((~subject.skeleton.is_end).sum())
    frames = sum(motion.n_frames for motion in subject.motions)
    seconds = sum(motion.n_frames / motion.rate for motion in subject.motions)
    takes = count_noun(len(subject.motions), "take")
    parts = f"{joints} joints" if joints > 1 else "1 rigid body"
    facts = f"  {parts}, {frames} frames ({seconds:.1f} s) in {takes}"
    return Text.assemble((printable(subject.name), "bold"), facts)


def _without_constants(table: Table) -> Table:
    """Return the table without blank columns, and subject and take if there is one."""

    def says_something(k: int) -> bool:
        cells = {row[k] for row in table.rows}
        is_one = table.columns[k] in ("subject", "take") and len(cells) == 1
        return not is_one and cells != {""}

    kept = [k for k in range(len(table.columns)) if says_something(k)]
    rows = tuple(tuple(row[k] for k in kept) for row in table.rows)
    return Table(tuple(table.columns[k] for k in kept), rows)


def report_data(report: Report, tables: Mapping[str, Table]) -> dict[str, Any]:
    """Return causes, findings, tables and seconds per stage, as plain values."""
    return {
        "causes": [
            {
                "code": cause.code,
                "stage": cause.stage,
                "severity": cause.severity,
                "count": len(cause.findings),
                "message": cause.message,
            }
            for cause in report.causes
        ],
        "findings": [asdict(finding) for finding in report.findings],
        "tables": {name: asdict(table) for name, table in tables.items()},
        "seconds": dict(report.seconds),
    }
