"""Rotations of bones that point somewhere, with or without a hint of their twist."""

import numpy as np
from jaxtyping import Float

from marey.numerics import geometry
from marey.numerics.procrustes import shortest_rotations

Array = np.ndarray
Vector = Float[Array, " 3"]
Matrix = Float[Array, "3 3"]

UPRIGHT = np.eye(3)

# A turn this near to straight back (its cosine) has no one shortest way.
BACK = -1.0 + 1e-6

SURE = 0.34
"""Sine of the angle between a limb and its up point, 20 degrees, from which on the up
point alone tells the twist; below, its share falls with the square of the sine."""


def unit(v: Vector) -> Vector:
    """Return a direction; NaN of what has none."""
    length = float(np.sqrt(v @ v))
    return v / length if length > 0.0 else np.full(3, np.nan)


def swung(R: Matrix, bone: Vector, way: Vector) -> Matrix:
    """Return a rotation turned the shortest way so that a bone points along a way."""
    now = unit(R @ bone)
    cosine = float(now @ way)
    if cosine < BACK:
        turn = geometry.matrix_from_quat(shortest_rotations(now, way))
    else:
        K = np.outer(way, now) - np.outer(now, way)
        turn = UPRIGHT + K + K @ K / (1.0 + cosine)
    turned = turn @ R
    # Frame after frame rounding would add up: a step to the nearest rotation.
    return np.asarray(turned @ (1.5 * UPRIGHT - 0.5 * turned.T @ turned))


def twisted(R: Matrix, way: Vector, side: Vector, up: Vector, size: float) -> Matrix:
    """Return a rotation twisted about a way so that a side of the limb faces a point.

    The up vector constraint of Bodenheimer1997, Sec. 2.1.2. Where the point comes near
    the limb's own line, its direction says little: its share is the squared sine of
    the angle, and the rest stays as it was.

    Args:
        R: The limb's rotation as expected, its bone along `way`.
        way: Where the bone points, a unit vector.
        side: The side, in the limb's frame, square to the bone.
        up: From the limb's end to its up point.
        size: Distance of the up point from the limb's end.
    """
    aside = up - (up @ way) * way
    sine = float(np.sqrt(aside @ aside)) / size
    facing = R @ side
    W = geometry.hat(way)
    angle = min(1.0, (sine / SURE) ** 2) * np.arctan2(
        aside @ W @ facing, facing @ aside
    )
    turn = UPRIGHT + np.sin(angle) * W + (1.0 - np.cos(angle)) * W @ W
    return np.asarray(turn @ R)
