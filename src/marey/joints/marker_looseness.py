"""Looseness of joints between bodies of markers, without the pose of the second body.

A joint shows in the axes of one body alone: some point there keeps its distance to
every marker of the other body. That needs the pose of one body only, so it also holds
for bodies of one or two markers, whose own pose is underdetermined.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.bodies import Bodies
from marey.numerics.procrustes import points_seen

Array = np.ndarray

MAX_FRAMES = 150
"""Frames of each take that are used, evenly spaced. Higher is slower and smoother.
Chosen by hand."""

MIN_FRAMES = 10
"""Frames that a marker and a body must share. Higher leaves more pairs without
looseness. Chosen by hand."""

SPACING_RANK = 4
"""Rank of the neighbour whose distance counts as the spacing of a marker: the fourth
nearest. Higher makes the usual spacing larger. Chosen by hand."""

MIN_RADIUS_SIGMAS = 5.0
"""Smallest distance of a marker from the joint that its weight is computed with, in
standard deviations of the noise. Higher gives near markers less weight. Chosen by
hand."""

MIN_NOISE_SPACINGS = 1e-3
"""Smallest noise of a marker, in usual spacings: exact data have none. Higher makes
exact data looser. Chosen by hand."""

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
    looseness = np.stack(
        [
            markers.looseness(_moments_in_body(takes, body), body)
            for body in range(len(takes[0].names))
        ]
    )
    a, b = pair.T
    spacing = np.array([markers.spacing(int(i), int(j)) for i, j in pair])
    return np.sqrt(looseness[a, b] * looseness[b, a]), spacing


@dataclass(frozen=True, slots=True, eq=False)
class _MarkerMoments:
    """Positions of all markers in the axes of one body, take by take, with moments."""

    count: Float[Array, "take marker"]
    mean: Float[Array, "take marker 3"]
    second: Float[Array, "take marker 3 3"]
    """Mean of y y^T, with y = x - mean."""

    third: Float[Array, "take marker 3"]
    """Mean of y |y|^2."""

    in_body: tuple[Float[Array, "_ marker 3"], ...]


class _MarkerStatistics:
    """Distances, usual spacing and noise of the markers of some takes."""

    def __init__(self, takes: Sequence[Bodies]) -> None:
        bodies = takes[0]
        self._members = bodies.shared.T
        self._distance = _mean_distances(takes)
        others = np.where(np.isfinite(self._distance), self._distance, np.inf)
        np.fill_diagonal(others, np.inf)
        rank = max(min(SPACING_RANK, len(others) - 1) - 1, 0)
        spacing = np.sort(others, axis=1)[:, rank]
        is_used = self._members.any(axis=0) & np.isfinite(spacing)
        usual = float(np.median(spacing[is_used])) if is_used.any() else 1.0
        self._usual_spacing = max(usual, np.finfo(float).tiny)
        self._variance = self._noise_variances(bodies)
        variance = float(np.median(self._variance[is_used])) if is_used.any() else 1.0
        self._noise = np.sqrt(variance)

    def _noise_variances(self, bodies: Bodies) -> Float[Array, " marker"]:
        """Return the noise variance of each marker, in square metres; above zero."""
        noise = bodies.marker_noise
        if len(noise) == 0:
            rms = bodies.rms[bodies.marker_body]
            noise = np.where(bodies.marker_body >= 0, rms, 0.0)
        smallest = MIN_NOISE_SPACINGS * self._usual_spacing
        return np.asarray(np.maximum(np.nan_to_num(noise), smallest) ** 2)

    def spacing(self, a: int, b: int) -> float:
        """Return the smallest distance between markers of two bodies, in spacings."""
        distance = self._distance[np.ix_(self._members[a], self._members[b])]
        distance = distance[np.isfinite(distance)]
        return float(distance.min()) / self._usual_spacing if len(distance) else np.nan

    def looseness(self, moments: _MarkerMoments, body: int) -> Float[Array, " body"]:
        """Return the looseness of every other body in the axes of one; NaN of itself.

        Markers that both bodies share are left out, unless the other has no more.
        """
        on_body = self._members[body]
        used = self._members & ~on_body
        used = np.where(used.any(axis=1, keepdims=True), used, self._members)
        used &= (moments.count >= MIN_FRAMES).any(axis=0)
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
        guess, is_known = _midpoints(
            moments.mean[:, own_marker], moments.mean[:, near_marker]
        )
        prior_sd = np.maximum(
            self._distance[own_marker, near_marker],
            MIN_PRIOR_SD_SPACINGS * self._usual_spacing,
        )
        center = self._centers(moments, used, guess, prior_sd)
        noise = used @ self._variance / used.sum(axis=1)
        noise = self._variance[on_body].mean() + noise
        ratio = np.sqrt(_radius_variances(moments, used, center) / noise)
        looseness[has_markers] = np.where(is_known, ratio, np.nan)
        return looseness

    def _centers(
        self,
        moments: _MarkerMoments,
        used: Bool[Array, "other marker"],
        guess: Float[Array, "other 3"],
        prior_sd: Float[Array, " other"],
    ) -> Float[Array, "other 3"]:
        r"""Return the points that keep the most constant distance to all markers.

        Algebraic sphere fit of Knight2007, Eqs. 1-6, over markers m and takes, with
        weights :math:`w_m` of one over the squared radius and a Gaussian prior:

        .. math:: \Big(\sum_m 4 w_m C_m + \frac{\sigma^2}{s^2} I\Big) c =
                  \sum_m w_m (2 S_m + 4 C_m \bar x_m) + \frac{\sigma^2}{s^2} c_0

        :math:`C` and :math:`S` are the second and third moments, :math:`c_0` is the
        guess, :math:`s` its standard deviation and :math:`\sigma` the marker noise.
        """
        known = moments.count >= MIN_FRAMES
        mean, C, S = moments.mean[known], moments.second[known], moments.third[known]
        squared_radius = np.trace(C, axis1=1, axis2=2) + np.sum(
            (mean - guess[:, None]) ** 2, axis=-1
        )
        smallest = (MIN_RADIUS_SIGMAS * self._noise) ** 2
        weight = 1.0 / np.maximum(squared_radius, smallest)
        weight = np.where(used[:, np.nonzero(known)[1]], weight, 0.0)
        right = 2.0 * S + 4.0 * np.einsum("mij,mj->mi", C, mean)
        prior = (self._noise / prior_sd[:, None]) ** 2
        A = 4.0 * (weight @ C.reshape(-1, 9)).reshape(-1, 3, 3)
        A += prior[..., None] * np.eye(3)
        return np.linalg.solve(A, (weight @ right + prior * guess)[..., None])[..., 0]


def _midpoints(
    a: Float[Array, "take other 3"], b: Float[Array, "take other 3"]
) -> tuple[Float[Array, "other 3"], Bool[Array, " other"]]:
    """Return the mean midpoints of two markers over all takes, and which are known."""
    middle = 0.5 * (a + b)
    is_known = points_seen(middle)
    count = is_known.sum(axis=0)
    total = np.where(is_known[..., None], middle, 0.0).sum(axis=0)
    return total / np.maximum(count, 1)[:, None], count > 0


def _radius_variances(
    moments: _MarkerMoments,
    used: Bool[Array, "other marker"],
    center: Float[Array, "other 3"],
) -> Float[Array, " other"]:
    """Return the mean variance of the markers' distances from each body's point."""
    total, count = np.zeros((2, len(used)))
    for in_body, has_frames in zip(
        moments.in_body, moments.count >= MIN_FRAMES, strict=True
    ):
        other, marker = np.nonzero(used & has_frames)
        radius = np.linalg.norm(in_body[:, marker] - center[other], axis=-1)
        is_known = np.isfinite(radius)
        n = is_known.sum(axis=0)
        radius = np.where(is_known, radius, 0.0)
        deviation = np.where(is_known, radius - radius.sum(axis=0) / n, 0.0)
        variance = np.sum(deviation**2, axis=0) / n
        total += np.bincount(other, variance, minlength=len(used))
        count += np.bincount(other, minlength=len(used))
    return np.asarray(total / count)


def _sample(bodies: Bodies) -> slice:
    """Return evenly spaced frames, at most `MAX_FRAMES`."""
    return slice(None, None, max(-(-len(bodies.T_world_body) // MAX_FRAMES), 1))


def _mean_distances(takes: Sequence[Bodies]) -> Float[Array, "marker marker"]:
    """Return the mean distance of every two markers over a sample of all takes."""
    n = takes[0].take.points.shape[1]
    total, count = np.zeros((n, n)), np.zeros((n, n))
    for bodies in takes:
        square = np.zeros((1, 1, 1))
        # One coordinate at a time needs a third of the memory.
        for x in np.moveaxis(bodies.take.points[_sample(bodies)], -1, 0):
            square = square + (x[:, :, None] - x[:, None]) ** 2
        distance = np.sqrt(square)
        is_known = np.isfinite(distance)
        total += np.where(is_known, distance, 0.0).sum(axis=0)
        count += is_known.sum(axis=0)
    mean = np.full((n, n), np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean


def _moments_in_body(takes: Sequence[Bodies], body: int) -> _MarkerMoments:
    """Return positions and moments of all markers in the axes of one body."""
    from marey.numerics.procrustes_kernel import to_body  # numba is slow to import

    parts = []
    for bodies in takes:
        frames = _sample(bodies)
        points = bodies.take.points[frames]
        in_body = np.empty(points.shape)
        to_body(bodies.T_world_body[frames, body], points, in_body)
        is_known = points_seen(in_body)[..., None]
        count = is_known.sum(axis=0)
        n = np.maximum(count, 1)
        mean = np.where(is_known, in_body, 0.0).sum(axis=0) / n
        y = np.where(is_known, in_body - mean, 0.0)
        second = np.einsum("fmi,fmj->mij", y, y) / n[..., None]
        third = np.einsum("fmi,fm->mi", y, np.sum(y**2, axis=-1)) / n
        mean = np.where(count > 0, mean, np.nan)
        parts.append((count[:, 0].astype(float), mean, second, third, in_body))
    *moments, positions = zip(*parts, strict=True)
    count, mean, second, third = (np.stack(values) for values in moments)
    return _MarkerMoments(count, mean, second, third, positions)
