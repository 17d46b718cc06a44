"""The roll of a person's limbs about their bones, from the way that they bend.

A bone's direction at rest does not determine how the bone is rolled about itself. The
axes about which knees and elbows bend do: a knee bends backward, and an elbow forward.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from marey.anatomy import names as vrm
from marey.numerics import Array, Bool, Float, Int, geometry
from marey.tree import children_of

MIN_BEND_SINE = np.sin(np.radians(20.0))
"""Sine of the angle between two bones above which a frame determines the axis about
which they bend. Higher uses fewer frames. Chosen by hand."""

MIN_COSINE = np.sqrt(0.5)
"""Smallest cosine between a direction and the one that it is taken for: 45 degrees,
nearer to it than to any perpendicular one."""


class BodyTree(NamedTuple):
    """The bodies of a person, parents first, and where their joints are."""

    names: Sequence[str]
    """Names of the VRM humanoid."""

    parent: Int[Array, " body"]
    """Parent of each body, before it; -1 for the root."""

    in_parent: Float[Array, "body 3"]
    """The joint of each body in its parent's frame, in metres."""

    in_body: Float[Array, "body 3"]
    """The same joint in the body's own frame."""

    end: Float[Array, "body 3"]
    """Where a body without children ends, in its own frame, in metres."""

    up_in_root: Float[Array, " 3"] | None = None
    """Direction of the root's frame that is up in a T-pose, if landmarks show it; else
    it is that from the legs to the joint of the trunk."""

    def children(self, body: int) -> list[int]:
        """Return the bodies whose parent is this one."""
        return children_of(self.parent, body)

    def limb_bone(self, body: int) -> Float[Array, " 3"]:
        """Return the vector (m) from a limb's joint to its first child or its end."""
        first = self.children(body)[:1]
        end = self.in_parent[first[0]] if first else self.end[body]
        return np.asarray(end - self.in_body[body])

    def find(self, name: str) -> int:
        """Return the number of a body, -1 if there is none of this name."""
        return list(self.names).index(name) if name in self.names else -1


def limb_sides(
    tree: BodyTree,
    R: Float[Array, "frame body 3 3"],
    thumb_sides: Mapping[str, Float[Array, " 3"]] | None = None,
) -> Float[Array, "body 3"]:
    """Return a direction across each limb whose goal in a T-pose is known.

    Thighs, shanks and upper arms have the axis about which knee or elbow bends: the
    mean of the normals of the two bones over all frames in which they bend by 20
    degrees or more. Forearms have the direction of the thumb, from the landmarks of the
    wrist. Wrists hardly twist, so hands have that of their forearms, in the mean.

    Args:
        tree: The bodies.
        R: Orientations of the bodies in the world; NaN where unknown.
        thumb_sides: Direction from the ulna to the radius in the frame of a forearm, by
            its name.

    Returns:
        In the frame of each body, of any length; NaN for bodies whose roll is unknown.
    """
    sides = np.full((len(tree.names), 3), np.nan)
    for side in vrm.SIDES:
        thigh, shank = (tree.find(side + n) for n in (vrm.UPPER_LEG, vrm.LOWER_LEG))
        if min(thigh, shank) >= 0:
            sides[thigh], sides[shank] = _bend_axes(tree, R, thigh, shank)
        arm, forearm = (tree.find(side + n) for n in (vrm.UPPER_ARM, vrm.LOWER_ARM))
        if min(arm, forearm) >= 0:
            sides[arm], _ = _bend_axes(tree, R, arm, forearm)
        hand = tree.find(side + vrm.HAND)
        thumb = (thumb_sides or {}).get(side + vrm.LOWER_ARM)
        if thumb is not None and forearm >= 0:
            sides[forearm] = thumb
            if hand >= 0:
                sides[hand] = _mean_in(R[:, hand], R[:, forearm] @ thumb)
    return sides


def known_rolls(
    tree: BodyTree, sides: Float[Array, "body 3"], shown: Collection[str] = ()
) -> Bool[Array, " body"]:
    """Return the bodies whose roll at rest is known.

    Besides those with a side these are the trunk, whose width shows it, and bodies that
    follow it, clavicles and feet, if the roll of their parents is known.

    Args:
        tree: The bodies.
        sides: As `limb_sides` returns them.
        shown: Names of bodies whose roll something else shows.
    """
    known = np.asarray(np.isfinite(sides).all(axis=1))
    for body, name in enumerate(tree.names):
        part, parent = vrm.without_side(name), int(tree.parent[body])
        if part in (vrm.HIPS, *vrm.TRUNK) or name in shown:
            known[body] = True
        elif part in (vrm.SHOULDER, vrm.FOOT, vrm.TOES) and parent >= 0:
            known[body] = known[parent]
    return known


def side_in_t_pose(name: str) -> Float[Array, " 3"]:
    """Return the goal of a limb's side in a T-pose that faces +x.

    Knees bend about +y, elbows about -z on the left and +z on the right; thumbs point
    forward.
    """
    part = vrm.without_side(name)
    if part in (vrm.UPPER_LEG, vrm.LOWER_LEG):
        return np.array([0.0, 1.0, 0.0])
    if part == vrm.UPPER_ARM:
        return np.array([0.0, 0.0, -1.0 if vrm.side_of(name) == vrm.LEFT else 1.0])
    return np.array([1.0, 0.0, 0.0])


def _bend_axes(
    tree: BodyTree, R: Float[Array, "frame body 3 3"], upper: int, lower: int
) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
    """Return the axis about which two bones bend in the frames of both; NaN if unknown.

    It is unknown if they bend in too few frames, or about directions that differ.
    """
    bones = [R[:, body] @ tree.limb_bone(body) for body in (upper, lower)]
    lengths = [geometry.lengths(bone) for bone in bones]
    product = np.maximum(lengths[0] * lengths[1], 1e-300)
    normal = geometry.cross(*bones) / product[:, None]
    bent = geometry.lengths(normal) > MIN_BEND_SINE  # False where NaN
    if bent.sum() < 3:  # two cannot outvote an outlier
        return np.full(3, np.nan), np.full(3, np.nan)
    normal = normal[bent]
    in_upper, in_lower = (_mean_in(R[bent, body], normal) for body in (upper, lower))
    mean_sine = geometry.lengths(normal).mean()
    if np.linalg.norm(in_upper) < MIN_COSINE * mean_sine:
        return np.full(3, np.nan), np.full(3, np.nan)
    return in_upper, in_lower


def _mean_in(
    R: Float[Array, "frame 3 3"], vectors: Float[Array, "frame 3"]
) -> Float[Array, " 3"]:
    """Return the mean of world vectors in a body's frame; NaN without any frame."""
    local = np.einsum("fji,fj->fi", R, vectors)
    local = local[np.isfinite(local).all(axis=1)]
    return local.mean(axis=0) if len(local) else np.full(3, np.nan)
