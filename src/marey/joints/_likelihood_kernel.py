"""Compiled Gauss-Helmert fit of one joint; `_likelihood.py` explains it."""

from typing import no_type_check

import numpy as np
from numba import njit


@no_type_check
@njit(cache=True)
def relative_poses(T, frames, a, b, anchor_a, anchor_b, R_a_b, gap_a):
    """Write R_a^T R_b and R_a^T (anchor_b - anchor_a) of some frames."""
    d = np.empty(3)
    for row in range(len(frames)):
        A, B = T[frames[row], a], T[frames[row], b]
        for i in range(3):
            d[i] = B[i, 3] - A[i, 3]
            for j in range(3):
                d[i] += B[i, j] * anchor_b[j] - A[i, j] * anchor_a[j]
        for i in range(3):
            gap_a[row, i] = A[0, i] * d[0] + A[1, i] * d[1] + A[2, i] * d[2]
            for j in range(3):
                R_a_b[row, i, j] = (
                    A[0, i] * B[0, j] + A[1, i] * B[1, j] + A[2, i] * B[2, j]
                )


@no_type_check
@njit(cache=True)
def _turned(w, E):
    """Write the rotation matrix of a rotation vector."""
    square = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    angle = np.sqrt(square)
    if angle < 1e-4:
        s, c = 1.0 - square / 6.0, 0.5 - square / 24.0
    else:
        s, c = np.sin(angle) / angle, (1.0 - np.cos(angle)) / square
    for i in range(3):
        for j in range(3):
            E[i, j] = c * w[i] * w[j]
        E[i, i] += 1.0 - c * square
    E[0, 1] -= s * w[2]
    E[0, 2] += s * w[1]
    E[1, 0] += s * w[2]
    E[1, 2] -= s * w[0]
    E[2, 0] -= s * w[1]
    E[2, 1] += s * w[0]


@no_type_check
@njit(cache=True)
def _hat(x, X):
    """Write the matrix of the cross product with x."""
    X[0, 0] = X[1, 1] = X[2, 2] = 0.0
    X[0, 1], X[0, 2], X[1, 2] = -x[2], x[1], -x[0]
    X[1, 0], X[2, 0], X[2, 1] = x[2], -x[1], x[0]


@no_type_check
@njit(cache=True)
def _product(X, Y, Z):
    for i in range(3):
        for j in range(3):
            Z[i, j] = X[i, 0] * Y[0, j] + X[i, 1] * Y[1, j] + X[i, 2] * Y[2, j]


@no_type_check
@njit(cache=True)
def _add_spread(B, C, S):
    """Add B C B^T to S."""
    for i in range(3):
        for k in range(3):
            for j in range(3):
                inner = C[k, 0] * B[j, 0] + C[k, 1] * B[j, 1] + C[k, 2] * B[j, 2]
                S[i, j] += B[i, k] * inner


@no_type_check
@njit(cache=True)
def _inverse(S, out):
    """Write the inverse of a symmetric matrix; whether it is positive definite."""
    a = S[1, 1] * S[2, 2] - S[1, 2] * S[1, 2]
    b = S[0, 2] * S[1, 2] - S[0, 1] * S[2, 2]
    c = S[0, 1] * S[1, 2] - S[0, 2] * S[1, 1]
    det = S[0, 0] * a + S[0, 1] * b + S[0, 2] * c
    if not det > 0.0:
        return False
    out[0, 0], out[0, 1], out[0, 2] = a / det, b / det, c / det
    out[1, 1] = (S[0, 0] * S[2, 2] - S[0, 2] * S[0, 2]) / det
    out[1, 2] = (S[0, 1] * S[0, 2] - S[0, 0] * S[1, 2]) / det
    out[2, 2] = (S[0, 0] * S[1, 1] - S[0, 1] * S[0, 1]) / det
    out[1, 0], out[2, 0], out[2, 1] = out[0, 1], out[0, 2], out[1, 2]
    return True


@no_type_check
@njit(cache=True)
def linearise(
    R_a_b, gap_a, u, w_a, w_b, C_a, C_b, K_a, K_b, shift, A, B_a, B_b, P, m, square
):
    """Write, for every frame, the constraint linearised at the adjusted poses.

    K_a and K_b stretch the centres. A (3 x 6) is the derivative by the centres, B_a and
    B_b by the turns of the two poses, P the inverse covariance of the gap, m the gap at
    zero adjustment, square m^T P m.
    """
    E_a, E_b, X = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    S, NE = np.empty((3, 3)), np.empty((3, 3))
    x_a, x_b = np.empty(3), np.empty(3)
    for k in range(len(R_a_b)):
        N = R_a_b[k]
        _turned(w_a[k], X)
        _product(X, K_a, E_a)
        _turned(w_b[k], X)
        _product(X, K_b, E_b)
        for i in range(3):
            x_a[i] = E_a[i, 0] * u[0] + E_a[i, 1] * u[1] + E_a[i, 2] * u[2]
            x_b[i] = E_b[i, 0] * u[3] + E_b[i, 1] * u[4] + E_b[i, 2] * u[5]
        _hat(x_a, X)
        for i in range(3):
            for j in range(3):
                B_a[k, i, j] = -X[i, j]
        _hat(x_b, X)
        _product(N, X, B_b[k])
        _product(N, E_b, NE)
        for i in range(3):
            for j in range(3):
                A[k, i, j] = E_a[i, j]
                A[k, i, 3 + j] = -NE[i, j]
                S[i, j] = shift if i == j else 0.0
        _add_spread(B_a[k], C_a, S)
        _add_spread(B_b[k], C_b, S)
        if not _inverse(S, P[k]):
            return False
        for i in range(3):
            m[k, i] = x_a[i] - gap_a[k, i]
            for j in range(3):
                m[k, i] -= N[i, j] * x_b[j]
                m[k, i] -= B_a[k, i, j] * w_a[k, j] + B_b[k, i, j] * w_b[k, j]
        square[k] = 0.0
        for i in range(3):
            for j in range(3):
                square[k] += m[k, i] * P[k, i, j] * m[k, j]
    return True


@no_type_check
@njit(cache=True)
def known_turn(B, P, out):
    """Write the mean over frames of B^T P B: what the gaps tell of a body's turns."""
    PB = np.empty((3, 3))
    out[:] = 0.0
    for k in range(len(B)):
        _product(P[k], B[k], PB)
        for i in range(3):
            for j in range(3):
                out[i, j] += (
                    B[k, 0, i] * PB[0, j]
                    + B[k, 1, i] * PB[1, j]
                    + B[k, 2, i] * PB[2, j]
                )
    out /= len(B)


@no_type_check
@njit(cache=True)
def gather(A, P, m, weight, H, g):
    """Add up weighted A^T P A and -A^T P m."""
    PA = np.empty((3, 6))
    H[:] = 0.0
    g[:] = 0.0
    for k in range(len(A)):
        if weight[k] == 0.0:
            continue
        for i in range(3):
            for j in range(6):
                PA[i, j] = weight[k] * (
                    P[k, i, 0] * A[k, 0, j]
                    + P[k, i, 1] * A[k, 1, j]
                    + P[k, i, 2] * A[k, 2, j]
                )
        for i in range(6):
            for x in range(3):
                g[i] -= PA[x, i] * m[k, x]
                for j in range(i + 1):
                    H[i, j] += A[k, x, i] * PA[x, j]
    for i in range(6):
        for j in range(i):
            H[j, i] = H[i, j]


@no_type_check
@njit(cache=True)
def adjust(A, B_a, B_b, P, m, du, C_a, C_b, w_a, w_b):
    """Move every frame's two poses to where the constraint holds at least cost."""
    gap, force, back = np.empty(3), np.empty(3), np.empty(3)
    for k in range(len(A)):
        for i in range(3):
            gap[i] = m[k, i]
            for j in range(6):
                gap[i] += A[k, i, j] * du[j]
        for i in range(3):
            force[i] = -(
                P[k, i, 0] * gap[0] + P[k, i, 1] * gap[1] + P[k, i, 2] * gap[2]
            )
        for B, C, w in ((B_a[k], C_a, w_a[k]), (B_b[k], C_b, w_b[k])):
            for i in range(3):
                back[i] = B[0, i] * force[0] + B[1, i] * force[1] + B[2, i] * force[2]
            for i in range(3):
                w[i] = C[i, 0] * back[0] + C[i, 1] * back[1] + C[i, 2] * back[2]


@no_type_check
@njit(cache=True)
def deviate(gap, out):
    """Write every gap less the median of the five around it, axis by axis."""
    n = len(gap)
    window = np.empty(5)
    for k in range(n):
        first = min(max(k - 2, 0), n - 5)
        for i in range(3):
            for j in range(5):
                window[j] = gap[first + j, i]
            for j in range(1, 5):
                value, place = window[j], j
                while place > 0 and window[place - 1] > value:
                    window[place] = window[place - 1]
                    place -= 1
                window[place] = value
            out[k, i] = gap[k, i] - window[2]


@no_type_check
@njit(cache=True)
def keep_long_runs(out, longest):
    """Clear runs of flags that are longer than a spike."""
    n, first = len(out), 0
    while first < n:
        last = first
        while last < n and out[last]:
            last += 1
        if last - first > longest:
            out[first:last] = False
        first = max(last, first + 1)
