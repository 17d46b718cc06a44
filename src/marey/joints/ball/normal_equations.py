r"""Normal equations of all pairs of bodies at once (OBrien2000, Eqs. 9-13).

A joint between the bodies a and b is the pair of points u = (center_a, center_b) that
stay together: R_a center_a + t_a = R_b center_b + t_b in every frame (Eq. 8), or
Q u = d with Q = [R_a, -R_b] and d = t_b - t_a (Eqs. 10-12). Its least squares need only
sums over frames.

Stack the poses of all bodies as the matrix [R_1 t_1 ... R_m t_m], three rows per frame.
The Gram matrix of that matrix (one product with its own transpose) holds Q^T Q and
Q^T d of every pair. An occluded body is a block of zeros, so the block of two bodies
sums only over the frames in which both are seen. Sums of windows and of takes add.
"""

from dataclasses import dataclass, fields

import numpy as np

from marey.numerics import Array, Float, Int
from marey.numerics.procrustes import poses_seen

Pairs = Int[Array, "pair 2"]
PerPair = Float[Array, " pair"]

FRAMES_PER_CHUNK = 8192
"""Frames stacked at a time, and most frames whose differences show the noise. Higher
uses more memory on long takes; the result is the same, the noise known to less than two
per cent. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class PairSums:
    """Sums over the frames in which both bodies of a pair were seen.

    P = [R t] is the pose of a body without its last row.
    """

    count: Float[Array, "body body"]
    """Number of frames, or their total weight."""

    both: Float[Array, "body body 4 4"]
    """Sum of P_a^T P_b."""

    own: Float[Array, "body body 4 4"]
    """Sum of P_a^T P_a; its rotations are the identity times the count unless poses
    scale or shear."""

    def __add__(self, other: "PairSums") -> "PairSums":
        """Return the sums over the frames of both."""
        parts = (getattr(self, f.name) + getattr(other, f.name) for f in fields(self))
        return PairSums(*parts)

    def times(self, factor: float) -> "PairSums":
        """Return the sums with every frame weighted by a factor."""
        return PairSums(*(factor * getattr(self, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class NormalEquations:
    """Normal equations A u = g of pairs, u = (center_a, center_b), per frame."""

    count: PerPair
    """Number of shared frames, or their total weight."""

    A: Float[Array, "pair 6 6"]
    """Mean of Q^T Q (Eqs. 9-13)."""

    g: Float[Array, "pair 6"]
    """Mean of Q^T d."""

    square: PerPair
    """Mean of |d|^2, in square metres."""

    def rms_residual(self, u: Float[Array, "pair 6"]) -> PerPair:
        """Return the root mean square of |Q u - d|, in metres.

        Below 1e-8 of |d| only rounding is left.
        """
        Au = (self.A @ u[..., None])[..., 0]
        u_g, u_Au = (np.einsum("...i,...i->...", u, x) for x in (self.g, Au))
        square = self.square - 2.0 * u_g + u_Au
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))


def all_pairs(n_bodies: int) -> Pairs:
    """Return every pair of bodies (a, b) with a < b, in order."""
    return np.stack(np.triu_indices(n_bodies, k=1), axis=-1)


def zero_sums(n_bodies: int) -> PairSums:
    """Return the sums over no frames."""
    zero = np.zeros((n_bodies, n_bodies, 4, 4))
    return PairSums(np.zeros((n_bodies, n_bodies)), zero, zero)


def sums_of_complete_frames(
    gram: Float[Array, "columns columns"], n_bodies: int, count: float
) -> PairSums:
    """Return the sums over frames that show every body, from their Gram matrix.

    Args:
        gram: Product of [R_1 t_1 ... R_m t_m] with its own transpose, summed.
        n_bodies: The number m of bodies.
        count: Number of frames, or their total weight.
    """
    m = n_bodies
    both = gram.reshape(m, 4, m, 4).transpose(0, 2, 1, 3)
    own = both[np.arange(m), np.arange(m)][:, None]
    return PairSums(np.full((m, m), count), both, np.broadcast_to(own, both.shape))


def sum_pairs(
    T_world_body: Float[Array, "frame body 4 4"],
    anchor: Float[Array, "body 3"] | None = None,
) -> PairSums:
    """Return the sums over the frames of a take.

    Only differences of positions matter, so the mean position of the bodies is
    subtracted in every frame first: far from the world's origin the sums would
    otherwise lose digits.

    Args:
        T_world_body: Poses of the bodies; NaN where one is not seen.
        anchor: The point of each body that is its origin in the sums, in metres; that
            of its poses when left out.
    """
    total = zero_sums(T_world_body.shape[1])
    for first in range(0, len(T_world_body), FRAMES_PER_CHUNK):
        T = T_world_body[first : first + FRAMES_PER_CHUNK]
        if anchor is not None:
            T = T.copy()
            T[..., :3, 3] += np.einsum("fbij,bj->fbi", T[..., :3, :3], anchor)
        total += _sum_chunk(T, poses_seen(T))
    return total


def _sum_chunk(T: Float[Array, "frame body 4 4"], seen: Array) -> PairSums:
    """Return the sums of some frames by one matrix product.

    The rows of R and t of all bodies, occluded ones zero, stand side by side. Positions
    are relative to their mean in each frame, which changes no joint.
    """
    n, m = seen.shape
    all_seen = bool(seen.all())
    stack = np.empty((n, 3, m, 4))
    stack[...] = np.swapaxes(T[:, :, :3], 1, 2)
    if not all_seen:
        np.copyto(stack, 0.0, where=~seen[:, None, :, None])
    n_seen = np.maximum(seen.sum(axis=1), 1)
    stack[..., 3] -= (stack[..., 3].sum(axis=-1) / n_seen[:, None])[..., None]
    if not all_seen:
        stack[..., 3] *= seen[:, None]
    flat = stack.reshape(3 * n, 4 * m)
    sums = sums_of_complete_frames(flat.T @ flat, m, float(n))
    if all_seen:
        return sums
    count, own = _sum_occluded(stack, seen)
    return PairSums(count, sums.both, own)


def _sum_occluded(stack: Array, seen: Array) -> tuple[Array, Array]:
    """Return shared frames, and products of body a's pose with itself over them."""
    m = seen.shape[1]
    mask = seen.astype(float)
    columns = np.ascontiguousarray(stack.transpose(3, 1, 0, 2))
    of_a = np.empty((m, m, 4, 4))
    for i in range(4):
        for j in range(i + 1):
            of_a[..., i, j] = (columns[i] * columns[j]).sum(axis=0).T @ mask
            of_a[..., j, i] = of_a[..., i, j]
    return mask.T @ mask, of_a


def form_normal_equations(sums: PairSums, pair: Pairs) -> NormalEquations:
    """Return the normal equations of some pairs (OBrien2000, Eqs. 9-13).

    NaN for a pair that shares no frame.
    """
    a, b = pair.T
    count = sums.count[a, b]
    per_frame = 1.0 / np.where(count > 0.0, count, np.nan)
    both, own_a, own_b = sums.both[a, b], sums.own[a, b], sums.own[b, a]
    A = np.empty((len(pair), 6, 6))
    A[:, :3, :3], A[:, 3:, 3:] = own_a[:, :3, :3], own_b[:, :3, :3]
    A[:, :3, 3:] = -both[:, :3, :3]  # Eq. 12
    A[:, 3:, :3] = np.swapaxes(A[:, :3, 3:], 1, 2)
    in_a = both[:, :3, 3] - own_a[:, :3, 3]  # Eq. 10
    in_b = sums.both[b, a, :3, 3] - own_b[:, :3, 3]
    square = own_a[:, 3, 3] + own_b[:, 3, 3] - 2.0 * both[:, 3, 3]
    return NormalEquations(
        count,
        A * per_frame[:, None, None],
        np.concatenate([in_a, in_b], axis=-1) * per_frame[:, None],
        np.maximum(square * per_frame, 0.0),
    )
