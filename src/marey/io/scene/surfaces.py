"""Triangulated surfaces: convex hulls of balls with triangles of even size."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from marey.numerics import Array, Float, Int, geometry


class TriangleMesh(NamedTuple):
    """A closed surface of triangles."""

    vertices: Float[Array, "vertex 3"]
    faces: Int[Array, "face 3"]
    """Vertices of each triangle, counter-clockwise from outside."""


def ball_directions(fineness: int) -> Float[Array, "direction 3"]:
    """Return 4 n² + 2 unit vectors in all directions, n being the fineness.

    They are the points of an octahedron with n equal steps on every edge, moved to the
    sphere; each coordinate plane mirrors them onto themselves.
    """
    step = np.arange(-fineness, fineness + 1)
    grid = np.stack(np.meshgrid(step, step, step, indexing="ij"), axis=-1)
    points = grid.reshape(-1, 3)
    points = points[np.abs(points).sum(axis=1) == fineness].astype(float)
    return geometry.unit_vectors(points)


def hull_of_balls(
    center: Float[Array, "ball 3"],
    radius: Float[Array, " ball"],
    directions: Float[Array, "direction 3"],
) -> TriangleMesh:
    """Return the closed surface of the convex hull of balls, faces outward.

    Args:
        center: Centre of each ball, in metres.
        radius: Its radius in metres, > 0.
        directions: Unit vectors of the points that stand for a ball.
    """
    from scipy.spatial import ConvexHull  # slow to import

    points = (center[:, None] + radius[:, None, None] * directions).reshape(-1, 3)
    points = np.unique(points, axis=0)
    hull = ConvexHull(points)
    used, faces = np.unique(hull.simplices, return_inverse=True)
    faces = faces.reshape(-1, 3)
    vertices = points[used]
    inward = np.einsum(
        "fi,fi->f", _face_normals(vertices, faces), hull.equations[:, :3]
    )
    faces[inward < 0.0] = faces[inward < 0.0, ::-1]
    return TriangleMesh(vertices, faces)


def split_long_edges(surface: TriangleMesh, longest: float) -> TriangleMesh:
    """Return the same closed surface with no edge longer than `longest` (m).

    Bisection of terminal edges (Rivara 1984): an edge that is the longest of both of
    its triangles is halved together with both, until none is too long.
    """
    vertices, faces = surface
    while True:
        edges, edge_of_side = _edges(faces)
        length = np.linalg.norm(np.diff(vertices[edges], axis=1)[:, 0], axis=1)
        rank = np.argsort(np.argsort(length, kind="stable"), kind="stable")
        side = rank[edge_of_side].argmax(axis=1)
        longest_edge = edge_of_side[np.arange(len(faces)), side]
        split = np.bincount(longest_edge, minlength=len(edges)) == 2
        split &= length > longest
        if not split.any():
            return TriangleMesh(vertices, faces)
        middle = np.full(len(edges), -1)
        middle[split] = len(vertices) + np.arange(split.sum())
        vertices = np.concatenate([vertices, vertices[edges[split]].mean(axis=1)])
        # Rotated so that the longest edge comes first, a face (a, b, c) with the middle
        # m becomes (a, m, c) and (m, b, c).
        order = (side[:, None] + np.arange(3)) % 3
        rotated = np.take_along_axis(faces, order, axis=1)
        m = middle[longest_edge]
        halved = m >= 0
        a, b, c = rotated[halved].T
        m = m[halved]
        halves = np.stack([[a, m, c], [m, b, c]]).transpose(0, 2, 1).reshape(-1, 3)
        faces = np.concatenate([faces[~halved], halves])


def vertex_normals(surface: TriangleMesh) -> Float[Array, "vertex 3"]:
    """Return the unit normal at each vertex: the mean of its faces', by their areas."""
    normals = np.zeros_like(surface.vertices)
    np.add.at(normals, surface.faces.T, _face_normals(*surface))
    return geometry.unit_vectors(normals)


def join_surfaces(surfaces: Sequence[TriangleMesh]) -> TriangleMesh:
    """Return several surfaces as one."""
    first = np.cumsum([0, *(len(vertices) for vertices, _ in surfaces)])
    parts = zip(surfaces, first[:-1], strict=True)
    return TriangleMesh(
        np.concatenate([vertices for vertices, _ in surfaces]),
        np.concatenate([faces + start for (_, faces), start in parts]),
    )


def _edges(
    faces: Int[Array, "face 3"],
) -> tuple[Int[Array, "edge 2"], Int[Array, "face 3"]]:
    """Return the edges, and the edge of each side of each face."""
    sides = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]], axis=-1).reshape(-1, 2)
    count = int(faces.max()) + 1
    keys, edge_of_side = np.unique(sides @ [count, 1], return_inverse=True)
    edges = np.stack(np.divmod(keys, count), axis=1)
    return edges, edge_of_side.reshape(-1, 3)


def _face_normals(
    vertices: Float[Array, "vertex 3"], faces: Int[Array, "face 3"]
) -> Float[Array, "face 3"]:
    """Return the outward normal of each triangle, as long as twice its area (m^2)."""
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    return np.asarray(np.cross(b - a, c - a))
