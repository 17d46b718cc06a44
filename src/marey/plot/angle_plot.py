"""Joint angles over time, or over the gait cycle, with their standard deviations."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from marey.anatomy import names as vrm
from marey.clinical import Gait, JointAngles
from marey.errors import DataError
from marey.numerics import Array, Float
from marey.plot import style
from marey.plot.style import GREY

if TYPE_CHECKING:
    import matplotlib.figure


USUAL = ("hip_flexion", "knee_flexion", "ankle_dorsiflexion")
"""Angles that are drawn unless others are asked for, one panel each."""

SIDES = {vrm.LEFT: style.LEFT_COLOUR, vrm.RIGHT: style.RIGHT_COLOUR}
N_COLUMNS = 3
BAND_OPACITY = 0.2


@style.with_style
def angles(
    angles: JointAngles, names: Sequence[str] = USUAL, *, gait: Gait | None = None
) -> "matplotlib.figure.Figure":
    """Return joint angles over time with a band of one standard deviation.

    With the steps of a walk, the mean over the gait cycles of each side, from one
    initial contact to the next, with one standard deviation between cycles.

    Args:
        angles: What `marey.angles` returned.
        names: Angles without their side, "knee_flexion", for both sides in one panel;
            or with it, "left_knee_flexion"; or of the trunk, "pelvis_anterior_tilt".
        gait: What `marey.gait` returned for the same motion.

    Raises:
        DataError: If there is no such angle.
        MissingExtraError: If matplotlib is not installed.
    """
    panels = {name: _curves(angles, name) for name in names}
    rows = -(-len(panels) // N_COLUMNS)
    figure = style.new_figure(2.4 * min(len(panels), N_COLUMNS), 1.9 * rows + 0.3)
    grid = figure.subplots(rows, min(len(panels), N_COLUMNS), squeeze=False)
    for axes in grid.ravel()[len(panels) :]:
        axes.set_visible(False)
    for axes, (name, curves) in zip(grid.ravel(), panels.items(), strict=False):
        for full_name, side in curves:
            if gait is None:
                _draw_time(axes, angles, full_name, side)
            else:
                _draw_cycle(axes, angles, full_name, side, gait)
        axes.axhline(0.0, color=GREY, linewidth=0.6, zorder=0)
        axes.set_title(style.escape_name(name.replace("_", " ")))
        axes.set_xlabel("time, s" if gait is None else "gait cycle, %")
        style.simplify_axes(axes, grid="y")
    grid[0, 0].set_ylabel("degrees")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _curves(angles: JointAngles, name: str) -> list[tuple[str, str]]:
    """Return the full names of the curves of a panel, and their sides.

    Raises:
        DataError: If there is none.
    """
    if name in angles.names:
        side = next((s for s in SIDES if name.startswith(s.lower())), "")
        return [(name, side)]
    both = [(f"{side.lower()}_{name}", side) for side in SIDES]
    found = [(full, side) for full, side in both if full in angles.names]
    if not found:
        known = ", ".join(angles.names)
        raise DataError("angle", found=repr(name), needed=f"one of {known}")
    return found


def _draw_time(axes: Any, angles: JointAngles, name: str, side: str) -> None:
    sd = angles.sd[:, angles.names.index(name)]
    _draw(axes, angles.times, angles[name], sd, side)


def _draw_cycle(
    axes: Any, angles: JointAngles, name: str, side: str, gait: Gait
) -> None:
    """Draw the mean cycle, and when the foot leaves the ground."""
    foot = side or vrm.LEFT
    mean, sd, count = gait.mean_cycle(angles, name, foot)
    label = f"{side or foot}, {count} cycles"
    _draw(axes, np.linspace(0.0, 100.0, len(mean)), mean, sd, side, label)
    starts = gait.initial_contacts(foot, float(angles.times[0]))
    ends = {plant.start: plant.end for plant in gait.plants if plant.side == foot}
    shares = [(ends[a] - a) / (b - a) for a, b in pairwise(starts)]
    if shares:
        toe_off = 100.0 * float(np.mean(shares))
        axes.axvline(toe_off, color=SIDES[foot], linewidth=0.8, linestyle=":")


def _draw(
    axes: Any,
    x: Float[Array, " point"],
    y: Float[Array, " point"],
    sd: Float[Array, " point"],
    side: str,
    label: str = "",
) -> None:
    """Draw a curve with a band of one standard deviation, where it is finite."""
    colour = SIDES.get(side, GREY)
    known = np.where(np.isfinite(sd), sd, 0.0)
    axes.fill_between(
        x, y - known, y + known, color=colour, alpha=BAND_OPACITY, linewidth=0.0
    )
    axes.plot(x, y, color=colour, linewidth=1.2, label=label or side or None)
