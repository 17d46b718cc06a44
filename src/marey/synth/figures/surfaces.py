"""The flesh of a figure: solid shapes fixed to joints, with a skin for markers."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Shape:
    """A tapered solid from one point to another, fixed to a joint.

    Its skin is a grid: `u` runs from 0 at the start to 1 at the end, `angle` goes round
    from the `side` direction over the `front`.
    """

    name: str
    joint: int
    """The joint that carries it."""

    start: Float[np.ndarray, " 3"]
    """One end of its middle line, in the joint's frame, in metres."""

    end: Float[np.ndarray, " 3"]
    """The other end."""

    side: Float[np.ndarray, " 3"]
    """Unit direction of its width, in the joint's frame."""

    front: Float[np.ndarray, " 3"]
    """Unit direction of its depth."""

    width: tuple[float, float]
    """Half width at the start and at the end, in metres."""

    depth: tuple[float, float]
    """Half depth at the start and at the end, in metres."""

    blunt: float = 4.0
    """How blunt the ends are: 2 = an ellipsoid's, more = flatter, inf = cut off."""

    square: float = 2.0
    """How square the section is: 2 = an ellipse, more = a box with round edges."""

    def skin(
        self, u: Float[np.ndarray, " point"], angle: Float[np.ndarray, " point"]
    ) -> Float[np.ndarray, "point 3"]:
        """Return points of the skin in the joint's frame, in metres.

        Args:
            u: 0 at the start, 1 at the end.
            angle: Radians from `side` towards `front`.
        """
        c, s = np.cos(angle), np.sin(angle)
        section = (np.abs(c) ** self.square + np.abs(s) ** self.square) ** (
            -1.0 / self.square
        )
        reach = section * self._swell(u)
        width = self.width[0] + u * (self.width[1] - self.width[0])
        depth = self.depth[0] + u * (self.depth[1] - self.depth[0])
        middle = self.start + u[:, None] * (self.end - self.start)
        sideways = (reach * width * c)[:, None] * self.side
        return np.asarray(middle + sideways + (reach * depth * s)[:, None] * self.front)

    def _swell(self, u: np.ndarray) -> np.ndarray:
        if np.isinf(self.blunt):
            return np.ones_like(u)
        from_middle = np.minimum(np.abs(2.0 * u - 1.0), 1.0)
        return np.asarray((1.0 - from_middle**self.blunt) ** (1.0 / self.blunt))

    @property
    def area(self) -> float:
        """Rough area of the skin in square metres; it shares markers out."""
        length = float(np.linalg.norm(self.end - self.start))
        return np.pi * length * 0.5 * (sum(self.width) + sum(self.depth))

    def spread(self, count: int, *, turn: float = 0.0) -> Float[np.ndarray, "count 3"]:
        """Return points evenly spread over the skin, along a golden spiral.

        Args:
            count: Number of points.
            turn: Angle of the first one, in radians.
        """
        step = np.arange(count)
        u = 0.08 + 0.84 * (step + 0.5) / max(count, 1)
        return self.skin(u, turn + step * np.pi * (3.0 - np.sqrt(5.0)))

    def mesh(
        self, *, rings: int = 7, spokes: int = 8
    ) -> tuple[Float[np.ndarray, "point 3"], Int[np.ndarray, "triangle 3"]]:
        """Return vertices in the joint's frame and triangles facing outward.

        Args:
            rings: Rings of vertices along the shape, without its two tips.
            spokes: Vertices round each ring.
        """
        u = 0.5 - 0.5 * np.cos(np.pi * (np.arange(rings) + 1) / (rings + 1))
        if np.isinf(self.blunt):
            u = np.linspace(0.0, 1.0, rings)
        angle = 2.0 * np.pi * np.arange(spokes) / spokes
        grid = self.skin(np.repeat(u, spokes), np.tile(angle, rings))
        points = np.concatenate([grid, self.start[None], self.end[None]])
        triangles = _tube(rings, spokes)
        turned = np.dot(np.cross(self.side, self.front), self.end - self.start) < 0.0
        return points, triangles[:, ::-1] if turned else triangles


def _tube(rings: int, spokes: int) -> Int[np.ndarray, "triangle 3"]:
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
