"""Centres of spheres and circles from moments alone, in closed form.

A basis (3, k) holds unit columns: the identity for a sphere, two directions of the
plane for a circle. All markers share the centre and each has its own radius.
"""

import numpy as np
from jaxtyping import Float

from marey.joints.sphere.moments import Moments

Basis = Float[np.ndarray, "3 directions"]

# A share of the points' own spread (squared) that rounding alone may leave.
ROUNDING = 1e-14

# The noise taken off leaves this share of the smallest moment, or the fit tips over.
LEAST_LEFT = 0.02

MOST_ROUNDS = 60


def kasa(moments: Moments, basis: Basis) -> tuple[Float[np.ndarray, " 3"], float]:
    """Return centre and noise variance by Knight2007, Eqs. 5 and 6, markers summed."""
    center = _center(moments, 0.0, moments.count, basis)
    return center, noise_of(moments, center, basis)


def corrected(moments: Moments, basis: Basis) -> tuple[Float[np.ndarray, " 3"], float]:
    """Return centre and noise variance that agree with each other.

    Noise adds its variance to the second moments and nothing to the third (but noise),
    so it is taken off the second; what it is, the radii about the centre say.
    """
    center, variance = kasa(moments, basis)
    for _ in range(MOST_ROUNDS):
        before = center
        taken_off = _taken_off(moments, variance, basis)
        weight = _weights(moments, center, basis)
        center = _center(moments, taken_off, weight, basis)
        variance = noise_of(moments, center, basis)
        _, square, _ = distances(moments, center, basis)
        if np.sum((center - before) ** 2) <= 1e-20 * square.max():
            break
    return center, variance


def mean_second(moments: Moments) -> Float[np.ndarray, "3 3"]:
    """Return the second moments averaged over all positions."""
    return np.asarray(np.average(moments.second, axis=0, weights=moments.count))


def freedom(moments: Moments, basis: Basis) -> float:
    """Return how many radii are left over when centre and radii are fitted."""
    used = basis.shape[1] + np.count_nonzero(moments.count)
    return max(float(moments.count.sum() - used), 1.0)


def distances(
    moments: Moments, center: Float[np.ndarray, " 3"], basis: Basis
) -> tuple[
    Float[np.ndarray, "marker 3"],
    Float[np.ndarray, " marker"],
    Float[np.ndarray, " marker"],
]:
    """Return the way from each mean to the centre, mean and variance of |x - c|^2.

    In a plane each marker is measured from the point of the axis at its own height.
    """
    d = (center - moments.mean) @ basis @ basis.T
    size = np.trace(moments.second, axis1=-2, axis2=-1)
    square = size + np.sum(d * d, axis=-1)
    Cd = np.einsum("mij,mj->mi", moments.second, d)
    variance = moments.fourth - size**2 + 4.0 * np.sum(d * (Cd - moments.third), axis=1)
    return d, square, variance.clip(0.0)  # Eq. 1


def noise_of(moments: Moments, center: Float[np.ndarray, " 3"], basis: Basis) -> float:
    """Return the variance of one coordinate that explains the scatter of the radii.

    With isotropic noise var |x - c|^2 = 4 R^2 s + 6 s^2 and mean |x - c|^2 = R^2 + 3 s.
    """
    _, square, variance = distances(moments, center, basis)
    root = np.sqrt((4.0 * square**2 - 6.0 * variance).clip(0.0))
    share = _quotient(variance, 2.0 * square + root)
    return float(moments.count @ share / freedom(moments, basis))


def covariance_of(
    moments: Moments,
    center: Float[np.ndarray, " 3"],
    variance: float,
    basis: Basis,
    *,
    plain: bool,
) -> Float[np.ndarray, "3 3"]:
    """Return the covariance of the centre if the noise is white and isotropic."""
    H, weight, _ = _normal(moments, center, variance, basis, plain=plain)
    _, _, scatter = distances(moments, center, basis)
    C = basis.T @ moments.second @ basis
    middle = np.einsum("m,mij->ij", 0.25 * weight**2 * moments.count * scatter, C)
    inverse = np.linalg.pinv(H, rcond=ROUNDING, hermitian=True)
    return np.asarray(basis @ inverse @ middle @ inverse @ basis.T)


def influence(
    points: Float[np.ndarray, "frame marker 3"],
    moments: Moments,
    center: Float[np.ndarray, " 3"],
    variance: float,
    basis: Basis,
    *,
    plain: bool,
) -> Float[np.ndarray, "frame 3"]:
    """Return how far the noise of each frame moved the centre, in metres."""
    H, weight, taken_off = _normal(moments, center, variance, basis, plain=plain)
    d, square, _ = distances(moments, center, basis)
    y = points - moments.mean
    off = np.sum((y - d) ** 2, axis=-1) - square
    push = 0.5 * off[..., None] * (y @ basis) + taken_off * (d @ basis)
    push = np.where(np.isfinite(push), push, 0.0)
    inverse = np.linalg.pinv(H, rcond=ROUNDING, hermitian=True)
    return np.asarray(np.einsum("m,fmi->fi", weight, push) @ inverse @ basis.T)


def axis_influence(
    points: Float[np.ndarray, "frame marker 3"],
    moments: Moments,
    axis: Float[np.ndarray, " 3"],
) -> Float[np.ndarray, "frame 3"]:
    """Return how far the noise of each frame turned the normal of the markers' plane.

    To first order, in radians (as a small vector across the normal).
    """
    value, vector = np.linalg.eigh(mean_second(moments))
    y = np.where(np.isfinite(points), points - moments.mean, 0.0)
    gain = _normal_gain(value, vector)
    push = np.einsum("fmi,fm->fi", y, y @ axis) / max(moments.count.sum(), 1.0)
    return np.asarray(-push @ gain)


def axis_covariance_of(moments: Moments, variance: float) -> Float[np.ndarray, "3 3"]:
    """Return the covariance of the plane's normal if the noise is white."""
    value, vector = np.linalg.eigh(mean_second(moments))
    gain = _normal_gain(value, vector)
    share = variance / max(moments.count.sum(), 1.0)
    return np.asarray(share * gain @ mean_second(moments) @ gain)


def _normal_gain(value: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return what turns a plane's normal, per square metre of moment across it."""
    clear = _quotient(np.ones(2), (value[1:] - value[0]).clip(0.0))
    return np.asarray((vector[:, 1:] * clear) @ vector[:, 1:].T)


def _normal(
    moments: Moments,
    center: np.ndarray,
    variance: float,
    basis: np.ndarray,
    *,
    plain: bool,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the normal matrix, the weight of one position, the noise taken off."""
    taken_off = 0.0 if plain else _taken_off(moments, variance, basis)
    weight = np.ones(len(moments.count))
    if not plain:
        weight = _quotient(_weights(moments, center, basis), moments.count)
    C = basis.T @ (moments.second - taken_off * np.eye(3)) @ basis
    return np.einsum("m,mij->ij", weight * moments.count, C), weight, taken_off


def _taken_off(moments: Moments, variance: float, basis: np.ndarray) -> float:
    least = np.linalg.eigvalsh(basis.T @ mean_second(moments) @ basis)[0]
    return float(min(variance, (1.0 - LEAST_LEFT) * max(least, 0.0)))


def _weights(moments: Moments, center: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return weights by which squared radii count as if they were radii."""
    _, square, _ = distances(moments, center, basis)
    return np.asarray(moments.count / np.maximum(square, 1e-4 * square.max()))


def _center(
    moments: Moments, variance: float, weight: np.ndarray, basis: np.ndarray
) -> np.ndarray:
    """Solve sum_j w_j (C_j - variance) (c - mean_j) = sum_j w_j S_j / 2 in a basis."""
    middle = np.average(moments.mean, axis=0, weights=moments.count)
    C = basis.T @ (moments.second - variance * np.eye(3)) @ basis
    mean = (moments.mean - middle) @ basis
    right = 0.5 * moments.third @ basis + np.einsum("mij,mj->mi", C, mean)
    A, b = np.einsum("m,mij->ij", weight, C), weight @ right
    return np.asarray(middle + basis @ _solved(A, b))  # Eq. 5; Eq. 6 in a plane


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve for a positive matrix; where it is none, the shortest good solution."""
    try:
        L = np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(A, rcond=ROUNDING, hermitian=True) @ b)
    return np.asarray(np.linalg.solve(L.T, np.linalg.solve(L, b)))


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a / b, zero where b is."""
    return np.asarray(np.divide(a, b, out=np.zeros_like(a), where=b > 0.0))
