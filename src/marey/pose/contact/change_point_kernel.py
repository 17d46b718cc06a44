"""Change points of paths, compiled: when a planted point begins to leave."""

# mypy: ignore-errors

import numpy as np

from marey.numerics.arrays.new_kernel import empty
from marey.numerics.jit import njit
from marey.numerics.vector3_kernel import set_vector


@njit(cache=True)
def fit_change_points(positions, weights, point, first, last, step):
    """Return (path, 4): edge, explained and residual mean square, known frames.

    See `foot_plants._find_departures` for the model. The edge is the
    one on a grid that explains most; NaN if fewer than three frames are known.

    Args:
        positions: (frame, point, 3) positions in metres.
        weights: (frame, point) weight of each position.
        point: (path,) index of the point of each path.
        first: (path,) first frame.
        last: (path,) last frame.
        step: Distance of two edges of the grid, in frames.
    """
    found = empty((len(point), 4))
    longest = 0
    for path in range(len(point)):
        longest = max(longest, last[path] - first[path] + 1)
    frames, weight = empty(longest), empty(longest)
    centred = empty((longest, 3))
    for path in range(len(point)):
        n_known, total = 0, 0.0
        for frame in range(first[path], last[path] + 1):
            position = positions[frame, point[path]]
            if np.isfinite(position[0] + position[1] + position[2]):
                frames[n_known] = frame
                weight[n_known] = weights[frame, point[path]]
                set_vector(centred[n_known], position)
                total += weight[n_known]
                n_known += 1
        edge, explained, residual = np.nan, 0.0, 0.0
        if n_known > 2:
            for k in range(n_known):
                weight[k] /= total
            edge, explained, residual = _best_edge(
                frames[:n_known], weight[:n_known], centred[:n_known], step
            )
        found[path, 0], found[path, 1] = edge, explained
        found[path, 2], found[path, 3] = residual, n_known
    return found


@njit(cache=True)
def _best_edge(frames, weight, centred, step):
    """Return the best edge, and the mean squares that it explains and leaves."""
    total = 0.0
    for axis in range(3):
        mean = 0.0
        for k in range(len(frames)):
            mean += weight[k] * centred[k, axis]
        for k in range(len(frames)):
            centred[k, axis] -= mean
            total += weight[k] * centred[k, axis] ** 2
    best, most = np.nan, -np.inf
    n_edges = int(np.ceil((frames[-1] - frames[0] - 2.0) / step)) + 1
    for edge in range(n_edges):
        start = frames[0] + 1.0 + edge * step
        explained = _explained(frames, weight, centred, start)
        if explained > most:
            best, most = start, explained
    return best, most, total - most


@njit(cache=True)
def _explained(frames, weight, centred, start):
    """Return the mean square that a curve from one edge explains."""
    mean, square, x, y, z = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(len(frames)):
        since = frames[k] - start
        if since > 0.0:
            curve = since * since * since
            share = weight[k] * curve
            mean += share
            square += share * curve
            x += share * centred[k, 0]
            y += share * centred[k, 1]
            z += share * centred[k, 2]
    variance = max(square - mean * mean, 1e-30)
    return (x * x + y * y + z * z) / variance
