"""The rest pose of a skeleton: a typical frame, or the T-pose of a person."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from marey.anatomy.names import LEFT, RIGHT, side_of
from marey.anatomy.t_pose import shortest_rotation, t_pose_direction, upright_rotation
from marey.bodies import Bodies
from marey.errors import DataError
from marey.numerics.thresholds import SAMPLE_FRAMES
from marey.rig.tree_joints import TreeJoints

Array = np.ndarray


def find_rest_frame(bodies: Bodies, order: Int[Array, " body"]) -> int:
    """Return the medoid frame among those that show most bodies.

    The similarity of two frames is the sum over bodies of the trace of the relative
    rotation, taken in the root's frame; the medoid has the largest sum of similarities.

    Args:
        bodies: The bodies over time.
        order: The bodies of one tree, the root first.
    """
    n_seen = bodies.seen[:, order].sum(axis=1)
    fullest = np.flatnonzero(n_seen == n_seen.max())
    frames = fullest[:: max(len(fullest) // SAMPLE_FRAMES, 1)]
    R = np.nan_to_num(bodies.T_world_body[frames][:, order, :3, :3])
    flat = (R[:, :1].swapaxes(-1, -2) @ R).reshape(len(frames), -1)
    return int(frames[(flat @ flat.T).sum(axis=1).argmax()])


def rest_rotations(
    bodies: Bodies, order: Int[Array, " body"], frame: int
) -> Float[Array, "joint 3 3"]:
    """Return the orientation of every body in a frame, or in the nearest that has one.

    Raises:
        DataError: If a body has no pose in any frame.
    """
    R = bodies.T_world_body[frame, order, :3, :3].copy()
    for i in np.flatnonzero(~np.isfinite(R).all(axis=(1, 2))):
        seen = np.flatnonzero(bodies.seen[:, order[i]])
        if len(seen) == 0:
            raise DataError(
                f"body {bodies.names[order[i]]}", found="no pose", needed="at least one"
            )
        nearest = seen[np.abs(seen - frame).argmin()]
        R[i] = bodies.T_world_body[nearest, order[i], :3, :3]
    return np.asarray(R)


def t_pose_rotations(
    joints: TreeJoints, names: Sequence[str], R: Float[Array, "joint 3 3"]
) -> Float[Array, "joint 3 3"]:
    """Return the orientations of a person's bodies in a T-pose.

    From the root to the leaves, every body follows its parent and then rotates: hips
    and chest until their height and width are aligned with +z and +y, other bones by
    the shortest rotation to their direction in a T-pose.

    Args:
        joints: The bodies of the figure, parents first.
        names: Their names, of the VRM humanoid.
        R: Their orientations in some frame.
    """
    rotation = np.empty_like(R)
    for i, parent in enumerate(joints.parent):
        of_parent = rotation[parent] if parent >= 0 else np.eye(3)
        bone, width = _bone_and_width(joints, names, i)
        bone = of_parent @ R[i] @ bone
        if width is None:
            step = shortest_rotation(bone, t_pose_direction(names[i], bone))
        else:
            step = upright_rotation(bone, of_parent @ R[i] @ width)
        rotation[i] = step @ of_parent
    return np.asarray(rotation @ R)


def _bone_and_width(
    joints: TreeJoints, names: Sequence[str], i: int
) -> tuple[Float[Array, " 3"], Float[Array, " 3"] | None]:
    """Return the direction of a body's bone, and its width, in the body's frame.

    The bone points from the body's joint to its children in the middle, else to those
    at the sides, else to the origin; the bone of the hips starts between the legs. The
    width is the vector from the first right child to the first left one, None without
    both.
    """
    children: dict[str, list[Array]] = {"": [], LEFT: [], RIGHT: []}
    for child in np.flatnonzero(joints.parent == i).tolist():
        children[side_of(names[child])].append(joints.in_parent[child])
    middle, left, right = children.values()
    sides = left + right
    start = joints.in_body[i]
    if joints.parent[i] < 0 and middle and sides:
        start = np.mean(sides, axis=0)
    bone = np.mean(middle or sides or [np.zeros(3)], axis=0) - start
    return bone, left[0] - right[0] if left and right else None
