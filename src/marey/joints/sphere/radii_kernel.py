"""Sums over the radii of markers about a centre, and over residuals, compiled.

Points are (frame, marker, 3), NaN where unseen. Radii are measured in the directions of
a projection P: all three of a sphere, or the two across the axis of a circle.
"""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from marey.joints.sphere.symmetric_kernel import pseudo_inverse, smallest_ratio
from marey.numerics.arrays.new_kernel import empty, zeros
from marey.numerics.jit import inner, lean, njit
from marey.numerics.vector3_kernel import (
    cross,
    dot,
    largest_of,
    rotate,
    rotate_back,
    set_vector,
)


class RadiusSums(NamedTuple):
    """Sums over all frames, by marker; zero for a marker that was never seen."""

    count: np.ndarray  # (marker): positions seen
    radius: np.ndarray  # (marker): mean distance from the centre, in metres
    direction: np.ndarray  # (marker, 3): mean of the directions u from the centre
    square: np.ndarray  # (marker): sum of the squared errors e of the radii
    score: np.ndarray  # (marker, 3): sum of e j, with j the derivative of the radius
    gauss_newton: np.ndarray  # (marker, 3, 3): sum of j j^T
    curvature: np.ndarray  # (marker): sum of e / radius
    turning: np.ndarray  # (marker, 3, 3): sum of e / radius u u^T


@inner
def _no_sums(n_markers):
    """Return the sums over no frames."""
    return RadiusSums(
        zeros(n_markers),
        zeros(n_markers),
        zeros((n_markers, 3)),
        zeros(n_markers),
        zeros((n_markers, 3)),
        zeros((n_markers, 3, 3)),
        zeros(n_markers),
        zeros((n_markers, 3, 3)),
    )


@lean
def _arm(x, center, P):
    """Return the arm of a position across the axis, and its length; negative if NaN."""
    a, b, c = x[0] - center[0], x[1] - center[1], x[2] - center[2]
    a, b, c = rotate(P, (a, b, c))
    square = a * a + b * b + c * c
    return a, b, c, np.sqrt(square) if square >= 0.0 else -1.0


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


@lean
def _write_directions(points, m, center, P, out):
    """Write directions and radii of a marker's positions; return how many are seen.

    Those seen stand one after another, so that loops over them have no branches and
    are compiled to vector instructions.
    """
    n = 0
    for f in range(points.shape[0]):
        a, b, c, length = _arm(points[f, m], center, P)
        if length >= 0.0:
            out[0, n], out[1, n], out[2, n], out[3, n] = a, b, c, length
            n += 1
    for k in range(n):
        inverse = 1.0 / out[3, k] if out[3, k] > 0.0 else 0.0
        out[0, k] *= inverse
        out[1, k] *= inverse
        out[2, k] *= inverse
        out[4, k] = inverse
    return n


@lean
def _write_means(directions, n, m, sums):
    """Write number of positions, radius and mean direction of a marker."""
    radius, u, v, w = 0.0, 0.0, 0.0, 0.0
    for k in range(n):
        radius += directions[3, k]
        u += directions[0, k]
        v += directions[1, k]
        w += directions[2, k]
    share = 1.0 / max(n, 1)
    sums.count[m], sums.radius[m] = n, radius * share
    set_vector(sums.direction[m], (u * share, v * share, w * share))


@lean
def _write_sums(directions, n, m, sums):
    """Write the other sums of a marker."""
    radius, (u, v, w) = sums.radius[m], sums.direction[m]
    square, curvature, s0, s1, s2 = 0.0, 0.0, 0.0, 0.0, 0.0
    gauss_newton = turning = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for k in range(n):
        a, b, c = directions[0, k], directions[1, k], directions[2, k]
        error = directions[3, k] - radius
        ratio = error * directions[4, k]
        square += error * error
        curvature += ratio
        turning = _add_products(turning, ratio, a, b, c)
        a, b, c = a - u, b - v, c - w
        gauss_newton = _add_products(gauss_newton, 1.0, a, b, c)
        s0, s1, s2 = s0 + error * a, s1 + error * b, s2 + error * c
    sums.square[m], sums.curvature[m] = square, curvature
    set_vector(sums.score[m], (s0, s1, s2))
    _write_symmetric(gauss_newton, sums.gauss_newton[m])
    _write_symmetric(turning, sums.turning[m])


@njit(cache=True, error_model="numpy")
def sum_radii(points, center, P):
    """Return the `RadiusSums`.

    Args:
        points: The positions.
        center: The centre.
        P: Projection onto the directions in which radii are measured.
    """
    n_frames, n_markers = points.shape[:2]
    sums, directions = _no_sums(n_markers), empty((5, n_frames))
    for m in range(n_markers):
        n = _write_directions(points, m, center, P, directions)
        _write_means(directions, n, m, sums)
        _write_sums(directions, n, m, sums)
    return sums


@njit(cache=True, error_model="numpy")
def write_scores(points, center, P, sums, bias, out):
    """Write the score of every position without its expectation; 0 where unseen.

    Args:
        points: The positions.
        center: The centre.
        P: Projection onto the directions in which radii are measured.
        sums: The `RadiusSums` at the centre.
        bias: (marker, 3): expected score of a position.
        out: (frame, marker, 3).
    """
    for f in range(points.shape[0]):
        for m in range(points.shape[1]):
            a, b, c, length = _arm(points[f, m], center, P)
            if length < 0.0:
                set_vector(out[f, m], (0.0, 0.0, 0.0))
                continue
            error, inverse = (
                length - sums.radius[m],
                1.0 / length if length > 0 else 0.0,
            )
            u, v, w = sums.direction[m]
            out[f, m, 0] = error * (a * inverse - u) - bias[m, 0]
            out[f, m, 1] = error * (b * inverse - v) - bias[m, 1]
            out[f, m, 2] = error * (c * inverse - w) - bias[m, 2]


@inner
def _moments_in_basis(P, C):
    """Return M with y^T M y, the variance within P of the displacement at the arm y.

    The rows p of P are three vectors whose products sum to P, and M is the sum of
    [p]^T C [p].
    """
    M, unit = zeros((3, 3)), np.eye(3)
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
    sums = sum_radii(points, center, P)
    out, M = zeros((n_markers, 3)), _moments_in_basis(P, C)
    for m in range(n_markers):
        R, (u, v, w) = sums.radius[m], sums.direction[m]
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


@inner
def _add_markers(sums, score, gauss_newton):
    """Return the cost of all markers; write the sums of score and information."""
    cost, nothing = 0.0, (0.0, 0.0, 0.0)
    set_vector(score, nothing)
    for i in range(3):
        set_vector(gauss_newton[i], nothing)
    for m in range(len(sums.square)):
        cost += sums.square[m]
        for i in range(3):
            score[i] += sums.score[m, i]
            for j in range(3):
                gauss_newton[i, j] += sums.gauss_newton[m, i, j]
    return cost


@njit(cache=True, error_model="numpy")
def refine_center(points, center, P, rcond, tiny_step, max_iterations):
    """Return the nearby centre whose distances to each marker vary least.

    Gauss-Newton steps, which end when one does not reduce the cost.

    Args:
        points: The positions.
        center: The first centre.
        P: Projection onto the directions in which radii are measured.
        rcond: As in `pseudo_inverse`.
        tiny_step: Step over the largest radius that is the last one.
        max_iterations: Largest number of steps.
    """
    best, center = np.inf, center.copy()
    best_center, total, score = center.copy(), empty((3, 3)), empty(3)
    for _ in range(max_iterations):
        sums = sum_radii(points, center, P)
        cost = _add_markers(sums, score, total)
        if not cost < best:
            break
        best = cost
        set_vector(best_center, center)
        inverse, length = pseudo_inverse(total, rcond), 0.0
        for i in range(3):
            step = dot(inverse[i], score)
            center[i] += step
            length += step * step
        if length <= (tiny_step * largest_of(sums.radius)) ** 2:
            return center
    return best_center


@njit(cache=True, error_model="numpy")
def share_of_observed(hessian, observed, smallest_share, rounding):
    """Return how far Hessians have to be blended with the observed ones, 0 to 1.

    Their sum then keeps a minimal share of the observed information.

    Args:
        hessian: (part, n, n).
        observed: (part, n, n).
        smallest_share: Least information over the observed one in any direction.
        rounding: Share of the trace of a matrix that is rounding.
    """
    parts, n = observed.shape[:2]
    total, upper, trace = zeros((n, n)), zeros((n, n)), 0.0
    for part in range(parts):
        for i in range(n):
            trace += observed[part, i, i]
            for j in range(n):
                total[i, j] += hessian[part, i, j]
                upper[i, j] += observed[part, i, j]
    if not trace > 0.0:
        return 0.0
    for i in range(n):
        upper[i, i] += rounding * trace
    smallest = smallest_ratio(total, upper)
    blend = (smallest_share - smallest) / max(1.0 - smallest, rounding)
    return min(max(blend, 0.0), 1.0)


class ResidualSums(NamedTuple):
    """Means over all frames that show both bodies, with r = T_a_b c_b - c_a."""

    count: np.ndarray  # (1): frames
    residual: np.ndarray  # (3): mean of r
    in_b: np.ndarray  # (3): mean of R^T P r
    rotation: np.ndarray  # (3, 3): mean of R
    square_rotation: np.ndarray  # (3, 3): mean of R^T P R
    square: np.ndarray  # (1): mean of r^T P r


@lean
def _residual(T, center_a, center_b):
    """Return the displacement of the second centre from the first in the axes of a."""
    x, y, z = rotate(T, center_b)
    return (
        x + T[0, 3] - center_a[0],
        y + T[1, 3] - center_a[1],
        z + T[2, 3] - center_a[2],
    )


@njit(cache=True, error_model="numpy")
def sum_residuals(T, center_a, center_b, P):
    """Return the `ResidualSums` of a pair of bodies.

    Args:
        T: (frame, 4, 4), pose of b in a, NaN where one of them is occluded.
        center_a: The joint in the axes of a.
        center_b: The joint in the axes of b.
        P: Projection onto the directions in a in which the residual is measured.
    """
    count, square = 0.0, 0.0
    residual, in_b = zeros(3), zeros(3)
    rotation, square_rotation = zeros((3, 3)), zeros((3, 3))
    for f in range(len(T)):
        r = _residual(T[f], center_a, center_b)
        if not np.isfinite(r[0] + r[1] + r[2]):
            continue
        r_P = rotate(P, r)
        r_b = rotate_back(T[f], r_P)
        count, square = count + 1.0, square + dot(r, r_P)
        for i in range(3):
            residual[i] += r[i]
            in_b[i] += r_b[i]
            x = rotate(P, (T[f, 0, i], T[f, 1, i], T[f, 2, i]))
            for j in range(3):
                rotation[i, j] += T[f, i, j]
                square_rotation[i, j] += (
                    x[0] * T[f, 0, j] + x[1] * T[f, 1, j] + x[2] * T[f, 2, j]
                )
    share = 1.0 / max(count, 1.0)
    return ResidualSums(
        np.array([count]),
        residual * share,
        in_b * share,
        rotation * share,
        square_rotation * share,
        np.array([square * share]),
    )


@njit(cache=True, error_model="numpy")
def write_residual_scores(T, center_a, center_b, P, bias, out):
    """Write (r, -R^T P r) + bias of every frame that shows both bodies; others stay.

    Args:
        T: As in `sum_residuals`.
        center_a: As in `sum_residuals`.
        center_b: As in `sum_residuals`.
        P: As in `sum_residuals`.
        bias: (6), added to every frame.
        out: (frame, 6).
    """
    for f in range(len(T)):
        r = _residual(T[f], center_a, center_b)
        if np.isfinite(r[0] + r[1] + r[2]):
            in_b = rotate_back(T[f], rotate(P, r))
            for i in range(3):
                out[f, i], out[f, 3 + i] = r[i] + bias[i], bias[3 + i] - in_b[i]


@njit(cache=True, error_model="numpy")
def farthest_position(points, center):
    """Return the largest distance of a position from a centre."""
    largest = 0.0
    for f in range(points.shape[0]):
        for m in range(points.shape[1]):
            x = points[f, m]
            a, b, c = x[0] - center[0], x[1] - center[1], x[2] - center[2]
            square = a * a + b * b + c * c
            largest = square if square > largest else largest
    return np.sqrt(largest)
