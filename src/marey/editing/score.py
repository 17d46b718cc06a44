"""Scores of a solution, and the difference between two solutions."""

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from marey.anatomy.whole_person import observed_parent
from marey.editing.kinds.moved_sensors import SENSOR_EDITS
from marey.edits import Edit
from marey.motion import Motion
from marey.numerics import Array, Float
from marey.numerics.robust import rms
from marey.numerics.thresholds import FEW, MARKER_NOISE_M
from marey.report import Finding
from marey.skeleton import marker_columns
from marey.solution import Solution
from marey.take import Take, match_labels

MIN_LENGTH_CHANGE_M = FEW * MARKER_NOISE_M
"""Smallest change of a bone's length, in metres, that is listed: a tenth of the noise
of markers. Higher lists fewer bones."""


@dataclass(frozen=True, slots=True)
class EditScore:
    """How well a solution fits its takes."""

    marker_rms: float
    """Root mean square distance of the markers seen from their positions on the
    skeletons, in metres; NaN without markers."""

    sensor_rms: float
    """The same of the sensors."""

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


def score_of(solution: Solution) -> EditScore:
    """Return the score of a solution."""
    posed = [
        (motion, bodies.take)
        for subject in solution.subjects
        for motion, bodies in zip(subject.motions, solution.bodies, strict=True)
    ]
    markers = [_marker_distances(motion, take).ravel() for motion, take in posed]
    sensors = [_sensor_distances(motion, take).ravel() for motion, take in posed]
    edge = solution.tree.edge
    gaps = solution.joints.residual[edge[edge >= 0]]
    return EditScore(
        marker_rms=rms(np.concatenate([np.zeros(0), *markers])),
        sensor_rms=rms(np.concatenate([np.zeros(0), *sensors])),
        gap_rms=rms(gaps),
        bodies=len(edge),
        joints=int((edge >= 0).sum()),
    )


def _marker_distances(motion: Motion, take: Take) -> Float[Array, "frame marker"]:
    """Return the distance of every marker from the skeleton's; NaN where unseen."""
    column = marker_columns(motion.skeleton, take)
    own = column >= 0
    distance = motion.marker_points()[:, own] - take.points[:, column[own]]
    return np.asarray(np.linalg.norm(distance, axis=-1))


def _sensor_distances(motion: Motion, take: Take) -> Float[Array, "frame sensor"]:
    """Return the distance of every sensor from the skeleton's; NaN where unseen."""
    skeleton = motion.skeleton
    column = match_labels(skeleton.sensor_names, take.sensor_names)
    own = column >= 0
    T = motion.T_world_joint()[:, skeleton.sensor_joint[own]]
    distance = T @ skeleton.T_joint_sensor[own] - take.T_world_sensor[:, column[own]]
    return np.asarray(np.linalg.norm(distance[..., :3, 3], axis=-1))


def list_changes(
    before: Solution, after: Solution, edit: Edit
) -> tuple[EditChange, ...]:
    """Return the bones whose length changes, and those that appear or disappear.

    Args:
        before: The solution without the edit.
        after: The solution with it.
        edit: The edit; another name changes nothing else.
    """
    if edit.do == "rename":
        return ()
    shared = _shared_names(before) | _shared_names(after)
    old, new = _bones(before, shared), _bones(after, shared)
    rows = [
        (
            (old.get(bone) or new[bone]).label,
            old[bone].length_m if bone in old else None,
            new[bone].length_m if bone in new else None,
        )
        for bone in (old | new)
    ]
    return tuple(
        EditChange(f"{label} length", was, now, "m")
        for label, was, now in rows
        if was is None or now is None or abs(was - now) > MIN_LENGTH_CHANGE_M
    )


class _Bone(NamedTuple):
    """A bone as a trial lists it."""

    label: str
    """The joint at its outer end; from a root, both ends."""

    length_m: float


Connection = frozenset[str]
"""The two bodies that meet at a joint, by name; of a root only its own."""


def _shared_names(solution: Solution) -> set[str]:
    """Return the names of joints that several subjects have."""
    counts = Counter(n for one in solution.subjects for n in one.skeleton.names)
    return {name for name, count in counts.items() if count > 1}


def _bones(solution: Solution, shared: set[str]) -> dict[frozenset[Connection], _Bone]:
    """Return the bones between observed joints, by the connections at both ends.

    A connection has the same name from either side, so a bone stays the same when the
    root, or the subject that has the bone, becomes another.

    Args:
        solution: The solution.
        shared: Names of joints that say their subject, because several have them.
    """
    bones = {}
    for subject in solution.subjects:
        skeleton, rest = subject.skeleton, subject.skeleton.rest()[:, :3, 3]
        names = [f"{subject.name}: {n}" if n in shared else n for n in skeleton.names]
        above = [observed_parent(skeleton, joint) for joint in range(len(names))]
        connections = [
            frozenset({names[joint], names[parent] if parent >= 0 else names[joint]})
            for joint, parent in enumerate(above)
        ]
        for joint in np.flatnonzero(skeleton.observed)[1:].tolist():
            parent = above[joint]
            is_from_root = above[parent] < 0
            label = (
                f"{names[parent]} to {names[joint]}" if is_from_root else names[joint]
            )
            length_m = float(np.linalg.norm(rest[joint] - rest[parent]))
            bone = frozenset({connections[parent], connections[joint]})
            bones[bone] = _Bone(label, length_m)
    return bones


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


def summarise(edit: Edit, before: EditScore, after: EditScore) -> str:
    """Return the effect of an edit on the score in one line."""
    sides = {
        "marker error": (before.marker_rms, after.marker_rms),
        "sensor error": (before.sensor_rms, after.sensor_rms),
        "gap": (before.gap_rms, after.gap_rms),
    }
    known = [what for what, (_, new) in sides.items() if np.isfinite(new)]
    is_of_sensors = edit.do in SENSOR_EDITS or bool(edit.sensor or edit.sensors)
    if is_of_sensors and "sensor error" in known:
        known = ["sensor error"]
    what = next(iter(known), "gap")
    old, new = sides[what]
    before_mm, after_mm = (f"{1e3 * value:.2f}" for value in (old, new))
    if before_mm == after_mm:
        return f"{edit}: {what} stays {after_mm} mm"
    return f"{edit}: {what} {before_mm} -> {after_mm} mm"
