"""Rigid motions of neighbours by iteratively reweighted least squares, compiled."""

# mypy: ignore-errors

from marey.numerics.arrays.new_kernel import empty
from marey.numerics.jit import NO_WRAPPERS, njit
from marey.numerics.kabsch_kernel import fit_pose, scratch
from marey.numerics.vector3_kernel import set_values


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
    work, weight = scratch(), empty(old.shape[1])
    for n in range(len(old)):
        set_values(weight, prior_weight[n])
        for iteration in range(len(largest)):
            fit_pose(old[n], new[n], weight, work, T[n])
            for i in range(len(weight)):
                if prior_weight[n, i] > 0.0:
                    scale = max(largest[iteration, n], smallest[n, i])
                    square = _squared_residual(T[n], old[n, i], new[n, i])
                    ratio = 1.0 + square / (scale * scale)
                    weight[i] = prior_weight[n, i] / (ratio * ratio)
        fit_pose(old[n], new[n], weight, work, T[n])


@njit(cache=True, **NO_WRAPPERS)
def _squared_residual(T, old, new):
    """Return the squared distance of a moved point from where it should be."""
    total = 0.0
    for k in range(3):
        moved = T[k, 0] * old[0] + T[k, 1] * old[1] + T[k, 2] * old[2] + T[k, 3]
        total += (moved - new[k]) ** 2
    return total
