"""A 6-DoF pose as points: what fits markers then fits sensors, too."""

import numpy as np

from marey.numerics import Array, Float, geometry
from marey.numerics.thresholds import LEVER_ARM_M

TETRAHEDRON = np.array(
    [[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
)

SENSOR_POINTS = LEVER_ARM_M * TETRAHEDRON / np.linalg.norm(TETRAHEDRON[0])
"""The four points that represent a 6-DoF sensor, in its axes, in metres: corners of a
regular tetrahedron around its origin, so that errors of position and of rotation are
independent."""


def points_of_poses(T: Float[Array, "*batch 4 4"]) -> Float[Array, "*batch 4 3"]:
    """Return the four points of each pose, in metres; NaN where it is unknown."""
    return geometry.apply(T[..., None, :, :], SENSOR_POINTS)


def poses_of_points(points: Float[Array, "*batch 4 3"]) -> Float[Array, "*batch 4 4"]:
    """Return the poses whose four points are nearest to the given ones (Kabsch)."""
    return geometry.kabsch(SENSOR_POINTS, points)
