"""Medians, compiled."""

# mypy: ignore-errors

import numpy as np

from marey.numerics.jit import lean


@lean
def median_of_five(a, b, c, d, e):
    """Return the median of five numbers."""
    low, high = max(min(a, b), min(c, d)), min(max(a, b), max(c, d))
    low, high = min(low, high), max(low, high)
    return max(low, min(e, high))


@lean
def median(values, buffer):
    """Return the median of the finite values; NaN where there are none."""
    count = 0
    for i in range(len(values)):
        if np.isfinite(values[i]):
            buffer[count] = values[i]
            count += 1
    if count == 0:
        return np.nan
    low = quickselect(buffer, count, (count - 1) // 2)
    if count % 2 == 1:
        return low
    # Larger values stand behind the lower median.
    high = np.inf
    for i in range(count // 2, count):
        high = min(high, buffer[i])
    return 0.5 * (low + high)


@lean
def quickselect(buffer, count, k):
    """Return the k-th smallest value (Hoare's quickselect); smaller ones precede it."""
    low, high = 0, count - 1
    while low < high:
        i, j = _partition(buffer, low, high, buffer[k])
        if j < k:
            low = i
        if k < i:
            high = j
    return buffer[k]


@lean
def _partition(buffer, low, high, pivot):
    """Swap values until those up to j are <= pivot and those from i on >= pivot."""
    i, j = low, high
    while i <= j:
        while buffer[i] < pivot:
            i += 1
        while buffer[j] > pivot:
            j -= 1
        if i <= j:
            buffer[i], buffer[j] = buffer[j], buffer[i]
            i, j = i + 1, j - 1
    return i, j
