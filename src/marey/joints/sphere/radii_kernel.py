"""Sums over the radii of markers about a centre, in one pass over memory, compiled.

Points are (frame, marker, 3), NaN where unseen. Radii are measured in the directions of
a projection P: all three of a sphere, or the two across the axis of a circle.
"""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np
from numba import njit

from marey.joints.sphere.symmetric_kernel import pseudo_inverse, smallest_ratio
from marey.numerics.jit import inner, lean
from marey.numerics.vector3_kernel import cross, dot, rotate


class RadiusSums(NamedTuple):
    """Sums over all frames, by marker; zero for a marker that was never seen."""

    count: np.ndarray  # (marker): positions seen
    radius: np.ndarray  # (marker): mean distance from the centre, in metres
    square: np.ndarray  # (marker): sum of the squared errors e of the radii
    score: np.ndarray  # (marker, 3): sum of e j, with j the derivative of the radius
    gauss_newton: np.ndarray  # (marker, 3, 3): sum of j j^T
    curvature: np.ndarray  # (marker): sum of e / radius
    turning: np.ndarray  # (marker, 3, 3): sum of e / radius u u^T, directions u


@inner
def _no_sums(n_markers):
    """Return the sums over no frames."""
    return RadiusSums(
        np.zeros(n_markers),
        np.zeros(n_markers),
        np.zeros(n_markers),
        np.zeros((n_markers, 3)),
        np.zeros((n_markers, 3, 3)),
        np.zeros(n_markers),
        np.zeros((n_markers, 3, 3)),
    )


@lean
def _arm(x, center, P):
    """Return the arm of a position across the axis, and its length; negative if NaN."""
    a, b, c = x[0] - center[0], x[1] - center[1], x[2] - center[2]
    a, b, c = rotate(P, (a, b, c))
    square = a * a + b * b + c * c
    return a, b, c, np.sqrt(square) if square >= 0.0 else -1.0


@lean
def _write_means(points, center, P, sums, mean):
    """Write number of positions, radius and mean direction of every marker."""
    for m in range(points.shape[1]):
        count, radius, u, v, w = 0.0, 0.0, 0.0, 0.0, 0.0
        for f in range(points.shape[0]):
            a, b, c, length = _arm(points[f, m], center, P)
            if length >= 0.0:
                inverse = 1.0 / length if length > 0.0 else 0.0
                count, radius = count + 1.0, radius + length
                u, v, w = u + a * inverse, v + b * inverse, w + c * inverse
        per_frame = 1.0 / max(count, 1.0)
        sums.count[m], sums.radius[m] = count, radius * per_frame
        mean[m, 0], mean[m, 1], mean[m, 2] = u * per_frame, v * per_frame, w * per_frame


@lean
def _write_symmetric(values, out):
    """Write xx, xy, xz, yy, yz and zz into a symmetric matrix."""
    out[0, 0], out[1, 1], out[2, 2] = values[0], values[3], values[5]
    out[0, 1] = out[1, 0] = values[1]
    out[0, 2] = out[2, 0] = values[2]
    out[1, 2] = out[2, 1] = values[4]


@lean
def _add_products(total, factor, a, b, c):
    """Return xx, xy, xz, yy, yz and zz with a multiple of those of a vector added."""
    x, y, z = factor * a, factor * b, factor * c
    return (
        total[0] + x * a,
        total[1] + x * b,
        total[2] + x * c,
        total[3] + y * b,
        total[4] + y * c,
        total[5] + z * c,
    )


@njit(cache=True, error_model="numpy")
def sum_radii(points, center, P, score):
    """Return the `RadiusSums`; write the score of each position, if there is room.

    Args:
        points: The positions.
        center: The centre.
        P: Projection onto the directions in which radii are measured.
        score: (frame, marker, 3), zero; or of no frames.
    """
    n_frames, n_markers = points.shape[:2]
    sums, mean = _no_sums(n_markers), np.zeros((n_markers, 3))
    _write_means(points, center, P, sums, mean)
    for m in range(n_markers):
        radius, u, v, w = sums.radius[m], mean[m, 0], mean[m, 1], mean[m, 2]
        square, curvature, s0, s1, s2 = 0.0, 0.0, 0.0, 0.0, 0.0
        gauss_newton = turning = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        for f in range(n_frames):
            a, b, c, length = _arm(points[f, m], center, P)
            if length < 0.0:
                continue
            error, inverse = length - radius, 1.0 / length if length > 0.0 else 0.0
            a, b, c = a * inverse, b * inverse, c * inverse
            square += error * error
            curvature += error * inverse
            turning = _add_products(turning, error * inverse, a, b, c)
            a, b, c = a - u, b - v, c - w
            gauss_newton = _add_products(gauss_newton, 1.0, a, b, c)
            s0, s1, s2 = s0 + error * a, s1 + error * b, s2 + error * c
            if f < len(score):
                score[f, m, 0] = error * a
                score[f, m, 1] = error * b
                score[f, m, 2] = error * c
        sums.square[m], sums.curvature[m] = square, curvature
        sums.score[m, 0], sums.score[m, 1], sums.score[m, 2] = s0, s1, s2
        _write_symmetric(gauss_newton, sums.gauss_newton[m])
        _write_symmetric(turning, sums.turning[m])
    return sums


@inner
def _moments_in_basis(P, C):
    """Return M with y^T M y, the variance within P of the displacement at the arm y.

    The rows p of P are three vectors whose products sum to P, and M is the sum of
    [p]^T C [p].
    """
    M, unit = np.zeros((3, 3)), np.eye(3)
    for k in range(3):
        for i in range(3):
            C_moment = rotate(C, cross(P[k], unit[i]))
            for j in range(3):
                M[i, j] += dot(cross(P[k], unit[j]), C_moment)
    return M


@njit(cache=True, error_model="numpy")
def expected_score(points, center, P, C, anchor):
    """Return the expected score of a position of each marker from noise of the axes.

    To second order in the noise.

    Args:
        points: The positions.
        center: The centre.
        P: Projection onto the directions in which radii are measured.
        C: Covariance of the rotation of the axes, in square radians.
        anchor: Point about which they rotate.
    """
    n_frames, n_markers = points.shape[:2]
    sums, mean = _no_sums(n_markers), np.zeros((n_markers, 3))
    out, M = np.zeros((n_markers, 3)), _moments_in_basis(P, C)
    _write_means(points, center, P, sums, mean)
    for m in range(n_markers):
        R, u, v, w = sums.radius[m], mean[m, 0], mean[m, 1], mean[m, 2]
        s0, s1, s2 = 0.0, 0.0, 0.0
        for f in range(n_frames if R > 0.0 else 0):
            a, b, c, length = _arm(points[f, m], center, P)
            if length < 0.0:
                continue
            x, inverse = points[f, m], 1.0 / length if length > 0.0 else 0.0
            y = x[0] - anchor[0], x[1] - anchor[1], x[2] - anchor[2]
            d = a * inverse, b * inverse, c * inverse
            # Covariance of the displacement with its component along the radius.
            covariance = cross(y, rotate(C, cross(d, y)))
            along = dot(d, covariance)
            lengthening = 0.5 * (dot(y, rotate(M, y)) - along) / R
            across = rotate(P, covariance)
            s0 += lengthening * (d[0] - u) + (across[0] - along * d[0]) / R
            s1 += lengthening * (d[1] - v) + (across[1] - along * d[1]) / R
            s2 += lengthening * (d[2] - w) + (across[2] - along * d[2]) / R
        count = max(sums.count[m], 1.0)
        out[m, 0], out[m, 1], out[m, 2] = s0 / count, s1 / count, s2 / count
    return out


@njit(cache=True, error_model="numpy")
def refine_center(points, center, P, rcond, max_iterations):
    """Return the nearby centre whose distances to each marker vary least.

    Gauss-Newton steps, which end when one does not reduce the cost.

    Args:
        points: The positions.
        center: The first centre.
        P: Projection onto the directions in which radii are measured.
        rcond: As in `pseudo_inverse`.
        max_iterations: Largest number of steps.
    """
    best, center, no_scores = np.inf, center.copy(), np.zeros((0, 0, 3))
    best_center, total, score = center.copy(), np.empty((3, 3)), np.empty(3)
    for _ in range(max_iterations):
        sums = sum_radii(points, center, P, no_scores)
        cost = sums.square.sum()
        if not cost < best:
            break
        best = cost
        best_center[:] = center
        for i in range(3):
            score[i] = sums.score[:, i].sum()
            for j in range(3):
                total[i, j] = sums.gauss_newton[:, i, j].sum()
        inverse, length = pseudo_inverse(total, rcond), 0.0
        for i in range(3):
            step = dot(inverse[i], score)
            center[i] += step
            length += step * step
        if length <= 1e-22 * sums.radius.max() ** 2:
            break
    return best_center


@njit(cache=True, error_model="numpy")
def limit_noise_share(hessian, observed, smallest_share, rounding):
    """Return Hessians whose sum keeps a minimal share of the observed information.

    They are blended with the observed ones as far as needed.

    Args:
        hessian: (part, n, n).
        observed: (part, n, n).
        smallest_share: Least information over the observed one in any direction.
        rounding: Share of the trace of a matrix that is rounding.
    """
    parts, n = observed.shape[:2]
    total, upper, trace = np.zeros((n, n)), np.zeros((n, n)), 0.0
    for part in range(parts):
        for i in range(n):
            trace += observed[part, i, i]
            for j in range(n):
                total[i, j] += hessian[part, i, j]
                upper[i, j] += observed[part, i, j]
    if not trace > 0.0:
        return hessian
    for i in range(n):
        upper[i, i] += rounding * trace
    smallest = smallest_ratio(total, upper)
    blend = (smallest_share - smallest) / max(1.0 - smallest, rounding)
    blend = min(max(blend, 0.0), 1.0)
    return hessian + blend * (observed - hessian)
