"""A body around a skeleton: a mesh that every program can draw and bend.

The flesh of a bone is the convex hull of balls at its joints: two joints make a rounded
bone, a pelvis with two legs and a spine one solid piece. Neighbours share the ball at
the joint between them. It moves with the outer bone, while the inner bone's end bends
with both, so that the mesh stays closed and keeps its thickness however far the joint
is bent. The balls say how thick a body is, and where its tips are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.masses import RADIUS_PER_LENGTH
from marey.anatomy.name_schemes import recognise_joints
from marey.io.scene import surfaces
from marey.io.scene.surfaces import TriangleMesh
from marey.numerics import Array, Bool, Float, Int, geometry
from marey.skeleton import Skeleton
from marey.tree import list_children

MAX_FINENESS = 4
"""Steps on each edge of the octahedron that a ball is made from. Higher makes rounder
bodies and larger files: 16 points stand around a limb. Chosen by hand."""


MAX_BALL_VERTICES = 16_000
"""Points of all balls of a figure; those of many joints are coarser. Higher makes
larger files. Chosen by hand."""


INFLUENCES = 4
"""Joints that move one vertex at most: all that glTF and game engines promise."""


MIRROR = np.array([1.0, -1.0, 1.0])
"""Signs that mirror left and right: at rest a person's left is +Y."""


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


@dataclass(frozen=True, slots=True, eq=False)
class BodyMesh:
    """A closed surface around a skeleton, with the joints that move each vertex."""

    vertices: Float[Array, "vertex 3"]
    """Positions in the world in the rest pose, in metres."""

    faces: Int[Array, "face 3"]
    """Vertices of each triangle, counter-clockwise from outside."""

    normals: Float[Array, "vertex 3"]
    """Unit vectors out of the surface, in the rest pose."""

    joint: Int[Array, "vertex 4"]
    """The joints that move each vertex, the heaviest first; 0 where the weight is 0."""

    weight: Float[Array, "vertex 4"]
    """The weights of these joints, >= 0; their sum is 1."""

    def skin(
        self, skeleton: Skeleton, T_world_joint: Float[Array, "frame joint 4 4"]
    ) -> Float[Array, "frame vertex 3"]:
        r"""Return where the vertices are in the world, in metres.

        Linear blend skinning:

        .. math:: v = \sum_k w_k\, T_k\, B_k^{-1}\, v_{rest}

        with B the rest pose of the joints.
        """
        T = T_world_joint @ geometry.inverse(skeleton.rest())
        points = np.zeros((len(T), *self.vertices.shape))
        for k in range(INFLUENCES):
            moved = geometry.apply(T[:, self.joint[:, k]], self.vertices)
            points += self.weight[:, k, None] * moved
        return points


def build_body_mesh(skeleton: Skeleton) -> BodyMesh:
    """Return a mesh of rounded bones with smooth weights.

    `place_balls` says how thick the bones are. Left and right have the same mesh,
    mirrored, if their bones are alike. Bone ends are the tips of the mesh. A leaf
    without an end is as large as its markers are spread.
    """
    balls = place_balls(skeleton)
    bones = np.flatnonzero(~balls.is_end)
    affordable = np.sqrt(max(MAX_BALL_VERTICES / len(bones) - 2.0, 4.0)) / 2.0
    fineness = min(int(affordable), MAX_FINENESS)
    parts, joints, weights = [], [], []
    for bone in bones.tolist():
        near = _joints_of_bone(bone, balls)
        center, radius = balls.center[[bone, *near]], balls.radius[[bone, *near]]
        if not near:
            markers = skeleton.marker_offset[skeleton.marker_joint == bone]
            center = np.concatenate([center, center + markers])
            radius = np.append(radius, np.full(len(markers), 0.5 * radius[0]))
        right = vrm.side_of(balls.names[bone]) == vrm.RIGHT
        part = _surface(center, radius, fineness, mirrored=right)
        far = [joint for joint in near if not balls.is_end[joint]]
        joint, weight = _weights(part.vertices, bone, far, balls)
        parts.append(part)
        joints.append(joint)
        weights.append(weight)
    whole = surfaces.join_surfaces(parts)
    normals = surfaces.vertex_normals(whole)
    return BodyMesh(*whole, normals, np.concatenate(joints), np.concatenate(weights))


def _joints_of_bone(bone: int, balls: Balls) -> list[int]:
    """Return the joints at the far ends of a bone.

    The trunk reaches as far as the shoulders: it also has the outer ends of clavicles.
    """
    near = list(balls.children[bone])
    for child in balls.children[bone]:
        if vrm.without_side(balls.names[child]) == vrm.SHOULDER:
            near += balls.children[child]
    return near


def _surface(
    center: Float[Array, "ball 3"],
    radius: Float[Array, " ball"],
    fineness: int,
    *,
    mirrored: bool,
) -> TriangleMesh:
    """Return the surface around balls; a mirrored one is the mirror of its mirror's."""
    sign = MIRROR if mirrored else np.ones(3)
    directions = surfaces.ball_directions(fineness)
    hull = surfaces.hull_of_balls(center * sign, radius, directions)
    longest = float(radius.mean()) * MAX_FINENESS / fineness
    vertices, faces = surfaces.split_long_edges(hull, longest)
    return TriangleMesh(vertices * sign, faces[:, ::-1] if mirrored else faces)


def _weights(
    vertices: Float[Array, "vertex 3"], bone: int, far: Sequence[int], balls: Balls
) -> tuple[Int[Array, "vertex 4"], Float[Array, "vertex 4"]]:
    """Return the joints that move each vertex of a bone, and their weights.

    The joint at the far end moves the far half of the bone: as much as the bone's own
    joint within its ball, and less up to one diameter away from it.
    """
    share = [np.ones(len(vertices))]
    for child in far:
        offset = balls.center[child] - balls.center[bone]
        squared = float(offset @ offset)
        along = (vertices - balls.center[bone]) @ offset / (squared or 1.0)
        distance = np.linalg.norm(vertices - balls.center[child], axis=1)
        beyond = distance / balls.radius[child] - 1.0
        near = 1.0 - _smoothstep(0.5 * beyond)
        share.append(near * _smoothstep(2.0 * along - 1.0))
    order = np.argsort(-np.array(share), axis=0, kind="stable")[:INFLUENCES]
    weight = np.zeros((len(vertices), INFLUENCES))
    weight[:, : len(order)] = np.take_along_axis(np.array(share), order, axis=0).T
    weight /= weight.sum(axis=1, keepdims=True)
    joint = np.zeros((len(vertices), INFLUENCES), dtype=np.int64)
    joint[:, : len(order)] = np.array([bone, *far])[order].T
    return np.where(weight > 0.0, joint, 0), weight


def _smoothstep(x: Float[Array, " vertex"]) -> Float[Array, " vertex"]:
    """Return the cubic smoothstep 3 x² - 2 x³ of x, clipped to 0 and 1."""
    s = np.clip(x, 0.0, 1.0)
    return np.asarray(s * s * (3.0 - 2.0 * s))


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
