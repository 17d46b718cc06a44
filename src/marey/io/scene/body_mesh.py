"""A body around a skeleton: a mesh that every program can draw and bend.

The flesh of a bone is the convex hull of balls at its joints: two joints make a rounded
bone, a pelvis with two legs and a spine one solid piece. Neighbours share the ball at
the joint between them. It moves with the outer bone, while the inner bone's end bends
with both, so that the mesh stays closed and keeps its thickness however far the joint
is bent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.anatomy import names as vrm
from marey.io.scene import surfaces
from marey.io.scene.balls import Balls, place_balls
from marey.io.scene.surfaces import TriangleMesh
from marey.numerics import geometry
from marey.skeleton import Skeleton

Array = np.ndarray

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
