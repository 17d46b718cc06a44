"""Poses of all joints of a skeleton in the world, compiled."""

# mypy: ignore-errors

import numpy as np

from marey.articulated.kinematics_kernel import forward_kinematics
from marey.numerics.jit import FAST, lean, njit
from marey.numerics.vector3_kernel import place, set_vector


@njit(cache=True)
def write_joint_poses(tree, node_of_joint, joint_position, pose, work, out):
    """Write T_world_joint of every joint, in metres, in one frame.

    Args:
        tree: The rotating nodes.
        node_of_joint: The node that moves each joint.
        joint_position: Position of each joint in its node.
        pose: Position of the root, and quaternions of the nodes (wxyz).
        work: Scratch: rotation and position of every node in the world.
        out: (joint, 4, 4) gets the poses; its last rows are not written.
    """
    R, c = work
    forward_kinematics(tree, pose[0], pose[1], R, c)
    for j in range(len(node_of_joint)):
        i = node_of_joint[j]
        for k in range(3):
            set_vector(out[j, k], R[i, k])
        out[j, 0, 3], out[j, 1, 3], out[j, 2, 3] = place(R[i], c[i], joint_position[j])


@lean
def _write_pose(P, q, offset, T):
    """Write T = P [R(q) offset; 0 1] of one joint, NaN throughout if it is unknown."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    first = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
    second = 2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
    third = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)
    total = 0.0
    for i in range(3):
        a, b, c = P[i, 0], P[i, 1], P[i, 2]
        for k in range(3):
            T[i, k] = a * first[k] + b * second[k] + c * third[k]
            total += T[i, k]
        T[i, 3] = a * offset[0] + b * offset[1] + c * offset[2] + P[i, 3]
        total += T[i, 3]
    if np.isfinite(total):
        T[3, 0], T[3, 1], T[3, 2], T[3, 3] = 0.0, 0.0, 0.0, 1.0
    else:
        T[:] = np.nan


@njit(cache=True, fastmath=FAST)
def write_motion_poses(parent, offset, T_world_root, wxyz, T):
    """Write the poses of all joints (frame, joint, 4, 4), as `Skeleton.forward` does.

    Args:
        parent: Parent of each joint, before it; -1 of the root, which is the first.
        offset: Position of each joint in its parent.
        T_world_root: Pose of the root in each frame.
        wxyz: Rotations of all joints relative to their parents; the root's is not read.
        T: Out.
    """
    for f in range(len(T)):
        T[f, 0] = T_world_root[f]
        for joint in range(1, len(parent)):
            _write_pose(T[f, parent[joint]], wxyz[f, joint], offset[joint], T[f, joint])
