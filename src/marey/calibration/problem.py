"""A skeleton and takes as a calibration problem: segments, markers, sessions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from marey.calibration.model import (
    MECHANICAL_HINGE_SD_RAD,
    AxisConstraint,
    KinematicModel,
    ModelParameters,
)
from marey.errors import DataError
from marey.numerics import geometry
from marey.numerics.procrustes import points_seen
from marey.skeleton import Skeleton, marker_columns
from marey.take import Take, match_labels

Array = np.ndarray

FIRST_NOISE_M = 3e-3
"""Scale of a marker before it is estimated, in metres. Chosen by hand."""

SENSOR_LEVER_M = 0.2
"""A 6-DoF sensor is represented by four points: its origin and one at this distance
along each axis, in metres. Higher gives its orientation more weight; at 0.2, noise of
1 mm and of 0.4 degrees have equal weights. Chosen by hand."""

MIN_SESSION_FRAMES = 5
"""Sessions that show the skeleton in fewer frames are ignored. Chosen by hand."""

SENSOR_POINTS = np.concatenate([np.zeros((1, 3)), SENSOR_LEVER_M * np.eye(3)])


class MarkerSource(NamedTuple):
    """The part of the skeleton that a marker of the model represents."""

    kind: Literal["marker", "sensor"]
    number: int
    """Number of the marker or sensor in the skeleton."""

    point: int = 0
    """Which of the four points of a sensor."""


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationProblem:
    """The kinematic model of a skeleton, and the markers of all sessions."""

    skeleton: Skeleton
    parameters: ModelParameters
    sessions: tuple[Float[Array, "_ marker 3"], ...]
    """Markers of each session in the order of the model, in metres."""

    take_session: tuple[int, ...]
    """The session of each take; -1 if it shows the skeleton in too few frames."""

    joint_segment: Int[Array, " joint"]
    """The segment of the model that moves each joint of the skeleton."""

    segment_joint: Int[Array, " segment"]
    """The joint of the skeleton at the origin of each segment."""

    joint_in_segment: Float[Array, "joint 3"]
    """Position of each joint in its segment, in metres; zero at the origin."""

    marker_source: tuple[MarkerSource, ...]

    @property
    def model(self) -> KinematicModel:
        """The kinematic model."""
        return self.parameters.model


def build_problem(
    skeleton: Skeleton, takes: Sequence[Take], take_session: Sequence[int]
) -> CalibrationProblem:
    """Return the calibration problem of a skeleton and its takes.

    Markers that are never seen are left out, and sessions of fewer than
    `MIN_SESSION_FRAMES` frames; there may be no session left.

    Raises:
        DataError: If there are no takes, or the skeleton's markers and sensors are
            never seen in them.
    """
    if not takes:
        raise DataError("calibrate", found="no takes", needed="at least one")
    sessions = _concatenate_sessions(skeleton, takes, take_session)
    numbers = list(sessions)
    joint_segment, segment_joint, joint_in_segment = _find_segments(skeleton)
    markers = _skeleton_markers(skeleton)
    seen = np.zeros(len(markers.joint), dtype=bool)
    for points in sessions.values():
        seen |= points_seen(points).any(axis=0)
    order = np.argsort(joint_segment[markers.joint], kind="stable")
    order = order[seen[order]]
    hinges = _known_hinges(skeleton, segment_joint)
    parent = skeleton.parent[segment_joint]
    model = KinematicModel(
        names=tuple(skeleton.names[j] for j in segment_joint),
        parent=np.where(parent >= 0, joint_segment[parent], -1),
        labels=tuple(markers.labels[k] for k in order),
        marker_segment=joint_segment[markers.joint[order]],
        axes=tuple(AxisConstraint(i, "hinge", MECHANICAL_HINGE_SD_RAD) for i in hinges),
    )
    joint_offset = joint_in_segment[parent] + skeleton.offset[segment_joint]
    joint_offset[0] = 0.0
    marker_offset = (joint_in_segment[markers.joint] + markers.offset)[order]
    axis = skeleton.axes[segment_joint[hinges], 0].reshape(-1, 3)
    parameters = ModelParameters.initial(
        model, joint_offset, marker_offset, (axis, axis), len(numbers), FIRST_NOISE_M
    )
    return CalibrationProblem(
        skeleton,
        parameters,
        tuple(points[:, order] for points in sessions.values()),
        tuple(numbers.index(s) if s in sessions else -1 for s in take_session),
        joint_segment,
        segment_joint,
        joint_in_segment,
        tuple(markers.sources[k] for k in order),
    )


def _concatenate_sessions(
    skeleton: Skeleton, takes: Sequence[Take], take_session: Sequence[int]
) -> dict[int, Float[Array, "_ marker 3"]]:
    """Return the frames of each session that shows the skeleton often enough."""
    parts: dict[int, list[Array]] = {number: [] for number in sorted(set(take_session))}
    for take, number in zip(takes, take_session, strict=True):
        parts[number].append(_skeleton_points(skeleton, take))
    sessions = {number: np.concatenate(points) for number, points in parts.items()}
    n_seen = {
        number: int(points_seen(points).any(axis=1).sum())
        for number, points in sessions.items()
    }
    if not any(n_seen.values()):
        wanted = (*skeleton.marker_labels, *skeleton.sensor_names)
        raise DataError(
            "calibrate",
            found="no frame that shows a marker or sensor of the skeleton",
            needed=f"some of {', '.join(wanted) or 'the markers of a skeleton'}",
        )
    return {k: x for k, x in sessions.items() if n_seen[k] >= MIN_SESSION_FRAMES}


def _find_segments(
    skeleton: Skeleton,
) -> tuple[Int[Array, " joint"], Int[Array, " segment"], Float[Array, "joint 3"]]:
    """Return the segment of each joint, its origin, and the joint's position in it.

    Segments are sorted depth first. Fixed joints belong to the segment of their parent.
    """
    n = skeleton.n_joints
    segment, position = np.zeros(n, dtype=np.int64), np.zeros((n, 3))
    origins: list[int] = []
    stack = [0]
    while stack:
        j = stack.pop()
        p = int(skeleton.parent[j])
        if skeleton.kind[j] == "fixed":
            segment[j] = segment[p]
            position[j] = position[p] + skeleton.offset[j]
        else:
            segment[j] = len(origins)
            origins.append(j)
        stack += [int(c) for c in np.flatnonzero(skeleton.parent == j)[::-1]]
    return segment, np.array(origins, dtype=np.int64), position


def _known_hinges(
    skeleton: Skeleton, segment_joint: Int[Array, " segment"]
) -> list[int]:
    """Return the segments below hinges of the skeleton whose axes are known."""
    return [
        i
        for i, j in enumerate(segment_joint.tolist())
        if skeleton.kind[j] == "hinge" and np.isfinite(skeleton.axes[j, 0]).all()
    ]


class _SkeletonMarkers(NamedTuple):
    """Markers of a skeleton, then its sensors as four points each."""

    joint: Int[Array, " marker"]
    offset: Float[Array, "marker 3"]
    labels: list[str]
    sources: list[MarkerSource]


def _skeleton_markers(skeleton: Skeleton) -> _SkeletonMarkers:
    n_points = len(SENSOR_POINTS)
    points = geometry.apply(skeleton.T_joint_sensor[:, None], SENSOR_POINTS[None])
    sensor_joint = np.repeat(skeleton.sensor_joint, n_points)
    sources = [MarkerSource("marker", k) for k in range(len(skeleton.marker_labels))]
    labels = [*skeleton.marker_labels]
    for k, name in enumerate(skeleton.sensor_names):
        sources += [MarkerSource("sensor", k, point) for point in range(n_points)]
        labels += [f"{name} {point}" for point in "oxyz"]
    return _SkeletonMarkers(
        np.concatenate([skeleton.marker_joint, sensor_joint]).astype(np.int64),
        np.concatenate([skeleton.marker_offset, points.reshape(-1, 3)]),
        labels,
        sources,
    )


def _skeleton_points(skeleton: Skeleton, take: Take) -> Float[Array, "frame marker 3"]:
    """Return the skeleton's markers in a take, then its sensors as four points each.

    Labels are matched by `match_labels`; markers that the take does not have are NaN.
    """
    marker = marker_columns(skeleton, take)
    sensor = match_labels(skeleton.sensor_names, take.sensor_names)
    points = np.full((take.n_frames, len(marker), 3), np.nan)
    points[:, marker >= 0] = take.points[:, marker[marker >= 0]]
    corners = np.full((take.n_frames, len(sensor), len(SENSOR_POINTS), 3), np.nan)
    T = take.T_world_sensor[:, sensor[sensor >= 0], None]
    corners[:, sensor >= 0] = geometry.apply(T, SENSOR_POINTS)
    return np.concatenate([points, corners.reshape(len(points), -1, 3)], axis=1)
