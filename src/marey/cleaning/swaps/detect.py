"""Which marker each label stands on, from frame to frame."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.cleaning.neighbours import Company, carried
from marey.cleaning.prediction_error import Reach, Steps, odd_steps, reach_of, steps_of

Array = np.ndarray

# How many times nearer to another marker's place than to its own a label must be.
NEARER = 3.0

# Where it is this much nearer, and this many times its reach away, it may be.
LIKELY, LOOSE = 1.5, 3.0

LONGEST = 2.0
"""Seconds after which a marker that is not seen is no longer expected anywhere."""


@dataclass(frozen=True, slots=True, eq=False)
class Trade:
    """A moment from which labels stand on other markers than before."""

    frame: int
    marker: Int[Array, " label"]
    """The marker that each label stands on from here on."""

    labels: tuple[int, ...]
    """The labels that changed."""

    apart: float
    """How far they went from their own markers, in metres, on average."""

    miss: float
    """How far they are from the markers that they went to."""


@dataclass(frozen=True, slots=True, eq=False)
class Walked:
    """What a walk through a take met."""

    trades: tuple[Trade, ...]
    """In the order of time."""

    suspects: tuple[tuple[int, int], ...]
    """Pairs of labels that may have traded, for all that one of them shows."""

    odd: Steps
    """All steps that end where the mates did not foretell, in the order of time."""


def find_trades(
    points: Float[Array, "frame marker 3"], company: Company, rate: float
) -> Walked:
    """Return the moments at which labels go over to other markers, in order.

    A label whose next position is not where the mates of its marker carry it, but where
    those of another marker carry that one, has gone over. It is believed where the
    labels make a ring, each on the next one's marker, or where the marker gone to is
    seen under no other label.

    Args:
        points: Positions in metres, NaN where a label was not seen.
        company: Who keeps whose distance.
        rate: Frames per second.
    """
    steps = steps_of(points)
    reach = reach_of(points, company, steps)
    odd = odd_steps(points, company, steps, reach)
    walk = _Walk(points, company, reach, int(LONGEST * rate))
    trades = [
        trade
        for frame in np.unique(odd.end).tolist()
        if (trade := walk.look(frame, odd.marker[odd.end == frame])) is not None
    ]
    return Walked(tuple(trades), tuple(sorted(walk.suspects)), odd)


class _Walk:
    """Labels and the markers they stand on, as far as the walk through time came."""

    def __init__(
        self, points: Array, company: Company, reach: Reach, longest: int
    ) -> None:
        self.points, self.company, self.reach = points, company, reach
        self.longest = longest
        self.seen = np.isfinite(points).all(axis=-1)
        frames = np.where(self.seen, np.arange(len(points))[:, None], -1)
        self.before = np.maximum.accumulate(frames, axis=0)
        n = points.shape[1]
        self.marker = np.arange(n)
        # When each marker was last given another label, and where it was seen then.
        self.given = np.zeros(n, dtype=np.int64)
        self.old_label, self.old_frame = np.arange(n), np.full(n, -1)
        self.suspects: set[tuple[int, int]] = set()

    def last(self, frame: int) -> tuple[Array, Array]:
        """Return the label and the frame that showed each marker before this frame."""
        label = np.argsort(self.marker)
        when = self.before[frame - 1, label]
        old = when < self.given
        return (
            np.where(old, self.old_label, label),
            np.where(old, self.old_frame, when),
        )

    def look(self, frame: int, odd: Int[Array, " odd"]) -> Trade | None:
        """Return the trade at this frame, if there is one, and follow it.

        Args:
            frame: Where the walk has come to.
            odd: The labels that make an odd step to this frame.
        """
        label, when = self.last(frame)
        now = np.argsort(self.marker)
        hidden = ~self.seen[frame, now] & (when >= 0) & (frame - when <= self.longest)
        if len(odd) == 1 and not hidden.any():  # nobody to trade with
            return None
        own = self.marker[odd]
        asked = np.concatenate([own, np.flatnonzero(hidden)])
        there = carried(
            self.points,
            self.company,
            asked,
            self.points[when[asked], label[asked]],
            when[asked],
            np.full(len(asked), frame),
            without=odd,
        )
        away = np.linalg.norm(self.points[frame, odd, None] - there, axis=-1)
        limit = self.reach.limit(asked, frame - when[asked])
        away = np.nan_to_num(away, nan=np.inf)
        goes = _goals(away, limit)
        for k, g in _goals(away, LOOSE * limit, LIKELY).items():
            self.suspects.add(_pair(int(odd[k]), int(now[asked[g]])))
        to = {int(odd[k]): int(asked[g]) for k, g in goes.items()}
        rings = self._rings(to, set(asked[len(own) :].tolist()))
        if not rings:
            return None
        moved = [int(k) for ring in rings for k in ring if int(k) in to]
        rows = [np.flatnonzero(odd == k)[0] for k in moved]
        trade = self._follow(frame, rings, (label, when))
        far = float(np.mean([away[k, k] for k in rows]))
        near = float(np.mean([away[k, goes[k]] for k in rows]))
        return Trade(frame, trade, tuple(k for r in rings for k in r), far, near)

    def _rings(self, to: dict[int, int], hidden: set[int]) -> list[list[int]]:
        """Return rings of labels, each going to the marker of the next.

        The last of a ring may be a label that is not seen in this frame.
        """
        now = np.argsort(self.marker)
        aimed_at = {int(now[goal]) for goal in to.values()}
        found: list[list[int]] = []
        for first in sorted(to, key=lambda k: k in aimed_at):
            ring, goal = [first], to[first]
            while goal not in hidden and (after := int(now[goal])) in to:
                if after in ring:
                    break
                ring.append(after)
                goal = to[after]
            if goal in hidden:
                ring.append(int(now[goal]))
            elif int(now[goal]) != first:
                continue
            if not any(set(ring) & set(other) for other in found):
                found.append(ring)
        return found

    def _follow(
        self, frame: int, rings: list[list[int]], last: tuple[Array, Array]
    ) -> Int[Array, " label"]:
        """Return which marker each label stands on from this frame on."""
        marker = self.marker.copy()
        for ring in rings:
            marker[ring] = self.marker[np.roll(ring, -1)]
            mine = self.marker[ring]
            self.given[mine] = frame
            self.old_label[mine], self.old_frame[mine] = last[0][mine], last[1][mine]
        self.marker = marker
        return marker


def _pair(a: int, b: int) -> tuple[int, int]:
    return min(a, b), max(a, b)


def _goals(
    away: Float[Array, "odd asked"],
    limit: Float[Array, " asked"],
    nearer: float = NEARER,
) -> dict[int, int]:
    """Return which of the markers asked about each odd label has gone to, if any.

    The first of the markers asked about are the labels' own. Of two labels that go to
    the same marker it is the nearer one.
    """
    count = len(away)
    own = np.diagonal(away)
    other = away.copy()
    np.fill_diagonal(other[:, :count], np.inf)
    # Of markers that no other label vouches for, only what lies within their reach.
    other[:, count:][away[:, count:] > limit[count:]] = np.inf
    best = other.argmin(axis=1)
    miss = other[np.arange(count), best]
    gone = (own > limit[:count]) & (nearer * miss < own) & np.isfinite(own)
    goes: dict[int, int] = {}
    for k in sorted(np.flatnonzero(gone).tolist(), key=lambda k: float(miss[k])):
        if best[k] not in goes.values():
            goes[k] = int(best[k])
    return goes
