"""The compiled kernel of `geometry.kabsch`."""

from typing import no_type_check

import numpy as np
from numba import njit

# A point set counts as a line, and its turn as unknown, when the second largest of its
# three principal moments is below this share of the largest: a rotation noise gain of
# about 3e5.
LINE = 1e-11

SWEEPS = 12


@no_type_check
@njit(cache=True)
def fit_poses(points_b, points_a, weights, out):
    """Fill out (n, 4, 4) with the best T_a_b of each pair of point sets (n, m, 3)."""
    N = np.empty((4, 4))
    V = np.empty((4, 4))
    H = np.empty((3, 3))
    B = np.empty((3, 3))
    mean = np.empty((2, 3))
    for n in range(out.shape[0]):
        known = _means(points_b[n], points_a[n], weights[n], mean)
        _moments(points_b[n], points_a[n], weights[n], mean, H, B)
        if known < 3 or _is_line(B):
            out[n] = np.nan
            continue
        _horn(H, N)
        _jacobi(N, V)
        best = 0
        for i in range(1, 4):
            if N[i, i] > N[best, best]:
                best = i
        _pose(V[:, best], mean, out[n])


@no_type_check
@njit(cache=True)
def _known(point_b, point_a, weight):
    return weight > 0.0 and np.isfinite(point_b.sum() + point_a.sum())


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
def _moments(points_b, points_a, weights, mean, H, B):
    """Fill the cross moment H = sum w b a^T and the moment B = sum w b b^T."""
    H[:] = 0.0
    B[:] = 0.0
    for i in range(points_b.shape[0]):
        if not _known(points_b[i], points_a[i], weights[i]):
            continue
        for k in range(3):
            b = weights[i] * (points_b[i, k] - mean[0, k])
            for m in range(3):
                H[k, m] += b * (points_a[i, m] - mean[1, m])
                B[k, m] += b * (points_b[i, m] - mean[0, m])


@no_type_check
@njit(cache=True)
def _is_line(B):
    trace = B[0, 0] + B[1, 1] + B[2, 2]
    minors = B[0, 0] * B[1, 1] - B[0, 1] ** 2
    minors += B[0, 0] * B[2, 2] - B[0, 2] ** 2
    minors += B[1, 1] * B[2, 2] - B[1, 2] ** 2
    return not minors > LINE * trace * trace


@no_type_check
@njit(cache=True)
def _horn(H, N):
    """Horn's matrix, whose largest eigenvector is the quaternion wxyz."""
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
    V[:] = 0.0
    for i in range(4):
        V[i, i] = 1.0
    for _ in range(SWEEPS):
        off = 0.0
        for i in range(4):
            for j in range(i):
                off += N[i, j] ** 2
        if off <= 1e-32 * (N * N).sum():
            return
        for p in range(3):
            for q in range(p + 1, 4):
                if N[p, q] != 0.0:
                    _rotate(N, V, p, q)


@no_type_check
@njit(cache=True)
def _rotate(N, V, p, q):
    """Turn the plane (p, q) so that N[p, q] vanishes."""
    theta = (N[q, q] - N[p, p]) / (2.0 * N[p, q])
    t = 1.0 / (abs(theta) + np.sqrt(theta * theta + 1.0))
    if theta < 0.0:
        t = -t
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
def _pose(q, mean, T):
    w, x, y, z = q[0], q[1], q[2], q[3]
    s = 2.0 / (w * w + x * x + y * y + z * z)
    T[0, 0], T[0, 1], T[0, 2] = (
        1 - s * (y * y + z * z),
        s * (x * y - w * z),
        s * (x * z + w * y),
    )
    T[1, 0], T[1, 1], T[1, 2] = (
        s * (x * y + w * z),
        1 - s * (x * x + z * z),
        s * (y * z - w * x),
    )
    T[2, 0], T[2, 1], T[2, 2] = (
        s * (x * z - w * y),
        s * (y * z + w * x),
        1 - s * (x * x + y * y),
    )
    for i in range(3):
        T[i, 3] = mean[1, i]
        for k in range(3):
            T[i, 3] -= T[i, k] * mean[0, k]
        T[3, i] = 0.0
    T[3, 3] = 1.0
