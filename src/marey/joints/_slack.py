"""How well bodies of markers hang together, whatever their poses are worth.

A joint shows in one body's frame alone: some point there keeps its distance to every
marker of the other body. That needs the pose of one body only, so it holds for bodies
of one or two markers as well, whose own pose is soft.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from marey import geometry
from marey.bodies import Bodies

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
    members = takes[0].shared.T
    scene = _Scene(takes)
    n_bodies = len(members)
    slack = np.full((n_bodies, n_bodies), np.nan)
    for body in range(n_bodies):
        moments = _moments(takes, body)
        for other in range(n_bodies):
            if other != body:
                slack[body, other] = scene.slack(moments, body, other)
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

    def slack(self, seen: _Moments, body: int, other: int) -> float:
        own, theirs = self._members[body], self._members[other]
        theirs = theirs & ~own if (theirs & ~own).any() else theirs
        used = theirs & (seen.count >= FEWEST_FRAMES).any(axis=0)
        near = self._between(own, used)
        if not np.isfinite(near).any():
            return np.nan
        i, j = np.unravel_index(np.nanargmin(near), near.shape)
        nearest = (np.flatnonzero(own)[i], np.flatnonzero(used)[j])
        ends = np.stack([seen.mean[:, marker] for marker in nearest], axis=1)
        both = ends[np.isfinite(ends).all(axis=(1, 2))]
        if len(both) == 0:
            return np.nan
        guess = both.mean(axis=(0, 1))
        reach = max(float(near[i, j]), LOOSE * self._usual)
        center = self._center(seen, used, guess, reach)
        square = np.mean(self._strays(seen, used, center))
        scale = self._variance[own].mean() + self._variance[used].mean()
        return float(np.sqrt(square / scale))

    def _center(
        self, seen: _Moments, used: Bool[Array, " marker"], guess: Array, reach: float
    ) -> Float[Array, " 3"]:
        """Return the point that keeps its distances best (Knight2007, all markers)."""
        known = seen.count[:, used] >= FEWEST_FRAMES
        mean, C, S = (
            values[:, used][known] for values in (seen.mean, seen.second, seen.third)
        )
        far = np.trace(C, axis1=1, axis2=2) + np.sum((mean - guess) ** 2, axis=1)
        weight = 1.0 / np.maximum(far, (SHORTEST * self._noise) ** 2)
        A = np.einsum("m,mij->ij", 4.0 * weight, C)
        right = np.einsum(
            "m,mi->i", weight, 2.0 * S + 4.0 * np.einsum("mij,mj->mi", C, mean)
        )
        hold = (self._noise / reach) ** 2
        return np.linalg.solve(A + hold * np.eye(3), right + hold * guess)

    def _strays(
        self, seen: _Moments, used: Bool[Array, " marker"], center: Array
    ) -> list[float]:
        """Return the variance of each marker's distance from a point, take by take."""
        found = []
        for local, count in zip(seen.local, seen.count, strict=True):
            known = used & (count >= FEWEST_FRAMES)
            away = np.linalg.norm(local[:, known] - center, axis=-1)
            if known.any():
                found += np.nanvar(away, axis=0).tolist()
        return found


def _sample(bodies: Bodies) -> slice:
    return slice(None, None, max(-(-len(bodies.T_world_body) // MOST_FRAMES), 1))


def _distances(takes: Sequence[Bodies]) -> Float[Array, "marker marker"]:
    """Return the mean distance of every two markers over a sample of all takes."""
    n = takes[0].take.points.shape[1]
    total, count = np.zeros((n, n)), np.zeros((n, n))
    for bodies in takes:
        points = bodies.take.points[_sample(bodies)]
        for frame in points:
            away = np.linalg.norm(frame[:, None] - frame, axis=-1)
            known = np.isfinite(away)
            total += np.where(known, away, 0.0)
            count += known
    mean = np.full((n, n), np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean


def _moments(takes: Sequence[Bodies], body: int) -> _Moments:
    parts = []
    for bodies in takes:
        some = _sample(bodies)
        T_body_world = geometry.inverse(bodies.T_world_body[some, body])
        local = geometry.apply(T_body_world[:, None], bodies.take.points[some])
        known = np.isfinite(local).all(axis=-1)
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
