r"""Maximum likelihood joint centres when both poses of every frame are noisy.

The residual of a frame, x_a - t_a_b - R_a_b x_b, vanishes at the true poses. A
Gauss-Helmert model finds the centres u = (x_a, x_b) together with the smallest
adjustments of all poses, in the metric of their noise, that make every residual vanish.
Linearised at the current adjustments w_a and w_b (rotation vectors), the constraint of
frame k is A_k du + B_a w_a + B_b w_b + m_k = 0, whose residual has the covariance

.. math:: S_k = B_a C_a B_a^T + B_b C_b B_b^T + \sigma^2 I,

and each iteration solves the normal equations

.. math:: \sum_k A_k^T S_k^{-1} A_k \, du = -\sum_k A_k^T S_k^{-1} m_k

(METHODS.md, Sec. 2.2). The estimate reaches the Cramer-Rao bound where the least
squares of OBrien2000 are biased. Frames are reweighted by Tukey's biweight.
"""

from dataclasses import dataclass

import numpy as np

from marey.joints.ball.pair_frames import tukey_weights
from marey.joints.noise import rotation_shrinkage
from marey.numerics import Array, Bool, Float

MAX_ITERATIONS = 20
"""Largest number of Gauss-Newton iterations. Chosen by hand."""

REWEIGHTED_ITERATIONS = 3
"""Iterations after which the weights of the frames are fixed: weights that keep
changing would keep the iteration from converging. Chosen by hand."""

TINY_STEP_SD = 1e-2
"""Step, in standard deviations of the centre, below which the iteration has converged.
Higher stops earlier. Chosen by hand."""

DIVERGED_STEP_SD = 0.3
"""Last step, in standard deviations of the centre, above which there is no answer.
Higher accepts more iterations that did not converge. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class GaussHelmertFit:
    """The maximum likelihood estimate of one joint."""

    u: Float[Array, "6"]
    """(center_a, center_b) relative to the anchors of the two bodies, in metres."""

    information: Float[Array, "6 6"]
    """Fisher information about u, for the given noise and exact orientations; per
    square metre."""

    scale: Float[Array, ""]
    """Variance of the residuals over that of the given noise, without outliers."""

    used: Bool[Array, " frame"]
    """Frames with a weight above zero."""


def fit_gauss_helmert(
    R_a_b: Float[Array, "frame 3 3"],
    t_a_b: Float[Array, "frame 3"],
    start: Float[Array, "6"],
    *,
    C_a: Float[Array, "3 3"],
    C_b: Float[Array, "3 3"],
    position_variance: float,
    free: Float[Array, "6 k"],
    robust: bool,
) -> GaussHelmertFit | None:
    """Return the maximum likelihood centres, or None if the iteration diverges.

    Args:
        R_a_b: Relative orientation of the two bodies.
        t_a_b: From anchor a to anchor b, in the axes of a, in metres.
        start: First guess of the two centres.
        C_a: Covariance of the orientation of a, in square radians.
        C_b: Covariance of the orientation of b.
        position_variance: Variance per axis of `t_a_b` from both positions, above 0
            square metres.
        free: Orthonormal directions, in columns, along which the centres are held.
        robust: Whether frames that deviate get less weight.
    """
    from marey.joints.ball.gauss_helmert_kernel import (
        adjust,
        linearise,
        squared_norms,
        sum_normal_equations,
    )

    n = len(R_a_b)
    w_a, w_b, m = np.zeros((3, n, 3))
    A, (P, B_a, B_b) = np.empty((n, 3, 6)), np.empty((3, n, 3, 3))
    H, g, determined = np.empty((6, 6)), np.empty(6), np.empty((2, 3, 3))
    C, K, u = np.stack([C_a, C_b]), np.stack([np.eye(3)] * 2), start.copy()
    weight, square, steps, held = np.ones(n), np.empty(n), list[float](), free @ free.T
    for iteration in range(MAX_ITERATIONS):
        model = (C_a, C_b, *K, position_variance, A, B_a, B_b, P, m, determined)
        if not linearise(R_a_b, t_a_b, u, w_a, w_b, *model):
            return None
        K = _arm_stretches(C, determined)
        if robust and iteration < REWEIGHTED_ITERATIONS:
            weight = tukey_weights(m, P)
        sum_normal_equations(A, P, m, weight, H, g)
        # Stiffness along the free directions holds the centres there.
        stiff = H + H.trace() * held
        if not np.isfinite(stiff).all():
            return None
        du = np.linalg.lstsq(stiff, g, rcond=1e-13)[0]
        adjust(A, B_a, B_b, P, m, du, C_a, C_b, w_a, w_b)
        u += du
        steps.append(float(du @ stiff @ du))
        # Residuals above the given noise widen the covariance of the centre.
        squared_norms(m, P, square)
        scale = max(float(weight @ square) / m.size, 1.0)
        if _is_last(steps, scale):
            break
    if not steps[-1] < DIVERGED_STEP_SD**2:
        return None
    linearise(R_a_b, t_a_b, u, 0.0 * w_a, 0.0 * w_b, *model)
    used = weight > 0.0
    squared_norms(m, P, square)
    sum_normal_equations(A, P, m, used.astype(float), H, g)
    scale = float(np.sum(square[used])) / max(m[used].size - len(u), 1)
    return GaussHelmertFit(u, H, np.asarray(scale), used)


def _is_last(steps: list[float], scale: float) -> bool:
    """Return whether the iteration has converged, or will not.

    Because the stretch of the arms lags behind, every other step is alike: their ratio
    predicts the last one.

    Args:
        steps: Squared steps so far, in variances of the centre.
        scale: Variance of the residuals over that of the given noise.
    """
    limit, step = DIVERGED_STEP_SD**2, steps[-1]
    if step < min(TINY_STEP_SD**2 * scale, limit):
        return True
    if len(steps) < 2 * REWEIGHTED_ITERATIONS:
        return False
    ratio = step / steps[-3]
    left = (MAX_ITERATIONS - len(steps)) / 2
    return bool(ratio >= 1.0 or step * ratio**left > limit)


def _arm_stretches(
    rotation_covariance: Float[Array, "2 3 3"], information: Float[Array, "2 3 3"]
) -> Float[Array, "2 3 3"]:
    """Return the factors by which the adjusted poses lengthen the arms of both bodies.

    Residuals across an arm lengthen it whatever their sign, as a circle fitted to
    scattered points is too wide. The factor is the inverse shrinkage of the posterior
    covariance C - C I C of the rotations.

    Args:
        rotation_covariance: C, in square radians.
        information: I, the mean information in the residuals about the rotations.
    """
    posterior = (
        rotation_covariance - rotation_covariance @ information @ rotation_covariance
    )
    return np.linalg.inv(rotation_shrinkage(posterior))
