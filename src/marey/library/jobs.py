"""What workers do: describe a take, fit the skeleton of a subject, solve a take.

Each function writes its own outputs and returns its record, so it can run anywhere that
sees the same folders.
"""

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from marey.anatomy import names as vrm
from marey.editing import solve
from marey.errors import FormatError
from marey.io import read, write
from marey.io.atomic import temporary_path
from marey.io.solution_files import write_solution
from marey.library.records import (
    Record,
    describe_outputs,
    hash_file,
    library_versions,
    skeleton_path,
    subject_record_path,
    take_record_path,
    write_record,
)
from marey.motion import Motion
from marey.report import Finding, Table
from marey.solution import Solution

PICTURE_SIZE = 100
"""Width and height of the drawing of a take, in its own units."""


def describe_take(path: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hash of a recording, and how much it shows.

    Args:
        path: The file.
        known: What an earlier run found; a file that did not change is not read again.

    Raises:
        FormatError: If it cannot be read.
    """
    try:
        sha256 = hash_file(Path(path))
    except OSError as error:
        raise FormatError(path, expected="a readable file", found=str(error)) from None
    if known.get("sha256") == sha256:
        return dict(known)
    take = read(path)
    seen = int(take.seen.sum()) + int(take.sensor_seen.sum())
    return {"sha256": sha256, "frames": take.n_frames, "positions": seen}


def fit_subject(
    library: str,
    out: str,
    subject: str,
    takes: Sequence[str],
    inputs: Mapping[str, str],
    fields: Mapping[str, Any],
    key: str,
    earlier_errors: Sequence[str] = (),
) -> Record:
    """Fit one skeleton to several takes of a subject, and write it with its record.

    Takes with several people or props have no single skeleton: none is written, and
    each take is solved by itself.

    Raises:
        DataError: If the takes have nothing in common.
        FormatError: If one of them cannot be read.
    """
    folder = Path(out)
    paths = [Path(library) / take for take in takes]
    solution = solve(paths, subject=subject, **_without_subject(fields))
    outputs: list[Path] = []
    if len(solution.subjects) == 1:
        outputs = [skeleton_path(folder, subject)]
        outputs[0].parent.mkdir(parents=True, exist_ok=True)
        write(solution.skeleton, outputs[0], overwrite=True)
    record = Record(
        kind="subject",
        name=subject,
        subject=subject,
        state="done",
        key=key,
        inputs={take: inputs[take] for take in takes},
        options=dict(fields),
        versions=library_versions(),
        outputs=describe_outputs(outputs, folder),
        facts=_facts_of(solution, solution.report.findings)
        | {"earlier_errors": list(earlier_errors)},
    )
    write_record(subject_record_path(folder, subject), record)
    return record


def solve_take(
    library: str,
    out: str,
    take: str,
    subject: str,
    sha256: str,
    skeleton: str,
    targets: Sequence[str],
    fields: Mapping[str, Any],
    key: str,
    described: Mapping[str, Any],
) -> Record:
    """Solve a take, write it in every format and then its record.

    Args:
        library: Folder of the recordings.
        out: Folder of the batch.
        take: Relative path of the recording.
        subject: Whose it is.
        sha256: Hash of the recording when the work was planned.
        skeleton: File of the subject's skeleton; "" if it has none.
        targets: Files to write, relative to the folder of the batch.
        fields: Options of `marey.solve`.
        key: Hash of all that the outputs depend on.
        described: What `describe_take` found.

    Raises:
        FormatError: If the recording cannot be read, or changed meanwhile.
        DataError: If there is nothing to solve in it.
        OutputError: If an output cannot be written.
    """
    folder, path = Path(out), Path(library) / take
    recording = read(path)
    if recording.source.sha256 != sha256:
        raise FormatError(
            path, expected="the file that was found", found="one that has changed since"
        )
    given: dict[str, Any] = {"skeleton": skeleton} if skeleton else {}
    solution = solve(recording, subject=subject, **_without_subject(fields), **given)
    written, lost = _write_outputs(solution, [folder / target for target in targets])
    record = Record(
        kind="take",
        name=take,
        subject=subject,
        state="done",
        key=key,
        inputs={take: sha256},
        options=dict(fields),
        versions=library_versions(),
        outputs=describe_outputs(written, folder),
        facts=dict(described) | _facts_of(solution, [*solution.report.findings, *lost]),
    )
    write_record(take_record_path(folder, take), record)
    return record


def _without_subject(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "subject"}


def _write_outputs(
    solution: Solution, targets: Sequence[Path]
) -> tuple[list[Path], list[Finding]]:
    """Write a solution; return all files, and what they could not hold.

    Some formats write several files. They are made in a folder of their own, so that
    every one is known, and then put in place.
    """
    written: list[Path] = []
    lost: list[Finding] = []
    for target in targets:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = temporary_path(target.parent)
        scratch.mkdir()
        try:
            lost += write_solution(solution, scratch / target.name, {})[1]
            for file in sorted(scratch.iterdir()):
                os.replace(file, target.parent / file.name)
                written.append(target.parent / file.name)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return written, lost


# --- facts for the index --------------------------------------------------------------


def _facts_of(solution: Solution, findings: Iterable[Finding]) -> dict[str, Any]:
    """Return what the index shows of a solution."""
    found = list(findings)
    take = solution.takes[0]
    tables = solution.report.tables
    rms, worst_bone = _residual_mm(tables.get("residuals"))
    return {
        "n_frames": take.n_frames,
        "rate": float(take.rate),
        "n_markers": len(take.labels),
        "n_sensors": len(take.sensor_names),
        "seen": _share_seen(solution),
        "subjects": [subject.name for subject in solution.subjects],
        "n_joints": sum(s.skeleton.n_joints for s in solution.subjects),
        "residual_mm": rms,
        "worst_bone": worst_bone,
        "bones": [list(row) for row in tables["bones"].rows]
        if "bones" in tables
        else [],
        "codes": dict(sorted(Counter(f.code for f in found).items())),
        "findings": [
            [f.severity, f.stage, f.code, f.subject, f.message] for f in found
        ],
        "picture": draw_picture([subject.motions[0] for subject in solution.subjects]),
    }


def _share_seen(solution: Solution) -> float:
    seen = [
        np.concatenate([t.seen.ravel(), t.sensor_seen.ravel()]) for t in solution.takes
    ]
    together = np.concatenate(seen)
    return round(float(together.mean()), 4) if len(together) else 0.0


def _residual_mm(table: Table | None) -> tuple[float | None, str]:
    """Return the rms of all residuals in mm, and the bone with the largest one."""
    if table is None:
        return None, ""
    bone, rms = table.columns.index("bone"), table.columns.index("rms mm")
    of_bone: dict[str, list[float]] = {}
    for row in table.rows:
        of_bone.setdefault(str(row[bone]), []).append(float(row[rms]) ** 2)
    squares = [square for all_of_one in of_bone.values() for square in all_of_one]
    worst = max(of_bone, key=lambda name: float(np.mean(of_bone[name])))
    return round(float(np.sqrt(np.mean(squares))), 3), worst


def draw_picture(motions: Sequence[Motion]) -> dict[str, str]:
    """Return the bones in the middle of a take as SVG paths: left, right and others.

    The view is level, along the horizontal direction in which the figures are flattest.
    """
    segments: list[tuple[str, Any]] = []
    for motion in motions:
        joints = motion.T_world_joint()[..., :3, 3]
        known = np.flatnonzero(np.isfinite(joints).all(axis=(1, 2)))
        if not len(known):
            continue
        places = joints[known[len(known) // 2]]
        for joint, parent in enumerate(motion.skeleton.parent):
            if parent >= 0:
                side = vrm.side_of(motion.skeleton.names[joint])
                segments.append((side, places[[parent, joint]]))
    if not segments:
        return {}
    flat = _project(np.array([ends for _, ends in segments]))
    paths: dict[str, str] = {}
    for (side, _), ((x0, y0), (x1, y1)) in zip(segments, flat, strict=True):
        name = side.lower() or "middle"
        paths[name] = paths.get(name, "") + f"M{x0} {y0}L{x1} {y1}"
    return paths


def _project(segments: Any) -> Any:
    """Return segments (segment, end, 3) as whole numbers in the square of a picture."""
    level = segments.reshape(-1, 3)[:, :2]
    _, _, axes = np.linalg.svd(level - level.mean(axis=0), full_matrices=False)
    flat = np.stack([segments[..., :2] @ axes[0], -segments[..., 2]], axis=-1)
    low, high = flat.min(axis=(0, 1)), flat.max(axis=(0, 1))
    scale = PICTURE_SIZE / max(float((high - low).max()), 1e-9)
    centred = (flat - (low + high) / 2.0) * scale + PICTURE_SIZE / 2.0
    return np.rint(centred).astype(int)
