"""Merges of dense bodies and moves of markers that lower the leave-one-out error.

Log odds of pairs count distance against markers that are far apart, which divides large
bodies with many markers; spectral clustering misses the number of bodies. With three or
more markers on each body, the leave-one-out error detects both. On sparse sets it does
not, and is not used: a chest and hips that hardly move against each other predict each
other well.
"""

from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.segmentation.clusters.cross_validation import LeaveOneOut
from marey.segmentation.clusters.pair_log_odds import Scales, members_of_labels
from marey.segmentation.clusters.pair_statistics import PairStats

Array = np.ndarray

MIN_DENSITY = 5.0
"""Mean number of markers per body from which merges are tried. Lower merges bodies of
sparse sets wrongly. Chosen by hand."""

MIN_BODY_SIZE = 3
"""Number of markers of a body that may be merged, or keeps after losing one. Chosen by
hand."""

MAX_SPREAD_RATIO = 3.0
"""Spread between two bodies, relative to the spread inside, up to which a merge or a
move is tried. Higher is slower. Chosen by hand."""

MIN_COST_GAIN = 1e-6
"""Smallest gain of a change. Guards against cycles by rounding."""


def is_dense(labels: Int[Array, " marker"]) -> bool:
    """Return whether bodies have enough markers to try merges."""
    return len(labels) >= MIN_DENSITY * (int(labels.max(initial=0)) + 1)


def merge_bodies(
    labels: Int[Array, " marker"],
    stats: PairStats,
    scales: Scales,
    criterion: LeaveOneOut,
) -> Int[Array, " marker"]:
    """Return the labels after all merges and moves that lower the cost.

    Greedy descent: each step makes the change of largest gain.
    """
    spread = stats.known_spread
    for _ in range(2 * len(labels)):
        better = _best_change(labels, spread, scales.noise, criterion)
        if better is None:
            return labels
        labels = np.unique(better, return_inverse=True)[1]
    return labels


def _best_change(
    labels: Int[Array, " marker"],
    spread: Float[Array, "marker marker"],
    noise: float,
    criterion: LeaveOneOut,
) -> Int[Array, " marker"] | None:
    """Return the labels after the change of largest gain; None if none gains."""
    bodies = members_of_labels(labels)
    cost = [criterion.body_cost(body) for body in bodies]
    best_gain, best = MIN_COST_GAIN, None
    for a, b in _merge_candidates(bodies, spread, noise):
        gain = cost[a] + cost[b] - criterion.body_cost(bodies[a] | bodies[b])
        if gain > best_gain:
            best_gain, best = gain, np.where(labels == b, a, labels)
    for marker, b in _move_candidates(bodies, labels, spread, noise):
        a = int(labels[marker])
        moved = np.where(np.arange(len(labels)) == marker, b, labels)
        gain = cost[a] + cost[b]
        gain -= criterion.body_cost(moved == a) + criterion.body_cost(moved == b)
        if gain > best_gain:
            best_gain, best = gain, moved
    return best


def _merge_candidates(
    bodies: Bool[Array, "body marker"],
    spread: Float[Array, "marker marker"],
    noise: float,
) -> list[tuple[int, int]]:
    """Return pairs of bodies whose spread is hardly larger between than inside."""
    large = np.flatnonzero(bodies.sum(axis=1) >= MIN_BODY_SIZE)
    inside = {int(body): _spread_inside(spread, bodies[body], noise) for body in large}
    return [
        (a, b)
        for a, b in combinations(inside, 2)
        if np.median(spread[np.ix_(bodies[a], bodies[b])])
        < MAX_SPREAD_RATIO * max(inside[a], inside[b])
    ]


def _move_candidates(
    bodies: Bool[Array, "body marker"],
    labels: Int[Array, " marker"],
    spread: Float[Array, "marker marker"],
    noise: float,
) -> list[tuple[int, int]]:
    """Return markers, each with the other body of smallest median spread to it."""
    size = bodies.sum(axis=1)
    large = np.flatnonzero(size >= MIN_BODY_SIZE)
    to_body = np.stack([np.median(spread[:, bodies[b]], axis=1) for b in large], axis=1)
    moves = []
    for marker, body in enumerate(labels.tolist()):
        to_other = np.where(large == body, np.inf, to_body[marker])
        nearest = int(np.argmin(to_other))
        inside = max(float(np.median(spread[marker, bodies[body]])), noise)
        is_near = to_other[nearest] < MAX_SPREAD_RATIO * inside
        if size[body] > MIN_BODY_SIZE and is_near:
            moves.append((marker, int(large[nearest])))
    return moves


def _spread_inside(
    spread: Float[Array, "marker marker"], body: Bool[Array, " marker"], noise: float
) -> float:
    """Return the median spread of a body's pairs, at least the noise."""
    inside = spread[np.ix_(body, body)]
    pairs = inside[~np.eye(len(inside), dtype=bool)]
    return max(float(np.median(pairs)), noise)
