"""Moments of marker positions: all that an algebraic sphere fit needs."""

from dataclasses import dataclass

import numpy as np

from marey.numerics import Float


@dataclass(frozen=True, slots=True, eq=False)
class SphereMoments:
    """Central moments of each marker's positions, up to order four.

    Moments of two sets of positions, of different times or takes, give those of their
    union (`pool_moments`), so a fit never needs all the data at once.
    """

    count: Float[np.ndarray, " marker"]
    """Number of positions; the moments are zero where it is 0."""

    mean: Float[np.ndarray, "marker 3"]
    """In metres."""

    second: Float[np.ndarray, "marker 3 3"]
    """Mean of y y^T with y = x - mean (Knight2007, Eq. 2), in square metres."""

    third: Float[np.ndarray, "marker 3"]
    """Mean of y |y|^2 (Knight2007, Eq. 4), in cubic metres."""

    fourth: Float[np.ndarray, " marker"]
    """Mean of |y|^4, from which the noise of the radii follows."""

    @property
    def covariance(self) -> Float[np.ndarray, "3 3"]:
        """The second moments averaged over all positions."""
        return np.tensordot(self.count / self.count.sum(), self.second, axes=1)


def compute_moments(points: Float[np.ndarray, "frame marker 3"]) -> SphereMoments:
    """Return the moments of each marker over the frames in which it is seen.

    Positions too large to be squared give moments that are not finite.
    """
    from marey.joints.sphere.moments_kernel import (
        sum_moments,
    )  # numba is slow to import

    return SphereMoments(*sum_moments(np.ascontiguousarray(points, dtype=float)))


def pool_moments(a: SphereMoments, b: SphereMoments) -> SphereMoments:
    """Return the moments of the union of two sets of positions."""
    total = a.count + b.count
    weight = np.stack([a.count, b.count]) / np.maximum(total, 1.0)
    mean = weight[0, :, None] * a.mean + weight[1, :, None] * b.mean
    second, third, fourth = (
        np.einsum("sm,sm...->m...", weight, np.stack(both))
        for both in zip(_moments_about(a, mean), _moments_about(b, mean), strict=True)
    )
    return SphereMoments(total, mean, second, third, fourth)


def _moments_about(moments: SphereMoments, point: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the second, third and fourth moments about a point (parallel axes)."""
    d = moments.mean - point
    C, S = moments.second, moments.third
    trace = np.trace(C, axis1=-2, axis2=-1)
    dd = np.sum(d * d, axis=-1)
    Cd = np.einsum("mij,mj->mi", C, d)
    second = C + d[:, :, None] * d[:, None, :]
    third = S + 2.0 * Cd + d * (trace + dd)[:, None]
    fourth = moments.fourth + dd * (dd + 2.0 * trace)
    fourth += np.sum(2.0 * d * (2.0 * (Cd + S)), axis=-1)
    return second, third, fourth
