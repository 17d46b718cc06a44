"""Choice between overlapping and spectral clusterings by their leave-one-out error."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from marey.segmentation.clusters.cross_validation import (
    LeaveOneOut,
    is_dense,
    merge_bodies,
)
from marey.segmentation.clusters.overlap import overlapping_bodies, owning_bodies
from marey.segmentation.clusters.pair_statistics import (
    Members,
    PairStats,
    members_of_labels,
    pair_statistics,
)
from marey.segmentation.clusters.spectral import SCALE_NEIGHBOUR, spectral_labels

Array = np.ndarray

MIN_SPECTRAL_GAIN = 2.0
"""Cost, in log units, by which a spectral clustering must be better than the
overlapping one. Higher prefers overlapping bodies. Chosen by hand."""

SCALE_NEIGHBOURS = (1, SCALE_NEIGHBOUR)
"""Ranks of the scale neighbour of the spectral clusterings that are tried."""

COUNT_MARGIN = 2
"""Number of bodies below and above those found that are tried on dense sets. Higher is
slower. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class Clustering:
    """Markers grouped into bodies."""

    members: Members
    """All markers of every body."""

    owner: Int[Array, " marker"]
    """The one body that owns each marker."""

    log_odds: Float[Array, "marker marker"]
    """Log odds of every two markers to be on one body."""

    def relabel(self, labels: Int[Array, " marker"]) -> "Clustering":
        """Return the clustering with other bodies, which share no markers.

        They are numbered in the order of their first markers.
        """
        _, first, number = np.unique(labels, return_index=True, return_inverse=True)
        owner = first.argsort().argsort()[number]
        return replace(self, members=members_of_labels(owner), owner=owner)


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
        method: "spectral", or "overlap": overlapping bodies, unless a spectral
            clustering has a clearly smaller leave-one-out error.
        n_bodies: Number of bodies; 0 = found.
    """
    stats = pair_statistics(takes) if stats is None else stats
    overlap = _cluster_overlapping(stats, n_bodies)
    if method == "spectral":
        return overlap.relabel(spectral_labels(stats, n_bodies=n_bodies))
    spectral = [
        overlap.relabel(spectral_labels(stats, n_bodies=n_bodies, neighbour=rank))
        for rank in SCALE_NEIGHBOURS
    ]
    criterion = LeaveOneOut(takes, stats, overlap.log_odds)
    best = _select(overlap, spectral, criterion, MIN_SPECTRAL_GAIN)
    if n_bodies or not is_dense(best.owner):
        return best
    counts = {len(one.members) for one in (overlap, *spectral)}
    best = _select(best, _other_counts(best, stats, counts), criterion)
    merged = merge_bodies(best.owner, stats, criterion)
    return best if (merged == best.owner).all() else best.relabel(merged)


def _other_counts(
    like: Clustering, stats: PairStats, counts: set[int]
) -> list[Clustering]:
    """Return spectral clusterings with numbers of bodies around the given ones."""
    low = max(min(counts) - COUNT_MARGIN, 2)
    high = min(max(counts) + COUNT_MARGIN, len(like.owner) // 2)
    return [
        like.relabel(spectral_labels(stats, n_bodies=count, neighbour=rank))
        for rank in SCALE_NEIGHBOURS
        for count in range(low, high + 1)
    ]


def _cluster_overlapping(stats: PairStats, n_bodies: int) -> Clustering:
    """Return overlapping bodies; if their number is not that given, spectral ones."""
    members, odds = overlapping_bodies(stats)
    owning, owner = np.unique(owning_bodies(members, odds), return_inverse=True)
    clustering = Clustering(members[owning], owner, odds)
    if n_bodies in (0, len(owning)):
        return clustering
    return clustering.relabel(spectral_labels(stats, n_bodies=n_bodies))


def _select(
    first: Clustering,
    others: list[Clustering],
    criterion: LeaveOneOut,
    min_gain: float = 0.0,
) -> Clustering:
    """Return the clustering of least cost, in which the first has an advantage."""

    def cost(clustering: Clustering) -> float:
        return criterion.cost(members_of_labels(clustering.owner))

    best, least = first, cost(first) - min_gain
    for other in others:
        if (value := cost(other)) < least:
            best, least = other, value
    return best
