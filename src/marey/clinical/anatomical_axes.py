"""Anatomical axes of a person's segments: x forward, y to the left, z up.

They are the axes of a person who stands upright with hanging arms, palms to the body.
A segment's axes are found at rest, from its bone: the limb that is turned by the
shortest way until it hangs. Those of the pelvis come from the iliac spines where they
have markers, those of a foot from the frames in which it stands flat on the ground.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from marey.anatomy import names as vrm
from marey.anatomy.landmarks import find_landmarks
from marey.anatomy.t_pose import UP, shortest_rotation
from marey.errors import DataError
from marey.motion import Motion
from marey.numerics import geometry
from marey.skeleton import Skeleton

Array = np.ndarray

LIMBS = (
    *(vrm.UPPER_ARM, vrm.LOWER_ARM, vrm.HAND),
    *(vrm.UPPER_LEG, vrm.LOWER_LEG),
)
"""Segments whose bones hang in the anatomical position."""

MIDDLE_OF_PLANT = 0.5
"""Share of a plant, in its middle, in which the whole sole is on the ground. Higher
takes frames of landing and push-off, in which the foot rolls. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class SegmentAxes:
    """Anatomical axes of one segment, in the frame of its joint."""

    R: Float[Array, "3 3"]
    """The axes forward, left and up as columns."""

    origin: str
    """How they were found, in words."""


def anatomical_axes(motion: Motion, names: dict[str, int]) -> dict[str, SegmentAxes]:
    """Return the anatomical axes of every segment of a person.

    Args:
        motion: Of a person at rest with a known front: both legs, hips.
        names: Joint number of every segment by its name.
    """
    body = _body_axes(motion.skeleton, names)
    axes = {}
    for name, joint in names.items():
        part = vrm.without_side(name)
        if part in LIMBS:
            axes[name] = _limb_axes(motion.skeleton, joint, body)
        elif part == vrm.FOOT:
            axes[name] = _foot_axes(motion, name, joint, body)
        elif part == vrm.HIPS:
            axes[name] = _pelvis_axes(motion.skeleton, joint, body)
        else:
            axes[name] = SegmentAxes(body, "upright at rest")
    return axes


def _body_axes(skeleton: Skeleton, names: dict[str, int]) -> Float[Array, "3 3"]:
    """Return forward, left and up of the person at rest, as columns."""
    rest = skeleton.rest()[:, :3, 3]
    left, right = (rest[names[n]] for n in vrm.both_sides(vrm.UPPER_LEG))
    across = left - right
    across = across - (across @ UP) * UP
    width = float(np.linalg.norm(across))
    if not width > 0.0:
        raise DataError(
            "angles", found="both hips in one place", needed="a left and a right hip"
        )
    y = across / width
    return np.stack([np.cross(y, UP), y, UP], axis=1)


def _limb_axes(
    skeleton: Skeleton, joint: int, body: Float[Array, "3 3"]
) -> SegmentAxes:
    """Return the axes of a limb: those of the body, turned from down to its bone."""
    bone = _bone(skeleton, joint)
    return SegmentAxes(shortest_rotation(-UP, bone) @ body, "straight limb at rest")


def _bone(skeleton: Skeleton, joint: int) -> Float[Array, " 3"]:
    """Return the offset of the child that is farthest away; zero without children."""
    children = np.flatnonzero(skeleton.parent == joint)
    if not len(children):
        return np.zeros(3)
    return np.asarray(skeleton.offset[children[skeleton.lengths[children].argmax()]])


def _pelvis_axes(
    skeleton: Skeleton, joint: int, body: Float[Array, "3 3"]
) -> SegmentAxes:
    """Return the axes of the pelvis, by the iliac spines if they have markers.

    y joins the anterior spines, x runs from the middle of the posterior ones to the
    middle of the anterior ones (Wu 2002).
    """
    segments = [skeleton.names[j] for j in skeleton.marker_joint]
    bare = [vrm.without_subject(name) for name in segments]
    marks = find_landmarks(skeleton.marker_labels, bare)
    front = [marks(side, "asis") for side in vrm.SIDES]
    back = [marks(side, "psis") for side in vrm.SIDES]
    sacrum = marks("", "sacrum")
    if not all(front) or not (all(back) or sacrum):
        return SegmentAxes(body, "upright at rest")
    place = skeleton.marker_offset
    left, right = (place[k].mean(axis=0) for k in front)
    behind = place[[*back[0], *back[1]] if all(back) else sacrum].mean(axis=0)
    y = (left - right) / np.linalg.norm(left - right)
    x = 0.5 * (left + right) - behind
    x = x - (x @ y) * y
    x = x / np.linalg.norm(x)
    R = np.stack([x, y, np.cross(x, y)], axis=1)
    return SegmentAxes(R, "iliac spines")


def _foot_axes(
    motion: Motion, name: str, joint: int, body: Float[Array, "3 3"]
) -> SegmentAxes:
    """Return the axes of a foot: up where it stands, forward along its bone."""
    bone = _bone(motion.skeleton, joint)
    flat = _frames_on_ground(motion, name)
    up, origin = body[:, 2], "level at rest"
    if flat.any():
        R = geometry.matrix_from_quat(motion.wxyz)
        R_world = _world_rotation(motion.skeleton, R[flat], joint)
        vertical = np.median(R_world[:, 2, :], axis=0)
        if np.isfinite(vertical).all() and np.linalg.norm(vertical) > 0.0:
            up = vertical / np.linalg.norm(vertical)
            origin = "flat on the ground"
    forward = bone - (bone @ up) * up
    length = float(np.linalg.norm(forward))
    if not length > 0.0:
        return SegmentAxes(body, "level at rest")
    x = forward / length
    return SegmentAxes(np.stack([x, np.cross(up, x), up], axis=1), origin)


def _frames_on_ground(motion: Motion, name: str) -> Bool[Array, " frame"]:
    """Return the frames in the middle of each plant of a foot."""
    flat = np.zeros(motion.n_frames, dtype=bool)
    side = vrm.side_of(name)
    feet = {name, side + vrm.TOES}
    for contact in motion.contacts:
        if vrm.without_subject(contact.joint) in feet:
            middle = 0.5 * (contact.start + contact.end)
            half = 0.5 * MIDDLE_OF_PLANT * (contact.end - contact.start)
            flat |= np.abs(motion.times - middle) <= half
    return flat


def _world_rotation(
    skeleton: Skeleton, R: Float[Array, "frame joint 3 3"], joint: int
) -> Float[Array, "frame 3 3"]:
    """Return the rotation of a joint's frame in the world."""
    world = R[:, joint]
    while (joint := int(skeleton.parent[joint])) >= 0:
        world = R[:, joint] @ world
    return world
