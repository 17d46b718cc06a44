r"""Block elimination by a partial Cholesky factorisation on one core, compiled.

.. math:: \begin{pmatrix} A & C^T \\ C & B \end{pmatrix}
          \begin{pmatrix} x \\ y \end{pmatrix} =
          \begin{pmatrix} u \\ v \end{pmatrix}
          \;\Rightarrow\; (B - C A^{-1} C^T)\, y = v - C A^{-1} u

At a few hundred unknowns the threads of a linear-algebra library take longer than they
save, and their number would change the last digits of the answer.
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
    """Eliminate the first `count` unknowns of A x = b, in place.

    The first rows of A become the lower Cholesky factor L of their block, and those of
    b become L^-1 b. The last rows and columns become the Schur complement, and those of
    b its right side. The coupling block becomes C L^-T, which `back_substitute` needs.

    Returns:
        False if the block of the first unknowns is not positive definite.
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
def back_substitute(A, b, solution, count):
    """Return the eliminated unknowns, given the solution for the others."""
    x = b[:count].copy()
    for r in range(len(solution)):
        for i in range(count):
            x[i] -= A[count + r, i] * solution[r]
    for i in range(count - 1, -1, -1):
        x[i] /= A[i, i]
        for k in range(i):
            x[k] -= A[i, k] * x[i]
    return x
