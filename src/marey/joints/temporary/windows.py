"""Relative motion of all pairs of bodies in short windows, and the ends of a run."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.joints.ball.normal_equations import poses_seen

Array = np.ndarray

MAX_BLOCKS = 256
"""Blocks of frames whose sums are held at a time. Higher needs more memory and changes
no answer."""

RUN_CUTOFF = 3.0
"""Squared deviation, in mean squares inside the run, above which a frame is more likely
outside the run. Higher makes runs longer. Chosen by hand."""

RUN_STOP_SCORE = 60.0
"""Score above its minimum at which the search for the end of a run stops. Higher
bridges longer interruptions. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class WindowMotions:
    """Motions in some windows; NaN where a body was not seen throughout."""

    first: Int[Array, " window"]
    """First frame of each window."""

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


def window_motions(
    T_world_body: Float[Array, "frame body 4 4"],
    pair: Int[Array, "pair 2"],
    *,
    block: int,
    blocks: int,
) -> Iterator[WindowMotions]:
    """Yield the motions in the windows of a take, some windows at a time.

    The sums of the normal equations of OBrien2000, Eq. 13, add up: those of a window
    are the sum of those of its blocks, which overlapping windows share.

    Args:
        T_world_body: The poses; the last frames that fill no block are left out.
        pair: Bodies (a, b).
        block: Number of frames in a block; one window starts at every block.
        blocks: Number of blocks in a window.
    """
    n_blocks = len(T_world_body) // block
    for first in range(0, n_blocks - blocks + 1, MAX_BLOCKS):
        last = min(first + MAX_BLOCKS + blocks - 1, n_blocks)
        part = T_world_body[first * block : last * block]
        starts = block * np.arange(first, last - blocks + 1)
        yield _window_motions(part, pair, starts, block, blocks)


def _window_motions(
    T: Float[Array, "frame body 4 4"],
    pair: Int[Array, "pair 2"],
    first: Int[Array, " window"],
    block: int,
    blocks: int,
) -> WindowMotions:
    seen = poses_seen(T).reshape(-1, block, T.shape[1]).all(axis=1)
    is_seen = _moving_sum(seen.astype(float), blocks) > blocks - 0.5
    gram = _moving_sum(_block_sums(T, block), blocks) / (block * blocks)
    # The world is the last body; it is at rest in its origin.
    world = T.shape[1]
    world_pair = np.stack([np.full(world, world), np.arange(world)], axis=-1)
    both_seen = is_seen[:, pair].all(axis=-1)
    motions = [np.where(both_seen, x, np.nan) for x in _relative_motions(gram, pair)]
    _, *in_world = _relative_motions(gram, world_pair)
    motions += [np.where(is_seen, x, np.nan) for x in in_world]
    return WindowMotions(first, *motions)


def _block_sums(
    T: Float[Array, "frame body 4 4"], block: int
) -> Float[Array, "block item item 4 4"]:
    """Return [R_i t_i]^T [R_j t_j] of bodies and world, summed over blocks."""
    n, m = len(T), T.shape[1] + 1
    stack = np.zeros((n, 3, m, 4))
    stack[:, :, :-1] = np.nan_to_num(np.swapaxes(T[:, :, :3], 1, 2))
    # Digits are lost far from the world's origin; where the origin is has no effect
    # here.
    stack[:, :, :-1, 3] -= stack[:, :, :-1, 3].mean(axis=(0, 2), keepdims=True)
    stack[:, :, -1, :3] = np.eye(3)
    flat = stack.reshape(n // block, 3 * block, 4 * m)
    gram = (flat.swapaxes(1, 2) @ flat).reshape(-1, m, 4, m, 4)
    return np.asarray(gram.swapaxes(2, 3))


def _moving_sum(values: Array, count: int) -> Array:
    """Return the sums of `count` consecutive values along the first axis."""
    total = values[: len(values) - count + 1].copy()
    for k in range(1, count):
        total += values[k : len(values) - count + 1 + k]
    return total


def _relative_motions(
    gram: Float[Array, "window item item 4 4"], pair: Int[Array, "pair 2"]
) -> tuple[Array, Array, Array]:
    r"""Return distance, translation and rotation of the second bodies in the first.

    With the mean relative position :math:`\bar p` and rotation :math:`M` over the
    window,

    .. math:: d^2 = \overline{|t_b - t_a|^2}, \qquad s^2 = d^2 - |\bar p|^2, \qquad
              \theta^2 = \tfrac{1}{2} (3 - \|M\|_F^2), \qquad \bar p = \overline{R_a^T
              (t_b - t_a)}, \quad M = \overline{R_a^T R_b}

    For small rotations :math:`\theta` is the root mean square angle.
    """
    a, b = pair.T
    gram_a, gram_b, gram_ab = gram[:, a, a], gram[:, b, b], gram[:, a, b]
    mean = gram_ab[..., :3, 3] - gram_a[..., :3, 3]
    square = gram_a[..., 3, 3] + gram_b[..., 3, 3] - 2.0 * gram_ab[..., 3, 3]
    variance = np.maximum(square - np.sum(mean**2, axis=-1), 0.0)
    coherence = np.sum(gram_ab[..., :3, :3] ** 2, axis=(-1, -2))
    rotation = np.sqrt(0.5 * np.maximum(3.0 - coherence, 0.0))
    return np.sqrt(np.maximum(square, 0.0)), np.sqrt(variance), rotation


def extend_run(
    deviation: Float[Array, " frame"], core: slice, rms: float
) -> tuple[int, int]:
    r"""Return the first frame of a run of small deviations, and the one after its last.

    Each end is where the cumulative sum of the score :math:`(d_t / \mathrm{rms})^2 - 3`
    is smallest, counted outwards from the core: a log likelihood ratio of frames inside
    against frames outside. Frames without data have the score zero.

    Args:
        deviation: Distance :math:`d_t` from the pose inside the run, in metres.
        core: Frames that are certainly inside.
        rms: Root mean square deviation inside, in metres.
    """
    score = np.nan_to_num((deviation / rms) ** 2 - RUN_CUTOFF)
    after = _minimum_prefix(score[core.stop :])
    before = _minimum_prefix(score[: core.start][::-1])
    return core.start - before, core.stop + after


def _minimum_prefix(score: Float[Array, " frame"]) -> int:
    """Return how many leading scores have the smallest sum.

    The search stops once the sum exceeds its minimum so far by `RUN_STOP_SCORE`.
    """
    total = np.concatenate([[0.0], np.cumsum(score)])
    is_over = total > np.minimum.accumulate(total) + RUN_STOP_SCORE
    end = int(np.argmax(is_over)) if is_over.any() else len(total)
    return int(np.argmin(total[:end]))
