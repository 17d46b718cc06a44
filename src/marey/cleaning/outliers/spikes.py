"""Spikes: outliers of markers, which jump away and back within a few frames."""

import numpy as np

from marey.cleaning.arrays import Array, Markers, Values
from marey.cleaning.neighbours import MarkerPredictor, find_neighbours
from marey.cleaning.options import CleanOptions
from marey.cleaning.outliers.mask import Outlier, drop_frequent
from marey.cleaning.outliers.runs import JUMP_RATIO, find_position_runs, may_jump
from marey.numerics import Bool, Int, geometry, robust
from marey.numerics.thresholds import FEW, MIN_POSE_POINTS
from marey.take import Take

MIN_SPIKE_TO_RETURN_RATIO = 2.0
"""Prediction error during a spike relative to that after it. Higher misses spikes of
markers with a large prediction error. Chosen by hand."""

MAX_HIDDEN_S = 1.0
"""Seconds for which the position of an unseen marker is predicted. Higher takes more
spikes for label swaps. Chosen by hand."""


def find_spikes(take: Take, options: CleanOptions | None = None) -> tuple[Outlier, ...]:
    """Return the frames in which markers jump away and back.

    Three conditions must hold. The marker's own path has a jump away and one back:
    steps far from the median of the steps around them. The neighbours do not predict
    the jump: limbs that strike are fast but predicted. And the marker does not keep its
    distances from the steadiest of them: in a take of a second, neighbours may belong
    to other bodies that moved apart only once, and their prediction fails. If too few
    neighbours are seen, the jump must be as large as that of a sensor
    (`CleanOptions.min_jump`).

    Args:
        take: The recording.
        options: Thresholds.
    """
    chosen = options or CleanOptions()
    limits = JUMP_RATIO, chosen.min_spike, int(chosen.max_outlier * take.rate)
    runs = [
        (marker, *run)
        for marker in np.flatnonzero(may_jump(take.points, *limits[:2])).tolist()
        for run in find_position_runs(take.points[:, marker], take.rate, *limits)
    ]
    if not runs:
        return ()
    sizes = _NeighbourTest(take, chosen).spike_sizes(np.array(runs))
    spikes = [
        Outlier(take.full_labels[marker], "spike", first, last, float(size))
        for (marker, first, last), size in zip(runs, sizes, strict=True)
        if size > 0.0
    ]
    n_seen = dict(zip(take.full_labels, take.seen.sum(axis=0).tolist(), strict=True))
    return drop_frequent(spikes, n_seen)


def find_zeros(take: Take, options: CleanOptions | None = None) -> tuple[Outlier, ...]:
    """Return the frames in which markers are exactly zero though else far from it.

    Some software writes zeros for markers that it did not see. A marker with any other
    position within `CleanOptions.min_jump` of the origin is not tested.

    Args:
        take: The recording.
        options: Thresholds.
    """
    outliers: list[Outlier] = []
    distance = geometry.lengths(take.points)
    if distance.all():
        return ()
    for label, of_marker in zip(take.full_labels, distance.T, strict=True):
        nearest = np.min(of_marker[of_marker > 0.0], initial=np.inf)
        if (options or CleanOptions()).min_jump < nearest < np.inf:
            outliers += [
                Outlier(label, "zero", first, last, float(nearest))
                for first, last in robust.runs(of_marker == 0.0)
            ]
    return tuple(outliers)


class _NeighbourTest:
    """Comparison of jumps with the positions that neighbours predict.

    A run is a marker with its first and last frame away.
    """

    def __init__(self, take: Take, options: CleanOptions) -> None:
        self.take, self.options, self.seen = take, options, take.seen
        neighbours = find_neighbours(take.points, take.rate)
        self.predictor = MarkerPredictor(take.points, neighbours)

    def spike_sizes(self, runs: Int[Array, "run 3"]) -> Values:
        """Return the distance of each run from its prediction in metres; 0 = no spike.

        The run is predicted from the frame before it and from the frame after it. The
        frame after it is predicted from the frame before it; there the error must be
        small.
        """
        marker, first, last = runs.T
        seen, n_frames = self.seen, self.take.n_frames
        # The frames around each run that show its marker; -1 if none does.
        before, after = (
            np.array([next((f for f in span if seen[f, m]), -1) for m, span in spans])
            for spans in (
                [(m, range(f)[::-1]) for m, f, _ in runs.tolist()],
                [(m, range(n + 1, n_frames)) for m, _, n in runs.tolist()],
            )
        )
        error_from_before = self._errors(marker, before, first)
        error_from_after = self._errors(marker, after, last)
        return_error = self._errors(marker, before, after)
        error = np.fmin(error_from_before, error_from_after)
        # At either end of the take there is only one prediction.
        is_at_end = (before < 0) | (after < 0)
        is_known = np.isfinite(error) & ~(is_at_end & (error < self.options.min_jump))
        size = np.where(is_known, error, 0.0)
        returns = np.isnan(return_error) | (
            MIN_SPIKE_TO_RETURN_RATIO * return_error < size
        )
        with_neighbours = self._keeps_distances(marker, before, first, size)
        with_neighbours |= self._keeps_distances(marker, after, last, size)
        is_swap = self._may_be_swap(runs, before, size)
        return np.where(returns & ~with_neighbours & ~is_swap, size, 0.0)

    def _errors(self, marker: Markers, start: Array, end: Array) -> Values:
        """Return prediction errors (m), 0 below the limit, NaN without start or end.

        Without a prediction it is the distance from start to end.
        """
        points = self.take.points
        predicted = self.predictor.predict(marker, start, end)
        error = np.linalg.norm(points[end, marker] - predicted, axis=1)
        step = np.linalg.norm(points[end, marker] - points[start, marker], axis=1)
        limit = self.predictor.limit(marker, np.abs(end - start))
        limit = np.fmax(limit, self.options.min_spike)
        is_unpredicted = np.isnan(error)
        limit = np.where(is_unpredicted, self.options.min_jump, limit)
        error = np.where(is_unpredicted, step, error)
        error = np.where(error > limit, error, 0)
        return np.where((start < 0) | (end < 0), np.nan, error)

    def _keeps_distances(
        self, marker: Markers, start: Array, end: Array, size: Values
    ) -> Bool[Array, " run"]:
        """Return which runs keep most distances from neighbours that move with them.

        One of the steadiest neighbours must move by half the size of the run. The
        distances of a spike change by about its size, and its neighbours stay.
        """
        points, near = self.take.points, self.predictor.neighbours.index[marker]
        near = near[:, :MIN_POSE_POINTS]
        if near.shape[1] < MIN_POSE_POINTS:
            return np.zeros(len(marker), dtype=bool)
        then, now = (points[frame[:, None], near] for frame in (start, end))
        arms = then - points[start, marker][:, None], now - points[end, marker][:, None]
        change = np.diff([np.linalg.norm(arm, axis=2) for arm in arms], axis=0)[0]
        moved = np.linalg.norm(now - then, axis=2).max(axis=1)
        is_kept = np.median(np.abs(change), axis=1) < FEW * size
        return np.asarray(is_kept & (2.0 * moved > size) & (start >= 0) & (end >= 0))

    def _may_be_swap(
        self, runs: Int[Array, "run 3"], before: Array, size: Values
    ) -> Bool[Array, " run"]:
        """Return which runs may be label swaps, which are not spikes.

        Another label is at the predicted position of the marker, or the marker jumped
        to the predicted position of an unseen marker.
        """
        marker, first, _ = runs.T
        predicted = self.predictor.predict(marker, before, first)
        distance = geometry.lengths(self.take.points[first] - predicted[:, None])
        distance[np.arange(len(runs)), marker] = np.inf
        limit = self.predictor.limit(marker, first - before)
        limit = np.fmax(limit, self.options.min_spike)
        is_swap = (before >= 0) & (distance < limit[:, None]).any(axis=1)
        for k in np.flatnonzero((size > 0.0) & ~is_swap).tolist():
            is_swap[k] = self._is_at_hidden(int(marker[k]), int(first[k]), size[k])
        return np.asarray(is_swap)

    def _is_at_hidden(self, marker: int, frame: int, size: float) -> bool:
        """Return whether a marker is at the predicted position of an unseen marker.

        Only markers that were last seen within the size of the jump are compared.
        """
        points, seen = self.take.points, self.seen
        recent = slice(max(frame - int(MAX_HIDDEN_S * self.take.rate), 0), frame)
        hidden = np.flatnonzero(~seen[frame] & seen[recent].any(axis=0))
        if not len(hidden):
            return False
        last = frame - 1 - seen[recent][::-1, hidden].argmax(axis=0)
        position = points[frame, marker]
        is_near = np.linalg.norm(points[last, hidden] - position, axis=1) < size
        hidden, last = hidden[is_near], last[is_near]
        predicted = self.predictor.predict(hidden, last, np.full(len(hidden), frame))
        distance = np.linalg.norm(predicted - position, axis=1)
        return bool((distance < self.predictor.limit(hidden, frame - last)).any())
