"""Cholesky's factor on one core, compiled.

At some hundred unknowns a library's threads cost more than they save, and how many
there are would show in the last digits.
"""

from typing import no_type_check

import numpy as np
from numba import njit

from marey._lean_kernel import FAST


@no_type_check
@njit(cache=True, fastmath=FAST, error_model="numpy")
def factor(A):
    """Turn the lower half of A into its factor L, A = L L^T; False if there is none."""
    for i in range(len(A)):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            if i != j:
                A[i, j] = total / A[j, j]
            elif total > 0.0:
                A[i, i] = np.sqrt(total)
            else:
                return False
    return True


@no_type_check
@njit(cache=True, fastmath=FAST, error_model="numpy")
def solve(L, B):
    """Turn B (unknown, column) into the X with L L^T X = B."""
    n, m = B.shape
    for i in range(n):
        for k in range(i):
            for c in range(m):
                B[i, c] -= L[i, k] * B[k, c]
        for c in range(m):
            B[i, c] /= L[i, i]
    for i in range(n - 1, -1, -1):
        for c in range(m):
            B[i, c] /= L[i, i]
        for k in range(i):
            for c in range(m):
                B[k, c] -= L[i, k] * B[i, c]
