"""Prediction error of marker steps, and the steps that neighbours do not predict."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

from marey.cleaning.neighbours import Neighbours, predict_from_neighbours
from marey.numerics.procrustes import points_seen

Array = np.ndarray

MIN_ACCELERATION_RATIO = 3.0
"""Second difference of a marker's positions, relative to its median, above which a step
is compared with its prediction. Higher is faster but misses small errors. Chosen by
hand."""

MAX_ERROR_RATIO = 4.0
"""Prediction error relative to its usual value above which a step is unpredicted.
Higher misses small errors, lower gives false alarms. Chosen by hand."""

SAMPLE_STEPS = 40
"""Steps per marker from which the usual prediction error is estimated. Chosen by
hand."""

STEADIEST_NEIGHBOURS = 3
"""Neighbours whose distances bound the prediction error of long steps. Chosen by
hand."""


@dataclass(frozen=True, slots=True, eq=False)
class MarkerSteps:
    """Steps of markers, each from a frame with the marker to the next such frame."""

    marker: Int[Array, " step"]
    start: Int[Array, " step"]
    end: Int[Array, " step"]

    def select(self, chosen: Array) -> "MarkerSteps":
        """Return some of the steps, by mask or index."""
        return MarkerSteps(self.marker[chosen], self.start[chosen], self.end[chosen])

    @property
    def n_frames(self) -> Int[Array, " step"]:
        """Frames from start to end."""
        return np.asarray(self.end - self.start)


class MarkerPredictor:
    """Predictions of marker positions by neighbours, with their usual error."""

    def __init__(
        self, points: Float[Array, "frame marker 3"], neighbours: Neighbours
    ) -> None:
        self.points, self.neighbours = points, neighbours
        self.steps = _all_steps(points)
        sample = _sample_steps(self.steps, points.shape[1])
        # Median error of steps of one frame, and a bound for steps of any length.
        self.one_frame_error = self._marker_medians(self._errors(sample), sample)
        sd = neighbours.distance_sd[:, :STEADIEST_NEIGHBOURS]
        largest_sd = np.where(np.isfinite(sd), sd, 0.0).max(axis=1, initial=0.0)
        self.largest_error = np.maximum(2.0 * largest_sd, self.one_frame_error)

    def predict(
        self, marker: Int[Array, " step"], start: Array, end: Array
    ) -> Float[Array, "step 3"]:
        """Return predicted positions in the frames `end`, from those in `start`."""
        position = self.points[start, marker]
        return predict_from_neighbours(
            self.points, self.neighbours, marker, position, start, end
        )

    def limit(
        self, marker: Int[Array, " step"], n_frames: Int[Array, " step"]
    ) -> Float[Array, " step"]:
        """Return the largest acceptable prediction error of steps, in metres."""
        error = self.one_frame_error[marker] * np.maximum(n_frames, 1)
        error = np.minimum(error, self.largest_error[marker])
        return np.asarray(MAX_ERROR_RATIO * error)

    def find_unpredicted_steps(
        self, max_error_ratio: float = MAX_ERROR_RATIO
    ) -> MarkerSteps:
        """Return the steps that the neighbours fail to predict, sorted by time.

        Only steps with a large second difference, and steps across missing frames, are
        compared with their prediction, because predictions are slow.
        """
        acceleration = _second_differences(self.points, self.steps)
        usual = self._marker_medians(acceleration, self.steps)[self.steps.marker]
        is_sudden = acceleration > MIN_ACCELERATION_RATIO * usual
        candidates = self.steps.select(is_sudden | (self.steps.n_frames > 1))
        limit = self.limit(candidates.marker, candidates.n_frames)
        limit = max_error_ratio / MAX_ERROR_RATIO * limit
        steps = candidates.select(self._errors(candidates) > limit)
        return steps.select(np.lexsort((steps.marker, steps.end)))

    def _errors(self, steps: MarkerSteps) -> Float[Array, " step"]:
        """Return the distance of each end from its prediction; NaN if unknown."""
        predicted = self.predict(steps.marker, steps.start, steps.end)
        error = self.points[steps.end, steps.marker] - predicted
        return np.asarray(np.linalg.norm(error, axis=1))

    def _marker_medians(
        self, values: Float[Array, " step"], steps: MarkerSteps
    ) -> Float[Array, " marker"]:
        """Return the median over the steps of each marker; zero without steps."""
        # Numba is slow to import.
        from marey.cleaning.prediction_error_kernel import write_marker_medians

        out = np.empty(self.points.shape[1])
        write_marker_medians(values, steps.marker, out)
        return out


def _all_steps(points: Float[Array, "frame marker 3"]) -> MarkerSteps:
    """Return the steps of all markers, sorted by marker, then by time."""
    marker, frame = np.nonzero(points_seen(points).T)
    same = marker[1:] == marker[:-1]
    return MarkerSteps(marker[1:][same], frame[:-1][same], frame[1:][same])


def _sample_steps(steps: MarkerSteps, n_markers: int) -> MarkerSteps:
    """Return some steps of one frame of each marker, equally spaced in time."""
    single = np.flatnonzero(steps.n_frames == 1)
    bounds = np.searchsorted(steps.marker[single], np.arange(n_markers + 1))
    sample = [
        single[np.linspace(a, b - 1, min(SAMPLE_STEPS, b - a)).astype(int)]
        for a, b in pairwise(bounds.tolist())
        if b > a
    ]
    return steps.select(np.concatenate([single[:0], *sample]))


def _second_differences(points: Array, steps: MarkerSteps) -> Float[Array, " step"]:
    """Return the difference of each step from the one before; infinite if unknown."""
    # Numba is slow to import.
    from marey.cleaning.prediction_error_kernel import write_second_differences

    out = np.empty(len(steps.marker))
    write_second_differences(points, steps.marker, steps.start, steps.end, out)
    return out
