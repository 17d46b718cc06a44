"""Joint angles and rotations: swing-twist angles of ball joints, hinge angles."""

import numpy as np

from marey.numerics import Float, geometry
from marey.skeleton import Skeleton


def twist_axes(skeleton: Skeleton) -> Float[np.ndarray, "joint 3"]:
    """Return the twist axis of each joint: its first axis crossed with its second."""
    return np.asarray(np.cross(skeleton.axes[:, 0], skeleton.axes[:, 1]))


def quaternions_from_angles(
    skeleton: Skeleton, angles: Float[np.ndarray, "frame joint 3"]
) -> Float[np.ndarray, "frame joint 4"]:
    """Return the quaternions of R_parent_joint for given joint angles.

    A ball joint has swing-twist angles (a, b, c): R = exp(a x + b y) exp(c bone). A
    universal joint rotates about its first axis, then about the rotated second axis:
    R = exp(a x) exp(b y). A hinge has only the first angle. The root and fixed joints
    have none.

    Args:
        skeleton: The joints.
        angles: Swing about x, swing about y, and twist, in radians.
    """
    wxyz = np.zeros((*angles.shape[:2], 4))
    wxyz[..., 0] = 1.0
    bone = twist_axes(skeleton)
    for joint, kind in enumerate(skeleton.kind):
        x, y = skeleton.axes[joint]
        a, b, c = np.moveaxis(angles[:, joint, :, None], 1, 0)
        if kind == "ball":
            first, second = geometry.quat_exp(a * x + b * y), c * bone[joint]
        elif kind == "universal":
            first, second = geometry.quat_exp(a * x), b * y
        elif kind == "hinge":
            first, second = geometry.quat_exp(a * x), np.zeros((len(angles), 3))
        else:
            continue
        wxyz[:, joint] = geometry.quat_multiply(first, geometry.quat_exp(second))
    return wxyz


def joint_angles(
    skeleton: Skeleton, wxyz: Float[np.ndarray, "frame joint 4"]
) -> Float[np.ndarray, "frame joint 3"]:
    """Return the joint angles of quaternions: inverse of `quaternions_from_angles`."""
    angles = np.zeros((*wxyz.shape[:2], 3))
    for joint, kind in enumerate(skeleton.kind):
        if kind in ("ball", "universal", "hinge"):
            angles[:, joint] = angles_of_joint(skeleton, joint, wxyz[:, joint])
    return angles


def angles_of_joint(
    skeleton: Skeleton, joint: int, wxyz: Float[np.ndarray, "frame 4"]
) -> Float[np.ndarray, "frame 3"]:
    """Return the joint angles of one joint, given its quaternions."""
    x, y = skeleton.axes[joint]
    kind = skeleton.kind[joint]
    if kind == "ball":
        return _swing_twist(wxyz, x, y)
    angles = np.zeros((len(wxyz), 3))
    if kind == "hinge":
        angles[:, 0] = _angle_about(wxyz, x)
        return angles
    R, z = geometry.matrix_from_quat(wxyz), np.cross(x, y)
    y_in_parent, x_in_joint = R @ y, np.swapaxes(R, -1, -2) @ x
    angles[:, 0] = np.arctan2(y_in_parent @ z, y_in_parent @ y)
    angles[:, 1] = np.arctan2(x_in_joint @ z, x_in_joint @ x)
    return angles


def _swing_twist(wxyz: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the swing-twist decomposition: two swing angles and the twist."""
    bone = np.cross(x, y)
    twist = _angle_about(wxyz, bone)
    untwist = geometry.quat_exp(-twist[:, None] * bone)
    swing = geometry.quat_log(geometry.quat_multiply(wxyz, untwist))
    return np.stack([swing @ x, swing @ y, twist], axis=-1)


def _angle_about(wxyz: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Return the twist angle about an axis, in radians within +-pi."""
    half = np.arctan2(wxyz[:, 1:] @ axis, wxyz[:, 0])
    return np.asarray((2.0 * half + np.pi) % (2.0 * np.pi) - np.pi)
