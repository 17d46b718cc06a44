"""Poses of a known skeleton in the frames of a stream."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marey.anatomy.names import without_subject
from marey.errors import DataError
from marey.live.frame import Frame
from marey.numerics import Array, Float, Int
from marey.numerics.thresholds import MOTION_TIME_S
from marey.pipeline.reporting.readiness import JointReadiness, assess_fit
from marey.pose.gauss_newton.tracker import PoseTracker
from marey.skeleton import Skeleton
from marey.take import match_labels


@dataclass(frozen=True, slots=True, eq=False)
class SubjectPose:
    """The pose of one skeleton in a frame."""

    name: str
    skeleton: Skeleton
    T_world_joint: Float[Array, "joint 4 4"]
    """Pose of every joint, in metres."""

    n_seen: int
    """Markers and sensors of the skeleton that this frame shows; with 0 of them the
    pose is predicted, not measured."""

    separation: Float[Array, " joint"] | None = None
    """Of a virtual skeleton: distance between the positions that a joint's two bones
    give it, in metres; NaN where only one of them does."""

    residual_scale_m: Float[Array, " joint"] | None = None
    """Usual residual of the markers on each joint's bone of late, along one axis, in
    metres; None of a virtual skeleton."""


JointStates = tuple[str, tuple[JointReadiness, ...]]
"""Name of a subject and the states of its joints."""


def assess_subjects(
    states: Iterable[JointStates], subjects: Sequence[SubjectPose]
) -> list[JointStates]:
    """Return states of joints in which those that do not fit now are "unknown".

    Args:
        states: By covariance, of each subject.
        subjects: The newest poses; states of subjects without a pose stay.
    """
    shown = {one.name: one for one in subjects if one.residual_scale_m is not None}
    now = []
    for name, joints in states:
        pose = shown.get(name)
        if pose is not None and pose.residual_scale_m is not None:
            joints = assess_fit(joints, pose.skeleton, pose.residual_scale_m)
        now.append((name, joints))
    return now


NO_JOINTS = np.zeros((0, 4, 4))


@dataclass(frozen=True, slots=True, eq=False)
class LivePose:
    """A frame, and the poses of the skeletons in it."""

    frame: Frame
    """The markers and sensors that came."""

    subjects: tuple[SubjectPose, ...] = ()
    """One pose for each skeleton; none while none is known."""

    latency: float = 0.0
    """Seconds from the arrival of the packet to the pose."""

    @property
    def skeleton(self) -> Skeleton | None:
        """The first skeleton; None if none is known."""
        return self.subjects[0].skeleton if self.subjects else None

    @property
    def T_world_joint(self) -> Float[Array, "joint 4 4"]:
        """Pose of every joint of the first skeleton, in metres."""
        return self.subjects[0].T_world_joint if self.subjects else NO_JOINTS

    @property
    def n_seen(self) -> int:
        """Markers and sensors of all skeletons that this frame shows."""
        return sum(subject.n_seen for subject in self.subjects)

    def as_frame(self) -> Frame:
        """Return a frame whose sensors are the joints, without bone ends, for sinks.

        Joints of several subjects have the names of these in front: "ANN:Hips".
        """
        if not self.subjects:
            return self.frame
        poses: list[Array] = []
        names: list[str] = []
        for subject in self.subjects:
            joints = np.flatnonzero(~subject.skeleton.is_end)
            owner = f"{subject.name}:" if len(self.subjects) > 1 else ""
            poses.append(subject.T_world_joint[joints])
            names += [f"{owner}{subject.skeleton.names[i]}" for i in joints]
        return replace(
            self.frame,
            T_world_sensor=np.concatenate(poses),
            sensor_names=tuple(names),
        )


class SkeletonTracker:
    """Tracks a skeleton whatever markers and sensors a frame has.

    Markers are matched by their labels, again when these change in mid-stream; the
    pose goes on from where it was.

    Args:
        skeleton: A skeleton with markers or sensors.
        rate: Frames per second.
        name: Name of the subject.
        **options: Fields of `GaussNewtonOptions`.
    """

    def __init__(
        self, skeleton: Skeleton, rate: float, name: str = "", **options: Any
    ) -> None:
        self.skeleton, self.rate = skeleton, rate
        self.name = name or skeleton.names[0]
        self._tracker = PoseTracker(
            skeleton,
            skeleton.marker_labels,
            skeleton.sensor_names,
            rate=rate,
            **options,
        )
        self._number, self._last_number, self._has_begun = 0, 0, False
        self._layout: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        self._markers = self._sensors = np.zeros(0, dtype=np.int64)
        self._compile()

    def update(self, frame: Frame) -> SubjectPose | None:
        """Return the pose in a frame; None before anything of the skeleton was seen.

        While nothing of it is seen the pose is predicted. One that was away for long is
        solved from scratch where it is seen again.

        Raises:
            DataError: If names of the first frame match twice.
        """
        self._match(frame)
        points = columns_of(frame.points, self._markers)
        sensors = columns_of(frame.T_world_sensor, self._sensors)
        seen = np.count_nonzero(np.isfinite(points[:, 0]))
        seen += np.count_nonzero(np.isfinite(sensors[:, 0, 0]))
        n_frames, self._last_number = frame.number - self._last_number, frame.number
        if seen:
            if abs(frame.number - self._number) > MOTION_TIME_S * self.rate:
                self._tracker.reset()  # The pose before hardly predicts this one.
                n_frames = 1
            self._number, self._has_begun = frame.number, True
        if not self._has_begun:
            return None
        T = self._tracker.update_poses(points, sensors, n_frames=n_frames)
        scale = self._tracker.residual_scale_m
        return SubjectPose(
            self.name, self.skeleton, T, int(seen), residual_scale_m=scale
        )

    @property
    def is_in_stream(self) -> bool:
        """Whether the newest frame has names of the skeleton's markers or sensors."""
        return bool((self._markers >= 0).any() or (self._sensors >= 0).any())

    def _match(self, frame: Frame) -> None:
        """Find the columns of the skeleton's targets, when the names are new."""
        layout = (frame.labels, frame.sensor_names)
        if layout == self._layout:
            return
        self._layout = layout
        try:
            self._markers, self._sensors = match_targets(self.skeleton, frame)
        except DataError:
            if not self._has_begun:
                raise
            # Names that match twice, in mid-stream: the frame shows nothing.
            self._markers = np.full(len(self.skeleton.marker_labels), -1)
            self._sensors = np.full(len(self.skeleton.sensor_names), -1)

    def _compile(self) -> None:
        """Solve an empty frame, so that the first one does not wait for Numba."""
        points = np.full((len(self.skeleton.marker_labels), 3), np.nan)
        sensors = np.full((len(self.skeleton.sensor_names), 4, 4), np.nan)
        self._tracker.update_poses(points, sensors)
        self._tracker.reset()


def match_targets(
    skeleton: Skeleton, frame: Frame
) -> tuple[Int[Array, " marker"], Int[Array, " sensor"]]:
    """Return the index in a frame of each marker and sensor of a skeleton, by name.

    See `marey.take.match_labels`; -1 where the frame has none.

    Raises:
        DataError: If a name matches several.
    """
    bare = [*map(without_subject, frame.labels)]
    markers = match_labels(skeleton.marker_labels, frame.labels, bare)
    return markers, match_labels(skeleton.sensor_names, frame.sensor_names)


def columns_of(values: Array, column: Int[Array, " target"]) -> Array:
    """Return the rows of these columns; NaN where there is none."""
    if not len(values):
        return np.full((len(column), *values.shape[1:]), np.nan)
    chosen: Array = values[column]
    missing = column < 0
    if missing.any():
        chosen[missing] = np.nan
    return chosen
