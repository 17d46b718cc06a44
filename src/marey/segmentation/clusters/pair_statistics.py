"""How steadily every two markers keep their distance."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

Array = np.ndarray

MOST_FRAMES = 600
"""Frames of a take that are looked at, evenly spread: more tell nothing new."""

FEWEST_FRAMES = 20
"""Frames in common below which a pair of markers says nothing."""

BLOCKS = 10
"""Parts of a take that are looked at by themselves: a joint that moves for a moment
only must not pass for noise."""

# Frames that may be summed in single precision.
SINGLE = 64

# The middle nine tenths of a normal distribution are this many standard deviations.
NINE_TENTHS = 3.29


@dataclass(frozen=True, slots=True, eq=False)
class PairStats:
    """Distances of all pairs of markers, over one or several takes."""

    spread: Float[Array, "marker marker"]
    """Robust standard deviation of the distance, in metres; NaN where the two were not
    seen together often enough to tell, 0 on the diagonal."""

    distance: Float[Array, "marker marker"]
    """Median distance in metres; NaN and 0 likewise."""

    @property
    def known(self) -> Bool[Array, "marker marker"]:
        """Whether the pair was seen together often enough; never the diagonal."""
        known = np.asarray(np.isfinite(self.spread))
        np.fill_diagonal(known, val=False)
        return known

    def of(self, markers: Int[Array, " kept"]) -> "PairStats":
        """Return the distances of some of the markers, by index."""
        pairs = np.ix_(markers, markers)
        return PairStats(self.spread[pairs], self.distance[pairs])


def pair_statistics(takes: Sequence[Float[Array, "_ marker 3"]]) -> PairStats:
    """Return how steadily every two markers keep their distance.

    The spread is that of the middle nine tenths of the frames in which both were seen,
    part by part of the take, and of the parts against each other. Takes are pooled by
    their variances: a marker put on elsewhere for the next take changes nothing.
    """
    from marey.segmentation.clusters.pair_statistics_kernel import pair_spreads

    n_markers = takes[0].shape[1]
    pairs = _pairs(n_markers)
    variance, distance, total = (np.zeros(len(pairs)) for _ in range(3))
    for points in takes:
        places, seen = arranged(points[thinned(len(points))])
        spread, middle, count = pair_spreads(
            places, seen, pairs, BLOCKS, 0.05, 0.95, NINE_TENTHS
        )
        weight = np.where(count >= FEWEST_FRAMES, count, 0)
        variance += weight * np.nan_to_num(spread) ** 2
        distance += weight * np.nan_to_num(middle)
        total += weight
    known = total > 0
    total = np.where(known, total, np.nan)
    return PairStats(
        _square(np.sqrt(variance / total), n_markers),
        _square(distance / total, n_markers),
    )


def pair_deviations(points: Float[Array, "frame marker 3"]) -> PairStats:
    """Return mean and standard deviation of all distances over all frames.

    Plain moments, as DeAguiar2006 has them: one lost marker spoils them.
    """
    from marey.segmentation.clusters.pair_statistics_kernel import pair_moments

    pairs = _pairs(points.shape[1])
    places, seen = arranged(points)
    single = np.where(seen[:, None], places, 0.0).astype(np.float32)
    mean, sd = pair_moments(single, seen.astype(np.float32), pairs, SINGLE)
    return PairStats(_square(sd, len(places)), _square(mean, len(places)))


def _pairs(n_markers: int) -> Int[Array, "pair 2"]:
    return np.stack(np.triu_indices(n_markers, 1), axis=1)


def _square(values: Float[Array, " pair"], n: int) -> Float[Array, "marker marker"]:
    out = np.zeros((n, n))
    first, second = np.triu_indices(n, 1)
    out[first, second] = out[second, first] = values
    return out


def thinned(n_frames: int, most: int = MOST_FRAMES) -> slice:
    """Return evenly spread frames, at most so many."""
    return slice(None, None, max(-(-n_frames // most), 1))


def arranged(
    points: Float[Array, "frame marker 3"],
) -> tuple[Float[Array, "marker 3 frame"], Bool[Array, "marker frame"]]:
    """Return positions marker by marker, and where each was seen."""
    seen = np.isfinite(points).all(axis=-1).T
    return np.ascontiguousarray(points.transpose(1, 2, 0)), np.ascontiguousarray(seen)
