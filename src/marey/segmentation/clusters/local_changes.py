"""Changes of one clustering: a part as another one has it, or two bodies as one.

One clustering may be right about the legs and another about the arms. Where two of them
divide a group of markers differently, the group can be taken from either.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np

from marey.numerics import Array, Bool, Float, Int
from marey.segmentation.clusters.model_selection import Clustering
from marey.segmentation.clusters.pair_statistics import (
    CLEAR_LOG_ODDS,
    PairStats,
    log_odds,
)


def change_groups(
    clustering: Clustering, others: Iterable[Clustering]
) -> Iterator[Clustering]:
    """Return the clustering with one group of markers as another one divides them.

    Groups are those of `differing_groups`. Parts of two bodies are never united if
    their mean log odds are clear against one body.

    Args:
        clustering: The clustering to change.
        others: Other clusterings of the same markers.
    """
    for other in others:
        members = np.concatenate([clustering.members, other.members])
        number = other.owner + len(clustering.members)
        for group in differing_groups(clustering.owner, other.owner):
            owner = np.where(group, number, clustering.owner)
            if not _unites_clearly_apart(clustering, owner):
                yield Clustering(members, owner, clustering.log_odds)


def merge_pairs(clustering: Clustering) -> Iterator[Clustering]:
    """Return the clustering with two bodies as one, unless they are clearly two."""
    for a, b in combinations(range(len(clustering.members)), 2):
        members = clustering.members.copy()
        members[a] |= members[b]
        owner = np.where(clustering.owner == b, a, clustering.owner)
        if not _unites_clearly_apart(clustering, owner):
            yield Clustering(members, owner, clustering.log_odds)


def changed_pairs(
    before: Int[Array, " marker"], after: Int[Array, " marker"]
) -> Bool[Array, "marker marker"]:
    """Return which two markers are on one body before or after, but not both."""
    return np.asarray((before[:, None] == before) ^ (after[:, None] == after))


def differing_groups(
    owner: Int[Array, " marker"], other: Int[Array, " marker"]
) -> Iterator[Bool[Array, " marker"]]:
    """Return the smallest groups of markers that two clusterings divide differently.

    A group is whole bodies of either: it is a block of the finest partition that is
    coarser than both (their join).
    """
    from scipy.sparse.csgraph import connected_components  # slow to import

    one, two = owner[:, None] == owner, other[:, None] == other
    n_groups, number = connected_components(one | two)
    for k in range(n_groups):
        group = number == k
        pairs = np.ix_(group, group)
        if (one[pairs] != two[pairs]).any():
            yield group


def _unites_clearly_apart(clustering: Clustering, owner: Int[Array, " marker"]) -> bool:
    """Return whether a body of other owners has parts of two that are clearly two.

    By the mean log odds of the pairs with one marker in each part.
    """
    odds: Float[Array, "marker marker"] = clustering.log_odds
    for body in np.unique(owner):
        inside = owner == body
        before = np.unique(clustering.owner[inside])
        parts = [inside & (clustering.owner == part) for part in before]
        for one, other in combinations(parts, 2):
            if odds[np.ix_(one, other)].mean() < -CLEAR_LOG_ODDS:
                return True
    return False


def in_order(clustering: Clustering, stats: PairStats) -> Clustering:
    """Return the bodies that own markers, in the order of their first markers.

    Each has the markers that it owns among its members.
    """
    body, first, number = np.unique(
        clustering.owner, return_index=True, return_inverse=True
    )
    order = first.argsort()
    number = order.argsort()[number]
    owned = number == np.arange(len(body))[:, None]
    members = clustering.members[body[order]] | owned
    return Clustering(members, number, log_odds(stats, members))
