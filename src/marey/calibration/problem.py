"""A skeleton and takes as a calibration problem: segments, markers, sessions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marey.anatomy.names import is_person
from marey.articulated.targets import points_with_confidence
from marey.calibration.init.poses import (
    pose_spread,
    sample_frame_pairs,
    sample_takes,
)
from marey.calibration.model import (
    MECHANICAL_HINGE_SD_RAD,
    AxisConstraint,
    KinematicModel,
    ModelParameters,
)
from marey.errors import DataError
from marey.numerics import Array, Bool, Float, Int
from marey.numerics.procrustes import SENSOR_POINTS, points_of_poses, points_seen
from marey.numerics.thresholds import MIN_SAMPLES
from marey.skeleton import Skeleton, marker_columns
from marey.take import Take, match_labels
from marey.tree import depth_first_order


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationProblem:
    """The kinematic model of a skeleton, and the markers of all sessions.

    The points of a skeleton are its markers, then its sensors as four points each.
    """

    skeleton: Skeleton
    parameters: ModelParameters
    sessions: tuple[Float[Array, "_ point _"], ...]
    """Points of the skeleton in each session, in metres; NaN where occluded. A fourth
    component is the confidence."""

    take_frames: tuple[tuple[int, ...], ...]
    """Number of frames of every take of each session."""

    take_session: tuple[int, ...]
    """The session of each take; -1 if it shows the skeleton in too few frames."""

    order: Int[Array, " marker"]
    """The point of the skeleton that each marker of the model is."""

    joint_segment: Int[Array, " joint"]
    """The segment of the model that moves each joint of the skeleton."""

    segment_joint: Int[Array, " segment"]
    """The joint of the skeleton at the origin of each segment."""

    joint_in_segment: Float[Array, "joint 3"]
    """Position of each joint in its segment, in metres; zero at the origin."""

    @property
    def model(self) -> KinematicModel:
        """The kinematic model."""
        return self.parameters.model

    @property
    def takes(self) -> list[list[Float[Array, "_ point _"]]]:
        """Points of every take by session, in metres, with confidence if known."""
        return [
            np.split(points, np.cumsum(frames)[:-1])
            for points, frames in zip(self.sessions, self.take_frames, strict=True)
        ]

    @property
    def n_takes(self) -> int:
        """Number of takes in all sessions."""
        return sum(map(len, self.take_frames))

    def sample_observations(
        self, frames_per_take: int
    ) -> tuple[Float[Array, "_ marker _"], ...]:
        """Return sampled frames of every session, markers in the order of the model.

        Args:
            frames_per_take: Most frames of a take on average.
        """
        sampled = [sample_takes(takes, frames_per_take) for takes in self.takes]
        return tuple(points[:, self.order] for points in sampled)

    def sample_positions(
        self, frames_per_take: int
    ) -> tuple[Float[Array, "_ marker 3"], ...]:
        """Return `sample_observations` in metres, without confidences."""
        return tuple(x[..., :3] for x in self.sample_observations(frames_per_take))

    def sample_frame_pairs(
        self, lag: int = 1
    ) -> tuple[Float[Array, "_ 2 marker _"], ...]:
        """Return pairs of frames of every session, evenly in time.

        Args:
            lag: Frames from the first of a pair to the second.
        """
        return tuple(
            np.concatenate(
                [sample_frame_pairs(take, lag, self.order) for take in takes]
            )
            for takes in self.takes
        )

    @property
    def positions(self) -> Float[Array, "frame marker 3"]:
        """Positions of the markers of the model in all frames of all sessions."""
        return self.every_position(1)

    def every_position(self, step: int) -> Float[Array, "frame marker 3"]:
        """Return `positions` of every so-many-th frame of each session."""
        return _join([points[::step, self.order, :3] for points in self.sessions])

    @property
    def seen(self) -> Bool[Array, "session marker"]:
        """Which markers of the model each session shows."""
        shown = [points_seen(points).any(axis=0) for points in self.sessions]
        return np.array(shown)[:, self.order]

    @property
    def is_person(self) -> bool:
        """Whether the segments have the names of a person."""
        return is_person(self.model.names)


def build_problem(
    skeleton: Skeleton, takes: Sequence[Take], take_session: Sequence[int]
) -> CalibrationProblem:
    """Return the calibration problem of a skeleton and its takes.

    Markers that are never seen are left out, and sessions of fewer than
    `MIN_SAMPLES` frames; there may be no session left.

    Raises:
        DataError: If there are no takes, or the skeleton's markers and sensors are
            never seen in them.
    """
    if not takes:
        raise DataError("calibrate", found="no takes", needed="at least one")
    by_session = _takes_by_session(skeleton, takes, take_session)
    numbers = list(by_session)
    return problem_of_sessions(
        skeleton,
        tuple(map(_join, by_session.values())),
        tuple(tuple(map(len, points)) for points in by_session.values()),
        tuple(numbers.index(s) if s in numbers else -1 for s in take_session),
    )


def problem_of_sessions(
    skeleton: Skeleton,
    sessions: tuple[Float[Array, "_ point _"], ...],
    take_frames: tuple[tuple[int, ...], ...],
    take_session: tuple[int, ...],
) -> CalibrationProblem:
    """Return the calibration problem of a skeleton and its points in all sessions.

    Args:
        skeleton: What is calibrated.
        sessions: Positions of its points in each session (frame, point, 3), in metres;
            NaN where a point is not seen.
        take_frames: Number of frames of every take of each session.
        take_session: Session of each take.
    """
    joint_segment, segment_joint, joint_in_segment = _find_segments(skeleton)
    labels, point_joint, point_offset = attached_points(skeleton)
    seen = np.zeros(len(labels), dtype=bool)
    for points in sessions:
        seen |= points_seen(points).any(axis=0)
    order = np.argsort(joint_segment[point_joint], kind="stable")
    order = order[seen[order]]
    hinges = [
        i
        for i, j in enumerate(segment_joint.tolist())
        if skeleton.kind[j] == "hinge" and np.isfinite(skeleton.axes[j, 0]).all()
    ]
    parent = skeleton.parent[segment_joint]
    model = KinematicModel(
        names=tuple(skeleton.names[j] for j in segment_joint),
        parent=np.where(parent >= 0, joint_segment[parent], -1),
        labels=tuple(labels[k] for k in order),
        marker_segment=joint_segment[point_joint[order]],
        axes=tuple(AxisConstraint(i, "hinge", MECHANICAL_HINGE_SD_RAD) for i in hinges),
        sensor_points=frozenset(
            np.flatnonzero(order >= len(skeleton.marker_labels)).tolist()
        ),
    )
    joint_offset = joint_in_segment[parent] + skeleton.offset[segment_joint]
    joint_offset[0] = 0.0
    marker_offset = (joint_in_segment[point_joint] + point_offset)[order]
    axis = np.repeat(skeleton.axes[segment_joint[hinges], :1], 2, axis=1)
    parameters = ModelParameters.initial(
        model, joint_offset, marker_offset, axis, len(sessions)
    )
    return CalibrationProblem(
        skeleton,
        parameters,
        sessions,
        take_frames,
        take_session,
        order,
        joint_segment,
        segment_joint,
        joint_in_segment,
    )


def _join(parts: Sequence[Array]) -> Array:
    """Return arrays one after the other; one alone as it is, without a copy."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _takes_by_session(
    skeleton: Skeleton, takes: Sequence[Take], take_session: Sequence[int]
) -> dict[int, list[Float[Array, "_ point _"]]]:
    """Return the takes of each session that shows the skeleton often enough.

    Those with most motion come first, so that the order of the takes does not matter.
    """
    sessions, n_seen = {}, {}
    n_components = max(points_with_confidence(take).shape[-1] for take in takes)
    for number in sorted(set(take_session)):
        of_session = [
            _skeleton_points(skeleton, take, n_components)
            for take, session in zip(takes, take_session, strict=True)
            if session == number
        ]
        sessions[number] = sorted(of_session, key=pose_spread, reverse=True)
        seen = [points_seen(points).any(axis=1).sum() for points in of_session]
        n_seen[number] = int(sum(seen))
    if not any(n_seen.values()):
        wanted = (*skeleton.marker_labels, *skeleton.sensor_names)
        raise DataError(
            "calibrate",
            found="no frame that shows a marker or sensor of the skeleton",
            needed=f"some of {', '.join(wanted) or 'the markers of a skeleton'}",
        )
    return {k: x for k, x in sessions.items() if n_seen[k] >= MIN_SAMPLES}


def _find_segments(
    skeleton: Skeleton,
) -> tuple[Int[Array, " joint"], Int[Array, " segment"], Float[Array, "joint 3"]]:
    """Return the segment of each joint, its origin, and the joint's position in it.

    Segments are sorted depth first. Joints that do not rotate belong to the segment of
    their parent.
    """
    n = skeleton.n_joints
    segment, position = np.zeros(n, dtype=np.int64), np.zeros((n, 3))
    origins: list[int] = []
    rotates = skeleton.rotates
    for j in depth_first_order(skeleton.parent):
        p = int(skeleton.parent[j])
        if not rotates[j]:
            segment[j] = segment[p]
            position[j] = position[p] + skeleton.offset[j]
        else:
            segment[j] = len(origins)
            origins.append(j)
    return segment, np.array(origins, dtype=np.int64), position


def attached_points(
    skeleton: Skeleton,
) -> tuple[list[str], Int[Array, " point"], Float[Array, "point 3"]]:
    """Return label, joint and offset (m) in its joint of each point of a skeleton.

    Points are markers, and those that stand for a sensor (`SENSOR_POINTS`).
    """
    points = points_of_poses(skeleton.T_joint_sensor)
    sensor_joint = np.repeat(skeleton.sensor_joint, len(SENSOR_POINTS))
    sensor_labels = [
        f"{name} point {number}"
        for name in skeleton.sensor_names
        for number in range(1, len(SENSOR_POINTS) + 1)
    ]
    return (
        [*skeleton.marker_labels, *sensor_labels],
        np.concatenate([skeleton.marker_joint, sensor_joint]).astype(np.int64),
        np.concatenate([skeleton.marker_offset, points.reshape(-1, 3)]),
    )


def _skeleton_points(
    skeleton: Skeleton, take: Take, n_components: int
) -> Float[Array, "frame point _"]:
    """Return the points of a skeleton in a take, with confidences as component 4 of 4.

    Labels are matched by `match_labels`; points that the take does not have are NaN.
    """
    marker = marker_columns(skeleton, take)
    sensor = match_labels(skeleton.sensor_names, take.sensor_names)
    corners = np.full((take.n_frames, len(sensor), len(SENSOR_POINTS), 3), np.nan)
    T = take.T_world_sensor[:, sensor[sensor >= 0]]
    corners[:, sensor >= 0] = points_of_poses(T)
    n_markers = len(marker)
    points = np.ones((take.n_frames, n_markers + corners[0, ..., 0].size, n_components))
    points[..., :3] = np.nan
    observed = points_with_confidence(take)
    # One by one: all columns at once would be another copy of the take.
    for k in np.flatnonzero(marker >= 0):
        points[:, k, : observed.shape[-1]] = observed[:, marker[k]]
    points[:, n_markers:, :3] = corners.reshape(take.n_frames, -1, 3)
    return points
