"""Poses and markers of one body in the axes of another, compiled."""

# mypy: ignore-errors

import numpy as np
from numba import njit

from marey.numerics.vector3_kernel import place, rotate, set_vector


@njit(cache=True, error_model="numpy")
def markers_in_body(T, body, points, columns):
    """Return some markers in the axes of a body, (frame, marker, 3).

    Args:
        T: (frame, body, 4, 4), poses of the world in the bodies.
        body: The body.
        points: (frame, marker, 3), in the world.
        columns: The markers.
    """
    out = np.empty((len(T), len(columns), 3))
    for f in range(len(T)):
        pose = T[f, body]
        for k in range(len(columns)):
            position = (pose[0, 3], pose[1, 3], pose[2, 3])
            set_vector(out[f, k], place(pose, position, points[f, columns[k]]))
    return out


@njit(cache=True, error_model="numpy")
def relative_poses(T_body_world, T_world_body, a, b):
    """Return the poses of b in a, (frame, 4, 4); NaN where one of them has none.

    Args:
        T_body_world: (frame, body, 4, 4).
        T_world_body: (frame, body, 4, 4).
        a: The first body.
        b: The second body.
    """
    out = np.zeros((len(T_world_body), 4, 4))
    for f in range(len(out)):
        A, B = T_body_world[f, a], T_world_body[f, b]
        for j in range(4):
            x, y, z = rotate(A, (B[0, j], B[1, j], B[2, j]))
            out[f, 0, j] = x + A[0, 3] * B[3, j]
            out[f, 1, j] = y + A[1, 3] * B[3, j]
            out[f, 2, j] = z + A[2, 3] * B[3, j]
            out[f, 3, j] = A[3, 3] * B[3, j]
    return out
