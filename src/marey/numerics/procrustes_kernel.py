"""The alternation between shape and poses of `procrustes.fit_rigid`, compiled."""

# mypy: ignore-errors

import numpy as np

from marey.numerics.arrays.new_kernel import empty
from marey.numerics.jit import lean, njit
from marey.numerics.kabsch_kernel import fit_side_by_side, lanes_room, scratch
from marey.numerics.median_kernel import median

KEPT, MEDIANS, MEANS = range(3)

# Smallest variance of a marker, as a share of the squared size of the shape: rounding.
ROUNDING = 1e-24

# Smallest weight of an outlier: where all positions but one are outliers, they still
# determine the rotation.
MIN_WEIGHT = 1e-12


@njit(cache=True)
def alternate(points, shape, weight, T, estimators, outlier_sd, median_over_mean):
    """Fit shape (marker, 3) and poses T (frame, 4, 4) alternately, in place.

    One iteration per entry of `estimators`, which says how the shape is estimated from
    the poses: KEPT as it is, by MEDIANS, or by weighted MEANS. The weights (frame,
    marker) belong to T. `median_over_mean` is that of squared residuals without
    outliers.
    """
    local = empty(points.shape)
    square = empty((points.shape[1], points.shape[0]))
    buffer = empty(points.shape[0])
    variance = empty(points.shape[1])
    room, work = lanes_room(points.shape[1]), scratch()
    one_shape = shape.reshape((1, *shape.shape))
    for estimator in estimators:
        to_body(T, points, local)
        if estimator == MEDIANS:
            fill_medians(local, buffer, shape)
        elif estimator == MEANS:
            _fill_means(local, weight, shape)
        _fill_squares(local, shape, square)
        for i in range(len(variance)):
            variance[i] = median(square[i], buffer) / median_over_mean
        _fill_weights(square, variance, outlier_sd, shape, weight)
        fit_side_by_side(one_shape, points, weight, room, work, T)


@njit(cache=True)
def to_body(T, points, out):
    """Fill out (n, m, 3) with R^T (p - t): points in the coordinates of the body."""
    for n in range(points.shape[0]):
        for i in range(points.shape[1]):
            x = points[n, i, 0] - T[n, 0, 3]
            y = points[n, i, 1] - T[n, 1, 3]
            z = points[n, i, 2] - T[n, 2, 3]
            for k in range(3):
                out[n, i, k] = T[n, 0, k] * x + T[n, 1, k] * y + T[n, 2, k] * z


@njit(cache=True)
def fill_medians(local, buffer, shape):
    """Fill the shape (marker, 3) with the median positions."""
    for i in range(shape.shape[0]):
        for k in range(3):
            shape[i, k] = median(local[:, i, k], buffer)


@lean
def _fill_means(local, weight, shape):
    """Fill the shape with the weighted mean positions."""
    for i in range(shape.shape[0]):
        total = x = y = z = 0.0
        for n in range(local.shape[0]):
            if np.isfinite(local[n, i, 0]):
                w = weight[n, i]
                total += w
                x += w * local[n, i, 0]
                y += w * local[n, i, 1]
                z += w * local[n, i, 2]
        total = total if total > 0.0 else np.nan
        shape[i, 0], shape[i, 1], shape[i, 2] = x / total, y / total, z / total


@lean
def _fill_squares(local, shape, square):
    """Fill square (marker, frame) with the squared residuals."""
    for n in range(local.shape[0]):
        for i in range(shape.shape[0]):
            x = local[n, i, 0] - shape[i, 0]
            y = local[n, i, 1] - shape[i, 1]
            z = local[n, i, 2] - shape[i, 2]
            square[i, n] = x * x + y * y + z * z


@lean
def _mean_variance(variance, shape):
    """Return the mean of the finite variances, no less than rounding of positions."""
    largest, total, count = 0.0, 0.0, 0
    for i in range(len(variance)):
        for k in range(3):
            if abs(shape[i, k]) > largest:
                largest = abs(shape[i, k])
        if np.isfinite(variance[i]):
            total, count = total + variance[i], count + 1
    rounding = ROUNDING * largest * largest + np.finfo(np.float64).tiny
    return max(total / max(count, 1), rounding)


@lean
def _fill_weights(square, variance, outlier_sd, shape, weight):
    """Fill the weight of each position: inverse variance times Geman-McClure weight.

    w = (mean variance / variance_i) / (1 + r^2 / (outlier_sd^2 variance_i))^2.
    """
    mean = _mean_variance(variance, shape)
    for i in range(len(variance)):
        # Shrunk halfway to the mean: with few markers the fit passes too close to some.
        shrunk = 0.5 * (variance[i] + mean)
        scale = mean / shrunk
        inverse = 1.0 / (outlier_sd * outlier_sd * shrunk)
        for n in range(square.shape[1]):
            ratio = 1.0 + square[i, n] * inverse
            robust = max(1.0 / (ratio * ratio), MIN_WEIGHT)
            weight[n, i] = scale * robust if np.isfinite(ratio) else 0.0
