"""Whether a third body stands between two: then it explains their gap."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.bodies import Bodies
from marey.joints.ball.normal_equations import (
    Equations,
    PairSums,
    equations,
    seen_in,
    sum_pairs,
)

Array = np.ndarray

# Frames used when bodies have gaps and every third body needs sums of its own.
MOST_FRAMES = 2048

# Share of the distance of two bodies below which a gap is rounding.
ROUNDING = 1e-7

# Directions of a third body's vector that move less than this are not used.
STILL = 1e-9


def mediation(
    takes: Sequence[Bodies], sums: PairSums, pair: Int[Array, "pair 2"]
) -> Float[Array, " pair"]:
    """Return how much the best third body explains of each pair's gap.

    The gap of a pair over its gap with a free vector added in a third body's frame,
    for the third body with the largest ratio; 1 = nothing. Where bodies have gaps,
    every third body is judged on the frames that show it, thinned out evenly when they
    are many.
    """
    if np.ptp(sums.count) == 0.0:
        return mediation_of_sums(sums, pair)
    step = -(-sum(len(take.T_world_body) for take in takes) // MOST_FRAMES)
    T = np.concatenate([take.T_world_body[::step] for take in takes])
    seen = seen_in(T)
    best = np.where(np.isfinite(equations(sums, pair).square), 1.0, np.nan)
    for third in range(T.shape[1]):
        rows = seen[:, third]
        raw = equations(sum_pairs(T[rows], seen[rows]), pair)
        across, pull = _seen_from(T[rows], seen[rows], third, raw.count, pair)
        ratio = _ratio(raw, across[:, None], pull[:, None])[:, 0]
        ratio[(pair == third).any(axis=1)] = 1.0
        best = np.where(ratio > best, ratio, best)
    return best


def mediation_of_sums(
    sums: PairSums, pair: Int[Array, "pair 2"]
) -> Float[Array, " pair"]:
    """Return the same from sums alone, where every body is seen in every frame."""
    raw = equations(sums, pair)
    a, b = (body[:, None] for body in pair.T)
    p = np.arange(len(sums.count))[None]
    per = 1.0 / np.where(raw.count > 0.0, raw.count, np.nan)[:, None, None]
    across = np.concatenate([sums.turn[p, a], -sums.turn[p, b]], axis=-1)
    pull = (sums.shift[p, b] - sums.shift[p, a]) * per
    ratio = _ratio(raw, across * per[..., None], pull)
    return np.asarray(np.where((p == a) | (p == b), 1.0, ratio).max(axis=1))


def _seen_from(
    T: Float[Array, "frame body 4 4"],
    seen: Bool[Array, "frame body"],
    third: int,
    count: Float[Array, " pair"],
    pair: Int[Array, "pair 2"],
) -> tuple[Float[Array, "pair 3 6"], Float[Array, "pair 3"]]:
    """Return means of R_p^T Q and R_p^T d over the frames that show all three."""
    n, m = seen.shape
    Y = np.swapaxes(T[:, third, None, :3, :3], -1, -2) @ (
        T[:, :, :3] - T[:, third, None, :3] * [0.0, 0.0, 0.0, 1.0]
    )
    np.copyto(Y, 0.0, where=~seen[..., None, None])
    # [a, b]: sums of body b's pose, as p sees it, over the frames that show a too.
    both = (seen.T.astype(float) @ Y.reshape(n, 12 * m)).reshape(m, m, 3, 4)
    a, b = pair.T
    per = 1.0 / np.where(count > 0.0, count, np.nan)[:, None, None]
    across = np.concatenate([both[b, a, :, :3], -both[a, b, :, :3]], axis=-1) * per
    return across, (both[a, b, :, 3] - both[b, a, :, 3]) * per[..., 0]


def _ratio(
    raw: Equations,
    across: Float[Array, "pair third 3 6"],
    pull: Float[Array, "pair third 3"],
) -> Float[Array, "pair third"]:
    """Return the gap over the gap with three more unknowns in a third body.

    Of the nine unknowns the six of the pair are eliminated first.
    """
    known = np.isfinite(raw.square)
    gain = np.zeros_like(raw.A)
    gain[known] = np.linalg.pinv(raw.A[known], rcond=STILL, hermitian=True)
    u = (gain @ raw.g[..., None])[..., 0]
    gap = raw.rms(u)[:, None] ** 2
    floor = ROUNDING**2 * raw.square[:, None]
    left = pull - (across @ u[:, None, :, None])[..., 0]
    inside = (1.0 + STILL) * np.eye(3) - across @ gain[:, None] @ np.swapaxes(
        across, -1, -2
    )
    inside[~known] = np.eye(3)
    moved = np.linalg.solve(inside, left[..., None])[..., 0]
    less = gap - np.maximum(np.sum(left * moved, axis=-1), 0.0)
    with np.errstate(invalid="ignore"):
        ratio = np.sqrt((gap + floor) / (np.maximum(less, 0.0) + floor))
    return np.asarray(ratio)
