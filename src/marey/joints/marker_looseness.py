"""Looseness of joints between bodies of markers, without the pose of the second body.

A joint shows in the axes of one body alone: some point there keeps its distance to
every marker of the other body. That needs the pose of one body only, so it also holds
for bodies of one or two markers, whose own pose is underdetermined.
"""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from marey.bodies import Bodies
from marey.joints.sphere.moments import SphereMoments, compute_moments
from marey.numerics import Array, Bool, Float, Int, geometry
from marey.numerics.procrustes import points_in_body
from marey.numerics.resampling import evenly_spaced
from marey.numerics.thresholds import (
    CERTAIN_SD,
    MIN_NOISE_SPACINGS,
    MIN_SAMPLES,
    SPACING_RANK,
)

MIN_PRIOR_SD_SPACINGS = 0.3
"""Smallest standard deviation of the prior of the joint centre, in usual spacings.
Higher ties the centre less to the first guess. Chosen by hand."""


def measure_looseness(
    takes: Sequence[Bodies], pair: Int[Array, "pair 2"]
) -> tuple[Float[Array, " pair"], Float[Array, " pair"]]:
    r"""Return looseness and marker spacing of each pair of bodies, both without unit.

    The looseness compares how much the distances of one body's markers :math:`x` from
    the best point :math:`c` of the other body vary with their noise. It is the
    geometric mean over both directions:

    .. math:: \ell_{ab} = \sqrt{\ell_{a \to b}\, \ell_{b \to a}}, \qquad
              \ell_{a \to b}^2 = \frac{\operatorname{mean}_{x \in b}
              \operatorname{var}_t |x - c|}{\sigma_a^2 + \sigma_b^2}

    The point :math:`c` is the algebraic (Kåsa) sphere fit of Knight2007 to all markers
    at once, with a Gaussian prior midway between the two nearest markers, so that a
    hinge or a single marker has an answer, too. The marker spacing is the smallest
    distance between markers of the two bodies, over the usual distance of neighbouring
    markers.
    """
    markers = _MarkerStatistics(takes)
    n_bodies = len(takes[0].names)
    looseness = np.stack([markers.looseness(body) for body in range(n_bodies)])
    a, b = pair.T
    spacing = np.array([markers.spacing(int(i), int(j)) for i, j in pair])
    return np.sqrt(looseness[a, b] * looseness[b, a]), spacing


class _MarkerStatistics:
    """Distances, usual spacing and noise of the markers of some takes."""

    def __init__(self, takes: Sequence[Bodies]) -> None:
        self._takes, bodies = takes, takes[0]
        self._members = bodies.shared.T
        self._distance = _mean_distances(takes)
        on_body = self._members.any(axis=0)
        known = np.isfinite(self._distance) & on_body
        others = np.where(known, self._distance, np.inf)
        np.fill_diagonal(others, np.inf)
        rank = max(min(SPACING_RANK, int(on_body.sum()) - 1) - 1, 0)
        spacing = np.sort(others, axis=1)[:, rank]
        is_used = on_body & np.isfinite(spacing)
        usual = float(np.median(spacing[is_used])) if is_used.any() else 1.0
        self._usual_spacing = max(usual, float(np.finfo(float).eps))
        noise = bodies.marker_noise
        if len(noise) == 0:
            rms = bodies.rms[bodies.marker_body]
            noise = np.where(bodies.marker_body >= 0, rms, 0.0)
        smallest = MIN_NOISE_SPACINGS * self._usual_spacing
        self._variance = np.maximum(np.nan_to_num(noise), smallest) ** 2
        variance = float(np.median(self._variance[is_used])) if is_used.any() else 1.0
        self._noise = np.sqrt(variance)

    def spacing(self, a: int, b: int) -> float:
        """Return the smallest distance between markers of two bodies, in spacings."""
        distance = self._distance[np.ix_(self._members[a], self._members[b])]
        distance = distance[np.isfinite(distance)]
        return float(distance.min()) / self._usual_spacing if len(distance) else np.nan

    def looseness(self, body: int) -> Float[Array, " body"]:
        """Return the looseness of every other body in the axes of one; NaN of itself.

        Markers that both bodies share are left out, unless the other has no more.
        """
        positions, moments = _markers_in_body(self._takes, body)
        count = moments.count.reshape(len(positions), -1)
        on_body = self._members[body]
        used = self._members & ~on_body
        used = np.where(used.any(axis=1, keepdims=True), used, self._members)
        used &= (count >= MIN_SAMPLES).any(axis=0)
        distance = np.where(np.isfinite(self._distance), self._distance, np.inf)[
            on_body
        ]
        nearest = np.where(used, distance.min(axis=0, initial=np.inf), np.inf)
        has_markers = np.isfinite(nearest.min(axis=1, initial=np.inf))
        has_markers[body] = False
        looseness = np.full(len(used), np.nan)
        if not has_markers.any():
            return looseness
        used = used[has_markers]
        near_marker = nearest[has_markers].argmin(axis=1)
        own_marker = np.flatnonzero(on_body)[distance[:, near_marker].argmin(axis=0)]
        # The mean over the takes that show both markers.
        mean = moments.mean.reshape(*count.shape, 3)
        both = (count[:, own_marker] > 0) & (count[:, near_marker] > 0)
        middle = 0.5 * (mean[:, own_marker] + mean[:, near_marker])
        total = np.sum(middle * both[..., None], axis=0)
        guess = total / np.maximum(both.sum(axis=0), 1)[:, None]
        prior_sd = np.maximum(
            self._distance[own_marker, near_marker],
            MIN_PRIOR_SD_SPACINGS * self._usual_spacing,
        )
        center = self._centers(moments, used, guess, prior_sd)
        noise = used @ self._variance / used.sum(axis=1)
        noise = self._variance[on_body].mean() + noise
        ratio = np.sqrt(_radius_variances(positions, count, used, center) / noise)
        looseness[has_markers] = np.where(both.any(axis=0), ratio, np.nan)
        return looseness

    def _centers(
        self,
        moments: SphereMoments,
        used: Bool[Array, "other marker"],
        guess: Float[Array, "other 3"],
        prior_sd: Float[Array, " other"],
    ) -> Float[Array, "other 3"]:
        r"""Return the points that keep the most constant distance to all markers.

        Algebraic sphere fit of Knight2007, Eqs. 1-6, over markers m and takes, with
        weights :math:`w_m` of one over the squared radius and a Gaussian prior:

        .. math:: \Big(\sum_m w_m C_m + \frac{\sigma^2}{4 s^2} I\Big) c = \sum_m w_m
                  (\tfrac{1}{2} S_m + C_m \bar x_m) + \frac{\sigma^2}{4 s^2} c_0

        :math:`C` and :math:`S` are the second and third moments, :math:`c_0` is the
        guess, :math:`s` its standard deviation and :math:`\sigma` the marker noise.
        """
        known = moments.count >= MIN_SAMPLES
        mean, C, S = moments.mean[known], moments.second[known], moments.third[known]
        squared_radius = np.trace(C, axis1=1, axis2=2) + np.sum(
            (mean - guess[:, None]) ** 2, axis=-1
        )
        smallest = (CERTAIN_SD * self._noise) ** 2
        weight = 1.0 / np.maximum(squared_radius, smallest)
        weight *= np.tile(used, len(known) // used.shape[1])[:, known]
        right = 0.5 * S + np.einsum("mij,mj->mi", C, mean)
        prior = (0.5 * self._noise / prior_sd[:, None]) ** 2
        A = (weight @ C.reshape(-1, 9)).reshape(-1, 3, 3)
        A += prior[..., None] * np.eye(3)
        return np.linalg.solve(A, (weight @ right + prior * guess)[..., None])[..., 0]


def _radius_variances(
    positions: Sequence[Float[Array, "_ marker 3"]],
    counts: Float[Array, "take marker"],
    used: Bool[Array, "other marker"],
    center: Float[Array, "other 3"],
) -> Float[Array, " other"]:
    """Return the mean variance of the markers' distances from each body's point."""
    total, count = np.zeros((2, len(used)))
    for in_body, n_frames in zip(positions, counts, strict=True):
        other, marker = np.nonzero(used & (n_frames >= MIN_SAMPLES))
        radius = geometry.lengths(in_body[:, marker] - center[other])
        variance = np.nanvar(radius, axis=0)
        total += np.bincount(other, variance, minlength=len(used))
        count += np.bincount(other, minlength=len(used))
    return np.asarray(total / count)


def _mean_distances(takes: Sequence[Bodies]) -> Float[Array, "marker marker"]:
    """Return the mean distance (m) of every two markers in a sample of all takes."""
    n = takes[0].take.points.shape[1]
    total, count = np.zeros((n, n)), np.zeros((n, n))
    for bodies in takes:
        points = bodies.take.points[evenly_spaced(len(bodies.T_world_body))]
        x = np.moveaxis(points, -1, 0).copy()
        for i in range(n):  # all pairs at once would not fit into the cache
            square = np.sum((x[..., i:] - x[..., i, None]) ** 2, axis=0)
            is_known = np.isfinite(square)
            total[i, i:] += np.sqrt(np.where(is_known, square, 0.0)).sum(axis=0)
            count[i, i:] += is_known.sum(axis=0)
    mean = np.full((n, n), np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return np.where(np.tri(n, k=-1, dtype=bool), mean.T, mean)


def _markers_in_body(
    takes: Sequence[Bodies], body: int
) -> tuple[list[Float[Array, "_ marker 3"]], SphereMoments]:
    """Return the positions of all markers in the axes of one body, take by take.

    Their moments have one row for every marker of every take.
    """
    positions, parts = [], []
    for bodies in takes:
        frames = evenly_spaced(len(bodies.T_world_body))
        T_world_body = bodies.T_world_body[frames, body]
        in_body = points_in_body(T_world_body, bodies.take.points[frames])
        positions.append(in_body)
        parts.append(compute_moments(in_body))
    names = (field.name for field in fields(SphereMoments))
    columns = ([getattr(part, name) for part in parts] for name in names)
    return positions, SphereMoments(*(np.concatenate(column) for column in columns))
