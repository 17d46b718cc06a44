"""Overlapping correlation clustering: bodies of markers that may share markers.

In place of DeAguiar2006's spectral clustering, which divides sparse sets of real
markers badly. The spread of every pair is compared with the noise of its own markers,
and a marker on a joint line may belong to both neighbours. Without that, a knee marker
would join thigh and shank into one body.
"""

import numpy as np

from marey.numerics import Array, Bool, Float, Int
from marey.segmentation.clusters.pair_statistics import (
    CLEAR_LOG_ODDS,
    INTERCEPT,
    MIN_GAIN,
    Members,
    PairStats,
    log_odds,
    members_of_labels,
    nearest_neighbour_bodies,
)

MEMBERSHIP_PRICE = 2.0
"""Log odds that one more membership must gain. Higher shares fewer markers. Chosen by
hand."""

MAX_BODIES_PER_MARKER = 2
"""Number of bodies that one marker may belong to: those on both sides of a joint."""

N_ITERATIONS = 4
"""Number of alternations between noise and bodies. Higher is slower. Chosen by hand."""

MAX_ITERATIONS_PER_MARKER = 20
"""Number of changes of the cover, per marker, after which the search stops. Chosen by
hand."""


def overlapping_bodies(
    stats: PairStats, intercept: float = INTERCEPT
) -> tuple[Members, Float[Array, "marker marker"]]:
    """Return the bodies, with shared markers, and the log odds of all pairs.

    Alternates between the noise of the markers, given the bodies, and the bodies, given
    the log odds that follow from the noise.

    Args:
        stats: Distances of all pairs.
        intercept: Higher makes larger bodies, see `log_odds`.
    """
    members = nearest_neighbour_bodies(stats)
    for _ in range(N_ITERATIONS):
        odds = log_odds(stats, members, intercept)
        cover = _find_cover(odds)
        if np.array_equal(cover, members):
            break
        members = cover
    return pair_single_markers(absorb_single_markers(members, odds), odds), odds


def _find_cover(odds: Float[Array, "marker marker"]) -> Members:
    """Return the cover of greedy search, bodies in the order of their first markers.

    Markers that no chain of positive log odds connects are searched apart: no change
    that mixes them gains anything.
    """
    from scipy.sparse.csgraph import connected_components

    covers = []
    for part in members_of_labels(connected_components(odds > 0.0)[1]):
        inside = odds[np.ix_(part, part)]
        found = improve_cover(inside, complete_linkage(inside))
        covers.append(np.zeros((len(found), len(odds)), dtype=bool))
        covers[-1][:, part] = found
    cover = np.concatenate(covers)
    return cover[np.lexsort(cover.T[::-1])[::-1]]


def improve_cover(
    odds: Float[Array, "marker marker"], members: Members
) -> Bool[Array, "fewer marker"]:
    r"""Return a cover of the markers by bodies that no single change improves.

    The value of a cover is the sum of the log odds :math:`o` of all pairs that share at
    least one body :math:`B`, less a price :math:`\pi` for every membership,

    .. math:: \sum_{i < j,\ \exists B: i, j \in B} o_{ij} - \pi \sum_B |B|.

    Greedy ascent: each step makes the change of largest gain. In a change, a marker
    joins a body, leaves it or moves to another; two bodies merge; or two markers open a
    new body.

    Args:
        odds: Log odds of one body for every two markers, zero on the diagonal.
        members: The cover to start from.
    """
    n_markers = len(odds)
    cover = np.zeros((len(members) + n_markers, n_markers), dtype=bool)
    cover[: len(members)] = members
    for _ in range(MAX_ITERATIONS_PER_MARKER * n_markers):
        gain, changed = _best_change(odds, cover)
        if gain < MIN_GAIN:
            break
        cover = without_subsets(changed)
    return cover[cover.any(axis=1)]


def _best_change(
    odds: Float[Array, "marker marker"], cover: Members
) -> tuple[float, Members]:
    """Return the largest gain of one change of a cover, and the cover after it."""
    rows = np.flatnonzero(cover.any(axis=1))
    marker, source = np.nonzero(cover[rows].T)
    toggling, moving, merging, opening = _gains(odds, cover[rows], marker, source)
    changes = np.hstack([toggling, moving, merging])
    gain, opening_gain = float(changes.max()), float(opening.max())
    changed = cover.copy()
    if opening_gain > gain:
        pair = np.unravel_index(opening.argmax(), opening.shape)
        changed[cover.any(axis=1).argmin(), pair] = True
        return opening_gain, changed
    number, change = divmod(int(changes.argmax()), changes.shape[1])
    body, move = rows[number], change - len(odds)
    if move < 0:
        changed[body, change] ^= True
    elif move < len(marker):
        changed[[body, rows[source[move]]], marker[move]] = True, False
    else:
        merged = rows[move - len(marker)]
        changed[body] |= cover[merged]
        changed[merged] = False
    return gain, changed


def _gains(
    odds: Float[Array, "marker marker"],
    inside: Members,
    marker: Int[Array, " membership"],
    source: Int[Array, " membership"],
) -> tuple[Array, Array, Array, Array]:
    """Return the gains of all changes of a cover; -inf where a change is not allowed.

    Args:
        odds: Log odds of one body for every two markers.
        inside: The bodies of the cover.
        marker: Marker of every membership.
        source: Body of every membership.

    Returns:
        Of each body and marker that joins or leaves it; of each body and membership
        that moves there; of two bodies that merge; of two markers that open a body.
    """
    bodies = inside.astype(float)
    n_common = bodies.T @ bodies
    of_new_pairs = np.where(n_common == 0, odds, 0.0)
    of_lone_pairs = np.where(n_common == 1, odds, 0.0)
    gain, loss = bodies @ of_new_pairs, bodies @ of_lone_pairs
    n_bodies = n_common.diagonal()
    is_free = n_bodies < MAX_BODIES_PER_MARKER
    leaving = np.where(n_bodies > 1, MEMBERSHIP_PRICE - loss, -np.inf)
    joining = np.where(is_free, gain - MEMBERSHIP_PRICE, -np.inf)
    # Pairs with markers of both bodies are not lost by a move.
    kept = bodies @ (bodies[source] * of_lone_pairs[marker]).T
    moving = gain[:, marker] - loss[source, marker] + kept
    merging = MEMBERSHIP_PRICE * (bodies @ bodies.T) + gain @ bodies.T
    merging[np.tri(len(inside), dtype=bool)] = -np.inf
    is_open = is_free[:, None] & is_free & (n_common == 0)
    opening = np.where(np.triu(is_open, k=1), odds, -np.inf)
    return (
        np.where(inside, leaving, joining),
        np.where(inside[:, marker], -np.inf, moving),
        merging,
        opening - 2.0 * MEMBERSHIP_PRICE,
    )


def without_subsets(cover: Members) -> Members:
    """Return the cover without bodies that are subsets of another, or repeat one."""
    rows = np.flatnonzero(cover.any(axis=1))
    bodies = cover[rows].astype(float)
    n_markers, n_common = bodies.sum(axis=1), bodies @ bodies.T
    is_subset = n_common == n_markers[:, None]
    is_larger = n_markers > n_markers[:, None]
    is_earlier = np.tri(len(rows), k=-1, dtype=bool)
    is_needless = (is_subset & (is_larger | is_earlier)).any(axis=1)
    cover = cover.copy()
    cover[rows[is_needless]] = False
    return cover


def complete_linkage(odds: Float[Array, "marker marker"]) -> Members:
    """Return bodies all of whose pairs have positive log odds (complete linkage)."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if (odds + np.eye(len(odds)) > 0.0).all():
        return np.ones((1, len(odds)), dtype=bool)
    zero_odds = odds.max() + 1.0
    dissimilarity = zero_odds - odds
    np.fill_diagonal(dissimilarity, 0.0)
    tree = linkage(squareform(dissimilarity, checks=False), "complete")
    return members_of_labels(fcluster(tree, zero_odds, "distance") - 1)


def absorb_single_markers(
    members: Members, odds: Float[Array, "marker marker"]
) -> Bool[Array, "fewer marker"]:
    """Return the bodies after those of one marker joined the body that fits best.

    Args:
        members: Which markers belong to which bodies.
        odds: Log odds that two markers are on one body.
    """
    members = members.copy()
    while True:
        best = (-CLEAR_LOG_ODDS, -1, -1)
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


def pair_single_markers(
    members: Members, odds: Float[Array, "marker marker"]
) -> Bool[Array, "body marker"]:
    """Return the bodies after those of one marker got those that it is likely with.

    A shin marker beside two markers of the ankle, which move little against the foot,
    is likely on one body with them and not with the foot. One marker has no pose, so it
    shares the markers of positive log odds of the body where their sum is largest.
    """
    members = members.copy()
    for single in np.flatnonzero(members.sum(axis=1) == 1).tolist():
        marker = int(members[single].argmax())
        likely = np.maximum(odds[marker], 0.0)
        best = int((members @ likely).argmax())
        members[single] |= members[best] & (likely > 0.0)
    return members


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
    support = mean + CLEAR_LOG_ODDS * is_thin[:, None]
    best = np.where(members, support, -np.inf).argmax(axis=0)
    return np.where(members.any(axis=0), best, -1)
