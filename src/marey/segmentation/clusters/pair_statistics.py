"""Statistics of the distance between every two markers over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.numerics.thresholds import FEW, MOST

Array = np.ndarray

MAX_FRAMES = 600
"""Number of frames of a take that are used, evenly spaced. Higher is slower and hardly
more precise. Chosen by hand."""

MIN_COMMON_FRAMES = 20
"""Number of frames that must show both markers of a pair. Higher leaves more pairs
unknown. Chosen by hand."""

N_BLOCKS = round(1.0 / FEW)
"""Number of blocks of time whose quantiles are taken separately. With one block, a
joint that moves for a moment only would pass for noise."""

Q05, Q95 = 0.5 - 0.5 * MOST, 0.5 + 0.5 * MOST
"""Quantiles between which most values are; their distance measures the spread within a
block."""

Q05_Q95_SD = NormalDist().inv_cdf(Q95) - NormalDist().inv_cdf(Q05)
"""Standard deviations of a normal distribution between these quantiles."""

MIN_NOISE_PER_SPACING = 1e-3
"""Smallest usual noise, as a fraction of the usual spacing of markers. Bounds the log
odds of exact data. Chosen by hand."""

SPACING_RANK = 4
"""The nearest marker of this rank gives the spacing around a marker. Chosen by hand."""

STEADY_RATIO = 2.0
"""Spread, in units of noise, up to which a pair counts for the usual distance of
markers on one body; also the bound on a marker's noise there, and on the usual distance
relative to its median. Chosen by hand."""


@dataclass(frozen=True, eq=False)
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

    @cached_property
    def noise(self) -> float:
        """Usual spread of the distance between markers of one body, in metres.

        The median over markers of the smallest spread.
        """
        noise = float(np.median(self._smallest_spread))
        min_noise = MIN_NOISE_PER_SPACING * float(np.median(self._spacing))
        return max(noise, min_noise, float(np.finfo(float).tiny))

    @cached_property
    def body_distance(self) -> Float[Array, " marker"]:
        """Usual distance to markers on the same body, in metres.

        The median distance to markers of small spread, bounded.
        """
        spread, max_noise = self.known_spread, STEADY_RATIO * self.noise
        limit = STEADY_RATIO * np.clip(self._smallest_spread, self.noise, max_noise)
        median = np.empty(len(spread))
        for i, row in enumerate(spread):
            smallest = row.min()
            steady = row < limit[i] if smallest < limit[i] else row == smallest
            median[i] = np.nanmedian(self.distance[i, steady])
        median = _fill_with_median(median)
        bounded = np.minimum(median, STEADY_RATIO * np.median(median))
        return np.asarray(np.maximum(self._spacing, bounded))

    @cached_property
    def _smallest_spread(self) -> Float[Array, " marker"]:
        return _fill_with_median(self.known_spread.min(axis=1))

    @cached_property
    def _spacing(self) -> Float[Array, " marker"]:
        """Distance of each marker to one of its nearest neighbours, in metres."""
        distance = np.where(self.is_known, self.distance, np.inf)
        rank = min(SPACING_RANK, len(distance) - 1) - 1
        return _fill_with_median(np.sort(distance, axis=1)[:, max(rank, 0)])

    def select(self, markers: Int[Array, " kept"]) -> "PairStats":
        """Return the statistics of some of the markers, by index."""
        pairs = np.ix_(markers, markers)
        return PairStats(self.spread[pairs], self.distance[pairs])


def _fill_with_median(values: Float[Array, " marker"]) -> Float[Array, " marker"]:
    """Return the values with the median of the finite ones in place of the others."""
    known = np.isfinite(values)
    median = float(np.median(values[known])) if known.any() else 0.0
    return np.where(known, values, median)


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
    pairs = np.stack(np.triu_indices(n_markers, 1), axis=1)
    variance, distance, weight_sum = np.zeros((3, len(pairs)))
    for points in takes:
        positions = np.moveaxis(points[evenly_spaced(len(points))], 0, -1)
        seen = np.isfinite(positions).all(axis=1)
        spread, median, n_common = pair_spreads(
            positions.copy(), seen, pairs, N_BLOCKS, Q05, Q95, Q05_Q95_SD
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

    Plain moments as in DeAguiar2006; they are not robust against outliers. NaN for two
    markers that no frame shows together.
    """
    mean, sd = [], []
    for marker in range(points.shape[1]):
        distance = np.linalg.norm(points - points[:, marker : marker + 1], axis=-1)
        known = np.ma.masked_invalid(distance)
        mean.append(known.mean(axis=0).filled(np.nan))
        sd.append(known.std(axis=0).filled(np.nan))
    return PairStats(np.array(sd), np.array(mean))


def _symmetric(values: Float[Array, " pair"], n: int) -> Float[Array, "marker marker"]:
    """Return one value per pair as a symmetric matrix with a zero diagonal."""
    matrix = np.zeros((n, n))
    first, second = np.triu_indices(n, 1)
    matrix[first, second] = matrix[second, first] = values
    return matrix


def evenly_spaced(n_frames: int, max_frames: int = MAX_FRAMES) -> slice:
    """Return a slice of evenly spaced frames, at most a given number."""
    return slice(None, None, max(-(-n_frames // max_frames), 1))
