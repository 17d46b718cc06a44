"""What `marey solve` prints and writes."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from marey.cli.style import COLOURS, rich_table
from marey.errors import OptionError, printable
from marey.io import format_of_suffix, read_skeleton, write
from marey.io.contract import Format
from marey.report import Finding, Table
from marey.segmentation import Template, read_template
from marey.skeleton import Skeleton
from marey.solution import Solution


def read_toml(path: Path, section: str) -> Mapping[str, Any]:
    """Return one section of a small TOML file.

    Raises:
        OptionError: If the file cannot be read or has no such section.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OptionError(str(path), found=str(error), needed="a TOML file") from error
    if not isinstance(content.get(section), dict):
        raise OptionError(
            str(path), found=list(content), needed=f"a section [{section}]"
        )
    return dict(content[section])


def marker_map(path: Path | None) -> Template | None:
    """Return the marker map of a TOML file or of a skeleton with markers."""
    if path is None:
        return None
    if path.suffix.lower() == ".toml":
        return read_template(path)
    return read_template(read_skeleton(path))


def lengths_table(skeleton: Skeleton, measured: Mapping[str, Any]) -> Table:
    """Return measured against calculated bone lengths, as OBrien2000 prints them.

    Args:
        skeleton: The calculated skeleton.
        measured: Length of the bone that ends in each joint, in metres, by joint name.

    Raises:
        OptionError: If a name is no joint or a length is no number.
    """
    rows: list[tuple[str | float, ...]] = []
    for name, length in measured.items():
        if name not in skeleton.names or not isinstance(length, int | float):
            needed = f"lengths in metres of {', '.join(skeleton.names)}"
            raise OptionError("measured", found=f"{name} = {length}", needed=needed)
        ours = float(skeleton.lengths[skeleton.index(name)])
        rows.append((name, 100.0 * length, 100.0 * ours, 100.0 * (length - ours)))
    return Table(("bone to", "measured cm", "calculated cm", "Δ cm"), tuple(rows))


def render(solution: Solution, tables: Mapping[str, Table]) -> RenderableType:
    """Return a solution's report as a page for the terminal."""
    parts: list[RenderableType] = []
    for subject in solution.subjects:
        bones = int((~subject.skeleton.is_end).sum())
        frames = sum(motion.n_frames for motion in subject.motions)
        parts.append(
            Text.assemble(
                (printable(subject.name), "bold"),
                f"  {bones} joints, {frames} frames in {len(subject.motions)} takes",
            )
        )
    for name, table in tables.items():
        parts += [Text(name, style="cyan"), rich_table(table)]
    parts += [_finding(finding) for finding in solution.report.findings]
    seconds = ", ".join(f"{k} {v:.3f}" for k, v in solution.report.seconds.items())
    return Group(*parts, Text(f"seconds: {seconds}", style="dim"))


def _finding(finding: Finding) -> Text:
    return Text(f"  {printable(str(finding), 400)}", style=COLOURS[finding.severity])


def write_solution(
    solution: Solution, path: Path, *, overwrite: bool, measured: Mapping[str, float]
) -> list[Path]:
    """Write a solution; several motions get the names of their subject and take.

    Args:
        solution: What to write.
        path: Where to; its suffix is the format.
        overwrite: Whether files that exist are replaced.
        measured: Bone lengths by tape measure, which a page shows.
    """
    wanted = format_of_suffix(path)
    skeletons_only = wanted.write_skeleton and not wanted.write_motion
    several = len(solution.subjects) > 1
    several |= len(solution.takes) > 1 and not skeletons_only
    if wanted.write_solution or not several:
        beside = measured if wanted.name == "html" else {}
        write(solution, path, measured=beside, overwrite=overwrite)
        return [path]
    written = []
    for subject in solution.subjects:
        if skeletons_only:
            target = _beside(path, wanted, subject.name)
            write(subject.skeleton, target, overwrite=overwrite)
            written.append(target)
            continue
        for take, motion in zip(solution.takes, subject.motions, strict=True):
            target = _beside(path, wanted, subject.name, Path(take.source.path).stem)
            write(motion, target, overwrite=overwrite)
            written.append(target)
    return written


def _beside(path: Path, wanted: Format, *parts: str) -> Path:
    """Return the path with more in its name, what no file system minds."""
    low = path.name.lower()
    suffix = next(suffix for suffix in wanted.suffixes if low.endswith(suffix))
    start = len(path.name) - len(suffix)
    named = (path.name[:start], *parts)
    safe = ("".join(c if c.isalnum() else "-" for c in part) for part in named)
    return path.with_name("_".join(safe) + path.name[start:])
