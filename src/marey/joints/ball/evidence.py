"""Evidence for the tree: third bodies between two others, and time-averaged poses."""

from collections.abc import Sequence

import numpy as np

from marey.bodies import Bodies
from marey.joints.ball.closed_form import solve_centers, uncorrected_system
from marey.joints.ball.normal_equations import (
    NormalEquations,
    Pairs,
    PairSums,
    PerPair,
    form_normal_equations,
    sum_pairs,
)
from marey.joints.noise import PoseNoise
from marey.numerics import Array, Bool, Float
from marey.numerics.procrustes import poses_seen
from marey.numerics.resampling import evenly_spaced
from marey.numerics.thresholds import MOTION_TIME_S

RESIDUAL_ROUNDING = 1e-7
"""Residual over the distance of two bodies below which it is rounding. Higher brings
the ratios of exact data nearer to 1. Chosen by hand."""

MIN_EIGENVALUE_SHARE = 1e-9
"""Eigenvalues below this share of the largest are treated as zero. Higher ignores more
of a third body's motion. Chosen by hand."""

AVERAGING_S = MOTION_TIME_S
"""Seconds over which poses are averaged. Longer removes more noise, and also more of
the residual of a wrong joint."""

MIN_MEANS = 32
"""Smallest number of averages; a take too short for it is averaged over less time.
Higher shortens the averages of short takes. Chosen by hand."""


def mediation_ratios(takes: Sequence[Bodies], sums: PairSums, pair: Pairs) -> PerPair:
    r"""Return how much of each pair's residual the best third body explains.

    .. math:: m_{ab} = \max_p \varepsilon_{ab} / \varepsilon_{ab|p}

    The residual :math:`\varepsilon_{ab|p}` has three more unknowns, a free vector in
    the axes of a third body p: it is small if p stands between the two. 1 = nothing is
    explained. Where bodies are occluded, every third body is judged on the frames that
    show it, subsampled evenly if they are many.
    """
    if np.ptp(sums.count) == 0.0:
        return mediation_ratios_of_sums(sums, pair)
    sample = evenly_spaced(sum(len(take.T_world_body) for take in takes))
    T = np.concatenate([take.T_world_body[sample] for take in takes])
    seen = poses_seen(T)
    has_frames = np.isfinite(form_normal_equations(sums, pair).square)
    best = np.where(has_frames, 1.0, np.nan)
    for third in range(T.shape[1]):
        rows = seen[:, third]
        raw = form_normal_equations(sum_pairs(T[rows]), pair)
        in_third = _sums_in_third_body(T[rows], seen[rows], third)
        of_a, of_b = in_third[pair[:, 1], pair[:, 0]], in_third[pair[:, 0], pair[:, 1]]
        ratio = _residual_ratio(raw, of_a[:, None], of_b[:, None])[:, 0]
        ratio[(pair == third).any(axis=1)] = 1.0
        best = np.where(ratio > best, ratio, best)
    return best


def mediation_ratios_of_sums(sums: PairSums, pair: Pairs) -> PerPair:
    """Return the same from the sums alone, if every body is seen in every frame."""
    a, b = (body[:, None] for body in pair.T)
    third = np.arange(len(sums.count))[None]
    raw = form_normal_equations(sums, pair)
    of_a, of_b = (sums.both[third, body, :3] for body in (a, b))
    ratio = _residual_ratio(raw, of_a, of_b)
    return np.asarray(np.where((third == a) | (third == b), 1.0, ratio).max(axis=1))


def _sums_in_third_body(
    T: Float[Array, "frame body 4 4"], seen: Bool[Array, "frame body"], third: int
) -> Float[Array, "body body 3 4"]:
    """Return [a, b]: the sums of R_p^T [R_b t_b] over the frames that show a and b.

    Positions t are relative to the third body p, which is seen in all frames.
    """
    n, m = seen.shape
    in_third = np.swapaxes(T[:, third, None, :3, :3], -1, -2) @ (
        T[:, :, :3] - T[:, third, None, :3] * [0.0, 0.0, 0.0, 1.0]
    )
    np.copyto(in_third, 0.0, where=~seen[..., None, None])
    sums = seen.T.astype(float) @ in_third.reshape(n, 12 * m)
    return np.asarray(sums.reshape(m, m, 3, 4))


def _residual_ratio(
    raw: NormalEquations,
    of_a: Float[Array, "pair third 3 4"],
    of_b: Float[Array, "pair third 3 4"],
) -> Float[Array, "pair third"]:
    """Return the residual over the residual with three more unknowns in a third body.

    The six unknowns of the pair are eliminated first (Schur complement).

    Args:
        raw: The equations of the pairs.
        of_a: Sum of R_p^T [R_a t_a] for every third body p.
        of_b: The same of body b.
    """
    per_frame = (1.0 / np.where(raw.count > 0.0, raw.count, np.nan))[:, None, None]
    Q_third = np.concatenate([of_a[..., :3], -of_b[..., :3]], -1) * per_frame[..., None]
    d_third = (of_b[..., 3] - of_a[..., 3]) * per_frame
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


def averaged_residuals(
    takes: Sequence[Bodies], noise: PoseNoise, pair: Pairs, *, max_sd: float
) -> tuple[PerPair, PerPair]:
    """Return the residual of averaged poses, and the part of it that is noise.

    Two points that stay together have the same mean over any window of frames, and the
    residual is linear in the entries of the poses. The equations of OBrien2000
    therefore hold for averaged poses as well, however fast the bodies rotate. Averaging
    divides the noise by the root of the window's length, but not the residual of a
    wrong joint, which changes as slowly as the bodies move.

    A window in which a body is occluded at any time is not used for that body.

    Args:
        takes: The same bodies in one or several takes.
        noise: Of every body's pose, from frame to frame.
        pair: Bodies (a, b).
        max_sd: As in `BallOptions`.

    Returns:
        Two root mean squares, in metres.
    """
    longest = max(sum(len(take.T_world_body) for take in takes) // MIN_MEANS, 1)
    width = [min(max(round(AVERAGING_S * t.take.rate), 1), longest) for t in takes]
    means = [
        _window_means(t.T_world_body, k) for t, k in zip(takes, width, strict=True)
    ]
    sums = sum_pairs(np.concatenate(means), noise.anchor)
    raw = form_normal_equations(sums, pair)
    system = uncorrected_system(raw)
    u = solve_centers(system, max_sd=max_sd).u
    residual = raw.rms_residual(system.least_squares())
    count = np.array([len(part) for part in means], dtype=float)
    noise_share = np.sum(count / np.array(width)) / max(np.sum(count), 1.0)
    from_noise = np.sqrt(noise_share * noise.mean_square_residual(pair, u))
    return residual, np.where(np.isfinite(residual), from_noise, np.nan)


def _window_means(
    T_world_body: Float[Array, "frame body 4 4"], width: int
) -> Float[Array, "window body 4 4"]:
    """Return the means of the poses' entries over windows of `width` frames."""
    end = len(T_world_body) // width * width
    shape = (-1, width, *T_world_body.shape[1:])
    return np.asarray(T_world_body[:end].reshape(shape).mean(axis=1))
