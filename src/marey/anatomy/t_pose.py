"""The T-pose of a person: directions of the bones, and rotations to reach them.

In a T-pose the person stands upright, faces +x and stretches both arms sideways; the
left side is +y and up is +z.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.limb_roll import BodyTree, side_in_t_pose
from marey.numerics import Array, Float, Int, geometry
from marey.numerics.procrustes import shortest_rotations
from marey.numerics.thresholds import TINY_LENGTH_M
from marey.skeleton import Skeleton

FORWARD, LEFTWARD, UP = np.eye(3)


def facing_rotation(
    left_hip: Float[Array, " 3"], right_hip: Float[Array, " 3"]
) -> Float[Array, "3 3"]:
    """Return R_world_person about the vertical: columns forward, leftward and up.

    The identity for a person that faces +x, and for hips above each other.

    Args:
        left_hip: Centre of the left hip in the world, in metres.
        right_hip: Centre of the right hip.
    """
    width = left_hip - right_hip
    return geometry.rotation_exp(np.arctan2(-width[0], width[1]) * UP)


def t_pose_rotations(
    tree: BodyTree,
    R: Float[Array, "body 3 3"],
    sides: Float[Array, "body 3"],
) -> Float[Array, "body 3 3"]:
    """Return the orientations of a person's bodies in a T-pose.

    From the root to the leaves, every body follows its parent and then rotates. Hips
    and chest rotate until their height and width are aligned with +z and +y. Other
    bones take the shortest rotation to their direction in a T-pose; then they rotate
    about it until their side has its direction in a T-pose.

    Args:
        tree: The bodies.
        R: Orientations of the bodies in some frame, from which the rotations start.
        sides: Directions across limbs, as `limb_sides` returns them; NaN for a limb
            that rolls with its parent.
    """
    rotation = np.empty_like(R)
    for i, p in enumerate(tree.parent.tolist()):
        of_parent = rotation[p] if p >= 0 else np.eye(3)
        bone, width = _bone_and_width(tree, i)
        bone = of_parent @ R[i] @ bone
        if width is None:
            goal = _t_pose_direction(tree.names[i], bone)
            step = shortest_rotation(bone, goal)
            side = step @ of_parent @ R[i] @ sides[i]
            step = _roll(goal, side, side_in_t_pose(tree.names[i])) @ step
        else:
            step = _upright_rotation(bone, of_parent @ R[i] @ width)
        rotation[i] = step @ of_parent
    return np.asarray(rotation @ R)


def align_axes(
    R: Float[Array, "body 3 3"],
    parent: Int[Array, " body"],
    axes: Mapping[int, Float[Array, "2 3"]],
) -> Float[Array, "body 3 3"]:
    """Return R_world_body at rest in which hinges have one axis in both bodies.

    The body below a hinge makes the shortest rotation; those after it stay.

    Args:
        R: R_world_body of the bodies; parents come before their children.
        parent: Parent of each body.
        axes: By body, the unit axis of its hinge in its parent and in itself.
    """
    aligned = R.copy()
    for i, (in_parent, in_child) in sorted(axes.items()):
        goal = aligned[parent[i]] @ in_parent
        aligned[i] = shortest_rotation(R[i] @ in_child, goal) @ R[i]
    return aligned


def _roll(
    bone: Float[Array, " 3"], side: Float[Array, " 3"], goal: Float[Array, " 3"]
) -> Float[Array, "3 3"]:
    """Return the rotation about a bone that turns a side to its goal, as far as it can.

    The identity for a bone without length, and for a side that is unknown or along the
    bone.
    """
    length = np.linalg.norm(bone)
    if length < TINY_LENGTH_M:
        return np.eye(3)
    z = bone / length
    x, y = side - (side @ z) * z, geometry.cross(z, side)
    if not np.linalg.norm(x) > TINY_LENGTH_M:
        return np.eye(3)
    return geometry.rotation_exp(np.arctan2(goal @ y, goal @ x) * z)


def _bone_and_width(
    tree: BodyTree, body: int
) -> tuple[Float[Array, " 3"], Float[Array, " 3"] | None]:
    """Return the direction of a body's bone, and its width, in the body's frame.

    The bone points from the body's joint to its children in the middle, else to those
    at the sides, else to its end; the bone of the hips starts between the legs, unless
    landmarks show what is up. The width is the vector from the first right child to the
    first left one, None without both.
    """
    children: dict[str, list[Array]] = {"": [], vrm.LEFT: [], vrm.RIGHT: []}
    for child in tree.children(body):
        children[vrm.side_of(tree.names[child])].append(tree.in_parent[child])
    middle, left, right = children.values()
    sides = left + right
    is_root = tree.parent[body] < 0
    between = is_root and middle and sides
    start = np.mean(sides, axis=0) if between else tree.in_body[body]
    bone = np.mean(middle or sides or [tree.end[body]], axis=0) - start
    if is_root and tree.up_in_root is not None:
        bone = tree.up_in_root
    return bone, left[0] - right[0] if left and right else None


def _t_pose_direction(name: str, bone: Float[Array, " 3"]) -> Float[Array, " 3"]:
    """Return the direction of a bone in a T-pose, not of unit length.

    Feet keep their slope and turn forward. Clavicles and bones that are none of a
    person's keep their direction.

    Args:
        name: Name of the body, such as "LeftUpperArm".
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
    width has no such part; the vertical then stands in for it. Without a width it is
    the shortest rotation to +z.
    """
    if not np.linalg.norm(width) > TINY_LENGTH_M:
        return shortest_rotation(bone, UP)
    y = width / np.linalg.norm(width)
    vectors = np.stack([bone, UP, FORWARD])
    across = vectors - np.outer(vectors @ y, y)
    z = next(vector for vector in across if np.linalg.norm(vector) > TINY_LENGTH_M)
    z = z / np.linalg.norm(z)
    return np.stack([geometry.cross(y, z), y, z])


def shortest_rotation(
    bone: Float[Array, " 3"], goal: Float[Array, " 3"]
) -> Float[Array, "3 3"]:
    """Return the rotation by the least angle from one direction to another.

    The identity if one of the two has no length.
    """
    length, goal_length = np.linalg.norm(bone), np.linalg.norm(goal)
    if min(length, goal_length) < TINY_LENGTH_M:
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
