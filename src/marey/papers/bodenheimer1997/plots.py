"""Drawings of Bodenheimer1997: lengths with outliers, angles and residuals."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from marey.papers.experiment import Drawing
from marey.papers.plots import label_axes, make_panels
from marey.plot.style import BLUE, GOLD, GREY, RED

Array = np.ndarray

AXES = {"x": RED, "y": GOLD, "z": BLUE}


def lengths_drawing(
    x: Float[Array, " frame"], tags: Bool[Array, " frame"], mean: float, robust: float
) -> Drawing:
    """Return a drawing of lengths in centimetres over frames, with the outliers."""

    def draw(figure: Any) -> None:
        figure.set_size_inches(8.0, 3.0)
        left, right = figure.subplots(1, 2, width_ratios=(2, 1))
        frames = np.arange(len(x))
        left.plot(frames, x, color=GREY, linewidth=0.5)
        left.plot(frames[tags], x[tags], "o", color=RED, markersize=4, label="tagged")
        left.set_yscale("log")
        label_axes(left, "frame", "length, cm")
        left.yaxis.set_major_formatter("{x:g}")
        left.legend(fontsize=7, frameon=False)
        right.hist(x[~tags], bins=30, color=GREY, edgecolor="white", linewidth=0.3)
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
        label_axes(right, "length, cm", "frames")
        figure.suptitle(
            "Collarbone to shoulder, six of 508 frames outliers", fontsize=10
        )

    return draw


def curves_drawing(
    curves: Mapping[str, Float[Array, "frame 3"]], rate: float, title: str
) -> Drawing:
    """Return a drawing of a joint's angles over time, one panel per motion."""

    def draw(figure: Any) -> None:
        size = (2.9 * len(curves) + 0.6, 3.0)
        every = make_panels(figure, len(curves), size, title)
        for axes, (name, angles) in zip(every, curves.items(), strict=True):
            for (axis, colour), values in zip(AXES.items(), angles.T, strict=True):
                time = np.arange(len(values)) / rate
                axes.plot(time, np.degrees(values), color=colour, label=axis)
            y_label = "angle, °" if axes is every[0] else ""
            label_axes(axes, "time, s", y_label, name)
        every[-1].legend(fontsize=7, frameon=False, ncols=3)

    return draw


def residuals_drawing(
    residuals: Mapping[str, Float[Array, " frame"]], rate: float
) -> Drawing:
    """Return a drawing of the residuals of joints over time, in centimetres."""

    def draw(figure: Any) -> None:
        title = "A sensor slips, and the residual of its joint grows"
        (axes,) = make_panels(figure, 1, (7.0, 3.0), title)
        colours = (RED, BLUE, GOLD)
        for (name, values), colour in zip(residuals.items(), colours, strict=False):
            time = np.arange(len(values)) / rate
            axes.plot(time, 100.0 * values, color=colour, linewidth=0.8, label=name)
        axes.legend(fontsize=7, frameon=False)
        label_axes(axes, "time, s", "residual, cm")

    return draw
