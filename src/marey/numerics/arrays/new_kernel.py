"""New arrays of numbers for kernels.

Numba compiles `np.zeros` and `np.empty` again for every kernel whose options differ;
these are compiled once for each number of axes.
"""

# mypy: ignore-errors

import numpy as np

from marey.numerics.jit import inner


@inner
def zeros(shape):
    """Return zeros of a shape."""
    return np.zeros(shape)


@inner
def empty(shape):
    """Return numbers of a shape, which are not set."""
    return np.empty(shape)
