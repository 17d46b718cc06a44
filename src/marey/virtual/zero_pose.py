"""Sensor-to-bone calibration from frames in which the pose is known (zero pose)."""

from dataclasses import replace

import numpy as np

from marey.errors import DataError
from marey.numerics import Array, Float, geometry
from marey.numerics.robust import mean_where
from marey.numerics.thresholds import CERTAIN_SD, SKIN_MOTION_M
from marey.skeleton import Skeleton

MIN_HORIZONTAL_SPREAD_M = CERTAIN_SD * SKIN_MOTION_M
"""Least rms distance of the sensors from their vertical centre line, in metres, from
which the heading can be estimated. Higher refuses more."""


def calibrate_sensors(
    skeleton: Skeleton,
    T_world_sensor: Float[Array, "frame sensor 4 4"],
    *,
    heading: float | None = None,
    measured: bool = True,
) -> Skeleton:
    """Return the skeleton with the sensor offsets of a zero pose.

    Implements Bodenheimer1997, Sec. 2.2: the performer stands in the rest pose of the
    skeleton, and one keyframe determines the rotation of every sensor on its bone (the
    paper's "null model"). Positions on the bones are measured by hand, or estimated
    from the same frame. Departure: performers may stand anywhere and face anywhere,
    since the positions of all sensors together determine it; and several frames are
    averaged.

    Args:
        skeleton: Its rest pose is the performer's; its sensors' positions on the bones
            are those measured, their rotations are not read.
        T_world_sensor: The skeleton's sensors, in its order, in one or more frames of
            the zero pose; NaN where unseen.
        heading: Direction that the performer faces, in radians from +x about z;
            estimated when left out.
        measured: Whether the positions of the skeleton are kept; otherwise they are
            those of the zero pose, as if sensors lay evenly around the bones.

    Raises:
        DataError: If a sensor is not seen in any of the frames, or the positions do
            not determine the heading.
    """
    if T_world_sensor.shape[1] != len(skeleton.sensor_names):
        raise DataError(
            "zero pose",
            found=f"{T_world_sensor.shape[1]} sensors",
            needed=f"{len(skeleton.sensor_names)}, as the skeleton has",
        )
    T = _mean_poses(skeleton, T_world_sensor)
    joint_position = skeleton.rest()[skeleton.sensor_joint, :3, 3]
    offset = skeleton.T_joint_sensor[:, :3, 3]
    if heading is None:
        rest = joint_position + (offset if measured else 0.0)
        heading = _estimate_heading(rest, T[:, :3, 3])
    R_rest_world = geometry.rotation_exp(np.array([0.0, 0.0, -heading]))
    if not measured:
        offset = T[:, :3, 3] @ R_rest_world.T - joint_position
        # The performer stands at the mean of all offsets, on the given ground.
        offset = offset - np.mean(offset, axis=0) * [1.0, 1.0, 0.0]
    return replace(
        skeleton, T_joint_sensor=geometry.transform(R_rest_world @ T[:, :3, :3], offset)
    )


def _mean_poses(
    skeleton: Skeleton, T: Float[Array, "frame sensor 4 4"]
) -> Float[Array, "sensor 4 4"]:
    """Return the mean pose of every sensor over the frames in which it is seen."""
    seen = np.isfinite(T).all(axis=(-1, -2))
    unseen = [skeleton.sensor_names[k] for k in np.flatnonzero(~seen.any(axis=0))]
    if unseen:
        raise DataError(
            "zero pose", found=f"unseen {', '.join(unseen)}", needed="every sensor"
        )
    mean = mean_where(T, seen[..., None, None])
    return geometry.transform(
        geometry.nearest_rotation(mean[:, :3, :3]), mean[:, :3, 3]
    )


def _estimate_heading(
    rest: Float[Array, "sensor 3"], seen: Float[Array, "sensor 3"]
) -> float:
    """Return the rotation about z, in radians, from rest positions to those seen.

    The planar Procrustes solution: the angle of the summed cross and dot products.
    """
    a, b = ((p - p.mean(axis=0))[:, :2] for p in (rest, seen))
    if np.sqrt(np.mean(np.sum(a**2, axis=1))) < MIN_HORIZONTAL_SPREAD_M:
        raise DataError(
            "zero pose",
            found="sensors above each other",
            needed="sensors to the sides, or the heading",
        )
    sine = np.sum(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
    return float(np.arctan2(sine, np.sum(a * b)))
