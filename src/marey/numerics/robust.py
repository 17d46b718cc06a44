"""Location and scale that wild values do not move, and which values are wild."""

import math
from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.errors import OptionError

Array = np.ndarray

NORMAL = 1.483
"""Standard deviations of a normal distribution in its median deviation."""

HUBER = 2.0
"""Scales beyond which a value counts as one at that distance."""

TUKEY = 4.685
"""Scales beyond which a value does not count at all."""

WILD = 3.5
"""Scales beyond which a value is wild: one in two thousand good ones."""

DOUBTFUL = 2.5
"""Scales beyond which a value next to a wild one is wild as well."""

ALIBI = 0.5
"""Links that are off which one that is not weighs up, when one is to blame."""

ROUNDS, SETTLED = 50, 1e-12


def location(x: Float[Array, " value"], method: str = "tukey") -> float:
    """Return where the values are on the whole; NaN values say nothing.

    Args:
        x: The values, in any unit.
        method: "tukey": the biweight, which redescends: far values do not move it at
            all, as Bodenheimer1997, Sec. 4, hopes; "huber": the one-step M-estimator
            printed there; "median"; "mean".

    Returns:
        NaN if there are no values.

    Raises:
        OptionError: If the method is not known.
    """
    if method not in LOCATIONS:
        needed = f"one of {', '.join(LOCATIONS)}"
        raise OptionError("method", found=method, needed=needed)
    known = x[np.isfinite(x)]
    return LOCATIONS[method](known) if len(known) else float("nan")


def median_and_scale(x: Float[Array, " value"]) -> tuple[float, float]:
    """Return the median, and 1.483 times the median distance from it.

    Implements Bodenheimer1997, Sec. 3.1: the first guesses of location and scale.
    Departure: where more than half of the values are all but alike, the scale would
    be rounding, and is zero.
    """
    middle = float(np.median(x))
    scale = NORMAL * float(np.median(np.abs(x - middle)))
    return middle, scale if scale > SETTLED * abs(middle) else 0.0


def huber(x: Float[Array, " value"], cutoff: float = HUBER) -> float:
    """Return the location one step from the median, as printed.

    Implements Bodenheimer1997, Sec. 3.1: T = T0 + S0 sum psi(z) / sum psi'(z), with
    Huber's psi, which keeps z within the cutoff. Any error, however gross, has the
    same small share. Without a scale it is the median.

    Args:
        x: The values, all known.
        cutoff: In scales; the paper's b is "typically twice the median deviation".
    """
    middle, scale = median_and_scale(x)
    if scale == 0.0:
        return middle
    z = (x - middle) / scale
    inside = np.count_nonzero(np.abs(z) < cutoff)
    return float(middle + scale * np.clip(z, -cutoff, cutoff).sum() / inside)


def tukey(x: Float[Array, " value"], cutoff: float = TUKEY) -> float:
    """Return the location of Tukey's biweight, iterated until it stands still.

    Values beyond the cutoff have no share at all, so that gross errors leave nothing
    behind; at normally distributed values it needs 5 % more of them than the mean.
    """
    middle, scale = median_and_scale(x)
    if scale == 0.0:
        return middle
    for _ in range(ROUNDS):
        z = (x - middle) / (cutoff * scale)
        weight = np.where(np.abs(z) < 1.0, (1.0 - z**2) ** 2, 0.0)
        before, middle = middle, float(weight @ x / weight.sum())
        if abs(middle - before) <= SETTLED * scale:
            break
    return middle


def _median(x: Float[Array, " value"]) -> float:
    return float(np.median(x))


def _mean(x: Float[Array, " value"]) -> float:
    return float(np.mean(x))


LOCATIONS: Mapping[str, Callable[[Array], float]] = {
    "median": _median,
    "mean": _mean,
    "huber": huber,
    "tukey": tukey,
}


def tag_outliers(
    x: Float[Array, "frame *item"],
    *,
    wild: float = WILD,
    doubtful: float = DOUBTFUL,
    method: str = "tukey",
    least: float = 0.0,
) -> Bool[Array, "frame *item"]:
    """Return which values of each series are wild.

    After Bodenheimer1997, Sec. 3.1, where a value is an outlier beyond twice the
    scale; that tags one good value in 22, and misses the frames in which an error
    comes and goes. Departure: tagging begins further out, and from there spreads to
    neighbouring frames that are only doubtful. `wild=2, doubtful=2, method="median"`
    is the rule as printed.

    Args:
        x: Series over frames; NaN where unknown, which is never tagged.
        wild: Scales beyond which a value is tagged.
        doubtful: Scales beyond which a run of frames is tagged that touches a wild
            one.
        method: Location to measure from; see `location`.
        least: Least scale to believe, in the unit of `x`. A series that is constant
            but for rounding has none of its own: there whatever differs by more than
            rounding is wild.

    Raises:
        OptionError: If the thresholds are not 0 < doubtful <= wild, or the method is
            not known.
    """
    if not 0.0 < doubtful <= wild:
        raise OptionError(
            "doubtful", found=doubtful, needed=f"above 0, at most wild = {wild:g}"
        )
    series = x.reshape(len(x), math.prod(x.shape[1:]))
    tags = np.zeros(series.shape, dtype=bool)
    for k, values in enumerate(series.T):
        known = np.isfinite(values)
        if known.any():
            off = _in_scales(values, known, method, least)
            tags[:, k] = _spread(off > wild, off > doubtful)
    return tags.reshape(x.shape)


def _in_scales(
    values: Float[Array, " frame"],
    known: Bool[Array, " frame"],
    method: str,
    least: float,
) -> Float[Array, " frame"]:
    """Return how many scales each value is away; zero where it is not known."""
    middle = location(values[known], method)
    scale = median_and_scale(values[known])[1]
    rounding = SETTLED * abs(middle) + np.finfo(float).tiny
    away = np.where(known, np.abs(values - middle), 0.0)
    return np.asarray(away / max(scale, least, rounding))


def _spread(
    seeds: Bool[Array, " frame"], around: Bool[Array, " frame"]
) -> Bool[Array, " frame"]:
    """Return the runs of `around` that hold a seed."""
    tags = np.zeros_like(around)
    for first, last in runs(around):
        tags[first : last + 1] = seeds[first : last + 1].any()
    return tags


def runs(flags: Bool[Array, " frame"]) -> list[tuple[int, int]]:
    """Return the first and last frame of every run of flags."""
    edge = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return [(first, end - 1) for first, end in edge.reshape(-1, 2).tolist()]


def attribute_outliers(
    off: Bool[Array, "frame link"], ends: Int[Array, "link item"]
) -> Bool[Array, "frame item"]:
    """Return the items that explain the links that are off, frame by frame.

    A length, or a gap, is between two items, or among several, and does not say which
    of them is wrong. The one is blamed that explains the most links, each of its links
    that is not off speaking for it; then those left are explained in the same way.
    Where that does not tell, all that are alike are blamed. A link in which no item has
    part accuses nobody.

    Args:
        off: Which links are off in each frame.
        ends: 1 where an item has part in a link, else 0.
    """
    patterns, which = np.unique(off, axis=0, return_inverse=True)
    found = np.array([_explained(pattern, ends) for pattern in patterns], dtype=bool)
    return np.asarray(found.reshape(-1, ends.shape[1])[which.reshape(-1)])


def _explained(
    off: Bool[Array, " link"], ends: Int[Array, "link item"]
) -> Bool[Array, " item"]:
    guilty = np.zeros(ends.shape[1], dtype=bool)
    alibi = ALIBI * ends[~off].sum(axis=0)
    left = off & ends.any(axis=1)
    while left.any():
        count = ends[left].sum(axis=0)
        guilt = np.where(count > 0, count - alibi, -np.inf)
        chosen = guilt == guilt.max()
        guilty |= chosen
        left &= ends[:, chosen].sum(axis=1) == 0
    return guilty
