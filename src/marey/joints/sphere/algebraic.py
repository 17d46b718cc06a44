r"""Algebraic sphere and circle fits in closed form, from moments alone.

The generalised Delogne-Kasa estimator (GDKE) of Knight2007 minimises the variance of
the squared radii (Eq. 1). With the mean, the covariance C (Eq. 2) and the third moment
S (Eq. 4) of the positions the centre is

.. math:: c = \bar x + C^{-1} S / 2 \quad \text{(Eq. 5)}.

Noise adds its variance to C and nothing to the expectation of S, so on less than a full
sphere this centre is drawn towards the markers. The bias-corrected estimator replaces C
by C - sigma^2 I (METHODS.md, Sec. 2.3).

A basis (3, k) has unit columns: the identity for a sphere, two directions of the plane
for a circle (Eq. 6). All markers share the centre; each has its own radius.
"""

import numpy as np
from jaxtyping import Float

from marey.joints.sphere.moments import SphereMoments

Basis = Float[np.ndarray, "3 directions"]
Center = Float[np.ndarray, " 3"]

ROUNDING = 1e-14
"""Share of the squared spread of the positions that rounding alone may leave."""

MIN_MOMENT_SHARE = 0.02
"""Share of the smallest eigenvalue of C that remains when the noise is subtracted;
without it the centre can move to the other side of the markers. Higher leaves more
bias. Chosen by hand."""

MIN_SQUARE_SHARE = 1e-4
"""Smallest squared radius over the largest that counts in the weights. Higher gives
markers near the centre less weight. Chosen by hand."""

MAX_ROUNDS = 60
"""Largest number of rounds of centre and noise. Chosen by hand."""


def fit_kasa(moments: SphereMoments, basis: Basis) -> tuple[Center, float]:
    """Return centre and noise variance by Knight2007, Eqs. 5 and 6, markers summed."""
    center = _solve_center(moments, 0.0, moments.count, basis)
    return center, noise_variance(moments, center, basis)


def fit_bias_corrected(moments: SphereMoments, basis: Basis) -> tuple[Center, float]:
    """Return a centre and a noise variance that are consistent with each other.

    Each round subtracts the noise variance from the second moments, solves for the
    centre, and estimates the variance from the radii about that centre.
    """
    center, variance = fit_kasa(moments, basis)
    for _ in range(MAX_ROUNDS):
        before = center
        subtracted = _subtracted_variance(moments, variance, basis)
        weight = _radius_weights(moments, center, basis)
        center = _solve_center(moments, subtracted, weight, basis)
        variance = noise_variance(moments, center, basis)
        _, square, _ = squared_distances(moments, center, basis)
        if np.sum((center - before) ** 2) <= 1e-20 * square.max():
            break
    return center, variance


def mean_covariance(moments: SphereMoments) -> Float[np.ndarray, "3 3"]:
    """Return the second moments averaged over all positions."""
    return np.asarray(np.average(moments.second, axis=0, weights=moments.count))


def degrees_of_freedom(moments: SphereMoments, basis: Basis) -> float:
    """Return the number of positions minus the unknowns, centre and radii."""
    unknowns = basis.shape[1] + np.count_nonzero(moments.count)
    return max(float(moments.count.sum() - unknowns), 1.0)


def squared_distances(
    moments: SphereMoments, center: Center, basis: Basis
) -> tuple[
    Float[np.ndarray, "marker 3"],
    Float[np.ndarray, " marker"],
    Float[np.ndarray, " marker"],
]:
    """Return c - mean of each marker, and mean and variance of |x - c|^2 (Eq. 1).

    In a plane each marker is measured from the point of the axis at its own height.
    """
    d = (center - moments.mean) @ basis @ basis.T
    trace = np.trace(moments.second, axis1=-2, axis2=-1)
    square = trace + np.sum(d * d, axis=-1)
    Cd = np.einsum("mij,mj->mi", moments.second, d)
    variance = (
        moments.fourth - trace**2 + 4.0 * np.sum(d * (Cd - moments.third), axis=1)
    )
    return d, square, variance.clip(0.0)  # Eq. 1


def noise_variance(moments: SphereMoments, center: Center, basis: Basis) -> float:
    r"""Return the variance of one coordinate that explains the scatter of the radii.

    Isotropic noise of variance s gives

    .. math:: \mathrm{var}|x - c|^2 = 4 R^2 s + 6 s^2, \quad
        \mathrm{mean}|x - c|^2 = R^2 + 3 s,

    which is solved for s. In square metres.
    """
    _, square, variance = squared_distances(moments, center, basis)
    root = np.sqrt((4.0 * square**2 - 6.0 * variance).clip(0.0))
    of_marker = _quotient(variance, 2.0 * square + root)
    return float(moments.count @ of_marker / degrees_of_freedom(moments, basis))


def white_noise_covariance(
    moments: SphereMoments,
    center: Center,
    variance: float,
    basis: Basis,
    *,
    bias_corrected: bool,
) -> Float[np.ndarray, "3 3"]:
    """Return the covariance of the centre if the noise is white and isotropic.

    The sandwich of the normal matrix and the variance of the squared radii, both from
    moments; in square metres.
    """
    H, weight, _ = _normal_matrix(
        moments, center, variance, basis, bias_corrected=bias_corrected
    )
    _, _, scatter = squared_distances(moments, center, basis)
    C = basis.T @ moments.second @ basis
    middle = np.einsum("m,mij->ij", 0.25 * weight**2 * moments.count * scatter, C)
    inverse = np.linalg.pinv(H, rcond=ROUNDING, hermitian=True)
    return np.asarray(basis @ inverse @ middle @ inverse @ basis.T)


def center_influence(
    points: Float[np.ndarray, "frame marker 3"],
    moments: SphereMoments,
    center: Center,
    variance: float,
    basis: Basis,
    *,
    bias_corrected: bool,
) -> Float[np.ndarray, "frame 3"]:
    """Return the influence of each frame on the centre, in metres."""
    H, weight, subtracted = _normal_matrix(
        moments, center, variance, basis, bias_corrected=bias_corrected
    )
    d, square, _ = squared_distances(moments, center, basis)
    y = points - moments.mean
    error = np.sum((y - d) ** 2, axis=-1) - square
    score = 0.5 * error[..., None] * (y @ basis) + subtracted * (d @ basis)
    score = np.where(np.isfinite(score), score, 0.0)
    inverse = np.linalg.pinv(H, rcond=ROUNDING, hermitian=True)
    return np.asarray(np.einsum("m,fmi->fi", weight, score) @ inverse @ basis.T)


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
    return np.asarray(per_position * gain @ mean_covariance(moments) @ gain)


def _normal_gain(moments: SphereMoments) -> np.ndarray:
    """Return the derivative of a plane's normal by the moments across it.

    First-order perturbation of the eigenvector of the smallest eigenvalue of C.
    """
    value, vector = np.linalg.eigh(mean_covariance(moments))
    inverse_gap = _quotient(np.ones(2), (value[1:] - value[0]).clip(0.0))
    return np.asarray((vector[:, 1:] * inverse_gap) @ vector[:, 1:].T)


def _normal_matrix(
    moments: SphereMoments,
    center: np.ndarray,
    variance: float,
    basis: np.ndarray,
    *,
    bias_corrected: bool,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the normal matrix, the weight of one position, the variance subtracted."""
    subtracted, weight = 0.0, np.ones(len(moments.count))
    if bias_corrected:
        subtracted = _subtracted_variance(moments, variance, basis)
        weight = _quotient(_radius_weights(moments, center, basis), moments.count)
    C = basis.T @ (moments.second - subtracted * np.eye(3)) @ basis
    return np.einsum("m,mij->ij", weight * moments.count, C), weight, subtracted


def _subtracted_variance(
    moments: SphereMoments, variance: float, basis: np.ndarray
) -> float:
    """Return the noise variance, limited so that C - variance I stays positive."""
    smallest = np.linalg.eigvalsh(basis.T @ mean_covariance(moments) @ basis)[0]
    return float(min(variance, (1.0 - MIN_MOMENT_SHARE) * max(smallest, 0.0)))


def _radius_weights(
    moments: SphereMoments, center: np.ndarray, basis: np.ndarray
) -> np.ndarray:
    """Return weights that make squared radii count as radii: 1 / R^2."""
    _, square, _ = squared_distances(moments, center, basis)
    return np.asarray(
        moments.count / np.maximum(square, MIN_SQUARE_SHARE * square.max())
    )


def _solve_center(
    moments: SphereMoments, variance: float, weight: np.ndarray, basis: np.ndarray
) -> np.ndarray:
    """Solve sum_j w_j (C_j - variance I) (c - mean_j) = sum_j w_j S_j / 2 for c."""
    origin = np.average(moments.mean, axis=0, weights=moments.count)
    C = basis.T @ (moments.second - variance * np.eye(3)) @ basis
    mean = (moments.mean - origin) @ basis
    right = 0.5 * moments.third @ basis + np.einsum("mij,mj->mi", C, mean)
    A, b = np.einsum("m,mij->ij", weight, C), weight @ right
    return np.asarray(origin + basis @ _solve(A, b))  # Eq. 5; Eq. 6 in a plane


def _solve(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve by Cholesky; for a matrix that is not positive, by the pseudo-inverse."""
    try:
        L = np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(A, rcond=ROUNDING, hermitian=True) @ b)
    return np.asarray(np.linalg.solve(L.T, np.linalg.solve(L, b)))


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a / b, zero where b is."""
    return np.asarray(np.divide(a, b, out=np.zeros_like(a), where=b > 0.0))
