"""Eigenvalues and pseudo-inverses of small symmetric matrices, compiled.

For matrices of at most six rows a call of LAPACK costs more than its arithmetic.
"""

# mypy: ignore-errors

import numpy as np

from marey.numerics.arrays.new_kernel import empty, zeros
from marey.numerics.jit import inner, lean, njit
from marey.numerics.vector3_kernel import set_diagonal

MAX_ITERATIONS = 30
"""Largest number of sweeps; Jacobi's method converges quadratically, in about six."""


@lean
def _rotate_pair(A, V, p, q):
    """Apply the Jacobi rotation that makes A[p, q] zero, to A and the columns of V."""
    theta = 0.5 * (A[q, q] - A[p, p]) / A[p, q]
    t = 1.0 / (abs(theta) + np.sqrt(theta * theta + 1.0))
    t = t if theta >= 0.0 else -t
    c = 1.0 / np.sqrt(t * t + 1.0)
    s = t * c
    for k in range(len(A)):
        a, b = A[k, p], A[k, q]
        A[k, p], A[k, q] = c * a - s * b, s * a + c * b
    for k in range(len(A)):
        a, b = A[p, k], A[q, k]
        A[p, k], A[q, k] = c * a - s * b, s * a + c * b
        a, b = V[k, p], V[k, q]
        V[k, p], V[k, q] = c * a - s * b, s * a + c * b


@lean
def _is_diagonal(A):
    """Whether the squares off the diagonal are rounding of those on it."""
    off, size = 0.0, 0.0
    for i in range(len(A)):
        size += A[i, i] * A[i, i]
        for j in range(i):
            off += A[i, j] * A[i, j]
    return off <= 1e-34 * size


@lean
def diagonalise(A, V):
    """Leave the eigenvalues on the diagonal of A, unsorted; write eigenvectors into V.

    The cyclic Jacobi method; the columns of V are orthonormal.
    """
    n = len(A)
    set_diagonal(V, n, 1.0)
    for _ in range(MAX_ITERATIONS):
        if _is_diagonal(A):
            return
        for p in range(n - 1):
            for q in range(p + 1, n):
                if A[p, q] != 0.0:
                    _rotate_pair(A, V, p, q)


@inner
def largest_eigenvalue(A):
    """Return the largest absolute value on the diagonal."""
    largest = 0.0
    for i in range(len(A)):
        largest = max(largest, abs(A[i, i]))
    return largest


@njit(cache=True, error_model="numpy")
def pseudo_inverse(A, rcond):
    """Return the pseudo-inverse of a symmetric matrix.

    Args:
        A: The matrix.
        rcond: Share of the largest absolute eigenvalue below which one counts as zero.
    """
    n = len(A)
    D, V, out = A.copy(), empty((n, n)), zeros((n, n))
    diagonalise(D, V)
    smallest = rcond * largest_eigenvalue(D)
    for k in range(n):
        if abs(D[k, k]) <= smallest:
            continue
        for i in range(n):
            for j in range(n):
                out[i, j] += V[i, k] * V[j, k] / D[k, k]
    return out


@njit(cache=True, error_model="numpy")
def count_rank(A, rcond):
    """Return how many eigenvalues exceed a share of the largest, in absolute value."""
    n = len(A)
    D, V = A.copy(), empty((n, n))
    diagonalise(D, V)
    smallest, rank = rcond * largest_eigenvalue(D), 0
    for k in range(n):
        rank += abs(D[k, k]) > smallest
    return rank


@inner
def smallest_ratio(A, B):
    """Return the smallest x^T A x / x^T B x of a symmetric A and a positive B."""
    n = len(A)
    D, V, M = B.copy(), empty((n, n)), zeros((n, n))
    diagonalise(D, V)
    for k in range(n):
        scale = 1.0 / np.sqrt(D[k, k])
        for i in range(n):
            V[i, k] *= scale
    for p in range(n):
        for q in range(p + 1):
            for i in range(n):
                for j in range(n):
                    M[p, q] += V[i, p] * A[i, j] * V[j, q]
            M[q, p] = M[p, q]
    diagonalise(M, V)
    smallest = M[0, 0]
    for k in range(n):
        smallest = min(smallest, M[k, k])
    return smallest
