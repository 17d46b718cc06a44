"""The pose in which a skeleton is drawn at rest."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.errors import DataError
from marey.numerics import geometry
from marey.numerics.procrustes import shortest_rotations
from marey.rig.joint_records import Part

Array = np.ndarray

MOST_CANDIDATES = 200
"""Frames looked at for the rest pose."""

AHEAD, LEFT, UP = np.eye(3)

# Where the bones of a person point in a T-pose; hands and arms to their side.
UPRIGHT = ("Spine", "Chest", "UpperChest", "Neck", "Head")
HANGING = ("UpperLeg", "LowerLeg")
SIDEWAYS = ("Shoulder", "UpperArm", "LowerArm", "Hand")


def rest_frame(bodies: Bodies, order: list[int]) -> int:
    """Return the frame whose pose is nearest to all others, bodies seen first."""
    count = bodies.seen[:, order].sum(axis=1)
    best = np.flatnonzero(count == count.max())
    step = max(len(best) // MOST_CANDIDATES, 1)
    frames = best[::step]
    R = np.nan_to_num(bodies.T_world_body[frames][:, order, :3, :3])
    R_root = R[:, :1].swapaxes(-1, -2)
    flat = (R_root @ R).reshape(len(frames), -1)
    # The mean of R . R' over bodies falls with their turn against each other.
    return int(frames[(flat @ flat.T).sum(axis=1).argmax()])


def rest_rotations(
    bodies: Bodies, order: list[int], frame: int
) -> Float[Array, "part 3 3"]:
    """Return the orientation of every body at rest; its own nearest frame if unseen."""
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


def t_pose(
    parts: Sequence[Part], names: Sequence[str], R: Float[Array, "part 3 3"]
) -> Float[Array, "part 3 3"]:
    """Return the orientations turned so that a person stands in a T-pose.

    It faces +x, its left is +y. Hips and chest are set up by their height and width,
    other bones by the shortest turn; feet keep their slope.

    Args:
        parts: The bodies of the figure, parents first.
        names: Their names, of the VRM humanoid.
        R: Their orientations in some frame.
    """
    turn = np.empty_like(R)
    for i, part in enumerate(parts):
        above = turn[part.parent] if part.parent >= 0 else np.eye(3)
        bone = above @ R[i] @ _bone(parts, names, i)
        wide = _width(parts, names, i)
        if wide is not None:
            turn[i] = _upright(bone, above @ R[i] @ wide) @ above
        else:
            turn[i] = _towards(bone, _goal(names[i], bone)) @ above
    return np.asarray(turn @ R)


def _bone(parts: Sequence[Part], names: Sequence[str], i: int) -> Float[Array, " 3"]:
    """Return where a bone points in its body: to its children, or to its end.

    Limbs at its sides do not count where something hangs in the middle; hips point
    from between the legs to the back.
    """
    children = [
        (part.above, name.startswith(("Left", "Right")))
        for part, name in zip(parts, names, strict=True)
        if part.parent == i
    ]
    middle = [above for above, aside in children if not aside]
    sides = [above for above, aside in children if aside]
    if parts[i].parent < 0 and middle and sides:
        return np.asarray(np.mean(middle, axis=0) - np.mean(sides, axis=0))
    ends = middle or sides or [np.zeros(3)]
    return np.asarray(np.mean(ends, axis=0) - parts[i].own)


def _width(
    parts: Sequence[Part], names: Sequence[str], i: int
) -> Float[Array, " 3"] | None:
    """Return the way from a body's right limb to its left one, None without."""
    sides: dict[str, Array] = {}
    for part, name in zip(parts, names, strict=True):
        for side in ("Left", "Right"):
            if part.parent == i and name.startswith(side):
                sides.setdefault(side, part.above)
    if len(sides) < 2:
        return None
    return np.asarray(sides["Left"] - sides["Right"])


def _upright(bone: Array, wide: Array) -> Float[Array, "3 3"]:
    """Return the turn that brings a width to the left, and a bone up as far as goes."""
    y = wide / np.linalg.norm(wide)
    z = bone - (bone @ y) * y
    # A bone along its own width says nothing of up.
    if np.linalg.norm(z) < 1e-9:
        z = UP - (UP @ y) * y if abs(UP @ y) < 0.9 else AHEAD - (AHEAD @ y) * y
    z = z / np.linalg.norm(z)
    return np.stack([np.cross(y, z), y, z])


def _goal(name: str, bone: Array) -> Array:
    side = 1.0 if name.startswith("Left") else -1.0
    bare = name.removeprefix("Left").removeprefix("Right")
    if bare in UPRIGHT:
        return UP
    if bare in HANGING:
        return -UP
    if bare in SIDEWAYS:
        return side * LEFT
    if bare in ("Foot", "Toes"):
        return np.array([np.hypot(bone[0], bone[1]), 0.0, bone[2]])
    return bone


def _towards(bone: Array, goal: Array) -> Float[Array, "3 3"]:
    long, far = np.linalg.norm(bone), np.linalg.norm(goal)
    if long < 1e-9 or far < 1e-9:
        return np.eye(3)
    return geometry.matrix_from_quat(shortest_rotations(bone / long, goal / far))
