"""Overlapping correlation clustering: bodies of markers that may share markers.

In place of DeAguiar2006's spectral clustering, which divides sparse sets of real
markers badly. The spread of every pair is compared with the noise of its own markers,
and a marker on a joint line may belong to both neighbours. Without that, a knee marker
would join thigh and shank into one body.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.segmentation.clusters.pair_log_odds import (
    Members,
    Scales,
    log_odds,
    marker_noise,
    members_of_labels,
    nearest_neighbour_bodies,
)
from marey.segmentation.clusters.pair_statistics import PairStats

Array = np.ndarray

MEMBERSHIP_PRICE = 2.0
"""Log odds that one more membership must gain. Higher shares fewer markers. Chosen by
hand."""

MAX_BODIES_PER_MARKER = 3
"""Number of bodies that one marker may belong to. Higher is slower. Chosen by hand."""

N_ITERATIONS = 4
"""Number of alternations between noise and bodies. Higher is slower. Chosen by hand."""

CHANGES_PER_MARKER = 20
"""Number of changes of the cover, per marker, after which the search stops. Chosen by
hand."""

MIN_ABSORB_LOG_ODDS = -3.0
"""Mean log odds from which a body of one marker joins another body. Higher leaves more
single markers. Chosen by hand."""

THIN_BODY_BONUS = 3.0
"""Log odds added for a body that has at most one marker of its own, so that it keeps
shared markers. Chosen by hand."""


def overlapping_bodies(
    stats: PairStats, scales: Scales, bias: float = 0.0
) -> tuple[Members, Float[Array, "marker marker"]]:
    """Return the bodies, with shared markers, and the log odds of all pairs.

    Alternates between the noise of the markers, given the bodies, and the bodies, given
    the log odds that follow from the noise.

    Args:
        stats: Distances of all pairs.
        scales: Usual noise and distances.
        bias: Added to all log odds: above 0 makes fewer bodies.
    """
    members = nearest_neighbour_bodies(stats)
    for _ in range(N_ITERATIONS):
        noise = marker_noise(stats, scales, members)
        odds = log_odds(stats, scales, noise)
        odds = np.where(stats.is_known, odds + bias, 0.0)
        cover = _find_cover(odds)
        if np.array_equal(cover, members):
            break
        members = cover
    return absorb_single_markers(members, odds), odds


def _find_cover(odds: Float[Array, "marker marker"]) -> Members:
    """Return the cover of greedy search, bodies in the order of their first markers."""
    from marey.segmentation.clusters.correlation_clustering_kernel import (
        cluster_overlapping,
    )

    cover = cluster_overlapping(
        odds,
        _complete_linkage(odds),
        MEMBERSHIP_PRICE,
        MAX_BODIES_PER_MARKER,
        CHANGES_PER_MARKER * len(odds),
    )
    members: Members = cover[cover.any(axis=1)]
    return members[np.lexsort(members.T[::-1])[::-1]]


def _complete_linkage(odds: Float[Array, "marker marker"]) -> Members:
    """Return bodies all of whose pairs have positive log odds (complete linkage)."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    zero_odds = odds.max() + 1.0
    dissimilarity = zero_odds - odds
    np.fill_diagonal(dissimilarity, 0.0)
    tree = linkage(squareform(dissimilarity, checks=False), "complete")
    return members_of_labels(fcluster(tree, zero_odds, "distance") - 1)


def absorb_single_markers(
    members: Members, odds: Float[Array, "marker marker"]
) -> Bool[Array, "fewer marker"]:
    """Return the bodies after those of one marker joined the body that fits best."""
    members = members.copy()
    while True:
        best = (MIN_ABSORB_LOG_ODDS, -1, -1)
        for single in np.flatnonzero(members.sum(axis=1) == 1).tolist():
            marker = int(members[single].argmax())
            for other in np.flatnonzero(~members[:, marker]).tolist():
                value = float(odds[marker, members[other]].mean())
                best = max(best, (value, single, other))
        _, single, other = best
        if single < 0:
            return members
        members[other] |= members[single]
        members = np.delete(members, single, axis=0)


def owning_bodies(
    members: Members, odds: Float[Array, "marker marker"]
) -> Int[Array, " marker"]:
    """Return the one body that owns each marker, by mean log odds; -1 = none.

    Bodies with at most one marker of their own get a bonus. A body all of whose markers
    have better owners owns none.
    """
    unshared = members & (members.sum(axis=0) == 1)
    is_thin = unshared.sum(axis=1) <= 1
    n_others = members.astype(int).sum(axis=1)[:, None] - members
    mean = (members @ odds) / np.maximum(n_others, 1)
    support = mean + THIN_BODY_BONUS * is_thin[:, None]
    best = np.where(members, support, -np.inf).argmax(axis=0)
    return np.where(members.any(axis=0), best, -1)
