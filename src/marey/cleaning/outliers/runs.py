"""Runs of outlier frames: a jump away, then within some frames a return.

A fast motion has large steps, but each is similar to the steps around it. A jump is a
single step that differs from them, so it is measured by its distance from the median of
five consecutive steps (`step_deviation`).
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from marey.cleaning.arrays import Array, Frames, Path, Vectors
from marey.numerics import Bool, Float, geometry
from marey.numerics.procrustes import points_seen
from marey.numerics.robust import column_medians
from marey.numerics.thresholds import FRAMES_PER_CHUNK, MOTION_TIME_S

JUMP_RATIO = 8.0
"""Deviation of a step relative to the median of its time above which it is a jump.
Higher misses small jumps, lower takes fast motions for jumps. Chosen by hand."""

MIN_FRAMES = 6
"""Frames below which no outlier is searched for; also the longest run without return at
either end of a take, and the frames around one from which its usual step is taken.
Higher takes slow returns for parts of a jump. Chosen by hand."""

Distances = Callable[[slice, slice], Float[Array, "channel pair"]]
"""Distances between the values of two slices of frames, one channel per unit. Either
slice may have one frame."""


def step_deviation(step: Float[Array, "step *path 3"]) -> Float[Array, "step *path"]:
    """Return the distance (m) of each step from the median of the five around it.

    Beyond the ends steps are mirrored.
    """
    around = np.concatenate([step[2:0:-1], step, step[-2:-4:-1]])
    a, b, c, d, e = (around[k : k + len(step)] for k in range(5))
    low = np.maximum(np.minimum(a, b), np.minimum(c, d))
    high = np.minimum(np.maximum(a, b), np.maximum(c, d))
    low, high = np.minimum(low, high), np.maximum(low, high)
    median = np.maximum(low, np.minimum(e, high))
    return geometry.lengths(step - median)


def local_median(
    size: Float[Array, "channel step"], rate: float
) -> Float[Array, "channel step"]:
    """Return the moving median of step sizes (m), at least that over the take."""
    half = min(max(int(MOTION_TIME_S * rate), MIN_FRAMES), size.shape[1])
    around = np.pad(size, ((0, 0), (half, half)), mode="reflect")
    windows = (sliding_window_view(row, 2 * half + 1) for row in around)
    moving = [np.partition(window, half, axis=1)[:, half] for window in windows]
    return np.asarray(np.maximum(moving, _overall_median(size)))


def _overall_median(size: Float[Array, "channel step"]) -> Float[Array, "channel 1"]:
    """Return the median size (m) of the steps of each channel that are not zero."""
    moving = np.where(size > 0.0, size, np.nan)
    return np.asarray(np.nan_to_num(column_medians(moving.T))[:, None])


def _step_threshold(
    deviation: Float[Array, "channel step"],
    ratio: float,
    minimum: Float[Array, "channel 1"],
    rate: float,
) -> Float[Array, "channel step"]:
    """Return the largest normal deviation of each step: a ratio to the local median.

    The moving median is slow, so it is computed only if the median over the take leaves
    any candidate.
    """
    limit = np.maximum(ratio * _overall_median(deviation), minimum)
    if not (deviation > limit).any():
        return np.broadcast_to(limit, deviation.shape)
    return np.asarray(np.maximum(ratio * local_median(deviation, rate), minimum))


def find_outlier_runs(
    distances: Distances,
    frames: Frames,
    steps: Sequence[Vectors],
    minimum: Sequence[float],
    ratio: float,
    rate: float,
    max_frames: int,
) -> Iterator[tuple[int, int]]:
    """Yield runs from a jump to the last frame before the return.

    A return is a second jump that ends near the value before the first one. A few
    frames before the first jump of a take, or after the last one, are a run too.

    Args:
        distances: Distances between the values of two slices of frames.
        frames: The frames that have values, ascending.
        steps: Differences of consecutive values of each channel.
        minimum: Smallest deviation of a jump in each channel, in its unit.
        ratio: Deviation of a step relative to the local median that is a jump.
        rate: Frames per second.
        max_frames: Frames after which a value that has not returned has really moved.

    Yields:
        First and last position of each run in `frames`.
    """
    deviation = np.stack([step_deviation(step) for step in steps])
    threshold = _step_threshold(deviation, ratio, np.array(minimum)[:, None], rate)
    jumps = np.flatnonzero((deviation > threshold).any(axis=0)) + 1
    if not len(jumps):
        return
    speed = local_median(distances(slice(0, -1), slice(1, None)), 1.0)
    searched = 0
    for k, first in enumerate(jumps.tolist()):
        if first < searched:
            continue
        ahead = slice(first, first + max_frames + 1)
        elapsed = frames[ahead] - frames[first - 1]
        limit = threshold[:, first - 1, None] + speed[:, first - 1, None] * elapsed
        away = distances(slice(first - 1, first), ahead)
        near = first + np.flatnonzero((away <= limit).all(axis=0))
        returns = np.intersect1d(near, jumps[k + 1 :])
        if len(returns):
            searched = int(returns[0]) + 1
            # The value may have returned before the second jump, in smaller steps.
            yield first, max(int(near[0]) - 1, first)
        elif first < MIN_FRAMES and searched == 0:
            yield 0, first - 1
        elif len(frames) - first < MIN_FRAMES and first == jumps[-1]:
            yield first, len(frames) - 1


def may_jump(
    points: Float[Array, "frame marker 3"], ratio: float, minimum: float
) -> Bool[Array, " marker"]:
    """Return which paths `find_position_runs` may find a run in.

    Those with missing frames, and those with a step that deviates from the steps around
    it more than the median of the path allows.

    Args:
        points: Paths in metres, NaN where unknown.
        ratio: Deviation of a step relative to the median that is a jump.
        minimum: Smallest deviation of a jump, in metres.
    """
    may = np.asarray(~points_seen(points).all(axis=0))
    if len(points) < MIN_FRAMES:
        return may
    n_together = max(FRAMES_PER_CHUNK // len(points), 1)
    whole = np.flatnonzero(~may)
    for first in range(0, len(whole), n_together):
        some = whole[first : first + n_together]
        step = np.diff(points[:, some], axis=0)
        deviation = step_deviation(step).T
        limit = np.maximum(ratio * _overall_median(deviation), minimum)
        may[some] = (deviation > limit).any(axis=1)
    return may


def find_position_runs(
    positions: Path, rate: float, ratio: float, minimum: float, max_frames: int
) -> Iterator[tuple[int, int]]:
    """Yield the runs of outlier frames of a point's path.

    Steps across missing frames are divided by their duration.

    Args:
        positions: The path in metres, NaN where unknown.
        rate: Frames per second.
        ratio: Deviation of a step relative to the local median that is a jump.
        minimum: Smallest deviation of a jump, in metres.
        max_frames: Longest run.

    Yields:
        First and last frame of each run.
    """
    frames = np.flatnonzero(points_seen(positions))
    if len(frames) < MIN_FRAMES:
        return
    known = positions[frames]

    def distances(some: slice, others: slice) -> Float[Array, "1 pair"]:
        return np.asarray(np.linalg.norm(known[others] - known[some], axis=1)[None])

    step = np.diff(known, axis=0) / np.diff(frames)[:, None]
    limits = [minimum], ratio, rate, max_frames
    for first, last in find_outlier_runs(distances, frames, [step], *limits):
        yield int(frames[first]), int(frames[last])
