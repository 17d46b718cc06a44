"""Stills of a motion: filmstrips, time lapses and close-ups, with limbs of a body."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import marey
from marey.numerics import Array, Float
from marey.papers.frame import Drawing
from marey.papers.plots import equalise_scales, make_panels
from marey.plot.primitives import Camera
from marey.plot.style import BLUE, FAINT, GOLD, GREY, INK

SIDE_VIEW_DEG = 75.0
"""Angle between the facing direction of the figure and the camera, in degrees."""

BONE_WIDTHS = {"Leg": 9.0, "Foot": 6.0, "Arm": 6.5, "Hand": 4.5, "Head": 15.0}
"""Width of bones in points, by a part of their name."""


def evenly_spaced_frames(
    motion: marey.Motion, start: float, spacing: float, count: int
) -> list[int]:
    """Return frame numbers at equal spacing in seconds, up to the end of the motion."""
    frames = np.rint((start + spacing * np.arange(count)) * motion.rate).astype(int)
    return [int(f) for f in frames if f < motion.n_frames]


def side_view(motion: marey.Motion, frame: int) -> Camera:
    """Return a camera at the figure's right side, a little in front of it."""
    x, y, _ = motion.T_world_root[frame, :3, 0]
    return Camera(float(np.degrees(np.arctan2(y, x))) - SIDE_VIEW_DEG, 8.0)


def stills(
    motion: marey.Motion,
    panels: Sequence[Sequence[int]],
    title: str,
    size: tuple[float, float],
    points: Float[Array, "frame marker 3"] | None = None,
) -> Drawing:
    """Return a drawing of postures side by side.

    Args:
        motion: The motion.
        panels: Frames of each panel. Of several frames the later ones are darker.
        title: Title of the figure.
        size: Width of one panel and height, in inches.
        points: Recorded markers, drawn gold beside those on the body; if any.
    """
    positions = motion.T_world_joint()[..., :3, 3]
    view = side_view(motion, panels[0][0])
    markers = (
        ((motion.marker_points(), INK), (points, GOLD)) if points is not None else ()
    )
    dots: dict[str, Any] = {"s": 14, "edgecolors": "white", "linewidths": 0.4}

    def draw(figure: Any) -> None:
        inches = (size[0] * len(panels) + 0.4, size[1])
        every = make_panels(figure, len(panels), inches, title, sharey=True).tolist()
        for axes, frames in zip(every, panels, strict=True):
            postures = [view.project(positions[frame]) for frame in frames]
            _draw_postures(axes, motion.skeleton, postures)
            for paths, colour in markers:
                spots = view.project(paths[frames[0]])
                axes.scatter(spots[:, 0], spots[:, 1], color=colour, zorder=9, **dots)
            middle = view.project(positions[frames[0], :1])[0, 0]
            reach = 0.55 if len(frames) == 1 else 1.2
            ground = [middle - reach, middle + reach]
            axes.plot(ground, [0.0, 0.0], color=FAINT, zorder=1)
            ends = dict.fromkeys((frames[0], frames[-1]))
            times = " to ".join(f"{frame / motion.rate:.2f} s" for frame in ends)
            axes.set_xlabel(times, fontsize=8, color=GREY)
        equalise_scales(every, 0.56, (-0.15, 2.1))

    return draw


def _draw_postures(
    axes: Any, skeleton: marey.Skeleton, postures: Sequence[Float[Array, "joint 3"]]
) -> None:
    """Draw postures on each other, the later ones darker."""
    for k, spots in enumerate(postures, start=1):
        fade = 1.0 if len(postures) == 1 else 0.15 + 0.6 * k / len(postures)
        draw_limbs(axes, skeleton, spots, fade)


def filmstrip(motion: marey.Motion, frames: Sequence[int], title: str) -> Drawing:
    """Return a drawing of stills side by side, one posture in each."""
    return stills(motion, [[frame] for frame in frames], title, (1.25, 3.0))


def draw_limbs(
    axes: Any,
    skeleton: marey.Skeleton,
    spots: Float[Array, "joint 3"],
    strength: float = 1.0,
) -> None:
    """Draw bones as rounded limbs, far ones first.

    Args:
        axes: Axes to draw on.
        skeleton: The skeleton.
        spots: Joints in camera coordinates.
        strength: 1 for full colour; lower is paler.
    """
    from matplotlib.colors import to_rgb

    depth = np.ptp(spots[:, 2]) or 1.0
    for joint in np.argsort(spots[:, 2]).tolist():
        parent = int(skeleton.parent[joint])
        if parent < 0:
            continue
        nearness = (spots[joint, 2] - spots[:, 2].min()) / depth
        ink = np.array(to_rgb(BLUE)) * (0.55 + 0.45 * nearness)
        colour = 1.0 - strength * (1.0 - ink)
        widths = (
            w for part, w in BONE_WIDTHS.items() if part in skeleton.names[parent]
        )
        axes.plot(
            *spots[[parent, joint], :2].T,
            color=tuple(np.clip(colour, 0.0, 1.0)),
            linewidth=next(widths, 11.0),
            solid_capstyle="round",
            zorder=3 + nearness,
        )
