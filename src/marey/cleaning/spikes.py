"""Markers that jump away and back: one frame, or a few."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.cleaning.neighbours import carried, company_of
from marey.cleaning.outliers import MOST, CleanOptions, Outlier
from marey.cleaning.prediction_error import reach_of, steps_of
from marey.cleaning.runs import FEWEST, allowed_of, excursions, suddenness
from marey.take import Take

Array = np.ndarray

# Steps this many times as sudden as is usual at the moment are jumps.
TIMES = 8.0

# How many times nearer a marker is to its own place after a spike than during it.
ARRIVES = 2.0

HIDDEN = 1.0
"""Seconds for which a marker that is not seen is still expected somewhere."""


def find_spikes(take: Take, options: CleanOptions | None = None) -> tuple[Outlier, ...]:
    """Return the frames in which markers are elsewhere for a moment.

    Two witnesses must agree. The marker's own way: a single step far from the steps
    next to it, and one back. And the markers around: they carry it to another place
    than it jumped to. Hands and feet that strike are fast, but not sudden; a body that
    is shaken takes its markers along. Where too few markers are around, a jump must be
    as large as one of a sensor.

    Args:
        take: The recording.
        options: What counts as an error.
    """
    chosen = options or CleanOptions()
    runs = [
        (marker, first, last)
        for marker in range(len(take.labels))
        for first, last in _jumps(take.points[:, marker], take.rate, chosen)
    ]
    if not runs:
        return ()
    far = _Witnesses(take, chosen).far(np.array(runs))
    found = [
        Outlier(take.full_labels[marker], "spike", first, last, float(size))
        for (marker, first, last), size in zip(runs, far, strict=True)
        if size > 0.0
    ]
    return tuple(_few(take, found))


def _jumps(
    points: Float[Array, "frame 3"], rate: float, options: CleanOptions
) -> Iterator[tuple[int, int]]:
    """Return the first and last frames of the runs that begin and end with a jump."""
    frames = np.flatnonzero(np.isfinite(points).all(axis=1))
    if len(frames) < FEWEST:
        return
    values = points[frames]

    def apart(some: slice, others: slice) -> Float[Array, "1 pair"]:
        return np.asarray(np.linalg.norm(values[others] - values[some], axis=1)[None])

    step = np.diff(values, axis=0) / np.diff(frames)[:, None]
    sudden = suddenness(step)[None]
    allowed = allowed_of(sudden, TIMES, np.array([[options.spike]]), rate)
    longest = int(options.longest * rate)
    for first, last in excursions(apart, frames, sudden, allowed, longest):
        yield int(frames[first]), int(frames[last])


class _Witnesses:
    """What the markers around say of jumps."""

    def __init__(self, take: Take, options: CleanOptions) -> None:
        self.take, self.options = take, options
        self.company = company_of(take.points, take.rate)
        steps = steps_of(take.points)
        self.reach = reach_of(take.points, self.company, steps)

    def far(self, runs: Int[Array, "run 3"]) -> Float[Array, " run"]:
        """Return how far markers are from where others carry them; 0 where near.

        They are carried into the run from the frame before it and from the one after
        it, and from the one to the other: there they must arrive.
        """
        marker, first, last = runs.T
        before, after = _around(self.take.seen, runs)
        into = self._off(marker, before, first)
        back = self._off(marker, after, last)
        through = self._off(marker, before, after)
        far = np.fmin(into, back)
        # At either end of the take there is one witness only.
        alone = (before < 0) | (after < 0)
        known = np.isfinite(far) & ~(alone & (far < self.options.jump))
        size = np.where(known, far, 0.0)
        arrives = np.isnan(through) | (ARRIVES * through < size)
        return np.where(arrives & ~self._is_trade(runs, before, size), size, 0.0)

    def _off(
        self, marker: Int[Array, " run"], start: Array, end: Array
    ) -> Float[Array, " run"]:
        """Return how far off steps end, 0 where no farther than usual; NaN if none.

        Where too few markers are around, it is how far the step itself leads.
        """
        there = self._carried(marker, start, end)
        points = self.take.points
        off = np.linalg.norm(points[end, marker] - there, axis=1)
        step = np.linalg.norm(points[end, marker] - points[start, marker], axis=1)
        limit = self.reach.limit(marker, np.abs(end - start))
        blind = np.isnan(off)
        least = np.where(blind, self.options.jump, np.fmax(limit, self.options.spike))
        off = np.where(blind, step, off)
        return np.where((start < 0) | (end < 0), np.nan, np.where(off > least, off, 0))

    def _carried(self, marker: Array, start: Array, end: Array) -> Array:
        points = self.take.points
        there = carried(points, self.company, marker, points[start, marker], start, end)
        return np.asarray(there)

    def _is_trade(
        self, runs: Int[Array, "run 3"], before: Array, size: Float[Array, " run"]
    ) -> Bool[Array, " run"]:
        """Return where labels may have been traded, which is no spike.

        Another label stands where the marker should be, or it went to the place of a
        marker that is not seen.
        """
        marker, first, _ = runs.T
        there = self._carried(marker, before, first)
        instead = np.linalg.norm(self.take.points[first] - there[:, None], axis=-1)
        instead[np.arange(len(runs)), marker] = np.inf
        near = np.fmax(self.reach.limit(marker, first - before), self.options.spike)
        trade = (before >= 0) & (instead < near[:, None]).any(axis=1)
        for k in np.flatnonzero((size > 0.0) & ~trade).tolist():
            trade[k] = self._is_at_hidden(int(marker[k]), int(first[k]), size[k])
        return np.asarray(trade)

    def _is_at_hidden(self, marker: int, frame: int, off: float) -> bool:
        """Return whether a marker is where one should be that is not seen."""
        points, seen = self.take.points, self.take.seen
        recent = slice(max(frame - int(HIDDEN * self.take.rate), 0), frame)
        hidden = np.flatnonzero(~seen[frame] & seen[recent].any(axis=0))
        if not len(hidden):
            return False
        last = frame - 1 - seen[recent][::-1, hidden].argmax(axis=0)
        place = points[frame, marker]
        close = np.linalg.norm(points[last, hidden] - place, axis=1) < off
        hidden, last = hidden[close], last[close]
        there = self._carried(hidden, last, np.full(len(hidden), frame))
        away = np.linalg.norm(there - place, axis=1)
        return bool((away < self.reach.limit(hidden, frame - last)).any())


def _around(
    seen: Bool[Array, "frame marker"], runs: Int[Array, "run 3"]
) -> tuple[Int[Array, " run"], Int[Array, " run"]]:
    """Return the frames before and after runs that show the marker; -1 if none do."""
    count = np.arange(len(seen))[:, None]
    before = np.maximum.accumulate(np.where(seen, count, -1), axis=0)
    after = np.minimum.accumulate(np.where(seen, count, len(seen))[::-1], axis=0)[::-1]
    marker, first, last = runs.T
    earlier = np.where(first > 0, before[np.maximum(first - 1, 0), marker], -1)
    end = len(seen) - 1
    later = np.where(last < end, after[np.minimum(last + 1, end), marker], len(seen))
    return earlier, np.where(later < len(seen), later, -1)


def _few(take: Take, found: list[Outlier]) -> Iterator[Outlier]:
    """Return the spikes of markers that are right in most frames."""
    labels = take.full_labels
    seen = dict(zip(labels, take.seen.sum(axis=0).tolist(), strict=True))
    for label in dict.fromkeys(outlier.name for outlier in found):
        mine = [outlier for outlier in found if outlier.name == label]
        if sum(o.last - o.first + 1 for o in mine) <= MOST * seen[label]:
            yield from mine
