"""Elimination of a part of the unknowns on one core, compiled.

At some hundred unknowns a library's threads cost more than they save, and how many
there are would show in the last digits.
"""

from typing import no_type_check

import numpy as np
from numba import njit

from marey.numerics.jit import FAST, lean


@no_type_check
@lean
def _dot(a, b, count):
    total = 0.0
    for k in range(count):
        total += a[k] * b[k]
    return total


@no_type_check
@njit(cache=True, fastmath=FAST, error_model="numpy")
def eliminate(A, b, count):
    """Turn A x = b into equations of the unknowns after the first `count`, in place.

    Of the first rows the lower triangle becomes Cholesky's factor L, with L^-1 b beside
    it; below it stands what ties the others to them, and the rest is what is left.

    Returns:
        False if the part of the first is not positive.
    """
    for i in range(len(A)):
        for j in range(min(i, count)):
            A[i, j] = (A[i, j] - _dot(A[i], A[j], j)) / A[j, j]
        b[i] -= _dot(A[i], b, min(i, count))
        if i >= count:
            for j in range(count, i + 1):
                A[i, j] -= _dot(A[i], A[j], count)
                A[j, i] = A[i, j]
            continue
        square = A[i, i] - _dot(A[i], A[i], i)
        if not square > 0.0:
            return False
        A[i, i] = np.sqrt(square)
        b[i] /= A[i, i]
    return True


@no_type_check
@njit(cache=True, fastmath=FAST, error_model="numpy")
def restore(A, b, rest, count):
    """Return the first unknowns of eliminated equations, given the rest of them."""
    x = b[:count].copy()
    for r in range(len(rest)):
        for i in range(count):
            x[i] -= A[count + r, i] * rest[r]
    for i in range(count - 1, -1, -1):
        x[i] /= A[i, i]
        for k in range(i):
            x[k] -= A[i, k] * x[i]
    return x
