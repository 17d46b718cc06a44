"""Where pictures are seen from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Camera:
    """Where a picture is seen from, in degrees; far away, so that nothing shrinks."""

    azimuth: float
    """Direction from the figure to the viewer: 0 = from +x, 90 = from +y."""

    elevation: float = 12.0

    @classmethod
    def before(cls, T_world_root: Float[Array, "4 4"], aside: float = 32.0) -> "Camera":
        """Return a camera in front of a figure that looks along its root's x axis.

        Args:
            T_world_root: Pose of the root.
            aside: How far to the figure's left, in degrees.
        """
        x, y = T_world_root[:2, 0]
        return cls(float(np.degrees(np.arctan2(y, x))) + aside)

    def seen(self, points: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
        """Return right, up and nearness of points."""
        return np.asarray(points @ self.axes.T)

    @property
    def axes(self) -> Float[Array, "3 3"]:
        """The directions in the world that point right, up and to the viewer."""
        a, e = np.radians([self.azimuth, self.elevation])
        right = [-np.sin(a), np.cos(a), 0.0]
        near = [np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)]
        return np.stack([right, np.cross(near, right), near])


def widest(
    points: Float[Array, "frame point 3"],
    left: Sequence[int] = (),
    right: Sequence[int] = (),
) -> Camera:
    """Return the level camera from which moving points look widest.

    Args:
        points: Their places, in metres.
        left: Points on the left of a figure; with them it is seen from the front.
        right: Points on its right.
    """
    flat = points[..., :2]
    seen = np.isfinite(flat).all(axis=-1, keepdims=True)
    count = np.maximum(seen.sum(axis=1, keepdims=True), 1)
    flat = np.where(seen, flat, 0.0)
    away = np.where(seen, flat - flat.sum(axis=1, keepdims=True) / count, 0.0)
    broad = np.linalg.eigh(np.einsum("fpi,fpj->ij", away, away))[1][:, 1]
    if len(left) and len(right):
        # From the front, a figure's left is on the right of the picture.
        across = away[:, list(left)].mean((0, 1)) - away[:, list(right)].mean((0, 1))
        broad = broad if across @ broad >= 0.0 else -broad
    return Camera(float(np.degrees(np.arctan2(-broad[0], broad[1]))), 0.0)
