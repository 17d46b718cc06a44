"""Anatomical axes of a person's segments: x forward, y to the left, z up.

They are the axes of a person who stands upright with hanging arms, palms to the body.
A segment's axes are found at rest, from its long axis: the limb that is turned by the
shortest way until it hangs. Long axes run from joint to joint, in legs through the
middle of epicondyles and malleoli where they have markers (`leg_axes`). The axes of the
pelvis come from the iliac spines where they have markers, those of a foot from the
frames in which it stands flat on the ground.
"""

from dataclasses import dataclass

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.t_pose import UP, shortest_rotation
from marey.clinical.leg_axes import bone_of, long_axes_of_legs
from marey.clinical.person import Person
from marey.motion import Motion
from marey.numerics import Array, Bool, Float

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


def anatomical_axes(person: Person) -> dict[str, SegmentAxes]:
    """Return the anatomical axes of every segment of a person, by its name."""
    long_axes = long_axes_of_legs(person)
    R_rest = person.R_rest
    axes = {}
    for name, joint in person.joint.items():
        part = vrm.without_side(name)
        if name in long_axes:
            hang = shortest_rotation(-UP, long_axes[name])
            axes[name] = SegmentAxes(hang @ R_rest, "epicondyles and malleoli")
        elif part in LIMBS:
            hang = shortest_rotation(-UP, bone_of(person.skeleton, joint))
            axes[name] = SegmentAxes(hang @ R_rest, "straight limb at rest")
        elif part == vrm.FOOT:
            axes[name] = _foot_axes(person, joint)
        elif part == vrm.HIPS:
            axes[name] = _pelvis_axes(person)
        else:
            axes[name] = SegmentAxes(R_rest, "upright at rest")
    return axes


def _pelvis_axes(person: Person) -> SegmentAxes:
    """Return the axes of the pelvis, by the iliac spines if they have markers.

    y joins the anterior spines, x runs from the middle of the posterior ones to the
    middle of the anterior ones (Wu 2002).
    """
    marks = person.marks
    front = [marks(side, "asis") for side in vrm.SIDES]
    back = [marks(side, "psis") for side in vrm.SIDES]
    sacrum = marks("", "sacrum")
    if not all(front) or not (all(back) or sacrum):
        return SegmentAxes(person.R_rest, "upright at rest")
    place = person.skeleton.marker_offset
    left, right = (place[k].mean(axis=0) for k in front)
    behind = place[[*back[0], *back[1]] if all(back) else sacrum].mean(axis=0)
    y = (left - right) / np.linalg.norm(left - right)
    x = 0.5 * (left + right) - behind
    x = x - (x @ y) * y
    x = x / np.linalg.norm(x)
    R = np.stack([x, y, np.cross(x, y)], axis=1)
    return SegmentAxes(R, "iliac spines")


def _foot_axes(person: Person, joint: int) -> SegmentAxes:
    """Return the axes of a foot: up where it stands, forward along its bone."""
    bone = bone_of(person.skeleton, joint)
    vertical = person.R_world[_frames_on_ground(person.motion, joint), joint, 2]
    vertical = vertical[np.isfinite(vertical).all(axis=1)]
    up, origin = UP, "level at rest"
    if len(vertical):
        up, origin = np.median(vertical, axis=0), "flat on the ground"
        up = up / np.linalg.norm(up)
    forward = bone - (bone @ up) * up
    length = float(np.linalg.norm(forward))
    if not length > 0.0:
        return SegmentAxes(person.R_rest, "level at rest")
    x = forward / length
    return SegmentAxes(np.stack([x, np.cross(up, x), up], axis=1), origin)


def _frames_on_ground(motion: Motion, foot: int) -> Bool[Array, " frame"]:
    """Return the frames in the middle of each plant of a foot or its toes."""
    flat = np.zeros(motion.n_frames, dtype=bool)
    for contact in motion.contacts:
        joint = motion.skeleton.index(contact.joint)
        if foot in (joint, motion.skeleton.parent[joint]):
            middle = 0.5 * (contact.start + contact.end)
            half = 0.5 * MIDDLE_OF_PLANT * (contact.end - contact.start)
            flat |= np.abs(motion.times - middle) <= half
    return flat
