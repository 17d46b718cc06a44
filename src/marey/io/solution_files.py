"""A solution as files: one, or one per subject and take where a format holds one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from marey.io import format_for_suffix, usual_content, write
from marey.io.atomic import check_target
from marey.io.contract import Format
from marey.io.text.names import make_unique
from marey.motion import Motion
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.solution import Solution


def check_solution_files(
    path: Path, content: str | None, *, overwrite: bool, inputs: Sequence[str]
) -> None:
    """Refuse an unusable output path, and those of the files beside it, before a solve.

    Args:
        path: File to write; its suffix selects the format.
        content: What of the solution is written; None = what is usual.
        overwrite: Whether existing files may be replaced.
        inputs: Files that are solved; these are never replaced.

    Raises:
        OptionError: If a path is an input, or exists and `overwrite` is False.
        OutputError: If the folder does not exist or cannot be written.
    """
    beside = format_for_suffix(path).companions if content is None else ()
    for target in (path, *map(path.with_suffix, beside)):
        check_target(target, overwrite=overwrite, inputs=inputs)


def write_solution(
    solution: Solution, path: Path, measured: Mapping[str, float], **options: Any
) -> tuple[list[Path], list[Finding]]:
    """Write a solution to one file, or one file per subject and take.

    A format that contains only one motion gets several files, which are named after
    their subject and take; motions without any pose get none. marey's own files keep
    its names of joints.

    Args:
        solution: The solution.
        path: File to write; its suffix selects the format.
        measured: Measured bone lengths in metres, which an HTML page shows.
        **options: Other options of `marey.write`, such as `overwrite`.

    Returns:
        The written files, and what they do not hold.
    """
    target_format = format_for_suffix(path)
    if target_format.write_solution and not target_format.renames:
        options["names"] = None
    holds_all = target_format.write_solution and not target_format.one_subject
    parts = _parts_of(solution, target_format)
    if holds_all or len(parts) <= 1:
        page_lengths = measured if target_format.name == "html" else {}
        return [path], [*write(solution, path, measured=page_lengths, **options)]
    parts = [part for part in parts if _has_poses(part[0])] or parts
    targets = _paths_with_parts(path, target_format, [names for _, names in parts])
    lost: list[Finding] = []
    for (part, _), target in zip(parts, targets, strict=True):
        if target_format.write_table and isinstance(part, Motion):
            content = options.get("content") or usual_content(part.skeleton)
            lost += write(part, target, **options | {"content": content})
        else:
            lost += write(part, target, **options)
    return targets, lost


def _parts_of(
    solution: Solution, target_format: Format
) -> list[tuple[Skeleton | Motion, tuple[str, ...]]]:
    """Return what a format holds of each subject and take, with their names."""
    if target_format.write_skeleton and not target_format.write_motion:
        return [(s.skeleton, (s.name,)) for s in solution.subjects]
    stems = [Path(take.source.path).stem for take in solution.takes]
    return [
        (motion, (subject.name, stem))
        for subject in solution.subjects
        for motion, stem in zip(subject.motions, stems, strict=True)
    ]


def _has_poses(part: Skeleton | Motion) -> bool:
    """Return whether a part is a skeleton, or a motion with a pose in some frame."""
    return isinstance(part, Skeleton) or bool(np.isfinite(part.wxyz).any())


def _paths_with_parts(
    path: Path, target_format: Format, parts: Sequence[Sequence[str]]
) -> list[Path]:
    """Return the path with more parts in its name, in safe characters, each unique."""
    lower_name = path.name.lower()
    suffix = next(
        suffix for suffix in target_format.suffixes if lower_name.endswith(suffix)
    )
    start = len(path.name) - len(suffix)
    names = (
        "_".join("".join(c if c.isalnum() else "-" for c in part) for part in of_one)
        for of_one in parts
    )
    stem, end = path.name[:start], path.name[start:]
    return [path.with_name(f"{stem}_{name}{end}") for name in make_unique([*names])]
