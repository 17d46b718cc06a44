r"""Distances between every two markers over time, and log odds of one rigid body.

The log odds that two markers are attached to one rigid body are a logistic model of two
ratios without a unit, so that the same coefficients serve a hand and a horse: the
spread :math:`s_{ij}` of the distance over the noise :math:`\sigma` of the two markers,
and the distance :math:`d_{ij}` over the usual distance :math:`r` of markers on one
body:

.. math::

   \log\frac{p}{1-p} = \beta_0 - \beta_1 \ln\frac{s_{ij}}{\sqrt{\sigma_i\sigma_j}}
                     - \beta_2 \ln\frac{d_{ij}}{\sqrt{r_i r_j}}
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from marey.kernels.threads import count_threads, map_in_threads
from marey.numerics import Array, Bool, Float, Int, geometry
from marey.numerics.resampling import symmetric_sample
from marey.numerics.thresholds import (
    CERTAIN_SD,
    FEW,
    MIN_NOISE_SPACINGS,
    MIN_SAMPLES,
    MOST,
    SPACING_RANK,
)

Members = Bool[Array, "body marker"]
"""Which markers belong to which body; a marker may belong to several."""


INTERCEPT, SPREAD_COEFFICIENT, DISTANCE_COEFFICIENT = 1.61, 2.16, 4.19
"""Coefficients of the logistic model. Logistic regression over 22 recordings of people,
animals and machines with known bodies, each weighted equally. A higher intercept makes
larger bodies."""

MAX_LOG_DISTANCE = 0.8
"""Logarithm of the distance ratio beyond which distance counts no more, so that a long
stick can stay one body. Higher divides long bodies. Chosen by hand."""

MAX_LOG_ODDS = 4.0
MIN_LOG_ODDS = -2.0 * MAX_LOG_ODDS
"""Bounds of the log odds of one pair: no single pair decides alone. Wider bounds give
single pairs more weight. Chosen by hand."""

SLOPE_BEYOND_BOUNDS = 0.01
"""Slope of the log odds beyond their bounds. Pairs beyond them differ a little, so that
the order of the markers decides nothing; higher gives single pairs more weight. Chosen
by hand: in a first trial all of 108 shuffles of 54 recordings gave equal bodies, and
101 without it."""

PRIOR_PAIRS = 1.5
"""Weight of the usual noise in a marker's noise, in pairs of markers. Higher makes all
markers more equal. Chosen by hand."""

MIN_NOISE_RATIO = 0.3
"""Fraction of the usual noise below which spreads and the noise of a marker are treated
as equal to it. Higher makes very rigid pairs count less. Chosen by hand."""

CLEAR_LOG_ODDS = 3.0
"""Log odds that are clear, 20 to 1: two markers must gain that much by swapping bodies
to be reported as swapped, a single marker joins a body unless the odds against it are
clear, and a body that has at most one marker of its own gets that bonus, so that it
keeps shared markers. Higher misses swaps and leaves fewer single markers. Right labels
of two dozen recordings gained nothing by a swap; 99 of 100 swapped ones gain more."""

MIN_GAIN = 1e-9
"""Smallest gain of a change of the bodies. Guards against cycles by rounding."""

MIN_RIGID_MARKERS = 3
"""Number of points, not on a line, that determine a pose (Horn 1987)."""

ROUNDING_M = float(np.finfo(float).eps)
"""Least noise and least usual distance in metres, where markers lie on one point."""

MAX_POSITIONS = 100_000
"""Number of positions of markers of a take whose distances are compared, in evenly
spaced frames: 1,886 frames of 53 markers. Higher is slower, and finds bodies no better
in 60 recordings without labels; with half of it, twice as many names are wrong."""

N_BLOCKS = round(1.0 / FEW)
"""Number of blocks of time whose quantiles are taken separately. With one block, a
joint that moves for a moment only would pass for noise."""

Q05, Q95 = 0.5 - 0.5 * MOST, 0.5 + 0.5 * MOST
"""Quantiles between which most values are; their distance measures the spread within a
block."""

Q05_Q95_SD = NormalDist().inv_cdf(Q95) - NormalDist().inv_cdf(Q05)
"""Standard deviations of a normal distribution between these quantiles."""

WHITE_MEDIAN_FRAMES = 5
"""Frames of the median filter of distances where noise is white. More hide more noise,
and fast motion. Chosen on generated walks with 1 mm of white noise; of 81
recordings one has mostly white noise, so that they decided nothing."""

WHITE_MEDIAN_VARIANCE = 0.287
"""Variance of the median of as many normal values, in that of one (published, Teichroew
1956)."""

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
        """The spread of known pairs in metres, infinite elsewhere."""
        return np.where(self.is_known, self.spread, np.inf)

    @cached_property
    def noise(self) -> float:
        """Usual spread of the distance between markers of one body, in metres.

        The median over markers of the smallest spread.
        """
        return max(float(np.median(self._smallest_spread)), self.min_noise)

    @property
    def min_noise(self) -> float:
        """Noise in metres that no recording is below."""
        return max(MIN_NOISE_SPACINGS * self.usual_spacing, ROUNDING_M)

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
        return np.asarray(np.maximum(np.maximum(self._spacing, bounded), ROUNDING_M))

    @cached_property
    def _smallest_spread(self) -> Float[Array, " marker"]:
        """The smallest spread of each marker, in metres; the median if it has none."""
        return _fill_with_median(self.known_spread.min(axis=1))

    @property
    def usual_spacing(self) -> float:
        """Usual distance of neighbouring markers, in metres."""
        return float(np.median(self._spacing))

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
    """Return the values, the median of the finite ones in place of the others."""
    known = np.isfinite(values)
    median = float(np.median(values[known])) if known.any() else 0.0
    return np.where(known, values, median)


def pair_statistics(
    takes: Sequence[Float[Array, "_ marker 3"]],
    n_blocks: int = N_BLOCKS,
    median_frames: int = 1,
) -> PairStats:
    """Return the robust spread and the median of the distance of every pair.

    The variance of a pair is the mean over blocks of time of the squared range from the
    5 % to the 95 % quantile, in standard deviations, plus the squared distance of the
    block's median from the median of all blocks. Variances of several takes are
    averaged with the number of frames as weights: a marker that was attached elsewhere
    for the next take changes nothing.

    Args:
        takes: Positions of the same markers, in metres, NaN where unseen.
        n_blocks: Number of blocks of time.
        median_frames: Width of a median filter of the distances: an odd number of
            frames. More hide fast motion and white noise.
    """
    n_markers = takes[0].shape[1]
    pairs = np.stack(np.triu_indices(n_markers, 1), axis=1)
    spread, distance = _spreads(takes, pairs, n_blocks, median_frames)
    return PairStats(_symmetric(spread, n_markers), _symmetric(distance, n_markers))


def has_white_noise(
    stats: PairStats, takes: Sequence[Float[Array, "_ marker 3"]]
) -> bool:
    """Return whether most of the usual noise is independent from frame to frame.

    A median filter reduces that part of the variance and keeps what lasts. The noise is
    that of each marker's pair of smallest spread; points that are computed have none.
    """
    of_pairs = stats.known_spread
    nearest, spread = of_pairs.argmin(axis=1), of_pairs.min(axis=1)
    pairs = np.stack([np.arange(len(nearest)), nearest], axis=1)
    noisy = np.isfinite(spread) & (spread > stats.min_noise)
    if not noisy.any():
        return False
    smoothed, _ = _spreads(takes, pairs[noisy], N_BLOCKS, WHITE_MEDIAN_FRAMES)
    kept = float(np.median(smoothed / spread[noisy]))
    return kept**2 < 0.5 * (1.0 + WHITE_MEDIAN_VARIANCE)


def _spreads(
    takes: Sequence[Float[Array, "_ marker 3"]],
    pairs: Int[Array, "pair 2"],
    n_blocks: int,
    median_frames: int,
) -> tuple[Float[Array, " pair"], Float[Array, " pair"]]:
    """Return spread and median distance of pairs in metres; NaN if too few frames."""
    variance, distance, weight_sum = np.zeros((3, len(pairs)))
    for points in takes:
        spread, median, n_common = _spreads_in_take(
            points, pairs, n_blocks, median_frames
        )
        weight = np.where(n_common >= MIN_SAMPLES, n_common, 0)
        variance += weight * np.nan_to_num(spread) ** 2
        distance += weight * np.nan_to_num(median)
        weight_sum += weight
    weight_sum = np.where(weight_sum > 0, weight_sum, np.nan)
    return np.sqrt(variance / weight_sum), distance / weight_sum


def _spreads_in_take(
    points: Float[Array, "_ marker 3"],
    pairs: Int[Array, "pair 2"],
    n_blocks: int,
    median_frames: int,
) -> tuple[Float[Array, " pair"], Float[Array, " pair"], Int[Array, " pair"]]:
    """Return spread, median distance and number of common frames of pairs."""
    from marey.segmentation.clusters.pair_statistics_kernel import pair_spreads

    frames = symmetric_sample(len(points), MAX_POSITIONS // points.shape[1])
    offsets = np.arange(median_frames) - median_frames // 2
    near = (frames[:, None] + offsets).ravel()
    within = (near >= 0) & (near < len(points))
    # One layout, so that one compilation serves.
    positions = np.moveaxis(points[near.clip(0, len(points) - 1)], 0, -1).copy()
    seen = np.isfinite(positions).all(axis=1) & within

    def measure(some: Int[Array, "some 2"]) -> tuple[Array, Array, Array]:
        quantiles = Q05, Q95, Q05_Q95_SD
        found: tuple[Array, Array, Array] = pair_spreads(
            positions, seen, some, median_frames, n_blocks, *quantiles
        )
        return found

    parts = map_in_threads(measure, np.array_split(pairs, count_threads()))
    spread, median, n_common = map(np.concatenate, zip(*parts, strict=True))
    return spread, median, n_common


def pair_deviations(points: Float[Array, "frame marker 3"]) -> PairStats:
    """Return mean and standard deviation of all distances over all frames.

    Plain moments as in DeAguiar2006; they are not robust against outliers. NaN for two
    markers that no frame shows together.
    """
    mean, sd = [], []
    for marker in range(points.shape[1]):
        distance = geometry.lengths(points - points[:, marker : marker + 1])
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


def same_body(members: Members) -> Bool[Array, "marker marker"]:
    """Return which two markers have a body in common; True on the diagonal."""
    bodies = members.astype(float)  # BLAS multiplies floats only
    return np.asarray((bodies.T @ bodies) > 0.5)


def marker_noise(stats: PairStats, members: Members) -> Float[Array, " marker"]:
    """Return the noise of each marker in metres, from distances on its bodies.

    The root mean square spread to the other markers of its bodies, shrunk to the usual
    noise by a prior of `PRIOR_PAIRS` pairs. What is beyond `CERTAIN_SD` times the usual
    noise is motion.
    """
    pairs = same_body(members) & stats.is_known
    total = np.where(pairs, stats.spread**2, 0.0).sum(axis=1)
    prior = PRIOR_PAIRS * stats.noise**2
    noise = np.sqrt((total + prior) / (pairs.sum(axis=1) + PRIOR_PAIRS))
    bounds = MIN_NOISE_RATIO * stats.noise, CERTAIN_SD * stats.noise
    return np.asarray(np.clip(noise, *bounds))


def nearest_neighbour_bodies(stats: PairStats) -> Members:
    """Return one body per marker: the marker and the one of smallest spread to it."""
    spread = stats.known_spread
    members = np.eye(len(spread), dtype=bool)
    rows = np.flatnonzero(np.isfinite(spread).any(axis=1))
    members[rows, spread[rows].argmin(axis=1)] = True
    return members


def log_odds(
    stats: PairStats, members: Members, intercept: float = INTERCEPT
) -> Float[Array, "marker marker"]:
    """Return the log odds of every two markers to be on one body.

    0 for pairs that are not known, and on the diagonal.

    Args:
        stats: Distances of all pairs.
        members: Bodies that the noise of the markers is taken from.
        intercept: Log odds at the usual noise and distance.
    """
    tiny = np.finfo(float).tiny
    distance = np.maximum(stats.distance / _geometric_mean(stats.body_distance), tiny)
    far = DISTANCE_COEFFICIENT * np.minimum(np.log(distance), MAX_LOG_DISTANCE)
    odds = spread_log_odds(stats, members, intercept) - far
    bounded = np.clip(odds, MIN_LOG_ODDS, MAX_LOG_ODDS)
    odds = bounded + SLOPE_BEYOND_BOUNDS * (odds - bounded)
    return np.where(stats.is_known, odds, 0.0)


def spread_log_odds(
    stats: PairStats, members: Members, intercept: float = INTERCEPT
) -> Float[Array, "marker marker"]:
    """Return the log odds of every two markers at the usual distance: of the motion.

    NaN for pairs that are not known. For the arguments see `log_odds`.
    """
    noise = _geometric_mean(marker_noise(stats, members))
    ratio = np.hypot(stats.spread, MIN_NOISE_RATIO * stats.noise) / noise
    return np.asarray(intercept - SPREAD_COEFFICIENT * np.log(ratio))


def _geometric_mean(values: Float[Array, " marker"]) -> Float[Array, "marker marker"]:
    """Return the geometric mean of the values of every two markers, in their unit."""
    return np.asarray(np.sqrt(values[:, None] * values))


def members_of_labels(labels: Sequence[int] | Array) -> Members:
    """Return cluster labels, one per marker, as membership; -1 is in no body."""
    labels = np.asarray(labels)
    return np.asarray(np.arange(labels.max(initial=-1) + 1)[:, None] == labels)
