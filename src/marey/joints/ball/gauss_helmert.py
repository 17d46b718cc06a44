r"""Maximum likelihood joint centres when both poses of every frame are noisy.

The residual of a frame, x_a - t_a_b - R_a_b x_b, vanishes at the true poses. A
Gauss-Helmert model finds the centres u = (x_a, x_b) together with the smallest
adjustments of all poses, in the metric of their noise, that make every residual vanish.
Linearised at the current adjustments w_a and w_b (rotation vectors), the constraint of
frame k is A_k du + B_a w_a + B_b w_b + m_k = 0, whose residual has the covariance

.. math:: S_k = B_a C_a B_a^T + B_b C_b B_b^T + \sigma^2 I,

and each iteration solves the normal equations

.. math:: \sum_k A_k^T S_k^{-1} A_k \, du = -\sum_k A_k^T S_k^{-1} m_k.

The estimate reaches the Cramer-Rao bound where the least squares of OBrien2000 are
biased. Frames are reweighted by Tukey's biweight.
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
    C, K, u = np.stack([C_a, C_b]), np.stack([np.eye(3)] * 2), start.copy()
    constraints = _Constraints(R_a_b, t_a_b, C, position_variance)
    n, held = len(R_a_b), free @ free.T
    weight, steps = np.ones(n), list[float]()
    for iteration in range(MAX_ITERATIONS):
        if not constraints.linearise(u, K):
            return None
        used_stretches, K = K, _arm_stretches(C, constraints.information())
        if robust and iteration < REWEIGHTED_ITERATIONS:
            weight = tukey_weights(*constraints.residuals())
        H, g, square = constraints.sum_equations(weight)
        # Stiffness along the free directions holds the centres there.
        stiff = H + H.trace() * held
        if not np.isfinite(stiff).all():
            return None
        du = np.linalg.lstsq(stiff, g, rcond=1e-13)[0]
        constraints.adjust(du)
        u += du
        steps.append(float(du @ stiff @ du))
        # Residuals above the given noise widen the covariance of the centre.
        if _is_last(steps, max(square / (3 * n), 1.0)):
            break
    if not steps[-1] < DIVERGED_STEP_SD**2:
        return None
    constraints.undo_adjustments()
    constraints.linearise(u, used_stretches)
    used = weight > 0.0
    H, _, square = constraints.sum_equations(used.astype(float))
    scale = square / max(3 * int(used.sum()) - len(u), 1)
    return GaussHelmertFit(u, H, np.asarray(scale), used)


class _Constraints:
    """The linearised constraints of all frames, and the adjustments of their poses.

    The kernels take frames side by side, in lanes.
    """

    def __init__(
        self,
        R_a_b: Float[Array, "frame 3 3"],
        t_a_b: Float[Array, "frame 3"],
        covariances: Float[Array, "2 3 3"],
        position_variance: float,
    ) -> None:
        from marey.numerics.lanes_kernel import aligned_zeros

        self.n_frames = len(R_a_b)
        self.noise = covariances, position_variance
        is_frame = _side_by_side(np.ones(self.n_frames))
        self.poses = _side_by_side(R_a_b), _side_by_side(t_a_b), is_frame
        n_blocks = len(is_frame)
        self.rotations = aligned_zeros(n_blocks, 3), aligned_zeros(n_blocks, 3)
        matrices = (aligned_zeros(n_blocks, 3, 3) for _ in range(3))
        self.model = (
            aligned_zeros(n_blocks, 3, 6),
            *matrices,
            aligned_zeros(n_blocks, 3),
        )
        self.determined, self.sums = aligned_zeros(2, 3, 3), aligned_zeros(6, 8)

    def linearise(self, u: Float[Array, "6"], stretches: Float[Array, "2 3 3"]) -> bool:
        """Linearise at the adjusted poses; return whether all covariances are known."""
        from marey.joints.ball.gauss_helmert_kernel import linearise

        where = self.poses, u, self.rotations
        out = self.model, self.determined
        return bool(linearise(*where, self.noise[0], stretches, self.noise[1], *out))

    def information(self) -> Float[Array, "2 3 3"]:
        """Return the mean information in the residuals about the rotations."""
        return np.asarray(self.determined.sum(axis=-1) / self.n_frames)

    def residuals(self) -> tuple[Array, Array]:
        """Return the residual of every frame, and its inverse covariance."""
        _, _, _, P, m = self.model
        return _in_order(m, self.n_frames), _in_order(P, self.n_frames)

    def sum_equations(
        self, weight: Float[Array, " frame"]
    ) -> tuple[Array, Array, float]:
        """Return the weighted sums of A^T P A, of -A^T P m and of m^T P m."""
        from marey.joints.ball.gauss_helmert_kernel import sum_normal_equations

        A, _, _, P, m = self.model
        sum_normal_equations(A, P, m, _side_by_side(weight), self.sums)
        total = self.sums.sum(axis=-1)
        lower = np.tril(total[:, :6])
        return lower + np.tril(lower, -1).T, total[:, 6], float(total[5, 7])

    def adjust(self, du: Float[Array, "6"]) -> None:
        """Rotate the poses so that the constraints hold after a step."""
        from marey.joints.ball.gauss_helmert_kernel import adjust

        adjust(self.model, du, self.noise[0], self.rotations)

    def undo_adjustments(self) -> None:
        """Let the poses be those that were measured."""
        for rotation in self.rotations:
            rotation[:] = 0.0


def _side_by_side(values: Float[Array, "frame *item"]) -> Float[Array, "block *item _"]:
    """Return the values of several frames side by side, 0 beyond the last frame."""
    from marey.numerics.lanes_kernel import LANES, aligned_zeros

    n_blocks, item = -(-len(values) // LANES), values.shape[1:]
    result = aligned_zeros(n_blocks, *item)
    for lane in range(LANES):
        some = values[lane::LANES]
        result[: len(some), ..., lane] = some
    return result


def _in_order(
    values: Float[Array, "block *item _"], n_frames: int
) -> Float[Array, "frame *item"]:
    """Return the values frame by frame."""
    frames = np.moveaxis(values, -1, 1)
    return frames.reshape(-1, *frames.shape[2:])[:n_frames]


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
