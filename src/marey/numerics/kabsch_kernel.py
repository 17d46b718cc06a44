"""The compiled kernel of `geometry.kabsch`, one pose at a time."""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np
from numba import float64, types, void

from marey.numerics.arrays.new_kernel import empty
from marey.numerics.jit import NO_WRAPPERS, lean, njit
from marey.numerics.lanes_kernel import (
    LANES,
    any_positive,
    as_lanes,
    select_positive,
    spread,
)
from marey.numerics.vector3_kernel import cross, dot, scale_vector, set_diagonal

# The rotation is undetermined if the two largest eigenvalues of Horn's matrix differ by
# less than this share: the points of either set are on a line (no wider than about 2e-6
# of their length), or a mirror image fits equally well in two orientations.
MAX_TIE = 1e-11

# Jacobi's method ends when the squared sum off the diagonal is below this share of that
# of the matrix, or after the maximum number of sweeps; four or five are usual.
ROUNDING = 1e-32
MAX_ITERATIONS_JACOBI = 12

# Newton's method finds the largest eigenvalue if it is well separated: the product of
# its distances to the others, over its cube, is above ROUNDING_SEPARATION. It affects
# speed and rounding only: Jacobi's method takes over below.
ROUNDING_SEPARATION = 1e-4
MAX_ITERATIONS_NEWTON = 30
NEWTON_TOLERANCE = 1e-9

# What `lanes_room` has of each point, and of the upper rows of the pose behind them.
WEIGHT, X_B, Y_B, Z_B, X_A, Y_A, Z_A = range(7)
N_NUMBERS = Z_A + 1
SEPARATION = Z_A

# One signature for every memory layout, so that one compilation serves all callers.
SETS = types.Array(float64, 3, "A", readonly=True)
WEIGHTS = types.Array(float64, 2, "A", readonly=True)


class Scratch(NamedTuple):
    """Room for one pose."""

    H: np.ndarray
    N: np.ndarray
    V: np.ndarray
    q: np.ndarray
    mean: np.ndarray


@njit(cache=True)
def scratch():
    """Return room for `fit_pose`."""
    return Scratch(
        empty((3, 3)),
        empty((4, 4)),
        empty((4, 4)),
        empty(4),
        empty((2, 3)),
    )


@lean
def _known(point_b, point_a, weight):
    total = point_b[0] + point_b[1] + point_b[2] + point_a[0] + point_a[1] + point_a[2]
    return weight > 0.0 and np.isfinite(total)


@lean
def _means(points_b, points_a, weights, mean):
    """Fill the weighted means of both sets; return how many points are known."""
    known = 0
    total = 0.0
    for k in range(3):
        mean[0, k] = mean[1, k] = 0.0
    for i in range(points_b.shape[0]):
        if _known(points_b[i], points_a[i], weights[i]):
            known += 1
            total += weights[i]
            for k in range(3):
                mean[0, k] += weights[i] * points_b[i, k]
                mean[1, k] += weights[i] * points_a[i, k]
    if known > 0:
        for k in range(3):
            mean[0, k] /= total
            mean[1, k] /= total
    return known


@lean
def _moments(points_b, points_a, weights, mean, H):
    """Fill the cross moment H = sum w b a^T about the means; return a bound.

    No eigenvalue of Horn's matrix is above half the sum of both sets' squares, and
    sets that fit come near.
    """
    bound = 0.0
    for k in range(3):
        for m in range(3):
            H[k, m] = 0.0
    for i in range(points_b.shape[0]):
        if not _known(points_b[i], points_a[i], weights[i]):
            continue
        x = points_a[i, 0] - mean[1, 0]
        y = points_a[i, 1] - mean[1, 1]
        z = points_a[i, 2] - mean[1, 2]
        bound += 0.5 * weights[i] * (x * x + y * y + z * z)
        for k in range(3):
            b = points_b[i, k] - mean[0, k]
            wb = weights[i] * b
            bound += 0.5 * wb * b
            H[k, 0] += wb * x
            H[k, 1] += wb * y
            H[k, 2] += wb * z
    return bound


@lean
def fill_horn_matrix(H, N):
    """Fill Horn's matrix, whose largest eigenvector is the quaternion wxyz."""
    N[0, 0] = H[0, 0] + H[1, 1] + H[2, 2]
    N[0, 1] = H[1, 2] - H[2, 1]
    N[0, 2] = H[2, 0] - H[0, 2]
    N[0, 3] = H[0, 1] - H[1, 0]
    N[1, 1] = H[0, 0] - H[1, 1] - H[2, 2]
    N[2, 2] = -H[0, 0] + H[1, 1] - H[2, 2]
    N[3, 3] = -H[0, 0] - H[1, 1] + H[2, 2]
    N[1, 2] = H[0, 1] + H[1, 0]
    N[1, 3] = H[0, 2] + H[2, 0]
    N[2, 3] = H[1, 2] + H[2, 1]
    for i in range(4):
        for j in range(i):
            N[i, j] = N[j, i]


@lean
def _off_diagonal_square(N):
    """Return the sum of squares below the diagonal."""
    total = 0.0
    for i in range(4):
        for j in range(i):
            total += N[i, j] ** 2
    return total


@lean
def diagonalise_4x4(N, V):
    """Diagonalise symmetric N in place by Jacobi rotations; V gets the eigenvectors."""
    set_diagonal(V, len(V), 1.0)
    size = 0.0
    for i in range(4):
        for j in range(4):
            size += N[i, j] ** 2
    for _ in range(MAX_ITERATIONS_JACOBI):
        if _off_diagonal_square(N) <= ROUNDING * size:
            return
        for p in range(3):
            for q in range(p + 1, 4):
                if N[p, q] ** 2 > 0.0:
                    _rotate(N, V, p, q)


@lean
def _rotate(N, V, p, q):
    """Apply the Jacobi rotation of the plane (p, q) that makes N[p, q] zero."""
    d, e = N[q, q] - N[p, p], 2.0 * N[p, q]
    root = np.sqrt(d * d + e * e)
    t = e / (d + root) if d >= 0.0 else e / (d - root)
    c = 1.0 / np.sqrt(t * t + 1.0)
    s = t * c
    for k in range(4):
        a, b = N[k, p], N[k, q]
        N[k, p], N[k, q] = c * a - s * b, s * a + c * b
    for k in range(4):
        a, b = N[p, k], N[q, k]
        N[p, k], N[q, k] = c * a - s * b, s * a + c * b
    for k in range(4):
        a, b = V[k, p], V[k, q]
        V[k, p], V[k, q] = c * a - s * b, s * a + c * b


@lean
def _divide(a, b):
    """Return a / b; a itself where b is not positive, and nothing is determined."""
    return a / select_positive(b, b, 0.0 * b + 1.0)


@lean
def _horn_elements(H):
    """Return Horn's matrix of three rows: its diagonal, then what is right of it."""
    x, y, z = H
    return (
        x[0] + y[1] + z[2],
        x[0] - y[1] - z[2],
        y[1] - x[0] - z[2],
        z[2] - x[0] - y[1],
        y[2] - z[1],
        z[0] - x[2],
        x[1] - y[0],
        x[1] + y[0],
        x[2] + z[0],
        y[2] + z[1],
    )


@lean
def _adjugate(N, top):
    """Return the adjugate of symmetric N - top 1, by rows, and its determinant."""
    a, b, c, d = N[0] - top, N[1] - top, N[2] - top, N[3] - top
    e, f, g, h, i, j = N[4], N[5], N[6], N[7], N[8], N[9]
    # Minors of the upper two rows, by columns, and of the lower two.
    s01, s02, s03 = a * b - e * e, a * h - e * f, a * i - e * g
    s12, s13, s23 = e * h - b * f, e * i - b * g, f * i - h * g
    t01, t02, t03 = f * i - g * h, f * j - g * c, f * d - g * j
    t12, t13, t23 = h * j - i * c, h * d - i * j, c * d - j * j
    A01, A02 = f * t13 - e * t23 - g * t12, i * s23 - j * s13 + d * s12
    A03, A12 = c * s13 - h * s23 - j * s12, j * s03 - g * s23 - d * s02
    A13, A23 = f * s23 - c * s03 + j * s02, h * s03 - f * s13 - j * s01
    return (
        (b * t23 - h * t13 + i * t12, A01, A02, A03),
        (A01, a * t23 - f * t03 + g * t02, A12, A13),
        (A02, A12, g * s13 - i * s03 + d * s01, A23),
        (A03, A13, A23, f * s12 - h * s02 + c * s01),
        s01 * t23 - s02 * t13 + s03 * t12 + s12 * t03 - s13 * t02 + s23 * t01,
    )


@lean
def _largest_eigenvalue(H, N, bound):
    """Return the largest eigenvalue of N and its separation from the others.

    Newton's method on the characteristic polynomial (quaternion characteristic
    polynomial, Theobald 2005), from an upper bound. The separation is the product
    of the distances to the other eigenvalues over the cube; below ROUNDING_SEPARATION
    the steps end. Of numbers side by side, all take as many steps as the slowest.
    """
    square = dot(H[0], H[0]) + dot(H[1], H[1]) + dot(H[2], H[2])
    # Theobald 2005: -8 det H, and the derivative of his polynomial below.
    c2, c1 = -2.0 * square, -8.0 * dot(H[0], cross(H[1], H[2]))
    c0 = _adjugate(N, 0.0 * bound)[4]
    # The largest eigenvalue is at most the sum of the three singular values of H.
    most = np.sqrt(3.0 * square)
    top, separation = select_positive(bound - most, most, bound), 0.0 * bound
    for _ in range(MAX_ITERATIONS_NEWTON):
        slope = (4.0 * top * top + 2.0 * c2) * top + c1
        separation = _divide(slope, top * top * top)
        step = _divide(((top * top + c2) * top + c1) * top + c0, slope)
        step = select_positive(separation - ROUNDING_SEPARATION, step, 0.0 * bound)
        top -= step
        least = NEWTON_TOLERANCE * top
        if not any_positive(step * step - least * least):
            break
    return top, separation


@lean
def _separated_eigenvector(H, bound):
    """Return the eigenvector of Horn's largest eigenvalue; last, if it is separated.

    The eigenvector is the longest column of the adjugate of N - lambda 1. If the other
    eigenvalues are near, they magnify rounding, so one step of Rayleigh quotient
    iteration refines it. The last number is positive where it is separated.
    """
    N = _horn_elements(H)
    top, separation = _largest_eigenvalue(H, N, bound)
    w, x, y, z, _ = _longest_adjugate_column(N, top)
    norm = w * w + x * x + y * y + z * z
    square = N[0] * w * w + N[1] * x * x + N[2] * y * y + N[3] * z * z
    square += 2.0 * w * (N[4] * x + N[5] * y + N[6] * z)
    square += 2.0 * (N[7] * x * y + N[8] * x * z + N[9] * y * z)
    w, x, y, z, size = _longest_adjugate_column(N, _divide(square, norm))
    size = select_positive(np.inf - size, size, -1.0 + 0.0 * bound)
    is_separated = separation - ROUNDING_SEPARATION
    return w, x, y, z, select_positive(is_separated, size, -1.0 + 0.0 * bound)


@lean
def _longest_adjugate_column(N, top):
    """Return the longest column of the adjugate of N - top 1, and its size."""
    first, second, third, fourth, _ = _adjugate(N, top)
    w, x, y, z = first
    longest = w, x, y, z, select_positive(w, w, -w)
    longest = _longer(longest, second, second[1])
    longest = _longer(longest, third, third[2])
    return _longer(longest, fourth, fourth[3])


@lean
def _longer(longest, column, diagonal):
    """Return the longer of two columns, with its size, that of its diagonal."""
    size = select_positive(diagonal, diagonal, -diagonal)
    longer = size - longest[4]
    return (
        select_positive(longer, column[0], longest[0]),
        select_positive(longer, column[1], longest[1]),
        select_positive(longer, column[2], longest[2]),
        select_positive(longer, column[3], longest[3]),
        select_positive(longer, size, longest[4]),
    )


@lean
def is_tied(N, best):
    """Return whether the largest eigenvalue of diagonal N equals the second one."""
    top = N[best, best]
    second = -np.inf
    for i in range(4):
        if i != best:
            second = max(second, N[i, i])
    return not top - second > MAX_TIE * top  # NaN counts as tied


@lean
def _rotation_rows(w, x, y, z):
    """Return the rows of the rotation of a quaternion of any length."""
    s = _divide(2.0, w * w + x * x + y * y + z * z)
    return (
        (1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)),
        (s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)),
        (s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)),
    )


@lean
def _write_pose(R, mean_b, mean_a, T):
    """Write the upper rows of the pose that carries one mean onto the other."""
    row, k = R[0], 0
    T[k, 0], T[k, 1], T[k, 2] = row
    T[k, 3] = mean_a[k] - dot(row, mean_b)
    row, k = R[1], 1
    T[k, 0], T[k, 1], T[k, 2] = row
    T[k, 3] = mean_a[k] - dot(row, mean_b)
    row, k = R[2], 2
    T[k, 0], T[k, 1], T[k, 2] = row
    T[k, 3] = mean_a[k] - dot(row, mean_b)


@lean
def _end_pose(T):
    """Write the last row of a pose."""
    T[3, 0] = T[3, 1] = T[3, 2] = 0.0
    T[3, 3] = 1.0


@lean
def fit_pose(points_b, points_a, weights, work, T):
    """Fill T (4, 4) with the best T_a_b of two point sets (m, 3); NaN if unknown."""
    mean, H = work.mean, work.H
    if _means(points_b, points_a, weights, mean) >= 3:
        bound = _moments(points_b, points_a, weights, mean, H)
        rows = (
            (H[0, 0], H[0, 1], H[0, 2]),
            (H[1, 0], H[1, 1], H[1, 2]),
            (H[2, 0], H[2, 1], H[2, 2]),
        )
        w, x, y, z, separation = _separated_eigenvector(rows, bound)
        if separation > 0.0 or _any_eigenvector(work):
            if not separation > 0.0:
                w, x, y, z = work.q[0], work.q[1], work.q[2], work.q[3]
            _write_pose(_rotation_rows(w, x, y, z), mean[0], mean[1], T)
            _end_pose(T)
            return
    for i in range(4):
        for k in range(4):
            T[i, k] = np.nan


@lean
def _any_eigenvector(work):
    """Write Horn's eigenvector by Jacobi's method; return whether it is determined."""
    fill_horn_matrix(work.H, work.N)
    diagonalise_4x4(work.N, work.V)
    best = 0
    for i in range(1, 4):
        if work.N[i, i] > work.N[best, best]:
            best = i
    for i in range(4):
        work.q[i] = work.V[i, best]
    return not is_tied(work.N, best)


# --- poses side by side ---------------------------------------------------------------


@njit(cache=True, **NO_WRAPPERS)
def lanes_room(n_points):
    """Return room for `fit_side_by_side`: weight and both points, then the poses."""
    return empty((n_points + 3, N_NUMBERS, LANES))


@lean
def _fill_lane(points_b, points_a, weights, room, lane):
    """Write two point sets to a lane; unknown points get no weight."""
    for i in range(len(weights)):
        if _known(points_b[i], points_a[i], weights[i]):
            room[i, WEIGHT, lane] = weights[i]
            for k in range(3):
                room[i, X_B + k, lane] = points_b[i, k]
                room[i, X_A + k, lane] = points_a[i, k]
        else:
            for k in range(N_NUMBERS):
                room[i, k, lane] = 0.0


@lean
def _fit_lanes(sets):
    """Write the poses of point sets side by side; last, which are determined."""
    n_points = len(sets) - 3
    zero = spread(0.0)
    total, mean_b, mean_a = zero, (zero, zero, zero), (zero, zero, zero)
    for i in range(n_points):
        one = sets[i]
        weight = one[WEIGHT]
        total += weight
        mean_b = _sum_weighted(mean_b, weight, (one[X_B], one[Y_B], one[Z_B]))
        mean_a = _sum_weighted(mean_a, weight, (one[X_A], one[Y_A], one[Z_A]))
    inverse = _divide(1.0, total)
    mean_b, mean_a = scale_vector(inverse, mean_b), scale_vector(inverse, mean_a)
    H, twice_bound = ((zero, zero, zero), (zero, zero, zero), (zero, zero, zero)), zero
    for i in range(n_points):
        one = sets[i]
        weight = one[WEIGHT]
        b = one[X_B] - mean_b[0], one[Y_B] - mean_b[1], one[Z_B] - mean_b[2]
        a = one[X_A] - mean_a[0], one[Y_A] - mean_a[1], one[Z_A] - mean_a[2]
        twice_bound += weight * (dot(a, a) + dot(b, b))
        H = (
            _sum_weighted(H[0], weight * b[0], a),
            _sum_weighted(H[1], weight * b[1], a),
            _sum_weighted(H[2], weight * b[2], a),
        )
    w, x, y, z, separation = _separated_eigenvector(H, 0.5 * twice_bound)
    _write_pose(_rotation_rows(w, x, y, z), mean_b, mean_a, sets[n_points:])
    sets[n_points, SEPARATION] = separation


@lean
def _sum_weighted(total, weight, vector):
    """Return a sum of vectors with another one added."""
    return (
        total[0] + weight * vector[0],
        total[1] + weight * vector[1],
        total[2] + weight * vector[2],
    )


@lean
def _read_lane(room, lane, T):
    """Read the pose of a lane; return whether it is determined."""
    first = len(room) - 3
    for i in range(3):
        for k in range(4):
            T[i, k] = room[first + i, k, lane]
    _end_pose(T)
    return room[first, SEPARATION, lane] > 0.0


@lean
def fit_side_by_side(points_b, points_a, weights, room, work, T):
    """Fill T (n, 4, 4) with the poses of point sets, several at a time.

    Where the usual way does not determine a pose, it is fitted alone. One set of points
    in b, of shape (1, m, 3), may serve all.
    """
    sets, last_b = as_lanes(room), len(points_b) - 1
    for first in range(0, len(T), LANES):
        for lane in range(LANES):
            n = min(first + lane, len(T) - 1)
            b = points_b[min(n, last_b)]
            _fill_lane(b, points_a[n], weights[n], room, lane)
        _fit_lanes(sets)
        for lane in range(min(LANES, len(T) - first)):
            n = first + lane
            if not _read_lane(room, lane, T[n]):
                b = points_b[min(n, last_b)]
                fit_pose(b, points_a[n], weights[n], work, T[n])


@njit(void(SETS, SETS, WEIGHTS, float64[:, :, ::1]), cache=True)
def fit_poses(points_b, points_a, weights, out):
    """Fill out (n, 4, 4) with the best T_a_b of each pair of point sets (n, m, 3)."""
    room, work = lanes_room(weights.shape[1]), scratch()
    fit_side_by_side(points_b, points_a, weights, room, work, out)
