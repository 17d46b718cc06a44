"""Bodies with a known joint, moving smoothly, seen by markers or sensors."""

from dataclasses import replace

import numpy as np

import marey
from marey import geometry

CENTER_A = np.array([0.03, -0.12, 0.05])
CENTER_B = np.array([-0.08, 0.04, 0.20])
TILT = np.array([0.4, 0.9, -0.2])

# Five markers on each body, none of them at its origin.
MARKERS = 0.07 * np.array(
    [[1, 0.2, 0], [-0.4, 1, 0.1], [0, -0.3, 1], [-0.8, -0.7, 0.2], [0.3, 0.6, -0.9]]
)


def waves(rng, n_frames, n, rate=60.0, hertz=1.0):
    """Smooth curves of mean square one: six sines each."""
    times = np.arange(n_frames)[:, None, None] / rate
    f, phase = rng.uniform(0.1, hertz, (6, n)), rng.uniform(0, 2 * np.pi, (6, n))
    curve = np.sum(rng.normal(size=(6, n)) * np.sin(2 * np.pi * f * times + phase), 1)
    return curve / curve.std(axis=0)


def turns(rng, n_frames, swing, kind="ball"):
    """R_b_a of a joint that swings by some radians rms; also its axis in b."""
    if kind == "still":
        return np.tile(geometry.rotation_exp(TILT), (n_frames, 1, 1)), None
    angles = swing * waves(rng, n_frames, 3)
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    if kind == "hinge":
        angles = angles[:, :1] * axis
    return geometry.rotation_exp(angles) @ geometry.rotation_exp(TILT), axis


def pair_poses(rng, R_b_a):
    """T_world_body of two bodies, the centre of one held to the centre of the other."""
    n = len(R_b_a)
    R_b, t_b = geometry.rotation_exp(waves(rng, n, 3)), 0.5 * waves(rng, n, 3)
    R_a = R_b @ R_b_a
    t_a = t_b + R_b @ CENTER_B - R_a @ CENTER_A
    poses = [geometry.transform(R_a, t_a), geometry.transform(R_b, t_b)]
    return np.stack(poses, axis=1)


def jointed(rng, n_frames=240, swing=0.4, kind="ball"):
    """Poses of a joined pair."""
    return pair_poses(rng, turns(rng, n_frames, swing, kind)[0])


def shaken(rng, T, noise=1e-3, turn_noise=0.01):
    """Poses with white noise, the turns about the bodies' own axes."""
    T = T.copy()
    T[..., :3, 3] += noise * rng.normal(size=(*T.shape[:2], 3))
    turn = geometry.rotation_exp(turn_noise * rng.normal(size=(*T.shape[:2], 3)))
    T[..., :3, :3] = T[..., :3, :3] @ turn
    return T


def sensor_bodies(T_world_body, rate=60.0):
    """Bodies worn as 6-DoF sensors."""
    names = tuple(f"body{i}" for i in range(T_world_body.shape[1]))
    take = marey.Take(rate=rate, T_world_sensor=T_world_body, sensor_names=names)
    return marey.segment(take)


def marker_bodies(T_world_body, rng=None, noise=0.0, rate=60.0):
    """Bodies of five markers each, their poses fitted to the markers."""
    n_frames, n_bodies = T_world_body.shape[:2]
    points = geometry.apply(T_world_body[:, :, None], MARKERS)
    if noise:
        points = points + noise * rng.normal(size=points.shape)
        T_world_body = geometry.kabsch(MARKERS, points)
    count = n_bodies * len(MARKERS)
    off = np.linalg.norm(
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
        rms=np.sqrt(np.nanmean(off**2, axis=(0, 2))),
    )


def with_frames(bodies, frames):
    """The same bodies in some frames, in the order given."""
    take = bodies.take
    part = replace(
        take,
        points=take.points[frames],
        filled=take.filled[frames],
        T_world_sensor=take.T_world_sensor[frames],
    )
    return replace(bodies, take=part, T_world_body=bodies.T_world_body[frames])


def hidden(bodies, lost):
    """The same bodies, unseen where `lost` (frame, body) says so."""
    points = bodies.take.points.copy()
    worn = lost[:, bodies.marker_body] if points.shape[1] else lost[:, :0]
    points[worn] = np.nan
    T = bodies.T_world_body.copy()
    T[lost] = np.nan
    take = replace(bodies.take, points=points)
    return replace(bodies, take=take, T_world_body=T)


def moved(bodies, T_new_world):
    """The same bodies in another world."""
    take = replace(bodies.take, points=geometry.apply(T_new_world, bodies.take.points))
    return replace(bodies, take=take, T_world_body=T_new_world @ bodies.T_world_body)


def swapped(bodies):
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


def bound(T_world_body, noise, turn_noise):
    """Cramer-Rao bound: least covariance of (center_a, center_b) of sensors."""
    R_a, R_b = T_world_body[:, 0, :3, :3], T_world_body[:, 1, :3, :3]
    B_a, B_b = geometry.hat(R_a @ CENTER_A), geometry.hat(R_b @ CENTER_B)
    S = turn_noise**2 * (B_a @ B_a.mT + B_b @ B_b.mT) + 2 * noise**2 * np.eye(3)
    A = np.concatenate([R_a, -R_b], axis=-1)
    return np.linalg.inv(np.sum(A.mT @ np.linalg.inv(S) @ A, axis=0))
