"""Trades of labels held against the distances that markers keep."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

from marey.cleaning.neighbours import FLOOR, Company
from marey.cleaning.swaps.detect import NEARER, Walked

Array = np.ndarray

# Mates whose distances tell one marker from another.
WITNESSES = 6

# Fewest of them without which nothing is decided, and how much their distance may vary.
FEWEST, STEADY = 2, 0.25

# How many times the usual a distance may be off before it is simply wrong.
WRONG = 10.0

# What it costs to leave out a trade that was seen, and to put in one that was not,
# against one label on the wrong marker for as long as distances take to change.
LEFT_OUT, PUT_IN = 5.0, 5.0

# How many times more it costs at most to leave out a trade that is plain to see.
CLEAREST = 5.0

# What it costs to put one in where a label made an odd step, but to nobody's place.
ODD = 2.0

# What it costs that labels are wrong at all, for as long as distances take to change:
# of two histories that fit alike, most labels are right most of the time.
WRONG_AT_ALL = 0.5

# Most labels that are looked at together.
MOST = 8

State = tuple[int, ...]


def settled(
    points: Float[Array, "frame marker 3"],
    company: Company,
    walked: Walked,
) -> Int[Array, "frame label"]:
    """Return the marker that each label stands on in every frame.

    Of all histories of labels the one that fits best: labels change markers where they
    were seen to trade, and rarely where they come back into sight; and a label keeps
    the distances of the marker it stands on. So a trade that was missed in a gap does
    not leave everything after it on the wrong side, and what most frames say is right.

    Args:
        points: Positions in metres, NaN where a label was not seen.
        company: Who keeps whose distance.
        walked: From `find_trades`.
    """
    n_frames, n = points.shape[:2]
    marker = np.tile(np.arange(n), (n_frames, 1))
    for group in groups_of(walked, n):
        told = [len(witnesses(company, k, np.array(group))[0]) for k in group]
        if min(told) < FEWEST:
            continue
        history = _History(points, company, np.array(group), walked)
        marker[:, group] = history.best()
    return marker


def groups_of(walked: Walked, n: int) -> Iterator[list[int]]:
    """Return the labels that trade with each other, directly or not."""
    root = list(range(n))
    for ring in (*(trade.labels for trade in walked.trades), *walked.suspects):
        old = {root[k] for k in ring}
        if len(ring) > 2 or sum(r in old for r in root) <= MOST:
            root = [min(old) if r in old else r for r in root]
    for first in range(n):
        group = [k for k in range(n) if root[k] == first]
        if len(group) > 1:
            yield group


class _History:
    """The labels of one group, and which markers they may stand on when."""

    def __init__(
        self, points: Array, company: Company, group: Array, walked: Walked
    ) -> None:
        self.points, self.company, self.group = points, company, group
        place = {int(label): k for k, label in enumerate(group)}
        self.moves: dict[int, Array] = {}
        self.clear: dict[int, float] = {}
        self.states: list[State] = [tuple(range(len(group)))]
        before = np.arange(len(group))
        trades = [t for t in walked.trades if place.keys() & set(t.labels)]
        for trade in trades:
            after = np.array([place[int(m)] for m in trade.marker[group]])
            # Each label stands on the marker that some label of the group stood on.
            move = np.argsort(before)[after]
            self.moves[trade.frame] = move
            clear = trade.apart / max(NEARER * trade.miss, 1e-12)
            self.clear[trade.frame] = min(clear, CLEAREST)
            self.states += [tuple(after.tolist()), tuple(move.tolist())]
            before = after
        for a, b in walked.suspects:
            if a in place and b in place:
                pair = np.arange(len(group))
                pair[[place[a], place[b]]] = pair[[place[b], place[a]]]
                self.states.append(tuple(pair.tolist()))
        mine = np.isin(walked.odd.marker, group)
        self.odd = set(walked.odd.end[mine].tolist())
        self.states = list(dict.fromkeys(self.states))

    def best(self) -> Int[Array, "frame label"]:
        """Return the marker of each label of the group in every frame."""
        edges, cost = self._parts()
        total, back = cost[0], []
        for k in range(1, len(cost)):
            price = self._price(int(edges[k])) + total[:, None]
            back.append(price.argmin(axis=0))
            total = price.min(axis=0) + cost[k]
        state = [int(total.argmin())]
        for came in reversed(back):
            state.append(int(came[state[-1]]))
        states = np.array(self.states)[state[::-1]]
        spans = np.diff(edges)
        return np.asarray(self.group[np.repeat(states, spans, axis=0)])

    def _price(self, frame: int) -> Float[Array, "old new"]:
        """Return what it costs to go from each state to each other at a frame."""
        count = len(self.states)
        if frame not in self.moves:
            each = ODD if frame in self.odd else PUT_IN
            return each * (1.0 - np.eye(count))
        missed = LEFT_OUT * self.clear[frame]
        price = np.full((count, count), missed + PUT_IN)
        np.fill_diagonal(price, missed)
        for old, state in enumerate(self.states):
            new = tuple(np.array(state)[self.moves[frame]].tolist())
            if new in self.states:
                price[old, self.states.index(new)] = 0.0
        return price

    def _parts(self) -> tuple[Int[Array, " edge"], Float[Array, "part state"]]:
        """Return where the parts of the take begin, and how ill each state fits."""
        seen = np.isfinite(self.points[:, self.group]).all(axis=-1)
        returns = np.flatnonzero((seen[1:] & ~seen[:-1]).any(axis=1)) + 1
        inner = sorted({*returns.tolist(), *self.moves, *self.odd} - {0})
        edges = np.array([0, *inner, len(seen)])
        misfit = self._misfit() / self.company.memory
        sums = np.concatenate([np.zeros((1, *misfit.shape[1:])), misfit.cumsum(axis=0)])
        own = np.stack([sums[b] - sums[a] for a, b in pairwise(edges.tolist())])
        labels = np.arange(len(self.group))
        cost = np.stack([own[:, labels, s].sum(axis=1) for s in self.states], axis=1)
        # The first state is that all labels are right.
        cost[:, 1:] += WRONG_AT_ALL / self.company.memory * np.diff(edges)[:, None]
        return edges, cost

    def _misfit(self) -> Float[Array, "frame label marker"]:
        """Return how far each label is from keeping the distances of each marker.

        In units of what is usual, and no more than is plainly wrong; nothing is known
        of labels that are not seen.
        """
        out = np.zeros((len(self.points), len(self.group), len(self.group)))
        for k, marker in enumerate(self.group.tolist()):
            mates, usual, noise = witnesses(self.company, marker, self.group)
            for label, name in enumerate(self.group.tolist()):
                gap = self.points[:, mates] - self.points[:, name, None]
                off = np.abs(np.linalg.norm(gap, axis=-1) - usual) / noise
                known = np.isfinite(off)
                wrong = np.where(known, np.minimum(off, WRONG), 0.0).sum(axis=1)
                out[:, label, k] = wrong / np.maximum(known.sum(axis=1), 1)
        return out


def witnesses(
    company: Company, marker: int, group: Int[Array, " label"]
) -> tuple[Array, Array, Array]:
    """Return mates outside a group, their usual distances and how these vary."""
    steady = company.spread[marker] < STEADY * company.distance[marker]
    steady &= ~np.isin(company.mates[marker], group)
    best = np.flatnonzero(steady)[:WITNESSES]
    usual = company.distance[marker, best]
    return (
        company.mates[marker, best],
        usual,
        np.maximum(company.spread[marker, best], FLOOR * usual),
    )
