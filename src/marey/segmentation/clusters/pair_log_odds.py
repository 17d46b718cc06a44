"""The evidence that two markers sit on one rigid thing, in log odds.

Distances that hold still speak for it, weighed against the noise of the two markers;
far apart speaks against it, weighed against how dense the markers are. Both are free
of units, so the same few numbers serve a hand and a horse.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from marey.segmentation.clusters.pair_statistics import PairStats

Array = np.ndarray
Members = Bool[Array, "body marker"]

# Log odds = BASE - STEADY ln(spread / noise) - NEAR ln(distance / usual distance).
# Logistic regression over 22 recordings of people, animals and machines with known
# bodies, each counted once.
BASE, STEADY, NEAR = 1.61, 2.16, 4.19

# Beyond this many times the usual distance (ln) a pair is far and no farther: a long
# stick stays one body.
FAR = 0.8

# One pair alone never settles a question.
MOST, LEAST = 4.0, -8.0

# A marker's noise is that of its company with this many markers of the usual noise.
PRIOR = 1.5

# Share of the noise that a spread cannot be told from zero below.
FLOOR = 0.3

# A marker's noise relative to the usual.
QUIETEST, LOUDEST = 0.3, 5.0

# Share of the usual distance of markers that noise is never below.
SMALLEST = 1e-3

# How many of a marker's nearest its usual distance is taken from.
NEAREST = 4


@dataclass(frozen=True, slots=True, eq=False)
class Scales:
    """What is usual in a recording: noise and distances."""

    noise: float
    """Spread of the distance between markers of one body, in metres."""

    density: Float[Array, " marker"]
    """Distance to the fourth nearest marker, in metres."""

    reach: Float[Array, " marker"]
    """Distance over which markers of one body are usual around each marker."""


def scales_of(stats: PairStats) -> Scales:
    """Return the noise and the distances that are usual in a recording."""
    spread = np.where(stats.known, stats.spread, np.inf)
    distance = np.where(stats.known, stats.distance, np.inf)
    rank = min(NEAREST, len(distance) - 1) - 1
    density = _finite(np.sort(distance, axis=1)[:, max(rank, 0)])
    least = _finite(spread.min(axis=1))
    noise = max(float(np.median(least)), SMALLEST * float(np.median(density)))
    noise = max(noise, np.finfo(float).tiny)
    return Scales(noise, density, _reach(spread, stats.distance, density, least, noise))


def _finite(values: Array) -> Array:
    """Return the values, the median in place of those that are not known."""
    known = np.isfinite(values)
    middle = float(np.median(values[known])) if known.any() else 0.0
    return np.where(known, values, middle)


def _reach(
    spread: Array, distance: Array, density: Array, least: Array, noise: float
) -> Array:
    limit = 2.0 * np.maximum(noise, np.minimum(least, 2.0 * noise))
    own = np.empty(len(spread))
    for i, row in enumerate(spread):
        steady = row < limit[i]
        if not steady.any():
            steady = row == row.min()
        own[i] = np.nanmedian(distance[i, steady])
    own = _finite(own)
    return np.asarray(np.maximum(density, np.minimum(own, 2.0 * np.median(own))))


def marker_noise(
    stats: PairStats, scales: Scales, members: Members
) -> Float[Array, " marker"]:
    """Return each marker's noise in metres, from its distances to its company.

    A marker with little company is taken to be like the others.
    """
    mates = (members.T.astype(int) @ members) > 0
    mates &= stats.known
    total = np.where(mates, stats.spread**2, 0.0).sum(axis=1)
    usual = PRIOR * scales.noise**2
    noise = np.sqrt((total + usual) / (mates.sum(axis=1) + PRIOR))
    low, high = QUIETEST * scales.noise, LOUDEST * scales.noise
    return np.asarray(np.clip(noise, low, high))


def nearest_company(stats: PairStats) -> Members:
    """Return each marker with the one that keeps its distance best, as a body."""
    spread = np.where(stats.known, stats.spread, np.inf)
    members = np.eye(len(spread), dtype=bool)
    rows = np.flatnonzero(np.isfinite(spread).any(axis=1))
    members[rows, spread[rows].argmin(axis=1)] = True
    return members


def log_odds(
    stats: PairStats, scales: Scales, noise: Float[Array, " marker"]
) -> Float[Array, "marker marker"]:
    """Return how much speaks for every two markers being one body.

    0 where the two were hardly seen together, and on the diagonal.
    """
    floor = FLOOR * scales.noise
    with np.errstate(divide="ignore"):
        steady = np.log(np.hypot(stats.spread, floor) / _between(noise))
        near = np.log(stats.distance / _between(scales.reach))
    odds = BASE - STEADY * steady - NEAR * np.minimum(near, FAR)
    return np.where(stats.known, np.clip(odds, LEAST, MOST), 0.0)


def _between(values: Array) -> Array:
    return np.asarray(np.sqrt(values[:, None] * values))


def as_members(labels: Sequence[int] | Array) -> Members:
    """Return labels, one per marker, as membership; -1 belongs nowhere."""
    labels = np.asarray(labels)
    return np.asarray(np.arange(labels.max(initial=-1) + 1)[:, None] == labels)
