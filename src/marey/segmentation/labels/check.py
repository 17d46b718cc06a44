"""Whether markers move as their labels say: with the bodies they are said to be on."""

from dataclasses import dataclass
from itertools import chain

import numpy as np
from jaxtyping import Bool, Float

from marey.segmentation.clusters.pair_log_odds import (
    Members,
    Scales,
    log_odds,
    marker_noise,
    scales_of,
)
from marey.segmentation.clusters.pair_statistics import PairStats, pair_statistics

Array = np.ndarray

SWAPPED = 3.0
"""Log odds that two markers must gain by trading places to be taken for swapped. Right
labels of two dozen recordings gained nothing; 99 of 100 swapped ones gain more."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelCheck:
    """What the motion of the markers says of their labels."""

    support: Float[Array, " marker"]
    """Log odds that a marker is one body with the likeliest of its mates; NaN where
    it has none, or was hardly seen together with them."""

    swaps: tuple[tuple[int, int], ...]
    """Pairs of markers that have each other's labels."""

    gains: tuple[float, ...]
    """What each pair gains by trading places, in log odds."""

    doubtful: tuple[int, ...]
    """Markers that nothing supports, not even when the swaps are undone."""

    misplaced: tuple[int, ...]
    """Markers that are swapped, or whose mates speak against them on the whole even
    when the swaps are undone: in good company a few, many where the labels lie."""

    @property
    def n_checked(self) -> int:
        """How many markers there is anything to say of."""
        return int(np.isfinite(self.support).sum())


def check_labels(
    points: Float[Array, "frame marker 3"], members: Members
) -> LabelCheck:
    """Return how well the markers keep their distances to their mates.

    Two markers are swapped when both together fit much better with each other's mates,
    by the mean evidence over the mates. A marker is doubtful when each of its mates
    speaks against it.
    """
    stats = pair_statistics([points])
    if not _mates(stats, members).any():
        return LabelCheck(np.full(members.shape[1], np.nan), (), (), (), ())
    scales = scales_of(stats)
    support, _ = _support(stats, scales, members)
    swaps, gains, settled = _undone(stats, scales, members)
    best, mean = _support(stats, scales, settled)
    misplaced = {*np.flatnonzero(mean < 0.0).tolist(), *chain(*swaps)}
    return LabelCheck(
        support,
        swaps,
        gains,
        doubtful=tuple(np.flatnonzero(best < 0.0).tolist()),
        misplaced=tuple(sorted(misplaced)),
    )


def _mates(stats: PairStats, members: Members) -> Bool[Array, "marker marker"]:
    return np.asarray(_together(members) & stats.known)


def _together(members: Members) -> Bool[Array, "marker marker"]:
    return np.asarray((members.T.astype(int) @ members) > 0)


def _odds(stats: PairStats, scales: Scales, members: Members) -> Array:
    return log_odds(stats, scales, marker_noise(stats, scales, members))


def _support(
    stats: PairStats, scales: Scales, members: Members
) -> tuple[Float[Array, " marker"], Float[Array, " marker"]]:
    """Return the evidence of the likeliest of each marker's mates, and of all."""
    mates = _mates(stats, members)
    odds = _odds(stats, scales, members)
    best = np.where(mates, odds, -np.inf).max(axis=1)
    total, count = np.where(mates, odds, 0.0).sum(axis=1), mates.sum(axis=1)
    alone = count == 0
    mean = total / np.maximum(count, 1)
    return np.where(alone, np.nan, best), np.where(alone, np.nan, mean)


def _undone(
    stats: PairStats, scales: Scales, members: Members
) -> tuple[tuple[tuple[int, int], ...], tuple[float, ...], Members]:
    """Return the swaps, surest first, what each gains, and the bodies without them."""
    swaps: list[tuple[int, int]] = []
    gains = []
    members = members.copy()
    for _ in range(members.shape[1] // 2):
        gain = swap_gains(stats, _odds(stats, scales, members), members)
        done = [marker for pair in swaps for marker in pair]
        gain[done] = gain[:, done] = -np.inf
        one, other = divmod(int(gain.argmax()), len(gain))
        if gain[one, other] < SWAPPED:
            break
        swaps.append((min(one, other), max(one, other)))
        gains.append(float(gain[one, other]))
        members[:, [one, other]] = members[:, [other, one]]
    return tuple(swaps), tuple(gains), members


def swap_gains(
    stats: PairStats, odds: Float[Array, "marker marker"], members: Members
) -> Float[Array, "marker marker"]:
    """Return the evidence that every two markers gain when they trade places.

    -inf for markers of one body, and where nothing is known of one of the two.
    """
    mates = _mates(stats, members).T.astype(float)
    with np.errstate(invalid="ignore"):
        # Row i, column j: marker i among the mates of marker j.
        among = (odds @ mates) / (stats.known @ mates)
    own = np.diag(among)
    gain = among + among.T - own[:, None] - own
    return np.where(np.isnan(gain) | _together(members), -np.inf, gain)
