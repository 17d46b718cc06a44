"""Scores of a solution, and the difference between two solutions."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.anatomy.whole_person import observed_parent
from marey.edits import Edit
from marey.motion import Motion
from marey.numerics import geometry
from marey.numerics.thresholds import FEW, MARKER_NOISE_M
from marey.report import Finding
from marey.skeleton import marker_columns
from marey.solution import Solution
from marey.take import Take, match_labels

Array = np.ndarray

MIN_LENGTH_CHANGE_M = FEW * MARKER_NOISE_M
"""Smallest change of a bone's length, in metres, that is listed: a tenth of the noise
of markers. Higher lists fewer bones."""


@dataclass(frozen=True, slots=True)
class Score:
    """How well a solution fits its takes."""

    marker_rms: float
    """Root mean square distance of the markers seen from their positions on the
    skeletons, in metres; of skeletons without markers, the same of their sensors."""

    gap_rms: float
    """Root mean square residual of the joints of the tree, in metres; NaN without
    joints."""

    bodies: int
    """Number of bodies."""

    joints: int
    """Number of joints of the tree."""


@dataclass(frozen=True, slots=True)
class EditChange:
    """A value that an edit changes."""

    what: str
    """Such as "LeftFoot length"."""

    before: float | None
    """None where it did not exist."""

    after: float | None
    """None where it does not exist any more."""

    unit: str


def score_of(solution: Solution) -> Score:
    """Return the score of a solution."""
    residuals = [
        _residuals(motion, bodies.take)
        for subject in solution.subjects
        for motion, bodies in zip(subject.motions, solution.bodies, strict=True)
    ]
    edge = solution.tree.edge
    gaps = solution.joints.residual[edge[edge >= 0]]
    return Score(
        marker_rms=_rms(np.concatenate([np.zeros(0), *residuals])),
        gap_rms=_rms(gaps),
        bodies=len(edge),
        joints=int((edge >= 0).sum()),
    )


def _rms(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(finite**2))) if len(finite) else float("nan")


def _residuals(motion: Motion, take: Take) -> Float[Array, " seen"]:
    """Return the distance of every marker seen, or else sensor, from the skeleton's."""
    skeleton = motion.skeleton
    T = motion.T_world_joint()
    if skeleton.marker_labels:
        column = marker_columns(skeleton, take)
        measured, joint = take.points, skeleton.marker_joint
        offset = skeleton.marker_offset
    else:
        column = match_labels(skeleton.sensor_names, take.sensor_names)
        measured, joint = take.T_world_sensor[..., :3, 3], skeleton.sensor_joint
        offset = skeleton.T_joint_sensor[:, :3, 3]
    present = column >= 0
    predicted = geometry.apply(T[:, joint[present]], offset[present])
    distance = np.linalg.norm(predicted - measured[:, column[present]], axis=-1)
    return np.asarray(distance[np.isfinite(distance)])


def list_changes(
    before: Solution, after: Solution, edit: Edit
) -> tuple[EditChange, ...]:
    """Return the bones whose length changes, and joints that appear or disappear.

    Args:
        before: The solution without the edit.
        after: The solution with it.
        edit: The edit; another name changes nothing else.
    """
    if edit.do == "rename":
        return ()
    old, new = _lengths(before), _lengths(after)
    changed = [
        name
        for name in (old | new)
        if name not in old
        or name not in new
        or abs(old[name] - new[name]) > MIN_LENGTH_CHANGE_M
    ]
    return tuple(
        EditChange(f"{name} length", old.get(name), new.get(name), "m")
        for name in changed
    )


def _lengths(solution: Solution) -> dict[str, float]:
    """Return the distance of each observed joint from the observed one before it."""
    several = len(solution.subjects) > 1
    lengths = {}
    for subject in solution.subjects:
        skeleton, rest = subject.skeleton, subject.skeleton.rest()[:, :3, 3]
        for joint in np.flatnonzero(skeleton.observed)[1:].tolist():
            before = observed_parent(skeleton, joint)
            name = skeleton.names[joint]
            shown = f"{subject.name}: {name}" if several else name
            lengths[shown] = float(np.linalg.norm(rest[joint] - rest[before]))
    return lengths


def new_findings(before: Solution, after: Solution, edit: Edit) -> tuple[Finding, ...]:
    """Return the findings with a code, subject or frames that were not found before.

    Args:
        before: The solution without the edit.
        after: The solution with it.
        edit: The edit; a subject that only changes its name is not new.
    """
    if edit.do == "rename":
        return ()
    known = {(f.code, f.subject, f.frames) for f in before.report.findings}
    return tuple(
        f for f in after.report.findings if (f.code, f.subject, f.frames) not in known
    )


def summarise(edit: Edit, before: Score, after: Score) -> str:
    """Return the effect of an edit on the score in one line."""
    what, old, new = "marker error", before.marker_rms, after.marker_rms
    if not np.isfinite(new):
        what, old, new = "gap", before.gap_rms, after.gap_rms
    before_mm, after_mm = (f"{1e3 * value:.2f}" for value in (old, new))
    if before_mm == after_mm:
        return f"{edit}: {what} stays {after_mm} mm"
    return f"{edit}: {what} {before_mm} -> {after_mm} mm"
