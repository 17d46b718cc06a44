"""Where a marker must be, by the markers that keep it company."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from marey import geometry

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

# The middle eight tenths of a normal distribution are this many standard deviations.
EIGHT_TENTHS = 2.563

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


def company_of(points: Float[Array, "frame marker 3"], rate: float) -> Company:
    """Return for every marker those that keep their distance to it best.

    Args:
        points: Positions in metres, NaN where a marker was not seen.
        rate: Frames per second.
    """
    some = points[:: max(-(-len(points) // MOST_FRAMES), 1)]
    n = points.shape[1]
    count = min(MATES, max(n - 1, 0))
    mates = np.zeros((n, count), dtype=np.int64)
    spread, distance = np.full((n, count), np.inf), np.full((n, count), np.inf)
    for marker in range(n):
        away = np.linalg.norm(some - some[:, marker, None], axis=-1)
        away[:, marker] = np.nan
        wide, middle = _spread(away)
        order = np.argsort(wide, kind="stable")
        best = order[order != marker][:count]
        mates[marker], spread[marker], distance[marker] = best, wide[best], middle[best]
    return Company(mates, spread, distance, max(MEMORY * rate, 1.0))


def _spread(away: Float[Array, "frame marker"]) -> tuple[Array, Array]:
    """Return the robust standard deviation and the median of every column."""
    known = np.isfinite(away).sum(axis=0)
    ordered = np.sort(away, axis=0)  # NaN stands last
    last = np.maximum(known - 1, 0)
    low, middle, high = (
        np.take_along_axis(ordered, np.rint(q * last).astype(int)[None], axis=0)[0]
        for q in (0.1, 0.5, 0.9)
    )
    enough = known >= min(FEWEST_FRAMES, len(away))
    wide = np.where(enough & (known > 0), (high - low) / EIGHT_TENTHS, np.inf)
    return wide, np.where(np.isfinite(wide), middle, np.inf)


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
