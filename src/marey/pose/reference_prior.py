"""Between a take, a reference and the tables of the kernels."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.articulated.tables import Nodes
from marey.motion import Motion
from marey.numerics import geometry
from marey.numerics.robust import runs
from marey.pose.options import PoseOptions
from marey.pose.reference import common_joints, warped
from marey.skeleton import Skeleton
from marey.take import Take

if TYPE_CHECKING:
    from marey.articulated.targets_kernel import Targets

Array = np.ndarray


# A frame that the reference leaves this much worse than it was without, as a share and
# in squared standard deviations, may have been led astray.
WORSE, MUCH = 1.2, 10.0


def astray(
    led: Float[Array, " frame"], alone: Float[Array, " frame"]
) -> Int[Array, " some"]:
    """Return the frames whose cost is suspiciously above that without a reference."""
    return np.flatnonzero(led > WORSE * alone + MUCH)


def plain(values: Array) -> Array:
    """Return values as the kernels were compiled for; a copy only if need be."""
    return np.require(values, dtype=float, requirements=["C", "W"])


def motion_of(
    skeleton: Skeleton,
    take: Take,
    nodes: Nodes,
    root: Float[Array, "frame 3"],
    q: Float[Array, "frame node 4"],
) -> Motion:
    """Return the motion of places of the root and rotations of the nodes."""
    return Motion(
        skeleton=skeleton,
        T_world_root=geometry.transform(geometry.matrix_from_quat(q[:, 0]), root),
        wxyz=nodes.rotations(q),
        rate=take.rate,
        start=take.start,
    )


def lead(
    motion: Motion, nodes: Nodes, options: PoseOptions
) -> tuple[Float[Array, "frame node 4"], Float[Array, " node"]]:
    """Return the rotations that the reference asks for, and what they are worth.

    Args:
        motion: The motion found without the reference: it tells the time, and the
            rotations of the root and of joints that the reference does not have.
        nodes: Of the motion's skeleton.
        options: The reference, its keys and its standard deviation.

    Returns:
        Rotations of all nodes in every frame, and their weight in 1 / rad^2.
    """
    assert options.reference is not None
    mine, theirs = common_joints(motion, options.reference)
    asked = warped(options.reference, motion, options.keys).wxyz
    wxyz = motion.wxyz.copy()
    wxyz[:, mine] = asked[:, theirs]
    worth = np.zeros(len(nodes.tree.parent))
    for joint in mine:
        worth[nodes.first_of_joint[joint] : nodes.of_joint[joint] + 1] = (
            options.reference_sd**-2
        )
    return nodes.of_rotations(wxyz), worth


def bridged(
    nodes: Nodes,
    targets: "Targets",
    points: Float[Array, "frame column 3"],
    sensors: Float[Array, "frame sensor 4 4"],
    q: Float[Array, "frame node 4"],
    asked: Float[Array, "frame node 4"],
) -> Float[Array, "frame node 4"]:
    """Return rotations led by a reference, tied to the data at both ends of gaps.

    A limb of which nothing is seen is where the reference has it. That need not be
    where the data leave it before, and find it after: what the reference is off there
    is spread over the gap.
    """
    filled = q.copy()
    blind = _blind(nodes, targets, points, sensors)
    for node in range(1, q.shape[1]):
        for first, last in runs(blind[:, node]):
            ends = [f for f in (first - 1, last + 1) if 0 <= f < len(q)]
            if not ends:
                continue
            back = geometry.quat_conjugate(asked[ends, node])
            off = geometry.quat_multiply(q[ends, node], back)
            off = geometry.quat_continuous(off[:, None])[:, 0]
            gap = np.arange(first, last + 1)
            share = (gap - first + 1) / (last - first + 2)
            turn = geometry.quat_slerp(off[:1], off[-1:], share)
            filled[gap, node] = geometry.quat_multiply(turn, asked[gap, node])
    return geometry.quat_continuous(filled)


def _blind(
    nodes: Nodes, targets: "Targets", points: Array, sensors: Array
) -> Bool[Array, "frame node"]:
    """Return in which frames nothing is seen of a node and of all that it carries."""
    n = len(nodes.tree.parent)
    seen = np.zeros((len(points), n), dtype=bool)
    shown = np.isfinite(points[:, targets.column, 0]) & (targets.weight > 0.0)
    posed = np.isfinite(sensors[:, targets.sensor_column, 0, 0])
    posed &= (targets.sensor_weight > 0.0).any(axis=1)
    for start, known in ((targets.start, shown), (targets.sensor_start, posed)):
        for node in range(n):
            seen[:, node] |= known[:, start[node] : start[node + 1]].any(axis=1)
    for node in range(n - 1, 0, -1):
        seen[:, nodes.tree.parent[node]] |= seen[:, node]
    return ~seen
