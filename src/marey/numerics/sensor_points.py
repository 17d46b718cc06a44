"""A 6-DoF pose as points: what fits markers then fits sensors, too."""

import numpy as np
from jaxtyping import Float

from marey.numerics import geometry

Array = np.ndarray

SENSOR_LEVER_M = 0.2
"""A 6-DoF sensor is represented by four points: its origin and one at this distance
along each axis, in metres. Higher gives its orientation more weight; at 0.2, noise of
1 mm and of 0.4 degrees have equal weights. Chosen by hand."""

SENSOR_POINTS = np.concatenate([np.zeros((1, 3)), SENSOR_LEVER_M * np.eye(3)])


def points_of_poses(T: Float[Array, "*batch 4 4"]) -> Float[Array, "*batch 4 3"]:
    """Return the four points of each pose, in metres; NaN where it is unknown."""
    return geometry.apply(T[..., None, :, :], SENSOR_POINTS)


def poses_of_points(points: Float[Array, "*batch 4 3"]) -> Float[Array, "*batch 4 4"]:
    """Return the poses whose four points are nearest to the given ones (Kabsch)."""
    return geometry.kabsch(SENSOR_POINTS, points)
