"""Positions on spheres, caps, arcs and cylinders, and the least error possible."""

import numpy as np
from jaxtyping import Float

Array = np.ndarray
Points = Float[Array, "point 3"]


def whole_sphere(rng: np.random.Generator, n_points: int) -> Points:
    """Return unit vectors spread evenly over all directions."""
    way = rng.normal(size=(n_points, 3))
    return np.asarray(way / np.linalg.norm(way, axis=-1, keepdims=True))


def cap(rng: np.random.Generator, n_points: int, half_angle: float) -> Points:
    """Return unit vectors spread evenly over a cap about +z.

    Args:
        rng: Draws them.
        n_points: How many.
        half_angle: From the middle of the cap to its rim, in radians.
    """
    z = rng.uniform(np.cos(half_angle), 1.0, n_points)
    turn = rng.uniform(0.0, 2.0 * np.pi, n_points)
    flat = np.sqrt(1.0 - z**2)
    return np.stack([flat * np.cos(turn), flat * np.sin(turn), z], axis=-1)


def arc(rng: np.random.Generator, n_points: int, reach: float) -> Points:
    """Return unit vectors across z, at angles from -reach to reach about +x."""
    angle = rng.uniform(-reach, reach, n_points)
    return np.stack([np.cos(angle), np.sin(angle), np.zeros(n_points)], axis=-1)


def cylinder(
    rng: np.random.Generator, n_frames: int, reach: float, n_markers: int
) -> Float[Array, "frame marker 3"]:
    """Return markers of one body that turns about z, at several heights and radii."""
    angle = rng.uniform(-reach, reach, n_frames)[:, None]
    start = np.linspace(0.0, 1.0, n_markers)
    radius = np.linspace(1.0, 1.5, n_markers)
    height = np.linspace(-0.5, 0.5, n_markers)
    x, y = radius * np.cos(angle + start), radius * np.sin(angle + start)
    return np.stack([x, y, np.broadcast_to(height, x.shape)], axis=-1)


def bound_of(way: Float[Array, "point directions"], noise: float) -> float:
    """Return the least rms error of a centre whose radius is not known either.

    Noise along the sphere says nothing, noise along the radius all there is: the bound
    of Cramer and Rao is sigma^2 (sum of u u^T)^-1, u = unit vectors less their mean.

    Args:
        way: True unit vectors from the centre.
        noise: Standard deviation per coordinate, in the unit of the answer.
    """
    lean = way - way.mean(axis=0)
    return float(noise * np.sqrt(np.trace(np.linalg.inv(lean.T @ lean))))
