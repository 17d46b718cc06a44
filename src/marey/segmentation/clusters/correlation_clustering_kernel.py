"""Overlapping correlation clustering, compiled."""

from typing import no_type_check

import numpy as np
from numba import njit

ADD, REMOVE, MOVE, MERGE, OPEN = 0, 1, 2, 3, 4


@no_type_check
@njit(cache=True)
def covered(odds, members, price, most_bodies, most_moves):
    """Return the bodies that no single change makes better.

    The worth of a cover is the sum of the odds of all pairs that share a body, less a
    price for every membership. Each step makes the one change that gains most.

    Args:
        odds: (marker, marker) evidence, zero on the diagonal.
        members: (body, marker) the bodies to start from.
        price: Cost of one membership.
        most_bodies: Bodies a marker may belong to.
        most_moves: Changes after which to stop.
    """
    n_markers = len(odds)
    state = np.zeros((len(members) + n_markers, n_markers), dtype=np.bool_)
    state[: len(members)] = members
    count = np.zeros((n_markers, n_markers), dtype=np.int64)
    for b in range(len(state)):
        _count(count, state[b], 1)
    for _ in range(most_moves):
        gain, move, i, a, b = _best_move(odds, state, count, price, most_bodies)
        if gain < 1e-9:
            break
        _apply(state, count, move, i, a, b)
        _drop_inner(state, count)
    return state


@no_type_check
@njit(cache=True)
def _count(count, body, step):
    inside = np.flatnonzero(body)
    for i in inside:
        for j in inside:
            count[i, j] += step


@no_type_check
@njit(cache=True)
def _sums(odds, state, count):
    """Return what each marker gains by joining each body, and loses by leaving it."""
    n_bodies, n_markers = state.shape
    gain = np.zeros((n_bodies, n_markers))
    loss = np.zeros((n_bodies, n_markers))
    for b in range(n_bodies):
        for j in np.flatnonzero(state[b]):
            for i in range(n_markers):
                if i != j:
                    if count[i, j] == 0:
                        gain[b, i] += odds[i, j]
                    elif count[i, j] == 1:
                        loss[b, i] += odds[i, j]
    return gain, loss


@no_type_check
@njit(cache=True)
def _best_move(odds, state, count, price, most_bodies):
    n_bodies, n_markers = state.shape
    gain, loss = _sums(odds, state, count)
    size = np.zeros(n_bodies, dtype=np.int64)
    worn = np.zeros(n_markers, dtype=np.int64)
    for b in range(n_bodies):
        for i in range(n_markers):
            if state[b, i]:
                size[b] += 1
                worn[i] += 1
    best, move, at, one, two = 0.0, ADD, 0, 0, 0
    for b in range(n_bodies):
        if size[b] == 0:
            continue
        for i in range(n_markers):
            if state[b, i]:
                if worn[i] > 1 and price - loss[b, i] > best:
                    best, move, at, one, two = price - loss[b, i], REMOVE, i, b, b
                continue
            if worn[i] < most_bodies and gain[b, i] - price > best:
                best, move, at, one, two = gain[b, i] - price, ADD, i, b, b
            for c in range(n_bodies):
                if state[c, i]:
                    kept = _kept(odds, state, count, i, b, c)
                    value = gain[b, i] - loss[c, i] + kept
                    if value > best:
                        best, move, at, one, two = value, MOVE, i, b, c
        for c in range(b + 1, n_bodies):
            if size[c] > 0:
                value = _merged(odds, state, count, price, b, c)
                if value > best:
                    best, move, at, one, two = value, MERGE, 0, b, c
    for i in range(n_markers):
        for j in range(i + 1, n_markers):
            if count[i, j] == 0 and max(worn[i], worn[j]) < most_bodies:
                value = odds[i, j] - 2.0 * price
                if value > best:
                    best, move, at, one, two = value, OPEN, i, j, j
    return best, move, at, one, two


@no_type_check
@njit(cache=True)
def _kept(odds, state, count, i, new, old):
    """Return what marker i does not lose after all, as both bodies hold the mate."""
    total = 0.0
    for j in range(len(odds)):
        if j != i and state[new, j] and state[old, j] and count[i, j] == 1:
            total += odds[i, j]
    return total


@no_type_check
@njit(cache=True)
def _merged(odds, state, count, price, a, b):
    total = 0.0
    for i in range(len(odds)):
        if state[a, i] and state[b, i]:
            total += price
        elif state[a, i]:
            for j in range(len(odds)):
                if state[b, j] and not state[a, j] and count[i, j] == 0:
                    total += odds[i, j]
    return total


@no_type_check
@njit(cache=True)
def _apply(state, count, move, i, a, b):
    if move == OPEN:
        for body in range(len(state)):
            if not state[body].any():
                state[body, i] = state[body, a] = True
                _count(count, state[body], 1)
                break
        return
    _count(count, state[a], -1)
    if move == ADD:
        state[a, i] = True
    elif move == REMOVE:
        state[a, i] = False
    else:
        _count(count, state[b], -1)
        if move == MOVE:
            state[a, i], state[b, i] = True, False
        else:
            state[a] |= state[b]
            state[b] = False
        _count(count, state[b], 1)
    _count(count, state[a], 1)


@no_type_check
@njit(cache=True)
def _drop_inner(state, count):
    """Take away bodies that lie wholly inside another; of equal ones the later."""
    for b in range(len(state)):
        if not state[b].any():
            continue
        for c in range(len(state)):
            if c == b or not state[c].any() or (state[b] & ~state[c]).any():
                continue
            if (state[c] & ~state[b]).any() or c < b:
                _count(count, state[b], -1)
                state[b] = False
                break
