"""Rotation matrices."""

import numpy as np

Array = np.ndarray


def about(axis: int, angle: Array) -> Array:
    """Return rotations about x, y or z, (..., 3, 3)."""
    c, s = np.cos(angle), np.sin(angle)
    first, second = (axis + 1) % 3, (axis + 2) % 3
    R = np.zeros((*np.shape(angle), 3, 3))
    R[..., axis, axis] = 1.0
    R[..., first, first] = R[..., second, second] = c
    R[..., first, second], R[..., second, first] = -s, s
    return R


def turn(angles: Array) -> Array:
    """Return rotations about z, then y, then x of the moving frame."""
    x, y, z = np.moveaxis(angles, -1, 0)
    return np.asarray(about(2, z) @ about(1, y) @ about(0, x))


def random_rotation(rng: np.random.Generator) -> Array:
    """Return a rotation from the uniform distribution."""
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return np.asarray(Q * np.linalg.det(Q))


def align(source: Array, target: Array) -> tuple[Array, Array]:
    """Return rotation and shift that take points to others, least squares (Kabsch)."""
    a, b = source.mean(axis=0), target.mean(axis=0)
    U, _, Vt = np.linalg.svd((source - a).T @ (target - b))
    U[:, 2] *= np.sign(np.linalg.det(U @ Vt))
    R = (U @ Vt).T
    return R, b - R @ a


def smooth_noise(
    rng: np.random.Generator, time: Array, columns: int, fastest_hz: float
) -> Array:
    """Return sums of five sines of unit variance, (frame, columns)."""
    n = 5
    hz = rng.uniform(0.1, fastest_hz, (n, columns))
    phase = rng.uniform(0.0, 2.0 * np.pi, (n, columns))
    waves = np.sin(2.0 * np.pi * hz * time[:, None, None] + phase)
    return np.asarray(np.sqrt(2.0 / n) * waves.sum(axis=1))
