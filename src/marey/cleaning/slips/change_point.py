"""Statistics of a change point: a series whose mean changes once.

A slip is a change of mean. Slow noise changes the mean too, so a change is compared
with the long-run variance of the noise.
"""

from math import lgamma, log

import numpy as np

from marey.cleaning.arrays import Array, Path
from marey.errors import OptionError
from marey.numerics.noise import trimmed_variance, white_difference
from marey.numerics.thresholds import MIN_SAMPLES

FALSE_ALARM_LEVEL = 1e-4
"""Probability of a false alarm per take, by theory. With slow noise, whose variance one
take determines badly, up to two takes in a hundred have one. Higher finds smaller
slips. Chosen by hand."""

MIN_SIDE_FRAMES = 2 * MIN_SAMPLES
"""Frames before and after a slip below which it is not searched for. Higher misses
slips near the ends. Chosen by hand."""

ROUNDING_SD_M = 1e-6
"""Standard deviation per frame, in metres, below which residuals are rounding
errors."""

MAX_SLIPS = 3
"""Slips per body after which it is loose and the search ends. Higher undoes more slips
of loose bodies. Chosen by hand."""

TINY_MARGIN = 1e-9
"""Smallest share of the frames that are left out at either end."""

ADVICE = "fasten it better or record again"
"""What to do about a slip, for its finding."""

MIN_BATCHES = 6
"""Batches up to which no variance is estimated. Higher gives false alarms in short
takes, because slow noise is not seen. Chosen by hand."""

MODEL_ERROR = 0.05
"""Relative error of the noise model. Higher weights batch lengths more equally. Chosen
by hand; without it the variance of slow noise in a test is wrong by a quarter."""

MIN_CORRELATION_FRAMES = 2.0
"""Shortest correlation time that is tried, in frames. Chosen by hand."""

MAX_CORRELATION_SHARE = 0.5
"""Longest correlation time that is tried, as a share of the longest batch. Chosen by
hand."""

WHITE_PRIOR_ODDS = 10.0
"""Prior odds of white noise against all correlation times tried. Higher gives smaller
variances and more false alarms. Chosen by hand."""


def check_level(level: float) -> None:
    """Raise an `OptionError` if a false alarm level is not between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise OptionError("level", found=level, needed="above 0 and below 1")


def log_exceedance(statistic: float, dof: int, margins: tuple[float, float]) -> float:
    r"""Return the log probability that noise exceeds a likelihood ratio in any frame.

    The tail of the maximum of a squared Bessel process (Csörgő and Horváth 1997,
    Eq. 1.3.26),

    .. math:: P \approx \frac{(x/2)^{d/2} e^{-x/2}}{\Gamma(d/2)}
        \left[ \left(1 - \frac{d}{x}\right) \log\frac{(1-a)(1-b)}{ab}
        + \frac{4}{x} \right],

    for all frames but the shares :math:`a, b` at either end.

    Args:
        statistic: Twice the log likelihood ratio, :math:`x`.
        dof: Degrees of freedom of the change, :math:`d`.
        margins: The shares of the frames left out at the beginning and at the end.
    """
    if statistic <= dof:
        return 0.0
    a, b = (max(margin, TINY_MARGIN) for margin in margins)
    span = log((1.0 - a) * (1.0 - b) / (a * b))
    # Csörgő and Horváth 1997, formula 1.3.26.
    bracket = span * (1.0 - dof / statistic) + 4.0 / statistic
    tail = 0.5 * dof * log(0.5 * statistic) - 0.5 * statistic - lgamma(0.5 * dof)
    return min(tail + log(bracket), 0.0)


def long_run_variance(series: Path) -> tuple[float, float]:
    r"""Return the long-run variance of a series per axis, and its degrees of freedom.

    The long-run variance is :math:`\lim_n n \operatorname{Var}(\bar x_n)`. It equals
    the variance for white noise and is larger for correlated noise. It is estimated by
    batch means of 1, 2, 4, ... frames: the variance of the difference of adjacent means
    is robust to a few steps in the series. The model of white noise plus a first-order
    autoregression is fitted to the variances of all batch lengths, which also
    extrapolates to longer batches. The estimates for all correlation times are averaged
    with the weights of their likelihoods (Bayesian model averaging).

    Args:
        series: Residuals in the order of time, in metres.

    Returns:
        The variance in square metres, and its degrees of freedom.
    """
    lengths, variances, counts = _batch_variances(series)
    if len(lengths) == 0 or not variances.min() > 0.0:
        return 0.0, np.inf
    weight = 1.0 / np.sqrt(1.0 / counts + MODEL_ERROR**2)
    misfits, log_variances, log_errors = [], [], []
    # The first time, below the minimum, stands for white noise.
    times = MIN_CORRELATION_FRAMES * np.sqrt(2.0) ** np.arange(-1, 2 * len(lengths))
    longest = max(MAX_CORRELATION_SHARE * lengths[-1], MIN_CORRELATION_FRAMES)
    for time in times[times <= longest]:
        is_white = time < MIN_CORRELATION_FRAMES
        shape = np.zeros(len(lengths)) if is_white else _growth(lengths, time)
        parts, error = _fit_noise_parts(shape, variances, weight)
        residual = weight * np.log((parts[0] + parts[1] * shape) / variances)
        misfits.append(float(np.sum(residual**2)))
        log_variances.append(np.log(parts.sum()))
        log_errors.append(min(error / parts.sum() ** 2, 1.0))
    probability = np.exp(-0.5 * (np.array(misfits) - min(misfits)))
    probability[0] *= WHITE_PRIOR_ODDS * len(probability)
    probability /= probability.sum()
    mean = float(probability @ log_variances)
    between_models = probability @ (np.array(log_variances) - mean) ** 2
    log_error = float(between_models + probability @ log_errors)
    # The log of a variance with k degrees of freedom has the variance 2 / k.
    return float(np.exp(mean)), 2.0 / log_error


def _batch_variances(series: Array) -> tuple[Array, Array, Array]:
    """Return batch lengths, the variance per frame that each implies, and counts."""
    lengths, variances, counts = [], [], []
    length = 1
    while len(series) // length > MIN_BATCHES:
        n = len(series) // length
        mean = series[: n * length].reshape(n, length, 3).mean(axis=1)
        square = np.sum(white_difference(mean, 1) ** 2, axis=1)
        lengths.append(length)
        variances.append(length * trimmed_variance(square))
        counts.append(n)
        length *= 2
    return np.array(lengths, dtype=float), np.array(variances), np.array(counts)


def _growth(length: Array, time: float) -> Array:
    """Return the share of an autoregression's long-run variance that batches show.

    Args:
        length: Frames per batch.
        time: Correlation time in frames, after which the correlation is 1 / e.
    """
    phi = np.exp(-1.0 / time)
    faded = phi * (1.0 - phi**length) / (1.0 - phi) ** 2
    variance = length * (1.0 + phi) / (1.0 - phi) - 2.0 * faded
    covariance = faded * (1.0 - phi**length)
    return np.asarray((variance - covariance) / length * (1.0 - phi) / (1.0 + phi))


def _fit_noise_parts(
    shape: Array, variances: Array, weight: Array
) -> tuple[Array, float]:
    """Return the white and the correlated part, and the variance of their sum.

    Weighted least squares of relative errors; neither part is negative.
    """
    rows = np.stack([1.0 / variances, shape / variances], axis=1) * weight[:, None]
    used = np.array([True, shape.any()])
    parts = np.zeros(2)
    parts[used] = np.linalg.lstsq(rows[:, used], weight, rcond=None)[0]
    if (parts < 0.0).any():
        used = parts > 0.0
        column = rows[:, used][:, 0]
        parts = np.where(used, column @ weight / (column @ column), 0.0)
    covariance = np.linalg.pinv(rows[:, used].T @ rows[:, used])
    return np.maximum(parts, [1e-12 * variances[0], 0.0]), float(covariance.sum())
