"""The rounds of an algebraic sphere fit: a centre and a noise that agree, compiled."""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from marey.joints.sphere.symmetric_kernel import pseudo_inverse
from marey.numerics.arrays.new_kernel import zeros
from marey.numerics.arrays.reference_kernel import by_reference
from marey.numerics.jit import inner, lean, njit
from marey.numerics.vector3_kernel import largest_of, set_values


@by_reference
class MarkerMoments(NamedTuple):
    """Moments of each marker in the k directions of a basis, from a common origin."""

    count: np.ndarray  # (marker)
    mean: np.ndarray  # (marker, k)
    second: np.ndarray  # (marker, k, k)
    right: np.ndarray  # (marker, k): half the third moment + second @ mean
    third: np.ndarray  # (marker, k)
    trace: np.ndarray  # (marker): of the second moment in all three directions
    fourth: np.ndarray  # (marker)


class SquaredRadii(NamedTuple):
    """A centre, and mean and variance of the squared distances from it."""

    center: np.ndarray  # (k)
    square: np.ndarray  # (marker): mean of |x - c|^2
    scatter: np.ndarray  # (marker): variance of |x - c|^2 (Knight2007, Eq. 1)
    variance: np.ndarray  # (1): noise variance of one coordinate


@inner
def _solve_center(moments, subtracted, weight, rcond, fit):
    """Solve sum_j w_j (C_j - subtracted I) (c - mean_j) = sum_j w_j S_j / 2 for c."""
    n, k = moments.mean.shape
    A, b = zeros((k, k)), zeros(k)
    for m in range(n):
        for i in range(k):
            b[i] += weight[m] * (moments.right[m, i] - subtracted * moments.mean[m, i])
            A[i, i] -= weight[m] * subtracted
            for j in range(k):
                A[i, j] += weight[m] * moments.second[m, i, j]
    inverse = pseudo_inverse(A, rcond)
    for i in range(k):
        fit.center[i] = 0.0
        for j in range(k):
            fit.center[i] += inverse[i, j] * b[j]


@lean
def _measure_radii(moments, fit):
    r"""Write mean and variance of the squared radii, and the noise that explains them.

    Isotropic noise of variance s gives

    .. math:: \mathrm{var}|x - c|^2 = 4 R^2 s + 6 s^2, \quad
        \mathrm{mean}|x - c|^2 = R^2 + 3 s,

    which is solved for s.
    """
    n, k = moments.mean.shape
    total, freedom = 0.0, -float(k)
    for m in range(n):
        square, scatter = moments.trace[m], moments.fourth[m] - moments.trace[m] ** 2
        for i in range(k):
            d = fit.center[i] - moments.mean[m, i]
            square += d * d
            slope = -moments.third[m, i]
            for j in range(k):
                arm = fit.center[j] - moments.mean[m, j]
                slope += moments.second[m, i, j] * arm
            scatter += 4.0 * d * slope
        scatter = max(scatter, 0.0)
        fit.square[m], fit.scatter[m] = square, scatter
        root = np.sqrt(max(4.0 * square * square - 6.0 * scatter, 0.0))
        if 2.0 * square + root > 0.0:
            total += moments.count[m] * scatter / (2.0 * square + root)
        freedom += moments.count[m] - (1.0 if moments.count[m] > 0.0 else 0.0)
    fit.variance[0] = total / max(freedom, 1.0)


@inner
def _weight_radii(moments, fit, tiny_square_share, weight):
    """Write weights that make squared radii count as radii: 1 / R^2."""
    smallest = tiny_square_share * largest_of(fit.square)
    for m in range(len(weight)):
        weight[m] = moments.count[m] / max(fit.square[m], smallest)


@njit(cache=True, error_model="numpy")
def fit_squared_radii(moments, limits, max_rounds):
    """Return the centre that makes the squared radii vary least.

    Each further round subtracts the noise variance from the second moments, solves for
    the centre, and estimates the variance from the radii about that centre.

    Args:
        moments: The `MarkerMoments`.
        limits: The largest variance that is subtracted; the share of the largest
            squared radius below which weights no longer grow; the share of the
            largest eigenvalue below which one counts as zero.
        max_rounds: Rounds that remove the bias from the noise; 0 leaves it.
    """
    max_subtracted, tiny_square_share, rcond = limits
    n, k = moments.mean.shape
    fit = SquaredRadii(zeros(k), zeros(n), zeros(n), zeros(1))
    weight, before, last = moments.count.copy(), zeros(k), np.inf
    _solve_center(moments, 0.0, weight, rcond, fit)
    _measure_radii(moments, fit)
    for _ in range(max_rounds):
        set_values(before, fit.center)
        _weight_radii(moments, fit, tiny_square_share, weight)
        subtracted = min(fit.variance[0], max_subtracted)
        _solve_center(moments, subtracted, weight, rcond, fit)
        _measure_radii(moments, fit)
        step = 0.0
        for i in range(k):
            step += (fit.center[i] - before[i]) ** 2
        if step <= 1e-20 * largest_of(fit.square):
            break
        if step >= last:  # rounds that alternate meet in the middle
            for i in range(k):
                fit.center[i] = 0.5 * (fit.center[i] + before[i])
            _measure_radii(moments, fit)
        last = step
    return fit
