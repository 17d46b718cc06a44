"""The turns of shape and poses of `rigid.fit_rigid`, compiled."""

from typing import no_type_check

import numpy as np
from numba import njit

from marey.numerics.jit import lean
from marey.numerics.kabsch_kernel import fit_pose, scratch
from marey.numerics.median_kernel import median

KEPT, MEDIANS, MEANS = range(3)

# The median of a squared length in three dimensions is 0.79 of its mean.
MEDIAN = 0.79

# Squared, of the largest coordinate of a shape: rounding.
ROUNDING = 1e-24

# Share of its weight that a position keeps however far off it is: where all but one
# are, those still tell how the body is turned.
LEAST = 1e-12


@no_type_check
@njit(cache=True)
def settle(points, own, shape, weight, T, turns, outlier):
    """Fit shape (marker, 3) and poses T (frame, 4, 4) in turn, in place.

    Each of the turns says how the shape comes from the poses: KEPT as it is, MEDIANS,
    or MEANS by weight. Weights (frame, marker) are those that belong to T.
    """
    local = np.empty(points.shape)
    off = np.empty((points.shape[1], points.shape[0]))
    room = np.empty(points.shape[0])
    typical = np.empty(points.shape[1])
    work = scratch()
    for turn in turns:
        carry_back(T, points, local)
        if turn == MEDIANS:
            take_medians(local, room, shape)
        elif turn == MEANS:
            _take_means(local, weight, shape)
        _measure(local, shape, off)
        for i in range(len(typical)):
            typical[i] = median(off[i], room) / MEDIAN
        _weigh(off, typical, own, outlier, shape, weight)
        for n in range(len(T)):
            fit_pose(shape, points[n], weight[n], work, T[n])


@no_type_check
@njit(cache=True)
def carry_back(T, points, out):
    """Fill out (n, m, 3) with R^T (p - t): point sets as seen from the poses T."""
    for n in range(points.shape[0]):
        for i in range(points.shape[1]):
            x = points[n, i, 0] - T[n, 0, 3]
            y = points[n, i, 1] - T[n, 1, 3]
            z = points[n, i, 2] - T[n, 2, 3]
            for k in range(3):
                out[n, i, k] = T[n, 0, k] * x + T[n, 1, k] * y + T[n, 2, k] * z


@no_type_check
@njit(cache=True)
def take_medians(local, room, shape):
    """Fill the places (marker, 3) with the medians of where they were seen."""
    for i in range(shape.shape[0]):
        for k in range(3):
            shape[i, k] = median(local[:, i, k], room)


@no_type_check
@lean
def _take_means(local, weight, shape):
    """Fill the places with the means, by weight, of where they were seen."""
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


@no_type_check
@lean
def _measure(local, shape, off):
    """Fill off (marker, frame) with the squared distances from the places."""
    for n in range(local.shape[0]):
        for i in range(shape.shape[0]):
            x = local[n, i, 0] - shape[i, 0]
            y = local[n, i, 1] - shape[i, 1]
            z = local[n, i, 2] - shape[i, 2]
            off[i, n] = x * x + y * y + z * z


@no_type_check
@lean
def _weigh(off, typical, own, outlier, shape, weight):
    """Fill the weight of each position by its squared distance from its place.

    Markers count by how well they keep their places, and single positions far off
    (Geman-McClure) hardly count.
    """
    largest, total, count = 0.0, 0.0, 0
    for i in range(len(typical)):
        for k in range(3):
            if abs(shape[i, k]) > largest:
                largest = abs(shape[i, k])
        if np.isfinite(typical[i]):
            total, count = total + typical[i], count + 1
    usual = ROUNDING * largest * largest + np.finfo(np.float64).tiny
    if count > 0 and total / count > usual:
        usual = total / count
    for i in range(len(typical)):
        # Half the usual: with few markers the fit flatters some at the others' expense.
        variance = 0.5 * (typical[i] + usual)
        scale, far = own[i] * usual / variance, 1.0 / (outlier * outlier * variance)
        for n in range(off.shape[1]):
            slack = 1.0 + off[i, n] * far
            trust = max(1.0 / (slack * slack), LEAST)
            weight[n, i] = scale * trust if np.isfinite(slack) else 0.0
