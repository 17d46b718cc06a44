"""Poses of weighted markers, and the prediction of a left-out marker, compiled."""

from typing import no_type_check

import numpy as np
from numba import njit

from marey.numerics.kabsch_kernel import fit_poses


@no_type_check
@njit(cache=True)
def weighted_poses(points, weight, n_iterations):
    """Return poses that follow weighted markers, whether or not these are rigid.

    Generalised Procrustes analysis: poses are fitted to a shape (Kabsch), and the shape
    is the mean over frames in these poses. The first shape is the frame that shows the
    largest weight.

    Args:
        points: (frame, marker, 3) positions, NaN where unseen.
        weight: (marker,) of each marker.
        n_iterations: Number of times that poses are fitted.
    """
    n_frames, n_markers, _ = points.shape
    weights = np.empty((n_frames, n_markers))
    best, largest = 0, -1.0
    for f in range(n_frames):
        total = 0.0
        for m in range(n_markers):
            weights[f, m] = weight[m]
            if np.isfinite(points[f, m, 0]):
                total += weight[m]
        if total > largest:
            best, largest = f, total
    shape = np.empty((n_frames, n_markers, 3))
    for f in range(n_frames):
        shape[f] = points[best]
    T = np.empty((n_frames, 4, 4))
    fit_poses(shape, points, weights, T)
    for _ in range(n_iterations - 1):
        mean = _mean_shape(points, T)
        for f in range(n_frames):
            shape[f] = mean
        fit_poses(shape, points, weights, T)
    return T


@no_type_check
@njit(cache=True)
def _mean_shape(points, T):
    """Return the mean position of each marker in the poses; NaN if never seen."""
    n_frames, n_markers, _ = points.shape
    mean = np.zeros((n_markers, 3))
    count = np.zeros(n_markers)
    for f in range(n_frames):
        if not np.isfinite(T[f, 0, 0]):
            continue
        for m in range(n_markers):
            if np.isfinite(points[f, m, 0]):
                count[m] += 1.0
                for i in range(3):
                    for k in range(3):
                        mean[m, i] += T[f, k, i] * (points[f, m, k] - T[f, k, 3])
    for m in range(n_markers):
        if count[m] > 0.0:
            mean[m] /= count[m]
        else:
            mean[m] = np.nan
    return mean


@no_type_check
@njit(cache=True)
def prediction_error(points, weight, target, n_iterations):
    """Return sum of squares and count of a marker's distances from its prediction.

    The prediction is the median position of the marker in the poses of the others.

    Args:
        points: (frame, marker, 3) the markers that predict.
        weight: (marker,) of each of them.
        target: (frame, 3) the marker that is predicted.
        n_iterations: See `weighted_poses`.
    """
    T = weighted_poses(points, weight, n_iterations)
    local = np.empty((len(T), 3))
    n = 0
    for f in range(len(T)):
        if np.isfinite(T[f, 0, 0]) and np.isfinite(target[f, 0]):
            for i in range(3):
                local[n, i] = 0.0
                for k in range(3):
                    local[n, i] += T[f, k, i] * (target[f, k] - T[f, k, 3])
            n += 1
    square = 0.0
    if n > 0:
        for i in range(3):
            square += np.sum((local[:n, i] - np.median(local[:n, i])) ** 2)
    return square, n
