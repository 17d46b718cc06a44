"""How far markers stray, and how much of that is new in every frame."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey.calibration.init.poses import first_poses
from marey.calibration.solver.levenberg_marquardt import Poses, rests, settled
from marey.calibration.unknowns import TAIL, Figure, Shape
from marey.numerics import geometry

Array = np.ndarray

ALL_WHITE = 0.75
"""From this share on all is noise: a few hundred steps do not tell it better, and what
would be left over would still make each frame count less."""

EXACT = 1e-6
"""What is off by less than this, in metres, is no noise but rounding."""

LIKE_OTHERS = 0.3
"""How much a marker is taken for like the others, as a share of its own positions."""

PAIRS = 45
"""Neighbouring frames, evenly in time, that tell what is new in every frame."""

WELL_SEEN = 0.5
"""Share of the markers that both frames of a pair must show."""

BELIEVED = 1e-2
"""Errors are taken for at least so large a share of the scale that is given for them,
both squared: a tenth of what the best cameras reach."""


def noise_of(
    figure: Figure,
    shape: Shape,
    poses: tuple[Poses, ...],
    leverage: tuple[Float[Array, "_ marker"], ...],
    least: float,
) -> Float[Array, "session marker"]:
    """Return the scale of every marker in metres.

    Poses take up a part of every deviation, more where a segment has few markers: what
    is left is divided by what they leave free (3 - leverage), or the few would seem
    ever more exact.

    Args:
        figure: The segments.
        shape: Their shape, with the scales so far.
        poses: Frames of all sessions.
        leverage: How much of each position its pose takes up.
        least: Smallest scale of a marker, in metres.
    """
    total, free, count = (np.zeros(shape.noise.shape) for _ in range(3))
    for session in range(len(poses)):
        rest, weight, _ = rests(figure, shape, poses, session)
        seen = weight > 0.0
        scaled = weight * shape.noise[session] ** 2
        total[session] = np.sum(scaled * np.sum(rest**2, axis=-1), axis=0)
        free[session] = np.sum(np.where(seen, 3.0 - leverage[session], 0.0), axis=0)
        count[session] = 3.0 * seen.sum(axis=0)
    own = total / np.maximum(free, 1e-9)
    # The usual marker, not the mean: one that sits elsewhere altogether says nothing.
    pooled = float(np.median(own[count > 0.0]))
    others = LIKE_OTHERS * count
    variance = (total + others * pooled) / np.maximum(free + others, 1e-9)
    variance = np.where(count > 0.0, variance, pooled)
    return np.asarray(np.sqrt(np.maximum(variance, least**2)))


def white_share(
    figure: Figure,
    shape: Shape,
    pairs: tuple[Float[Array, "_ 2 marker 3"], ...],
) -> float:
    """Return the share of the markers' deviations that is new in every frame, 0 to 1.

    Cameras err anew in every frame; skin moves with the pose, and repeats with it. Of
    noise alone the square of a step from frame to frame is twice that of a deviation.
    Means and not medians: where one limb moves at a time most markers show noise, and
    the few that move are those that tell the joints. What lies far off has lost its
    weight as it has in the fit.

    Args:
        figure: The segments.
        shape: Their shape.
        pairs: Per session, neighbouring frames.
    """
    step, size, weights = 0.0, 0.0, np.zeros(2)
    off: list[Array] = []
    for session, points in enumerate(pairs):
        alone = replace(
            shape, m=shape.m[session][None], noise=shape.noise[session][None]
        )
        flat = points.reshape(-1, *points.shape[2:])
        poses = settled(figure, alone, (first_poses(figure, alone, 0, flat),))
        rest, weight, _ = rests(figure, alone, poses, 0)
        rest = np.where(weight[..., None] > 0.0, rest, 0.0)
        local = np.einsum("fkji,fkj->fki", poses[0].R[:, figure.segment], rest)
        local, weight = local.reshape(points.shape), weight.reshape(points.shape[:3])
        both = weight.prod(axis=1) * alone.noise**2
        step += float(np.sum(both * np.sum(np.diff(local, axis=1)[:, 0] ** 2, axis=-1)))
        size += float(np.sum(weight * np.sum(local**2, axis=-1)))
        weights += both.sum(), weight.sum()
        off.append(np.abs(local[weight > 0.0]).ravel())
    far = np.concatenate([np.zeros(0), *off])
    if not weights[0] or np.median(far) < EXACT:
        return 1.0
    share = 0.5 * step / weights[0] / (size / weights[1])
    return float(min(share / ALL_WHITE, 1.0))


def pairs_of(points: Float[Array, "frame marker 3"]) -> Float[Array, "_ 2 marker 3"]:
    """Return frames and the ones after them, evenly in time, of those well seen."""
    seen = np.isfinite(points).all(axis=-1)
    both = np.flatnonzero((seen[:-1] & seen[1:]).mean(axis=1) >= WELL_SEEN)
    chosen = np.unique(np.linspace(0, max(len(both) - 1, 0), PAIRS).round().astype(int))
    first = both[chosen[: len(both)]]
    return np.stack([points[first], points[first + 1]], axis=1)


def usual_turns(
    figure: Figure, poses: tuple[Poses, ...]
) -> Float[Array, "segment 3 3"]:
    """Return the mean turn of every segment against its parent."""
    R = np.concatenate([some.R for some in poses])
    parent = np.maximum(figure.parent, 0)
    total = np.einsum("fsji,fsjk->sik", R[:, parent], R)
    return geometry.nearest_rotation(total)


def efficiency(
    e: Float[Array, " position"], free: Float[Array, " position"], spent: int
) -> float:
    """Return by how much the covariance of a robust fit exceeds that of its weights.

    The usual factor of M-estimators, E[psi^2] / E[psi']^2, over what the weights alone
    would say, for Student's t in three dimensions. Never below `BELIEVED`: markers that
    fit to the last digit do not make joints known to it.

    Args:
        e: Squared deviations over the squared scale.
        free: What poses left free of each position, 0 to 3.
        spent: Unknowns that all frames share.
    """
    w = (TAIL + 3.0) / (TAIL + e)
    left = float(w @ free)
    left *= max(1.0 - spent / max(float(free.sum()), 1.0), 0.1)
    bend = w * (1.0 - 2.0 / 3.0 * e / (TAIL + e))
    if not left > 0.0:
        return 1.0
    factor = float(w**2 @ e) / left * float(w.mean() / bend.mean()) ** 2
    return max(factor, BELIEVED)
