"""The slow part of every pair's gap: what noise from frame to frame cannot explain."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from marey.bodies import Bodies
from marey.joints.ball.closed_form import RANK, System, plain_system, solve
from marey.joints.ball.normal_equations import equations, seen_in, sum_pairs
from marey.joints.ball.pair_frames import anchored
from marey.joints.noise import PoseNoise

Array = np.ndarray

# Poses are averaged over this many seconds, less in a take so short that fewer than
# so many averages would be left of it.
SECONDS = 0.4
FEWEST_MEANS = 32


def slow_gaps(
    takes: Sequence[Bodies],
    noise: PoseNoise,
    pair: Int[Array, "pair 2"],
    *,
    max_sd: float,
) -> tuple[Float[Array, " pair"], Float[Array, " pair"]]:
    """Return the gap left of averaged poses, and what of it the noise would leave.

    Two points that stay together have the same mean over any stretch of frames, and
    the gap is linear in the entries of the poses, so the equations of OBrien2000 hold
    of averaged poses as they do of single ones, however fast the bodies turn. The
    noise is smaller in them by the root of the frames averaged, and a wrong joint's
    gap, which changes as slowly as bodies move, stands out of it.

    A stretch in which a body was not seen throughout is not used for that body.

    Args:
        takes: The same bodies in one or several takes.
        noise: Of every body's pose, from frame to frame.
        pair: Bodies (a, b).
        max_sd: As in `BallOptions`.
    """
    most = max(sum(len(take.T_world_body) for take in takes) // FEWEST_MEANS, 1)
    width = [min(max(round(SECONDS * take.take.rate), 1), most) for take in takes]
    means = [_means(t.T_world_body, k) for t, k in zip(takes, width, strict=True)]
    T = anchored(np.concatenate(means), noise.anchor)
    raw = equations(sum_pairs(T, seen_in(T)), pair)
    system = plain_system(raw)
    closed = solve(system, max_sd=max_sd)
    gap = _least_gap(system)
    count = np.array([len(part) for part in means], dtype=float)
    share = np.sum(count / np.array(width)) / max(np.sum(count), 1.0)
    left = np.sqrt(share * noise.gap(pair, closed.u))
    return gap, np.where(np.isfinite(gap), left, np.nan)


def _least_gap(system: System) -> Float[Array, " pair"]:
    """Return the gap of the best centres, however badly determined."""
    value, vector = system.value, system.vector
    gain = np.where(value > RANK, 1.0 / np.where(value > RANK, value, 1.0), 0.0)
    along = np.einsum("pij,pi->pj", vector, system.g)
    return system.raw.rms(np.einsum("pij,pj->pi", vector, gain * along))


def _means(
    T_world_body: Float[Array, "frame body 4 4"], width: int
) -> Float[Array, "stretch body 4 4"]:
    """Return the means of the poses' entries over stretches of so many frames."""
    whole = len(T_world_body) // width * width
    shape = (-1, width, *T_world_body.shape[1:])
    return np.asarray(T_world_body[:whole].reshape(shape).mean(axis=1))
