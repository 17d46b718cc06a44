"""Poses of a known skeleton in the frames of a stream."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from marey.errors import DataError
from marey.live.frame import Frame
from marey.numerics import geometry
from marey.pose.gauss_newton.tracker import PoseTracker
from marey.skeleton import Skeleton
from marey.take import match_labels

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class LivePose:
    """A frame, and the pose of a skeleton in it."""

    frame: Frame
    """The markers and sensors that came."""

    skeleton: Skeleton | None = None
    """The skeleton; None if none is known."""

    T_world_joint: Float[Array, "joint 4 4"] = field(
        default_factory=lambda: np.zeros((0, 4, 4))
    )
    """Pose of every joint, in metres."""

    n_seen: int = 0
    """Markers and sensors of the skeleton that this frame shows; with 0 of them the
    pose is predicted, not measured."""

    latency: float = 0.0
    """Seconds from the arrival of the packet to the pose."""

    def as_frame(self) -> Frame:
        """Return a frame whose sensors are the joints, without bone ends, for sinks."""
        if self.skeleton is None:
            return self.frame
        joints = np.flatnonzero(~self.skeleton.is_end)
        return Frame(
            number=self.frame.number,
            time=self.frame.time,
            arrival=self.frame.arrival,
            points=self.frame.points,
            labels=self.frame.labels,
            T_world_sensor=self.T_world_joint[joints],
            sensor_names=tuple(self.skeleton.names[i] for i in joints),
        )


class SkeletonTracker:
    """Tracks a skeleton whatever markers and sensors a frame has.

    Markers are matched by their labels, again when these change in mid-stream; the
    pose goes on from where it was.

    Args:
        skeleton: A skeleton with markers or sensors.
        rate: Frames per second.
        **options: Fields of `GaussNewtonOptions`.
    """

    def __init__(self, skeleton: Skeleton, rate: float, **options: Any) -> None:
        self.skeleton, self.rate = skeleton, rate
        self._tracker = PoseTracker(
            skeleton,
            skeleton.marker_labels,
            skeleton.sensor_names,
            rate=rate,
            **options,
        )
        self._layout: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        self._markers = self._sensors = np.zeros(0, dtype=np.int64)
        self._compile()

    def update(self, frame: Frame) -> LivePose:
        """Return the pose in a frame.

        Raises:
            DataError: If the first frame has none of the skeleton's markers and
                sensors.
        """
        self._match(frame)
        points = _columns(frame.points, self._markers)
        sensors = _columns(frame.T_world_sensor, self._sensors)
        root, wxyz = self._tracker.update(points, sensors)
        R = geometry.matrix_from_quat(wxyz[0])
        T_world_root = geometry.transform(R[None], root[None])
        T = self.skeleton.forward(T_world_root, wxyz[None])[0]
        seen = np.isfinite(points[:, 0]).sum() + np.isfinite(sensors[:, 0, 0]).sum()
        latency = time.monotonic() - frame.arrival
        return LivePose(frame, self.skeleton, T, int(seen), latency)

    def _match(self, frame: Frame) -> None:
        """Find the columns of the skeleton's targets, when the names are new."""
        layout = (frame.labels, frame.sensor_names)
        if layout == self._layout:
            return
        is_first, self._layout = self._layout is None, layout
        skeleton = self.skeleton
        bare = [label.rpartition(":")[2] for label in frame.labels]
        try:
            self._markers = match_labels(skeleton.marker_labels, frame.labels, bare)
            self._sensors = match_labels(skeleton.sensor_names, frame.sensor_names)
            n_matches = (self._markers >= 0).sum() + (self._sensors >= 0).sum()
            if is_first and not n_matches:
                needed = (*skeleton.marker_labels, *skeleton.sensor_names)
                raise DataError("stream", found=layout, needed=f"some of {needed}")
        except DataError:
            if is_first:
                raise
            # Names that match twice, in mid-stream: the frame shows nothing.
            self._markers = np.full(len(skeleton.marker_labels), -1)
            self._sensors = np.full(len(skeleton.sensor_names), -1)

    def _compile(self) -> None:
        """Solve an empty frame, so that the first one does not wait for Numba."""
        points = np.full((len(self.skeleton.marker_labels), 3), np.nan)
        sensors = np.full((len(self.skeleton.sensor_names), 4, 4), np.nan)
        self._tracker.update(points, sensors)
        self._tracker.reset()


def _columns(values: Array, column: Int[Array, " target"]) -> Array:
    """Return the rows of these columns; NaN where there is none."""
    missing = np.full((1, *values.shape[1:]), np.nan)
    return np.asarray(np.concatenate([values, missing])[column])
