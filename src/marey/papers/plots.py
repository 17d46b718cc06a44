"""Drawings that several experiments share; the caller provides the figure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from marey.papers.experiment import Drawing
from marey.plot.residual_plot import residual_panel
from marey.plot.style import BLUE, CM, GOLD, GREY, INK, RED, simplify_axes

Array = np.ndarray

Lines = Mapping[str, Sequence[tuple[float, float]]]
"""Points (x, y) of several lines, by the name of the line."""

Styles = Mapping[str, Mapping[str, Any]]
"""Options of `matplotlib.axes.Axes.plot`, by the name of the line."""

PAPER = "paper's method"
"""Name of the line that shows the method as published."""

ACCURACY_STYLES: Styles = {
    PAPER: {"color": RED, "marker": "o"},
    "unbiased": {"color": GOLD, "marker": "s"},
    "ours": {"color": BLUE, "marker": "D"},
    "bound": {"color": INK, "linestyle": "--", "linewidth": 1.0},
}

TREE_STYLES: Styles = {
    "residual": {"color": RED, "marker": "o"},
    "normalised": {"color": GREY, "marker": "o"},
    "mediated": {"color": GOLD, "marker": "o"},
    "auto": {"color": BLUE, "marker": "o"},
}


def label_axes(axes: Any, x: str = "", y: str = "", title: str = "") -> None:
    """Write labels and title on axes and remove what shows no data."""
    axes.set_xlabel(x, fontsize=8, color=INK)
    axes.set_ylabel(y, fontsize=8, color=INK)
    if title:
        axes.set_title(title, fontsize=9, color=INK)
    simplify_axes(axes)


def make_panels(figure: Any, n: int, size: tuple[float, float], title: str) -> Any:
    """Return axes side by side that share the y axis, on a figure with a title."""
    figure.set_size_inches(*size)
    figure.suptitle(title, fontsize=10, color=INK)
    return figure.subplots(1, n, sharey=True, squeeze=False)[0]


def line_drawing(
    title: str,
    panels: Mapping[str, Lines],
    x_label: str,
    y_label: str,
    styles: Styles,
    *,
    names: Mapping[str, str] | None = None,
    log: bool = True,
    y_limits: tuple[float, float] | None = None,
    legend_columns: int = 0,
) -> Drawing:
    """Return a drawing of lines, one panel per setting, all on one y axis.

    Args:
        title: Title of the figure.
        panels: Lines of each panel, by the title of the panel.
        x_label: Quantity and unit of the x axis.
        y_label: Quantity and unit of the y axis.
        styles: Style of each line.
        names: Names of lines in the legend, where they differ.
        log: Whether both axes are logarithmic.
        y_limits: Ends of the y axis; as the data need when left out.
        legend_columns: Columns of a legend below all panels; 0 = a legend in the last
            panel.
    """

    def draw(figure: Any) -> None:
        size = (2.7 * len(panels) + 0.8, 3.6 if legend_columns else 3.2)
        every = make_panels(figure, len(panels), size, title)
        for axes, (panel, lines) in zip(every, panels.items(), strict=True):
            for name, points in lines.items():
                x, y = zip(*points, strict=True)
                plot = axes.loglog if log else axes.plot
                style = {"markersize": 4, **styles[name]}
                plot(x, y, label=(names or {}).get(name, name), **style)
            axes.set_xticks(x, [f"{value:.3g}" for value in x])
            axes.yaxis.set_major_formatter("{x:g}")
            axes.minorticks_off()
            axes.set_ylim(y_limits)
            label_axes(axes, x_label, "" if axes is not every[0] else y_label, panel)
        if legend_columns:
            handles = every[0].get_legend_handles_labels()
            figure.legend(
                *handles,
                fontsize=7,
                frameon=False,
                ncols=legend_columns,
                loc="outside lower center",
            )
        else:
            every[-1].legend(fontsize=7, frameon=False)

    return draw


def accuracy_drawing(panels: Mapping[str, Lines]) -> Drawing:
    """Return a drawing of error against range of motion, one panel per noise."""
    return line_drawing(
        "Joint centres against the least error possible",
        panels,
        "range of motion, ° rms",
        "error of a joint centre, mm",
        ACCURACY_STYLES,
    )


def rates_drawing(panels: Mapping[str, Lines]) -> Drawing:
    """Return a drawing of the rate of true trees against the slide of a sensor."""
    return line_drawing(
        "Rate of true hierarchies",
        panels,
        "slide of the pelvis sensor, mm rms",
        "true trees, %",
        TREE_STYLES,
        names={"residual": PAPER, "auto": "ours"},
        log=False,
        y_limits=(-3.0, 103.0),
    )


def residual_drawing(
    norm: Float[Array, " frame"], rate: float, title: str, top: float | None = None
) -> Drawing:
    """Return a drawing of a joint's residual in the manner of OBrien2000, Figs. 6-8.

    Args:
        norm: Length of the residual vector in every frame, in metres.
        rate: Frames per second.
        title: Title of the figure.
        top: Top of the scale in centimetres, for several drawings on one scale.
    """
    limit = 1.05 * float(np.nanmax(norm)) if top is None else 0.01 * top
    times = np.arange(len(norm)) / rate

    def draw(figure: Any) -> None:
        figure.set_size_inches(8.0, 3.0)
        left, right = figure.subplots(1, 2, width_ratios=(2, 1))
        residual_panel(left, right, times, norm, limit=limit, unit=CM)
        label_axes(left, "time, s", "residual, cm")
        label_axes(right, "residual, cm", "share of frames")
        figure.suptitle(title, fontsize=10, color=INK)

    return draw


def distance_drawing(
    distances: Mapping[str, Float[Array, " frame"]], rate: float
) -> Drawing:
    """Return a drawing in the manner of OBrien2000, Fig. 4, one row per noise model."""

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
            simplify_axes(axes)
        every[-1].set_xlabel("time, s", fontsize=8, color=INK)
        figure.supylabel("distance, cm", fontsize=8, color=INK)
        figure.suptitle("Two sensors on a moving stick", fontsize=10, color=INK)

    return draw


def lengths_drawing(
    names: Sequence[str],
    measured: Float[Array, " row"],
    paper: Float[Array, "row set"],
    ours: Mapping[str, Float[Array, "row set"]],
) -> Drawing:
    """Return a drawing of measured minus calculated lengths, set by set."""

    def draw(figure: Any) -> None:
        groups = {"paper": paper, **ours}
        (axes,) = make_panels(figure, 1, (8.0, 3.6), "Lengths of the wooden linkage")
        colours = (RED, GREY, GOLD, BLUE)
        for k, ((group, calculated), colour) in enumerate(
            zip(groups.items(), colours, strict=False)
        ):
            error = (measured[:, None] - calculated).T
            x = np.arange(len(names))[:, None] + 0.18 * (k - 1.5)
            x = (x + 0.012 * (np.arange(len(error)) - 2.5)).T
            axes.plot(x[:-1], error[:-1], "o", color=colour, markersize=3.5, alpha=0.8)
            # The last set was recorded after the sensors were moved.
            axes.plot(x[-1], error[-1], "x", color=colour, markersize=5)
            axes.plot([], [], "o", color=colour, markersize=4, label=group)
        axes.plot([], [], "x", color=INK, markersize=5, label="set 6, sensors moved")
        axes.axhline(0.0, color=INK, linewidth=0.8)
        axes.set_xticks(range(len(names)), [n.replace(" - ", "\n") for n in names])
        axes.legend(fontsize=7, frameon=False, ncols=5, loc="upper center")
        axes.set_ylim(-1.3, 1.0)
        label_axes(axes, "", "measured minus calculated, cm")

    return draw


def people_drawing(groups: Mapping[str, Mapping[str, Sequence[float]]]) -> Drawing:
    """Return a drawing of the errors of many people beside the error of the paper.

    Args:
        groups: For each table of the paper: first its error, then the errors of
            generated people by the slide of their skin; in centimetres rms.
    """

    def draw(figure: Any) -> None:
        title = "Limb lengths of people, one dot per person"
        every = make_panels(figure, len(groups), (8.0, 3.2), title)
        rng = np.random.default_rng(0)
        for axes, (group, errors) in zip(every, groups.items(), strict=True):
            (_, (published,)), *ours = errors.items()
            for k, (_, values) in enumerate(ours):
                x = k + rng.uniform(-0.14, 0.14, len(values))
                axes.plot(x, values, "o", color=BLUE, markersize=3, alpha=0.5)
                middle = [np.median(values)] * 2
                axes.plot([k - 0.25, k + 0.25], middle, color=INK, linewidth=1.5)
            axes.axhline(published, color=RED, linewidth=1.2)
            axes.annotate(
                "paper",
                (0.5, published),
                xycoords=("axes fraction", "data"),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                color=RED,
                fontsize=8,
            )
            axes.set_xticks(range(len(ours)), [name for name, _ in ours])
            label_axes(axes, "slide of the skin, rms", "", group)
        every[0].set_ylim(0.0, 1.1 * every[0].get_ylim()[1])
        every[0].set_ylabel("error of limb lengths, cm rms", fontsize=8, color=INK)

    return draw
