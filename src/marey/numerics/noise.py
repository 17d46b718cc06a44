"""How noisy positions are: the estimators that all stages share.

There are two quantities. Residuals of a fit contain all that the fit does not
explain: camera noise, motion of the skin, errors of the model. White noise is
independent from frame to frame; it alone remains in differences over time, in which
smooth motion nearly vanishes.

All estimates are per axis, do not depend on the axes of the world, and have the unit of
what is given (or its square).
"""

from math import comb, sqrt

import numpy as np

from marey.numerics import Array, Float
from marey.numerics.robust import (
    CHI2_3_MEDIAN,
    CHI2_3_TRUNCATED_MEAN,
    finite_median,
    normal_length_quantile,
)
from marey.numerics.thresholds import OUTLIER_SD

SMOOTH_ORDER = 4
"""Order of the differences over time in which smooth motion nearly vanishes. Raised,
faster motion vanishes, and fewer windows are without gaps. Chosen by hand."""


def rms_length(vectors: Float[Array, "*batch 3"]) -> float:
    """Return the root mean square length of the finite vectors; NaN if there are none.

    Residuals with the standard deviation s per axis have sqrt(3) s.
    """
    square = np.sum(vectors**2, axis=-1)
    finite = square[np.isfinite(square)]
    return float(np.sqrt(np.mean(finite))) if len(finite) else float("nan")


def median_variance(square: Float[Array, " value"]) -> float:
    r"""Return the variance per axis of 3-vectors from their squared lengths.

    .. math:: s^2 = \operatorname{median} |v|^2 / \operatorname{median} \chi^2_3

    Half of the vectors may be outliers. 0 if there are none.
    """
    return finite_median(square) / CHI2_3_MEDIAN


def trimmed_variance(square: Float[Array, " value"]) -> float:
    r"""Return the variance per axis of 3-vectors from their squared lengths.

    Lengths far beyond the median, :math:`|v| > 3 s`, are left out, and the mean of
    the rest is corrected for that. Nearly as precise as the mean if there are no
    outliers, and hardly changed by a few. 0 if there are none.
    """
    rough = median_variance(square)
    kept = square[square <= OUTLIER_SD**2 * rough]
    return float(kept.mean()) / CHI2_3_TRUNCATED_MEAN if len(kept) else rough


def quantile_sd(
    length: Float[Array, "value *item"], share: float
) -> Float[Array, "*item"]:
    r"""Return the standard deviation per axis of 3-vectors from their lengths.

    .. math:: s = Q_p(|v|) / Q_p(\chi_3)

    A share 1 - p of the vectors may be longer than noise makes them. 0 without any.

    Args:
        length: Lengths, all finite, in any unit.
        share: The share p of the vectors that are noise only, 0 to 1.
    """
    if not len(length):
        return np.zeros(length.shape[1:])
    quantile = np.quantile(length, share, axis=0)
    return np.asarray(quantile / normal_length_quantile(share))


def white_difference(
    x: Float[Array, "frame *item"], order: int, step: int = 1
) -> Float[Array, "window *item"]:
    r"""Return differences over time in which white noise keeps its variance.

    .. math:: d_n = \binom{2k}{k}^{-1/2} \sum_j (-1)^{k-j} \binom{k}{j} x_{n+j}

    Polynomials of a degree below the order vanish.

    Args:
        x: Values over frames, in any unit.
        order: How often differences are taken, :math:`k`.
        step: Frames from one difference to the next that is returned.
    """
    last = max(len(x) - order, 0)
    total = np.zeros_like(x[:last:step])
    for j in range(order + 1):
        total += (-1.0) ** (order - j) * comb(order, j) * x[j : j + last : step]
    total /= sqrt(comb(2 * order, order))
    return np.asarray(total)
