"""The compiled kernels of `geometry.kabsch` and of `rigid.py`."""

from typing import no_type_check

import numpy as np
from numba import float64, njit, types, void

# The turn counts as unknown when the two largest eigenvalues of Horn's matrix lie
# within this share of each other: the points of either set are on a line (no wider
# than about 2e-6 of their length), or a mirror image fits two ways equally well.
TIE = 1e-11

# Jacobi ends when the rest off the diagonal is below this share of the matrix (both
# squared), or after so many sweeps; four or five are usual.
ROUNDING = 1e-32
SWEEPS = 12

# The largest eigenvalue is found by Newton's method where it stands clear of the
# others: the product of its distances to them is more than this share of its cube.
CLEAR = 1e-3
NEWTON_STEPS = 30
CLOSE = 1e-12

# One signature for every memory layout, so that one compilation serves all callers.
SETS = types.Array(float64, 3, "A", readonly=True)
WEIGHTS = types.Array(float64, 2, "A", readonly=True)


@no_type_check
@njit(cache=True)
def _known(point_b, point_a, weight):
    total = point_b[0] + point_b[1] + point_b[2] + point_a[0] + point_a[1] + point_a[2]
    return weight > 0.0 and np.isfinite(total)


@no_type_check
@njit(cache=True)
def _means(points_b, points_a, weights, mean):
    """Fill the weighted means of both sets; return how many points are known."""
    known = 0
    total = 0.0
    mean[:] = 0.0
    for i in range(points_b.shape[0]):
        if _known(points_b[i], points_a[i], weights[i]):
            known += 1
            total += weights[i]
            for k in range(3):
                mean[0, k] += weights[i] * points_b[i, k]
                mean[1, k] += weights[i] * points_a[i, k]
    if known > 0:
        mean /= total
    return known


@no_type_check
@njit(cache=True)
def _moments(points_b, points_a, weights, mean, H):
    """Fill the cross moment H = sum w b a^T about the means."""
    H[:] = 0.0
    for i in range(points_b.shape[0]):
        if not _known(points_b[i], points_a[i], weights[i]):
            continue
        for k in range(3):
            b = weights[i] * (points_b[i, k] - mean[0, k])
            for m in range(3):
                H[k, m] += b * (points_a[i, m] - mean[1, m])


@no_type_check
@njit(cache=True)
def _horn(H, N):
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


@no_type_check
@njit(cache=True)
def _jacobi(N, V):
    """Diagonalise symmetric N in place; V gets its eigenvectors as columns."""
    size = 0.0
    for i in range(4):
        for j in range(4):
            V[i, j] = 1.0 if i == j else 0.0
            size += N[i, j] ** 2
    for _ in range(SWEEPS):
        off = 0.0
        for i in range(4):
            for j in range(i):
                off += N[i, j] ** 2
        if off <= ROUNDING * size:
            return
        for p in range(3):
            for q in range(p + 1, 4):
                if N[p, q] ** 2 > 0.0:
                    _rotate(N, V, p, q)


@no_type_check
@njit(cache=True)
def _rotate(N, V, p, q):
    """Turn the plane (p, q) so that N[p, q] vanishes."""
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


@no_type_check
@njit(cache=True)
def _cofactor(N, top, r, c):
    """Return a cofactor of N - top 1."""
    a, b, d = (r + 1) % 4, (r + 2) % 4, (r + 3) % 4
    i, j, k = (c + 1) % 4, (c + 2) % 4, (c + 3) % 4
    ai, aj, ak = N[a, i] - top * (a == i), N[a, j] - top * (a == j), N[a, k]
    bi, bj, bk = N[b, i] - top * (b == i), N[b, j] - top * (b == j), N[b, k]
    di, dj, dk = N[d, i] - top * (d == i), N[d, j] - top * (d == j), N[d, k]
    ak, bk, dk = ak - top * (a == k), bk - top * (b == k), dk - top * (d == k)
    det = ai * (bj * dk - bk * dj) - aj * (bi * dk - bk * di) + ak * (bi * dj - bj * di)
    return det if (r + c) % 2 == 0 else -det


@no_type_check
@njit(cache=True)
def _clear_top(H, N, q):
    """Write N's largest eigenvector if it stands clear of the others, and say so.

    Newton's method on the characteristic polynomial, from above, then one step of
    Rayleigh's quotient. N has no trace, so that its largest eigenvalue is at most the
    root of three quarters of its squares' sum.
    """
    square = 0.0
    for i in range(3):
        for j in range(3):
            square += H[i, j] * H[i, j]
    c2, c1 = -2.0 * square, 0.0
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        c1 -= 8.0 * H[0, i] * (H[1, j] * H[2, k] - H[1, k] * H[2, j])
    c0 = 0.0
    for i in range(4):
        c0 += N[0, i] * _cofactor(N, 0.0, 0, i)
    top, slope = np.sqrt(3.0 * square), 0.0
    for _ in range(NEWTON_STEPS):
        slope = (4.0 * top * top + 2.0 * c2) * top + c1
        if not slope > CLEAR * top * top * top:
            return False
        step = (((top * top + c2) * top + c1) * top + c0) / slope
        top -= step
        if abs(step) <= CLOSE * top:
            break
    best, size = 0, 0.0
    for i in range(4):
        found = abs(_cofactor(N, top, i, i))
        if found > size:
            best, size = i, found
    for _ in range(2):
        norm = 0.0
        for i in range(4):
            q[i] = _cofactor(N, top, i, best)
            norm += q[i] * q[i]
        if not 0.0 < norm < np.inf:
            return False
        top = 0.0
        for i in range(4):
            for j in range(4):
                top += q[i] * N[i, j] * q[j]
        top /= norm
    return True


@no_type_check
@njit(cache=True)
def _is_tied(N, best):
    top = N[best, best]
    second = -np.inf
    for i in range(4):
        if i != best:
            second = max(second, N[i, i])
    return not top - second > TIE * top  # NaN counts as tied


@no_type_check
@njit(cache=True)
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


@no_type_check
@njit(void(SETS, SETS, WEIGHTS, float64[:, :, ::1]), cache=True)
def fit_poses(points_b, points_a, weights, out):
    """Fill out (n, 4, 4) with the best T_a_b of each pair of point sets (n, m, 3)."""
    H = np.empty((3, 3))
    N = np.empty((4, 4))
    V = np.empty((4, 4))
    q = np.empty(4)
    mean = np.empty((2, 3))
    for n in range(out.shape[0]):
        known = _means(points_b[n], points_a[n], weights[n], mean)
        if known < 3:
            out[n] = np.nan
            continue
        _moments(points_b[n], points_a[n], weights[n], mean, H)
        _horn(H, N)
        if _clear_top(H, N, q):
            _pose(q, mean, out[n])
            continue
        _jacobi(N, V)
        best = 0
        for i in range(1, 4):
            if N[i, i] > N[best, best]:
                best = i
        if _is_tied(N, best):
            out[n] = np.nan
        else:
            _pose(V[:, best], mean, out[n])


@no_type_check
@njit(void(SETS, SETS, float64[:, :, ::1]), cache=True)
def carry_back(T, points, out):
    """Fill out (n, m, 3) with R^T (p - t): point sets as seen from the poses T."""
    for n in range(points.shape[0]):
        for i in range(points.shape[1]):
            x = points[n, i, 0] - T[n, 0, 3]
            y = points[n, i, 1] - T[n, 1, 3]
            z = points[n, i, 2] - T[n, 2, 3]
            for k in range(3):
                out[n, i, k] = T[n, 0, k] * x + T[n, 1, k] * y + T[n, 2, k] * z
