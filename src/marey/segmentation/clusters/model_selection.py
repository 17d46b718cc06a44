"""Bodies of unlabelled markers, by the method that foretells hidden markers best."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.segmentation.clusters.cross_validation import Foretelling
from marey.segmentation.clusters.merge_bodies import is_dense, joined
from marey.segmentation.clusters.overlap import overlapping_bodies, owners, renumbered
from marey.segmentation.clusters.pair_log_odds import (
    Members,
    Scales,
    as_members,
    scales_of,
)
from marey.segmentation.clusters.pair_statistics import PairStats, pair_statistics
from marey.segmentation.clusters.spectral import spectral_choices, spectral_labels

Array = np.ndarray

CLEARLY = 2.0
"""Log units by which another solution must foretell better to be taken."""

NEIGHBOURS = (1, 3)
"""Scales of the spectral solutions that are looked at."""

DENSE_NEIGHBOURS = (2, 3, 4)
"""Those looked at where bodies have many markers."""

ASIDE = 2
"""How far from the numbers of bodies found others are tried."""

WIDEST_BIAS = 16.0
HALVINGS = 14


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Markers as bodies."""

    members: Members
    """Every marker of every body."""

    owner: Int[Array, " marker"]
    """The one body of each marker."""

    odds: Float[Array, "marker marker"]
    """Evidence that two markers are one body, in log odds."""

    stats: PairStats
    scales: Scales
    method: str
    """"overlap" or "spectral"."""


def grouped(
    takes: Sequence[Float[Array, "_ marker 3"]],
    stats: PairStats | None = None,
    *,
    method: str = "overlap",
    n_bodies: int = 0,
) -> Grouping:
    """Return the markers as bodies.

    Args:
        takes: Positions of the same markers in one or several takes.
        stats: Their distances, where they are known already.
        method: "spectral", or "overlap": overlapping bodies, unless spectral clustering
            foretells hidden markers clearly better.
        n_bodies: How many bodies; 0 = found.
    """
    stats = pair_statistics(takes) if stats is None else stats
    scales = scales_of(stats)
    overlap = _overlap(stats, scales, n_bodies)
    if method == "spectral":
        return _labelled(overlap, spectral_labels(stats, n_bodies=n_bodies))
    others = [
        _labelled(overlap, spectral_labels(stats, n_bodies=n_bodies, neighbour=k))
        for k in NEIGHBOURS
    ]
    judge = Foretelling(takes, stats, scales, overlap.odds)
    best = _best(overlap, others, judge, CLEARLY)
    if n_bodies or not is_dense(best.owner):
        return best
    counts = {len(found.members) for found in (overlap, *others)}
    best = _best(best, _more(best, counts), judge)
    whole = joined(best.owner, stats, scales, judge)
    return best if (whole == best.owner).all() else _labelled(best, whole, best.method)


def _more(like: Grouping, counts: set[int]) -> list[Grouping]:
    """Return spectral solutions with other numbers of bodies."""
    most = len(like.owner) // 2
    low, high = max(min(counts) - ASIDE, 2), min(max(counts) + ASIDE, most)
    return [
        _labelled(like, labels)
        for k in DENSE_NEIGHBOURS
        for labels in spectral_choices(like.stats, range(low, high + 1), neighbour=k)
    ]


def _overlap(stats: PairStats, scales: Scales, n_bodies: int) -> Grouping:
    """Return overlapping bodies; with a number given, biased until it is met."""

    def with_bias(bias: float) -> Grouping:
        members, odds = overlapping_bodies(stats, scales, bias)
        owner = owners(members, odds)
        used = np.unique(owner[owner >= 0])
        number = np.full(len(members) + 1, -1)
        number[used] = np.arange(len(used))
        return Grouping(
            members[used], number[owner], odds, stats, scales, method="overlap"
        )

    found = with_bias(0.0)
    low, high = -WIDEST_BIAS, WIDEST_BIAS
    for _ in range(HALVINGS if n_bodies else 0):
        if len(found.members) == n_bodies:
            return found
        bias = 0.5 * (low + high)
        found = with_bias(bias)
        low, high = (bias, high) if len(found.members) > n_bodies else (low, bias)
    if n_bodies and len(found.members) != n_bodies:
        labels = spectral_labels(stats, n_bodies=n_bodies)
        return _labelled(found, labels)
    return found


def _labelled(
    like: Grouping, labels: Int[Array, " marker"], method: str = "spectral"
) -> Grouping:
    owner = renumbered(labels)
    return Grouping(
        as_members(owner), owner, like.odds, like.stats, like.scales, method
    )


def _best(
    first: Grouping, others: list[Grouping], judge: Foretelling, clearly: float = 0.0
) -> Grouping:
    """Return the grouping of least cost; the first unless another clearly beats it."""
    best, least = first, judge.cost(as_members(first.owner)) - clearly
    for other in others:
        cost = judge.cost(as_members(other.owner))
        if cost < least:
            best, least = other, cost
    return best
