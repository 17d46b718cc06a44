"""Whether a third body between two others explains their residual (mediation)."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from marey.bodies import Bodies
from marey.joints.ball.normal_equations import (
    NormalEquations,
    Pairs,
    PairSums,
    PerPair,
    form_normal_equations,
    poses_seen,
    sum_pairs,
)

Array = np.ndarray

MAX_FRAMES = 2048
"""Frames used when bodies are occluded and every third body needs separate sums.
Higher costs time. Chosen by hand."""

RESIDUAL_ROUNDING = 1e-7
"""Residual over the distance of two bodies below which it is rounding. Higher brings
the ratios of exact data nearer to 1. Chosen by hand."""

MIN_EIGENVALUE_SHARE = 1e-9
"""Eigenvalues below this share of the largest are treated as zero. Higher ignores more
of a third body's motion. Chosen by hand."""


def mediation_ratios(takes: Sequence[Bodies], sums: PairSums, pair: Pairs) -> PerPair:
    """Return the part of each pair's residual that the best third body explains.

    The residual of a pair over its residual with three more unknowns, a free vector in
    the axes of a third body; the largest ratio of all third bodies (METHODS.md, R4).
    1 = nothing is explained. Where bodies are occluded, every third body is judged on
    the frames that show it, subsampled evenly if they are many.
    """
    if np.ptp(sums.count) == 0.0:
        return mediation_ratios_of_sums(sums, pair)
    step = -(-sum(len(take.T_world_body) for take in takes) // MAX_FRAMES)
    T = np.concatenate([take.T_world_body[::step] for take in takes])
    seen = poses_seen(T)
    has_frames = np.isfinite(form_normal_equations(sums, pair).square)
    best = np.where(has_frames, 1.0, np.nan)
    for third in range(T.shape[1]):
        rows = seen[:, third]
        raw = form_normal_equations(sum_pairs(T[rows], seen[rows]), pair)
        Q_third, d_third = _third_body_sums(T[rows], seen[rows], third, raw.count, pair)
        ratio = _residual_ratio(raw, Q_third[:, None], d_third[:, None])[:, 0]
        ratio[(pair == third).any(axis=1)] = 1.0
        best = np.where(ratio > best, ratio, best)
    return best


def mediation_ratios_of_sums(sums: PairSums, pair: Pairs) -> PerPair:
    """Return the same from the sums alone, if every body is seen in every frame."""
    raw = form_normal_equations(sums, pair)
    a, b = (body[:, None] for body in pair.T)
    third = np.arange(len(sums.count))[None]
    per_frame = _per_frame(raw.count)
    Q_third = np.concatenate([sums.rotation[third, a], -sums.rotation[third, b]], -1)
    d_third = (sums.position[third, b] - sums.position[third, a]) * per_frame
    ratio = _residual_ratio(raw, Q_third * per_frame[..., None], d_third)
    return np.asarray(np.where((third == a) | (third == b), 1.0, ratio).max(axis=1))


def _per_frame(count: PerPair) -> Float[Array, "pair 1 1"]:
    return np.asarray(1.0 / np.where(count > 0.0, count, np.nan)[:, None, None])


def _third_body_sums(
    T: Float[Array, "frame body 4 4"],
    seen: Bool[Array, "frame body"],
    third: int,
    count: PerPair,
    pair: Pairs,
) -> tuple[Float[Array, "pair 3 6"], Float[Array, "pair 3"]]:
    """Return the means of R_p^T Q and R_p^T d for a third body p.

    Over the frames that show all three bodies.
    """
    n, m = seen.shape
    in_third = np.swapaxes(T[:, third, None, :3, :3], -1, -2) @ (
        T[:, :, :3] - T[:, third, None, :3] * [0.0, 0.0, 0.0, 1.0]
    )
    np.copyto(in_third, 0.0, where=~seen[..., None, None])
    # [a, b]: sums of body b's pose in the axes of p over the frames that show a too.
    sums = (seen.T.astype(float) @ in_third.reshape(n, 12 * m)).reshape(m, m, 3, 4)
    a, b = pair.T
    per_frame = _per_frame(count)
    Q_third = np.concatenate([sums[b, a, :, :3], -sums[a, b, :, :3]], axis=-1)
    d_third = sums[a, b, :, 3] - sums[b, a, :, 3]
    return Q_third * per_frame, d_third * per_frame[..., 0]


def _residual_ratio(
    raw: NormalEquations,
    Q_third: Float[Array, "pair third 3 6"],
    d_third: Float[Array, "pair third 3"],
) -> Float[Array, "pair third"]:
    """Return the residual over the residual with three more unknowns in a third body.

    The six unknowns of the pair are eliminated first (Schur complement).
    """
    known = np.isfinite(raw.square)
    inverse = np.zeros_like(raw.A)
    inverse[known] = np.linalg.pinv(
        raw.A[known], rcond=MIN_EIGENVALUE_SHARE, hermitian=True
    )
    u = (inverse @ raw.g[..., None])[..., 0]
    square = raw.rms_residual(u)[:, None] ** 2
    rounding = RESIDUAL_ROUNDING**2 * raw.square[:, None]
    gradient = d_third - (Q_third @ u[:, None, :, None])[..., 0]
    schur = (1.0 + MIN_EIGENVALUE_SHARE) * np.eye(3) - Q_third @ inverse[
        :, None
    ] @ np.swapaxes(Q_third, -1, -2)
    schur[~known] = np.eye(3)
    v = np.linalg.solve(schur, gradient[..., None])[..., 0]
    reduced = square - np.maximum(np.sum(gradient * v, axis=-1), 0.0)
    with np.errstate(invalid="ignore"):
        ratio = np.sqrt((square + rounding) / (np.maximum(reduced, 0.0) + rounding))
    return np.asarray(ratio)
