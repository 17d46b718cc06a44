"""Sums of squared influences of frames and of windows of frames, compiled."""

# mypy: ignore-errors

from marey.joints.sphere.symmetric_kernel import pseudo_inverse
from marey.numerics.arrays.new_kernel import zeros
from marey.numerics.jit import lean, njit


@lean
def _add_square(x, out):
    """Add x x^T."""
    for i in range(len(x)):
        for j in range(len(x)):
            out[i, j] += x[i] * x[j]


@lean
def _scale(matrix, factor):
    """Multiply all elements by a factor."""
    for i in range(len(matrix)):
        for j in range(matrix.shape[1]):
            matrix[i, j] *= factor


@lean
def _keep_seen(influence, out):
    """Write the rows that are not zero, one after another; return their number."""
    n = 0
    for f in range(len(influence)):
        size = 0.0
        for i in range(influence.shape[1]):
            out[n, i] = influence[f, i]
            size += abs(influence[f, i])
        n += 1 if size > 0.0 else 0
    return n


@njit(cache=True, error_model="numpy")
def sum_influences(influence, max_windows, max_ratio):
    """Return the covariance of the sum of the influences of all frames.

    Args:
        influence: (frame, n), zero where occluded.
        max_windows: Number of windows into which the frames are divided.
        max_ratio: Mean variance of windows over that of single frames above which
            windows are used.
    """
    size = influence.shape[1]
    seen = zeros((len(influence) + 1, size))
    single, of_windows = zeros((size, size)), zeros((size, size))
    n = _keep_seen(influence, seen)
    if n == 0:
        return single
    length, window = -(-n // max_windows), zeros(size)
    for f in range(n):
        _add_square(seen[f], single)
        for i in range(size):
            window[i] += seen[f, i]
            if f >= length:
                window[i] -= seen[f - length, i]
        if f >= length - 1:
            _add_square(window, of_windows)
    # The fit uses up degrees of freedom: its residuals are too small by that factor.
    used = size + 1
    _scale(single, n / max(n - used, 1))
    left = max(n - used * length, length)
    _scale(of_windows, n / (length * (n - length + 1)) * n / left)
    inverse, ratio = pseudo_inverse(single, 1e-12), 0.0
    for i in range(size):
        for j in range(size):
            ratio += inverse[i, j] * of_windows[j, i] / size
    return of_windows if ratio > max_ratio else single
