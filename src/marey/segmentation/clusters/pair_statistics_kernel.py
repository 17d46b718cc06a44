"""Distances of marker pairs over time, compiled."""

from typing import no_type_check

import numpy as np
from numba import njit, prange


@no_type_check
@njit(cache=True, parallel=True)
def pair_spreads(places, seen, pairs, n_blocks, low, high, width):
    """Return spread, median and frames in common of each pair's distance.

    The spread is the root mean square over blocks of time of two things: how far the
    block's median is from the middle one of all blocks, and how wide the block's
    quantiles are apart.

    Args:
        places: (marker, 3, frame) positions, anything where unseen.
        seen: (marker, frame) whether the marker was seen.
        pairs: (pair, 2) the markers of each pair.
        n_blocks: Blocks of equal length to cut the frames in.
        low: Quantile, 0 to 1.
        high: Quantile, 0 to 1.
        width: Standard deviations between the two.
    """
    spread, middle = np.full(len(pairs), np.nan), np.full(len(pairs), np.nan)
    count = np.zeros(len(pairs), dtype=np.int64)
    for k in prange(len(pairs)):
        i, j = pairs[k]
        buffer = np.empty(places.shape[2])
        n = _distances(places[i], places[j], seen[i], seen[j], buffer)
        count[k] = n
        if n > 0:
            spread[k], middle[k] = _spread(buffer[:n], n_blocks, low, high, width)
    return spread, middle, count


@no_type_check
@njit(cache=True)
def _spread(distances, n_blocks, low, high, width):
    n, total = len(distances), 0.0
    medians = np.full(n_blocks, np.inf)
    for b in range(n_blocks):
        part = distances[b * n // n_blocks : (b + 1) * n // n_blocks]
        m = len(part)
        if m > 0:
            _sort(part)
            wide = part[int(high * (m - 1) + 0.5)] - part[int(low * (m - 1) + 0.5)]
            total += m * (wide / width) ** 2
            medians[b] = part[m // 2]
    center = np.sort(medians)[min(n, n_blocks) // 2]
    for b in range(n_blocks):
        m = (b + 1) * n // n_blocks - b * n // n_blocks
        if m > 0:
            total += m * (medians[b] - center) ** 2
    return np.sqrt(total / n), center


@no_type_check
@njit(cache=True)
def _distances(a, b, seen_a, seen_b, out):
    n = 0
    for f in range(len(out)):
        if seen_a[f] and seen_b[f]:
            x, y, z = a[0, f] - b[0, f], a[1, f] - b[1, f], a[2, f] - b[2, f]
            out[n] = np.sqrt(x * x + y * y + z * z)
            n += 1
    return n


@no_type_check
@njit(cache=True)
def _sort(values):
    """Sort few values in place, by insertion."""
    for i in range(1, len(values)):
        value = values[i]
        j = i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@no_type_check
@njit(cache=True, parallel=True, fastmath={"reassoc", "contract", "nsz"})
def pair_moments(places, seen, pairs, step):
    """Return mean and standard deviation of each pair's distance over all frames.

    Args:
        places: (marker, 3, frame) single-precision positions, zero where unseen.
        seen: (marker, frame) one where the marker was seen, else zero.
        pairs: (pair, 2) the markers of each pair.
        step: Frames that are summed in single precision before double.
    """
    n_frames = places.shape[2]
    mean, sd = np.full(len(pairs), np.nan), np.full(len(pairs), np.nan)
    for k in prange(len(pairs)):
        i, j = pairs[k]
        start = _first_distance(places[i], places[j], seen[i], seen[j])
        count, total, square = 0.0, 0.0, 0.0
        for first in range(0, n_frames, step):
            last = min(first + step, n_frames)
            n, one, two = _sums(
                places[i, :, first:last],
                places[j, :, first:last],
                seen[i, first:last],
                seen[j, first:last],
                start,
            )
            count += n
            total += one
            square += two
        if count > 0.0:
            off = total / count
            mean[k] = start + off
            sd[k] = np.sqrt(max(square / count - off * off, 0.0))
    return mean, sd


@no_type_check
@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _sums(a, b, seen_a, seen_b, start):
    n, one, two = np.float32(0), np.float32(0), np.float32(0)
    ax, ay, az, bx, by, bz = a[0], a[1], a[2], b[0], b[1], b[2]
    for f in range(len(seen_a)):
        x, y, z = ax[f] - bx[f], ay[f] - by[f], az[f] - bz[f]
        w = seen_a[f] * seen_b[f]
        d = (np.sqrt(x * x + y * y + z * z) - start) * w
        n += w
        one += d
        two += d * d
    return n, one, two


@no_type_check
@njit(cache=True)
def _first_distance(a, b, seen_a, seen_b):
    for f in range(len(seen_a)):
        if seen_a[f] * seen_b[f] > 0:
            x, y, z = a[0, f] - b[0, f], a[1, f] - b[1, f], a[2, f] - b[2, f]
            return np.sqrt(x * x + y * y + z * z)
    return np.float32(0)
