"""Outliers of sensors by their own motion: jumps, flips and frozen values.

Bodenheimer1997 (Sec. 2) reports jumps of up to three metres in the poses of magnetic
sensors.
"""

from collections.abc import Iterator

import numpy as np

from marey.cleaning.arrays import Array, Poses
from marey.cleaning.options import CleanOptions
from marey.cleaning.outliers.mask import Kind, Outlier, drop_frequent
from marey.cleaning.outliers.runs import (
    JUMP_RATIO,
    MIN_FRAMES,
    find_outlier_runs,
    local_median,
)
from marey.numerics import Float, geometry
from marey.numerics.thresholds import FEW, MOTION_TIME_S, OUTLIER_SD
from marey.take import Take


def find_sensor_outliers(
    take: Take, options: CleanOptions | None = None
) -> tuple[Outlier, ...]:
    """Return the frames in which sensors jump, flip or freeze, by their own motion.

    A jump is a step far from the median of the steps around it. If a sensor does not
    return with a second jump within `CleanOptions.max_outlier`, it has really moved.

    Args:
        take: The recording.
        options: Thresholds.
    """
    paths = _sensor_paths(take, options or CleanOptions())
    outliers = [outlier for path in paths for outlier in path.find_outliers()]
    return drop_frequent(outliers, {path.name: len(path.frames) for path in paths})


def find_stopped_sensors(take: Take) -> tuple[Outlier, ...]:
    """Return the frames at the end in which sensors repeat one pose, without a signal.

    Such a sensor stops from one frame to the next, without slowing down, and repeats
    its pose for longer than in all of the take before, while other sensors move on.
    This does not depend on the unit.

    Args:
        take: The recording.
    """
    paths = _sensor_paths(take, CleanOptions())
    last_move = sorted(int(path.frames[-1]) for path in paths if len(path.frames))
    stops = (path.find_stop() for path in paths)
    return tuple(
        stop
        for stop in stops
        if stop and last_move[-1] >= stop.first + MOTION_TIME_S * take.rate
    )


def _sensor_paths(take: Take, options: CleanOptions) -> list["_SensorPath"]:
    """Return the distinct consecutive poses of every sensor."""
    return [
        _SensorPath(name, take.T_world_sensor[:, index], take.rate, options)
        for index, name in enumerate(take.sensor_names)
    ]


class _SensorPath:
    """The distinct consecutive poses of one sensor."""

    def __init__(self, name: str, T: Poses, rate: float, options: CleanOptions) -> None:
        self.name, self.options, self.rate = name, options, rate
        seen = np.flatnonzero(np.isfinite(T).all(axis=(1, 2)))
        is_new = np.ones(len(seen), dtype=bool)
        is_new[1:] = (np.diff(T[seen], axis=0) != 0.0).any(axis=(1, 2))
        # First and last frame of each distinct pose, and how often it is repeated.
        self.frames, self.last_frames = seen[is_new], seen[np.roll(is_new, -1)]
        self.repeats = np.diff(np.flatnonzero(is_new), append=len(seen)) - 1
        self.T = T[self.frames]

    def distances(self, some: slice, others: slice) -> Float[Array, "2 pair"]:
        """Return distances (m) and angles (rad) between poses."""
        A, B = self.T[some], self.T[others]
        distance = np.linalg.norm(B[:, :3, 3] - A[:, :3, 3], axis=1)
        trace = np.sum(A[:, :3, :3] * B[:, :3, :3], axis=(1, 2))
        return np.stack([distance, np.arccos(np.clip(0.5 * (trace - 1.0), -1.0, 1.0))])

    def find_outliers(self) -> list[Outlier]:
        """Return all outliers of the sensor."""
        if len(self.T) < MIN_FRAMES:
            return []
        frozen = list(self._find_frozen()) if self.options.mask_frozen else []
        return [*self._find_jumps(), *frozen]

    def find_stop(self) -> Outlier | None:
        """Return the frames after the last new pose if the sensor stopped suddenly."""
        if len(self.T) < MIN_FRAMES or self.repeats[-1] <= self.repeats[:-1].sum():
            return None
        step = self.distances(slice(0, -1), slice(1, None))
        if (step[:, -1] <= FEW * local_median(step, self.rate)[:, -1]).all():
            return None
        first, last = int(self.frames[-1]) + 1, int(self.last_frames[-1])
        return Outlier(self.name, "frozen", first, last, float("nan"))

    def _find_jumps(self) -> Iterator[Outlier]:
        """Yield the runs that begin and end with a jump or a flip."""
        R, n_frames = self.T[:, :3, :3], np.diff(self.frames)[:, None]
        rotation = geometry.rotation_log(R[:-1].swapaxes(1, 2) @ R[1:]) / n_frames
        step = np.diff(self.T[:, :3, 3], axis=0) / n_frames
        minimum = [self.options.min_jump, self.options.min_flip]
        max_frames = int(self.options.max_outlier * self.rate)
        limits = minimum, JUMP_RATIO, self.rate, max_frames
        for first, last in find_outlier_runs(
            self.distances, self.frames, [step, rotation], *limits
        ):
            outside = first - 1 if first else last + 1
            away = self.distances(slice(outside, outside + 1), slice(first, last + 1))
            size = away.max(axis=1)
            channel = int(np.argmax(size / np.maximum(minimum, 1e-9)))
            frames = int(self.frames[first]), int(self.last_frames[last])
            kind: Kind = "flip" if channel else "jump"
            yield Outlier(self.name, kind, *frames, float(size[channel]))

    def _find_frozen(self) -> Iterator[Outlier]:
        """Yield runs of one repeated pose after which the sensor catches up."""
        is_long = self.repeats[:-1] > 1
        if not is_long.any():
            return
        step = self.distances(slice(0, -1), slice(1, None))
        usual = local_median(step, self.rate)
        catches_up = (step > OUTLIER_SD * usual).any(axis=0)
        for k in np.flatnonzero(catches_up & is_long).tolist():
            first, last = int(self.frames[k]) + 1, int(self.last_frames[k])
            yield Outlier(self.name, "frozen", first, last, float("nan"))
