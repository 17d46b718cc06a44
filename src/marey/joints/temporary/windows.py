"""Every pair of bodies in short windows of a take, from sums that add."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.joints.ball.normal_equations import seen_in

Array = np.ndarray

# Blocks of frames whose sums are held at a time: bounds the memory of a long take.
MOST_BLOCKS = 256

# Squared gaps, in units of their usual square, from which a frame is likelier outside.
SURPRISE = 3.0

# Surprise that adds up to this much ends the search for an end.
ENOUGH = 60.0


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """How pairs of bodies moved in some windows; NaN where one was not seen."""

    first: Int[Array, " window"]
    """First frame of each window."""

    apart: Float[Array, "window pair"]
    """Root mean square distance of the two origins, in metres."""

    shift: Float[Array, "window pair"]
    """How far the second origin moved in the first body, root mean square, metres."""

    turn: Float[Array, "window pair"]
    """How far the second body turned in the first, root mean square, in radians."""

    way: Float[Array, "window body"]
    """How far each origin moved in the world, root mean square, in metres."""

    swing: Float[Array, "window body"]
    """How far each body turned in the world, root mean square, in radians."""


def windows_of(
    T_world_body: Float[Array, "frame body 4 4"],
    pair: Int[Array, "pair 2"],
    *,
    block: int,
    blocks: int,
) -> Iterator[Windows]:
    """Yield the windows of a take, some at a time.

    The sums of OBrien2000's equations add, so each window's are those of its blocks,
    and windows that overlap share them.

    Args:
        T_world_body: The poses; the last frames that fill no block are left out.
        pair: Bodies (a, b).
        block: Frames in a block; windows begin that far apart.
        blocks: Blocks in a window.
    """
    n_blocks = len(T_world_body) // block
    for first in range(0, n_blocks - blocks + 1, MOST_BLOCKS):
        last = min(first + MOST_BLOCKS + blocks - 1, n_blocks)
        part = T_world_body[first * block : last * block]
        starts = block * np.arange(first, last - blocks + 1)
        yield _windows(part, pair, starts, block, blocks)


def _windows(
    T: Float[Array, "frame body 4 4"],
    pair: Int[Array, "pair 2"],
    first: Int[Array, " window"],
    block: int,
    blocks: int,
) -> Windows:
    seen = seen_in(T).reshape(-1, block, T.shape[1]).all(axis=1)
    gram = _added(_block_sums(T, block), blocks) / (block * blocks)
    shown = _added(seen.astype(float), blocks) > blocks - 0.5
    # The world is the last body, at rest in its origin.
    world = T.shape[1]
    every = np.stack([np.full(world, world), np.arange(world)], axis=-1)
    apart, shift, turn = _motions(gram, pair)
    _, way, swing = _motions(gram, every)
    gone = ~(shown[:, pair[:, 0]] & shown[:, pair[:, 1]])
    apart, shift, turn = (np.where(gone, np.nan, x) for x in (apart, shift, turn))
    way, swing = (np.where(shown, x, np.nan) for x in (way, swing))
    return Windows(first, apart, shift, turn, way, swing)


def _block_sums(
    T: Float[Array, "frame body 4 4"], block: int
) -> Float[Array, "block thing thing 4 4"]:
    """Return the products of all things' poses summed over blocks: bodies, world."""
    n, m = len(T), T.shape[1] + 1
    stack = np.zeros((n, 3, m, 4))
    stack[:, :, :-1] = np.nan_to_num(np.swapaxes(T[:, :, :3], 1, 2))
    # Far from the world's origin digits are lost; its place does not matter here.
    stack[:, :, :-1, 3] -= stack[:, :, :-1, 3].mean(axis=(0, 2), keepdims=True)
    stack[:, :, -1, :3] = np.eye(3)
    flat = stack.reshape(n // block, 3 * block, 4 * m)
    gram = (flat.swapaxes(1, 2) @ flat).reshape(-1, m, 4, m, 4)
    return np.asarray(gram.swapaxes(2, 3))


def _added(values: Array, count: int) -> Array:
    """Return the sums of so many values that follow each other."""
    total = values[: len(values) - count + 1].copy()
    for k in range(1, count):
        total += values[k : len(values) - count + 1 + k]
    return total


def _motions(
    gram: Float[Array, "window thing thing 4 4"], pair: Int[Array, "pair 2"]
) -> tuple[Array, Array, Array]:
    """Return distance, shift and turn of the second bodies as the first see them."""
    a, b = pair.T
    own_a, own_b, across = gram[:, a, a], gram[:, b, b], gram[:, a, b]
    gap = across[..., :3, 3] - own_a[..., :3, 3]
    square = own_a[..., 3, 3] + own_b[..., 3, 3] - 2.0 * across[..., 3, 3]
    moved = np.maximum(square - np.sum(gap**2, axis=-1), 0.0)
    turned = np.maximum(3.0 - np.sum(across[..., :3, :3] ** 2, axis=(-1, -2)), 0.0)
    return np.sqrt(np.maximum(square, 0.0)), np.sqrt(moved), np.sqrt(0.5 * turned)


def longest_run(
    gap: Float[Array, " frame"], core: slice, usual: float
) -> tuple[int, int]:
    """Return the first frame of a run of small gaps about its core, and the one after.

    The likeliest ends: inside, gaps are of their usual size; outside, larger ones are
    no surprise. Frames not seen say nothing.

    Args:
        gap: Distance of two points that are together for a while, in metres.
        core: Frames in which they surely are.
        usual: Their root mean square distance while together, in metres.
    """
    score = np.nan_to_num((gap / usual) ** 2 - SURPRISE)
    right = _grown(score[core.stop :])
    left = _grown(score[: core.start][::-1])
    return core.start - left, core.stop + right


def _grown(score: Float[Array, " frame"]) -> int:
    """Return how many frames to take so that their scores add up to the least."""
    total = np.concatenate([[0.0], np.cumsum(score)])
    over = total > np.minimum.accumulate(total) + ENOUGH
    end = int(np.argmax(over)) if over.any() else len(total)
    return int(np.argmin(total[:end]))
