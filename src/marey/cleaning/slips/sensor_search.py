"""The search for slips: the likeliest, then the next with that one taken back."""

from collections.abc import Sequence
from dataclasses import replace
from math import lgamma, log

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.bodies import Bodies
from marey.cleaning.slips.sensor_likelihood import (
    Side,
    correlation_of,
    evidence,
    freedoms_of,
    sides_of,
)
from marey.cleaning.slips.slip import Slip
from marey.numerics import geometry

Array = np.ndarray

SMALLEST = 1e-3
"""Metres that a joint must shift for a slip: less, however certain, is no slip but the
arithmetic of the instrument."""

# Frames at either end, and share of all, in which no slip is looked for.
FEWEST, MARGIN = 20, 0.02

# Frames looked at in the first round; the best is then sought frame by frame.
MOST_TIMES = 600

# Slips per sensor after which the sensor is loose rather than slipped.
MOST_PER_SENSOR = 3

# Times the usual gap, and metres, that a joint may gape when all slips are taken back.
MENDED, HARMLESS = 3.0, 0.01

# R^T R farther from the identity than this is no rotation: scaled or sheared.
RIGID = 1e-3

# How often slips are found again with the others taken back, to tell them apart.
PASSES = 3

# How little it takes to keep a sensor from a turn of which its joints tell nothing.
LITTLE = 1e-10

# Share of the whole statistic that a joint must have to be named.
SHOWS = 0.1


class Search:
    """The poses as repaired so far, and what the joints say of them."""

    def __init__(
        self, takes: tuple[Bodies, ...], pair: Int[Array, "edge 2"], level: float
    ) -> None:
        self.names, self.level = takes[0].names, level
        self.T = np.concatenate([take.T_world_body for take in takes])
        self.starts = np.cumsum([0] + [len(take.T_world_body) for take in takes[:-1]])
        self.near: dict[int, list[int]] = {b: [] for b in range(len(self.names))}
        straight = [_is_rotation(self.T[:, body]) for body in self.near]
        for a, b in pair.tolist():
            if not (straight[a] and straight[b]):
                continue
            self.near[a].append(b)
            self.near[b].append(a)
        self.sides: dict[tuple[int, int], Side] = {}
        self.done: list[tuple[int, int, Array]] = []

    def sides_of(self, body: int) -> dict[int, Side]:
        """Return the joints of a body as it sees them, by the other body."""
        for other in self.near[body]:
            if (body, other) not in self.sides:
                both = sides_of(self.T[:, body], self.T[:, other])
                if both is not None:
                    self.sides[body, other], self.sides[other, body] = both
        known = [other for other in self.near[body] if (body, other) in self.sides]
        return {other: self.sides[body, other] for other in known}

    def all(self) -> list[Slip]:
        """Return all slips, taken back one after the other."""
        found: list[Slip] = []
        while (slip := self.likeliest()) is not None:
            if sum(s.sensor == slip.sensor for s in found) == MOST_PER_SENSOR:
                break
            found.append(slip)
            self.take_back(slip)
        for _ in range(PASSES if len(found) > 1 else 0):
            found = self.again(found)
        return found

    def loose(self, links: Int[Array, "link 2"]) -> Bool[Array, " link"]:
        """Return which joints still gape far more than others: they are none.

        A slip may have led to a wrong tree, and gaps of bodies that are not joined look
        like slips without end.
        """
        sides = [self.sides_of(int(a)).get(int(b)) for a, b in links]
        square = [np.mean(s.gap**2) if s is not None else np.nan for s in sides]
        gap = np.sqrt(3.0 * np.array(square))
        usual = np.nanmedian(gap) if np.isfinite(gap).any() else 0.0
        return np.asarray(gap > max(MENDED * usual, HARMLESS))

    def likeliest(self) -> Slip | None:
        """Return the clearest slip, if any is clear enough."""
        tried = [self._best_of(body) for body in range(len(self.names))]
        found = [t for t in tried if t is not None]
        if not found:
            return None
        _, log_p, body, frame = min(found)
        return self._slip(body, frame, log_p) if log_p < log(self.level) else None

    def _best_of(self, body: int) -> tuple[float, float, int, int] | None:
        """Return a body's likeliest slip: log probabilities, body and frame.

        The first probability compares bodies; the second, for all bodies together, says
        whether there is a slip at all.
        """
        sides = list(self.sides_of(body).values())
        times = _times(sides)
        if not len(times):
            return None
        together = correlation_of(sides)
        best = int(times[evidence(sides, together, times)[0].argmax()])
        step = int(np.diff(times).max(initial=1))
        fine = np.arange(max(best - step, times[0]), min(best + step, times[-1]) + 1)
        plain, ratio = evidence(sides, together, fine)
        top = int(plain.argmax())
        at = fine[[top]]
        if max(np.linalg.norm(side.at(at)[0]) for side in sides) < SMALLEST:
            return None
        share = (times[0] / len(self.T), 1.0 - times[-1] / len(self.T))
        rank, log_p = (
            log_exceedance(float(x[top]), freedoms_of(sides), share)
            for x in (plain, ratio)
        )
        return rank, min(log_p + log(len(self.names)), 0.0), body, int(fine[top])

    def _slip(self, body: int, frame: int, log_p: float) -> Slip:
        sides = self.sides_of(body)
        at = np.array([frame])
        statistic = {other: float(s.statistic(at)[0]) for other, s in sides.items()}
        clear = sorted(statistic, key=lambda other: -statistic[other])
        total = sum(statistic.values())
        take = int(np.searchsorted(self.starts, frame, side="right")) - 1
        return Slip(
            sensor=self.names[body],
            frame=frame - int(self.starts[take]),
            T_before_after=_change(list(sides.values()), frame),
            p_value=float(np.exp(log_p)),
            joints=tuple(self.names[o] for o in clear if statistic[o] >= SHOWS * total),
            turn_known=len(sides) >= 3,
            take=take,
        )

    def take_back(self, slip: Slip, *, undo: bool = False) -> None:
        """Bring the frames after a slip into the axes before it, or back."""
        body, frame = self.names.index(slip.sensor), self._frame(slip)
        change = slip.T_before_after
        change = change if undo else geometry.inverse(change)
        self.T[frame:, body] = self.T[frame:, body] @ change
        self.done.append((body, frame, change))
        for other in self.near[body]:
            self.sides.pop((body, other), None)
            self.sides.pop((other, body), None)

    def _frame(self, slip: Slip) -> int:
        """Return the frame of a slip among those of all takes."""
        return int(self.starts[slip.take]) + slip.frame

    def again(self, found: list[Slip]) -> list[Slip]:
        """Return the slips, each found once more with all others taken back.

        Slips of one sensor within a moment are one, found in two steps.
        """
        better = []
        left = list(found)
        while left:
            same = [s for s in left if self._is_near(s, left[0])]
            left = [s for s in left if s not in same]
            for old in reversed(same):
                self.take_back(old, undo=True)
            best = self._best_of(self.names.index(same[0].sensor))
            if best is not None and best[1] < log(self.level):
                better.append(self._slip(best[2], best[3], best[1]))
                self.take_back(better[-1])
        return better

    def _is_near(self, slip: Slip, other: Slip) -> bool:
        apart = abs(self._frame(slip) - self._frame(other))
        return slip.sensor == other.sensor and apart < FEWEST

    def in_order(self, found: list[Slip]) -> tuple[Slip, ...]:
        """Return the slips by time, each against the place that its sensor had then.

        Those of one sensor may have been found in another order.
        """
        ordered = []
        last: dict[str, Array] = {}
        for slip in sorted(found, key=self._frame):
            body, now = self.names.index(slip.sensor), np.eye(4)
            for other, first, change in self.done:
                if other == body and first <= self._frame(slip):
                    now = now @ change
            now = geometry.inverse(now)
            before = last.get(slip.sensor, np.eye(4))
            change = geometry.inverse(before) @ now
            ordered.append(replace(slip, T_before_after=change))
            last[slip.sensor] = now
        return tuple(ordered)


def _is_rotation(T: Float[Array, "frame 4 4"]) -> bool:
    """Return whether orientations neither scale nor shear: gaps say little if so."""
    R = T[np.isfinite(T).all(axis=(1, 2)), :3, :3]
    return bool(np.abs(R.swapaxes(1, 2) @ R - np.eye(3)).max(initial=0.0) < RIGID)


def _times(sides: Sequence[Side]) -> Int[Array, " time"]:
    """Return the frames at which a slip of a sensor is looked for."""
    fewest = [max(FEWEST, int(MARGIN * len(side.rows))) for side in sides]
    if not sides or any(
        len(s.rows) <= 2 * k for s, k in zip(sides, fewest, strict=True)
    ):
        return np.zeros(0, dtype=np.int64)
    first = max(int(s.rows[k]) for s, k in zip(sides, fewest, strict=True))
    last = min(int(s.rows[-k]) for s, k in zip(sides, fewest, strict=True))
    return np.arange(first, last, max((last - first) // MOST_TIMES, 1))


def log_exceedance(
    statistic: float, freedoms: int, share: tuple[float, float]
) -> float:
    """Return the log probability that a likelihood ratio exceeds this anywhere.

    The tail of the largest of a squared Bessel process (Csörgő and Horváth 1997,
    Eq. 1.3.26), here for all frames but a share at either end.

    Args:
        statistic: Twice the log likelihood ratio.
        freedoms: How many numbers change at once.
        share: The shares of the frames left out at the beginning and at the end.
    """
    if statistic <= freedoms:
        return 0.0
    early, late = (max(s, 1e-6) for s in share)
    span = log((1.0 - early) * (1.0 - late) / (early * late))
    inner = span * (1.0 - freedoms / statistic) + 4.0 / statistic
    half = 0.5 * freedoms
    tail = half * log(0.5 * statistic) - 0.5 * statistic - lgamma(half)
    return min(tail + log(inner), 0.0)


def _change(sides: Sequence[Side], frame: int) -> Float[Array, "4 4"]:
    """Return the change of a sensor's pose that its joints before and after imply.

    With one joint it is a shift; with several the sensor may have turned too, by as
    little as they need.
    """
    before, after, weights = [], [], []
    for side in sides:
        old, new = side.ends(frame)
        before.append(old)
        after.append(new)
        weights.append(side.at(np.array([frame]))[1][0] / side.variance)
    x, y, W = np.array(before), np.array(after), np.array(weights)
    R, t = np.eye(3), (x - y).mean(axis=0)
    for _ in range(10):
        turned = y @ R.T
        J = np.concatenate(
            [-geometry.hat(turned), np.tile(np.eye(3), (len(y), 1, 1))], 2
        )
        off = x - turned - t
        A = np.einsum("jki,jkl,jlm->im", J, W, J)
        firm = LITTLE * np.trace(A[:3, :3])
        A[:3, :3] += firm * np.eye(3)
        g = np.einsum("jki,jkl,jl->i", J, W, off)
        g[:3] -= firm * geometry.rotation_log(R)
        step = np.linalg.solve(A, g)
        R, t = geometry.rotation_exp(step[:3]) @ R, t + step[3:]
    return geometry.transform(R, t)
