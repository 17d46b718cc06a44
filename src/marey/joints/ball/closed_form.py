"""Closed-form joint centres of all pairs: least squares without its noise bias.

OBrien2000 solves A u = g (Eq. 13). Noise of the orientations shrinks the mean of
R_a^T R_b. That has the effect of extra motion and draws the centres towards the
sensors (errors in variables). Dividing by the expected shrinkage K
(`marey.joints.noise.rotation_shrinkage`) removes the bias to second order.
"""

from dataclasses import dataclass

import numpy as np

from marey.joints.ball.normal_equations import NormalEquations, Pairs, PerPair
from marey.joints.noise import PoseNoise, rotation_shrinkage
from marey.numerics import Array, Bool, Float
from marey.numerics.thresholds import CERTAIN_SD, MAX_PLAY_RAD, OUTLIER_SD

MIN_EIGENVALUE = 1e-10
"""Eigenvalues of A (no unit) below this are rounding: a swing of about 1e-5 rad.
Higher treats more of a small motion as none. Chosen by hand."""

NOISE_UNCERTAINTY = 0.2
"""Relative uncertainty of the estimated noise. Higher calls more directions free.
Chosen by hand."""

MAX_SD_M = 0.05
"""Predicted standard deviation of a centre, in metres, above which a direction counts
as free, unless a caller says otherwise. Higher calls fewer joints hinges. Chosen by
hand."""

FREE_SD_M = 10.0
"""Standard deviation, in metres, of a centre along a direction that the motion leaves
free. Any length far above a body's will do; higher changes nothing. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class EigenSystem:
    """Normal equations with the noise of the orientations taken out, decomposed."""

    raw: NormalEquations
    """The equations before that correction."""

    A: Float[Array, "pair 6 6"]
    g: Float[Array, "pair 6"]
    eigenvalues: Float[Array, "pair 6"]
    """Eigenvalues of A, ascending."""

    eigenvectors: Float[Array, "pair 6 6"]
    """Eigenvectors of A, in columns."""

    def least_squares(
        self, gain: Float[Array, "pair 6"] | None = None
    ) -> Float[Array, "pair 6"]:
        """Return the centres u = V diag(gain) V^T g in metres, with the eigenvectors V.

        Args:
            gain: Used instead of the inverse eigenvalues; None = their pseudo-inverse.
        """
        gain = self.pseudo_inverse() if gain is None else gain
        along = np.einsum("pij,pi->pj", self.eigenvectors, self.g)
        return np.asarray(np.einsum("pij,pj->pi", self.eigenvectors, gain * along))

    def pseudo_inverse(self) -> Float[Array, "pair 6"]:
        """Return the inverse eigenvalues; zero where they are rounding."""
        excited = self.eigenvalues > MIN_EIGENVALUE
        return np.where(excited, 1.0 / np.where(excited, self.eigenvalues, 1.0), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class CenterEstimates:
    """Joint centres of pairs, and how well the motion determines them."""

    u: Float[Array, "pair 6"]
    """(center_a, center_b) relative to the anchors of the two bodies, in metres."""

    residual: PerPair
    """Root mean square distance of the two centres in the world, in metres."""

    free: Bool[Array, "pair 3"]
    """Which of the three weakest eigenvectors the motion leaves free."""

    sd: Float[Array, "pair 3"]
    """Predicted standard deviation of the centre along them, in metres."""

    has_play: Bool[Array, " pair"]
    """Whether the motion across one axis is no more than noise and play: a hinge."""

    covariance: Float[Array, "pair 6 6"]
    """Covariance of u, in square metres, without the free directions."""

    @property
    def is_hinge(self) -> Bool[Array, " pair"]:
        """Whether one direction is free, or has no more than play."""
        n_free = self.free.sum(axis=1)
        return np.asarray((n_free == 1) | (self.has_play & (n_free == 0)))


def undo_rotation_shrinkage(
    A: Float[Array, "pair 6 6"],
    K_a: Float[Array, "pair 3 3"],
    K_b: Float[Array, "pair 3 3"],
) -> Float[Array, "pair 6 6"]:
    r"""Return information about (center_a, center_b) without the part due to noise.

    Noise shrinks the mean M of R_a^T R_b, the off-diagonal block of A, which
    has the effect of motion. The corrected block is

    .. math:: M' = K_a^{-T} M K_b^{-1}.
    """
    corrected = A.copy()
    left, right = np.linalg.inv(K_a), np.linalg.inv(K_b)
    corrected[:, :3, 3:] = np.swapaxes(left, 1, 2) @ A[:, :3, 3:] @ right
    corrected[:, 3:, :3] = np.swapaxes(corrected[:, :3, 3:], 1, 2)
    return corrected


def bias_corrected_system(
    raw: NormalEquations, noise: PoseNoise, pair: Pairs
) -> EigenSystem:
    """Return the equations of pairs corrected for the noise of their orientations."""
    K_a, K_b = (rotation_shrinkage(noise.rotation_covariance[body]) for body in pair.T)
    A = undo_rotation_shrinkage(raw.A, K_a, K_b)
    g = raw.g.copy()
    g[:, :3] = np.linalg.solve(np.swapaxes(K_a, 1, 2), g[:, :3, None])[..., 0]
    g[:, 3:] = np.linalg.solve(np.swapaxes(K_b, 1, 2), g[:, 3:, None])[..., 0]
    return _decompose(raw, A, g)


def uncorrected_system(raw: NormalEquations) -> EigenSystem:
    """Return the equations as OBrien2000 has them."""
    return _decompose(raw, raw.A, raw.g)


def _decompose(raw: NormalEquations, A: Array, g: Array) -> EigenSystem:
    known = np.isfinite(A).all(axis=(1, 2))
    value, vector = np.full((len(A), 6), np.nan), np.full((len(A), 6, 6), np.nan)
    value[known], vector[known] = np.linalg.eigh(A[known])
    return EigenSystem(raw, A, g, value, vector)


def solve_centers(
    system: EigenSystem,
    *,
    max_sd: float,
    correlation: PerPair | float = 1.0,
    noise_ratio: PerPair | float = 1.0,
) -> CenterEstimates:
    """Return the centres of pairs, of minimum norm where the motion leaves them free.

    The truncated eigenvalue solution of Eq. 13. A direction is free when the predicted
    standard deviation of the centre along it exceeds `max_sd`. Departure: OBrien2000
    asks whether a singular value is near zero, which ignores the noise and the number
    of frames.

    Args:
        system: The equations.
        max_sd: In metres.
        correlation: Frames per independent residual, 1 or more.
        noise_ratio: Variance of the noise over that which the system is corrected for.
    """
    raw, vector = system.raw, system.eigenvectors
    inverse = system.pseudo_inverse()
    residual = raw.rms_residual(system.least_squares(inverse))
    count, unknowns = raw.count, raw.g.shape[1]
    # Three equations per frame for the two centres.
    freedom = np.maximum(0.5 * unknowns * count - unknowns, 1.0)
    variance = residual**2 * count / freedom * correlation
    independent = np.maximum(count, 1.0) / correlation
    rotation = _certain_rotation(system, noise_ratio, independent)
    has_play = _is_play(rotation)
    sd = _predicted_sd(system, rotation, variance / np.maximum(count, 1.0))
    # Play has no centre: the same in every swing, it counts as one frame.
    sd[:, 0] *= np.where(has_play, np.sqrt(independent), 1.0)
    # Two bodies that are not joined have no joint whose centre could be free.
    uncertain = (sd > max_sd) & (residual <= max_sd)[:, None]
    free = uncertain | ~np.isfinite(sd)
    gain = inverse.copy()
    gain[:, :3][free] = 0.0
    u = system.least_squares(gain)  # Eq. 13
    inverse_A = np.einsum("pij,pj,pkj->pik", vector, gain, vector)
    covariance = inverse_A @ raw.A @ inverse_A
    covariance *= (variance / np.maximum(count, 1.0))[:, None, None]
    residual = raw.rms_residual(u)
    has_play &= residual <= max_sd
    return CenterEstimates(u, residual, free, sd, has_play, covariance)


def _certain_rotation(
    system: EigenSystem, noise_ratio: PerPair | float, independent: PerPair
) -> Float[Array, "pair 3"]:
    r"""Return the part of the three weakest eigenvalues that is surely motion.

    With the observed eigenvalue :math:`\lambda`, the part e of it that noise produces,
    and n independent frames,

    .. math:: \lambda - e (1 + \epsilon + 3 / \sqrt n).

    Args:
        system: The equations.
        noise_ratio: As in `solve_centers`.
        independent: The number n of independent frames.
    """
    from_noise = np.maximum(_observed_rotation(system) - system.eigenvalues[:, :3], 0.0)
    margin = 1.0 + NOISE_UNCERTAINTY + OUTLIER_SD / np.sqrt(independent)
    from_noise = from_noise * (noise_ratio * margin)[:, None]
    return np.asarray(_observed_rotation(system) - from_noise)


def _is_play(rotation: Float[Array, "pair 3"]) -> Bool[Array, " pair"]:
    """Return whether all motion but that about one axis is as small as play."""
    across, about = np.maximum(rotation[:, 0], 0.0), rotation[:, 1]
    return np.asarray((across <= MAX_PLAY_RAD**2) & (about > CERTAIN_SD**2 * across))


def _observed_rotation(system: EigenSystem) -> Float[Array, "pair 3"]:
    """Return v_k^T A v_k of the three weakest eigenvectors, with A as it was observed.

    No unit: the mean square sine of the rotation, and the noise of the orientations.
    """
    weakest = system.eigenvectors[:, :, :3]
    return np.asarray(np.einsum("pik,pij,pjk->pk", weakest, system.raw.A, weakest))


def _predicted_sd(
    system: EigenSystem, rotation: Float[Array, "pair 3"], variance: PerPair
) -> Float[Array, "pair 3"]:
    """Return the predicted standard deviation of a centre in its weakest directions.

    In metres; infinite where the observed motion is no more than noise produces.

    Args:
        system: The equations.
        rotation: The part of the three weakest eigenvalues that is surely motion.
        variance: Of one axis of the residual, over the number of independent frames.
    """
    moves = (rotation > 0.0) & (system.eigenvalues[:, :3] > MIN_EIGENVALUE)
    observed = np.maximum(_observed_rotation(system), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A unit step of (center_a, center_b) is a step of 1/sqrt(2) in each body.
        sd = np.sqrt(0.5 * variance[:, None] * observed) / rotation
    return np.where(moves, sd, np.inf)
