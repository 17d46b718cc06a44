"""Neighbours of a marker: the markers whose distance to it varies least.

The rigid motion of the neighbours predicts where the marker is in another frame. No
bodies are needed, so this works before markers are assigned to bodies.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from marey.cleaning.arrays import Array, Frames, Markers, Points, Values, Vectors
from marey.numerics import Bool, Float, Int, geometry
from marey.numerics.procrustes import points_seen
from marey.numerics.resampling import evenly_spaced
from marey.numerics.robust import ABS_Q90_SD, Q10_Q90_SD, finite_median
from marey.numerics.thresholds import (
    FEW,
    FRAMES_PER_CHUNK,
    MIN_POSE_POINTS,
    MIN_SAMPLES,
    MOST,
    MOTION_TIME_S,
    OUTLIER_SD,
)

MAX_NEIGHBOURS = 12
"""Neighbours per marker. More of them tolerate more errors but include markers of other
bodies. Chosen by hand."""

MIN_RELATIVE_WIDTH = 0.05
"""Width of a set of points relative to its length below which the points are collinear.
Higher rejects more predictions; with 0.1 swaps at the end of a take are missed."""

WEIGHT_ITERATIONS = 4
"""Iterations of the reweighted fit, each with a smaller Geman-McClure scale. Chosen by
hand."""

SCALE_REDUCTION = 4.0
"""Factor by which each iteration reduces the Geman-McClure scale. Higher rejects
outliers earlier, at the risk of rejecting the wrong ones. Chosen by hand."""

TINY_SD_M = 1e-9
"""Smallest standard deviation of a distance, in metres; smaller is rounding."""

MAX_ERROR_RATIO = 4.0
"""Prediction error relative to its usual value above which a step is unpredicted.
Higher misses small errors, lower gives false alarms. Chosen by hand."""

SAMPLE_STEPS = 40
"""Steps per marker from which the usual prediction error is estimated. More take
longer. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """The neighbours of each marker, those with the steadiest distance first."""

    index: Int[Array, "marker neighbour"]
    """Column of each neighbour."""

    distance_sd: Float[Array, "marker neighbour"]
    """Robust standard deviation of the distance in metres; infinite if unknown."""

    distance: Float[Array, "marker neighbour"]
    """Median distance in metres."""

    correlation_frames: float
    """Frames after which a distance is independent of its present value."""


def find_neighbours(
    points: Points, rate: float, *, labels_doubtful: bool = False
) -> Neighbours:
    """Return for each marker the markers whose distance to it varies least.

    Neighbours are ranked by the standard deviation of their distance over the take. If
    labels may be swapped for long stretches, they are ranked by the change over a short
    time instead: a swap alters the distance only at its two ends but inflates the
    overall deviation.

    Args:
        points: Positions in metres, NaN where a marker was not seen.
        rate: Frames per second.
        labels_doubtful: Whether labels may be swapped for long stretches.
    """
    n = points.shape[1]
    lag = min(max(round(0.5 * MOTION_TIME_S * rate), 1), len(points) // 2)
    frames = np.arange(len(points) - lag)[evenly_spaced(len(points))]
    now, later = (
        points[sample].transpose(2, 1, 0).copy() for sample in (frames, frames + lag)
    )
    # Of all pairs the deviation of the change within the lag, that over the take, and
    # the median of the distance, in metres; infinite where unknown.
    statistics = np.full((3, n, n), np.inf)
    # Else only whether the change is known would count, and it is if all are seen.
    needs_change = labels_doubtful or not points_seen(points).all()
    for k in range(n - 1):
        distance = _distances_to_later(now, k)
        change = np.zeros(n - 1 - k)
        if needs_change:
            later_distance = _distances_to_later(later, k)
            (change,) = row_quantiles(np.abs(later_distance - distance), (MOST,))
        median, sd = row_median_and_sd(distance)
        statistics[:, k, k + 1 :] = change / ABS_Q90_SD, sd, median
        statistics[:, k + 1 :, k] = statistics[:, k, k + 1 :]
    statistics[:, ~np.isfinite(statistics[:2]).all(axis=0)] = np.inf
    change_sd, distance_sd, distance = statistics
    rank = change_sd.copy() if labels_doubtful else distance_sd.copy()
    np.fill_diagonal(rank, np.nan)  # sorts behind all others
    index = np.argsort(rank, axis=1, kind="stable")[:, : min(MAX_NEIGHBOURS, n - 1)]
    if labels_doubtful:
        distance_sd = np.maximum(change_sd, distance_sd)
    return Neighbours(
        index,
        np.take_along_axis(distance_sd, index, axis=1),
        np.take_along_axis(distance, index, axis=1),
        max(MOTION_TIME_S * rate, 1.0),
    )


def _distances_to_later(
    position: Float[Array, "3 marker frame"], marker: int
) -> Float[Array, "later frame"]:
    """Return the distances of a marker to those after it, in metres."""
    x, y, z = position[:, marker + 1 :] - position[:, marker, None]
    return np.asarray(np.sqrt(x * x + y * y + z * z))


def distance_deviation(
    points: Points, markers: Markers
) -> Float[Array, "chosen marker"]:
    """Return the deviation of the distances from some markers to all markers.

    Robust standard deviations in metres; infinite where unknown.
    """
    position = points[evenly_spaced(len(points))].transpose(1, 2, 0)
    distances = (
        np.sqrt(np.sum((position - position[k]) ** 2, axis=1)) for k in markers.tolist()
    )
    sd = np.stack([row_median_and_sd(rows)[1] for rows in distances])
    return np.asarray(np.nan_to_num(sd, nan=np.inf))


def row_median_and_sd(rows: Float[Array, "row value"]) -> tuple[Values, Values]:
    """Return median and robust standard deviation of each row; see `row_quantiles`."""
    q10, median, q90 = row_quantiles(rows, (FEW, 0.5, MOST))
    return median, (q90 - q10) / Q10_Q90_SD


def row_quantiles(
    rows: Float[Array, "row value"], levels: tuple[float, ...]
) -> Float[Array, "level row"]:
    """Return quantiles of the finite values of each row; NaN where there are too few.

    The quantile is the nearest value in the order, which is much faster than
    `np.nanquantile`.
    """
    count = np.isfinite(rows).sum(axis=1)
    ordered = np.sort(rows, axis=1)  # NaN sorts to the end
    rank = np.rint(np.outer(levels, np.maximum(count - 1, 0))).astype(int)
    quantiles = ordered[np.arange(len(rows)), rank]
    quantiles[:, count < min(MIN_SAMPLES, rows.shape[1])] = np.nan
    return np.asarray(quantiles)


def predict_from_neighbours(
    points: Points,
    neighbours: Neighbours,
    marker: Markers,
    position: Vectors,
    start: Frames,
    end: Frames,
    *,
    excluded: Bool[Array, "query marker"] | None = None,
) -> Vectors:
    r"""Return the predicted positions of markers in one frame from another frame.

    The rigid motion :math:`T` of the neighbours between the two frames (weighted Kabsch
    fit) is applied to the marker's old position. The weights come from iteratively
    reweighted least squares with the Geman-McClure loss,

    .. math:: w_i = \frac{\sigma_i^{-2}}{(1 + \lVert T x_i - y_i \rVert^2 / s^2)^2},

    where :math:`\sigma_i` is the expected change of the distance to neighbour
    :math:`i`. The scale :math:`s` decreases with each iteration (graduated
    non-convexity), because one outlier spoils the residuals of all neighbours in the
    first fit and a fixed limit would then reject the wrong ones.

    The prediction is NaN if fewer than three neighbours are seen in both frames, or if
    they are collinear.

    Args:
        points: Positions in metres, NaN where a marker was not seen.
        neighbours: From `find_neighbours`.
        marker: The marker of each prediction.
        position: Its position in the first frame, in metres.
        start: The first frame.
        end: The frame of the prediction.
        excluded: The markers that each prediction does not use as neighbours.
    """
    from marey.cleaning.neighbours_kernel import fit_motions  # numba is slow to import

    index = neighbours.index[marker]
    old, new = points[start[:, None], index], points[end[:, None], index]
    sigma = _expected_change(neighbours, marker, end - start)
    is_used = points_seen(old) & points_seen(new)
    if excluded is not None:
        is_used &= ~np.take_along_axis(excluded, index, axis=1)
    prior_weight = is_used / sigma**2
    prior_weight /= np.maximum(prior_weight.max(axis=1, keepdims=True), 1e-300)
    distance = np.where(np.isfinite(neighbours.distance), neighbours.distance, 0.0)
    reduction = SCALE_REDUCTION ** np.arange(WEIGHT_ITERATIONS)
    largest = distance.max(axis=1, initial=0.0)[marker] / reduction[:, None]
    T = np.empty((len(old), 4, 4))
    fit_motions(old, new, prior_weight, largest, OUTLIER_SD * sigma, T)
    T[~_spans_a_plane(old, is_used)] = np.nan
    return np.asarray(geometry.apply(T, position))


def _expected_change(
    neighbours: Neighbours, marker: Markers, n_frames: Frames
) -> Float[Array, "query neighbour"]:
    """Return the expected change of the distance to neighbours within some frames.

    In metres. It grows with the number of frames up to the deviation over the take; its
    minimum is the deviation of the steadiest neighbour.
    """
    sd = np.clip(neighbours.distance_sd[marker], TINY_SD_M, 1.0 / TINY_SD_M)
    share = np.minimum(np.abs(n_frames) / neighbours.correlation_frames, 1.0)[:, None]
    return np.asarray(np.hypot(sd[:, :1], share * sd))


def _spans_a_plane(
    positions: Float[Array, "query neighbour 3"],
    is_used: Bool[Array, "query neighbour"],
) -> Bool[Array, " query"]:
    """Return where there are three neighbours or more that are not collinear."""
    # numba is slow to import
    from marey.cleaning.neighbours_kernel import write_scatter

    scatter = np.empty((len(positions), 3, 3))
    write_scatter(positions, is_used, scatter)
    spread = np.linalg.eigvalsh(scatter)
    is_wide = spread[:, 1] > MIN_RELATIVE_WIDTH**2 * spread[:, 2]
    return np.asarray((is_used.sum(axis=1) >= MIN_POSE_POINTS) & is_wide)


# --- prediction error -----------------------------------------------------------------


class MarkerSteps(NamedTuple):
    """Steps of markers, each from a frame with the marker to the next such frame."""

    marker: Int[Array, " step"]
    start: Int[Array, " step"]
    end: Int[Array, " step"]

    def select(self, chosen: Array) -> "MarkerSteps":
        """Return some of the steps, by mask or index."""
        return MarkerSteps(*(values[chosen] for values in self))

    @property
    def n_frames(self) -> Int[Array, " step"]:
        """Frames from start to end."""
        return np.asarray(self.end - self.start)


def join_steps(some: Iterable[MarkerSteps]) -> MarkerSteps:
    """Return steps in one list, in the order given."""
    none = MarkerSteps(*np.zeros((3, 0), dtype=np.int64))
    return MarkerSteps(*map(np.concatenate, zip(none, *some, strict=True)))


class MarkerPredictor:
    """Predictions of marker positions by neighbours, with their usual error.

    Markers are looked at one after the other, because the steps of all of them take
    more memory than the points.
    """

    def __init__(self, points: Points, neighbours: Neighbours) -> None:
        self.points, self.neighbours = points, neighbours
        self.seen = points_seen(points)
        sample = join_steps(self._sample_steps(k) for k in range(points.shape[1]))
        # Median error of steps of one frame, and a bound for steps of any length.
        self.one_frame_error = self._marker_medians(self._errors(sample), sample)
        sd = neighbours.distance_sd[:, :MIN_POSE_POINTS]
        largest_sd = np.where(np.isfinite(sd), sd, 0.0).max(axis=1, initial=0.0)
        self.largest_error = np.maximum(2.0 * largest_sd, self.one_frame_error)

    def predict(self, marker: Markers, start: Array, end: Array) -> Vectors:
        """Return predicted positions in the frames `end`, from those in `start`."""
        position = self.points[start, marker]
        return predict_from_neighbours(
            self.points, self.neighbours, marker, position, start, end
        )

    def limit(
        self,
        marker: Markers,
        n_frames: Frames,
        max_error_ratio: float = MAX_ERROR_RATIO,
    ) -> Values:
        """Return the largest acceptable prediction error of steps, in metres."""
        error = self.one_frame_error[marker] * np.maximum(n_frames, 1)
        error = np.minimum(error, self.largest_error[marker])
        return np.asarray(max_error_ratio * error)

    def find_unpredicted_steps(
        self, max_error_ratio: float = MAX_ERROR_RATIO
    ) -> MarkerSteps:
        """Return the steps that the neighbours fail to predict, sorted by time.

        Only steps with a large second difference, and steps across missing frames, are
        compared with their prediction, because predictions are slow.
        """
        size = self._second_differences()
        every = range(self.points.shape[1])
        candidates = join_steps(self._sudden_steps(size[:, k], k) for k in every)
        limit = self.limit(candidates.marker, candidates.n_frames, max_error_ratio)
        steps = candidates.select(self._errors(candidates) > limit)
        return steps.select(np.lexsort((steps.marker, steps.end)))

    def _steps(self, marker: int) -> MarkerSteps:
        """Return the steps of a marker, sorted by time."""
        frame = np.flatnonzero(self.seen[:, marker])
        of_marker = np.full(max(len(frame) - 1, 0), marker)
        return MarkerSteps(of_marker, frame[:-1], frame[1:])

    def _sample_steps(self, marker: int) -> MarkerSteps:
        """Return some steps of one frame of a marker, equally spaced in time."""
        steps = self._steps(marker)
        single = np.flatnonzero(steps.n_frames == 1)
        count = min(SAMPLE_STEPS, len(single))
        spread = np.linspace(0, len(single) - 1, count).astype(int)
        return steps.select(single[spread])

    def _sudden_steps(self, size: Values, marker: int) -> MarkerSteps:
        """Return the steps of a marker that are sudden, or across missing frames."""
        steps = self._steps(marker)
        acceleration = size[steps.end]
        is_sudden = acceleration > OUTLIER_SD * finite_median(acceleration)
        return steps.select(is_sudden | (steps.n_frames > 1))

    def _errors(self, steps: MarkerSteps) -> Values:
        """Return the distance (m) of each end from its prediction; NaN if unknown."""
        predicted = self.predict(steps.marker, steps.start, steps.end)
        error = self.points[steps.end, steps.marker] - predicted
        return np.asarray(np.linalg.norm(error, axis=1))

    def _marker_medians(self, values: Values, steps: MarkerSteps) -> Values:
        """Return the median over the steps of each marker, 0 without steps."""
        bounds = np.searchsorted(steps.marker, np.arange(self.points.shape[1] + 1))
        return np.array([finite_median(values[a:b]) for a, b in pairwise(bounds)])

    def _second_differences(self) -> Float[Array, "frame marker"]:
        """Return the second difference of positions up to each; infinite if unknown.

        It is known for a step of one frame that follows a step of one frame.
        """
        size = np.full(self.points.shape[:2], np.inf)
        for first in range(0, len(size) - 2, FRAMES_PER_CHUNK):
            points = self.points[first : first + FRAMES_PER_CHUNK + 2]
            change = points[2:] - 2.0 * points[1:-1] + points[:-2]
            size[first + 2 : first + 2 + len(change)] = geometry.lengths(change)
        size[np.isnan(size)] = np.inf
        return size
