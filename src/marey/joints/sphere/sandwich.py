"""Sandwich covariance of an estimate from the influence of every frame."""

import numpy as np

from marey.numerics import Float

MAX_WINDOWS = 64
"""Number of windows into which the frames are divided. Higher makes windows shorter
and misses noise that lasts longer. Chosen by hand."""

MIN_EXCESS_SIGMAS = 2.0
"""Standard deviations by which the variance of windows must exceed that of single
frames to be used. Higher ignores weaker correlations. Chosen by hand."""


def sandwich_covariance(
    influence: Float[np.ndarray, "frame n"],
) -> Float[np.ndarray, "n n"]:
    """Return the covariance of the sum of the influences of all frames.

    The empirical (sandwich) covariance: the sum of the outer products of the
    influences of single frames or, if significantly larger, of sums over windows of
    consecutive frames (overlapping batch means), which accounts for noise that is
    correlated in time. Frames of zero influence count as occluded.
    """
    from marey.joints.sphere.sandwich_kernel import sum_influences  # numba is slow

    size = influence.shape[1]
    limit = 1.0 + MIN_EXCESS_SIGMAS * np.sqrt(2.0 / (size * MAX_WINDOWS))
    influence = np.ascontiguousarray(influence)
    return np.asarray(sum_influences(influence, MAX_WINDOWS, limit))
