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

# Eight tenths of a normal distribution are this near its middle, in standard deviations.
EIGHT_TENTHS, SIZE = 0.8, 1.2816

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

    How well they keep it is told by how much it changes within MEMORY, not by how far
    it ever gets: labels that stood on each other's markers for half the take changed
    their distances twice only.

    Args:
        points: Positions in metres, NaN where a marker was not seen.
        rate: Frames per second.
    """
    memory = max(MEMORY * rate, 1.0)
    wide, middle = _spreads(points, round(memory))
    count = min(MATES, max(points.shape[1] - 1, 0))
    np.fill_diagonal(wide, np.nan)  # sorts behind all others
    mates = np.argsort(wide, axis=1, kind="stable")[:, :count]
    spread, distance = (np.take_along_axis(v, mates, axis=1) for v in (wide, middle))
    return Company(mates, spread, distance, memory)


def _spreads(
    points: Float[Array, "frame marker 3"], lag: int
) -> tuple[Float[Array, "marker marker"], Float[Array, "marker marker"]]:
    """Return the robust standard deviation and the median of all distances."""
    lag = min(lag, len(points) // 2)
    first = np.arange(0, len(points) - lag, max(-(-len(points) // MOST_FRAMES), 1))
    one, two = (np.ascontiguousarray(points[f].transpose(1, 2, 0)) for f in (first, first + lag))
    n = points.shape[1]
    wide, middle = np.full((n, n), np.inf), np.full((n, n), np.inf)
    for k in range(n - 1):
        away, later = (np.sqrt(np.sum((v[k + 1 :] - v[k]) ** 2, axis=1)) for v in (one, two))
        change, few = _quantile(np.abs(later - away), EIGHT_TENTHS)
        usual, _ = _quantile(away, 0.5)
        wide[k, k + 1 :] = np.where(few, np.inf, change / (SIZE * 2.0**0.5))
        middle[k, k + 1 :] = np.where(few, np.inf, usual)
    lower = np.tril_indices(n, -1)
    wide[lower], middle[lower] = wide.T[lower], middle.T[lower]
    return wide, middle


def _quantile(rows: Float[Array, "row value"], share: float) -> tuple[Array, Array]:
    """Return a quantile of every row, and where too little is known for it."""
    known = np.isfinite(rows).sum(axis=1)
    ordered = np.sort(rows, axis=1)  # NaN stands last
    at = np.rint(share * np.maximum(known - 1, 0)).astype(int)
    few = (known < min(FEWEST_FRAMES, rows.shape[1])) | (known == 0)
    return np.take_along_axis(ordered, at[:, None], axis=1)[:, 0], few


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
