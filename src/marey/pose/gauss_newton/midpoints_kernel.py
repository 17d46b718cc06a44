"""Midpoints of weakly determined rotations between the frames beside them, compiled."""

# mypy: ignore-errors

import numpy as np

from marey.numerics.arrays.new_kernel import empty
from marey.numerics.jit import lean, njit
from marey.numerics.vector3_kernel import copy_rows, set_values, sum_products


@lean
def _write_midpoint(before, now, after, middle):
    """Write the midpoint of two quaternions; return the squared chord from it to now.

    The chord of a rotation by an angle is 2 sin(angle / 2).
    """
    a = 1.0 if sum_products(before, now) >= 0.0 else -1.0
    b = 1.0 if sum_products(after, now) >= 0.0 else -1.0
    for k in range(4):
        middle[k] = a * before[k] + b * after[k]
    square = sum_products(middle, middle)
    cosine = sum_products(middle, now)
    scale = 1.0 / np.sqrt(square)
    for k in range(4):
        middle[k] *= scale
    return 4.0 * (1.0 - cosine * cosine / square)


@lean
def _write_path(q, f, information, prior, walk, middle, path):
    """Write the rotations of a frame; return how many are midpoints."""
    count = 0
    for i in range(q.shape[1]):
        if information[i + 1] < prior[i + 1]:
            square = _write_midpoint(q[f - 1, i], q[f, i], q[f + 1, i], middle)
            if walk[i + 1] * square > 1.0:
                set_values(path[i], middle)
                count += 1
    return count


@njit(cache=True, nogil=True)
def write_midpoints(q, information, prior, walk, path, is_far):
    """Write rotations with midpoints in place of weak ones that are far from them.

    Args:
        q: Rotations of all nodes, as quaternions, by frame.
        information: Information of each frame's markers on the blocks.
        prior: Information of the prior on the blocks; a node with less is weak.
        walk: Information on a rotation between two, of the random walk, by block. Far
            is more than one standard deviation of it.
        path: Gets the rotations of all frames but the first and the last.
        is_far: Gets whether a frame has a midpoint; the first and the last have none.
    """
    middle = empty(4)
    for f in range(1, len(q) - 1):
        copy_rows(q[f], path[f])
        is_far[f] = _write_path(q, f, information[f], prior, walk, middle, path[f]) > 0
