"""Where a marker must be, by the markers that keep it company."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.numerics import geometry

Array = np.ndarray

MOST_FRAMES = 300
"""Frames from which it is learnt who keeps whose distance."""

FEWEST_FRAMES = 20
"""Frames in common below which two markers say nothing of each other."""

MATES = 12
"""Markers that a marker is held to: those that keep their distance to it best."""

ROUNDS = 4
"""Times that mates are weighed, each time more strictly by SHARPER."""

SHARPER = 4.0

MEMORY = 0.25
"""Seconds in which the distance of two markers changes as much as it ever does."""

MOMENT = 0.125
"""Seconds within which the distances of mates hardly change."""

# The middle eight tenths of a normal distribution are so many standard deviations wide,
# and nine tenths lie this near its middle.
EIGHT_TENTHS, NINE_TENTHS = 2.563, 1.645

# Share of the distance to the mates that counts as noise at least.
FLOOR = 1e-3

# Widths of a set of points, as shares of its length, below which it is a line.
NARROW = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Company:
    """The markers that keep each marker company."""

    mates: Int[Array, "marker mate"]
    """By index, the steadiest first."""

    spread: Float[Array, "marker mate"]
    """Robust standard deviation of the distance to each, in metres; infinite where
    too little is known."""

    distance: Float[Array, "marker mate"]
    """Median distance, in metres."""

    memory: float
    """Frames in which distances change as much as they ever do."""


def company_of(
    points: Float[Array, "frame marker 3"], rate: float, *, doubtful: bool = False
) -> Company:
    """Return for every marker those that keep their distance to it best.

    How far a distance varies over the whole take tells it. Of labels that are in doubt
    it is how much it changes within a moment: those that stood on each other's markers
    for half the take changed their distances twice only, but vary as much as any.

    Args:
        points: Positions in metres, NaN where a marker was not seen.
        rate: Frames per second.
        doubtful: Whether labels may have stood on other markers for long.
    """
    change, spread, distance = _distances(points, max(round(MOMENT * rate), 1))
    key = change.copy() if doubtful else spread.copy()
    np.fill_diagonal(key, np.nan)  # sorts behind all others
    count = min(MATES, max(points.shape[1] - 1, 0))
    mates = np.argsort(key, axis=1, kind="stable")[:, :count]
    if doubtful:
        spread = np.maximum(change, spread)
    return Company(
        mates,
        np.take_along_axis(spread, mates, axis=1),
        np.take_along_axis(distance, mates, axis=1),
        max(MEMORY * rate, 1.0),
    )


def _distances(
    points: Float[Array, "frame marker 3"], lag: int
) -> tuple[Array, Array, Array]:
    """Return change within a lag, spread and median of the distances of all pairs.

    The first two are robust standard deviations; all are infinite where too little is
    known.
    """
    lag = min(lag, len(points) // 2)
    first = np.arange(0, len(points) - lag, max(-(-len(points) // MOST_FRAMES), 1))
    n = points.shape[1]
    change, spread, middle = (np.full((n, n), np.inf) for _ in range(3))
    now, then = (
        points[some].transpose(1, 2, 0).copy() for some in (first, first + lag)
    )
    for k in range(n - 1):
        away, later = (
            np.sqrt(np.sum((place[k + 1 :] - place[k]) ** 2, axis=1))
            for place in (now, then)
        )
        (moved,) = quantiles(np.abs(later - away), (0.9,))
        low, usual, high = quantiles(away, (0.1, 0.5, 0.9))
        change[k, k + 1 :] = change[k + 1 :, k] = moved / NINE_TENTHS
        spread[k, k + 1 :] = spread[k + 1 :, k] = (high - low) / EIGHT_TENTHS
        middle[k, k + 1 :] = middle[k + 1 :, k] = usual
    unknown = ~(np.isfinite(change) & np.isfinite(spread))
    for value in (change, spread, middle):
        value[unknown] = np.inf
    return change, spread, middle


def spreads_to(
    points: Float[Array, "frame marker 3"], some: Int[Array, " some"]
) -> Float[Array, "some marker"]:
    """Return how far the distances of some markers to all vary over the take.

    Robust standard deviations in metres; infinite where too little is known.
    """
    place = points[:: max(-(-len(points) // MOST_FRAMES), 1)].transpose(1, 2, 0)
    away = (np.sqrt(np.sum((place - place[k]) ** 2, axis=1)) for k in some.tolist())
    low, high = np.stack([quantiles(a, (0.1, 0.9)) for a in away], axis=1)
    return np.asarray(np.nan_to_num((high - low) / EIGHT_TENTHS, nan=np.inf))


def quantiles(rows: Float[Array, "row value"], shares: tuple[float, ...]) -> Array:
    """Return quantiles of every row; NaN where too little is known."""
    known = np.isfinite(rows).sum(axis=1)
    ordered = np.sort(rows, axis=1)  # NaN stands last
    at = np.rint(np.outer(shares, np.maximum(known - 1, 0))).astype(int)
    found = ordered[np.arange(len(rows)), at]
    found[:, known < min(FEWEST_FRAMES, rows.shape[1])] = np.nan
    return np.asarray(found)


def carried(
    points: Float[Array, "frame marker 3"],
    company: Company,
    marker: Int[Array, " link"],
    place: Float[Array, "link 3"],
    start: Int[Array, " link"],
    end: Int[Array, " link"],
    *,
    without: Int[Array, " doubtful"] | None = None,
) -> Float[Array, "link 3"]:
    """Return where markers must be in one frame, from where they were in another.

    A marker goes with its mates: the rigid motion of these between the two frames takes
    it along. Mates that went another way, be it that they bent away or that their
    labels are wrong, lose their say by and by (Geman-McClure, ever stricter): to drop
    them at once by a fixed limit drops the wrong ones, as one bad mate spoils the
    misfit of all.

    NaN where fewer than three mates were seen in both frames.

    Args:
        points: Positions in metres, NaN where a marker was not seen.
        company: From `company_of`.
        marker: Which marker, for each link.
        place: Where it was.
        start: The frame that it was seen there.
        end: The frame that is asked about.
        without: Markers that have no say.
    """
    mates = company.mates[marker]
    old, new = points[start[:, None], mates], points[end[:, None], mates]
    noise = _noise(company, marker, end - start)
    both = np.isfinite(old).all(axis=-1) & np.isfinite(new).all(axis=-1)
    if without is not None:
        both &= ~np.isin(mates, without)
    trust = both / noise**2
    trust /= np.maximum(trust.max(axis=1, keepdims=True), 1e-300)
    size = np.where(np.isfinite(company.distance), company.distance, 0.0)[marker]
    usual = size.max(axis=1, keepdims=True)
    weight = trust
    for turn in range(ROUNDS):
        T = geometry.kabsch(old, new, weight)
        off = np.sum((geometry.apply(T[:, None], old) - new) ** 2, axis=-1)
        limit = np.maximum(usual / SHARPER**turn, 3.0 * noise)
        weight = np.where(both, trust / (1.0 + off / limit**2) ** 2, 0.0)
    T = geometry.kabsch(old, new, weight)
    T[~_is_wide(old, both)] = np.nan
    return np.asarray(geometry.apply(T, place))


def _noise(
    company: Company, marker: Int[Array, " link"], length: Int[Array, " link"]
) -> Float[Array, "link mate"]:
    """Return how far mates may stray within so many frames.

    From one frame to the next all of them stay as well as the best.
    """
    spread = np.maximum(company.spread, FLOOR * company.distance)[marker]
    spread = np.where(np.isfinite(spread), spread, 1e9).clip(
        np.finfo(float).tiny ** 0.25
    )
    share = np.minimum(np.abs(length) / company.memory, 1.0)[:, None]
    return np.asarray(np.hypot(spread[:, :1], share * spread))


def _is_wide(
    places: Float[Array, "link mate 3"], both: Bool[Array, "link mate"]
) -> Bool[Array, " link"]:
    """Return where there are three mates or more, and not on a line."""
    count = np.maximum(both.sum(axis=1), 1)
    known = np.where(both[..., None], places, 0.0)
    middle = known.sum(axis=1) / count[:, None]
    off = np.where(both[..., None], places - middle[:, None], 0.0)
    wide = np.linalg.eigvalsh(np.einsum("lmi,lmj->lij", off, off))
    return np.asarray((both.sum(axis=1) >= 3) & (wide[:, 1] > NARROW**2 * wide[:, 2]))
