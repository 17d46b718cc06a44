"""Two bodies and the joint between them, and the least error anyone could make."""

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.numerics import geometry
from marey.segmentation import segment
from marey.take import Take

Array = np.ndarray

CENTER_A = np.array([0.03, -0.12, 0.05])
CENTER_B = np.array([-0.08, 0.04, 0.20])
"""A joint 13 cm from the origin of one body and 22 cm from that of the other."""

TILT = np.array([0.4, 0.9, -0.2])
"""How the bodies stand to each other when the joint is at rest: a rotation vector."""

SINES = 6


def smooth(
    rng: np.random.Generator,
    n_frames: int,
    n: int,
    rate: float = 60.0,
    hertz: float = 1.0,
) -> Float[Array, "frame curve"]:
    """Return smooth curves of mean square one: six sines of 0.1 Hz up to `hertz`."""
    times = np.arange(n_frames)[:, None, None] / rate
    f = rng.uniform(0.1, hertz, (SINES, n))
    phase = rng.uniform(0.0, 2.0 * np.pi, (SINES, n))
    sines = np.sin(2.0 * np.pi * f * times + phase)
    curve = np.sum(rng.normal(size=(SINES, n)) * sines, axis=1)
    return np.asarray(curve / curve.std(axis=0))


def swinging(
    rng: np.random.Generator, n_frames: int, swing: Float[Array, " 3"]
) -> Float[Array, "frame 3 3"]:
    """Return R_b_a of a ball joint that swings by some radians rms about each axis."""
    angles = swing * smooth(rng, n_frames, 3)
    return np.asarray(geometry.rotation_exp(angles) @ geometry.rotation_exp(TILT))


def joined(
    rng: np.random.Generator,
    R_b_a: Float[Array, "frame 3 3"],
    center_a: Float[Array, " 3"] = CENTER_A,
    center_b: Float[Array, " 3"] = CENTER_B,
) -> Float[Array, "frame 2 4 4"]:
    """Return T_world_body of two bodies held together, the second one wandering."""
    n = len(R_b_a)
    R_b, t_b = geometry.rotation_exp(smooth(rng, n, 3)), 0.5 * smooth(rng, n, 3)
    R_a = R_b @ R_b_a
    t_a = t_b + R_b @ center_b - R_a @ center_a
    poses = [geometry.transform(R_a, t_a), geometry.transform(R_b, t_b)]
    return np.stack(poses, axis=1)


def shaken(
    rng: np.random.Generator,
    T: Float[Array, "frame body 4 4"],
    noise: float = 1e-3,
    turn_noise: float = 0.01,
) -> Float[Array, "frame body 4 4"]:
    """Return poses with white noise, the turns about the bodies' own axes."""
    T = T.copy()
    T[..., :3, 3] += noise * rng.normal(size=(*T.shape[:2], 3))
    turn = geometry.rotation_exp(turn_noise * rng.normal(size=(*T.shape[:2], 3)))
    T[..., :3, :3] = T[..., :3, :3] @ turn
    return T


def as_sensors(
    T_world_body: Float[Array, "frame body 4 4"], rate: float = 60.0
) -> Bodies:
    """Return bodies that are 6-DoF sensors."""
    names = tuple(f"body{i}" for i in range(T_world_body.shape[1]))
    take = Take(rate=rate, T_world_sensor=T_world_body, sensor_names=names)
    return segment(take)


def as_markers(
    rng: np.random.Generator,
    T_world_body: Float[Array, "frame body 4 4"],
    places: Float[Array, "body marker 3"],
    noise: float,
    rate: float = 60.0,
) -> Bodies:
    """Return bodies posed by noisy markers whose places on them are known.

    Args:
        rng: Draws the noise.
        T_world_body: The true poses.
        places: Markers of each body, in its coordinates, in metres.
        noise: Standard deviation per axis of a marker, in metres.
        rate: Frames per second.
    """
    n_bodies, n_markers = places.shape[:2]
    points = geometry.apply(T_world_body[:, :, None], places)
    points = points + noise * rng.normal(size=points.shape)
    T = geometry.kabsch(places, points)
    off = np.linalg.norm(geometry.apply(T[:, :, None], places) - points, axis=-1)
    body = np.repeat(np.arange(n_bodies), n_markers)
    take = Take(
        rate=rate,
        points=points.reshape(len(points), -1, 3),
        labels=tuple(f"m{i}" for i in range(len(body))),
    )
    return Bodies(
        take=take,
        names=tuple(f"body{i}" for i in range(n_bodies)),
        T_world_body=T,
        determined=np.ones(n_bodies, dtype=bool),
        marker_body=body,
        shared=body[:, None] == np.arange(n_bodies),
        marker_confidence=np.ones(len(body)),
        body_confidence=np.ones(n_bodies),
        marker_offset=places.reshape(-1, 3),
        rms=np.sqrt(np.mean(off**2, axis=(0, 2))),
    )


def bound_of_sensors(
    T_world_body: Float[Array, "frame 2 4 4"],
    noise: float,
    turn_noise: float,
    center_a: Float[Array, " 3"] = CENTER_A,
    center_b: Float[Array, " 3"] = CENTER_B,
) -> Float[Array, "6 6"]:
    """Return the Cramer-Rao bound: the least covariance of (center_a, center_b)."""
    turn = np.tile(turn_noise**2 * np.eye(3), (2, 1, 1))
    arms = np.stack([center_a, center_b])
    return _bound(T_world_body, arms, turn, np.full(2, noise**2))


def bound_of_markers(
    T_world_body: Float[Array, "frame 2 4 4"],
    places: Float[Array, "2 marker 3"],
    centers: Float[Array, "2 3"],
    noise: float,
) -> Float[Array, "6 6"]:
    """Return the same for bodies posed by markers: a rigid fit about their centroid."""
    middle = places.mean(axis=1)
    arm = places - middle[:, None]
    square = np.sum(arm**2, axis=(1, 2))[:, None, None]
    inertia = square * np.eye(3) - np.swapaxes(arm, 1, 2) @ arm
    turn = noise**2 * np.linalg.inv(inertia)
    shift = np.full(2, noise**2 / places.shape[1])
    return _bound(T_world_body, centers - middle, turn, shift)


def _bound(T_world_body: Array, arms: Array, turn: Array, shift: Array) -> Array:
    """Return the bound for centres `arms` away from where turn and shift are known."""
    R = T_world_body[..., :3, :3]
    lever = R @ geometry.hat(arms)
    S = np.sum(lever @ turn @ np.swapaxes(lever, -1, -2), axis=1)
    S = S + shift.sum() * np.eye(3)
    A = np.concatenate([R[:, 0], -R[:, 1]], axis=-1)
    information = np.sum(np.swapaxes(A, 1, 2) @ np.linalg.inv(S) @ A, axis=0)
    return np.asarray(np.linalg.inv(information))
