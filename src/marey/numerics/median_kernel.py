"""Medians, compiled."""

from typing import no_type_check

import numpy as np

from marey.numerics.jit import lean


@no_type_check
@lean
def middle(a, b, c, d, e):
    """Return the median of five."""
    low, high = max(min(a, b), min(c, d)), min(max(a, b), max(c, d))
    low, high = min(low, high), max(low, high)
    return max(low, min(e, high))


@no_type_check
@lean
def median(values, room):
    """Return the median of the finite values; NaN where there are none."""
    count = 0
    for i in range(len(values)):
        if np.isfinite(values[i]):
            room[count] = values[i]
            count += 1
    if count == 0:
        return np.nan
    low = _selected(room, count, (count - 1) // 2)
    if count % 2 == 1:
        return low
    # What is above the lower middle stands behind it.
    high = np.inf
    for i in range(count // 2, count):
        high = min(high, room[i])
    return 0.5 * (low + high)


@no_type_check
@lean
def _selected(room, count, k):
    """Return the k-th smallest of the first values, smaller ones before it (Hoare)."""
    low, high = 0, count - 1
    while low < high:
        pivot = room[k]
        i, j = low, high
        while i <= j:
            while room[i] < pivot:
                i += 1
            while room[j] > pivot:
                j -= 1
            if i <= j:
                room[i], room[j] = room[j], room[i]
                i, j = i + 1, j - 1
        if j < k:
            low = i
        if k < i:
            high = j
    return room[k]
