"""Poses by playback of the sensors' rotations through the fitted skeleton."""

from typing import Any

import numpy as np

from marey.errors import DataError
from marey.motion import ROTATION_ROUNDING, Motion
from marey.numerics import Array, Float, geometry
from marey.options import options_from
from marey.pose.findings import warn_of_runs
from marey.pose.options import PlaybackOptions
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
    wxyz = _relative_rotations(skeleton, R_world_joint)
    T_world_root = geometry.transform(R_world_joint[:, 0], np.zeros(3))
    T = skeleton.forward(T_world_root, wxyz)
    residual = T_world_sensor[..., :3, 3] - (T[:, joint] @ T_joint_sensor)[..., :3, 3]
    T_world_root[:, :3, 3] = _mean_of_visible(residual)
    T_world_root[~np.isfinite(T_world_root).all(axis=(-1, -2))] = np.nan
    motion = Motion(
        skeleton=skeleton,
        T_world_root=T_world_root,
        wxyz=wxyz,
        rate=take.rate,
        start=take.start,
    )
    unseen = np.isnan(T_world_root).any(axis=(1, 2))
    return motion, tuple(warn_of_runs("pose-unseen", unseen, UNSEEN_MESSAGE))


def _mean_of_visible(
    residual: Float[Array, "frame sensor 3"],
) -> Float[Array, "frame 3"]:
    """Return the mean over the visible sensors of each frame; NaN without any."""
    visible = np.isfinite(residual).all(axis=-1)[..., None]
    total = np.where(visible, residual, 0.0).sum(axis=1)
    count = visible.sum(axis=1)
    mean = np.full_like(total, np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return np.asarray(mean)


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
                R_world_joint = _mean_rotations(R_by_sensor[:, on_bone])
            R[:, j] = _orthonormal(_fill_unseen(R_world_joint))
        else:
            R[:, j] = R[:, parent] if parent >= 0 else np.eye(3)
    return R


def _mean_rotations(R: Float[Array, "frame sensor 3 3"]) -> Float[Array, "frame 3 3"]:
    """Return the mean of the rotations seen in each frame; NaN where there is none."""
    seen = np.isfinite(R).all(axis=(-1, -2))
    mean = np.full((len(R), 3, 3), np.nan)
    total = np.where(seen[..., None, None], R, 0.0).sum(axis=1)
    any_seen = seen.any(axis=1)
    mean[any_seen] = geometry.nearest_rotation(total[any_seen])
    return mean


def _fill_unseen(R: Float[Array, "frame 3 3"]) -> Float[Array, "frame 3 3"]:
    """Return rotations with unseen frames filled by the last one seen, or the first."""
    seen = np.flatnonzero(np.isfinite(R).all(axis=(-1, -2)))
    if len(seen) == 0:
        return np.broadcast_to(np.eye(3), R.shape).copy()
    last = np.searchsorted(seen, np.arange(len(R)), side="right") - 1
    return np.asarray(R[seen[np.maximum(last, 0)]])


def _orthonormal(R: Float[Array, "frame 3 3"]) -> Float[Array, "frame 3 3"]:
    """Return the nearest rotations of matrices with few digits; others as they are."""
    deviation = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(initial=0.0)
    return geometry.nearest_rotation(R) if deviation > ROTATION_ROUNDING else R


def _relative_rotations(
    skeleton: Skeleton, R_world_joint: Float[Array, "frame joint 3 3"]
) -> Float[Array, "frame joint 4"]:
    """Return R_parent_joint as sign-continuous quaternions."""
    R = R_world_joint.copy()
    R[:, 1:] = (
        R_world_joint[:, skeleton.parent[1:]].swapaxes(-1, -2) @ R_world_joint[:, 1:]
    )
    return geometry.quat_continuous(geometry.quat_from_matrix(R))
