"""Balls at the joints of a skeleton: how thick a body is, and where its tips are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from marey.anatomy import names as vrm
from marey.anatomy.masses import RADIUS_PER_LENGTH
from marey.io.segment_tree import list_children
from marey.skeleton import Skeleton

Array = np.ndarray

HEAD_RADIUS_PER_LENGTH = 0.45
"""Radius of the skull over the distance from the head's joint to its top. Higher makes
heads broader. Chosen by hand."""

TINY_RADIUS = 1e-3
"""Smallest radius of a ball, as a fraction of the figure's size. Guards joints that
coincide: a ball without size has no surface."""


@dataclass(frozen=True, slots=True, eq=False)
class Balls:
    """A ball at every joint in the rest pose."""

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

    Its radius is a share of the longest bone that begins there, and at least that of
    its children together: areas of cross-sections add up, as Leonardo found in trees.
    Joints of one name on the left and on the right have the mean radius. A leaf without
    an end has markers for a bone, or else the bone to its parent.
    """
    reach, size = _reaches(skeleton)
    is_end, parent = skeleton.is_end, skeleton.parent
    radius = np.maximum(RADIUS_PER_LENGTH * reach, TINY_RADIUS * size)
    area = np.zeros(skeleton.n_joints)
    for joint in range(skeleton.n_joints - 1, 0, -1):
        if not is_end[joint]:
            radius[joint] = max(radius[joint], np.sqrt(area[joint]))
            area[parent[joint]] += radius[joint] ** 2
    radius[0] = max(radius[0], np.sqrt(area[0]))
    radius[is_end] = 0.5 * radius[parent[is_end]]
    for joint in np.flatnonzero(is_end):
        if vrm.without_subject(skeleton.names[parent[joint]]) == vrm.HEAD:
            head = HEAD_RADIUS_PER_LENGTH * skeleton.lengths[joint]
            radius[joint] = max(head, radius[joint])
    radius = _same_on_both_sides(skeleton.names, radius)
    center = skeleton.rest()[:, :3, 3]
    inward = np.minimum(radius / np.maximum(skeleton.lengths, radius), 1.0)
    center[is_end] -= inward[is_end, None] * skeleton.offset[is_end]
    return Balls(center, radius, is_end, list_children(parent))


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
    other = []
    for i, name in enumerate(names):
        own = vrm.without_subject(name)
        mirrored = name.removesuffix(own) + vrm.mirror_name(own)
        other.append(number.get(mirrored, i))
    return np.asarray(0.5 * (radius + radius[other]))
