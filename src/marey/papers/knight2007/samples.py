"""Random points on spheres, caps, arcs and cylinders, and errors of their centres."""

from collections.abc import Mapping

import numpy as np

from marey.numerics import Array, Float, geometry
from marey.papers.frame import Drawing
from marey.papers.plots import Panels, Style, line_drawing
from marey.plot.style import BLUE, GOLD, GREEN, GREY, INK, RED

Points = Float[Array, "point 3"]


def sample_sphere(rng: np.random.Generator, n_points: int) -> Points:
    """Return unit vectors distributed uniformly over the sphere."""
    return geometry.unit_vectors(rng.normal(size=(n_points, 3)))


def sample_cap(rng: np.random.Generator, n_points: int, half_angle: float) -> Points:
    """Return unit vectors distributed uniformly over a cap about +z.

    Args:
        rng: Draws the points.
        n_points: Number of points.
        half_angle: Angle between the axis of the cap and its rim, in radians.
    """
    z = rng.uniform(np.cos(half_angle), 1.0, n_points)
    azimuth = rng.uniform(0.0, 2.0 * np.pi, n_points)
    radius = np.sqrt(1.0 - z**2)
    return np.stack([radius * np.cos(azimuth), radius * np.sin(azimuth), z], axis=-1)


def sample_arc(rng: np.random.Generator, n_points: int, reach: float) -> Points:
    """Return unit vectors in the x-y plane, at angles from -reach to reach from +x."""
    angle = rng.uniform(-reach, reach, n_points)
    return np.stack([np.cos(angle), np.sin(angle), np.zeros(n_points)], axis=-1)


def sample_cylinder(
    rng: np.random.Generator, n_frames: int, reach: float, n_markers: int
) -> Float[Array, "frame marker 3"]:
    """Return markers of one body that rotates about z, at several heights and radii."""
    angle = rng.uniform(-reach, reach, n_frames)[:, None]
    start = np.linspace(0.0, 1.0, n_markers)
    radius = np.linspace(1.0, 1.5, n_markers)
    height = np.linspace(-0.5, 0.5, n_markers)
    x, y = radius * np.cos(angle + start), radius * np.sin(angle + start)
    return np.stack([x, y, np.broadcast_to(height, x.shape)], axis=-1)


def cramer_rao_bound(
    directions: Float[Array, "point directions"], noise: float
) -> float:
    r"""Return the Cramer-Rao bound of a centre whose radius is unknown, as rms error.

    Only noise along the radius carries information. The covariance bound is

    .. math:: \sigma^2 \Big(\sum_k (u_k - \bar u)(u_k - \bar u)^T\Big)^{-1}

    Args:
        directions: True unit vectors from the centre.
        noise: Standard deviation per coordinate, in the unit of the answer.
    """
    centred = directions - directions.mean(axis=0)
    return float(noise * np.sqrt(np.trace(np.linalg.inv(centred.T @ centred))))


STYLES: Mapping[str, Style] = {
    "best marker": {"color": GREY, "marker": "v"},
    "kasa": {"color": RED, "marker": "o"},
    "corrected": {
        "color": GOLD,
        "marker": "s",
        "markersize": 8,
        "markerfacecolor": "none",
    },
    "geometric": {"color": GREEN, "marker": "^"},
    "ours": {"color": BLUE, "marker": "D"},
    "bound": {"color": INK, "linestyle": "--", "linewidth": 1.0},
}
NAMES = {
    "best marker": "paper, best single marker",
    "kasa": "paper's closed form",
    "corrected": "bias removed",
    "geometric": "least squares of radii",
    "ours": "ours: radii and residual",
    "bound": "Cramer-Rao bound",
}


def error_drawing(title: str, panels: Panels, x_label: str, y_label: str) -> Drawing:
    """Return a drawing of rms errors, one panel per noise, one line per method."""
    n_lines = len(next(iter(panels.values())))
    columns = 3 if n_lines > 4 else n_lines
    labels = x_label, y_label
    return line_drawing(
        title, panels, labels, STYLES, names=NAMES, legend_columns=columns
    )
