"""Drawings that several experiments share; the caller provides the figure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from marey.numerics import Array, Float
from marey.papers.frame import Drawing
from marey.plot import residual_panel
from marey.plot.style import BLUE, CM, INK, RED, simplify_axes

Style = Mapping[str, Any]
"""Options of `matplotlib.axes.Axes.plot`."""

Panels = Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]
"""Points (x, y) of lines, by the title of the panel and the name of the line."""

PAPER = "paper's method"
"""Name of the line that shows the method as published."""


class Curve(NamedTuple):
    """Points of a panel and how they look."""

    x: Any
    y: Any
    style: Style


def label_axes(axes: Any, x: str = "", y: str = "", title: str = "") -> None:
    """Write labels and title on axes and remove what shows no data."""
    axes.set_xlabel(x, fontsize=8, color=INK)
    axes.set_ylabel(y, fontsize=8, color=INK)
    if title:
        axes.set_title(title, fontsize=9, color=INK)
    simplify_axes(axes)


def make_panels(
    figure: Any, n: int, size: tuple[float, float], title: str, **options: Any
) -> Any:
    """Return axes side by side on a figure with a title.

    Args:
        figure: An empty figure.
        n: Number of axes.
        size: Width and height of the figure, in inches.
        title: Title of the figure.
        options: Options of `matplotlib.figure.Figure.subplots`.
    """
    figure.set_size_inches(*size)
    figure.suptitle(title, fontsize=10, color=INK)
    return figure.subplots(1, n, squeeze=False, **options)[0]


def curves_drawing(
    title: str,
    panels: Mapping[str, Sequence[Curve]],
    labels: tuple[str, str],
    *,
    size: tuple[float, float] | None = None,
    scales: tuple[str, str] = ("linear", "linear"),
    limits: tuple[Any, Any] = (None, None),
    ticks: bool = False,
    legend: Mapping[str, Any] | None = None,
) -> Drawing:
    """Return a drawing of curves, one panel per setting, all on one y axis.

    Args:
        title: Title of the figure.
        panels: Curves of each panel, by the title of the panel.
        labels: Quantity and unit of the x axis and of the y axis.
        size: Width and height in inches; when left out, as the panels need.
        scales: Scales of both axes: "linear" or "log".
        limits: Ends of both axes; None = as the data need.
        ticks: Whether the x axis has a tick at every point of the curves.
        legend: Options of the legend in the last panel; with a number of columns,
            "ncols", it is below all panels.
    """
    below = legend is not None and "ncols" in legend
    inches = size or (2.7 * len(panels) + 0.8, 3.6 if below else 3.2)
    # Even limits of None would stop the shared axis from growing.
    ends = {
        name: limit
        for name, limit in zip(("xlim", "ylim"), limits, strict=True)
        if limit is not None
    }

    def draw(figure: Any) -> None:
        every = make_panels(figure, len(panels), inches, title, sharey=True)
        for axes, (panel, curves) in zip(every, panels.items(), strict=True):
            for x, y, style in curves:
                axes.plot(x, y, **style)
            axes.set(xscale=scales[0], yscale=scales[1])
            if ticks:
                axes.set_xticks(x, [f"{value:g}" for value in x])
                axes.minorticks_off()
            axes.yaxis.set_major_formatter("{x:g}")
            axes.set(**ends)
            y_label = labels[1] if axes is every[0] else ""
            label_axes(axes, labels[0], y_label, panel)
        _add_legend(figure, every[-1], below, legend or {})

    return draw


def _add_legend(figure: Any, axes: Any, below: bool, options: Style) -> None:
    """Add a legend of what is labelled on axes, there or below all panels."""
    words = axes.get_legend_handles_labels()
    look: dict[str, Any] = {"fontsize": 7, "frameon": False, **options}
    if below:
        figure.legend(*words, loc="outside lower center", **look)
    elif words[0]:
        axes.legend(*words, **look)


def line_drawing(
    title: str,
    panels: Panels,
    labels: tuple[str, str],
    styles: Mapping[str, Style],
    *,
    names: Mapping[str, str] | None = None,
    scale: str = "log",
    y_limits: tuple[float, float] | None = None,
    legend_columns: int = 0,
) -> Drawing:
    """Return a drawing of lines through marked points, one panel per setting.

    Args:
        title: Title of the figure.
        panels: Lines of each panel, by the title of the panel.
        labels: Quantity and unit of the x axis and of the y axis.
        styles: Style of each line.
        names: Names of lines in the legend, where they differ.
        scale: Scale of both axes.
        y_limits: Ends of the y axis; as the data need when left out.
        legend_columns: Columns of a legend below all panels; 0 = a legend in the last
            panel.
    """
    curves = {}
    for panel, lines in panels.items():
        curves[panel] = [
            Curve(
                [x for x, _ in points],
                [y for _, y in points],
                {"markersize": 4, "label": (names or {}).get(name, name)}
                | {**styles[name]},
            )
            for name, points in lines.items()
        ]
    return curves_drawing(
        title,
        curves,
        labels,
        scales=(scale, scale),
        limits=(None, y_limits),
        ticks=True,
        legend={"ncols": legend_columns} if legend_columns else None,
    )


def dots_drawing(
    title: str,
    panels: Mapping[str, Mapping[str, Any]],
    labels: tuple[str, str],
    *,
    published: Mapping[str, float] | None = None,
    scale: str = "linear",
) -> Drawing:
    """Return a drawing of groups of dots with their medians, one panel per setting.

    Args:
        title: Title of the figure.
        panels: Values by the title of the panel and the name of the group.
        labels: Quantity and unit of the x axis and of the y axis.
        published: Value of the paper by the title of the panel, drawn as a line.
        scale: Scale of the y axis.
    """

    def draw(figure: Any) -> None:
        every = make_panels(figure, len(panels), (8.0, 3.4), title, sharey=True)
        for axes, (panel, groups) in zip(every, panels.items(), strict=True):
            for k, values in enumerate(groups.values()):
                x = k + np.linspace(-0.2, 0.2, len(values))
                axes.plot(x, np.sort(values), "o", color=BLUE, markersize=3, alpha=0.5)
                middle = float(np.median(values))
                axes.plot([k - 0.27, k + 0.27], [middle] * 2, color=INK, linewidth=1.5)
                at: dict[str, Any] = {"fontsize": 7, "color": INK, "va": "center"}
                axes.annotate(f"{middle:.1f}", (k + 0.28, middle), **at)
            if published is not None:
                axes.axhline(published[panel], color=RED, linewidth=1.2)
                at = {"transform": axes.get_yaxis_transform(), "va": "bottom"}
                axes.text(0.02, published[panel], "paper", color=RED, fontsize=8, **at)
            axes.set_yscale(scale)
            axes.yaxis.set_major_formatter("{x:g}")
            y_label = labels[1] if axes is every[0] else ""
            label_axes(axes, labels[0], y_label, panel)
            axes.set_xticks(range(len(groups)), list(groups), fontsize=7)
            axes.set_xlim(-0.5, len(groups) - 0.4)
        if scale == "linear":
            every[0].set_ylim(bottom=0.0)

    return draw


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
        left, right = make_panels(figure, 2, (8.0, 3.0), title, width_ratios=(2, 1))
        residual_panel(left, right, times, norm, limit=limit, unit=CM)
        label_axes(left, "time, s", "residual, cm")
        label_axes(right, "residual, cm", "share of frames")

    return draw


def equalise_scales(
    every: Sequence[Any], margin: float, y_limits: tuple[float, float] | None = None
) -> None:
    """Give panels with pictures of figures one scale, without ticks and frames.

    Args:
        every: The axes.
        margin: Half of a panel, over the size of the largest picture.
        y_limits: Ends of all y axes; around the middle of each when left out.
    """
    boxes = [axes.dataLim for axes in every]
    half = margin * np.max([box.size for box in boxes], axis=0)
    for axes, box in zip(every, boxes, strict=True):
        (x, y), (half_width, half_height) = 0.5 * (box.min + box.max), half
        axes.set(xlim=(x - half_width, x + half_width), aspect="equal")
        axes.set_ylim(y_limits or (y - half_height, y + half_height))
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
