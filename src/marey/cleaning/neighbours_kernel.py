"""Rigid motions of neighbours by iteratively reweighted least squares, compiled."""

# mypy: ignore-errors

from marey.numerics.jit import NO_WRAPPERS, njit
from marey.numerics.kabsch_kernel import fit_poses


@njit(cache=True)
def fit_motions(old, new, prior_weight, largest, smallest, T):
    """Fill T (query, 4, 4) with the motions of neighbours; NaN where undetermined.

    Args:
        old: (query, neighbour, 3) positions before, in metres.
        new: The positions after.
        prior_weight: (query, neighbour) weights of the first fit; 0 if not used.
        largest: (iteration, query) scale of the Geman-McClure loss after each fit but
            the last, in metres.
        smallest: (query, neighbour) bound below which it does not decrease.
        T: Gets the motions.
    """
    weight = prior_weight.copy()
    fit_poses(old, new, weight, T)
    for iteration in range(len(largest)):
        for n in range(len(old)):
            for i in range(old.shape[1]):
                if prior_weight[n, i] > 0.0:
                    scale = max(largest[iteration, n], smallest[n, i])
                    square = _squared_residual(T[n], old[n, i], new[n, i])
                    ratio = 1.0 + square / (scale * scale)
                    weight[n, i] = prior_weight[n, i] / (ratio * ratio)
        fit_poses(old, new, weight, T)


@njit(cache=True, **NO_WRAPPERS)
def _squared_residual(T, old, new):
    """Return the squared distance of a moved point from where it should be."""
    total = 0.0
    for k in range(3):
        moved = T[k, 0] * old[0] + T[k, 1] * old[1] + T[k, 2] * old[2] + T[k, 3]
        total += (moved - new[k]) ** 2
    return total


@njit(cache=True)
def write_scatter(positions, is_used, scatter):
    """Write the sums of squares and products of the positions about their mean.

    Args:
        positions: (query, neighbour, 3) in metres.
        is_used: (query, neighbour) whether a position counts.
        scatter: (query, 3, 3) gets the sums, in m^2.
    """
    for n in range(len(positions)):
        mean = _mean_used(positions[n], is_used[n])
        for j in range(3):
            for k in range(3):
                products = 0.0
                for i in range(positions.shape[1]):
                    if is_used[n, i]:
                        first = positions[n, i, j] - mean[j]
                        products += first * (positions[n, i, k] - mean[k])
                scatter[n, j, k] = products


@njit(cache=True, **NO_WRAPPERS)
def _mean_used(positions, is_used):
    """Return the mean of the positions that count, zero if there are none."""
    count, x, y, z = 0, 0.0, 0.0, 0.0
    for i in range(len(positions)):
        if is_used[i]:
            count += 1
            x += positions[i, 0]
            y += positions[i, 1]
            z += positions[i, 2]
    share = 1.0 / max(count, 1)
    return share * x, share * y, share * z
