"""Statistics of the distance between every two markers over time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

Array = np.ndarray

MAX_FRAMES = 600
"""Number of frames of a take that are used, evenly spaced. Higher is slower and hardly
more precise. Chosen by hand."""

MIN_COMMON_FRAMES = 20
"""Number of frames that must show both markers of a pair. Higher leaves more pairs
unknown. Chosen by hand."""

N_BLOCKS = 10
"""Number of blocks of time whose quantiles are taken separately. With one block, a
joint that moves for a moment only would pass for noise. Chosen by hand."""

SINGLE_PRECISION_FRAMES = 64
"""Number of frames that are summed in single precision before double precision. Higher
is faster and less exact. Chosen by hand."""

Q05, Q95 = 0.05, 0.95
"""Quantiles whose distance measures the spread within a block."""

Q05_Q95_SD = 3.29
"""Standard deviations of a normal distribution between these quantiles, 2 x 1.645."""


@dataclass(frozen=True, slots=True, eq=False)
class PairStats:
    """Distances of all pairs of markers, over one or several takes."""

    spread: Float[Array, "marker marker"]
    """Robust standard deviation of the distance, in metres; NaN for a pair that too few
    frames show together, 0 on the diagonal."""

    distance: Float[Array, "marker marker"]
    """Median distance in metres; NaN and 0 likewise."""

    @property
    def is_known(self) -> Bool[Array, "marker marker"]:
        """Whether enough frames show the pair together; False on the diagonal."""
        known = np.asarray(np.isfinite(self.spread))
        np.fill_diagonal(known, val=False)
        return known

    @property
    def known_spread(self) -> Float[Array, "marker marker"]:
        """The spread of known pairs, infinite elsewhere."""
        return np.where(self.is_known, self.spread, np.inf)

    def select(self, markers: Int[Array, " kept"]) -> "PairStats":
        """Return the statistics of some of the markers, by index."""
        pairs = np.ix_(markers, markers)
        return PairStats(self.spread[pairs], self.distance[pairs])


def pair_statistics(takes: Sequence[Float[Array, "_ marker 3"]]) -> PairStats:
    """Return the robust spread and the median of the distance of every pair.

    The variance of a pair is the mean over blocks of time of the squared range from the
    5 % to the 95 % quantile, in standard deviations, plus the squared distance of the
    block's median from the median of all blocks. Variances of several takes are
    averaged with the number of frames as weights: a marker that was attached elsewhere
    for the next take changes nothing.

    Args:
        takes: Positions of the same markers, in metres, NaN where unseen.
    """
    from marey.segmentation.clusters.pair_statistics_kernel import pair_spreads

    n_markers = takes[0].shape[1]
    pairs = _pair_indices(n_markers)
    variance, distance, weight_sum = (np.zeros(len(pairs)) for _ in range(3))
    for points in takes:
        positions, seen = _marker_major(points[evenly_spaced(len(points))])
        spread, median, n_common = pair_spreads(
            positions, seen, pairs, N_BLOCKS, Q05, Q95, Q05_Q95_SD
        )
        weight = np.where(n_common >= MIN_COMMON_FRAMES, n_common, 0)
        variance += weight * np.nan_to_num(spread) ** 2
        distance += weight * np.nan_to_num(median)
        weight_sum += weight
    weight_sum = np.where(weight_sum > 0, weight_sum, np.nan)
    return PairStats(
        _symmetric(np.sqrt(variance / weight_sum), n_markers),
        _symmetric(distance / weight_sum, n_markers),
    )


def pair_deviations(points: Float[Array, "frame marker 3"]) -> PairStats:
    """Return mean and standard deviation of all distances over all frames.

    Plain moments as in DeAguiar2006; they are not robust against outliers.
    """
    from marey.segmentation.clusters.pair_statistics_kernel import pair_moments

    positions, seen = _marker_major(points)
    n_markers = len(positions)
    single = np.where(seen[:, None], positions, 0.0).astype(np.float32)
    mean, sd = pair_moments(
        single,
        seen.astype(np.float32),
        _pair_indices(n_markers),
        SINGLE_PRECISION_FRAMES,
    )
    return PairStats(_symmetric(sd, n_markers), _symmetric(mean, n_markers))


def _pair_indices(n_markers: int) -> Int[Array, "pair 2"]:
    return np.stack(np.triu_indices(n_markers, 1), axis=1)


def _symmetric(values: Float[Array, " pair"], n: int) -> Float[Array, "marker marker"]:
    """Return one value per pair as a symmetric matrix with a zero diagonal."""
    matrix = np.zeros((n, n))
    first, second = np.triu_indices(n, 1)
    matrix[first, second] = matrix[second, first] = values
    return matrix


def evenly_spaced(n_frames: int, max_frames: int = MAX_FRAMES) -> slice:
    """Return a slice of evenly spaced frames, at most a given number."""
    return slice(None, None, max(-(-n_frames // max_frames), 1))


def _marker_major(
    points: Float[Array, "frame marker 3"],
) -> tuple[Float[Array, "marker 3 frame"], Bool[Array, "marker frame"]]:
    """Return the positions marker by marker, and whether each was seen."""
    seen = np.isfinite(points).all(axis=-1).T
    return np.ascontiguousarray(points.transpose(1, 2, 0)), np.ascontiguousarray(seen)
