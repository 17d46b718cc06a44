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

Quaternions = Float[Array, "frame 4"]
"""Rotations of one node in its parent (wxyz)."""


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

    Limbs are chosen from the root outward, each attached to the limbs that were chosen
    before. The cost of a limb has two parts: the cost of its whole subtree with each
    solution, and the cost of its changes from frame to frame, by the information of a
    prior on each block.
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
        paths = forward.q[:, node], backward.q[:, node], trace.q[:, node]
        for gap in runs(is_unseen[:, node]):
            share = _smoothstep(share_of_gap(*gap, len(trace.q)))
            bridge_rotation(gap, *paths, share)
            if node == 0:
                positions = forward.root, backward.root, trace.root
                _bridge_position(gap, *positions, share)
    return np.flatnonzero(is_unseen.any(axis=1))


def bridge_rotation(
    gap: tuple[int, int],
    forward: Quaternions,
    backward: Quaternions,
    path: Quaternions,
    share: Float[Array, " gap"],
) -> None:
    """Write the rotations of a gap: those of two solutions, joined to its ends.

    Each solution is rotated so that it meets the path at one end, and the path passes
    from one to the other (slerp).

    Args:
        gap: First and last frame.
        forward: Rotations that continue the motion before the gap.
        backward: Rotations that continue the motion after it.
        path: The rotations around the gap. Gets those inside.
        share: Share of the backward solution in each frame of the gap, 0 to 1.
    """
    (first, last), inside = gap, slice(gap[0], gap[1] + 1)
    joined = []
    for solution, end in ((forward, first - 1), (backward, last + 1)):
        rotation = solution[inside]
        if 0 <= end < len(path):
            inverse = geometry.quat_conjugate(solution[end])
            offset = geometry.quat_multiply(path[end], inverse)
            rotation = geometry.quat_multiply(offset, rotation)
        joined.append(rotation)
    path[inside] = geometry.quat_slerp(joined[0], joined[1], share)


def _bridge_position(
    gap: tuple[int, int],
    forward: Float[Array, "frame 3"],
    backward: Float[Array, "frame 3"],
    path: Float[Array, "frame 3"],
    share: Float[Array, " gap"],
) -> None:
    """Write the positions of the root in a gap, as `bridge_rotation` does."""
    (first, last), inside = gap, slice(gap[0], gap[1] + 1)
    start, end = forward[inside], backward[inside]
    if first > 0:
        start = start + (path[first - 1] - forward[first - 1])
    if last < len(path) - 1:
        end = end + (path[last + 1] - backward[last + 1])
    path[inside] = start + share[:, None] * (end - start)


def share_of_gap(first: int, last: int, n_frames: int) -> Float[Array, " gap"]:
    """Return shares that rise evenly over a gap; of a gap with one end only 0, or 1."""
    before, after = first > 0, last < n_frames - 1
    if not (before and after):
        return np.full(last - first + 1, 0.5 * (1 + after - before))
    return np.arange(1, last - first + 2) / (last - first + 2)


def _smoothstep(share: Float[Array, " gap"]) -> Float[Array, " gap"]:
    """Return the shares made flat at 0 and at 1, 3 x^2 - 2 x^3."""
    return np.asarray(share**2 * (3.0 - 2.0 * share))
