"""A take, solved with the skeletons of its subject and written."""

import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from marey.errors import DataError, OptionError
from marey.io import read_skeleton
from marey.io.atomic import temporary_path, writing
from marey.io.solution_files import write_solution
from marey.library.jobs.describe import is_labelled, read_unchanged
from marey.library.jobs.facts import facts_of, residual_mm
from marey.library.jobs.fit import name_subject, solve_common
from marey.library.jobs.labels import label_take
from marey.library.records import Record, finish_record
from marey.numerics.thresholds import MARKER_NOISE_M, SKIN_MOTION_M
from marey.pipeline.reporting.tables import add_tables
from marey.report import Finding
from marey.skeleton import Skeleton, marker_columns
from marey.solution import Solution, Subject
from marey.take import Take

OF_THE_FIT = frozenset(
    ("skeleton", "fit", "free_joints", "root", "tree", "template", "segment")
) | {"n_bodies", "joints", "weight"}
"""Options that decide bodies, tree and bones: the skeleton of the subject has them."""


MAX_RESIDUAL_RATIO = 2.0
"""Residual with the subject's skeleton, as a multiple of that with bones of its own,
beyond which a take with other bones is of another subject. Higher keeps more takes on
the skeleton. Takes of the same subject: 0.81 to 1.05, of another one: 4.9 and more, on
30 takes of 12 subjects of data, data2."""


def solve_take(
    library: str,
    out: str,
    planned: Record,
    fields: Mapping[str, Any],
    skeletons: Sequence[str],
    targets: Sequence[str],
    shown: Mapping[str, Any],
) -> Record:
    """Solve a take, write it in every format and then its record.

    Args:
        library: Folder of the recordings.
        out: Folder of the batch.
        planned: The record of this work.
        fields: Options of `marey.solve`.
        skeletons: Files of the subject's skeletons.
        targets: Files to write, relative to the folder of the batch.
        shown: What `describe_take` found in it.

    Raises:
        FormatError: If the recording cannot be read, or changed meanwhile.
        DataError: If there is nothing to solve in it.
        OutputError: If an output cannot be written.
    """
    folder = Path(out)
    take = read_unchanged(library, planned.name, planned.inputs)
    given = [read_skeleton(folder / name) for name in skeletons]
    solution = solve_with_skeletons(take, planned.subject, fields, given)
    # Times differ from run to run, and outputs must not.
    solution = replace(solution, report=replace(solution.report, seconds={}))
    paths = [folder / target for target in targets]
    written, lost = _write_outputs(solution, paths, planned.provenance())
    facts = facts_of(solution, [*solution.report.findings, *lost])
    return finish_record(
        planned, folder, "done", outputs=written, facts=dict(shown) | facts
    )


def solve_with_skeletons(
    take: Take, subject: str, fields: Mapping[str, Any], skeletons: Sequence[Skeleton]
) -> Solution:
    """Return the solution of a take with the skeletons that its subject has.

    Without one, the take is solved by itself. With one, a take without its labels is
    labelled by it. With several, the take is solved by itself first; each person or
    prop that has most markers of a skeleton is then solved with it.

    Args:
        take: The recording.
        subject: Whose it is.
        fields: Options of `marey.solve`.
        skeletons: Skeletons of the subject, with markers or sensors.
    """
    take = name_subject(take, subject)
    if not skeletons:
        return solve_common([take], subject, fields)
    kept = {name: value for name, value in fields.items() if name not in OF_THE_FIT}
    if len(skeletons) == 1:
        return _solve_with_one(take, subject, kept, skeletons[0])
    free = solve_common([take], subject, fields)
    subjects, findings = [], list(free.report.findings)
    for found in free.subjects:
        shared = _skeleton_of(found, skeletons)
        if shared is None:
            subjects.append(found)
            continue
        markers = marker_columns(shared, take)
        part = take.select(np.unique(markers[markers >= 0]))
        solved = solve_common([part], found.name, kept, skeleton=shared)
        subjects.append(Subject(found.name, shared, solved.subjects[0].motions))
        findings += [f for f in solved.report.findings if f not in findings]
    report = replace(free.report, findings=tuple(findings))
    return add_tables(replace(free, subjects=tuple(subjects), report=report))


def _skeleton_of(found: Subject, skeletons: Sequence[Skeleton]) -> Skeleton | None:
    """Return the skeleton with most of a subject's markers; None if none has half."""
    labels = set(found.skeleton.marker_labels)
    best = max(skeletons, key=lambda one: len(labels & set(one.marker_labels)))
    return best if 2 * len(labels & set(best.marker_labels)) > len(labels) else None


def _solve_with_one(
    take: Take, subject: str, fields: Mapping[str, Any], skeleton: Skeleton
) -> Solution:
    """Return the solution with the subject's only skeleton.

    A take of another subject is solved by itself: its bones are not on the skeleton, or
    the skeleton does not suit it (`_find_difference`).
    """
    try:
        solution = solve_common([take], subject, fields, skeleton=skeleton)
    except OptionError as error:
        if error.option != "skeleton":
            raise
        alone = solve_common([take], subject, fields)
        return _add_finding(alone, _other_subject(subject, "are not on its skeleton"))
    has_other_labels = bool(skeleton.marker_labels and take.labels) and not (
        (marker_columns(skeleton, take) >= 0).any()
    )
    if has_other_labels and not is_labelled(take):
        has_other_labels = False
        solution = _solve_labelled(take, subject, fields, skeleton, solution)
    differs = any(f.code == "skeleton-differs" for f in solution.report.findings)
    if not (differs or _residual(solution) > 1e3 * SKIN_MOTION_M):
        return solution
    try:
        alone = solve_common([take], subject, fields)
    except DataError:  # It shows too little without the skeleton.
        return solution
    ratio = _residual(solution) / max(_residual(alone), 1e3 * MARKER_NOISE_M)
    how = _find_difference(ratio, has_other_labels=differs and has_other_labels)
    return _add_finding(alone, _other_subject(subject, how, ratio)) if how else solution


def _find_difference(ratio: float, *, has_other_labels: bool) -> str:
    """Return why bones are of another subject; "" if they are not.

    Args:
        ratio: Residual with the skeleton as a multiple of that with bones of its own.
        has_other_labels: Whether bones differ and the skeleton has none of the labels.
    """
    if has_other_labels:
        return "differ, and so do all labels"
    if ratio > MAX_RESIDUAL_RATIO:
        return f"of its skeleton give {ratio:.1f} times the residual"
    return ""


def _other_subject(subject: str, how: str, ratio: float = math.nan) -> Finding:
    message = (
        f"not a take of {subject}: bones {how}. It is solved by itself; give it a "
        "subject of its own"
    )
    return Finding("other-subject", "attach", "error", message, subject, value=ratio)


def _solve_labelled(
    take: Take,
    subject: str,
    fields: Mapping[str, Any],
    skeleton: Skeleton,
    unlabelled: Solution,
) -> Solution:
    """Return the solution with the labels of the skeleton, if it fits better."""
    labelled = label_take(take, skeleton, unlabelled.subjects[0].motions[0])
    solution = solve_common([labelled], subject, fields, skeleton=skeleton)
    if not _residual(solution) < _residual(unlabelled):
        return unlabelled
    known = sum(a != b for a, b in zip(take.labels, labelled.labels, strict=True))
    message = (
        f"{known} of {len(take.labels)} markers are labelled as on the skeleton of the "
        "subject; check left and right"
    )
    finding = Finding("labelled", "attach", "info", message, value=float(known))
    return _add_finding(solution, finding)


def _add_finding(solution: Solution, finding: Finding) -> Solution:
    findings = (finding, *solution.report.findings)
    return replace(solution, report=replace(solution.report, findings=findings))


def _residual(solution: Solution) -> float:
    rms, _ = residual_mm(solution.report.tables.get("residuals"))
    return float("inf") if rms is None else rms


def _write_outputs(
    solution: Solution, targets: Sequence[Path], provenance: Mapping[str, Any]
) -> tuple[list[Path], list[Finding]]:
    """Write a solution; return all files, and what they could not hold.

    Some formats write several files. They are made in a folder of their own, so that
    every one is known, and then put in place.
    """
    written: list[Path] = []
    lost: list[Finding] = []
    for target in targets:
        with writing(target):
            files, of_target = _write_output(solution, target, provenance)
        written += files
        lost += of_target
    return written, lost


def _write_output(
    solution: Solution, target: Path, provenance: Mapping[str, Any]
) -> tuple[list[Path], list[Finding]]:
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = temporary_path(target.parent)
    scratch.mkdir()
    try:
        path = scratch / target.name
        lost = write_solution(solution, path, {}, provenance=provenance)[1]
        written = [target.parent / file.name for file in sorted(scratch.iterdir())]
        for path in written:
            os.replace(scratch / path.name, path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return written, list(lost)
