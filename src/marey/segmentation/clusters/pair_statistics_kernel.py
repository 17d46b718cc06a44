"""Statistics of the distances of marker pairs over time, compiled."""

# mypy: ignore-errors

import numpy as np

from marey.numerics.arrays.new_kernel import empty
from marey.numerics.jit import NO_WRAPPERS, njit
from marey.numerics.median_kernel import select_between


@njit(cache=True, nogil=True)
def pair_spreads(positions, seen, pairs, median_frames, n_blocks, low, high, width):
    """Return spread, median and number of common frames of each pair's distance.

    Args:
        positions: (marker, 3, frame) in metres, arbitrary where unseen: for each
            sample the consecutive frames of the median filter.
        seen: (marker, frame) whether the marker was seen.
        pairs: (pair, 2) the markers of each pair.
        median_frames: Frames of the median filter of the distances.
        n_blocks: Number of blocks of equal length that the frames are divided into. A
            frame on a bound belongs to both blocks, so that time has no direction.
        low: Lower quantile, 0 to 1.
        high: Upper quantile, 0 to 1.
        width: Standard deviations between the two quantiles.
    """
    spread, median = empty(len(pairs)), empty(len(pairs))
    n_common = np.zeros(len(pairs), dtype=np.int64)
    buffer = empty(positions.shape[2] // median_frames)
    for k in range(len(pairs)):
        i, j = pairs[k]
        n = _distances(
            positions[i], positions[j], seen[i], seen[j], median_frames, buffer
        )
        n_common[k] = n
        spread[k], median[k] = np.nan, np.nan
        if n > 0:
            spread[k], median[k] = _block_spread(buffer[:n], n_blocks, low, high, width)
    return spread, median, n_common


@njit(cache=True, **NO_WRAPPERS)
def _block_spread(distances, n_blocks, low, high, width):
    """Return the root mean square spread of the blocks, and the median of medians.

    Of each block two squares count: the range of its quantiles in standard deviations,
    and the distance of its median from the median of all blocks.
    """
    n, total, count = len(distances), 0.0, 0
    medians, ordered = empty(n_blocks), empty(n_blocks)
    buffer = empty(n)
    for b in range(n_blocks):
        first, end = b * n // n_blocks, -(-(b + 1) * n // n_blocks)
        m = end - first
        for f in range(m):
            buffer[f] = distances[first + f]
        middle, last = m // 2, m - 1
        medians[b] = select_between(buffer, 0, last, middle)
        # Smaller values stand before the median, larger ones behind it.
        least = select_between(buffer, 0, middle, int(low * last + 0.5))
        span = select_between(buffer, middle, last, int(high * last + 0.5)) - least
        total += m * (span / width) ** 2
        count += m
    for b in range(n_blocks):
        ordered[b] = medians[b]
    center = select_between(ordered, 0, n_blocks - 1, n_blocks // 2)
    for b in range(n_blocks):
        m = -(-(b + 1) * n // n_blocks) - b * n // n_blocks
        total += m * (medians[b] - center) ** 2
    return np.sqrt(total / count), center


@njit(cache=True, **NO_WRAPPERS)
def _distances(a, b, seen_a, seen_b, median_frames, out):
    """Write the median distance of each sample's common frames; return their number.

    A sample counts if its middle frame shows both markers.
    """
    n, near = 0, empty(median_frames)
    for k in range(len(out)):
        first = k * median_frames
        middle = first + median_frames // 2
        if not (seen_a[middle] and seen_b[middle]):
            continue
        m = 0
        for f in range(first, first + median_frames):
            if seen_a[f] and seen_b[f]:
                x, y, z = a[0, f] - b[0, f], a[1, f] - b[1, f], a[2, f] - b[2, f]
                near[m] = np.sqrt(x * x + y * y + z * z)
                m += 1
        out[n] = _median_of_few(near, m)
        n += 1
    return n


@njit(cache=True, **NO_WRAPPERS)
def _median_of_few(values, n):
    """Return the median of the first values, which are sorted in place."""
    for i in range(1, n):
        value, j = values[i], i - 1
        while j >= 0 and values[j] > value:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value
    return 0.5 * (values[(n - 1) // 2] + values[n // 2])
