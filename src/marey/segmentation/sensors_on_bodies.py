"""Sensors and markers in one set of bodies: which sensor is rigid with which markers.

A 6-DoF sensor is a body already; markers become bodies by any other method. Where a
sensor and a body of markers move as one, they are one body: the sensor then gives it a
pose in frames that hide its markers, and a rotation where one or two markers leave it
open. A sensor that moves with no body of markers is a body of its own.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.anatomy import names as vrm
from marey.bodies import Bodies
from marey.numerics import Array, Float, Int, geometry
from marey.numerics.noise import trimmed_variance, white_difference
from marey.numerics.procrustes import fit_rigid, points_of_poses, poses_of_points
from marey.numerics.thresholds import (
    CERTAIN_SD,
    MARKER_NOISE_M,
    OUTLIER_SD,
    SKIN_MOTION_M,
)
from marey.report import Finding

DIFFERENCE_ORDER = 2
"""Order of the differences over time that separate white noise from motion."""

SKIN_LAYERS = 2.0
"""A sensor and a marker both move on the skin: largest relative motion of the two, as
a multiple of the motion of one. Higher attaches a sensor to a neighbour of its body."""

LIMB_PARTS = {*vrm.ARM, *vrm.LEG}


def attach_sensors(bodies: Bodies) -> Bodies:
    """Return bodies of markers together with the sensors of their take.

    A sensor is attached to the body of markers that moves least in the sensor's axes,
    if that motion is within the noise and what the skin allows (`skin_motion`). A body
    with the sensor's own name is preferred, and a sensor named after a part of a limb
    that has no markers is that part. Every other sensor is a body of its own.

    Args:
        bodies: Bodies made of markers; their take has sensors.
    """
    body_of = find_bodies_of_sensors(bodies, skin_motion(bodies))
    alone = np.flatnonzero(body_of < 0)
    n_bodies = len(bodies.names)
    bodies = _add_sensor_bodies(bodies, alone)
    body_of[alone] = n_bodies + np.arange(len(alone))
    finding = _kinds_finding(bodies, body_of, n_bodies)
    bodies = put_sensors_on(bodies, body_of)
    return replace(bodies, findings=(*bodies.findings, finding))


def put_sensors_on(bodies: Bodies, body_of: Int[Array, " sensor"]) -> Bodies:
    """Return bodies with the sensors of their take on given bodies.

    A body of one sensor and no markers has the pose of the sensor; any other with
    sensors has the rigid fit of all its markers and sensors, in which each sensor
    counts as four points (`marey.numerics.procrustes.fit_rigid`).

    Args:
        bodies: Bodies posed by their markers, if they have any.
        body_of: The body of each sensor of the take; -1 = none.
    """
    T = bodies.take.T_world_sensor
    for body in np.unique(body_of[body_of >= 0]).tolist():
        bodies = _pose_with_sensors(bodies, body, T[:, body_of == body])
    used = np.flatnonzero(body_of >= 0)
    return replace(
        bodies,
        sensor_names=tuple(bodies.take.sensor_names[sensor] for sensor in used),
        sensor_body=body_of[used],
        T_body_sensor=_sensor_offsets(bodies, used, body_of[used]),
    )


def _kinds_finding(
    bodies: Bodies, body_of: Int[Array, " sensor"], n_marked: int
) -> Finding:
    """Return how many markers and sensors are used, and how they share bodies.

    Args:
        bodies: The bodies of markers, then those of sensors alone.
        body_of: The body of each sensor.
        n_marked: Number of bodies of markers.
    """
    n_markers, n_shared = (
        int((bodies.marker_body >= 0).sum()),
        int(sum(body_of < n_marked)),
    )
    n_alone = len(body_of) - n_shared
    message = (
        f"{n_markers} markers and {len(body_of)} sensors are used: {n_shared} on the "
        f"bodies of markers, {n_alone} as bodies of their own"
    )
    return Finding("markers-and-sensors", "segment", "info", message)


def find_bodies_of_sensors(bodies: Bodies, skin: float) -> Int[Array, " sensor"]:
    """Return the body of markers that each sensor of the take is rigid with; -1 = none.

    See `attach_sensors`.

    Args:
        bodies: Bodies made of markers; their take has sensors.
        skin: How far a marker may move on its body, in metres.
    """
    motion = relative_motion(bodies)
    chosen = [
        _choose_body(name, bodies.names, row, skin)
        for name, row in zip(bodies.take.sensor_names, motion, strict=True)
    ]
    return np.array(chosen, dtype=np.int64)


def relative_motion(
    bodies: Bodies, *, subtract_noise: bool = True
) -> Float[Array, "sensor body"]:
    r"""Return how far the markers of each body move in the axes of each sensor.

    The root mean square distance of the markers :math:`y` from their means, without the
    part of white noise, in metres:

    .. math:: d^2 = \operatorname{mean}_{m \in b}
              \big(\operatorname{var}_t y_m - 3\,\sigma_m^2\big)

    NaN where a sensor and the markers of a body are never seen together.

    Args:
        bodies: Bodies made of markers; their take has sensors.
        subtract_noise: False leaves the noise in, for frames that are no sequence.
    """
    take = bodies.take
    is_on = bodies.marker_body == np.arange(len(bodies.names))[:, None]
    motion = np.full((len(take.sensor_names), len(is_on)), np.nan)
    for sensor, T in enumerate(np.moveaxis(take.T_world_sensor, 1, 0)):
        local = geometry.apply(geometry.inverse(T)[:, None], take.points)
        local = local[np.isfinite(local).any(axis=(1, 2))]
        square = _variance(local)
        if subtract_noise:
            square = np.maximum(square - white_variance(local), 0.0)
        for body, markers in enumerate(is_on):
            known = square[markers & np.isfinite(square)]
            if len(known):
                motion[sensor, body] = np.sqrt(known.mean())
    return motion


def _variance(local: Float[Array, "frame marker 3"]) -> Float[Array, " marker"]:
    """Return the variance of each marker, summed over the axes; NaN if never seen."""
    seen = np.isfinite(local).all(axis=-1)
    count = np.where(seen.any(axis=0), seen.sum(axis=0), np.nan)[:, None]
    mean = np.where(seen[..., None], local, 0.0).sum(axis=0) / count
    deviation = np.where(seen[..., None], local - mean, 0.0)
    return np.asarray(np.sum(np.sum(deviation**2, axis=0) / count, axis=-1))


def white_variance(local: Float[Array, "frame marker 3"]) -> Float[Array, " marker"]:
    """Return the white noise of each marker, summed over the axes, in square metres."""
    square = np.sum(white_difference(local, DIFFERENCE_ORDER) ** 2, axis=-1)
    variance = [trimmed_variance(one[np.isfinite(one)]) for one in square.T]
    return np.asarray(local.shape[-1] * np.array(variance))


def skin_motion(bodies: Bodies) -> float:
    """Return how far a marker may move on its body, in metres.

    Three times the median residual of the rigid fits, at most what skin does: the
    markers of a machine do not move at all.
    """
    rms = bodies.rms[bodies.determined & np.isfinite(bodies.rms)]
    usual = float(np.median(rms)) if len(rms) else SKIN_MOTION_M
    return float(np.clip(OUTLIER_SD * usual, MARKER_NOISE_M, SKIN_MOTION_M))


def _choose_body(
    sensor: str, names: Sequence[str], motion: Float[Array, " body"], skin: float
) -> int:
    """Return the body that a sensor is rigid with; -1 = none."""
    distance = np.where(np.isfinite(motion), motion, np.inf)
    bare = vrm.without_subject(sensor)
    same = [i for i, name in enumerate(names) if name == sensor] or [
        i for i, name in enumerate(names) if vrm.without_subject(name) == bare
    ]
    if same and distance[same].min() <= CERTAIN_SD * skin:
        return same[int(distance[same].argmin())]
    is_limb = vrm.side_of(bare) and vrm.without_side(bare) in LIMB_PARTS
    nearest = int(distance.argmin())
    is_rigid = distance[nearest] <= SKIN_LAYERS * skin
    return nearest if is_rigid and not (is_limb and not same) else -1


def _pose_with_sensors(
    bodies: Bodies, body: int, sensors: Float[Array, "frame sensor 4 4"]
) -> Bodies:
    """Return the bodies with one of them posed by its markers and its sensors."""
    markers = np.flatnonzero(bodies.marker_body == body)
    if sensors.shape[1] == 1 and not len(markers):
        T, determined = bodies.T_world_body.copy(), bodies.determined.copy()
        T[:, body], determined[body] = sensors[:, 0], True
        return replace(bodies, T_world_body=T, determined=determined)
    points = np.concatenate(
        [
            bodies.take.points[:, markers],
            points_of_poses(sensors).reshape(len(sensors), -1, 3),
        ],
        axis=1,
    )
    fit = fit_rigid(points)
    offset, T = bodies.marker_offset.copy(), bodies.T_world_body.copy()
    determined, rms = bodies.determined.copy(), bodies.rms.copy()
    offset[markers] = fit.offset[: len(markers)]
    T[:, body], determined[body], rms[body] = fit.T_world_body, fit.determined, fit.rms
    return replace(
        bodies, T_world_body=T, marker_offset=offset, determined=determined, rms=rms
    )


def _add_sensor_bodies(bodies: Bodies, sensors: Int[Array, " sensor"]) -> Bodies:
    """Return the bodies with some sensors of the take as bodies of their own."""
    if not len(sensors):
        return bodies
    take, n = bodies.take, len(sensors)
    names = list(bodies.names)
    for sensor in sensors.tolist():
        name = take.sensor_names[sensor]
        names.append(name if name not in names else f"{name} sensor")
    return replace(
        bodies,
        names=tuple(names),
        T_world_body=np.concatenate(
            [bodies.T_world_body, take.T_world_sensor[:, sensors]], axis=1
        ),
        determined=np.append(bodies.determined, np.ones(n, dtype=bool)),
        shared=np.pad(bodies.shared, ((0, 0), (0, n))),
        body_confidence=np.append(bodies.body_confidence, np.ones(n)),
        rms=np.append(bodies.rms, np.full(n, np.nan)),
    )


def _sensor_offsets(
    bodies: Bodies, sensors: Int[Array, " some"], body_of: Int[Array, " some"]
) -> Float[Array, "some 4 4"]:
    """Return the pose of some sensors of the take in their bodies, from mean points.

    A sensor that is a body by itself has the axes of the body exactly.
    """
    T_world_body = bodies.T_world_body[:, body_of]
    T_world_sensor = bodies.take.T_world_sensor[:, sensors]
    points = points_of_poses(geometry.inverse(T_world_body) @ T_world_sensor)
    seen = np.isfinite(points)
    total = np.where(seen, points, 0.0).sum(axis=0)
    T = poses_of_points(total / np.maximum(seen.sum(axis=0), 1))
    is_alone = ~np.isin(body_of, bodies.marker_body)
    is_alone &= np.bincount(body_of, minlength=len(bodies.names))[body_of] == 1
    T[is_alone] = np.eye(4)
    return T
