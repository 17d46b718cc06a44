"""Closed surfaces fixed to the joints of a figure; markers are placed on them."""

from dataclasses import dataclass

import numpy as np

from marey.numerics import Float, Int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Surface:
    r"""A tapered superellipsoid from one point to another, fixed to a joint.

    A point of the surface has two parameters: `u` goes from 0 at the start to 1 at the
    end, and `angle` goes around the middle line from `side` towards `front`. The radius
    is :math:`(|\cos a|^p + |\sin a|^p)^{-1/p} (1 - |2u - 1|^q)^{1/q}` times the half
    width and half depth, with p = `section_exponent` and q = `end_exponent`.
    """

    name: str
    joint: int
    """The joint that carries the surface."""

    start: Float[np.ndarray, " 3"]
    """First end of the middle line, in the frame of the joint, in metres."""

    end: Float[np.ndarray, " 3"]
    """Second end of the middle line."""

    side: Float[np.ndarray, " 3"]
    """Unit direction of the width, in the frame of the joint."""

    front: Float[np.ndarray, " 3"]
    """Unit direction of the depth."""

    width: tuple[float, float]
    """Half width at the start and at the end, in metres."""

    depth: tuple[float, float]
    """Half depth at the start and at the end, in metres."""

    end_exponent: float = 4.0
    """Exponent of the ends: 2 = ellipsoid, larger = flatter, inf = cylinder."""

    section_exponent: float = 2.0
    """Exponent of the cross section: 2 = ellipse, larger = box with round edges."""

    def points_at(
        self, u: Float[np.ndarray, " point"], angle: Float[np.ndarray, " point"]
    ) -> Float[np.ndarray, "point 3"]:
        """Return points of the surface in the frame of the joint, in metres.

        Args:
            u: 0 at the start, 1 at the end.
            angle: Radians from `side` towards `front`.
        """
        c, s = np.cos(angle), np.sin(angle)
        section = (
            np.abs(c) ** self.section_exponent + np.abs(s) ** self.section_exponent
        ) ** (-1.0 / self.section_exponent)
        radius = section * self._end_taper(u)
        width = self.width[0] + u * (self.width[1] - self.width[0])
        depth = self.depth[0] + u * (self.depth[1] - self.depth[0])
        middle = self.start + u[:, None] * (self.end - self.start)
        sideways = (radius * width * c)[:, None] * self.side
        return np.asarray(
            middle + sideways + (radius * depth * s)[:, None] * self.front
        )

    def _end_taper(self, u: np.ndarray) -> np.ndarray:
        if np.isinf(self.end_exponent):
            return np.ones_like(u)
        from_middle = np.minimum(np.abs(2.0 * u - 1.0), 1.0)
        return np.asarray(
            (1.0 - from_middle**self.end_exponent) ** (1.0 / self.end_exponent)
        )

    @property
    def area(self) -> float:
        """Approximate area in square metres. Markers are distributed by it."""
        length = float(np.linalg.norm(self.end - self.start))
        return np.pi * length * 0.5 * (sum(self.width) + sum(self.depth))

    def spiral_points(
        self, count: int, *, start_angle: float = 0.0
    ) -> Float[np.ndarray, "count 3"]:
        """Return points spread evenly over the surface, along a golden-angle spiral.

        Args:
            count: Number of points.
            start_angle: Angle of the first point, in radians.
        """
        step = np.arange(count)
        u = 0.08 + 0.84 * (step + 0.5) / max(count, 1)
        return self.points_at(u, start_angle + step * np.pi * (3.0 - np.sqrt(5.0)))

    def mesh(
        self, *, rings: int = 7, spokes: int = 8
    ) -> tuple[Float[np.ndarray, "point 3"], Int[np.ndarray, "triangle 3"]]:
        """Return vertices in the frame of the joint and triangles that face outward.

        Args:
            rings: Number of rings of vertices along the surface, without the two tips.
            spokes: Number of vertices in each ring.
        """
        u = 0.5 - 0.5 * np.cos(np.pi * (np.arange(rings) + 1) / (rings + 1))
        if np.isinf(self.end_exponent):
            u = np.linspace(0.0, 1.0, rings)
        angle = 2.0 * np.pi * np.arange(spokes) / spokes
        grid = self.points_at(np.repeat(u, spokes), np.tile(angle, rings))
        points = np.concatenate([grid, self.start[None], self.end[None]])
        triangles = _tube_triangles(rings, spokes)
        inverted = np.dot(np.cross(self.side, self.front), self.end - self.start) < 0.0
        return points, triangles[:, ::-1] if inverted else triangles


def _tube_triangles(rings: int, spokes: int) -> Int[np.ndarray, "triangle 3"]:
    """Return the triangles of a closed tube whose tips are the last two vertices."""
    here = np.arange(spokes)
    ahead = (here + 1) % spokes
    faces = []
    for ring in range(rings - 1):
        low, high = ring * spokes, (ring + 1) * spokes
        faces.append(np.stack([low + here, low + ahead, high + here], axis=-1))
        faces.append(np.stack([low + ahead, high + ahead, high + here], axis=-1))
    start, end, last = rings * spokes, rings * spokes + 1, (rings - 1) * spokes
    faces.append(np.stack([ahead, here, np.full(spokes, start)], axis=-1))
    faces.append(np.stack([last + here, last + ahead, np.full(spokes, end)], axis=-1))
    return np.concatenate(faces)
