"""Poses of a take solved in both directions of time.

A frame starts where the last one ended, and may keep to a wrong minimum once a limb has
let its markers go. Solved backwards the limb comes from the other side, and mostly
finds the right one. The cheaper of both solutions is chosen limb by limb.
"""

from typing import TYPE_CHECKING

import numpy as np

from marey.articulated.targets import Recording, as_c_float64
from marey.numerics import Array, Float, Int, geometry
from marey.numerics.resampling import frame_blocks
from marey.numerics.robust import runs
from marey.pose.options import ANGLE_SD
from marey.pose.trace import PoseTrace

if TYPE_CHECKING:
    from marey.pose.solver import PoseSolver


def reverse_recording(recording: Recording) -> Recording:
    """Return a recording in the other direction of time."""
    points, sensors = recording
    return as_c_float64(points[::-1]), as_c_float64(sensors[::-1])


def split_limbs(
    parent: Int[Array, " node"],
) -> tuple[Int[Array, " node"], list[list[int]]]:
    """Return the limb of every node, and the first nodes of limbs by level.

    A limb is a chain of nodes from one branching of the tree to the next; its level is
    the number of limbs between it and the root.
    """
    n_children = np.bincount(parent[1:], minlength=len(parent))
    limb, level = np.zeros(len(parent), dtype=np.int64), [0]
    firsts: list[list[int]] = [[0]]
    for node in range(1, len(parent)):
        above = parent[node]
        limb[node] = limb[above]
        if n_children[above] == 1:
            continue
        limb[node] = len(level)
        level.append(level[limb[above]] + 1)
        if level[-1] == len(firsts):
            firsts.append([])
        firsts[level[-1]].append(node)
    return limb, firsts


def choose_by_limb(
    solver: "PoseSolver",
    recording: Recording,
    solutions: tuple[PoseTrace, ...],
    prior: Float[Array, " block"],
) -> PoseTrace:
    """Return the cheapest sequence of several solutions for every limb.

    Limbs are chosen from the root outward. The cost of a limb is that of its whole
    subtree by each solution, on the limbs that were chosen before, and that of its
    changes from frame to frame, by the information of a prior on each block.
    """
    # numba is slow to import
    from marey.pose.limb_choice_kernel import (
        choose_solutions,
        write_subtree_costs,
    )

    limb, levels = split_limbs(solver.nodes.tree.parent)
    # Limbs that were chosen are written over those of all solutions.
    root, q = (np.stack([getattr(s, n) for s in solutions]) for n in ("root", "q"))
    frames, cost = _differing_frames(solver, root, q), np.zeros(q.shape[:3])
    every, choice = np.arange(q.shape[1]), np.zeros(q.shape[1], dtype=np.int64)
    for firsts in levels:
        for k in range(len(solutions)):
            write_subtree_costs(
                solver.problem, recording, frames, root[k], q[k], cost[k]
            )
        for first in firsts:
            own, number = cost[:, :, first].copy(), limb[first]
            choose_solutions(number, limb, own, (root, q), prior, choice)
            for node in np.flatnonzero(limb == number):
                q[:, :, node] = q[choice, every, node]
            if first == 0:
                root[:] = root[choice, every]
    # All are equal now. The memory of the others is freed without a copy of the first.
    q.resize((1, *q.shape[1:]), refcheck=False)
    return PoseTrace(q[0], root[0].copy(), np.zeros_like(solutions[0].info))


def _differing_frames(
    solver: "PoseSolver",
    root: Float[Array, "solution frame 3"],
    q: Float[Array, "solution frame node 4"],
) -> Int[Array, " some"]:
    """Return the frames in which solutions differ by more than measured poses do."""
    blocks = (q[:, frames] for frames in frame_blocks(q.shape[1]))
    cosines = (np.einsum("sfni,fni->sfn", block, block[0]) for block in blocks)
    cosine = np.concatenate([np.abs(one).min(axis=(0, 2)) for one in cosines])
    distance = np.linalg.norm(root - root[:1], axis=-1).max(axis=0)
    is_other = cosine < np.cos(0.5 * ANGLE_SD)
    return np.flatnonzero(is_other | (distance > solver.marker_sd))


def bridge_gaps(
    solver: "PoseSolver",
    recording: Recording,
    forward: PoseTrace,
    backward: PoseTrace,
    trace: PoseTrace,
) -> Int[Array, " some"]:
    """Let unseen limbs pass from the forward to the backward solution, in place.

    The one continues the motion before a gap, the other that after it. Both are moved
    to the poses at its ends.

    Returns:
        The frames in which some limb is unseen.
    """
    is_unseen = solver.unseen_nodes(recording)
    for node in range(is_unseen.shape[1]):
        paths = [one.q[:, node] for one in (forward, backward, trace)]
        for first, last in runs(is_unseen[:, node]):
            _bridge_rotation(first, last, *paths)
            if node == 0:
                _bridge_position(first, last, forward.root, backward.root, trace.root)
    return np.flatnonzero(is_unseen.any(axis=1))


def _bridge_rotation(
    first: int,
    last: int,
    forward: Float[Array, "frame 4"],
    backward: Float[Array, "frame 4"],
    path: Float[Array, "frame 4"],
) -> None:
    """Write the rotations of a gap: those of both solutions, joined to its ends."""

    def join(solution: Array, end: int) -> Array:
        if not 0 <= end < len(path):
            return np.asarray(solution[gap])
        inverse = geometry.quat_conjugate(solution[end])
        offset = geometry.quat_multiply(path[end], inverse)
        return geometry.quat_multiply(offset, solution[gap])

    gap, share = slice(first, last + 1), _share_of_backward(first, last, len(path))
    start, end = join(forward, first - 1), join(backward, last + 1)
    path[gap] = geometry.quat_slerp(start, end, share)


def _bridge_position(
    first: int,
    last: int,
    forward: Float[Array, "frame 3"],
    backward: Float[Array, "frame 3"],
    path: Float[Array, "frame 3"],
) -> None:
    """Write the positions of the root in a gap, as `_bridge_rotation` does."""

    def join(solution: Array, end: int) -> Array:
        is_inside = 0 <= end < len(path)
        offset = path[end] - solution[end] if is_inside else 0.0
        return np.asarray(solution[gap] + offset)

    gap, share = slice(first, last + 1), _share_of_backward(first, last, len(path))
    start, end = join(forward, first - 1), join(backward, last + 1)
    path[gap] = start + share[:, None] * (end - start)


def _share_of_backward(first: int, last: int, n_frames: int) -> Float[Array, " gap"]:
    """Return a smoothstep over a gap; of a gap with one end, only that end counts."""
    before, after = first > 0, last < n_frames - 1
    if not (before and after):
        return np.full(last - first + 1, 0.5 * (1 + after - before))
    share = np.arange(1, last - first + 2) / (last - first + 2)
    return np.asarray(share**2 * (3.0 - 2.0 * share))
