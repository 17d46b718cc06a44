"""The compiled kernel of `geometry.kabsch`, one pose at a time."""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np
from numba import float64, types, void

from marey.numerics.jit import lean, njit
from marey.numerics.vector3_kernel import set_diagonal

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
        np.empty((3, 3)),
        np.empty((4, 4)),
        np.empty((4, 4)),
        np.empty(4),
        np.empty((2, 3)),
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
def _adjugate(N, top, A):
    """Fill A with the adjugate of N - top 1, both symmetric; return its determinant."""
    a, b, c, d = N[0, 0] - top, N[1, 1] - top, N[2, 2] - top, N[3, 3] - top
    e, f, g, h, i, j = N[0, 1], N[0, 2], N[0, 3], N[1, 2], N[1, 3], N[2, 3]
    # Minors of the upper two rows, by columns, and of the lower two.
    s01, s02, s03 = a * b - e * e, a * h - e * f, a * i - e * g
    s12, s13, s23 = e * h - b * f, e * i - b * g, f * i - h * g
    t01, t02, t03 = f * i - g * h, f * j - g * c, f * d - g * j
    t12, t13, t23 = h * j - i * c, h * d - i * j, c * d - j * j
    A[0, 0], A[1, 1] = b * t23 - h * t13 + i * t12, a * t23 - f * t03 + g * t02
    A[2, 2], A[3, 3] = g * s13 - i * s03 + d * s01, f * s12 - h * s02 + c * s01
    A[0, 1] = A[1, 0] = f * t13 - e * t23 - g * t12
    A[0, 2] = A[2, 0] = i * s23 - j * s13 + d * s12
    A[0, 3] = A[3, 0] = c * s13 - h * s23 - j * s12
    A[1, 2] = A[2, 1] = j * s03 - g * s23 - d * s02
    A[1, 3] = A[3, 1] = f * s23 - c * s03 + j * s02
    A[2, 3] = A[3, 2] = h * s03 - f * s13 - j * s01
    return s01 * t23 - s02 * t13 + s03 * t12 + s12 * t03 - s13 * t02 + s23 * t01


@lean
def _largest_eigenvalue(H, N, bound, A):
    """Return the largest eigenvalue of N and its separation from the others.

    Newton's method on the characteristic polynomial (quaternion characteristic
    polynomial, Theobald 2005), from an upper bound. The separation is the product
    of the distances to the other eigenvalues over the cube; zero if it is too small.
    """
    square = 0.0
    for i in range(3):
        for j in range(3):
            square += H[i, j] * H[i, j]
    c2, c1 = -2.0 * square, 0.0
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        # Theobald 2005: -8 det H.
        c1 -= 8.0 * H[0, i] * (H[1, j] * H[2, k] - H[1, k] * H[2, j])
    c0 = _adjugate(N, 0.0, A)
    # The largest eigenvalue is at most the sum of the three singular values of H.
    top, separation = min(np.sqrt(len(H) * square), bound), 0.0
    for _ in range(MAX_ITERATIONS_NEWTON):
        # The derivative of the polynomial of Theobald 2005.
        slope = (4.0 * top * top + 2.0 * c2) * top + c1
        separation = slope / (top * top * top)
        if not separation > ROUNDING_SEPARATION:
            return top, 0.0
        step = (((top * top + c2) * top + c1) * top + c0) / slope
        top -= step
        if abs(step) <= NEWTON_TOLERANCE * top:
            break
    return top, separation


@lean
def _separated_eigenvector(H, N, bound, A, q):
    """Write the eigenvector of N's largest eigenvalue; return whether it is separated.

    The eigenvector is the longest column of the adjugate of N - lambda 1. If the other
    eigenvalues are near, they magnify rounding, so one step of Rayleigh quotient
    iteration refines it.
    """
    top, separation = _largest_eigenvalue(H, N, bound, A)
    if separation == 0.0:
        return False
    _longest_adjugate_column(N, top, A, q)
    norm, top = 0.0, 0.0
    for i in range(4):
        norm += q[i] * q[i]
        for j in range(4):
            top += q[i] * N[i, j] * q[j]
    return 0.0 < _longest_adjugate_column(N, top / norm, A, q) < np.inf


@lean
def _longest_adjugate_column(N, top, A, q):
    """Write the longest column of the adjugate of N - top 1; return its size."""
    _adjugate(N, top, A)
    best = 0
    for i in range(1, 4):
        best = i if abs(A[i, i]) > abs(A[best, best]) else best
    for i in range(4):
        q[i] = A[i, best]
    return abs(A[best, best])


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
def _pose(q, mean, T):
    """Fill T with the rotation of q that carries the first mean onto the second."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    s = 2.0 / (w * w + x * x + y * y + z * z)
    T[0, 0], T[1, 1], T[2, 2] = (
        1 - s * (y * y + z * z),
        1 - s * (x * x + z * z),
        1 - s * (x * x + y * y),
    )
    T[0, 1], T[1, 0] = s * (x * y - w * z), s * (x * y + w * z)
    T[0, 2], T[2, 0] = s * (x * z + w * y), s * (x * z - w * y)
    T[1, 2], T[2, 1] = s * (y * z - w * x), s * (y * z + w * x)
    for i in range(3):
        T[i, 3] = mean[1, i]
        for k in range(3):
            T[i, 3] -= T[i, k] * mean[0, k]
        T[3, i] = 0.0
    T[3, 3] = 1.0


@lean
def fit_pose(points_b, points_a, weights, work, T):
    """Fill T (4, 4) with the best T_a_b of two point sets (m, 3); NaN if unknown."""
    if _means(points_b, points_a, weights, work.mean) >= 3:
        bound = _moments(points_b, points_a, weights, work.mean, work.H)
        fill_horn_matrix(work.H, work.N)
        if _separated_eigenvector(work.H, work.N, bound, work.V, work.q):
            _pose(work.q, work.mean, T)
            return
        diagonalise_4x4(work.N, work.V)
        best = 0
        for i in range(1, 4):
            if work.N[i, i] > work.N[best, best]:
                best = i
        if not is_tied(work.N, best):
            _pose(work.V[:, best], work.mean, T)
            return
    for i in range(4):
        for k in range(4):
            T[i, k] = np.nan


@njit(void(SETS, SETS, WEIGHTS, float64[:, :, ::1]), cache=True)
def fit_poses(points_b, points_a, weights, out):
    """Fill out (n, 4, 4) with the best T_a_b of each pair of point sets (n, m, 3)."""
    work = scratch()
    for n in range(out.shape[0]):
        fit_pose(points_b[n], points_a[n], weights[n], work, out[n])
