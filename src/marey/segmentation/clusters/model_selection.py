"""Choice among several clusterings: the one that agrees best with all of them.

Skin that moves, sparse markers and slow joints each mislead one way of clustering,
and seldom two of them in the same way. So the markers are clustered several times, by
the same evidence with other weights and by another method, and the clustering is taken
that agrees best with all: the medoid.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from marey.numerics import Array, Float, Int
from marey.segmentation.clusters.cross_validation import (
    LeaveOneOut,
    PredictionErrors,
    is_dense,
    merge_clusters,
    without_redundant_bodies,
)
from marey.segmentation.clusters.overlap import overlapping_bodies, owning_bodies
from marey.segmentation.clusters.pair_statistics import (
    CLEAR_LOG_ODDS,
    INTERCEPT,
    MIN_GAIN,
    WHITE_MEDIAN_FRAMES,
    Members,
    PairStats,
    has_white_noise,
    log_odds,
    members_of_labels,
    pair_statistics,
)
from marey.segmentation.clusters.spectral import spectral_labels

LONG_BLOCKS = 3
"""Number of blocks of time of half of the clusterings that are tried. Long blocks take
less of the motion of skin for joints than `N_BLOCKS` short ones, and see less of joints
that move for a moment. Where noise is white, these clusterings see less of it, too."""

LARGER_BODIES = 1.0
"""Log odds that are added to the intercept for half of the overlapping clusterings.
Higher tries larger bodies. Chosen by hand, as the other constants of the choice, on 58
recordings of 26 groups. A choice among 275 such sets with each group left out in turn
gives an adjusted Rand index of 0.895 (0.879 for one clustering without a choice)."""

MIN_AGREEMENT_GAIN = 0.04
"""Mean adjusted Rand index by which another clustering must be better than the first,
of short blocks and the plain intercept. Higher keeps the first more often; from 0.03 to
0.05 the result is the same."""

MIN_PREDICTION_GAIN = 3.0
"""Cost, in log units, by which a clustering must predict the markers better than the
medoid. Higher prefers the medoid. Chosen by hand."""

SCALE_NEIGHBOUR = 2
"""Rank of the scale neighbour of the spectral clusterings that are tried: 1 divides
more, 3 joins more."""


@dataclass(frozen=True, slots=True, eq=False)
class Clustering:
    """Markers grouped into bodies."""

    members: Members
    """All markers of every body."""

    owner: Int[Array, " marker"]
    """The one body that owns each marker."""

    log_odds: Float[Array, "marker marker"]
    """Log odds of every two markers to be on one body."""


def cluster_markers(
    takes: Sequence[Float[Array, "_ marker 3"]],
    stats: PairStats | None = None,
    *,
    method: str = "overlap",
    n_bodies: int = 0,
) -> Clustering:
    """Return the bodies of unlabelled markers.

    Args:
        takes: Positions of the same markers in one or several takes.
        stats: Their distances, if they are known already.
        method: "spectral", or "overlap": the medoid of overlapping and spectral
            clusterings, by the mean adjusted Rand index. On dense sets,
            bodies are then merged where that lowers the leave-one-out error.
        n_bodies: Number of bodies; 0 = found.
    """
    stats = pair_statistics(takes) if stats is None else stats
    if method == "spectral":
        return _disjoint(stats, spectral_labels(stats, n_bodies=n_bodies))
    errors = PredictionErrors(takes, stats)
    tried = try_clusterings(takes, stats, errors)
    if n_bodies:
        right = [one for one in tried if len(one.members) == n_bodies]
        labels = spectral_labels(stats, n_bodies=n_bodies)
        tried = right or [_disjoint(stats, labels)]
    best = _medoid(tried)
    criterion = LeaveOneOut(errors, stats.noise, best.log_odds)
    best = prefer_predictive(best, tried, criterion)
    if n_bodies or not is_dense(best.owner):
        return best
    merged = merge_clusters(best.owner, stats, criterion)
    return best if (merged == best.owner).all() else _disjoint(stats, merged)


def try_clusterings(
    takes: Sequence[Float[Array, "_ marker 3"]],
    stats: PairStats,
    errors: PredictionErrors | None = None,
) -> list[Clustering]:
    """Return the clusterings of unlabelled markers that the choice is among."""
    errors = PredictionErrors(takes, stats) if errors is None else errors
    median_frames = WHITE_MEDIAN_FRAMES if has_white_noise(stats, takes) else 1
    return [
        clustering
        for some in (stats, pair_statistics(takes, LONG_BLOCKS, median_frames))
        for clustering in _clusterings(some, errors)
    ]


def mean_agreement(tried: Sequence[Clustering]) -> Float[Array, " clustering"]:
    """Return the mean adjusted Rand index of every clustering to all.

    The first has an advantage of `MIN_AGREEMENT_GAIN`.
    """
    agreement = rand_matrix([one.owner for one in tried]).mean(axis=1)
    agreement[0] += MIN_AGREEMENT_GAIN
    return np.asarray(agreement)


def _medoid(tried: Sequence[Clustering]) -> Clustering:
    """Return the clustering that agrees most with all others, on average."""
    agreement = mean_agreement(tried)
    # Of equally good ones the first, whatever the rounding.
    return tried[int(np.argmax(agreement > agreement.max() - MIN_GAIN))]


def prefer_predictive(
    best: Clustering, tried: Sequence[Clustering], criterion: LeaveOneOut
) -> Clustering:
    """Return the clustering, or one whose leave-one-out error is clearly smaller.

    Of several such ones that of largest agreement: their errors are often almost equal.
    """
    cost = np.array([criterion.cost(members_of_labels(one.owner)) for one in tried])
    of_best = criterion.cost(members_of_labels(best.owner))
    is_better = cost < of_best - MIN_PREDICTION_GAIN
    agreement = np.where(is_better, mean_agreement(tried), -np.inf)
    return tried[int(np.argmax(agreement))] if is_better.any() else best


def _clusterings(stats: PairStats, errors: PredictionErrors) -> Iterator[Clustering]:
    """Return two overlapping clusterings and a spectral one."""
    for intercept in (INTERCEPT, INTERCEPT + LARGER_BODIES):
        yield _overlapping(stats, intercept, errors)
    labels = spectral_labels(stats, neighbour=SCALE_NEIGHBOUR)
    yield _divide_unconnected(_disjoint(stats, labels), stats)


def _overlapping(
    stats: PairStats, intercept: float, errors: PredictionErrors
) -> Clustering:
    members, odds = overlapping_bodies(stats, intercept)
    members = without_redundant_bodies(members, errors)
    owning, owner = np.unique(owning_bodies(members, odds), return_inverse=True)
    members = members[owning]
    return Clustering(members, owner, log_odds(stats, members))


def _divide_unconnected(found: Clustering, stats: PairStats) -> Clustering:
    """Return the bodies, in pieces where no chain of pairs connects them.

    A pair connects unless its log odds are clear against one body. Spectral clustering
    has no markers that are alone, so it puts those that jump to any body. A marker that
    is alone afterwards joins the body of largest mean log odds if these are positive.
    """
    from scipy.sparse.csgraph import connected_components  # slow to import

    together = found.owner[:, None] == found.owner
    connects = together & stats.is_known & (found.log_odds > -CLEAR_LOG_ODDS)
    n_pieces, piece = connected_components(connects)
    if n_pieces == len(found.members):
        return found
    return _disjoint(stats, _with_lone_markers(piece, found.log_odds))


def _with_lone_markers(
    owner: Int[Array, " marker"], odds: Float[Array, "marker marker"]
) -> Int[Array, " marker"]:
    """Return the owners after lone markers joined bodies that support them."""
    members = members_of_labels(owner).astype(np.float64)
    count = members.sum(axis=1)
    support = odds @ members.T / count
    support[:, count == 1] = -np.inf
    joins = (count[owner] == 1) & (support.max(axis=1) > 0.0)
    return np.where(joins, support.argmax(axis=1), owner)


def _disjoint(stats: PairStats, labels: Int[Array, " marker"]) -> Clustering:
    """Return bodies that share no markers, in the order of their first markers."""
    _, first, number = np.unique(labels, return_index=True, return_inverse=True)
    owner = first.argsort().argsort()[number]
    members = members_of_labels(owner)
    return Clustering(members, owner, log_odds(stats, members))


def rand_matrix(
    labels: Sequence[Int[Array, " marker"]],
) -> Float[Array, "clustering clustering"]:
    r"""Return the adjusted Rand index of every two clusterings.

    The formula is that of Hubert and Arabie (1985),

    .. math:: R_{ij} = \frac{n_{ij} - n_i n_j / n}{(n_i + n_j) / 2 - n_i n_j / n}.

    :math:`n` is the number of pairs of markers, :math:`n_i` of pairs on one body in
    clustering i and :math:`n_{ij}` of pairs on one body in both. It is 1 where
    both are one body, or single markers only.
    """
    first, second = np.triu_indices(len(labels[0]), 1)
    together = np.array([owner[first] == owner[second] for owner in labels], float)
    count = together.sum(axis=1)
    chance = np.outer(count, count) / max(len(first), 1)
    mean = 0.5 * (count[:, None] + count)
    trivial = np.isclose(mean, chance)
    index = (together @ together.T - chance) / np.where(trivial, 1.0, mean - chance)
    return np.where(trivial, 1.0, index)
