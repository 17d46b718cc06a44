"""Closed-form inverse kinematics of limbs with two bones."""

import numpy as np

from marey.numerics import Array, Float, geometry
from marey.skeleton import Skeleton
from marey.synth.performance.angles import angles_of_joint, quaternions_from_angles
from marey.synth.performance.curves import Angles, LimbAngles, Poses, Times


def frame_from_directions(
    first: Float[Array, "*#batch 3"], second: Float[Array, "*#batch 3"]
) -> Float[Array, "*batch 3 3"]:
    """Return right-handed frames whose x axis is `first`, by Gram-Schmidt.

    The y axis is the part of `second` perpendicular to `first`.
    """
    first, second = np.broadcast_arrays(first, second)
    x = geometry.unit_vectors(first)
    y = geometry.unit_vectors(second - np.sum(second * x, axis=-1, keepdims=True) * x)
    return np.stack([x, y, np.cross(x, y)], axis=-1)


def align_bone(
    bone: Float[Array, "*#batch 3"],
    axis: Float[Array, "*#batch 3"],
    bone_goal: Float[Array, "*#batch 3"],
    axis_goal: Float[Array, "*#batch 3"],
) -> Float[Array, "*batch 3 3"]:
    """Return the rotation that takes `bone` to `bone_goal` exactly.

    The rotation about the bone that is left takes `axis` as near to `axis_goal` as
    possible.
    """
    return np.asarray(
        frame_from_directions(bone_goal, axis_goal)
        @ np.swapaxes(frame_from_directions(bone, axis), -1, -2)
    )


def _bend_angle(a: Array, b: Array, axis: Array, distance: Array) -> Array:
    """Return the angle about `axis` (rad) at which |a + R b| equals the distance."""
    along = (a @ axis) * (b @ axis)
    even, odd = a @ b - along, a @ np.cross(axis, b)
    cosine = (distance**2 - a @ a - b @ b - 2.0 * along) / (2.0 * np.hypot(even, odd))
    return np.asarray(np.arctan2(odd, even) + np.arccos(np.clip(cosine, -1.0, 1.0)))


def joint_poses(
    skeleton: Skeleton, T_world_root: Poses, angles: Angles
) -> Float[Array, "frame joint 4 4"]:
    """Return T_world_joint of joint angles in radians, by forward kinematics."""
    return skeleton.forward(T_world_root, quaternions_from_angles(skeleton, angles))


def solve_limb(
    skeleton: Skeleton,
    limb: tuple[int, int, int],
    T_world_joint: Float[Array, "frame joint 4 4"],
    T_world_end: Poses,
    axis_world: Float[Array, "frame 3"],
    twist: Times | None = None,
) -> LimbAngles:
    """Return the angles (upper, middle, end) that give the end joint a wanted pose.

    The middle joint bends about its first axis by the angle that gives the right
    distance (law of cosines). Then the upper joint points the limb at the goal.

    Args:
        skeleton: The joints.
        limb: Upper joint, middle joint, end joint.
        T_world_joint: Poses of all joints; that of the upper joint's parent counts.
        T_world_end: Wanted pose of the end joint.
        axis_world: Preferred direction of the middle joint's axis, in the world.
        twist: Twist of the middle joint about its bone, in radians. The bone must point
            to the end joint, so that the twist does not move the end joint. Default:
            none.
    """
    upper, middle, end = limb
    T_world_parent = T_world_joint[:, skeleton.parent[upper]]
    R_parent_world = np.swapaxes(T_world_parent[:, :3, :3], -1, -2)
    start = geometry.apply(T_world_parent, skeleton.offset[upper])
    to_goal = T_world_end[:, :3, 3] - start
    goal = np.einsum("fij,fj->fi", R_parent_world, to_goal)
    axis_goal = np.einsum("fij,fj->fi", R_parent_world, axis_world)
    axis, a, b = skeleton.axes[middle, 0], *skeleton.offset[[middle, end]]
    bend = _bend_angle(a, b, axis, np.linalg.norm(goal, axis=-1))
    limb_vector = a + geometry.rotation_exp(bend[:, None] * axis) @ b
    R = align_bone(limb_vector, axis, goal, axis_goal)
    angles = np.zeros((len(goal), skeleton.n_joints, 3))
    angles[:, upper] = angles_of_joint(skeleton, upper, geometry.quat_from_matrix(R))
    angles[:, middle, 0] = bend
    if twist is not None:
        angles[:, middle, 2] = twist
    wxyz = quaternions_from_angles(skeleton, angles)
    R = geometry.matrix_from_quat(
        geometry.quat_multiply(wxyz[:, upper], wxyz[:, middle])
    )
    R_middle_end = np.swapaxes(R, -1, -2) @ R_parent_world @ T_world_end[:, :3, :3]
    wxyz_end = geometry.quat_from_matrix(R_middle_end)
    angles[:, end] = angles_of_joint(skeleton, end, wxyz_end)
    return angles[:, list(limb)]
