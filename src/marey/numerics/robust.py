"""Robust estimates: M-estimators of location, and outliers of a series."""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from marey.errors import OptionError, check_choice
from marey.numerics import Array, Bool, Float, Int

MAD_TO_SD = 1.483
"""Standard deviation of a normal distribution over its median absolute deviation, as
printed in Bodenheimer1997, Sec. 3.1."""

CHI2_3_MEDIAN = 2.3659738843753377
"""Median of the squared length of a vector of three standard normal numbers,
`scipy.stats.chi2.median(3)` (published, Abramowitz and Stegun 1964, Table 26.8)."""

HUBER_CUTOFF = 2.0
"""Cutoff of Huber's psi, in scales: "typically twice the median deviation", published
in Bodenheimer1997, Sec. 3.1."""

TUKEY_CUTOFF = 4.685
"""Cutoff of Tukey's biweight, in scales: 95 % efficient at the normal distribution
(published, Holland and Welsch 1977)."""

Q10_Q90_SD = 2.5631031310892007
"""Width of the central 80 % of a normal distribution, in standard deviations: twice the
90 % quantile, `2 * scipy.stats.norm.ppf(0.9)` (published, Abramowitz and Stegun 1964,
Table 26.5)."""

ABS_Q90_SD = 1.6448536269514722
"""90 % quantile of the absolute value of a normal variable, in standard deviations,
`scipy.stats.norm.ppf(0.95)` (published, Abramowitz and Stegun 1964, Table 26.5)."""

CHI2_3_TRUNCATED_MEAN = 2.7534587746988795
"""Mean of the squared length of such a vector where it is at most three (`OUTLIER_SD`)
long: 3 F5(9) / F3(9) with the distribution functions of chi-square of five and three
degrees of freedom (published, Abramowitz and Stegun 1964, Table 26.7)."""

OUTLIER_SCALES = 3.5
"""Distance from the location, in scales, beyond which a value is an outlier; of normal
values one in two thousand (published, Iglewicz and Hoaglin 1993)."""

SUSPECT_SCALES = 2.5
"""Distance, in scales, beyond which a frame next to an outlier is one too (published,
Rousseeuw and Leroy 1987, as the bound of robust residuals)."""

GOOD_LINK_WEIGHT = 0.5
"""Outlying links that one good link of the same item outweighs when outliers are
attributed. Raised, fewer items are held responsible. Chosen by hand."""

NEGLIGIBLE_SDS = math.sqrt(-2.0 * math.log(np.finfo(float).eps))
"""Distance from the mean of a Poisson distribution, in standard deviations, beyond
which its terms do not change a sum by more than rounding: exp(-x^2 / 2) = eps."""

MAX_ITERATIONS, TOLERANCE = 50, 1e-12


def normal_length_quantile(share: float) -> float:
    """Return a quantile of the length of a vector of three independent normal numbers.

    The length has Maxwell's distribution, which is inverted by bisection. The median is
    1.538 standard deviations, the first quartile 1.101.

    Args:
        share: Share of the vectors that are shorter, 0 to 1.
    """
    low, high = 0.0, 1.0
    while _share_shorter_than(high) < share:
        high *= 2.0
    while low < (middle := 0.5 * (low + high)) < high:
        is_below = _share_shorter_than(middle) < share
        low, high = (middle, high) if is_below else (low, middle)
    return high


def _share_shorter_than(length: float) -> float:
    """Return Maxwell's distribution function of a length in standard deviations."""
    density = math.sqrt(2.0 / math.pi) * length * math.exp(-0.5 * length**2)
    return math.erf(length / math.sqrt(2.0)) - density


def chi_squared_survival(square: float, freedom: int) -> float:
    r"""Return the chance that a chi-squared number of integer freedom k is larger.

    With :math:`y = x / 2` it is a finite sum, from a = 1 for even k and from a = 1/2,
    where the chance is :math:`\mathrm{erfc} \sqrt{y}`, for odd k:

    .. math:: Q(a + 1, y) = Q(a, y) + \frac{y^a e^{-y}}{\Gamma(a + 1)}

    Terms far below the largest, at a = y or the last, are left out.

    `scipy.special.chdtrc` is the same, but takes as long to import as a short recording
    to clean.

    Args:
        square: The number x, 0 or more.
        freedom: Its degrees of freedom, 1 or more.
    """
    y = 0.5 * square
    if y <= 0.0:
        return 1.0
    a = 0.5 if freedom % 2 else 1.0
    chance = math.erfc(math.sqrt(y)) if freedom % 2 else math.exp(-y)
    end = 0.5 * freedom
    a += max(math.floor(min(y, end) - NEGLIGIBLE_SDS * (math.sqrt(y) + 1.0) - a), 0)
    if a >= end:
        return chance
    first = a * math.log(y) - y - math.lgamma(a + 1.0)
    later = first + np.log(y / np.arange(a + 1.0, end)).cumsum()
    return chance + math.exp(first) + float(np.exp(later).sum())


@lru_cache
def chi_squared_quantile(chance: float, freedom: int) -> float:
    """Return what a chi-squared number of integer freedom exceeds with some chance.

    Newton's method on the logarithm of `chi_squared_survival`, which is concave, so
    that it converges from everywhere; for one degree of freedom steps are halved.

    Args:
        chance: Above 0 and below 1.
        freedom: Degrees of freedom, 1 or more.
    """
    x, half = float(freedom), 0.5 * freedom
    for _ in range(MAX_ITERATIONS):
        log_density = (half - 1.0) * math.log(0.5 * x) - 0.5 * x - math.lgamma(half)
        survival = chi_squared_survival(x, freedom)
        slope = 0.5 * math.exp(log_density) / survival
        step = math.log(survival / chance) / slope
        x = max(x + step, 0.5 * x)
        if abs(step) <= TOLERANCE * x:
            break
    return x


def logistic(x: Float[Array, "*any"] | float) -> Float[Array, "*any"]:
    """Return the probability of log odds."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * np.asarray(x)))


def location(x: Float[Array, " value"], method: str = "tukey") -> float:
    """Return a robust location of the values; NaN values are ignored.

    Args:
        x: The values, in any unit.
        method: "tukey": Tukey's biweight, which gives gross errors no weight at all,
            the future work of Bodenheimer1997, Sec. 4; "huber": the one-step
            M-estimator of Sec. 3.1; "median"; "mean".

    Returns:
        NaN if there are no values.

    Raises:
        OptionError: If the method is not known.
    """
    check_choice("method", method, LOCATIONS)
    known = x[np.isfinite(x)]
    return LOCATIONS[method](known) if len(known) else float("nan")


def rms(values: Float[Array, "*any"]) -> float:
    """Return the root mean square of the finite values; NaN if there are none."""
    known = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(known**2))) if len(known) else math.nan


def median_and_scale(x: Float[Array, " value"]) -> tuple[float, float]:
    """Return the median, and 1.483 times the median absolute deviation (MAD).

    Implements Bodenheimer1997, Sec. 3.1: the initial location T0 and scale S0.
    Departure: if more than half of the values are equal up to rounding, the scale is
    zero.
    """
    middle = float(np.median(x))
    scale = MAD_TO_SD * float(np.median(np.abs(x - middle)))
    return middle, scale if scale > TOLERANCE * abs(middle) else 0.0


def mean_where(
    values: Float[Array, "..."],
    known: Bool[Array, "..."],
    axis: int = 0,
    default: Float[Array, "..."] | float = np.nan,
) -> Float[Array, "..."]:
    """Return the mean along an axis of the values that are known.

    Args:
        values: The values.
        known: Which of them count; it broadcasts with the values.
        axis: The axis that is averaged over.
        default: The mean where no value is known.
    """
    total = np.where(known, values, 0.0).sum(axis=axis)
    count = known.sum(axis=axis)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), default))


def finite_median(x: Float[Array, "*value"], default: float = 0.0) -> float:
    """Return the median of the finite values, or a default if there are none."""
    finite = np.sort(x[np.isfinite(x)])  # np.median takes four times as long
    n = len(finite)
    return float(0.5 * (finite[(n - 1) // 2] + finite[n // 2])) if n else default


def column_medians(x: Float[Array, "value *column"]) -> Float[Array, "*column"]:
    """Return the median of the known values of each column; NaN where there are none.

    As `np.nanmedian` along the first axis, which takes ten times as long.
    """
    if not len(x):
        return np.full(x.shape[1:], np.nan)
    ordered = np.sort(x, axis=0)  # NaN sorts to the end
    count = np.asarray((~np.isnan(ordered)).sum(axis=0))
    low, high = np.maximum(count - 1, 0) // 2, count // 2
    middle = [np.take_along_axis(ordered, k[None], axis=0)[0] for k in (low, high)]
    return np.asarray(0.5 * (middle[0] + middle[1]))


def group_medians(
    values: Float[Array, "value column"], group: Int[Array, " value"], n_groups: int
) -> Float[Array, "_ column"]:
    """Return the median of each column over the values of each group; NaN of none.

    Args:
        values: Known values.
        group: The group of each, 0 to `n_groups` - 1.
        n_groups: Number of groups.
    """
    count = np.bincount(group, minlength=n_groups)
    first = np.cumsum(count) - count
    medians = np.full((n_groups, values.shape[1]), np.nan)
    some = count > 0
    low, high = ((first + k)[some] for k in ((count - 1) // 2, count // 2))
    for column, own in enumerate(values.T):
        ordered = own[np.lexsort((own, group))]
        medians[some, column] = 0.5 * (ordered[low] + ordered[high])
    return medians


def huber(x: Float[Array, " value"], cutoff: float = HUBER_CUTOFF) -> float:
    r"""Return Huber's one-step M-estimate of location, starting at the median.

    Implements Bodenheimer1997, Sec. 3.1:

    .. math:: T = T_0 + S_0 \frac{\sum \psi(z_i)}{\sum \psi'(z_i)}, \quad
        z_i = (x_i - T_0) / S_0

    where psi clips z at the cutoff, so a gross error has the same small influence
    however large it is. If the scale is zero, the median is returned.

    Args:
        x: The values, all finite.
        cutoff: The b of the paper, in scales.
    """
    middle, scale = median_and_scale(x)
    if scale == 0.0:
        return middle
    z = (x - middle) / scale
    inside = np.count_nonzero(np.abs(z) < cutoff)
    return float(middle + scale * np.clip(z, -cutoff, cutoff).sum() / inside)


def tukey(x: Float[Array, " value"], cutoff: float = TUKEY_CUTOFF) -> float:
    r"""Return the location by Tukey's biweight, iterated to convergence.

    Iteratively reweighted least squares with the weights

    .. math:: w_i = (1 - z_i^2)^2 \text{ for } |z_i| < 1, \text{ else } 0, \quad
        z_i = (x_i - T) / (c \, S_0) .

    Values beyond the cutoff have zero weight, so gross errors have no influence. Its
    efficiency at the normal distribution is 95 %.
    """
    middle, scale = median_and_scale(x)
    if scale == 0.0:
        return middle
    for _ in range(MAX_ITERATIONS):
        z = (x - middle) / (cutoff * scale)
        weight = np.where(np.abs(z) < 1.0, (1.0 - z**2) ** 2, 0.0)
        before, middle = middle, float(weight @ x / weight.sum())
        if abs(middle - before) <= TOLERANCE * scale:
            break
    return middle


LOCATIONS: Mapping[str, Callable[[Array], float]] = {
    "median": lambda x: float(np.median(x)),
    "mean": lambda x: float(np.mean(x)),
    "huber": huber,
    "tukey": tukey,
}


def tag_outliers(
    x: Float[Array, "frame *item"],
    *,
    outlier: float = OUTLIER_SCALES,
    suspect: float = SUSPECT_SCALES,
    method: str = "tukey",
    min_scale: float = 0.0,
) -> Bool[Array, "frame *item"]:
    """Return which values of each series are outliers.

    After Bodenheimer1997, Sec. 3.1, where a value is an outlier beyond twice the
    scale. That rule flags one normal value in 22, and it misses the frames in which an
    error begins and ends. Departure: a value is an outlier further out (`outlier`), and
    a run of frames that are only suspect is flagged if it contains an outlier
    (hysteresis thresholding). `outlier=2, suspect=2, method="median"` is the rule as
    published.

    Args:
        x: Series over frames; NaN where unknown, which is never flagged.
        outlier: Distance from the location beyond which a value is an outlier, in
            scales.
        suspect: Distance beyond which a frame is suspect, in scales.
        method: Estimator of the location; see `location`.
        min_scale: Lower bound of the scale, in the unit of `x`. A series that is
            constant up to rounding has no scale of its own: every value that differs by
            more than rounding is then an outlier.

    Raises:
        OptionError: If the thresholds are not 0 < suspect <= outlier, or the method is
            not known.
    """
    if not 0.0 < suspect <= outlier:
        raise OptionError(
            "suspect", found=suspect, needed=f"above 0, at most outlier = {outlier:g}"
        )
    series = x.reshape(len(x), math.prod(x.shape[1:]))
    tags = np.zeros(series.shape, dtype=bool)
    for k, values in enumerate(series.T):
        known = np.isfinite(values)
        if known.any():
            score = _scores(values, known, method, min_scale)
            for first, last in runs(score > suspect):
                run = slice(first, last + 1)
                tags[run, k] = (score[run] > outlier).any()
    return tags.reshape(x.shape)


def _scores(
    values: Float[Array, " frame"],
    known: Bool[Array, " frame"],
    method: str,
    min_scale: float,
) -> Float[Array, " frame"]:
    """Return the distance of each value from the location in robust scales, or 0."""
    center = location(values[known], method)
    scale = median_and_scale(values[known])[1]
    rounding = TOLERANCE * abs(center) + np.finfo(float).tiny
    distance = np.where(known, np.abs(values - center), 0.0)
    return np.asarray(distance / max(scale, min_scale, rounding))


def runs(flags: Bool[Array, " frame"]) -> list[tuple[int, int]]:
    """Return the first and last frame of every run of set flags."""
    if not flags.any():
        return []
    edge = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return [(first, end - 1) for first, end in edge.reshape(-1, 2).tolist()]


def attribute_outliers(
    is_outlier: Bool[Array, "frame link"], members: Int[Array, "link item"]
) -> Bool[Array, "frame item"]:
    """Return the items that explain the outlying links, frame by frame.

    A length, or a residual, belongs to two or more items and does not show which of
    them is wrong. Greedy set cover: the item with the best score (outlying links it
    explains, less half its good links) is chosen, then the links that are left are
    explained in the same way. Items with equal scores are chosen together. A link
    without members is ignored.

    Args:
        is_outlier: Which links are outliers in each frame.
        members: 1 where an item is part of a link, else 0.
    """
    patterns, which = np.unique(is_outlier, axis=0, return_inverse=True)
    chosen = np.array([_cover(pattern, members) for pattern in patterns], dtype=bool)
    return np.asarray(chosen.reshape(-1, members.shape[1])[which.reshape(-1)])


def _cover(
    is_outlier: Bool[Array, " link"], members: Int[Array, "link item"]
) -> Bool[Array, " item"]:
    """Return the items chosen by the greedy set cover of one frame's outliers."""
    cover = np.zeros(members.shape[1], dtype=bool)
    good = GOOD_LINK_WEIGHT * members[~is_outlier].sum(axis=0)
    left = is_outlier & members.any(axis=1)
    while left.any():
        explained = members[left].sum(axis=0)
        score = np.where(explained > 0, explained - good, -np.inf)
        best = score == score.max()
        cover |= best
        left &= members[:, best].sum(axis=1) == 0
    return cover
