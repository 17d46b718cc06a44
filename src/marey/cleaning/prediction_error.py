"""Steps of markers from one frame they are seen in to the next, and the odd ones."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

from marey.cleaning.neighbours import Company, carried
from marey.numerics.procrustes import points_seen

Array = np.ndarray

# A step is looked at closely when it bends so many times more than is usual.
BENDS = 3.0

# A marker is off its way when its mates foretell it worse than so many times the usual.
TIMES = 4.0

# Steps per marker from which it is learnt how well its mates foretell it.
SAMPLE = 40

# The mates that keep their distance best, which tell how far a marker strays at all.
CLOSEST = 3


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Steps of markers, each from a frame they are seen in to the next such frame."""

    marker: Int[Array, " step"]
    start: Int[Array, " step"]
    end: Int[Array, " step"]

    def of(self, some: Array) -> "Steps":
        """Return some of the steps."""
        return Steps(self.marker[some], self.start[some], self.end[some])

    @property
    def length(self) -> Int[Array, " step"]:
        """Frames from start to end."""
        return np.asarray(self.end - self.start)


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """How far markers end from where their mates carry them, as a rule."""

    step: Float[Array, " marker"]
    """From one frame to the next, median, in metres."""

    most: Float[Array, " marker"]
    """However long the step."""

    def limit(
        self, marker: Int[Array, " step"], length: Int[Array, " step"]
    ) -> Float[Array, " step"]:
        """Return how far off a step of some frames may end."""
        grown = self.step[marker] * np.maximum(length, 1)
        return np.asarray(TIMES * np.minimum(grown, self.most[marker]))


def steps_of(points: Float[Array, "frame marker 3"]) -> Steps:
    """Return the steps of all markers, marker after marker."""
    marker, frame = np.nonzero(points_seen(points).T)
    same = marker[1:] == marker[:-1]
    return Steps(marker[1:][same], frame[:-1][same], frame[1:][same])


def reach_of(
    points: Float[Array, "frame marker 3"], company: Company, steps: Steps
) -> Reach:
    """Return how well mates foretell each marker, from a sample of its steps."""
    plain = np.flatnonzero(steps.length == 1)
    edge = np.searchsorted(steps.marker[plain], np.arange(points.shape[1] + 1))
    picked = [
        plain[np.linspace(a, b - 1, min(SAMPLE, b - a)).astype(int)]
        for a, b in pairwise(edge.tolist())
        if b > a
    ]
    some = steps.of(np.concatenate([plain[:0], *picked]))
    step = _medians(steps_off(points, company, some), some.marker, points.shape[1])
    known = company.spread[:, :CLOSEST]
    widest = np.where(np.isfinite(known), known, 0.0).max(axis=1, initial=0.0)
    return Reach(step, np.maximum(2.0 * widest, step))


def odd_steps(
    points: Float[Array, "frame marker 3"],
    company: Company,
    steps: Steps,
    reach: Reach,
    *,
    times: float = TIMES,
) -> Steps:
    """Return the steps that end where no mate foretold, in the order of time.

    Only steps that bend, or that lead across frames in which the marker was not seen,
    are held against the mates.
    """
    bend = _bends(points, steps)
    usual = _medians(bend, steps.marker, points.shape[1])
    close = (bend > BENDS * usual[steps.marker]) | (steps.length > 1)
    asked = steps.of(close)
    off = steps_off(points, company, asked)
    limit = reach.limit(asked.marker, asked.length)
    odd = asked.of(off > times / TIMES * limit)
    return odd.of(np.lexsort((odd.marker, odd.end)))


def steps_off(
    points: Float[Array, "frame marker 3"], company: Company, steps: Steps
) -> Float[Array, " step"]:
    """Return how far steps end from where the mates carry them; NaN if unknown."""
    place = points[steps.start, steps.marker]
    there = carried(points, company, steps.marker, place, steps.start, steps.end)
    return np.asarray(np.linalg.norm(points[steps.end, steps.marker] - there, axis=1))


def _bends(points: Array, steps: Steps) -> Float[Array, " step"]:
    """Return how much each step differs from the one before; infinite if unknown."""
    from marey.cleaning.prediction_error_kernel import bends  # numba is slow to import

    out = np.empty(len(steps.marker))
    bends(points, steps.marker, steps.start, steps.end, out)
    return out


def _medians(values: Array, marker: Array, count: int) -> Float[Array, " marker"]:
    """Return the median of each marker's values; zero where it has none."""
    from marey.cleaning.prediction_error_kernel import (
        medians,  # numba is slow to import
    )

    out = np.empty(count)
    medians(values, marker, out)
    return out
