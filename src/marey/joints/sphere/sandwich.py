"""Sandwich covariance of an estimate from the influence of every frame."""

import numpy as np
from jaxtyping import Float

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
    influence = influence[np.einsum("fi->f", np.abs(influence)) > 0.0]
    n, size = influence.shape
    if n == 0:
        return np.zeros((size, size))
    # The fit uses up degrees of freedom: its residuals are too small by that factor.
    used = size + 1
    single = n / max(n - used, 1) * influence.T @ influence
    length = -(-n // MAX_WINDOWS)
    total = np.concatenate([np.zeros((1, size)), np.cumsum(influence, axis=0)])
    sums = total[length:] - total[:-length]
    share = n / (length * len(sums)) * n / max(n - used * length, length)
    windowed = share * sums.T @ sums
    inverse = np.linalg.pinv(single, rcond=1e-12, hermitian=True)
    ratio = np.trace(np.asarray(inverse) @ windowed) / size
    limit = 1.0 + MIN_EXCESS_SIGMAS * np.sqrt(2.0 / (size * MAX_WINDOWS))
    return np.asarray(windowed if ratio > limit else single)
