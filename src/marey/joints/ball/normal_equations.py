"""Sums over frames from which every pair of bodies can be fitted at once.

Stack the poses of all bodies as the matrix [R_1 t_1 ... R_m t_m], three rows per frame.
One product of it with itself holds the normal equations of OBrien2000, Eq. 13, for
every pair. A body that was not seen is a block of zeros, so a product of two bodies
sums over just the frames that show both. Sums of windows and takes add.
"""

from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Bool, Float, Int

Array = np.ndarray

# Frames stacked at a time: bounds the memory of a long take.
CHUNK = 8192


@dataclass(frozen=True, slots=True, eq=False)
class PairSums:
    """Sums over the frames in which both bodies of a pair were seen."""

    count: Float[Array, "body body"]
    """Frames, or their weight."""

    turn: Float[Array, "body body 3 3"]
    """Sum of R_a^T R_b."""

    shift: Float[Array, "body body 3"]
    """Sum of R_a^T t_b."""

    square: Float[Array, "body body"]
    """Sum of t_a . t_b."""

    own_turn: Float[Array, "body body 3 3"]
    """Sum of R_a^T R_a: the identity times the count unless poses scale or shear."""

    own_shift: Float[Array, "body body 3"]
    """Sum of R_a^T t_a."""

    own_square: Float[Array, "body body"]
    """Sum of |t_a|^2."""

    def __add__(self, other: "PairSums") -> "PairSums":
        """Return the sums over the frames of both."""
        parts = (getattr(self, f.name) + getattr(other, f.name) for f in fields(self))
        return PairSums(*parts)

    def times(self, factor: float) -> "PairSums":
        """Return the sums with every frame weighted by a factor."""
        return PairSums(*(factor * getattr(self, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Equations:
    """Normal equations A u = g of pairs, u = (center_a, center_b), per frame."""

    count: Float[Array, " pair"]
    """Shared frames, or their weight."""

    A: Float[Array, "pair 6 6"]
    """Mean of Q^T Q (Eqs. 9-13)."""

    g: Float[Array, "pair 6"]
    """Mean of Q^T d."""

    square: Float[Array, " pair"]
    """Mean of |d|^2."""

    def rms(self, u: Float[Array, "pair 6"]) -> Float[Array, " pair"]:
        """Return the root mean square gap; below 1e-8 of |d| only rounding is left."""
        gap = self.square - 2.0 * _dot(u, self.g) + _dot(u, _apply(self.A, u))
        return np.asarray(np.sqrt(np.maximum(gap, 0.0)))


def _dot(x: Array, y: Array) -> Array:
    return np.asarray(np.einsum("...i,...i->...", x, y))


def _apply(A: Array, x: Array) -> Array:
    return np.asarray((A @ x[..., None])[..., 0])


def pairs_of(n_bodies: int) -> Int[Array, "pair 2"]:
    """Return every pair of bodies (a, b) with a < b, in order."""
    return np.stack(np.triu_indices(n_bodies, k=1), axis=-1)


def seen_in(
    T_world_body: Float[Array, "frame body 4 4"],
) -> Bool[Array, "frame body"]:
    """Return whether each body has a pose in each frame."""
    # One sum per pose is several times faster than asking every number.
    return np.asarray(np.isfinite(np.einsum("fbij->fb", T_world_body)))


def no_sums(n_bodies: int) -> PairSums:
    """Return the sums over no frames."""
    m = n_bodies
    flat, vector, matrix = (m, m), (m, m, 3), (m, m, 3, 3)
    shapes = (flat, matrix, vector, flat, matrix, vector, flat)
    return PairSums(*(np.zeros(shape) for shape in shapes))


def sum_pairs(
    T_world_body: Float[Array, "frame body 4 4"], seen: Bool[Array, "frame body"]
) -> PairSums:
    """Return the sums over a take.

    Only differences of positions matter, so every frame is centred on its own bodies
    first: without that, digits are lost far from the world's origin.
    """
    total = no_sums(seen.shape[1])
    for first in range(0, len(seen), CHUNK):
        part = slice(first, first + CHUNK)
        total += _sum_chunk(T_world_body[part], seen[part])
    return total


def _sum_chunk(T: Float[Array, "frame body 4 4"], seen: Array) -> PairSums:
    n, m = seen.shape
    whole = bool(seen.all())
    stack = np.empty((n, 3, m, 4))
    stack[...] = np.swapaxes(T[:, :, :3], 1, 2)
    if not whole:
        np.copyto(stack, 0.0, where=~seen[:, None, :, None])
    shown = np.maximum(seen.sum(axis=1), 1)
    middle = stack[..., 3].sum(axis=-1) / shown[:, None]
    stack[..., 3] -= middle[..., None]
    if not whole:
        stack[..., 3] *= seen[:, None]
    flat = stack.reshape(3 * n, 4 * m)
    gram = (flat.T @ flat).reshape(m, 4, m, 4).transpose(0, 2, 1, 3)
    own = _own_of_whole(gram, n) if whole else _own_of_gaps(stack, seen)
    return PairSums(
        count=own[0],
        turn=gram[..., :3, :3],
        shift=gram[..., :3, 3],
        square=gram[..., 3, 3],
        own_turn=own[1],
        own_shift=own[2],
        own_square=own[3],
    )


def _own_of_whole(gram: Array, n: int) -> tuple[Array, Array, Array, Array]:
    """Return count and own sums when every body is seen in every frame."""
    m = len(gram)
    own = np.broadcast_to(gram[np.arange(m), np.arange(m)][:, None], (m, m, 4, 4))
    count = np.full((m, m), float(n))
    return count, own[..., :3, :3], own[..., :3, 3], own[..., 3, 3]


def _own_of_gaps(stack: Array, seen: Array) -> tuple[Array, Array, Array, Array]:
    """Return count and own sums: over the frames in which the other is seen too."""
    m = seen.shape[1]
    mask = seen.astype(float)
    columns = np.ascontiguousarray(stack.transpose(3, 1, 0, 2))
    own = np.empty((m, m, 4, 4))
    for i in range(4):
        for j in range(i + 1):
            own[..., i, j] = (columns[i] * columns[j]).sum(axis=0).T @ mask
            own[..., j, i] = own[..., i, j]
    return mask.T @ mask, own[..., :3, :3], own[..., :3, 3], own[..., 3, 3]


def equations(sums: PairSums, pair: Int[Array, "pair 2"]) -> Equations:
    """Return the normal equations of some pairs (OBrien2000, Eqs. 9-13)."""
    a, b = pair.T
    count = sums.count[a, b]
    per = 1.0 / np.where(count > 0.0, count, np.nan)
    A = np.empty((len(pair), 6, 6))
    A[:, :3, :3] = sums.own_turn[a, b]
    A[:, 3:, 3:] = sums.own_turn[b, a]
    A[:, :3, 3:] = -sums.turn[a, b]  # Eq. 12
    A[:, 3:, :3] = np.swapaxes(A[:, :3, 3:], 1, 2)
    g = np.concatenate(
        [
            sums.shift[a, b] - sums.own_shift[a, b],  # Eq. 10
            sums.shift[b, a] - sums.own_shift[b, a],
        ],
        axis=-1,
    )
    square = sums.own_square[a, b] + sums.own_square[b, a] - 2.0 * sums.square[a, b]
    return Equations(
        count,
        A * per[:, None, None],
        g * per[:, None],
        np.maximum(square * per, 0.0),
    )
