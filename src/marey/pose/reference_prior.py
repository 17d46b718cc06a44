"""A reference motion as the start of frames and as a prior of rotations."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.articulated.tables import Nodes
from marey.motion import Motion
from marey.numerics import geometry
from marey.numerics.robust import runs
from marey.pose.options import PoseOptions
from marey.pose.reference import common_joints, warp_time
from marey.pose.trace import PoseTrace
from marey.skeleton import Skeleton
from marey.take import Take

if TYPE_CHECKING:
    from marey.articulated.targets_kernel import Targets

Array = np.ndarray

MAX_COST_RATIO = 1.2
"""Largest ratio of a frame's cost to that of another solution; see
`frames_worse_than`. Higher suspects fewer frames. Chosen by hand."""

MAX_COST_INCREASE = 10.0
"""Increase of a frame's cost, in squared standard deviations, that is allowed beside
`MAX_COST_RATIO`. Higher suspects fewer frames. Chosen by hand."""


def frames_worse_than(
    cost: Float[Array, " frame"], other: Float[Array, " frame"]
) -> Int[Array, " worse"]:
    """Return the frames whose cost is clearly above that of another solution."""
    return np.flatnonzero(cost > MAX_COST_RATIO * other + MAX_COST_INCREASE)


def as_c_float64(values: Array) -> Array:
    """Return values in the layout of the compiled kernels; a copy only if needed."""
    return np.require(values, dtype=float, requirements=["C", "W"])


def make_motion(
    skeleton: Skeleton,
    take: Take,
    nodes: Nodes,
    root: Float[Array, "frame 3"],
    q: Float[Array, "frame node 4"],
) -> Motion:
    """Return the motion of positions of the root and rotations of the nodes."""
    return Motion(
        skeleton=skeleton,
        T_world_root=geometry.transform(geometry.matrix_from_quat(q[:, 0]), root),
        wxyz=nodes.joint_rotations(q),
        rate=take.rate,
        start=take.start,
    )


def reference_rotations(
    motion: Motion, nodes: Nodes, options: PoseOptions
) -> tuple[Float[Array, "frame node 4"], Float[Array, " node"]]:
    """Return the rotations of the reference at every frame, and their information.

    Args:
        motion: The motion solved without the reference. The reference is matched to it
            in time, and joints that the reference does not have keep its rotations.
        nodes: The nodes of the motion's skeleton.
        options: The reference, its keys and its standard deviation.

    Returns:
        Rotations of all nodes, and one over their variance, in 1 / rad^2; 0 for joints
        that the reference does not have.
    """
    assert options.reference is not None
    joints, reference_joints = common_joints(motion, options.reference)
    reference = warp_time(options.reference, motion, options.keys)
    wxyz = motion.wxyz.copy()
    wxyz[:, joints] = reference.wxyz[:, reference_joints]
    information = np.zeros(len(nodes.tree.parent))
    for ends in (nodes.first_node_of_joint, nodes.node_of_joint):
        information[ends[joints]] = options.reference_sd**-2
    return nodes.node_rotations(wxyz), information


def refine_with_reference(
    run: Callable[[Int[Array, " some"], PoseTrace], None],
    alone: PoseTrace,
    reference_q: Float[Array, "frame node 4"],
) -> tuple[PoseTrace, Float[Array, "frame number"]]:
    """Return poses that start at the rotations of a reference, where this is better.

    A frame that the reference makes worse starts at its pose without it instead.

    Args:
        run: Solves some frames of a trace in place, each started where it is.
        alone: The poses without the reference.
        reference_q: Rotations of the reference.

    Returns:
        The better poses, and the sum of the statistics of both attempts.
    """
    nothing = np.zeros_like(alone.info)
    best = PoseTrace(reference_q, alone.root, nothing).copy()
    again = PoseTrace(alone.q, alone.root, nothing).copy()
    run(np.arange(len(reference_q)), best)
    worse = frames_worse_than(best.info[:, 0], alone.info[:, 0])
    run(worse, again)
    spent = best.info + again.info
    best.replace_frames(worse[again.info[worse, 0] < best.info[worse, 0]], again)
    return best, spent


def blend_reference_across_gaps(
    nodes: Nodes,
    targets: "Targets",
    points: Float[Array, "frame column 3"],
    sensors: Float[Array, "frame sensor 4 4"],
    q: Float[Array, "frame node 4"],
    reference_q: Float[Array, "frame node 4"],
) -> Float[Array, "frame node 4"]:
    """Return the rotations with those of the reference inside gaps, joined at the ends.

    An unseen limb has the rotations of the reference. These may differ from the data
    before and after the gap: the differences at both ends are interpolated over the gap
    (slerp) and applied to the reference.
    """
    filled = q.copy()
    is_unseen = _unseen_nodes(nodes, targets, points, sensors)
    for node in range(1, q.shape[1]):
        for first, last in runs(is_unseen[:, node]):
            ends = [f for f in (first - 1, last + 1) if 0 <= f < len(q)]
            if not ends:
                continue
            inverse = geometry.quat_conjugate(reference_q[ends, node])
            offset = geometry.quat_multiply(q[ends, node], inverse)
            offset = geometry.quat_continuous(offset[:, None])[:, 0]
            gap = np.arange(first, last + 1)
            share = (gap - first + 1) / (last - first + 2)
            offset = geometry.quat_slerp(offset[:1], offset[-1:], share)
            filled[gap, node] = geometry.quat_multiply(offset, reference_q[gap, node])
    return geometry.quat_continuous(filled)


def _unseen_nodes(
    nodes: Nodes, targets: "Targets", points: Array, sensors: Array
) -> Bool[Array, "frame node"]:
    """Return the frames in which no target of a node's whole subtree is seen."""
    n = len(nodes.tree.parent)
    is_seen = np.zeros((len(points), n), dtype=bool)
    markers = np.isfinite(points[:, targets.column, 0]) & (targets.weight > 0.0)
    has_weight = (targets.sensor_weight > 0.0).any(axis=1)
    posed = np.isfinite(sensors[:, targets.sensor_column, 0, 0]) & has_weight
    for start, seen in ((targets.start, markers), (targets.sensor_start, posed)):
        for node in range(n):
            is_seen[:, node] |= seen[:, start[node] : start[node + 1]].any(axis=1)
    for node in range(n - 1, 0, -1):
        is_seen[:, nodes.tree.parent[node]] |= is_seen[:, node]
    return ~is_seen
