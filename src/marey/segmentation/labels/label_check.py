"""Agreement of labels with the motion: swapped, doubtful and misplaced markers."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np

from marey.numerics import Array, Float
from marey.segmentation.clusters.pair_statistics import (
    CLEAR_LOG_ODDS,
    Members,
    PairStats,
    log_odds,
    pair_statistics,
    same_body,
)

MAX_MISPLACED_FRACTION = 0.25
"""Fraction of the markers that may disagree with their labels before all labels are
ignored. Higher trusts worse labels. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelCheck:
    """Agreement of the labels with the motion."""

    support: Float[Array, " marker"]
    """Largest log odds of a marker with another marker of its body; NaN if it has none,
    or if few frames show them together."""

    swaps: Mapping[tuple[int, int], float]
    """Pairs of markers that have each other's labels, with the log odds that each pair
    gains by swapping bodies; the largest first."""

    doubtful: tuple[int, ...]
    """Markers of negative support, even after the swaps are undone."""

    misplaced: tuple[int, ...]
    """Markers that are swapped, or of negative mean log odds even after the swaps are
    undone. Right labels have few of these, wrong ones many."""

    @property
    def n_checked(self) -> int:
        """Number of markers whose support is known."""
        return int(np.isfinite(self.support).sum())

    @property
    def contradicts_labels(self) -> bool:
        """Whether so many markers are misplaced that the labels are of no use."""
        return len(self.misplaced) > MAX_MISPLACED_FRACTION * self.n_checked


def check_labels(stats: PairStats, members: Members) -> LabelCheck:
    """Return the agreement of the markers' motion with the bodies of their labels.

    Two markers are swapped if the sum of their mean log odds is much larger after they
    swap bodies. A marker is doubtful if its log odds with all other
    markers of its body are negative.

    Args:
        stats: Distances of the markers.
        members: The bodies of the labels.
    """
    if not (same_body(members) & stats.is_known).any():
        return LabelCheck(np.full(members.shape[1], np.nan), {}, (), ())
    support, _ = _support(stats, members)
    swaps, repaired = _undo_swaps(stats, members)
    repaired_support, mean = _support(stats, repaired)
    doubtful = np.flatnonzero(repaired_support < 0.0).tolist()
    misplaced = {*np.flatnonzero(mean < 0.0).tolist(), *chain(*swaps)}
    return LabelCheck(support, swaps, tuple(doubtful), tuple(sorted(misplaced)))


def labels_contradict_motion(
    points: Float[Array, "frame marker 3"], members: Members
) -> bool:
    """Return whether many markers do not move with the bodies of their labels.

    Args:
        points: Positions of the markers in metres, NaN where unseen.
        members: The bodies of the labels.
    """
    return check_labels(pair_statistics([points]), members).contradicts_labels


def _support(
    stats: PairStats, members: Members
) -> tuple[Float[Array, " marker"], Float[Array, " marker"]]:
    """Return the largest and the mean log odds of each marker on its bodies."""
    pairs = same_body(members) & stats.is_known
    odds = log_odds(stats, members)
    count = np.where(pairs.any(axis=1), pairs.sum(axis=1), np.nan)
    largest = np.where(pairs, odds, -np.inf).max(axis=1)
    mean = np.where(pairs, odds, 0.0).sum(axis=1) / count
    return np.where(np.isnan(count), np.nan, largest), mean


def _undo_swaps(
    stats: PairStats, members: Members
) -> tuple[dict[tuple[int, int], float], Members]:
    """Return the swaps with their gains, largest first, and the bodies without swaps.

    Greedy: the swap of largest gain is undone before the next one is searched.
    """
    swaps: dict[tuple[int, int], float] = {}
    members = members.copy()
    for _ in range(members.shape[1] // 2):
        gain = swap_gains(stats, log_odds(stats, members), members)
        swapped = list(chain(*swaps))
        gain[swapped] = gain[:, swapped] = -np.inf
        i, j = divmod(int(gain.argmax()), len(gain))
        if gain[i, j] < CLEAR_LOG_ODDS:
            break
        swaps[min(i, j), max(i, j)] = float(gain[i, j])
        members[:, [i, j]] = members[:, [j, i]]
    return swaps, members


def swap_gains(
    stats: PairStats, odds: Float[Array, "marker marker"], members: Members
) -> Float[Array, "marker marker"]:
    """Return the log odds that every two markers gain by swapping bodies.

    -inf for markers of one body, and where the log odds of one of the two are unknown.
    """
    together = same_body(members)
    known = stats.is_known
    pairs = (together & known).T.astype(float)
    with np.errstate(invalid="ignore"):
        # Row i, column j: mean of marker i with the other markers of marker j's body.
        mean = (odds @ pairs) / (known @ pairs)
    before = np.diag(mean)
    gain = mean + mean.T - before[:, None] - before
    return np.where(np.isnan(gain) | together, -np.inf, gain)
