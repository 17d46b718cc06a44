"""Poses of all joints of a skeleton in the world, compiled."""

# mypy: ignore-errors

from marey.articulated.kinematics_kernel import forward_kinematics
from marey.numerics.jit import njit
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
