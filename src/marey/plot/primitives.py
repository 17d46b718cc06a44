"""A camera, and bones, joints, markers and ellipses drawn in its coordinates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marey.numerics import Array, Float, Int
from marey.plot.style import GREEN, INK

N_ELLIPSE_CORNERS = 48
"""Corners of the polygon that approximates an ellipse."""


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


def draw_bones(
    axes: Any,
    spots: Float[Array, "joint 3"],
    parent: Int[Array, " joint"],
    colours: Sequence[str] | None = None,
    width: float = 3.2,
) -> None:
    """Draw bones from every joint to its parent, far ones first.

    Args:
        axes: Axes to draw on.
        spots: Joints in camera coordinates; NaN = not seen.
        parent: Parent of each joint; -1 = none.
        colours: Colour of the bone to each joint; ink when left out.
        width: Width of the bones in points.
    """
    for joint in np.argsort(spots[:, 2]).tolist():
        parent_joint = int(parent[joint])
        if parent_joint < 0:
            continue
        x, y, _ = spots[[parent_joint, joint]].T
        colour = INK if colours is None else colours[joint]
        style: dict[str, Any] = {"solid_capstyle": "round", "zorder": 5}
        # A white rim shows which of two crossing bones is in front.
        axes.plot(x, y, color="white", linewidth=width + 1.6, **style)
        axes.plot(x, y, color=colour, linewidth=width, **style)


def draw_joints(axes: Any, spots: Float[Array, "joint 3"], size: float = 36.0) -> None:
    """Draw joints as small white balls."""
    ball: dict[str, Any] = {"facecolors": "white", "edgecolors": INK, "zorder": 7}
    axes.scatter(spots[:, 0], spots[:, 1], s=size, linewidths=size**0.5 / 4.3, **ball)


def draw_markers(
    axes: Any,
    spots: Float[Array, "marker 3"],
    colour: Any,
    size: float,
    rim: str = "white",
) -> None:
    """Draw markers, the nearer ones larger."""
    spots = spots[np.isfinite(spots).all(axis=1)]
    if not len(spots):
        return
    depth = spots[:, 2] - spots[:, 2].min()
    nearness = depth / max(float(depth.max()), 1e-9)
    axes.scatter(
        spots[:, 0],
        spots[:, 1],
        s=size * (0.6 + 0.8 * nearness),
        color=colour,
        edgecolors=rim,
        linewidths=0.5,
        zorder=4,
    )


def draw_covariances(
    axes: Any,
    spots: Float[Array, "joint 3"],
    covariance: Float[Array, "joint 3 3"],
    times: int,
) -> None:
    """Draw covariance ellipses around joints.

    Args:
        axes: Axes to draw on.
        spots: Joints in camera coordinates, in metres.
        covariance: Covariance of each joint in camera axes, in m^2; NaN = not drawn.
        times: Half axes of the ellipses, in standard deviations.
    """
    from matplotlib.collections import PolyCollection

    known = np.isfinite(covariance).all(axis=(1, 2)) & np.isfinite(spots).all(axis=1)
    eigenvalues, eigenvectors = np.linalg.eigh(covariance[known][:, :2, :2])
    angle = np.linspace(0.0, 2.0 * np.pi, N_ELLIPSE_CORNERS, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    half_axes = times * np.sqrt(np.maximum(eigenvalues, 0.0))
    rims = (
        np.einsum("jik,jk,ck->jci", eigenvectors, half_axes, circle)
        + spots[known, None, :2]
    )
    style: dict[str, Any] = {
        "facecolors": GREEN,
        "edgecolors": GREEN,
        "linewidths": 0.8,
    }
    # Enlarged ellipses are limited in size and may leave the axes; others may not.
    style["clip_on"] = times == 1
    axes.add_collection(PolyCollection(list(rims), alpha=0.45, zorder=3, **style))
