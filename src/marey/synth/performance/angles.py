"""Joint angles and rotations: swing and twist of balls, turns of hinges."""

import numpy as np
from jaxtyping import Float

from marey.numerics import geometry
from marey.skeleton import Skeleton


def bone_axes(skeleton: Skeleton) -> Float[np.ndarray, "joint 3"]:
    """Return the twist axis of each joint: its first axis crossed with its second."""
    return np.asarray(np.cross(skeleton.axes[:, 0], skeleton.axes[:, 1]))


def rotations(
    skeleton: Skeleton, angles: Float[np.ndarray, "frame joint 3"]
) -> Float[np.ndarray, "frame joint 4"]:
    """Return R_parent_joint, as quaternions, of joint angles.

    A ball swings about a vector in the plane of its two axes, after it has twisted
    about its bone: R = exp(a x + b y) exp(c bone). A universal joint turns about its
    first axis, then about the second as the first turn left it. A hinge reads the first
    angle only; the root and fixed joints none.

    Args:
        skeleton: The joints.
        angles: Swing about x, swing about y and twist, in radians.
    """
    wxyz = np.zeros((*angles.shape[:2], 4))
    wxyz[..., 0] = 1.0
    bone = bone_axes(skeleton)
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
    """Return the joint angles of rotations: the inverse of `rotations`."""
    angles = np.zeros((*wxyz.shape[:2], 3))
    for joint, kind in enumerate(skeleton.kind):
        if kind in ("ball", "universal", "hinge"):
            angles[:, joint] = angles_of(skeleton, joint, wxyz[:, joint])
    return angles


def angles_of(
    skeleton: Skeleton, joint: int, wxyz: Float[np.ndarray, "frame 4"]
) -> Float[np.ndarray, "frame 3"]:
    """Return the angles of one joint's rotations."""
    x, y = skeleton.axes[joint]
    kind = skeleton.kind[joint]
    if kind == "ball":
        return _swing_twist(wxyz, x, y)
    angles = np.zeros((len(wxyz), 3))
    if kind == "hinge":
        angles[:, 0] = _turn(wxyz, x)
        return angles
    R, z = geometry.matrix_from_quat(wxyz), np.cross(x, y)
    turned, back = R @ y, np.swapaxes(R, -1, -2) @ x
    angles[:, 0] = np.arctan2(turned @ z, turned @ y)
    angles[:, 1] = np.arctan2(back @ z, back @ x)
    return angles


def _swing_twist(wxyz: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    bone = np.cross(x, y)
    twist = _turn(wxyz, bone)
    back = geometry.quat_exp(-twist[:, None] * bone)
    swing = geometry.quat_log(geometry.quat_multiply(wxyz, back))
    return np.stack([swing @ x, swing @ y, twist], axis=-1)


def _turn(wxyz: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Return the angle turned about an axis, within +-pi."""
    half = np.arctan2(wxyz[:, 1:] @ axis, wxyz[:, 0])
    return np.asarray((2.0 * half + np.pi) % (2.0 * np.pi) - np.pi)


def within(
    skeleton: Skeleton, angles: Float[np.ndarray, "frame joint 3"], slack: float = 1e-9
) -> bool:
    """Return whether every angle lies within its limits; a NaN limit is none."""
    low, high = skeleton.limits[..., 0], skeleton.limits[..., 1]
    return not ((angles < low - slack) | (angles > high + slack)).any()
