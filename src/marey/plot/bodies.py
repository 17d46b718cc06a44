"""Bones, markers and doubts as a camera sees them, drawn on axes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.plot.style import GREEN, INK

Array = np.ndarray

CORNERS = 48
"""Corners of the polygon that stands for an ellipse."""


def draw_bones(
    axes: Any,
    spots: Float[Array, "joint 3"],
    parent: Int[Array, " joint"],
    colours: Sequence[str] | None = None,
    width: float = 3.2,
) -> None:
    """Draw bones from every joint to its parent, far ones first.

    Args:
        axes: Where to draw.
        spots: Joints as a camera sees them; NaN = not seen.
        parent: Parent of each joint; -1 = none.
        colours: Colour of the bone to each joint; ink when left out.
        width: Width of the bones in points.
    """
    for joint in np.argsort(spots[:, 2]).tolist():
        above = int(parent[joint])
        if above < 0:
            continue
        x, y, _ = spots[[above, joint]].T
        colour = INK if colours is None else colours[joint]
        style: dict[str, Any] = {"solid_capstyle": "round", "zorder": 5}
        # A rim of the paper's white tells which of two crossing bones is in front.
        axes.plot(x, y, color="white", linewidth=width + 1.6, **style)
        axes.plot(x, y, color=colour, linewidth=width, **style)


def draw_joints(axes: Any, spots: Float[Array, "joint 3"], size: float = 36.0) -> None:
    """Draw joints as small white balls."""
    ball: dict[str, Any] = {"facecolors": "white", "edgecolors": INK, "zorder": 7}
    axes.scatter(spots[:, 0], spots[:, 1], s=size, linewidths=size**0.5 / 4.3, **ball)


def draw_dots(
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
    near = depth / max(float(depth.max()), 1e-9)
    axes.scatter(
        spots[:, 0],
        spots[:, 1],
        s=size * (0.6 + 0.8 * near),
        color=colour,
        edgecolors=rim,
        linewidths=0.5,
        zorder=4,
    )


def draw_doubts(
    axes: Any,
    spots: Float[Array, "joint 3"],
    covariance: Float[Array, "joint 3 3"],
    times: int,
) -> None:
    """Draw ellipses of standard deviations, enlarged, around what they are of.

    Args:
        axes: Where to draw.
        spots: Joints as a camera sees them, in metres.
        covariance: Of each spot, in the camera's axes; NaN = not known, not drawn.
        times: How many standard deviations the ellipses reach.
    """
    from matplotlib.collections import PolyCollection

    known = _known(spots, covariance)
    value, way = np.linalg.eigh(covariance[known][:, :2, :2])
    turn = np.linspace(0.0, 2.0 * np.pi, CORNERS, endpoint=False)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    reach = times * np.sqrt(np.maximum(value, 0.0))
    rims = np.einsum("jik,jk,ck->jci", way, reach, circle) + spots[known, None, :2]
    style: dict[str, Any] = {
        "facecolors": GREEN,
        "edgecolors": GREEN,
        "linewidths": 0.8,
    }
    # Enlarged ones are no larger than is good and may leave their axes; others may not.
    style["clip_on"] = times == 1
    axes.add_collection(PolyCollection(list(rims), alpha=0.45, zorder=3, **style))


def _known(
    spots: Float[Array, "joint 3"], covariance: Float[Array, "joint 3 3"]
) -> Bool[Array, " joint"]:
    whole = np.isfinite(covariance).all(axis=(1, 2))
    return np.asarray(whole & np.isfinite(spots).all(axis=1))
