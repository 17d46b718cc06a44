"""Zordan2003, Figs. 2-5: filmstrips, a time lapse and close-ups, drawn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from marey.motion import Motion
from marey.papers.experiment import Drawing
from marey.plot.camera import Camera
from marey.plot.style import BLUE, FAINT, GOLD, GREY, INK

Array = np.ndarray

SIDE = 75.0
"""Degrees from where the figure looks to where it is seen from."""

THICK = {"Leg": 9.0, "Foot": 6.0, "Arm": 6.5, "Hand": 4.5, "Head": 15.0}
"""Width of bones on paper by what their names contain, in points."""


def filmstrip(motion: Motion, frames: Sequence[int], title: str) -> Drawing:
    """Return stills side by side, in the manner of Figs. 4 and 5."""
    place = motion.T_world_joint()[..., :3, 3]
    view = _beside(motion, frames[0])

    def draw(figure: Any) -> None:
        figure.set_size_inches(1.25 * len(frames) + 0.4, 3.0)
        every = figure.subplots(1, len(frames), sharey=True, squeeze=False)[0].tolist()
        for axes, frame in zip(every, frames, strict=True):
            spots = view.seen(place[frame])
            _figure(axes, motion, spots)
            _ground(axes, view.seen(place[frame, :1])[0, 0])
            axes.set_xlabel(f"{frame / motion.rate:.2f} s", fontsize=8, color=INK)
        _tidy(every)
        figure.suptitle(title, fontsize=10, color=INK)

    return draw


def time_lapse(motion: Motion, frames: Sequence[int], title: str) -> Drawing:
    """Return many postures in one picture, later ones darker, as in Fig. 2."""
    place = motion.T_world_joint()[..., :3, 3]
    view = _beside(motion, frames[0])

    def draw(figure: Any) -> None:
        figure.set_size_inches(6.0, 4.2)
        axes = figure.subplots()
        for k, frame in enumerate(frames):
            shade = 0.15 + 0.6 * k / max(len(frames) - 1, 1)
            _figure(axes, motion, view.seen(place[frame]), strength=shade)
        _ground(axes, view.seen(place[frames[0], :1])[0, 0], wide=1.2)
        first, last = frames[0] / motion.rate, frames[-1] / motion.rate
        axes.set_xlabel(f"{first:.2f} s to {last:.2f} s", fontsize=8, color=INK)
        _tidy([axes])
        figure.suptitle(title, fontsize=10, color=INK)

    return draw


def close_ups(
    motion: Motion,
    points: Float[Array, "frame marker 3"],
    virtual: Float[Array, "frame marker 3"],
    frames: Sequence[int],
    title: str,
) -> Drawing:
    """Return stills with recorded markers light and those on the body dark (Fig. 3)."""
    place = motion.T_world_joint()[..., :3, 3]
    view = _beside(motion, frames[0])

    def draw(figure: Any) -> None:
        figure.set_size_inches(2.6 * len(frames) + 0.4, 4.2)
        every = figure.subplots(1, len(frames), sharey=True, squeeze=False)[0].tolist()
        for axes, frame in zip(every, frames, strict=True):
            _figure(axes, motion, view.seen(place[frame]))
            for some, colour in ((virtual, INK), (points, GOLD)):
                spots = view.seen(some[frame])
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
        _tidy(every)
        figure.suptitle(title, fontsize=10, color=INK)

    return draw


def spaced(motion: Motion, start: float, spacing: float, count: int) -> list[int]:
    """Return frames so many seconds apart, as far as the motion goes."""
    frames = np.rint((start + spacing * np.arange(count)) * motion.rate).astype(int)
    return [int(f) for f in frames if f < motion.n_frames]


def _beside(motion: Motion, frame: int) -> Camera:
    """Return a camera at the figure's right side, a little before it."""
    x, y, _ = motion.T_world_root[frame, :3, 0]
    return Camera(float(np.degrees(np.arctan2(y, x))) - SIDE, 8.0)


def _figure(
    axes: Any, motion: Motion, spots: Float[Array, "joint 3"], strength: float = 1.0
) -> None:
    """Draw bones as rounded limbs, far ones first."""
    from matplotlib.colors import to_rgb

    skeleton = motion.skeleton
    names: Int[Array, " joint"] = np.argsort(spots[:, 2])
    depth = np.ptp(spots[:, 2]) or 1.0
    for joint in names.tolist():
        above = int(skeleton.parent[joint])
        if above < 0:
            continue
        near = (spots[joint, 2] - spots[:, 2].min()) / depth
        ink = np.array(to_rgb(BLUE)) * (0.55 + 0.45 * near)
        colour = 1.0 - strength * (1.0 - ink)
        ends = spots[[above, joint]].T
        axes.plot(
            ends[0],
            ends[1],
            color=tuple(np.clip(colour, 0.0, 1.0)),
            linewidth=_width(skeleton.names[above]),
            solid_capstyle="round",
            zorder=3 + near,
        )


def _width(name: str) -> float:
    return next((w for part, w in THICK.items() if part in name), 11.0)


def _ground(axes: Any, middle: float, wide: float = 0.55) -> None:
    axes.plot([middle - wide, middle + wide], [0.0, 0.0], color=FAINT, zorder=1)


def _tidy(every: Sequence[Any]) -> None:
    """Give all panels one scale, and take away what says nothing."""
    wide = 0.56 * max(axes.dataLim.width for axes in every)
    for axes in every:
        box = axes.dataLim
        middle = 0.5 * (box.x0 + box.x1)
        axes.set(xlim=(middle - wide, middle + wide), ylim=(-0.15, 2.1), aspect="equal")
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.xaxis.label.set_color(GREY)
