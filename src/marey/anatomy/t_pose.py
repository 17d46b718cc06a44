"""The T-pose of a person: directions of the bones, and rotations to reach them.

In a T-pose the person stands upright, faces +x and stretches both arms sideways; the
left side is +y and up is +z.
"""

import numpy as np
from jaxtyping import Float

from marey.anatomy import names as vrm
from marey.numerics import geometry
from marey.numerics.procrustes import shortest_rotations

Array = np.ndarray

FORWARD, LEFTWARD, UP = np.eye(3)

MIN_BONE_LENGTH_M = 1e-9
"""Length below which a bone has no direction, in metres. Guards a division."""

MAX_UP_COSINE = 0.9
"""Cosine between a width and the vertical up to which the vertical can stand in for a
direction across the width. Higher makes the cross direction ill conditioned. Chosen by
hand."""


def t_pose_direction(name: str, bone: Float[Array, " 3"]) -> Float[Array, " 3"]:
    """Return the direction of a bone in a T-pose, not of unit length.

    Feet keep their slope and turn forward. A bone that is none of a person's keeps its
    direction.

    Args:
        name: Of the body, such as "LeftUpperArm".
        bone: Its present direction in the world.
    """
    part = vrm.without_side(name)
    if part in vrm.TRUNK:
        return UP
    if part in (vrm.UPPER_LEG, vrm.LOWER_LEG):
        return -UP
    if part in vrm.ARM:
        return (1.0 if vrm.side_of(name) == vrm.LEFT else -1.0) * LEFTWARD
    if part in (vrm.FOOT, vrm.TOES):
        return np.array([np.hypot(bone[0], bone[1]), 0.0, bone[2]])
    return bone


def upright_rotation(
    bone: Float[Array, " 3"], width: Float[Array, " 3"]
) -> Float[Array, "3 3"]:
    """Return the rotation that brings a width to +y and a bone as near to +z as it can.

    Gram-Schmidt: y is the width, z the part of the bone across it.
    """
    y = width / np.linalg.norm(width)
    z = bone - (bone @ y) * y
    if np.linalg.norm(z) < MIN_BONE_LENGTH_M:
        spare = UP if abs(UP @ y) < MAX_UP_COSINE else FORWARD
        z = spare - (spare @ y) * y
    z = z / np.linalg.norm(z)
    return np.stack([np.cross(y, z), y, z])


def shortest_rotation(
    bone: Float[Array, " 3"], goal: Float[Array, " 3"]
) -> Float[Array, "3 3"]:
    """Return the rotation by the least angle from one direction to another.

    The identity if one of the two has no length.
    """
    length, goal_length = np.linalg.norm(bone), np.linalg.norm(goal)
    if length < MIN_BONE_LENGTH_M or goal_length < MIN_BONE_LENGTH_M:
        return np.eye(3)
    unit = shortest_rotations(bone / length, goal / goal_length)
    return geometry.matrix_from_quat(unit)
