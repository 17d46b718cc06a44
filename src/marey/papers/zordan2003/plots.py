"""Zordan2003, Figs. 2-5: filmstrips, a time lapse and close-ups, drawn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from marey.motion import Motion
from marey.papers.experiment import Drawing
from marey.plot.camera import Camera
from marey.plot.style import BLUE, FAINT, GOLD, GREY, INK

Array = np.ndarray

SIDE_VIEW_DEG = 75.0
"""Angle between the facing direction of the figure and the camera, in degrees."""

BONE_WIDTHS = {"Leg": 9.0, "Foot": 6.0, "Arm": 6.5, "Hand": 4.5, "Head": 15.0}
"""Width of bones in points, by a part of their name."""


def filmstrip(motion: Motion, frames: Sequence[int], title: str) -> Drawing:
    """Return a drawing of stills side by side, in the manner of Figs. 4 and 5."""
    positions = motion.T_world_joint()[..., :3, 3]
    view = _side_camera(motion, frames[0])

    def draw(figure: Any) -> None:
        figure.set_size_inches(1.25 * len(frames) + 0.4, 3.0)
        every = figure.subplots(1, len(frames), sharey=True, squeeze=False)[0].tolist()
        for axes, frame in zip(every, frames, strict=True):
            spots = view.project(positions[frame])
            _draw_limbs(axes, motion, spots)
            _draw_ground(axes, view.project(positions[frame, :1])[0, 0])
            axes.set_xlabel(f"{frame / motion.rate:.2f} s", fontsize=8, color=INK)
        _equalise_scales(every)
        figure.suptitle(title, fontsize=10, color=INK)

    return draw


def time_lapse(motion: Motion, frames: Sequence[int], title: str) -> Drawing:
    """Return a drawing of postures in one panel, later ones darker, as in Fig. 2."""
    positions = motion.T_world_joint()[..., :3, 3]
    view = _side_camera(motion, frames[0])

    def draw(figure: Any) -> None:
        figure.set_size_inches(6.0, 4.2)
        axes = figure.subplots()
        for k, frame in enumerate(frames):
            shade = 0.15 + 0.6 * k / max(len(frames) - 1, 1)
            _draw_limbs(axes, motion, view.project(positions[frame]), strength=shade)
        _draw_ground(axes, view.project(positions[frames[0], :1])[0, 0], half_width=1.2)
        first, last = frames[0] / motion.rate, frames[-1] / motion.rate
        axes.set_xlabel(f"{first:.2f} s to {last:.2f} s", fontsize=8, color=INK)
        _equalise_scales([axes])
        figure.suptitle(title, fontsize=10, color=INK)

    return draw


def close_ups(
    motion: Motion,
    points: Float[Array, "frame marker 3"],
    frames: Sequence[int],
    title: str,
) -> Drawing:
    """Return stills with recorded markers gold and those on the body dark (Fig. 3)."""
    positions = motion.T_world_joint()[..., :3, 3]
    on_body = motion.marker_points()
    view = _side_camera(motion, frames[0])

    def draw(figure: Any) -> None:
        figure.set_size_inches(2.6 * len(frames) + 0.4, 4.2)
        every = figure.subplots(1, len(frames), sharey=True, squeeze=False)[0].tolist()
        for axes, frame in zip(every, frames, strict=True):
            _draw_limbs(axes, motion, view.project(positions[frame]))
            for markers, colour in ((on_body, INK), (points, GOLD)):
                spots = view.project(markers[frame])
                axes.scatter(
                    spots[:, 0],
                    spots[:, 1],
                    s=14,
                    color=colour,
                    edgecolors="white",
                    linewidths=0.4,
                    zorder=9,
                )
            axes.set_xlabel(f"{frame / motion.rate:.2f} s", fontsize=8, color=INK)
        _equalise_scales(every)
        figure.suptitle(title, fontsize=10, color=INK)

    return draw


def evenly_spaced_frames(
    motion: Motion, start: float, spacing: float, count: int
) -> list[int]:
    """Return frame numbers at equal spacing in seconds, up to the end of the motion."""
    frames = np.rint((start + spacing * np.arange(count)) * motion.rate).astype(int)
    return [int(f) for f in frames if f < motion.n_frames]


def _side_camera(motion: Motion, frame: int) -> Camera:
    """Return a camera at the figure's right side, a little in front of it."""
    x, y, _ = motion.T_world_root[frame, :3, 0]
    return Camera(float(np.degrees(np.arctan2(y, x))) - SIDE_VIEW_DEG, 8.0)


def _draw_limbs(
    axes: Any, motion: Motion, spots: Float[Array, "joint 3"], strength: float = 1.0
) -> None:
    """Draw bones as rounded limbs, far ones first."""
    from matplotlib.colors import to_rgb

    skeleton = motion.skeleton
    depth = np.ptp(spots[:, 2]) or 1.0
    for joint in np.argsort(spots[:, 2]).tolist():
        parent = int(skeleton.parent[joint])
        if parent < 0:
            continue
        nearness = (spots[joint, 2] - spots[:, 2].min()) / depth
        ink = np.array(to_rgb(BLUE)) * (0.55 + 0.45 * nearness)
        colour = 1.0 - strength * (1.0 - ink)
        ends = spots[[parent, joint]].T
        axes.plot(
            ends[0],
            ends[1],
            color=tuple(np.clip(colour, 0.0, 1.0)),
            linewidth=_width(skeleton.names[parent]),
            solid_capstyle="round",
            zorder=3 + nearness,
        )


def _width(name: str) -> float:
    return next((w for part, w in BONE_WIDTHS.items() if part in name), 11.0)


def _draw_ground(axes: Any, middle: float, half_width: float = 0.55) -> None:
    axes.plot(
        [middle - half_width, middle + half_width], [0.0, 0.0], color=FAINT, zorder=1
    )


def _equalise_scales(every: Sequence[Any]) -> None:
    """Give all panels one scale and remove their ticks and frames."""
    half_width = 0.56 * max(axes.dataLim.width for axes in every)
    for axes in every:
        box = axes.dataLim
        middle = 0.5 * (box.x0 + box.x1)
        axes.set(
            xlim=(middle - half_width, middle + half_width),
            ylim=(-0.15, 2.1),
            aspect="equal",
        )
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        axes.xaxis.label.set_color(GREY)
