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
    return select_between(buffer, 0, count - 1, k)


@lean
def select_between(buffer, low, high, k):
    """Return the value that belongs to place k, which is not outside of two places.

    Values between these two are sorted so far that smaller ones precede it.
    """
    while low < high:
        _median_of_three_last(buffer, low, high)
        pivot = buffer[high]
        middle = _partition(buffer, low, high, pivot)
        buffer[high], buffer[middle] = buffer[middle], pivot
        if k < middle:
            high = middle - 1
        elif k == middle:
            break
        elif middle > low:
            low = middle + 1
        else:  # nothing is smaller than the pivot
            low = _pass_over_equal(buffer, low, high, pivot)
            if k < low:
                break
    return buffer[k]


@lean
def _median_of_three_last(buffer, low, high):
    """Bring the median of the first, the middle and the last value to the end."""
    middle = (low + high) // 2
    a, b, c = buffer[low], buffer[middle], buffer[high]
    if (a < b) == (b < c):
        buffer[middle], buffer[high] = c, b
    elif (b < a) == (a < c):
        buffer[low], buffer[high] = c, a


@lean
def _pass_over_equal(buffer, low, high, pivot):
    """Bring values up to the pivot to the front; return the place after them."""
    middle = low
    for i in range(low, high + 1):
        value = buffer[i]
        buffer[i] = buffer[middle]
        buffer[middle] = value
        middle += 1 if value <= pivot else 0
    return middle


@lean
def _partition(buffer, low, high, pivot):
    """Bring values below the pivot to the front; return the place after them.

    Lomuto's partition without branches, which a CPU would mispredict half of the time.
    """
    middle = low
    for i in range(low, high):
        value = buffer[i]
        buffer[i] = buffer[middle]
        buffer[middle] = value
        middle += 1 if value < pivot else 0
    return middle
