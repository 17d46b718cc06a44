"""Drawings of Knight2007's experiments; the caller provides the figure."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import stats

from marey.papers.experiment import Drawing
from marey.papers.plots import Lines, Styles, label_axes, line_drawing
from marey.plot.style import BLUE, FAINT, GOLD, GREEN, GREY, INK, RED

Array = np.ndarray

STYLES: Styles = {
    "best marker": {"color": GREY, "marker": "v", "markersize": 4},
    "kasa": {"color": RED, "marker": "o", "markersize": 4},
    "corrected": {
        "color": GOLD,
        "marker": "s",
        "markersize": 8,
        "markerfacecolor": "none",
    },
    "geometric": {"color": GREEN, "marker": "^", "markersize": 4},
    "ours": {"color": BLUE, "marker": "D", "markersize": 4},
    "bound": {"color": INK, "linestyle": "--", "linewidth": 1.0},
}
NAMES = {
    "best marker": "paper, best single marker",
    "kasa": "paper's closed form",
    "corrected": "bias removed",
    "geometric": "least squares of radii",
    "ours": "ours: radii and residual",
    "bound": "Cramer-Rao bound",
}


def weibull_drawing(
    error: Float[Array, " run"],
    fitted: Mapping[str, float],
    published: Mapping[str, float],
) -> Drawing:
    """Return a drawing in the manner of Fig. 2: the density of the error."""

    def draw(figure: Any) -> None:
        figure.set_size_inches(6.0, 3.4)
        axes = figure.subplots()
        top = 9.0
        axes.hist(
            error,
            bins=np.linspace(0.0, top, 61),
            density=True,
            color=FAINT,
            edgecolor="white",
            linewidth=0.4,
            label=f"{len(error)} runs",
        )
        x = np.linspace(0.0, top, 400)
        for values, colour, dashes, name in (
            (published, RED, "-", "paper"),
            (fitted, BLUE, "--", "ours"),
        ):
            density = stats.weibull_min.pdf(x, values["shape"], scale=values["scale"])
            label = f"{name}: Weibull({values['shape']:.3f}, {values['scale']:.3f})"
            axes.plot(x, density, dashes, color=colour, linewidth=1.6, label=label)
        axes.set_xlim(0.0, top)
        axes.legend(fontsize=8, frameon=False)
        label_axes(axes, "error of the centre, in σ / √N", "density")
        figure.suptitle("Fig. 2: error of the centre", fontsize=10, color=INK)

    return draw


def radius_drawing(
    share: Float[Array, " run"],
    uncorrected: Float[Array, " run"],
    corrected: Float[Array, " run"],
) -> Drawing:
    """Return a drawing in the manner of Fig. 3: the radius against the noise."""

    def draw(figure: Any) -> None:
        figure.set_size_inches(8.0, 3.4)
        every = figure.subplots(1, 2, sharex=True, sharey=True)
        x = np.geomspace(1e-3, 10.0, 200)
        for axes, radius, colour, title in (
            (every[0], uncorrected, RED, "as published"),
            (every[1], corrected, BLUE, "corrected for the noise"),
        ):
            axes.plot(share, radius, ".", color=colour, markersize=3, alpha=0.45)
            axes.axhline(1.0, color=INK, linewidth=0.8)
            axes.set_xscale("log")
            axes.set(xlim=(1e-3, 10.0), ylim=(0.0, 3.0))
            axes.set_title(title, fontsize=9, color=INK)
            label_axes(axes, "noise over radius, σ / R", "")
        every[0].plot(
            x, np.sqrt(1.0 + 3.0 * x**2), color=INK, linestyle="--", linewidth=1.0
        )
        every[0].annotate(
            "√(1 + 3 σ²/R²)", (0.75, 1.85), fontsize=8, color=INK, ha="right"
        )
        every[0].set_ylabel("radius found over true radius", fontsize=8, color=INK)
        figure.suptitle("Fig. 3: the radius", fontsize=10, color=INK)

    return draw


def law_drawing(
    count: Float[Array, " run"],
    share: Float[Array, " run"],
    error: Float[Array, " run"],
) -> Drawing:
    """Return a drawing of the error over sigma against the number of points."""

    def draw(figure: Any) -> None:
        figure.set_size_inches(6.0, 3.6)
        axes = figure.subplots()
        small = share < 0.3
        for chosen, colour, name in (
            (small, BLUE, "σ < 0.3 R"),
            (~small, GOLD, "σ ≥ 0.3 R"),
        ):
            style = {"color": colour, "markersize": 3, "alpha": 0.4}
            axes.loglog(count[chosen], error[chosen], ".", **style)
            axes.plot([], [], "o", color=colour, markersize=4, label=name)
        x = np.geomspace(4.0, 1000.0, 50)
        axes.loglog(x, 3.0 / np.sqrt(x), color=INK, linewidth=1.4, label="3 / √N")
        axes.set(xlim=(4, 1000), ylim=(3e-3, 10.0))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.legend(fontsize=8, frameon=False, loc="lower left")
        label_axes(axes, "points, N", "error of the centre over σ")
        figure.suptitle("The law 3 σ / √N", fontsize=10, color=INK)

    return draw


def speed_drawing(lines: Lines) -> Drawing:
    """Return a drawing of microseconds against the number of points."""
    colours = {
        "moments": BLUE,
        "least squares": RED,
        "one more frame": GREEN,
        "full fit": GREY,
    }
    names = {
        "moments": "closed form from moments (Eqs. 2–5)",
        "least squares": "linear least squares",
        "one more frame": "one more frame, streaming",
        "full fit": "full fit: kind, noise, covariance",
    }

    def draw(figure: Any) -> None:
        figure.set_size_inches(6.0, 3.6)
        axes = figure.subplots()
        for name, points in lines.items():
            x, y = zip(*points, strict=True)
            style = {"color": colours[name], "marker": "o", "markersize": 4}
            axes.loglog(x, y, label=names[name], **style)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.legend(fontsize=8, frameon=False)
        label_axes(axes, "points", "time, µs")
        figure.suptitle("Fig. 1: speed, this machine", fontsize=10, color=INK)

    return draw


def error_drawing(
    title: str,
    panels: Mapping[str, Lines],
    x_label: str,
    y_label: str = "error of the centre, % of the radius",
) -> Drawing:
    """Return a drawing of rms errors, one panel per noise, one line per method."""
    n_lines = len(next(iter(panels.values())))
    return line_drawing(
        title,
        panels,
        x_label,
        y_label,
        STYLES,
        names=NAMES,
        legend_columns=3 if n_lines > 4 else n_lines,
    )


def markers_drawing(errors: Mapping[str, Float[Array, " joint"]]) -> Drawing:
    """Return a drawing of joint errors, by number of markers and method."""

    def draw(figure: Any) -> None:
        figure.set_size_inches(8.0, 3.6)
        axes = figure.subplots()
        shades = (RED, BLUE)
        for k, error in enumerate(errors.values()):
            x = k + np.linspace(-0.22, 0.22, len(error))
            colour = shades[k % len(shades)]
            axes.semilogy(
                x, 1e3 * np.sort(error), "o", color=colour, markersize=4, alpha=0.8
            )
            middle = 1e3 * float(np.median(error))
            axes.plot([k - 0.3, k + 0.3], [middle, middle], color=INK, linewidth=1.5)
            axes.annotate(
                f"{middle:.1f}", (k + 0.31, middle), fontsize=7, color=INK, va="center"
            )
        axes.set_xticks(range(len(errors)), list(errors), fontsize=7)
        axes.yaxis.set_major_formatter("{x:g}")
        label_axes(axes, "", "error of a joint, rms over the take, mm")
        axes.tick_params(axis="x", labelsize=7)
        figure.suptitle(
            "Root to leaf: each dot a joint, the bar their median",
            fontsize=10,
            color=INK,
        )

    return draw
