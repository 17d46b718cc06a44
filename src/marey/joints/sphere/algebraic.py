r"""Algebraic sphere and circle fits in closed form, from moments alone.

The generalised Delogne-Kasa estimator (GDKE) of Knight2007 minimises the variance of
the squared radii (Eq. 1). With the mean, the covariance C (Eq. 2) and the third moment
S (Eq. 4) of the positions the centre is

.. math:: c = \bar x + C^{-1} S / 2 \quad \text{(Eq. 5)}.

Noise adds its variance to C and nothing to the expectation of S, so on less than a full
sphere this centre is drawn towards the markers. The bias-corrected estimator replaces C
by :math:`C - \sigma^2 I`, whose expectation is the covariance without noise.

A basis (3, k) has unit columns: the identity for a sphere, two directions of the plane
for a circle (Eq. 6). All markers share the centre; each has its own radius.
"""

import numpy as np

from marey.joints.sphere.moments import SphereMoments
from marey.numerics import Float

Basis = Float[np.ndarray, "3 directions"]
Center = Float[np.ndarray, " 3"]

ROUNDING_SHARE = 1e-14
"""Share of the squared spread of the positions that rounding alone may leave."""

MIN_MOMENT_SHARE = 0.02
"""Share of the smallest eigenvalue of C that remains when the noise is subtracted;
without it the centre can move to the other side of the markers. Higher leaves more
bias. Chosen by hand."""

TINY_SQUARE_SHARE = 1e-4
"""Squared radius over the largest below which weights no longer grow: a guard against
the division by that of a marker in the centre."""

MAX_ITERATIONS = 60
"""Largest number of rounds of centre and noise."""


class AlgebraicFit:
    """Centre and noise of spheres, or of circles, from moments.

    Args:
        moments: Moments of the positions of all markers.
        basis: Directions in which the centre is sought.
        bias_corrected: Whether the bias from the noise is removed; if not, Knight2007,
            Eqs. 5 and 6, with the markers summed.
    """

    center: Center
    variance: float
    """Noise variance of one coordinate, in square metres."""

    square: Float[np.ndarray, " marker"]
    """Mean of |x - c|^2 (Eq. 1), in square metres; in a plane c is the point of the
    axis at the marker's own height."""

    def __init__(
        self, moments: SphereMoments, basis: Basis, *, bias_corrected: bool
    ) -> None:
        from marey.joints.sphere.algebraic_kernel import (
            MarkerMoments,
            fit_squared_radii,
        )

        self.moments, self.basis, self.bias_corrected = moments, basis, bias_corrected
        self._C = basis.T @ moments.second @ basis
        self._trace = np.einsum("mii->m", moments.second)
        origin = moments.count @ moments.mean / moments.count.sum()
        mean, third = (moments.mean - origin) @ basis, moments.third @ basis
        right = 0.5 * third + np.einsum("mij,mj->mi", self._C, mean)
        smallest = np.linalg.eigvalsh(basis.T @ moments.covariance @ basis)[0]
        self._max_subtracted = (1.0 - MIN_MOMENT_SHARE) * max(smallest, 0.0)
        in_basis = (moments.count, mean, self._C, right, third, self._trace)
        arrays = [np.ascontiguousarray(x) for x in (*in_basis, moments.fourth)]
        fit = fit_squared_radii(
            MarkerMoments(*arrays),
            (self._max_subtracted, TINY_SQUARE_SHARE, ROUNDING_SHARE),
            MAX_ITERATIONS if bias_corrected else 0,
        )
        self.center = origin + basis @ fit.center  # Eq. 5; Eq. 6 in a plane
        self.variance = float(fit.variance[0])
        self.square, self._scatter = fit.square, fit.scatter

    @property
    def freedom(self) -> float:
        """The number of positions minus the unknowns, centre and radii."""
        count = self.moments.count
        unknowns = self.basis.shape[1] + np.count_nonzero(count)
        return max(float(count.sum() - unknowns), 1.0)

    def _inverse_normal_matrix(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return that inverse, the weight of one position, the variance subtracted."""
        from marey.joints.sphere.symmetric_kernel import pseudo_inverse

        count = self.moments.count
        subtracted, weight = 0.0, np.ones(len(count))
        if self.bias_corrected:
            # C - variance I stays positive, and squared radii count as radii: 1 / R^2.
            subtracted = float(min(self.variance, self._max_subtracted))
            smallest = TINY_SQUARE_SHARE * self.square.max()
            weight = 1.0 / np.maximum(self.square, smallest)
        C = self._C - subtracted * np.eye(self.basis.shape[1])
        H = np.einsum("m,mij->ij", weight * count, C)
        return pseudo_inverse(H, ROUNDING_SHARE), weight, subtracted

    def covariance(self) -> Float[np.ndarray, "3 3"]:
        """Return the covariance of the centre if the noise is white and isotropic.

        The sandwich of the normal matrix and the variance of the squared radii, both
        from moments; in square metres.
        """
        inverse, weight, _ = self._inverse_normal_matrix()
        scale = (0.5 * weight) ** 2 * self.moments.count * self._scatter
        gain = self.basis @ inverse
        return np.asarray(gain @ np.einsum("m,mij->ij", scale, self._C) @ gain.T)

    def influence(
        self, points: Float[np.ndarray, "frame marker 3"]
    ) -> Float[np.ndarray, "frame 3"]:
        """Return the influence of each frame on the centre, in metres."""
        inverse, weight, subtracted = self._inverse_normal_matrix()
        # From the mean of each marker to the centre, and to the marker.
        d = (self.center - self.moments.mean) @ self.basis @ self.basis.T
        y = points - self.moments.mean
        error = np.sum((y - d) ** 2, axis=-1) - self.square
        in_basis = y @ self.basis
        score = 0.5 * error[..., None] * in_basis + subtracted * (d @ self.basis)
        score = np.where(np.isfinite(score), score, 0.0)
        gain = inverse @ self.basis.T
        return np.asarray(np.einsum("m,fmi->fi", weight, score) @ gain)


def axis_influence(
    points: Float[np.ndarray, "frame marker 3"],
    moments: SphereMoments,
    axis: Float[np.ndarray, " 3"],
) -> Float[np.ndarray, "frame 3"]:
    """Return the influence of each frame on the normal of the markers' plane.

    To first order, in radians, as a small vector orthogonal to the normal.
    """
    y = np.where(np.isfinite(points), points - moments.mean, 0.0)
    score = np.einsum("fmi,fm->fi", y, y @ axis) / max(moments.count.sum(), 1.0)
    return np.asarray(-score @ _normal_gain(moments))


def white_noise_axis_covariance(
    moments: SphereMoments, variance: float
) -> Float[np.ndarray, "3 3"]:
    """Return the covariance of the plane's normal if the noise is white.

    In square radians.
    """
    gain = _normal_gain(moments)
    per_position = variance / max(moments.count.sum(), 1.0)
    return np.asarray(per_position * gain @ moments.covariance @ gain)


def _normal_gain(moments: SphereMoments) -> np.ndarray:
    """Return the derivative of a plane's normal by the moments across it.

    First-order perturbation of the eigenvector of the smallest eigenvalue of C.
    """
    value, vector = np.linalg.eigh(moments.covariance)
    gap = value[1:] - value[0]
    inverse_gap = np.divide(1.0, gap, out=np.zeros(2), where=gap > 0.0)
    return np.asarray((vector[:, 1:] * inverse_gap) @ vector[:, 1:].T)
