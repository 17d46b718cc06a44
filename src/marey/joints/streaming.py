"""Joints that become clear while the bodies move."""

import numpy as np
from jaxtyping import Float

from marey.errors import DataError, OptionError
from marey.joint_fits import JointFits
from marey.joints.assemble_fits import Draft, centers_of, packed
from marey.joints.ball.closed_form import solve, system_of
from marey.joints.ball.normal_equations import (
    PairSums,
    equations,
    no_sums,
    pairs_of,
    sum_pairs,
)
from marey.joints.ball.third_body import mediation_of_sums
from marey.joints.noise import PoseNoise, no_noise

Array = np.ndarray


class JointAccumulator:
    """Joints of a stream, from sums that grow with the pairs and never with time.

    ::

        accumulator = JointAccumulator(n_bodies=16)
        for T_world_body in stream:
            accumulator.update(T_world_body)
        fits = accumulator.fits()

    The sums are those of `fit_joints`, so the centres are its closed form: every frame
    has its say, spikes too. Residuals below 1e-8 of the bodies' distance are rounding.
    Where bodies have gaps, `mediated` is about the frames that show every body.

    Args:
        n_bodies: Number of bodies, 2 or more.
        forgetting: Weight of a frame against the next one, above 0 to 1. With 0.999 the
            answer is about the last thousand frames; with 1 it is about all.
        noise: Standard deviation per axis of the positions, in metres.
        turn_noise: Standard deviation per axis of the orientations, in radians, which
            is taken out of the answer.
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
        """Frames taken in so far."""
        self._noise = _same_for_all(n_bodies, noise, turn_noise)
        self._pair = pairs_of(n_bodies)
        self._whole = np.zeros((4 * n_bodies, 4 * n_bodies))
        self._count = 0.0
        self._gapped = no_sums(n_bodies)

    def update(self, T_world_body: Float[Array, "body 4 4"]) -> None:
        """Take in one frame; a body that was not seen is NaN.

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
            self._whole *= self.forgetting
            self._count *= self.forgetting
        rows = T_world_body[:, :3].transpose(1, 0, 2).reshape(3, 4 * n_bodies)
        middle = rows[:, 3::4].sum(axis=1) / n_bodies
        if np.isfinite(middle).all() and np.isfinite(rows).all():
            rows[:, 3::4] -= middle[:, None]
            self._whole += rows.T @ rows
            self._count += 1.0
            if self.forgetting < 1.0 and self._gapped.count.any():
                self._gapped = self._gapped.times(self.forgetting)
            return
        seen = np.isfinite(T_world_body).all(axis=(-1, -2))
        part = sum_pairs(T_world_body[None], seen[None])
        self._gapped = self._gapped.times(self.forgetting) + part

    def sums(self) -> PairSums:
        """Return the sums over all frames so far."""
        return self._sums_of_whole() + self._gapped

    def _sums_of_whole(self) -> PairSums:
        """Return the sums over the frames that show every body."""
        n = len(self._gapped.count)
        gram = self._whole.reshape(n, 4, n, 4).transpose(0, 2, 1, 3)
        own = np.broadcast_to(gram[np.arange(n), np.arange(n)][:, None], (n, n, 4, 4))
        return PairSums(
            count=np.full((n, n), self._count),
            turn=gram[..., :3, :3],
            shift=gram[..., :3, 3],
            square=gram[..., 3, 3],
            own_turn=own[..., :3, :3],
            own_shift=own[..., :3, 3],
            own_square=own[..., 3, 3],
        )

    def fits(self) -> JointFits:
        """Return the joints of all pairs as they stand; pairs not seen yet are NaN."""
        raw = equations(self.sums(), self._pair)
        system = system_of(raw, self._noise, self._pair)
        closed = solve(system, max_sd=self.max_sd)
        ones = np.ones(len(self._pair))
        draft = Draft(self._pair, self._noise, system, closed, ones)
        u = centers_of(draft)[0]
        away = np.linalg.norm(u.reshape(-1, 2, 3), axis=-1).mean(axis=1)
        mediated = mediation_of_sums(self._sums_of_whole(), self._pair)
        return packed(draft, distance=away, mediated=mediated)


def _same_for_all(n_bodies: int, noise: float, turn_noise: float) -> PoseNoise:
    exact = no_noise(n_bodies)
    turn = np.tile(turn_noise**2 * np.eye(3), (n_bodies, 1, 1))
    return PoseNoise(turn, exact.shift + noise**2, exact.anchor)
