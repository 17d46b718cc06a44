"""Bodies of unlabelled markers: sets that keep their distances, and may share markers.

Instead of DeAguiar2006's spectral clustering, which cuts sparse sets of real markers
badly: the evidence of every pair is weighed against the noise of its own markers, and a
marker on a joint line may belong to both neighbours, which is what keeps a knee marker
from gluing thigh and shank together.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.segmentation.clusters.pair_log_odds import (
    Members,
    Scales,
    log_odds,
    marker_noise,
    nearest_company,
)
from marey.segmentation.clusters.pair_statistics import PairStats

Array = np.ndarray

PRICE = 2.0
"""Log odds that one more membership must bring."""

MOST_BODIES = 3
"""Bodies that one marker may belong to."""

ROUNDS = 4
"""Times that noise and bodies are found from each other."""

ABSORBED = -3.0
"""Mean log odds above which a body of one marker joins another."""

THIN = 3.0
"""What a body that would keep one marker or none gets on top, in log odds."""


def overlapping_bodies(
    stats: PairStats, scales: Scales, bias: float = 0.0
) -> tuple[Members, Float[Array, "marker marker"]]:
    """Return the bodies, markers shared where that is likely, and the evidence.

    Noise of the markers and bodies are found from each other, in turn.

    Args:
        stats: Distances of all pairs.
        scales: What is usual among them.
        bias: Added to all evidence: above 0 makes fewer bodies.
    """
    members = nearest_company(stats)
    for _ in range(ROUNDS):
        noise = marker_noise(stats, scales, members)
        odds = log_odds(stats, scales, noise)
        odds = np.where(stats.known, odds + bias, 0.0)
        found = _covered(odds)
        if found.shape == members.shape and (found == members).all():
            break
        members = found
    return absorbed(members, odds), odds


def _covered(odds: Float[Array, "marker marker"]) -> Members:
    from marey.segmentation.clusters.correlation_clustering_kernel import covered

    n_markers = len(odds)
    found = covered(odds, _start(odds), PRICE, MOST_BODIES, 20 * n_markers)
    return _ordered(found[found.any(axis=1)])


def _ordered(members: Members) -> Members:
    """Return the bodies by their first markers, so that equal sets are equal arrays."""
    return members[np.lexsort(members.T[::-1])[::-1]]


def _start(odds: Float[Array, "marker marker"]) -> Members:
    """Return the bodies in which every pair speaks for itself (complete linkage)."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    far = odds.max() + 1.0
    away = far - odds
    np.fill_diagonal(away, 0.0)
    tree = linkage(squareform(away, checks=False), "complete")
    labels = fcluster(tree, far, "distance") - 1
    return np.asarray(np.arange(labels.max() + 1)[:, None] == labels)


def absorbed(
    members: Members, odds: Float[Array, "marker marker"]
) -> Bool[Array, "fewer marker"]:
    """Return the bodies with single markers given to those they fit best."""
    members = members.copy()
    while True:
        best = (ABSORBED, -1, -1)
        for one in np.flatnonzero(members.sum(axis=1) == 1).tolist():
            marker = int(members[one].argmax())
            for other in np.flatnonzero(~members[:, marker]).tolist():
                value = float(odds[marker, members[other]].mean())
                best = max(best, (value, one, other))
        _, one, other = best
        if one < 0:
            return members
        members[other] |= members[one]
        members = np.delete(members, one, axis=0)


def owners(
    members: Members, odds: Float[Array, "marker marker"]
) -> Int[Array, " marker"]:
    """Return the one body of each marker: the one that its mates speak for most.

    Bodies that would be left with a marker or none keep theirs. A body of which all
    markers have better owners is left without.
    """
    alone = members & (members.sum(axis=0) == 1)
    thin = alone.sum(axis=1) <= 1
    mates = members.astype(int).sum(axis=1)[:, None] - members
    support = (members @ odds) / np.maximum(mates, 1) + THIN * thin[:, None]
    best = np.where(members, support, -np.inf).argmax(axis=0)
    return np.where(members.any(axis=0), best, -1)


def renumbered(labels: Sequence[int] | Array) -> Int[Array, " marker"]:
    """Return the labels counted from 0 without gaps, in the order of first use."""
    labels = np.asarray(labels)
    used = [b for b in dict.fromkeys(labels.tolist()) if b >= 0]
    number = {body: i for i, body in enumerate(used)} | {-1: -1}
    return np.array([number[b] for b in labels.tolist()], dtype=np.int64)
