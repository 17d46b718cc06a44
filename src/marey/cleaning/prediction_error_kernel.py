"""Steps of markers, compiled: how sudden they are, and what is usual."""

from typing import no_type_check

import numpy as np
from numba import njit

from marey.numerics.median_kernel import median, median_of_five


@no_type_check
@njit(cache=True)
def sudden(step, out):
    """Write how far each step is from the median of the five around it.

    Beyond the ends steps are mirrored.
    """
    n, last = len(step), len(step) - 1
    for k in range(n):
        a, b = min(abs(k - 2), last), min(abs(k - 1), last)
        d, e = max(last - abs(last - k - 1), 0), max(last - abs(last - k - 2), 0)
        square = 0.0
        for i in range(step.shape[1]):
            here = step[k, i]
            off = here - median_of_five(step[a, i], step[b, i], here, step[d, i], step[e, i])
            square += off * off
        out[k] = np.sqrt(square)


@no_type_check
@njit(cache=True)
def bends(points, marker, start, end, out):
    """Write how much each step differs from the one before; infinite if unknown."""
    for k in range(len(out)):
        out[k] = np.inf
        i, now, then, before = marker[k], end[k], start[k], start[k - 1]
        if k == 0 or marker[k - 1] != i or now - then != 1 or then - before != 1:
            continue
        square = 0.0
        for x in range(3):
            bend = points[now, i, x] - 2.0 * points[then, i, x] + points[before, i, x]
            square += bend * bend
        out[k] = np.sqrt(square)


@no_type_check
@njit(cache=True)
def medians(values, marker, out):
    """Write the median of each marker's finite values; zero where it has none."""
    room = np.empty(len(values))
    last = 0
    for i in range(len(out)):
        first = last
        while last < len(marker) and marker[last] == i:
            last += 1
        found = median(values[first:last], room)
        out[i] = found if np.isfinite(found) else 0.0
