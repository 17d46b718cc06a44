"""Matrix of the spread of pairwise marker distances, body by body."""

from typing import TYPE_CHECKING, Any

import numpy as np

from marey.bodies import Bodies
from marey.errors import DataError
from marey.numerics import Array, Float, Int
from marey.plot.scene import check_take_number
from marey.plot.style import GREY, INK, MM, escape_name, new_figure, with_style
from marey.segmentation import pair_statistics
from marey.solution import Solution

if TYPE_CHECKING:
    import matplotlib.figure


MIN_SPREAD_MM = 1e-2
"""Bottom of the scale in millimetres; smaller spreads are rounding. Chosen by hand."""

COLOUR_PERCENTILES = (1.0, 99.0)
"""Percentiles of the spreads at the two ends of the colour scale. Chosen by hand."""


@with_style
def clustering(
    bodies: Bodies | Solution, *, take: int = 0
) -> "matplotlib.figure.Figure":
    """Return the matrix of robust standard deviations of all marker distances.

    Markers are sorted by body, and every body is framed. DeAguiar2006, Sec. 3.1,
    clusters by the standard deviation of a distance over time; here it is the robust
    one of `marey.segment`. Within a body it equals the noise. A dark patch outside the
    frames is a pair of bodies with little relative motion. Pairs that were never seen
    together are white.

    Args:
        bodies: What `marey.segment` returned, or a solution.
        take: Which take of the solution.

    Raises:
        DataError: If there are fewer than two markers.
        OptionError: If there is no such take.
        MissingExtraError: If matplotlib is not installed.
    """
    if isinstance(bodies, Solution):
        bodies = bodies.bodies[check_take_number(bodies, take)]
    points = bodies.take.points
    if points.shape[1] < 2:
        needed = "at least 2: sensors are bodies already, there is nothing to cluster"
        raise DataError("markers", found=points.shape[1], needed=needed)
    order = _sort_by_body(bodies)
    spread = MM.per_metre * pair_statistics((points,)).spread[np.ix_(order, order)]
    size = min(0.055 * len(order) + 1.9, 7.0)
    figure = new_figure(size + 0.9, size, fixed=True)
    axes = figure.subplots()
    _draw_matrix(figure, axes, spread)
    _draw_body_frames(axes, bodies, order)
    figure.suptitle("Standard deviation of marker distances")
    return figure


def _sort_by_body(bodies: Bodies) -> Int[Array, " marker"]:
    """Return marker numbers sorted by body; markers without a body come last."""
    body = np.where(bodies.marker_body < 0, len(bodies.names), bodies.marker_body)
    return np.argsort(body, kind="stable")


def _draw_matrix(figure: Any, axes: Any, spread: Float[Array, "marker marker"]) -> None:
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import LogLocator

    n = len(spread)
    is_pair = ~np.eye(n, dtype=bool) & np.isfinite(spread)
    spreads = (
        np.maximum(spread[is_pair], MIN_SPREAD_MM) if is_pair.any() else np.array([1.0])
    )
    low, high = np.percentile(spreads, COLOUR_PERCENTILES)
    scale = LogNorm(low, max(high, 2.0 * low), clip=True)
    # The diagonal has no information: a marker has distance zero from itself.
    pair_spread = np.where(is_pair, np.maximum(spread, MIN_SPREAD_MM), np.nan)
    image = axes.imshow(pair_spread, cmap="cividis", norm=scale, interpolation="none")
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02, format="{x:g}")
    bar.set_label("robust sd of the distance, mm")
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    bar.ax.minorticks_off()


def _draw_body_frames(axes: Any, bodies: Bodies, order: Int[Array, " marker"]) -> None:
    """Frame every body on the diagonal and write its name beside it."""
    from matplotlib.patches import Rectangle

    group = bodies.marker_body[order]
    first = np.flatnonzero(np.diff(group, prepend=-2))
    counts = np.diff(first, append=len(group))
    for start, count in zip(first.tolist(), counts.tolist(), strict=True):
        if group[start] >= 0:
            corner = (start - 0.5, start - 0.5)
            line: dict[str, Any] = {"edgecolor": "white", "linewidth": 1.1}
            axes.add_patch(Rectangle(corner, count, count, fill=False, **line))
    names = [
        escape_name(bodies.names[b]) if b >= 0 else "no body" for b in group[first]
    ]
    middle = first + 0.5 * (counts - 1)
    axes.set_yticks(middle, names)
    axes.set_xticks([])
    axes.set_xlabel("markers, sorted by body")
    axes.tick_params(length=2.0, color=GREY, labelcolor=INK)
    axes.spines[:].set_visible(False)
