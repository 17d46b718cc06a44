"""Drawings that several experiments share; matplotlib is asked for by the caller."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from marey.papers.experiment import Drawing
from marey.plot.residual_plot import gap_panel
from marey.plot.style import BLUE, CM, GOLD, GREY, INK, RED, plain

Array = np.ndarray

PAPER = "paper's method"
"""Name of the line that shows the method as published."""

STYLES: Mapping[str, Mapping[str, Any]] = {
    PAPER: {"color": RED, "marker": "o"},
    "unbiased": {"color": GOLD, "marker": "s"},
    "ours": {"color": BLUE, "marker": "D"},
    "bound": {"color": INK, "linestyle": "--", "linewidth": 1.0},
}


def accuracy_drawing(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
) -> Drawing:
    """Return a drawing of error against range of motion, one panel per noise."""

    def draw(figure: Any) -> None:
        figure.set_size_inches(2.6 * len(panels) + 0.6, 3.2)
        every = figure.subplots(1, len(panels), sharey=True)
        for axes, (title, lines) in zip(every, panels.items(), strict=True):
            for name, points in lines.items():
                x, y = zip(*points, strict=True)
                axes.loglog(x, y, label=name, markersize=4, **STYLES[name])
            axes.set_xticks(x, [f"{value:g}" for value in x])
            axes.yaxis.set_major_formatter("{x:g}")
            axes.minorticks_off()
            axes.set_title(title, fontsize=9, color=INK)
            axes.set_xlabel("range of motion, ° rms", fontsize=8, color=INK)
            plain(axes)
        every[0].set_ylabel("error of a joint centre, mm", fontsize=8, color=INK)
        every[-1].legend(fontsize=7, frameon=False)
        figure.suptitle("Joint centres against the least error possible", fontsize=10)

    return draw


def residual_drawing(
    norm: Float[Array, " frame"], rate: float, title: str, top: float | None = None
) -> Drawing:
    """Return a drawing in the manner of OBrien2000, Figs. 6-8.

    Args:
        norm: Length of the residual vector in every frame, in metres.
        rate: Frames per second.
        title: What it is.
        top: Top of the scale in centimetres, to make several drawings alike.
    """
    limit = 1.05 * float(np.nanmax(norm)) if top is None else 0.01 * top
    times = np.arange(len(norm)) / rate

    def draw(figure: Any) -> None:
        figure.set_size_inches(8.0, 3.0)
        left, right = figure.subplots(1, 2, width_ratios=(2, 1))
        gap_panel(left, right, times, norm, limit=limit, unit=CM)
        left.set(xlabel="time, s", ylabel="residual, cm")
        right.set(xlabel="residual, cm", ylabel="share of frames")
        for axes in (left, right):
            axes.xaxis.label.set(fontsize=8, color=INK)
            axes.yaxis.label.set(fontsize=8, color=INK)
        figure.suptitle(title, fontsize=10, color=INK)

    return draw


def distance_drawing(
    distances: Mapping[str, Float[Array, " frame"]], rate: float
) -> Drawing:
    """Return a drawing in the manner of OBrien2000, Fig. 4, one row per model."""

    def draw(figure: Any) -> None:
        figure.set_size_inches(8.0, 1.7 * len(distances) + 0.6)
        every = figure.subplots(len(distances), 1, sharex=True, sharey=True)
        for axes, (name, distance) in zip(every, distances.items(), strict=True):
            cm = 100.0 * distance
            axes.plot(np.arange(len(cm)) / rate, cm, color=BLUE, linewidth=0.5)
            axes.axhline(cm.mean(), color=RED, linewidth=1.0)
            title = f"{name}: sd {cm.std():.2f} cm (paper 0.7 cm)"
            axes.set_title(title, fontsize=9, color=INK, loc="left")
            axes.set_xlim(0, len(cm) / rate)
            plain(axes)
        every[-1].set_xlabel("time, s", fontsize=8, color=INK)
        figure.supylabel("distance, cm", fontsize=8, color=INK)
        figure.suptitle("Two sensors on a stick, moved about", fontsize=10, color=INK)

    return draw


def lengths_drawing(
    names: Sequence[str],
    measured: Float[Array, " row"],
    paper: Float[Array, "row set"],
    ours: Mapping[str, Float[Array, "row set"]],
) -> Drawing:
    """Return a drawing of measured less calculated lengths, set by set."""

    def draw(figure: Any) -> None:
        groups = {"paper": paper, **ours}
        figure.set_size_inches(8.0, 3.6)
        axes = figure.subplots()
        colours = (RED, GREY, GOLD, BLUE)
        for k, ((group, calculated), colour) in enumerate(
            zip(groups.items(), colours, strict=False)
        ):
            off = measured[:, None] - calculated
            spot = np.arange(len(names))[:, None] + 0.18 * (k - 1.5)
            spot = spot + 0.012 * (np.arange(off.shape[1]) - 2.5)
            axes.plot(
                spot.T[:-1], off.T[:-1], "o", color=colour, markersize=3.5, alpha=0.8
            )
            # The last set, recorded after the sensors were moved.
            axes.plot(spot.T[-1], off.T[-1], "x", color=colour, markersize=5)
            axes.plot([], [], "o", color=colour, markersize=4, label=group)
        axes.plot([], [], "x", color=INK, markersize=5, label="set 6, sensors moved")
        axes.axhline(0.0, color=INK, linewidth=0.8)
        axes.set_xticks(range(len(names)), [n.replace(" - ", "\n") for n in names])
        axes.set_ylabel("measured less calculated, cm", fontsize=8, color=INK)
        axes.legend(fontsize=7, frameon=False, ncols=5, loc="upper center")
        axes.set_ylim(-1.3, 1.0)
        plain(axes)
        figure.suptitle("Lengths of the wooden linkage", fontsize=10, color=INK)

    return draw


def people_drawing(groups: Mapping[str, Mapping[str, Sequence[float]]]) -> Drawing:
    """Return a drawing of the errors of many people around the paper's one."""

    def draw(figure: Any) -> None:
        figure.set_size_inches(8.0, 3.2)
        every = figure.subplots(1, len(groups), sharey=True)
        rng = np.random.default_rng(0)
        for axes, (title, found) in zip(every, groups.items(), strict=True):
            theirs, *ours = found.items()
            for k, (_, values) in enumerate(ours):
                aside = k + rng.uniform(-0.14, 0.14, len(values))
                axes.plot(aside, values, "o", color=BLUE, markersize=3, alpha=0.5)
                axes.plot(
                    [k - 0.25, k + 0.25],
                    [np.median(values)] * 2,
                    color=INK,
                    linewidth=1.5,
                )
            axes.axhline(theirs[1][0], color=RED, linewidth=1.2)
            axes.annotate(
                "paper",
                (0.5, theirs[1][0]),
                xycoords=("axes fraction", "data"),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                color=RED,
                fontsize=8,
            )
            axes.set_xticks(range(len(ours)), [name for name, _ in ours])
            axes.set_title(title, fontsize=9, color=INK)
            axes.set_xlabel("skin slides by, rms", fontsize=8, color=INK)
            plain(axes)
        every[0].set_ylim(0.0, 1.1 * every[0].get_ylim()[1])
        every[0].set_ylabel("limb lengths off by, cm rms", fontsize=8, color=INK)
        figure.suptitle("Limb lengths of people, one dot each", fontsize=10, color=INK)

    return draw


def rates_drawing(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
) -> Drawing:
    """Return a drawing of how often trees are right as a sensor gets loose."""
    colours = {"residual": RED, "normalised": GREY, "mediated": GOLD, "auto": BLUE}
    names = {"residual": PAPER, "auto": "ours"}

    def draw(figure: Any) -> None:
        figure.set_size_inches(8.0, 3.0)
        every = figure.subplots(1, len(panels), sharey=True)
        for axes, (title, lines) in zip(every, panels.items(), strict=True):
            for weight, points in lines.items():
                x, y = zip(*points, strict=True)
                style = {"color": colours[weight], "marker": "o", "markersize": 4}
                axes.plot(x, y, label=names.get(weight, weight), **style)
            axes.set_xticks(x, [f"{value:g}" for value in x])
            axes.set_title(title, fontsize=9, color=INK)
            axes.set_xlabel("pelvis sensor slides by, mm rms", fontsize=8, color=INK)
            axes.set_ylim(-3, 103)
            plain(axes)
        every[0].set_ylabel("trees right, %", fontsize=8, color=INK)
        every[-1].legend(fontsize=7, frameon=False)
        figure.suptitle("How often the hierarchy is found", fontsize=10, color=INK)

    return draw
