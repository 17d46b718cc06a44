"""How good an answer is, and how two differ."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.edits import Edit
from marey.motion import Motion
from marey.numerics import geometry
from marey.report import Finding
from marey.skeleton import marker_columns
from marey.solution import Solution
from marey.take import Take, match_labels

Array = np.ndarray

CHANGED = 1e-4
"""Metres by which the length of a bone must change to be worth a word."""


@dataclass(frozen=True, slots=True)
class Score:
    """How good an answer is."""

    marker_rms: float
    """Root mean square distance of the markers that were seen from their places on the
    figures, in metres; of figures without markers, of their sensors."""

    gap_rms: float
    """Root mean square gap between the two bodies of a joint where they meet, over the
    joints of the tree, in metres; NaN without joints."""

    bodies: int
    joints: int
    """Joints of the tree."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something that is other than it was."""

    what: str
    """Such as "LeftFoot length"."""

    before: float | None
    """None where it was not there."""

    after: float | None
    unit: str


def score_of(solution: Solution) -> Score:
    """Return how good an answer is."""
    off = [
        _away(motion, bodies.take)
        for subject in solution.subjects
        for motion, bodies in zip(subject.motions, solution.bodies, strict=True)
    ]
    away = np.concatenate([np.zeros(0), *off])
    edge = solution.tree.edge
    gaps = solution.joints.residual[edge[edge >= 0]]
    return Score(_rms(away), _rms(gaps), len(edge), int((edge >= 0).sum()))


def _rms(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(known**2))) if len(known) else float("nan")


def _away(motion: Motion, take: Take) -> Float[Array, " seen"]:
    """Return how far all markers that were seen, or else sensors, are from places."""
    skeleton = motion.skeleton
    T = motion.T_world_joint()
    if skeleton.marker_labels:
        column = marker_columns(skeleton, take)
        recorded, joint = take.points, skeleton.marker_joint
        local = skeleton.marker_offset
    else:
        column = match_labels(skeleton.sensor_names, take.sensor_names)
        recorded, joint = take.T_world_sensor[..., :3, 3], skeleton.sensor_joint
        local = skeleton.T_joint_sensor[:, :3, 3]
    mine = column >= 0
    there = geometry.apply(T[:, joint[mine]], local[mine])
    off = np.linalg.norm(there - recorded[:, column[mine]], axis=-1)
    return np.asarray(off[np.isfinite(off)])


def changes_of(before: Solution, after: Solution, edit: Edit) -> tuple[Change, ...]:
    """Return the bones that changed, and joints that came or went.

    Args:
        before: The answer without the edit.
        after: The answer with it.
        edit: The edit; another name changes nothing else.
    """
    if edit.do == "rename":
        return ()
    return tuple(_changes(_lengths(before), _lengths(after)))


def _lengths(solution: Solution) -> dict[str, float]:
    several = len(solution.subjects) > 1
    lengths = {}
    for subject in solution.subjects:
        skeleton = subject.skeleton
        for name, length in zip(skeleton.names[1:], skeleton.lengths[1:], strict=True):
            lengths[f"{subject.name}: {name}" if several else name] = float(length)
    return lengths


def _changes(was: Mapping[str, float], now: Mapping[str, float]) -> Iterator[Change]:
    for name in dict.fromkeys((*was, *now)):
        old, new = was.get(name), now.get(name)
        if old is None or new is None or abs(old - new) > CHANGED:
            yield Change(f"{name} length", old, new, "m")


def new_findings(before: Solution, after: Solution, edit: Edit) -> tuple[Finding, ...]:
    """Return what is found only now: of a kind, a place or a time that was not.

    Args:
        before: The answer without the edit.
        after: The answer with it.
        edit: The edit; what it renames is not found anew.
    """
    if edit.do == "rename":
        return ()
    known = {(f.code, f.subject, f.frames) for f in before.report.findings}
    return tuple(
        f for f in after.report.findings if (f.code, f.subject, f.frames) not in known
    )


def in_words(edit: Edit, before: Score, after: Score) -> str:
    """Return what an edit does, in one line."""
    what = "marker error" if np.isfinite(after.marker_rms) else "gap"
    was, now = before.marker_rms, after.marker_rms
    if what == "gap":
        was, now = before.gap_rms, after.gap_rms
    was, now = 1e3 * was, 1e3 * now
    digits = 1 if max(was, now) >= 1.0 and abs(was - now) >= 0.1 else 2
    if f"{was:.{digits}f}" == f"{now:.{digits}f}":
        return f"{edit}: {what} stays {now:.{digits}f} mm"
    return f"{edit}: {what} {was:.{digits}f} -> {now:.{digits}f} mm"
