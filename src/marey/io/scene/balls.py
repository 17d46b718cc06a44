"""Balls at the joints of a skeleton: how thick a body is, and where its tips are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from marey.anatomy import names as vrm
from marey.anatomy.masses import RADIUS_PER_LENGTH
from marey.anatomy.name_schemes import recognise_joints
from marey.skeleton import Skeleton
from marey.tree import list_children

Array = np.ndarray

HEAD_RADIUS_PER_SIZE = 0.055
"""Radius of the head over the figure's size: a head is about 0.13 of the stature high
and 0.09 broad. Higher makes larger heads."""

MIN_TAPER = 0.5
"""Smallest radius of a joint's ball over that of its parent. Higher makes hands, feet
and necks thicker. Chosen by hand."""

TINY_RADIUS = 1e-3
"""Smallest radius of a ball, as a fraction of the figure's size. Guards joints that
coincide: a ball without size has no surface."""


@dataclass(frozen=True, slots=True, eq=False)
class Balls:
    """A ball at every joint in the rest pose."""

    names: Sequence[str]
    """What each joint is, in the words of anatomy where these are known."""

    center: Float[Array, "joint 3"]
    """In the world, in metres: the joint; the ball of a bone's end ends at that end."""

    radius: Float[Array, " joint"]
    """In metres, > 0."""

    is_end: Bool[Array, " joint"]
    """Which joints are only the ends of bones."""

    children: Sequence[Sequence[int]]
    """The children of every joint."""


def place_balls(skeleton: Skeleton) -> Balls:
    """Return a ball for every joint.

    Its radius is a share of the longest bone that begins there, at least that of its
    children together (areas of cross-sections add up, as Leonardo found in trees), and
    not too small for its parent. Joints of one name on the left and on the right have
    the mean radius. A leaf without an end has markers for a bone, or else the bone to
    its parent.
    """
    reach, size = _reaches(skeleton)
    names = anatomical_names(skeleton)
    is_end, parent = skeleton.is_end, skeleton.parent
    radius = np.maximum(RADIUS_PER_LENGTH * reach, TINY_RADIUS * size)
    children = list_children(parent)
    for joint in range(skeleton.n_joints - 1, -1, -1):
        carried = [radius[child] ** 2 for child in children[joint] if not is_end[child]]
        # The root is in the middle: its largest child is the other half of the body.
        area = sum(carried) - (max(carried, default=0.0) if joint == 0 else 0.0)
        radius[joint] = max(radius[joint], np.sqrt(area))
    radius[is_end] = 0.0
    for joint in range(1, skeleton.n_joints):
        radius[joint] = max(radius[joint], MIN_TAPER * radius[parent[joint]])
    for joint in np.flatnonzero(is_end).tolist():
        if names[parent[joint]] == vrm.HEAD:
            radius[joint] = max(radius[joint], HEAD_RADIUS_PER_SIZE * size)
    radius = _same_on_both_sides(names, radius)
    center = skeleton.rest()[:, :3, 3]
    center[is_end] += _tip_shifts(skeleton, radius)[is_end]
    return Balls(names, center, radius, is_end, children)


def anatomical_names(skeleton: Skeleton) -> list[str]:
    """Return the name of each joint as in `marey.anatomy.names`, if that is known.

    The names of a person may be those of any scheme; others are taken as they are,
    without their subject.
    """
    known = recognise_joints(skeleton.names)
    names = enumerate(skeleton.names)
    return [known.get(i, vrm.without_subject(name)) for i, name in names]


def _tip_shifts(
    skeleton: Skeleton, radius: Float[Array, " joint"]
) -> Float[Array, "joint 3"]:
    """Return how far the balls of bone ends are from these, toward their parents.

    A ball ends where the bone does; its centre is half a radius from the parent at
    least, so that a large ball on a short bone is still on its side.
    """
    length = skeleton.lengths
    distance = np.maximum(length - radius, 0.5 * radius)
    direction = skeleton.offset / np.where(length > 0.0, length, 1.0)[:, None]
    return np.asarray((distance - length)[:, None] * direction)


def _reaches(skeleton: Skeleton) -> tuple[Float[Array, " joint"], float]:
    """Return how far each joint's bone reaches, and the figure's size, in metres."""
    length, parent = skeleton.lengths, skeleton.parent
    reach = np.zeros(skeleton.n_joints)
    np.maximum.at(reach, parent[1:], length[1:])
    leaf = ~np.isin(np.arange(skeleton.n_joints), parent)
    on_leaf = leaf[skeleton.marker_joint]
    spread = np.linalg.norm(skeleton.marker_offset[on_leaf], axis=1)
    np.maximum.at(reach, skeleton.marker_joint[on_leaf], spread)
    size = float(np.ptp(skeleton.rest()[:, :3, 3], axis=0).max() or reach[0] or 1.0)
    incoming = np.where(length > 0.0, length, 0.0 if len(length) > 1 else size)
    return np.where(reach > 0.0, reach, incoming), size


def _same_on_both_sides(
    names: Sequence[str], radius: Float[Array, " joint"]
) -> Float[Array, " joint"]:
    """Return radii of which left and right joints of one name have the mean."""
    number = {name: i for i, name in enumerate(names)}
    other = [number.get(vrm.mirror_name(name), i) for i, name in enumerate(names)]
    return np.asarray(0.5 * (radius + radius[other]))
