"""Dense bodies put together again where that foretells hidden markers better.

Evidence by pairs counts distance against markers far apart, which cuts large bodies
with many markers in pieces; spectral clustering misses the number of bodies. With three
markers or more on either side, foretelling is a good judge of both. On sparse sets it
is a bad one and is not asked: a chest and hips that hardly move against each other
foretell each other well.
"""

from itertools import combinations

import numpy as np
from jaxtyping import Float, Int

from marey.segmentation.clusters.cross_validation import Foretelling
from marey.segmentation.clusters.pair_log_odds import Scales
from marey.segmentation.clusters.pair_statistics import PairStats

Array = np.ndarray

DENSE = 5.0
"""Markers per body, on average, from which foretelling is asked."""

SMALLEST = 3
"""Markers of a body that may be joined or lose one."""

LIKELY = 3.0
"""Times the usual spread up to which a union or a move is tried at all."""


def is_dense(labels: Int[Array, " marker"]) -> bool:
    """Return whether bodies have markers enough for foretelling to judge changes."""
    return len(labels) >= DENSE * (int(labels.max(initial=0)) + 1)


def joined(
    labels: Int[Array, " marker"],
    stats: PairStats,
    scales: Scales,
    judge: Foretelling,
) -> Int[Array, " marker"]:
    """Return the labels after every union and move that foretells better."""
    spread = np.where(stats.known, stats.spread, np.inf)
    for _ in range(2 * len(labels)):
        better = _best_change(labels, spread, scales.noise, judge)
        if better is None:
            return labels
        labels = np.unique(better, return_inverse=True)[1]
    return labels


def _best_change(
    labels: Array,
    spread: Float[Array, "marker marker"],
    noise: float,
    judge: Foretelling,
) -> Int[Array, " marker"] | None:
    bodies = labels == np.arange(labels.max() + 1)[:, None]
    cost = [judge.body_cost(body) for body in bodies]
    best, change = 1e-6, None
    for a, b in _unions(bodies, spread, noise):
        gain = cost[a] + cost[b] - judge.body_cost(bodies[a] | bodies[b])
        if gain > best:
            best, change = gain, np.where(labels == b, a, labels)
    for marker, b in _moves(bodies, labels, spread, noise):
        a = int(labels[marker])
        moved = np.where(np.arange(len(labels)) == marker, b, labels)
        gain = cost[a] + cost[b]
        gain -= judge.body_cost(moved == a) + judge.body_cost(moved == b)
        if gain > best:
            best, change = gain, moved
    return change


def _unions(bodies: Array, spread: Array, noise: float) -> list[tuple[int, int]]:
    large = np.flatnonzero(bodies.sum(axis=1) >= SMALLEST)
    inside = {int(b): _within(spread, bodies[b], noise) for b in large}
    return [
        (a, b)
        for a, b in combinations(inside, 2)
        if np.median(spread[np.ix_(bodies[a], bodies[b])])
        < LIKELY * max(inside[a], inside[b])
    ]


def _moves(
    bodies: Array, labels: Array, spread: Array, noise: float
) -> list[tuple[int, int]]:
    """Return markers with the body that each might go to."""
    size = bodies.sum(axis=1)
    large = np.flatnonzero(size >= SMALLEST)
    away = np.stack([np.median(spread[:, bodies[b]], axis=1) for b in large], axis=1)
    moves = []
    for marker, a in enumerate(labels.tolist()):
        others = np.where(large == a, np.inf, away[marker])
        nearest = int(np.argmin(others))
        own = max(float(np.median(spread[marker, bodies[a]])), noise)
        if size[a] > SMALLEST and others[nearest] < LIKELY * own:
            moves.append((marker, int(large[nearest])))
    return moves


def _within(spread: Array, body: Array, noise: float) -> float:
    """Return the median spread of a body's own pairs, never below the noise."""
    inside = spread[np.ix_(body, body)]
    pairs = inside[~np.eye(len(inside), dtype=bool)]
    return max(float(np.median(pairs)), noise)
