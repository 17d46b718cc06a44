"""Overlapping correlation clustering by local search, compiled.

The value of a cover of the markers by bodies is the sum of the log odds of all pairs
that share at least one body, less a price for every membership. Greedy ascent: each
step makes the one change of largest gain, until no change gains anything.
"""

from typing import no_type_check

import numpy as np
from numba import njit

ADD, REMOVE, MOVE, MERGE, OPEN = 0, 1, 2, 3, 4
"""Changes of a cover: a marker joins a body, leaves it, or changes from one to another;
two bodies merge; two markers open a new body."""

MIN_GAIN = 1e-9
"""Smallest gain of a change, in log odds. Guards against cycles by rounding."""


@no_type_check
@njit(cache=True)
def cluster_overlapping(odds, members, price, max_bodies, max_changes):
    """Return a cover of the markers that no single change improves.

    Args:
        odds: (marker, marker) log odds of one body, zero on the diagonal.
        members: (body, marker) the cover to start from.
        price: Cost of one membership, in log odds.
        max_bodies: Number of bodies that one marker may belong to.
        max_changes: Number of changes after which to stop.
    """
    n_markers = len(odds)
    cover = np.zeros((len(members) + n_markers, n_markers), dtype=np.bool_)
    cover[: len(members)] = members
    n_common = np.zeros((n_markers, n_markers), dtype=np.int64)
    for b in range(len(cover)):
        _count_pairs(n_common, cover[b], 1)
    for _ in range(max_changes):
        gain, change, i, a, b = _best_change(odds, cover, n_common, price, max_bodies)
        if gain < MIN_GAIN:
            break
        _apply(cover, n_common, change, i, a, b)
        _drop_subsets(cover, n_common)
    return cover


@no_type_check
@njit(cache=True)
def _count_pairs(n_common, body, step):
    """Add a step to the number of common bodies of every two markers of a body."""
    inside = np.flatnonzero(body)
    for i in inside:
        for j in inside:
            n_common[i, j] += step


@no_type_check
@njit(cache=True)
def _gains_and_losses(odds, cover, n_common):
    """Return the log odds that a marker gains by joining a body or loses by leaving."""
    n_bodies, n_markers = cover.shape
    gain = np.zeros((n_bodies, n_markers))
    loss = np.zeros((n_bodies, n_markers))
    for b in range(n_bodies):
        for j in np.flatnonzero(cover[b]):
            for i in range(n_markers):
                if i != j:
                    if n_common[i, j] == 0:
                        gain[b, i] += odds[i, j]
                    elif n_common[i, j] == 1:
                        loss[b, i] += odds[i, j]
    return gain, loss


@no_type_check
@njit(cache=True)
def _best_change(odds, cover, n_common, price, max_bodies):
    """Return the change of largest gain: gain, kind, marker, and one or two bodies."""
    n_bodies, n_markers = cover.shape
    gain, loss = _gains_and_losses(odds, cover, n_common)
    size = np.zeros(n_bodies, dtype=np.int64)
    n_bodies_of = np.zeros(n_markers, dtype=np.int64)
    for b in range(n_bodies):
        for i in range(n_markers):
            if cover[b, i]:
                size[b] += 1
                n_bodies_of[i] += 1
    best = (0.0, ADD, 0, 0, 0)
    for b in range(n_bodies):
        if size[b] == 0:
            continue
        for i in range(n_markers):
            if cover[b, i]:
                if n_bodies_of[i] > 1 and price - loss[b, i] > best[0]:
                    best = (price - loss[b, i], REMOVE, i, b, b)
                continue
            if n_bodies_of[i] < max_bodies and gain[b, i] - price > best[0]:
                best = (gain[b, i] - price, ADD, i, b, b)
            best = _best_move(best, odds, cover, n_common, gain, loss, i, b)
        best = _best_merge(best, odds, cover, n_common, size, price, b)
    return _best_opening(best, odds, n_common, n_bodies_of, price, max_bodies)


@no_type_check
@njit(cache=True)
def _best_move(best, odds, cover, n_common, gain, loss, i, b):
    """Return the better of a change and of all moves of marker i into body b."""
    for c in range(len(cover)):
        if cover[c, i]:
            kept = _kept_odds(odds, cover, n_common, i, b, c)
            value = gain[b, i] - loss[c, i] + kept
            if value > best[0]:
                best = (value, MOVE, i, b, c)
    return best


@no_type_check
@njit(cache=True)
def _kept_odds(odds, cover, n_common, i, new, old):
    """Return the log odds with markers of both bodies, which a move does not lose."""
    total = 0.0
    for j in range(len(odds)):
        if j != i and cover[new, j] and cover[old, j] and n_common[i, j] == 1:
            total += odds[i, j]
    return total


@no_type_check
@njit(cache=True)
def _best_merge(best, odds, cover, n_common, size, price, b):
    """Return the better of a change and of all merges of body b with a later one."""
    for c in range(b + 1, len(cover)):
        if size[c] > 0:
            value = _merge_gain(odds, cover, n_common, price, b, c)
            if value > best[0]:
                best = (value, MERGE, 0, b, c)
    return best


@no_type_check
@njit(cache=True)
def _merge_gain(odds, cover, n_common, price, a, b):
    total = 0.0
    for i in range(len(odds)):
        if cover[a, i] and cover[b, i]:
            total += price
        elif cover[a, i]:
            for j in range(len(odds)):
                if cover[b, j] and not cover[a, j] and n_common[i, j] == 0:
                    total += odds[i, j]
    return total


@no_type_check
@njit(cache=True)
def _best_opening(best, odds, n_common, n_bodies_of, price, max_bodies):
    """Return the better of a change and of all new bodies of two markers."""
    for i in range(len(odds)):
        for j in range(i + 1, len(odds)):
            if n_common[i, j] == 0 and max(n_bodies_of[i], n_bodies_of[j]) < max_bodies:
                value = odds[i, j] - 2.0 * price
                if value > best[0]:
                    best = (value, OPEN, i, j, j)
    return best


@no_type_check
@njit(cache=True)
def _apply(cover, n_common, change, i, a, b):
    """Make a change; of an opening, i and a are the two markers."""
    if change == OPEN:
        for body in range(len(cover)):
            if not cover[body].any():
                cover[body, i] = cover[body, a] = True
                _count_pairs(n_common, cover[body], 1)
                break
        return
    _count_pairs(n_common, cover[a], -1)
    if change == ADD:
        cover[a, i] = True
    elif change == REMOVE:
        cover[a, i] = False
    else:
        _count_pairs(n_common, cover[b], -1)
        if change == MOVE:
            cover[a, i], cover[b, i] = True, False
        else:
            cover[a] |= cover[b]
            cover[b] = False
        _count_pairs(n_common, cover[b], 1)
    _count_pairs(n_common, cover[a], 1)


@no_type_check
@njit(cache=True)
def _drop_subsets(cover, n_common):
    """Remove bodies that are subsets of another; of equal ones the later."""
    for b in range(len(cover)):
        if not cover[b].any():
            continue
        for c in range(len(cover)):
            if c == b or not cover[c].any() or (cover[b] & ~cover[c]).any():
                continue
            if (cover[c] & ~cover[b]).any() or c < b:
                _count_pairs(n_common, cover[b], -1)
                cover[b] = False
                break
