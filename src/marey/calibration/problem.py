"""A skeleton and takes as a calibration sees them: segments, markers, sessions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from marey.calibration.unknowns import HINGE, Axis, Figure, Shape
from marey.errors import DataError
from marey.numerics import geometry
from marey.numerics.procrustes import points_seen
from marey.skeleton import Skeleton, marker_columns
from marey.take import Take, match_labels

Array = np.ndarray

FIRST_NOISE = 3e-3
"""Scale of a marker before it is known, in metres."""

ARM = 0.2
"""A sensor stands for four points: its origin, and one so far along each axis, in
metres. Noise of 1 mm and of 0.4 degrees then weigh alike."""

HARD_HINGE = 0.005
"""How far a mechanical hinge keeps from its axis, in radians."""

FEWEST_FRAMES = 5
"""Frames without which a session is left out."""

SENSOR_POINTS = np.concatenate([np.zeros((1, 3)), ARM * np.eye(3)])


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is to be calibrated, and where it came from in the skeleton."""

    skeleton: Skeleton
    figure: Figure
    shape: Shape
    sessions: tuple[Float[Array, "_ marker 3"], ...]
    """Markers of each session, in the order of the figure, in metres."""

    session_of: tuple[int, ...]
    """The session of each take; -1 where too little was seen to use it."""

    segment_of: Int[Array, " joint"]
    """The segment that moves each joint."""

    joint_of: Int[Array, " segment"]
    place: Float[Array, "joint 3"]
    """Each joint in its segment; zero where the segment is its own."""

    source: tuple[tuple[str, int], ...]
    """Of each marker of the figure: "marker" and its number in the skeleton, or
    "sensor" and four times its number, plus which of its four points it is."""


def problem_of(
    skeleton: Skeleton, takes: Sequence[Take], session_of: Sequence[int]
) -> Problem:
    """Return the problem; markers that were never seen are left out.

    So are sessions of fewer than `FEWEST_FRAMES` frames; there may be none left.

    Raises:
        DataError: If there are no takes, or the skeleton's markers and sensors are
            never seen in them.
    """
    if not takes:
        raise DataError("calibrate", found="no takes", needed="at least one")
    joined = _sessions(skeleton, takes, session_of)
    names = list(joined)
    segment_of, joint_of, place = _segments(skeleton)
    joint, at, labels, source = _worn(skeleton)
    seen = np.zeros(len(joint), dtype=bool)
    for x in joined.values():
        seen |= points_seen(x).any(axis=0)
    order = np.argsort(segment_of[joint], kind="stable")
    order = order[seen[order]]
    owner = segment_of[joint[order]]
    figure, axis = _figure(skeleton, joint_of, segment_of, owner)
    shape = Shape(
        o=_joints(skeleton, joint_of, place),
        m=np.repeat((place[joint] + at)[None, order], len(names), axis=0),
        a=axis,
        b=axis.copy(),
        noise=np.full((len(names), len(order)), FIRST_NOISE),
        usual=np.repeat(np.eye(3)[None], len(joint_of), axis=0),
    )
    return Problem(
        skeleton,
        replace(figure, labels=tuple(labels[k] for k in order)),
        shape,
        tuple(x[:, order] for x in joined.values()),
        tuple(names.index(mine) if mine in joined else -1 for mine in session_of),
        segment_of,
        joint_of,
        place,
        tuple(source[k] for k in order),
    )


def _sessions(
    skeleton: Skeleton, takes: Sequence[Take], session_of: Sequence[int]
) -> dict[int, Float[Array, "_ marker 3"]]:
    """Return the frames of each session that shows the skeleton often enough."""
    takes_of: dict[int, list[Array]] = {name: [] for name in sorted(set(session_of))}
    for take, name in zip(takes, session_of, strict=True):
        takes_of[name].append(_columns(skeleton, take))
    joined = {name: np.concatenate(parts) for name, parts in takes_of.items()}
    if not any(map(_n_seen, joined.values())):
        wanted = (*skeleton.marker_labels, *skeleton.sensor_names)
        raise DataError(
            "calibrate",
            found="no frame that shows a marker or sensor of the skeleton",
            needed=f"some of {', '.join(wanted) or 'the markers of a skeleton'}",
        )
    return {name: x for name, x in joined.items() if _n_seen(x) >= FEWEST_FRAMES}


def _n_seen(points: Float[Array, "frame marker 3"]) -> int:
    return int(points_seen(points).any(axis=1).sum())


def _joints(
    skeleton: Skeleton, joint_of: Int[Array, " segment"], place: Float[Array, "joint 3"]
) -> Float[Array, "segment 3"]:
    """Return each segment's joint in its parent; zero for the root."""
    o = np.zeros((len(joint_of), 3))
    o[1:] = place[skeleton.parent[joint_of[1:]]] + skeleton.offset[joint_of[1:]]
    return o


def _segments(skeleton: Skeleton) -> tuple[Array, Array, Array]:
    """Return each joint's segment, each segment's joint, and joints in segments.

    Depth first; fixed joints belong to the segment that moves them.
    """
    n = skeleton.n_joints
    segment, place = np.zeros(n, dtype=np.int64), np.zeros((n, 3))
    order: list[int] = []
    stack = [0]
    while stack:
        j = stack.pop()
        p = int(skeleton.parent[j])
        if skeleton.kind[j] == "fixed":
            segment[j] = segment[p]
            place[j] = place[p] + skeleton.offset[j]
        else:
            segment[j] = len(order)
            order.append(j)
        stack += [int(c) for c in np.flatnonzero(skeleton.parent == j)[::-1]]
    return segment, np.array(order, dtype=np.int64), place


def _figure(
    skeleton: Skeleton, joint_of: Array, segment_of: Array, owner: Array
) -> tuple[Figure, Float[Array, "axis 3"]]:
    """Return the segments and the hinges that the skeleton knows."""
    above = [int(skeleton.parent[j]) for j in joint_of]
    hinges = [
        i
        for i, j in enumerate(joint_of.tolist())
        if skeleton.kind[j] == "hinge" and np.isfinite(skeleton.axes[j, 0]).all()
    ]
    figure = Figure(
        names=tuple(skeleton.names[j] for j in joint_of),
        parent=np.array(
            [segment_of[p] if p >= 0 else -1 for p in above], dtype=np.int64
        ),
        labels=(),
        segment=owner,
        axes=tuple(Axis(i, HINGE, HARD_HINGE) for i in hinges),
    )
    axis = np.array([skeleton.axes[joint_of[i], 0] for i in hinges]).reshape(-1, 3)
    return figure, axis


def _worn(
    skeleton: Skeleton,
) -> tuple[Array, Array, list[str], list[tuple[str, int]]]:
    """Return joint, place, label and source of all markers, sensors as four each."""
    n = len(skeleton.sensor_names)
    corners = geometry.apply(skeleton.T_joint_sensor[:, None], SENSOR_POINTS[None])
    joint = np.concatenate([skeleton.marker_joint, np.repeat(skeleton.sensor_joint, 4)])
    at = np.concatenate([skeleton.marker_offset, corners.reshape(-1, 3)])
    labels = [*skeleton.marker_labels]
    labels += [f"{name} {x}" for name in skeleton.sensor_names for x in "oxyz"]
    source = [("marker", k) for k in range(len(skeleton.marker_labels))]
    source += [("sensor", k) for k in range(4 * n)]
    return joint.astype(np.int64), at, labels, source


def _columns(skeleton: Skeleton, take: Take) -> Float[Array, "frame marker 3"]:
    """Return the skeleton's markers in a take, sensors as four points; NaN if unseen.

    Labels are matched by `match_labels`.
    """
    marker = marker_columns(skeleton, take)
    sensor = match_labels(skeleton.sensor_names, take.sensor_names)
    points = np.full((take.n_frames, len(marker), 3), np.nan)
    points[:, marker >= 0] = take.points[:, marker[marker >= 0]]
    corners = np.full((take.n_frames, len(sensor), len(SENSOR_POINTS), 3), np.nan)
    T = take.T_world_sensor[:, sensor[sensor >= 0], None]
    corners[:, sensor >= 0] = geometry.apply(T, SENSOR_POINTS)
    return np.concatenate([points, corners.reshape(len(points), -1, 3)], axis=1)
