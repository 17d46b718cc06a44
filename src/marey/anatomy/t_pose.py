"""The T-pose of a person: directions of the bones, and rotations to reach them.

In a T-pose the person stands upright, faces +x and stretches both arms sideways; the
left side is +y and up is +z.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from marey.anatomy import names as vrm
from marey.numerics import geometry
from marey.numerics.procrustes import shortest_rotations
from marey.skeleton import Skeleton

Array = np.ndarray

FORWARD, LEFTWARD, UP = np.eye(3)

TINY = 1e-9
"""Length below which a bone has no direction, in metres. Guards a division."""


def t_pose_rotations(
    names: Sequence[str],
    parent: Int[Array, " body"],
    in_parent: Float[Array, "body 3"],
    in_body: Float[Array, "body 3"],
    R: Float[Array, "body 3 3"],
) -> Float[Array, "body 3 3"]:
    """Return the orientations of a person's bodies in a T-pose.

    From the root to the leaves, every body follows its parent and then rotates: hips
    and chest until their height and width are aligned with +z and +y, other bones by
    the shortest rotation to their direction in a T-pose.

    Args:
        names: Names of the bodies, of the VRM humanoid.
        parent: Parent of each body, before it; -1 for the root.
        in_parent: The joint of each body in its parent's frame, in metres.
        in_body: The same joint in the body's own frame.
        R: Orientations of the bodies in some frame, from which the rotations start.
    """
    rotation = np.empty_like(R)
    for i, p in enumerate(parent.tolist()):
        of_parent = rotation[p] if p >= 0 else np.eye(3)
        children: dict[str, list[Array]] = {"": [], vrm.LEFT: [], vrm.RIGHT: []}
        for child in np.flatnonzero(parent == i).tolist():
            children[vrm.side_of(names[child])].append(in_parent[child])
        bone, width = _bone_and_width(children, in_body[i], is_root=p < 0)
        bone = of_parent @ R[i] @ bone
        if width is None:
            step = shortest_rotation(bone, _t_pose_direction(names[i], bone))
        else:
            step = _upright_rotation(bone, of_parent @ R[i] @ width)
        rotation[i] = step @ of_parent
    return np.asarray(rotation @ R)


def _bone_and_width(
    children: dict[str, list[Array]], joint: Float[Array, " 3"], *, is_root: bool
) -> tuple[Float[Array, " 3"], Float[Array, " 3"] | None]:
    """Return the direction of a body's bone, and its width, in the body's frame.

    The bone points from the body's joint to its children in the middle, else to those
    at the sides, else to the origin; the bone of the hips starts between the legs. The
    width is the vector from the first right child to the first left one, None without
    both.
    """
    middle, left, right = children.values()
    sides = left + right
    start = np.mean(sides, axis=0) if is_root and middle and sides else joint
    bone = np.mean(middle or sides or [np.zeros(3)], axis=0) - start
    return bone, left[0] - right[0] if left and right else None


def _t_pose_direction(name: str, bone: Float[Array, " 3"]) -> Float[Array, " 3"]:
    """Return the direction of a bone in a T-pose, not of unit length.

    Feet keep their slope and turn forward. Clavicles and bones that are none of a
    person's keep their direction.

    Args:
        name: Of the body, such as "LeftUpperArm".
        bone: Its present direction in the world.
    """
    part = vrm.without_side(name)
    if part in vrm.TRUNK:
        return UP
    if part in (vrm.UPPER_LEG, vrm.LOWER_LEG):
        return -UP
    if part in (vrm.UPPER_ARM, vrm.LOWER_ARM, vrm.HAND):
        return LEFTWARD if vrm.side_of(name) == vrm.LEFT else -LEFTWARD
    if part in (vrm.FOOT, vrm.TOES):
        return np.array([np.hypot(bone[0], bone[1]), 0.0, bone[2]])
    return bone


def _upright_rotation(
    bone: Float[Array, " 3"], width: Float[Array, " 3"]
) -> Float[Array, "3 3"]:
    """Return the rotation that brings a width to +y and a bone as near to +z as it can.

    Gram-Schmidt: y is the width, z the part of the bone across it. A bone along its
    width has no such part; the vertical then stands in for it.
    """
    y = width / np.linalg.norm(width)
    vectors = np.stack([bone, UP, FORWARD])
    across = vectors - np.outer(vectors @ y, y)
    z = next(vector for vector in across if np.linalg.norm(vector) > TINY)
    z = z / np.linalg.norm(z)
    return np.stack([np.cross(y, z), y, z])


def shortest_rotation(
    bone: Float[Array, " 3"], goal: Float[Array, " 3"]
) -> Float[Array, "3 3"]:
    """Return the rotation by the least angle from one direction to another.

    The identity if one of the two has no length.
    """
    length, goal_length = np.linalg.norm(bone), np.linalg.norm(goal)
    if min(length, goal_length) < TINY:
        return np.eye(3)
    unit = shortest_rotations(bone / length, goal / goal_length)
    return geometry.matrix_from_quat(unit)


def stand_on_ground(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton with its lowest joint or marker at z = 0 at rest."""
    joints = skeleton.rest()[:, :3, 3]
    markers = joints[skeleton.marker_joint] + skeleton.marker_offset
    lowest = min(joints[:, 2].min(), markers[:, 2].min(initial=np.inf))
    offset = skeleton.offset.copy()
    offset[0] = [0.0, 0.0, offset[0, 2] - lowest]
    return replace(skeleton, offset=offset)
