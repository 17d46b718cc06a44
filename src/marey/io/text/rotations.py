"""Rotations of text formats: quaternions, rotation matrices and Euler angles."""

from collections.abc import Sequence

import numpy as np

from marey.io.file import File
from marey.io.text.numbers import round_values
from marey.motion import Motion
from marey.numerics import Float, geometry

ANGLE_DECIMALS = 6
"""Decimals of a written angle in degrees: 2e-8 m at the end of a limb of 2 m."""

ANGLE_FORMAT = f"%.{ANGLE_DECIMALS}f"

MAX_ANGLE_ERROR_RAD = 1e-6
"""Radians by which a rotation may leave its joint's kind or limits and still be written
as one within them: the rounding of files."""

MAX_QUATERNION_STRETCH = 0.01
"""Largest difference from one of a quaternion's length without a finding.

Higher accepts more scaled quaternions silently. Chosen by hand.
"""

MIN_QUATERNION_LENGTH = 1e-6
"""Length below which a quaternion has no direction and counts as not seen.

Higher drops more quaternions. Chosen by hand.
"""

MAX_ROTATION_ERROR = 0.05
"""Largest entry of :math:`R R^T - I` with which a matrix R counts as a rotation.

Higher accepts more distorted matrices. Chosen by hand.
"""


def rotations_from_quaternions(
    file: File, wxyz: Float[np.ndarray, "*batch 4"]
) -> Float[np.ndarray, "*batch 3 3"]:
    """Return the rotation matrices of quaternions of any length; NaN for length zero.

    Args:
        file: Collects a finding when quaternions are far from length one.
        wxyz: Quaternions, NaN where unknown.
    """
    length = np.linalg.norm(wxyz, axis=-1, keepdims=True)
    length[length < MIN_QUATERNION_LENGTH] = np.nan
    stretched = int((np.abs(length - 1.0) > MAX_QUATERNION_STRETCH).sum())
    file.note_count(
        "quaternions-scaled", stretched, "{} quaternions are not of length one: scaled"
    )
    return geometry.matrix_from_quat(wxyz / length)


def repair_rotations(
    file: File, R: Float[np.ndarray, "frame 3 3"]
) -> Float[np.ndarray, "frame 3 3"]:
    """Return orthonormal matrices near rounded ones; NaN where there is no rotation.

    Args:
        file: Collects a finding when matrices, other than zeros, are no rotations.
        R: Matrices, NaN or zero where unknown.
    """
    error = np.abs(R @ R.swapaxes(-1, -2) - np.eye(3)).max(axis=(-1, -2))
    known = np.isfinite(error) & (R != 0.0).any(axis=(-1, -2))
    valid = known & (error < MAX_ROTATION_ERROR)
    valid[valid] &= np.linalg.det(R[valid]) > 0.0
    out = np.full_like(R, np.nan)
    out[valid] = geometry.matrix_from_quat(geometry.quat_from_matrix(R[valid]))
    invalid = int((known & ~valid).sum())
    file.note_count(
        "rotations-wrong",
        invalid,
        "{} rotation matrices are no rotations: taken as not seen",
    )
    return out


def rotations_from_channels(
    values: Float[np.ndarray, "frame channel"],
    rotations: Sequence[Sequence[tuple[int, int]]],
    R_joint_file: Float[np.ndarray, "joint 3 3"],
) -> Float[np.ndarray, "frame joint 4"]:
    """Return the rotation of every joint as a product of rotations about axes.

    Args:
        values: Channels, angles in degrees.
        rotations: Channel and axis, 0 to 2, of each joint's rotations, in the order of
            the product.
        R_joint_file: Axes of the answer from those of the angles.
    """
    from marey.io.text.channel_kernel import compose_rotations  # numba loads slowly

    pairs = [pair for joint in rotations for pair in joint]
    columns, axes = np.array(pairs, dtype=np.int64).reshape(-1, 2).T.copy()
    first = np.cumsum([0, *(len(joint) for joint in rotations)])
    wxyz = np.empty((len(values), len(rotations), 4))
    compose_rotations(values, first, columns, axes, R_joint_file, wxyz)
    return wxyz


def hold_last_pose(
    motion: Motion,
) -> tuple[Float[np.ndarray, "frame 3"], Float[np.ndarray, "frame joint 4"]]:
    """Return root positions (m) and quaternions; gaps hold the last known value.

    Frames before the first known value hold the first known value. A root that is
    never known has its rest position, a joint that is never known does not rotate.
    """
    position = motion.T_world_root[:, :3, 3]
    rest = motion.skeleton.offset[0]
    identity = np.array([1.0, 0.0, 0.0, 0.0])
    return hold_last_or_default(position, rest), hold_last_or_default(
        motion.wxyz, identity
    )


def hold_last_or_default(values: np.ndarray, default: np.ndarray) -> np.ndarray:
    """Return values (frame, *item, component) in which gaps hold the last known one.

    Frames before the first known value hold that; an item that is never known has the
    default.
    """
    held = geometry.hold_last(values)
    return np.where(np.isfinite(held).all(axis=-1, keepdims=True), held, default)


def change_axes(
    wxyz: Float[np.ndarray, "frame joint 4"], R: Float[np.ndarray, "3 3"]
) -> Float[np.ndarray, "frame joint 4"]:
    r"""Return the rotations :math:`R\,q\,R^T`: the same rotations in other axes."""
    return np.concatenate([wxyz[..., :1], wxyz[..., 1:] @ R.T], axis=-1)


def euler_degrees(
    wxyz: Float[np.ndarray, "frame joint 4"], order: str
) -> Float[np.ndarray, "frame joint 3"]:
    """Return continuous Euler angles in degrees, rounded as they are written."""
    angles = geometry.euler_continuous(wxyz, order)
    return round_values(np.rad2deg(angles), ANGLE_DECIMALS)
