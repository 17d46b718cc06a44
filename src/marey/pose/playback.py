"""Poses by playback of the sensors' rotations through the fitted skeleton."""

from typing import Any

import numpy as np

from marey.errors import DataError
from marey.motion import ROTATION_ROUNDING, Motion, motion_on_clock
from marey.numerics import Array, Float, geometry
from marey.numerics.robust import mean_where
from marey.options import options_from
from marey.pose.findings import warn_of_runs
from marey.pose.options import PlaybackOptions
from marey.pose.retarget import local_rotations
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take

UNSEEN_MESSAGE = "no sensor is seen in {frames}: there is no pose"


def solve(
    skeleton: Skeleton, take: Take, **options: Any
) -> tuple[Motion, tuple[Finding, ...]]:
    """Return the motion in which every bone rotates as its sensor did.

    Implements OBrien2000, Sec. 3.4: only rotations are taken from the sensors,
    positions follow from the skeleton, so that joints stay together. Departure: the
    root is where the sensors' positions agree best in the least-squares sense, not
    where its own sensor alone puts it; the error of one sensor is then spread.

    A joint without a visible sensor keeps its last rotation. A frame without any
    visible sensor is NaN.

    Args:
        skeleton: A skeleton with sensors.
        take: The recording; sensors are matched by name.
        **options: Fields of `PlaybackOptions`, of which there are none.

    Raises:
        DataError: If the take holds none of the skeleton's sensors.
        OptionError: If an option is given.
    """
    options_from(PlaybackOptions, options)
    sensors = [i for i, n in enumerate(skeleton.sensor_names) if n in take.sensor_names]
    if not sensors:
        raise DataError(
            "playback",
            found=f"sensors {', '.join(take.sensor_names) or 'none'}",
            needed=f"some of {', '.join(skeleton.sensor_names) or 'the skeleton'}",
        )
    columns = [take.sensor_names.index(skeleton.sensor_names[i]) for i in sensors]
    T_world_sensor = take.T_world_sensor[:, columns]
    joint = skeleton.sensor_joint[sensors]
    T_joint_sensor = skeleton.T_joint_sensor[sensors]
    R_world_joint = _joint_rotations(skeleton, T_world_sensor, joint, T_joint_sensor)
    has_rotation = np.ones(skeleton.n_joints, dtype=bool)
    wxyz = local_rotations(skeleton, R_world_joint, has_rotation)
    T_world_root = geometry.transform(R_world_joint[:, 0], np.zeros(3))
    T = skeleton.forward(T_world_root, wxyz)
    residual = T_world_sensor[..., :3, 3] - (T[:, joint] @ T_joint_sensor)[..., :3, 3]
    is_visible = np.isfinite(residual).all(axis=-1, keepdims=True)
    T_world_root[:, :3, 3] = mean_where(residual, is_visible, axis=1)
    T_world_root[~np.isfinite(T_world_root).all(axis=(-1, -2))] = np.nan
    motion = motion_on_clock(take, skeleton, T_world_root, wxyz)
    unseen = np.isnan(T_world_root).any(axis=(1, 2))
    return motion, tuple(warn_of_runs("pose-unseen", unseen, UNSEEN_MESSAGE))


def _joint_rotations(
    skeleton: Skeleton,
    T_world_sensor: Float[Array, "frame sensor 4 4"],
    joint: Array,
    T_joint_sensor: Float[Array, "sensor 4 4"],
) -> Float[Array, "frame joint 3 3"]:
    """Return R_world_joint; a joint without a sensor rotates with its parent.

    If a bone has several sensors, the mean of those that are seen counts.
    """
    R = np.empty((len(T_world_sensor), skeleton.n_joints, 3, 3))
    R_sensor_joint = T_joint_sensor[:, :3, :3].swapaxes(1, 2)
    R_by_sensor = T_world_sensor[..., :3, :3] @ R_sensor_joint
    for j, parent in enumerate(skeleton.parent):
        on_bone = np.flatnonzero(joint == j)
        if len(on_bone):
            R_world_joint = R_by_sensor[:, on_bone[0]]
            if len(on_bone) > 1:
                seen = np.isfinite(R_by_sensor[:, on_bone])
                mean = mean_where(R_by_sensor[:, on_bone], seen, axis=1)
                R_world_joint = geometry.nearest_rotation(mean)
            R[:, j] = _orthonormal(_fill_unseen(R_world_joint))
        else:
            R[:, j] = R[:, parent] if parent >= 0 else np.eye(3)
    return R


def _fill_unseen(R: Float[Array, "frame 3 3"]) -> Float[Array, "frame 3 3"]:
    """Return rotations with unseen frames filled by the last one seen, or the first."""
    filled = geometry.hold_last(R)
    return np.where(np.isfinite(filled), filled, np.eye(3))


def _orthonormal(R: Float[Array, "frame 3 3"]) -> Float[Array, "frame 3 3"]:
    """Return the nearest rotations of matrices with few digits; others as they are."""
    deviation = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(initial=0.0)
    return geometry.nearest_rotation(R) if deviation > ROTATION_ROUNDING else R
