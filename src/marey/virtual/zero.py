"""How sensors sit on the bones, from a frame in which the pose is known."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey.errors import DataError
from marey.numerics import geometry
from marey.skeleton import Skeleton

Array = np.ndarray

# Sensors this near to one upright line, in metres, do not tell where a person faces.
NARROW = 0.05


def zeroed(
    skeleton: Skeleton,
    T_world_sensor: Float[Array, "frame sensor 4 4"],
    *,
    heading: float | None = None,
    measured: bool = True,
) -> Skeleton:
    """Return the skeleton with its sensors' offsets set by a zero pose.

    Implements Bodenheimer1997, Sec. 2.2: the performer stands as the skeleton does at
    rest, and one keyframe tells how every sensor is turned on its bone (its "null
    model"). Places on the bones are measured by hand, or estimated from the same
    frame. Departure: performers may stand anywhere and face anywhere, since the places
    of all sensors together tell where; and several frames are averaged.

    Args:
        skeleton: At rest as the performer stands; its sensors' places on the bones are
            those measured, their rotations are not read.
        T_world_sensor: The skeleton's sensors, in its order, in one or more frames of
            the zero pose; NaN where unseen.
        heading: Where the performer faces, in radians from +x about z; found when left
            out.
        measured: Whether the places that the skeleton has are kept; else they are
            those of the zero pose, as if sensors lay evenly all around the bones.

    Raises:
        DataError: If a sensor is not seen in any of the frames, or the places do not
            tell the heading.
    """
    if T_world_sensor.shape[1] != len(skeleton.sensor_names):
        raise DataError(
            "zero pose",
            found=f"{T_world_sensor.shape[1]} sensors",
            needed=f"{len(skeleton.sensor_names)}, as the skeleton has",
        )
    T = _averaged(skeleton, T_world_sensor)
    rest = skeleton.rest()[skeleton.sensor_joint, :3, 3]
    place = skeleton.T_joint_sensor[:, :3, 3]
    at_rest = rest + (place if measured else 0.0)
    turn = _heading(at_rest, T[:, :3, 3]) if heading is None else heading
    R_rest_world = geometry.rotation_exp(np.array([0.0, 0.0, -turn]))
    seen = T[:, :3, 3] @ R_rest_world.T
    if not measured:
        # Where the performer stands is the mean of all; the ground is where it is.
        place = seen - rest - np.mean(seen - rest, axis=0) * [1.0, 1.0, 0.0]
    return replace(
        skeleton, T_joint_sensor=geometry.transform(R_rest_world @ T[:, :3, :3], place)
    )


def _averaged(
    skeleton: Skeleton, T: Float[Array, "frame sensor 4 4"]
) -> Float[Array, "sensor 4 4"]:
    """Return the mean pose of every sensor."""
    seen = np.isfinite(T).all(axis=(-1, -2))
    lost = [skeleton.sensor_names[k] for k in np.flatnonzero(~seen.any(axis=0))]
    if lost:
        raise DataError(
            "zero pose", found=f"unseen {', '.join(lost)}", needed="every sensor"
        )
    known = np.where(seen[..., None, None], T, 0.0)
    mean = known.sum(axis=0) / seen.sum(axis=0)[:, None, None]
    return geometry.transform(
        geometry.nearest_rotation(mean[:, :3, :3]), mean[:, :3, 3]
    )


def _heading(rest: Float[Array, "sensor 3"], seen: Float[Array, "sensor 3"]) -> float:
    """Return the turn about z that brings places at rest nearest to those seen."""
    a, b = ((p - p.mean(axis=0))[:, :2] for p in (rest, seen))
    if np.sqrt(np.mean(np.sum(a**2, axis=1))) < NARROW:
        raise DataError(
            "zero pose",
            found="sensors above each other",
            needed="sensors to the sides, or the heading",
        )
    sine = np.sum(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
    return float(np.arctan2(sine, np.sum(a * b)))
