"""Deviations and medians of steps, compiled."""

from typing import no_type_check

import numpy as np
from numba import njit

from marey.numerics.median_kernel import median, median_of_five


@no_type_check
@njit(cache=True)
def step_deviations(step):
    """Return the distance of each step from the median of the five steps around it.

    Beyond the ends steps are mirrored.
    """
    out, last = np.empty(len(step)), len(step) - 1
    for k in range(len(step)):
        a, b = min(abs(k - 2), last), min(abs(k - 1), last)
        d, e = max(last - abs(last - k - 1), 0), max(last - abs(last - k - 2), 0)
        square = 0.0
        for i in range(step.shape[1]):
            c = step[k, i]
            difference = c - median_of_five(
                step[a, i], step[b, i], c, step[d, i], step[e, i]
            )
            square += difference * difference
        out[k] = np.sqrt(square)
    return out


@no_type_check
@njit(cache=True)
def second_differences(points, marker, start, end):
    """Return the length of each second difference of positions; infinite if unknown.

    It is known for a step of one frame that follows a step of one frame.
    """
    out = np.full(len(marker), np.inf)
    for k in range(len(marker)):
        i, now, then, before = marker[k], end[k], start[k], start[k - 1]
        if k == 0 or marker[k - 1] != i or now - then != 1 or then - before != 1:
            continue
        square = 0.0
        for x in range(3):
            second = points[now, i, x] - 2.0 * points[then, i, x] + points[before, i, x]
            square += second * second
        out[k] = np.sqrt(square)
    return out


@no_type_check
@njit(cache=True)
def marker_medians(values, marker, n_markers):
    """Return the median of each marker's finite values; zero where it has none.

    The values are sorted by marker.
    """
    out, scratch = np.empty(n_markers), np.empty(len(values))
    last = 0
    for i in range(n_markers):
        first = last
        while last < len(marker) and marker[last] == i:
            last += 1
        value = median(values[first:last], scratch)
        out[i] = value if np.isfinite(value) else 0.0
    return out
