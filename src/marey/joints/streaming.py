"""Joints of a stream of poses, fitted while the bodies move."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from marey.errors import DataError
from marey.joint_fits import JointFits
from marey.joints.ball.assemble_fits import PairEstimates, assemble_joint_fits
from marey.joints.ball.closed_form import MAX_SD_M, bias_corrected_system, solve_centers
from marey.joints.ball.evidence import mediation_ratios_of_sums
from marey.joints.ball.normal_equations import (
    PairSums,
    all_pairs,
    form_normal_equations,
    sum_pairs,
    sums_of_complete_frames,
    zero_sums,
)
from marey.joints.noise import PoseNoise
from marey.numerics import Array, Float
from marey.options import Options, number, options_from


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions(Options):
    """How the joints of a stream are estimated."""

    forgetting: float = number(1.0, above=0.0, high=1.0)
    """Weight of a frame relative to the next one, above 0 to 1. With 0.999 the last
    thousand frames count, with 1 all frames count equally."""

    noise: float = number(0.0, low=0.0, high=1.0)
    """Standard deviation per axis of the positions, in metres."""

    turn_noise: float = number(0.0, low=0.0, high=1.0)
    """Standard deviation per axis of the orientations, in radians; the centres are
    corrected for its bias."""

    max_sd: float = number(MAX_SD_M, above=0.0)
    """As in `BallOptions`."""


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
        **options: Fields of `StreamOptions`.
    """

    def __init__(self, n_bodies: int, **options: Any) -> None:
        if n_bodies < 2:
            raise DataError("joints", found=f"{n_bodies} bodies", needed="at least 2")
        self.options = options_from(StreamOptions, options)
        self.n_frames = 0
        """Number of frames so far."""
        self._noise = PoseNoise(
            np.tile(self.options.turn_noise**2 * np.eye(3), (n_bodies, 1, 1)),
            np.full(n_bodies, self.options.noise**2),
            np.zeros((n_bodies, 3)),
            np.zeros(n_bodies, dtype=bool),
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
        needed = self._gapped.both.shape[1:]
        if T_world_body.shape != needed:
            found = f"shape {T_world_body.shape}"
            raise DataError("frame", found=found, needed=f"{needed}")
        n_bodies = len(T_world_body)
        self.n_frames += 1
        forgetting = self.options.forgetting
        if forgetting < 1.0:
            self._gram *= forgetting
            self._count *= forgetting
            # These sums are large; without occlusions they stay zero and are skipped.
            if self._gapped.count.any():
                self._gapped = self._gapped.times(forgetting)
        rows = T_world_body[:, :3].transpose(1, 0, 2).reshape(3, 4 * n_bodies)
        if np.isfinite(rows).all():
            # Only differences of positions matter: without their mean, no digits are
            # lost far from the origin.
            rows[:, 3::4] -= (rows[:, 3::4].sum(axis=1) / n_bodies)[:, None]
            self._gram += rows.T @ rows
            self._count += 1.0
            return
        self._gapped = self._gapped + sum_pairs(T_world_body[None])

    def sums(self) -> PairSums:
        """Return the sums over all frames so far."""
        return self._complete_sums() + self._gapped

    def _complete_sums(self) -> PairSums:
        """Return the sums over the frames that show every body."""
        n_bodies = len(self._gapped.count)
        return sums_of_complete_frames(self._gram, n_bodies, self._count)

    def fits(self) -> JointFits:
        """Return the joints of all pairs so far; pairs that were never seen are NaN."""
        pair, noise = self._pair, self._noise
        raw = form_normal_equations(self.sums(), pair)
        system = bias_corrected_system(raw, noise, pair)
        centers = solve_centers(system, max_sd=self.options.max_sd)
        estimates = PairEstimates(pair, noise, system, centers)
        mediated = mediation_ratios_of_sums(self._complete_sums(), pair)
        return assemble_joint_fits(estimates, None, mediated)
