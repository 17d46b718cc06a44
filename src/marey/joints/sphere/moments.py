"""Moments of points: all that a sphere fit needs, and they add."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Moments of each marker's positions about their mean.

    Sets of positions, of other times or other takes, pool by adding (`pooled`), so a
    fit never needs all the data at once.
    """

    count: Float[np.ndarray, " marker"]
    """How many positions; 0 where the rest is zero."""

    mean: Float[np.ndarray, "marker 3"]
    second: Float[np.ndarray, "marker 3 3"]
    """Mean of y y^T with y = x - mean (Knight2007, Eq. 2)."""

    third: Float[np.ndarray, "marker 3"]
    """Mean of y |y|^2 (Knight2007, Eq. 4)."""

    fourth: Float[np.ndarray, " marker"]
    """Mean of |y|^4, from which the noise of the radii follows."""


def moments_of(points: Float[np.ndarray, "frame marker 3"]) -> Moments:
    """Return the moments of each marker over the frames in which it is known.

    Positions too large to be squared give moments that are not finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _moments(points)


def _moments(points: np.ndarray) -> Moments:
    known = np.isfinite(points).all(axis=-1)
    count = known.sum(axis=0).astype(float)
    share = known / np.maximum(count, 1.0)
    x = points if known.all() else np.where(known[..., None], points, 0.0)
    mean = np.einsum("fm,fmi->mi", share, x)
    y = (x - mean) * known[..., None]
    square = np.einsum("fmi,fmi->fm", y, y)
    weighted = share[..., None] * y
    return Moments(
        count=count,
        mean=mean,
        second=np.einsum("fmi,fmj->mij", weighted, y, optimize=True),
        third=np.einsum("fmi,fm->mi", weighted, square),
        fourth=np.einsum("fm,fm->m", share * square, square),
    )


def pooled(a: Moments, b: Moments) -> Moments:
    """Return the moments of two sets of positions together."""
    total = a.count + b.count
    share = np.stack([a.count, b.count]) / np.maximum(total, 1.0)
    mean = share[0, :, None] * a.mean + share[1, :, None] * b.mean
    second, third, fourth = (
        np.einsum("sm,sm...->m...", share, np.stack(both))
        for both in zip(_about(a, mean), _about(b, mean), strict=True)
    )
    return Moments(total, mean, second, third, fourth)


def _about(moments: Moments, place: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return second, third and fourth moments about another place than the mean."""
    d = moments.mean - place
    C, S = moments.second, moments.third
    size = np.trace(C, axis1=-2, axis2=-1)
    dd = np.sum(d * d, axis=-1)
    Cd = np.einsum("mij,mj->mi", C, d)
    second = C + d[:, :, None] * d[:, None, :]
    third = S + 2.0 * Cd + d * (size + dd)[:, None]
    fourth = (
        moments.fourth + 4.0 * np.sum(d * (Cd + S), axis=-1) + dd * (dd + 2.0 * size)
    )
    return second, third, fourth
