"""Both centres of a joint at once: radii in both bodies, and the joint residual.

In the axes of one body the markers of the other run on spheres, of which only the radii
count. If both bodies have poses, the two centres must also stay together as the bodies
rotate (OBrien2000). A joint of small range shows little of its sphere, but its rotation
is measured well, and so is the residual.
"""

import numpy as np
from jaxtyping import Float

from marey.joints.sphere.algebraic import ROUNDING
from marey.joints.sphere.geometric import (
    CONVERGED_STEP,
    MAX_STEP_RADII,
    MAX_STEPS,
    EstimatingEquation,
    estimating_equation,
    limit_noise_share,
    radial_errors,
)
from marey.joints.sphere.one_sided import OneSidedFit
from marey.numerics import geometry

Array = np.ndarray
Sides = tuple[OneSidedFit, OneSidedFit]
Centers = Float[Array, "2 3"]


def fit_both_centers(
    T_a_b: Float[Array, "frame 4 4"], sides: Sides
) -> tuple[Centers, Float[Array, "6 6"]]:
    """Return the centres in a and b that fit radii and residual best.

    Least squares, each term weighted by the inverse of its mean square, with the
    expected scores due to the noise of the axes subtracted. The terms share the noise
    of the orientations, so the covariance is the empirical (sandwich) one over frames.

    Args:
        T_a_b: Pose of b in a, NaN where one of them is occluded.
        sides: The joint in the axes of a and of b, over the same frames; both with as
            many directions in their basis.

    Returns:
        (center_a, center_b) in metres, and their covariance in square metres.
    """
    start = centers = np.stack([side.center for side in sides])
    k = sides[0].basis.shape[1]
    farthest = max(np.nanmax(np.linalg.norm(s.points, axis=-1)) for s in sides)
    for _ in range(MAX_STEPS):
        step = _equation(T_a_b, sides, centers).step
        moved = (sides[0].basis @ step[:k], sides[1].basis @ step[k:])
        centers = centers + np.stack(moved)
        if not np.linalg.norm(centers - start) < MAX_STEP_RADII * farthest:
            centers = start
            break
        if np.linalg.norm(step) <= CONVERGED_STEP * farthest:
            break
    covariance = _equation(T_a_b, sides, centers).covariance
    basis = np.zeros((6, 2 * k))
    basis[:3, :k], basis[3:, k:] = sides[0].basis, sides[1].basis
    return centers, basis @ covariance @ basis.T


def _equation(T_a_b: Array, sides: Sides, centers: Centers) -> EstimatingEquation:
    """Return the weighted scores of radii and residual for (center_a, center_b)."""
    k = sides[0].basis.shape[1]
    score, hessian = [], []
    for i, (side, center) in enumerate(zip(sides, centers, strict=True)):
        weight = 1.0 / _radial_variance(side, center)
        block = slice(i * k, i * k + k)
        radii = estimating_equation(side.points, center, side.basis, side.bias)
        score.append(np.zeros((*radii.score.shape[:2], 2 * k)))
        score[-1][..., block] = weight * radii.score
        hessian.append(np.zeros((len(radii.hessian), 2 * k, 2 * k)))
        hessian[-1][:, block, block] = weight * radii.hessian
    residual_score, residual_hessian = _residual_equation(T_a_b, sides, centers)
    return EstimatingEquation(
        np.concatenate([*score, residual_score[:, None]], axis=1),
        np.concatenate([*hessian, residual_hessian[None]]),
        has_residual=True,
    )


def _radial_variance(side: OneSidedFit, center: Array) -> float:
    error, radius = radial_errors(side.points, center, side.basis)
    count = np.isfinite(side.points).all(axis=-1).sum()
    rounding = ROUNDING * np.nanmax(radius) ** 2
    return float(np.sum(error**2) / max(count, 1) + rounding)


def _residual_equation(
    T_a_b: Array, sides: Sides, centers: Centers
) -> tuple[Float[Array, "frame both"], Float[Array, "both both"]]:
    """Return scores and Hessian of the joint residual, without their noise bias."""
    B_a, B_b = (side.basis for side in sides)
    k = B_a.shape[1]
    known = np.isfinite(T_a_b).all(axis=(1, 2))
    residual = geometry.apply(T_a_b, centers[1]) - centers[0]
    residual = np.where(known[:, None], residual, 0.0) @ B_a
    rotation = np.where(known[:, None, None], B_a.T @ T_a_b[:, :3, :3] @ B_b, 0.0)
    count = max(int(known.sum()), 1)
    size = np.mean(np.sum(centers**2, axis=1))
    variance = np.sum(residual**2) / (count * k) + ROUNDING * size
    bias = [noise_bias(s, c) for s, c in zip(sides, centers, strict=True)]
    jacobian = np.concatenate([known[:, None, None] * np.eye(k), -rotation], axis=2)
    score = np.einsum("fki,fk->fi", jacobian, residual)
    score += known[:, None] * np.concatenate([expected for expected, _ in bias])
    gauss_newton = np.einsum("fki,fkj->ij", jacobian, jacobian, optimize=True)
    hessian = gauss_newton.copy()
    hessian[:k, :k] -= count * bias[0][1]
    hessian[k:, k:] -= count * bias[1][1]
    limited = limit_noise_share(hessian[None], gauss_newton[None])[0]
    return score / variance, limited / variance


def noise_bias(side: OneSidedFit, center: Array) -> tuple[Array, Array]:
    """Return the expected score of one frame's residual from noise, and its Hessian.

    A noisy rotation w moves the centre c by w x (c - anchor). The mean square of that
    displacement grows with the arm, so least squares shorten the arm; this is half its
    gradient by c, and half its second derivative.
    """
    hats = geometry.hat(side.basis.T)
    C = side.axis_noise.rotation_covariance
    square = np.einsum("kji,jl,klm->im", hats, C, hats)
    arm = center - side.axis_noise.anchor
    return side.basis.T @ square @ arm, side.basis.T @ square @ side.basis
