"""Motions of bodies, and of pairs of bodies, in the windows of a take."""

from collections import deque
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from marey.joints.ball.normal_equations import (
    PairSums,
    form_normal_equations,
    sum_pairs,
)
from marey.joints.noise import PoseNoise
from marey.numerics import Array, Float, Int
from marey.numerics.thresholds import LEVER_ARM_M


@dataclass(frozen=True, slots=True, eq=False)
class WindowMotions:
    """Motions in the windows of a take; NaN where a body was not seen throughout."""

    distance: Float[Array, "window pair"]
    """Root mean square distance of the two origins, in metres."""

    translation: Float[Array, "window pair"]
    """Root mean square deviation of the second origin from its mean in the axes of the
    first body, in metres."""

    rotation: Float[Array, "window pair"]
    """Root mean square rotation of the second body in the first, in radians."""

    body_translation: Float[Array, "window body"]
    """Root mean square deviation of each origin from its mean in the world, in
    metres."""

    body_rotation: Float[Array, "window body"]
    """Root mean square rotation of each body in the world, in radians."""


def squared_motions(motions: WindowMotions) -> tuple[Array, Array, Array]:
    """Return squared motions of bodies, and rotations and deviations of pairs, in m^2.

    Rotations count with the lever arm.
    """
    body = motions.body_translation**2 + (LEVER_ARM_M * motions.body_rotation) ** 2
    rotation = (LEVER_ARM_M * motions.rotation) ** 2
    return body, rotation, motions.translation**2 + rotation


def noise_of_motions(
    noise: PoseNoise, pair: Int[Array, "pair 2"], motions: WindowMotions
) -> tuple[Array, Array, Array]:
    r"""Return the squared motions that noise of the poses alone would show.

    A body of few markers that are near each other, as of a hand, has an orientation
    that varies by degrees, and so has what is seen from it at the distance :math:`d`.
    With the position variance :math:`s^2` per axis, the covariance :math:`C` of the
    rotation and the lever arm :math:`h`, a pair deviates by at most

    .. math:: 3 (s_a^2 + s_b^2) + d^2\, \mathrm{tr}\, C_a + |x_b|^2\, \mathrm{tr}\, C_b
              + h^2 (\mathrm{tr}\, C_a + \mathrm{tr}\, C_b)

    where :math:`x_b` is the anchor of the noise.
    """
    a, b = pair.T
    position = 3.0 * noise.position_variance
    angle = np.trace(noise.rotation_covariance, axis1=-2, axis2=-1)
    swing = angle * np.sum(noise.anchor**2, axis=-1)
    body = position + swing + LEVER_ARM_M**2 * angle
    rotation = LEVER_ARM_M**2 * (angle[a] + angle[b])
    seen_from_a = angle[a] * motions.distance**2
    deviation = position[a] + position[b] + swing[b] + seen_from_a + rotation
    return body, rotation, deviation


def window_motions(
    T_world_body: Float[Array, "frame body 4 4"],
    pair: Int[Array, "pair 2"],
    *,
    block: int,
    blocks: int,
) -> WindowMotions:
    r"""Return the motions in the windows of a take.

    The sums of the normal equations of OBrien2000, Eq. 13, add up: those of a window
    are the sum of those of its blocks, which overlapping windows share. With the mean
    relative position :math:`\bar p` and rotation :math:`M` over the window,

    .. math:: d^2 = \overline{|t_b - t_a|^2}, \qquad s^2 = d^2 - |\bar p|^2, \qquad
              \theta^2 = \tfrac{1}{2} (3 - \|M\|_F^2), \qquad \bar p = \overline{R_a^T
              (t_b - t_a)}, \quad M = \overline{R_a^T R_b}

    For small rotations :math:`\theta` is the root mean square angle.

    Args:
        T_world_body: The poses; the last frames that fill no block are left out.
        pair: Bodies (a, b).
        block: Number of frames in a block; one window starts at every block.
        blocks: Number of blocks in a window.
    """
    n_frames, world = T_world_body.shape[:2]
    # The world is the last body; it is at rest in its origin.
    at_rest = np.broadcast_to(np.eye(4), (n_frames, 1, 4, 4))
    T = np.concatenate([T_world_body, at_rest], axis=1)
    in_world = np.stack([np.full(world, world), np.arange(world)], axis=-1)
    with_world = np.concatenate([pair, in_world])
    recent: deque[PairSums] = deque(maxlen=blocks)
    motions = []
    for start in range(0, n_frames - block + 1, block):
        frames = slice(start, start + block)
        recent.append(sum_pairs(T[frames]))
        if len(recent) == blocks:
            raw = form_normal_equations(reduce(add, recent), with_world)
            variance = raw.square - np.sum(raw.g[:, :3] ** 2, axis=-1)
            axes = raw.g.shape[1] / 2
            coherence = np.sum(raw.A[:, :3, 3:] ** 2, axis=(-1, -2))
            squares = np.stack([raw.square, variance, 0.5 * (axes - coherence)])
            squares[:, raw.count < block * blocks] = np.nan
            motions.append(np.sqrt(np.maximum(squares, 0.0)))
    distance, translation, rotation = np.stack(motions, axis=1)
    n = len(pair)
    return WindowMotions(
        distance[:, :n],
        translation[:, :n],
        rotation[:, :n],
        translation[:, n:],
        rotation[:, n:],
    )
