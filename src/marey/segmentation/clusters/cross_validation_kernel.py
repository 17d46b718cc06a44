"""Where hidden markers are foretold to be, compiled."""

from typing import no_type_check

import numpy as np
from numba import njit

from marey.numerics.kabsch_kernel import fit_poses


@no_type_check
@njit(cache=True)
def soft_poses(points, weight, rounds):
    """Return poses that follow markers by their weights, whatever their shape does.

    Args:
        points: (frame, marker, 3) positions, NaN where unseen.
        weight: (marker,) how much each counts.
        rounds: Times that shape and poses are found from each other.
    """
    n_frames, n_markers, _ = points.shape
    weights = np.empty((n_frames, n_markers))
    best, most = 0, -1.0
    for f in range(n_frames):
        total = 0.0
        for m in range(n_markers):
            weights[f, m] = weight[m]
            if np.isfinite(points[f, m, 0]):
                total += weight[m]
        if total > most:
            best, most = f, total
    shape = np.empty((n_frames, n_markers, 3))
    for f in range(n_frames):
        shape[f] = points[best]
    T = np.empty((n_frames, 4, 4))
    fit_poses(shape, points, weights, T)
    for _ in range(rounds - 1):
        mean = _mean_shape(points, T)
        for f in range(n_frames):
            shape[f] = mean
        fit_poses(shape, points, weights, T)
    return T


@no_type_check
@njit(cache=True)
def _mean_shape(points, T):
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
def stray(points, weight, target, rounds):
    """Return the summed square and count of a marker's distances from its median place.

    Args:
        points: (frame, marker, 3) the markers that foretell.
        weight: (marker,) how much each counts.
        target: (frame, 3) the marker that is foretold.
        rounds: See `soft_poses`.
    """
    T = soft_poses(points, weight, rounds)
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
