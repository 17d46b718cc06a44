"""Drawings of Bodenheimer1997: lengths with tags, and curves of a shoulder."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from marey.papers.experiment import Drawing
from marey.plot.style import BLUE, GOLD, GREY, INK, RED, plain

Array = np.ndarray

AXES = {"x": RED, "y": GOLD, "z": BLUE}


def lengths_drawing(
    x: Float[Array, " frame"], tags: Bool[Array, " frame"], mean: float, robust: float
) -> Drawing:
    """Return a drawing of lengths in centimetres over frames, with the wild ones."""

    def draw(figure: Any) -> None:
        figure.set_size_inches(8.0, 3.0)
        left, right = figure.subplots(1, 2, width_ratios=(2, 1))
        frames = np.arange(len(x))
        left.plot(frames, x, color=GREY, linewidth=0.5)
        left.plot(frames[tags], x[tags], "o", color=RED, markersize=4, label="tagged")
        left.set_yscale("log")
        left.set(xlabel="frame", ylabel="length, cm")
        left.yaxis.set_major_formatter("{x:g}")
        left.legend(fontsize=7, frameon=False)
        near = x[~tags]
        right.hist(near, bins=30, color=GREY, edgecolor="white", linewidth=0.3)
        for value, colour, name in ((mean, RED, "mean"), (robust, BLUE, "biweight")):
            right.axvline(value, color=colour, linewidth=1.2)
            right.annotate(
                f"{name} {value:.1f} ",
                (value, 0.96 if name == "mean" else 0.88),
                xycoords=("data", "axes fraction"),
                ha="right",
                color=colour,
                fontsize=8,
            )
        right.set_ylim(0, 1.2 * right.get_ylim()[1])
        right.set(xlabel="length, cm", ylabel="frames")
        for axes in (left, right):
            plain(axes)
            axes.xaxis.label.set(fontsize=8, color=INK)
            axes.yaxis.label.set(fontsize=8, color=INK)
        figure.suptitle("Collarbone to shoulder, six of 508 frames wild", fontsize=10)

    return draw


def curves_drawing(
    curves: Mapping[str, Float[Array, "frame 3"]], rate: float, title: str
) -> Drawing:
    """Return a drawing of a joint's angles over time, one panel per motion."""

    def draw(figure: Any) -> None:
        figure.set_size_inches(2.9 * len(curves) + 0.6, 3.0)
        every = figure.subplots(1, len(curves), sharey=True, squeeze=False)[0]
        for axes, (name, angles) in zip(every, curves.items(), strict=True):
            for (axis, colour), values in zip(AXES.items(), angles.T, strict=True):
                time = np.arange(len(values)) / rate
                axes.plot(time, np.degrees(values), color=colour, label=axis)
            axes.set_title(name, fontsize=9, color=INK)
            axes.set_xlabel("time, s", fontsize=8, color=INK)
            plain(axes)
        every[0].set_ylabel("angle, °", fontsize=8, color=INK)
        every[-1].legend(fontsize=7, frameon=False, ncols=3)
        figure.suptitle(title, fontsize=10, color=INK)

    return draw


def gaps_drawing(gaps: Mapping[str, Float[Array, " frame"]], rate: float) -> Drawing:
    """Return a drawing of how far joints are apart over time, in centimetres."""

    def draw(figure: Any) -> None:
        figure.set_size_inches(7.0, 3.0)
        axes = figure.subplots()
        for (name, gap), colour in zip(gaps.items(), (RED, BLUE, GOLD), strict=False):
            time = np.arange(len(gap)) / rate
            axes.plot(time, 100.0 * gap, color=colour, linewidth=0.8, label=name)
        axes.set_xlabel("time, s", fontsize=8, color=INK)
        axes.set_ylabel("gap, cm", fontsize=8, color=INK)
        axes.legend(fontsize=7, frameon=False)
        plain(axes)
        figure.suptitle("A sensor moves, and its joint comes apart", fontsize=10)

    return draw
