"""Joints of a stream of poses, fitted while the bodies move."""

import numpy as np
from jaxtyping import Float

from marey.errors import DataError, OptionError
from marey.joint_fits import JointFits
from marey.joints.ball.assemble_fits import (
    PairEstimates,
    assemble_joint_fits,
    centers_from_origins,
)
from marey.joints.ball.closed_form import bias_corrected_system, solve_centers
from marey.joints.ball.normal_equations import (
    PairSums,
    all_pairs,
    form_normal_equations,
    sum_pairs,
    zero_sums,
)
from marey.joints.ball.third_body import mediation_ratios_of_sums
from marey.joints.noise import PoseNoise

Array = np.ndarray


class JointAccumulator:
    r"""Joints of a stream, from sums whose size does not grow with time.

    ::

        accumulator = JointAccumulator(n_bodies=16)
        for T_world_body in stream:
            accumulator.update(T_world_body)
        fits = accumulator.fits()

    The sums are the normal equations of OBrien2000, Eq. 13, for all pairs, which
    `fit_joints` uses, too. With the forgetting factor :math:`\lambda` they are

    .. math:: S_n = \lambda S_{n-1} + \begin{bmatrix} R_1 & t_1 & \cdots & R_m & t_m
              \end{bmatrix}^T \begin{bmatrix} R_1 & t_1 & \cdots & R_m & t_m
              \end{bmatrix}

    The centres are the closed form of `fit_joints`: every frame counts, outliers
    included. Residuals below 1e-8 of the distance of the bodies are rounding error. If
    some frames do not show all bodies, `mediated` is that of the frames that do.

    Args:
        n_bodies: Number of bodies, 2 or more.
        forgetting: Weight of a frame relative to the next one, above 0 to 1. With 0.999
            the last thousand frames count, with 1 all frames count equally.
        noise: Standard deviation per axis of the positions, in metres.
        turn_noise: Standard deviation per axis of the orientations, in radians; the
            centres are corrected for its bias.
        max_sd: As in `BallOptions`.
    """

    def __init__(
        self,
        n_bodies: int,
        *,
        forgetting: float = 1.0,
        noise: float = 0.0,
        turn_noise: float = 0.0,
        max_sd: float = 0.05,
    ) -> None:
        if n_bodies < 2:
            raise DataError("joints", found=f"{n_bodies} bodies", needed="at least 2")
        if not 0.0 < forgetting <= 1.0:
            needed = "above 0, up to 1"
            raise OptionError("forgetting", found=forgetting, needed=needed)
        for name, value in (("noise", noise), ("turn_noise", turn_noise)):
            if not 0.0 <= value <= 1.0:
                raise OptionError(name, found=value, needed="0 to 1")
        self.forgetting = forgetting
        self.max_sd = max_sd
        self.n_frames = 0
        """Number of frames so far."""
        self._noise = PoseNoise(
            np.tile(turn_noise**2 * np.eye(3), (n_bodies, 1, 1)),
            np.full(n_bodies, noise**2),
            np.zeros((n_bodies, 3)),
        )
        self._pair = all_pairs(n_bodies)
        self._gram = np.zeros((4 * n_bodies, 4 * n_bodies))
        self._count = 0.0
        self._gapped = zero_sums(n_bodies)

    def update(self, T_world_body: Float[Array, "body 4 4"]) -> None:
        """Add one frame to the sums; a body that was not seen is NaN.

        Frames that show every body are one matrix product, which is fast; others go
        into sums of their own, with a count of frames for each pair.

        Raises:
            DataError: If the number of bodies is another.
        """
        n_bodies = len(self._gapped.count)
        if T_world_body.shape != (n_bodies, 4, 4):
            raise DataError(
                "frame",
                found=f"shape {T_world_body.shape}",
                needed=f"({n_bodies}, 4, 4)",
            )
        self.n_frames += 1
        if self.forgetting < 1.0:
            self._gram *= self.forgetting
            self._count *= self.forgetting
            # These sums are large; without occlusions they stay zero and are skipped.
            if self._gapped.count.any():
                self._gapped = self._gapped.times(self.forgetting)
        rows = T_world_body[:, :3].transpose(1, 0, 2).reshape(3, 4 * n_bodies)
        if np.isfinite(rows).all():
            # Only differences of positions matter: without their mean, no digits are
            # lost far from the origin.
            rows[:, 3::4] -= (rows[:, 3::4].sum(axis=1) / n_bodies)[:, None]
            self._gram += rows.T @ rows
            self._count += 1.0
            return
        seen = np.isfinite(T_world_body).all(axis=(-1, -2))
        self._gapped = self._gapped + sum_pairs(T_world_body[None], seen[None])

    def sums(self) -> PairSums:
        """Return the sums over all frames so far."""
        return self._complete_sums() + self._gapped

    def _complete_sums(self) -> PairSums:
        """Return the sums over the frames that show every body."""
        n = len(self._gapped.count)
        gram = self._gram.reshape(n, 4, n, 4).transpose(0, 2, 1, 3)
        diagonal = gram[np.arange(n), np.arange(n)]
        own = np.broadcast_to(diagonal[:, None], (n, n, 4, 4))
        return PairSums(
            count=np.full((n, n), self._count),
            rotation=gram[..., :3, :3],
            position=gram[..., :3, 3],
            square=gram[..., 3, 3],
            rotation_a=own[..., :3, :3],
            position_a=own[..., :3, 3],
            square_a=own[..., 3, 3],
        )

    def fits(self) -> JointFits:
        """Return the joints of all pairs so far; pairs that were never seen are NaN."""
        system = bias_corrected_system(
            form_normal_equations(self.sums(), self._pair), self._noise, self._pair
        )
        closed = solve_centers(system, max_sd=self.max_sd)
        correlation = np.ones(len(self._pair))
        draft = PairEstimates(self._pair, self._noise, system, closed, correlation)
        centers = centers_from_origins(draft)[0].reshape(-1, 2, 3)
        distance = np.linalg.norm(centers, axis=-1).mean(axis=1)
        mediated = mediation_ratios_of_sums(self._complete_sums(), self._pair)
        return assemble_joint_fits(draft, distance=distance, mediated=mediated)
