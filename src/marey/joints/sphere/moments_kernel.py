"""Central moments of positions up to order four, compiled."""

# mypy: ignore-errors

import numpy as np

from marey.numerics.arrays.new_kernel import zeros
from marey.numerics.jit import njit


@njit(cache=True, error_model="numpy")
def _mean_positions(points):
    """Return the number of positions of each marker, and their mean."""
    n_frames, n_markers = points.shape[:2]
    count, mean = zeros(n_markers), zeros((n_markers, 3))
    for f in range(n_frames):
        for m in range(n_markers):
            x, y, z = points[f, m, 0], points[f, m, 1], points[f, m, 2]
            if np.isfinite(x + y + z):
                count[m] += 1.0
                mean[m, 0] += x
                mean[m, 1] += y
                mean[m, 2] += z
    for m in range(n_markers):
        for i in range(3):
            mean[m, i] /= max(count[m], 1.0)
    return count, mean


@njit(cache=True, error_model="numpy")
def sum_moments(points):
    """Return number of positions, mean, and second, third and fourth moments.

    Of each marker over the frames in which it is seen; see `SphereMoments`.

    Args:
        points: (frame, marker, 3), in metres; NaN where unseen.
    """
    n_frames, n_markers = points.shape[:2]
    count, mean = _mean_positions(points)
    second, third = zeros((n_markers, 3, 3)), zeros((n_markers, 3))
    fourth = zeros(n_markers)
    for f in range(n_frames):
        for m in range(n_markers):
            x, y, z = points[f, m, 0], points[f, m, 1], points[f, m, 2]
            if not np.isfinite(x + y + z):
                continue
            x, y, z = x - mean[m, 0], y - mean[m, 1], z - mean[m, 2]
            square = x * x + y * y + z * z
            second[m, 0, 0] += x * x
            second[m, 0, 1] += x * y
            second[m, 0, 2] += x * z
            second[m, 1, 1] += y * y
            second[m, 1, 2] += y * z
            second[m, 2, 2] += z * z
            third[m, 0] += x * square
            third[m, 1] += y * square
            third[m, 2] += z * square
            fourth[m] += square * square
    for m in range(n_markers):
        per_frame = 1.0 / max(count[m], 1.0)
        fourth[m] *= per_frame
        for i in range(3):
            third[m, i] *= per_frame
            for j in range(i, 3):
                second[m, i, j] *= per_frame
                second[m, j, i] = second[m, i, j]
    return count, mean, second, third, fourth
