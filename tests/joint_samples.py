"""Bodies with a known joint and smooth motion, recorded by markers or sensors."""

from dataclasses import replace

import numpy as np
from scipy.signal import lfilter

import marey
from marey.numerics import geometry
from marey.papers import joint_samples

CENTER_A, CENTER_B, TILT = (
    joint_samples.CENTER_A,
    joint_samples.CENTER_B,
    joint_samples.REST_ROTATION,
)
smooth_signals, pair_poses, add_noise = (
    joint_samples.smooth_curves,
    joint_samples.poses_of_joined_bodies,
    joint_samples.add_pose_noise,
)
sensor_bodies, cramer_rao_bound = (
    joint_samples.bodies_from_sensors,
    joint_samples.cramer_rao_bound_of_sensors,
)

# Five markers on each body, none of them at its origin.
MARKERS = 0.07 * np.array(
    [[1, 0.2, 0], [-0.4, 1, 0.1], [0, -0.3, 1], [-0.8, -0.7, 0.2], [0.3, 0.6, -0.9]]
)


def relative_rotations(rng, n_frames, swing, kind="ball"):
    """R_b_a of a joint that rotates by `swing` radians rms, and its axis in b."""
    if kind == "still":
        return np.tile(geometry.rotation_exp(TILT), (n_frames, 1, 1)), None
    angles = swing * smooth_signals(rng, n_frames, 3)
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    if kind == "hinge":
        angles = angles[:, :1] * axis
    return geometry.rotation_exp(angles) @ geometry.rotation_exp(TILT), axis


def autoregressive(rng, correlation, shape):
    """Noise of unit variance, with this correlation of neighbours along axis 0."""
    gain = np.sqrt(1.0 - correlation**2)
    white = rng.normal(size=(shape[0] + 100, *shape[1:]))
    return lfilter([gain], [1.0, -correlation], white, axis=0)[100:]


def add_correlated_noise(rng, T, correlation, noise=1e-3, turn_noise=0.01):
    """Poses with first-order autoregressive noise of positions and rotations."""
    w = autoregressive(rng, correlation, (*T.shape[:2], 6))
    T = T.copy()
    T[..., :3, 3] += noise * w[..., :3]
    T[..., :3, :3] @= geometry.rotation_exp(turn_noise * w[..., 3:])
    return T


def joined_poses(rng, n_frames=240, swing=0.4, kind="ball"):
    """Poses of two bodies with a joint between them."""
    return pair_poses(rng, relative_rotations(rng, n_frames, swing, kind)[0])


def marker_bodies(T_world_body, rng=None, noise=0.0, rate=60.0):
    """Bodies of five markers each, with poses fitted to the markers."""
    n_frames, n_bodies = T_world_body.shape[:2]
    points = geometry.apply(T_world_body[:, :, None], MARKERS)
    if noise:
        points = points + noise * rng.normal(size=points.shape)
        T_world_body = geometry.kabsch(MARKERS, points)
    count = n_bodies * len(MARKERS)
    error = np.linalg.norm(
        geometry.apply(T_world_body[:, :, None], MARKERS) - points, axis=-1
    )
    body = np.repeat(np.arange(n_bodies), len(MARKERS))
    take = marey.Take(
        rate=rate,
        points=points.reshape(n_frames, count, 3),
        labels=tuple(f"m{i}" for i in range(count)),
    )
    return marey.Bodies(
        take=take,
        names=tuple(f"body{i}" for i in range(n_bodies)),
        T_world_body=T_world_body,
        determined=np.ones(n_bodies, dtype=bool),
        marker_body=body,
        shared=body[:, None] == np.arange(n_bodies),
        marker_confidence=np.ones(count),
        body_confidence=np.ones(n_bodies),
        marker_offset=np.tile(MARKERS, (n_bodies, 1)),
        rms=np.sqrt(np.nanmean(error**2, axis=(0, 2))),
    )


def select_frames(bodies, frames):
    """The same bodies in some frames, in the given order."""
    take = bodies.take
    part = replace(
        take,
        points=take.points[frames],
        filled=take.filled[frames],
        T_world_sensor=take.T_world_sensor[frames],
    )
    return replace(bodies, take=part, T_world_body=bodies.T_world_body[frames])


def occlude(bodies, occluded):
    """The same bodies, NaN where `occluded` (frame, body) is True."""
    points = bodies.take.points.copy()
    markers = occluded[:, bodies.marker_body] if points.shape[1] else occluded[:, :0]
    points[markers] = np.nan
    T = bodies.T_world_body.copy()
    T[occluded] = np.nan
    take = replace(bodies.take, points=points)
    return replace(bodies, take=take, T_world_body=T)


def move_world(bodies, T_new_world):
    """The same bodies in another world frame."""
    take = replace(bodies.take, points=geometry.apply(T_new_world, bodies.take.points))
    return replace(bodies, take=take, T_world_body=T_new_world @ bodies.T_world_body)


def reverse_bodies(bodies):
    """The same bodies in the opposite order."""
    n = len(bodies.names)
    return replace(
        bodies,
        names=bodies.names[::-1],
        T_world_body=bodies.T_world_body[:, ::-1],
        marker_body=n - 1 - bodies.marker_body,
        shared=bodies.shared[:, ::-1],
        rms=bodies.rms[::-1],
    )
