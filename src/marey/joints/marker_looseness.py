"""How well bodies of markers hang together, whatever their poses are worth.

A joint shows in one body's frame alone: some point there keeps its distance to every
marker of the other body. That needs the pose of one body only, so it holds for bodies
of one or two markers as well, whose own pose is soft.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.bodies import Bodies
from marey.numerics.procrustes import points_seen

Array = np.ndarray

MOST_FRAMES = 150

FEWEST_FRAMES = 10
"""Frames in common below which a marker says nothing of a body."""

NEAREST = 4
"""How many of a marker's nearest its usual distance is taken from."""

SHORTEST = 5.0
"""Times the noise that a marker's distance from the joint counts at least."""

SMALLEST = 1e-3
"""Share of the usual distance that noise is never below."""

LOOSE = 0.3
"""Share of the usual distance that the joint may be off its first guess at least."""


def slack_of(
    takes: Sequence[Bodies], pair: Int[Array, "pair 2"]
) -> tuple[Float[Array, " pair"], Float[Array, " pair"]]:
    """Return slack and gap of each pair of bodies, both without unit.

    The slack is how far the markers of one body stray from a constant distance to the
    best point of the other, over their noise: the geometric mean of both ways. The
    point is found by Knight2007's algebraic sphere of all markers at once, held to a
    first guess, midway between the two nearest markers, as much as noise allows: a
    hinge or a single marker then has an answer too. The gap is the smallest distance
    between their markers, over the usual distance of neighbouring markers.
    """
    scene = _Scene(takes)
    bodies = range(len(takes[0].names))
    slack = np.stack([scene.slack(_moments(takes, body), body) for body in bodies])
    a, b = pair.T
    gap = np.array([scene.gap(int(i), int(j)) for i, j in pair])
    return np.sqrt(slack[a, b] * slack[b, a]), gap


@dataclass(frozen=True, slots=True, eq=False)
class _Moments:
    """All markers seen from one body, take by take."""

    count: Float[Array, "take marker"]
    mean: Float[Array, "take marker 3"]
    second: Float[Array, "take marker 3 3"]
    third: Float[Array, "take marker 3"]
    local: tuple[Float[Array, "_ marker 3"], ...]


class _Scene:
    """What is usual among the markers of some takes."""

    def __init__(self, takes: Sequence[Bodies]) -> None:
        bodies = takes[0]
        self._members = bodies.shared.T
        self._distance = _distances(takes)
        off = np.where(np.eye(len(self._distance), dtype=bool), np.inf, self._distance)
        off = np.where(np.isfinite(off), off, np.inf)
        rank = min(NEAREST, len(off) - 1) - 1
        density = np.sort(off, axis=1)[:, max(rank, 0)]
        worn = self._members.any(axis=0) & np.isfinite(density)
        usual = float(np.median(density[worn])) if worn.any() else 1.0
        self._usual = max(usual, np.finfo(float).tiny)
        self._variance = self._variances(bodies)
        self._noise = (
            float(np.sqrt(np.median(self._variance[worn]))) if worn.any() else 1.0
        )

    def _variances(self, bodies: Bodies) -> Float[Array, " marker"]:
        """Return each marker's noise, squared; never nothing, as exact data have."""
        noise = bodies.marker_noise
        if len(noise) == 0:
            noise = np.where(
                bodies.marker_body >= 0, bodies.rms[bodies.marker_body], 0.0
            )
        least = SMALLEST * self._usual
        return np.asarray(np.maximum(np.nan_to_num(noise), least) ** 2)

    def gap(self, a: int, b: int) -> float:
        near = self._between(self._members[a], self._members[b])
        known = near[np.isfinite(near)]
        return float(known.min()) / self._usual if len(known) else np.nan

    def _between(self, one: Array, two: Array) -> Array:
        return np.asarray(self._distance[np.ix_(one, two)])

    def slack(self, seen: _Moments, body: int) -> Float[Array, " body"]:
        """Return the slack of every other body, seen from one; NaN of itself."""
        own = self._members[body]
        apart = self._members & ~own
        apart = np.where(apart.any(axis=1, keepdims=True), apart, self._members)
        used = apart & (seen.count >= FEWEST_FRAMES).any(axis=0)
        away = np.where(np.isfinite(self._distance), self._distance, np.inf)[own]
        near = np.where(used, away.min(axis=0, initial=np.inf), np.inf)
        slack = np.full(len(used), np.nan)
        others = np.isfinite(near.min(axis=1, initial=np.inf))
        others[body] = False
        if not others.any():
            return slack
        used, last = used[others], near[others].argmin(axis=1)
        first = np.flatnonzero(own)[away[:, last].argmin(axis=0)]
        guess, known = _midway(seen.mean[:, first], seen.mean[:, last])
        reach = np.maximum(self._distance[first, last], LOOSE * self._usual)
        center = self._centers(seen, used, guess, reach)
        noise = used @ self._variance / used.sum(axis=1)
        scale = self._variance[own].mean() + noise
        found = np.sqrt(_strays(seen, used, center) / scale)
        slack[others] = np.where(known, found, np.nan)
        return slack

    def _centers(
        self,
        seen: _Moments,
        used: Bool[Array, "other marker"],
        guess: Float[Array, "other 3"],
        reach: Float[Array, " other"],
    ) -> Float[Array, "other 3"]:
        """Return the points that keep distances best (Knight2007, all markers)."""
        known = seen.count >= FEWEST_FRAMES
        mean, C, S = (values[known] for values in (seen.mean, seen.second, seen.third))
        square = np.sum((mean - guess[:, None]) ** 2, axis=-1)
        far = np.trace(C, axis1=1, axis2=2) + square
        weight = 1.0 / np.maximum(far, (SHORTEST * self._noise) ** 2)
        weight = np.where(used[:, np.nonzero(known)[1]], weight, 0.0)
        pull = 2.0 * S + 4.0 * np.einsum("mij,mj->mi", C, mean)
        A = 4.0 * (weight @ C.reshape(-1, 9)).reshape(-1, 3, 3)
        hold = (self._noise / reach[:, None]) ** 2
        A += hold[..., None] * np.eye(3)
        return np.linalg.solve(A, (weight @ pull + hold * guess)[..., None])[..., 0]


def _midway(
    one: Float[Array, "take other 3"], two: Float[Array, "take other 3"]
) -> tuple[Float[Array, "other 3"], Bool[Array, " other"]]:
    """Return the points midway between two over all takes, and which are known."""
    middle = 0.5 * (one + two)
    known = np.isfinite(middle).all(axis=-1)
    count = known.sum(axis=0)
    total = np.where(known[..., None], middle, 0.0).sum(axis=0)
    return total / np.maximum(count, 1)[:, None], count > 0


def _strays(
    seen: _Moments, used: Bool[Array, "other marker"], center: Float[Array, "other 3"]
) -> Float[Array, " other"]:
    """Return the mean variance of the markers' distances from each body's point."""
    total, count = np.zeros((2, len(used)))
    for local, enough in zip(seen.local, seen.count >= FEWEST_FRAMES, strict=True):
        other, marker = np.nonzero(used & enough)
        away = np.linalg.norm(local[:, marker] - center[other], axis=-1)
        known = np.isfinite(away)
        n = known.sum(axis=0)
        away = np.where(known, away, 0.0)
        off = np.where(known, away - away.sum(axis=0) / n, 0.0)
        variance = np.sum(off**2, axis=0) / n
        total += np.bincount(other, variance, minlength=len(used))
        count += np.bincount(other, minlength=len(used))
    return np.asarray(total / count)


def _sample(bodies: Bodies) -> slice:
    return slice(None, None, max(-(-len(bodies.T_world_body) // MOST_FRAMES), 1))


def _distances(takes: Sequence[Bodies]) -> Float[Array, "marker marker"]:
    """Return the mean distance of every two markers over a sample of all takes."""
    n = takes[0].take.points.shape[1]
    total, count = np.zeros((n, n)), np.zeros((n, n))
    for bodies in takes:
        square = np.zeros((1, 1, 1))
        for x in np.moveaxis(bodies.take.points[_sample(bodies)], -1, 0):
            square = square + (x[:, :, None] - x[:, None]) ** 2
        away = np.sqrt(square)
        known = np.isfinite(away)
        total += np.where(known, away, 0.0).sum(axis=0)
        count += known.sum(axis=0)
    mean = np.full((n, n), np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean


def _moments(takes: Sequence[Bodies], body: int) -> _Moments:
    from marey.numerics.procrustes_kernel import to_body  # numba is slow to import

    parts = []
    for bodies in takes:
        some = _sample(bodies)
        points = bodies.take.points[some]
        local = np.empty(points.shape)
        to_body(bodies.T_world_body[some, body], points, local)
        known = points_seen(local)
        count = known.sum(axis=0)
        n = np.maximum(count, 1)
        filled = np.where(known[..., None], local, 0.0)
        mean = filled.sum(axis=0) / n[:, None]
        off = np.where(known[..., None], local - mean, 0.0)
        second = np.einsum("fmi,fmj->mij", off, off) / n[:, None, None]
        third = np.einsum("fmi,fm->mi", off, np.sum(off**2, axis=-1)) / n[:, None]
        mean = np.where((count > 0)[:, None], mean, np.nan)
        parts.append((count.astype(float), mean, second, third, local))
    count, mean, second, third = (
        np.stack([part[k] for part in parts]) for k in range(4)
    )
    return _Moments(count, mean, second, third, tuple(part[4] for part in parts))
