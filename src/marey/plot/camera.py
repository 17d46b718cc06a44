"""Direction that a picture is taken from: an orthographic camera."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Camera:
    """Orthographic camera: its direction from the figure, in degrees."""

    azimuth: float
    """Azimuth of the camera as seen from the figure: 0 = +x, 90 = +y."""

    elevation: float = 12.0

    @classmethod
    def facing(cls, T_world_root: Float[Array, "4 4"], aside: float = 32.0) -> "Camera":
        """Return a camera in front of a figure that faces along its root's x axis.

        Args:
            T_world_root: Pose of the root.
            aside: Angle of the camera to the figure's left, in degrees.
        """
        x, y = T_world_root[:2, 0]
        return cls(float(np.degrees(np.arctan2(y, x))) + aside)

    def project(self, points: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
        """Return points in camera coordinates: right, up and towards the camera."""
        return np.asarray(points @ self.axes.T)

    @property
    def axes(self) -> Float[Array, "3 3"]:
        """R_camera_world: its rows point right, up and towards the camera."""
        a, e = np.radians([self.azimuth, self.elevation])
        right = [-np.sin(a), np.cos(a), 0.0]
        towards = [np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)]
        return np.stack([right, np.cross(towards, right), towards])


def widest_view(
    points: Float[Array, "frame point 3"],
    left: Sequence[int] = (),
    right: Sequence[int] = (),
) -> Camera:
    """Return the level camera that sees the largest horizontal variance of points.

    The image axis is the first principal component of the horizontal positions
    relative to their centroid in every frame.

    Args:
        points: Positions in metres; NaN = not seen.
        left: Points on the left of a figure; with `right`, it is seen from the front.
        right: Points on its right.
    """
    horizontal = points[..., :2]
    seen = np.isfinite(horizontal).all(axis=-1, keepdims=True)
    count = np.maximum(seen.sum(axis=1, keepdims=True), 1)
    horizontal = np.where(seen, horizontal, 0.0)
    centroid = horizontal.sum(axis=1, keepdims=True) / count
    offset = np.where(seen, horizontal - centroid, 0.0)
    component = np.linalg.eigh(np.einsum("fpi,fpj->ij", offset, offset))[1][:, 1]
    if len(left) and len(right):
        # From the front, a figure's left is on the right of the picture.
        sides = [offset[:, list(side)].mean((0, 1)) for side in (left, right)]
        component = component * (
            1.0 if (sides[0] - sides[1]) @ component >= 0.0 else -1.0
        )
    return Camera(float(np.degrees(np.arctan2(-component[0], component[1]))), 0.0)
