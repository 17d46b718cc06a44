"""How steadily markers keep their distances, body by body."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from marey.bodies import Bodies
from marey.errors import DataError
from marey.plot.arguments import take_number
from marey.plot.style import GREY, INK, in_look, sheet, shown
from marey.segmentation.clusters.pair_statistics import pair_statistics
from marey.solution import Solution

if TYPE_CHECKING:
    import matplotlib.figure

Array = np.ndarray

MILLI = 1e3

LOWEST = 1e-2
"""Bottom of the scale in millimetres: less is rounding, not motion."""

PERCENT = (1.0, 99.0)
"""The colours reach from the one to the other percentile of the spreads."""


@in_look
def clustering(
    bodies: Bodies | Solution, *, take: int = 0
) -> "matplotlib.figure.Figure":
    """Return the matrix of how much the distance of every two markers varies.

    Markers stand in the order of their bodies, and every body is framed. The spread is
    what DeAguiar2006, Sec. 3.1, clusters by, the standard deviation of a distance over
    time, here robust as `marey.segment` uses it: within a body it is that of the noise.
    A dark patch outside the frames is a pair of bodies that hardly moved against each
    other. Pairs that were not seen together are left white.

    Args:
        bodies: What `marey.segment` returned, or a solution.
        take: Which take of the solution.

    Raises:
        DataError: If there are fewer than two markers.
        OptionError: If there is no such take.
        MissingExtraError: If matplotlib is not installed.
    """
    if isinstance(bodies, Solution):
        bodies = bodies.bodies[take_number(bodies, take)]
    points = bodies.take.points
    if points.shape[1] < 2:
        needed = "at least 2: sensors are bodies already, there is nothing to cluster"
        raise DataError("markers", found=points.shape[1], needed=needed)
    order = _by_body(bodies)
    spread = MILLI * pair_statistics((points,)).spread[np.ix_(order, order)]
    size = min(0.055 * len(order) + 1.9, 7.0)
    figure = sheet(size + 0.9, size, fixed=True)
    axes = figure.subplots()
    _matrix(figure, axes, spread)
    _frames(axes, bodies, order)
    figure.suptitle("How much the distance of two markers varies")
    return figure


def _by_body(bodies: Bodies) -> Int[Array, " marker"]:
    """Return the markers body after body, those without one last."""
    body = np.where(bodies.marker_body < 0, len(bodies.names), bodies.marker_body)
    return np.argsort(body, kind="stable")


def _matrix(figure: Any, axes: Any, spread: Float[Array, "marker marker"]) -> None:
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import LogLocator

    n = len(spread)
    apart = ~np.eye(n, dtype=bool) & np.isfinite(spread)
    some = np.maximum(spread[apart], LOWEST) if apart.any() else np.array([1.0])
    low, high = np.percentile(some, PERCENT)
    scale = LogNorm(low, max(high, 2.0 * low), clip=True)
    # A marker does not move against itself: the diagonal says nothing.
    shown_spread = np.where(apart, np.maximum(spread, LOWEST), np.nan)
    image = axes.imshow(shown_spread, cmap="cividis", norm=scale, interpolation="none")
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02, format="{x:g}")
    bar.set_label("robust sd of the distance, mm")
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    bar.ax.minorticks_off()


def _frames(axes: Any, bodies: Bodies, order: Int[Array, " marker"]) -> None:
    """Frame every body on the diagonal and write its name beside it."""
    from matplotlib.patches import Rectangle

    group = bodies.marker_body[order]
    first = np.flatnonzero(np.diff(group, prepend=-2))
    counts = np.diff(first, append=len(group))
    for start, count in zip(first.tolist(), counts.tolist(), strict=True):
        if group[start] >= 0:
            corner = (start - 0.5, start - 0.5)
            frame: dict[str, Any] = {
                "fill": False,
                "edgecolor": "white",
                "linewidth": 1.1,
            }
            axes.add_patch(Rectangle(corner, count, count, **frame))
    names = [shown(bodies.names[b]) if b >= 0 else "no body" for b in group[first]]
    middle = first + 0.5 * (counts - 1)
    axes.set_yticks(middle, names)
    axes.set_xticks([])
    axes.set_xlabel("markers, body after body")
    axes.tick_params(length=2.0, color=GREY, labelcolor=INK)
    axes.spines[:].set_visible(False)
