"""Residuals of joints, over time and as a histogram."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from marey.errors import DataError, OptionError
from marey.joints import joint_residuals
from marey.numerics import Array, Float
from marey.numerics.robust import rms
from marey.plot import style
from marey.plot.scene import check_take_number
from marey.plot.style import BLUE, INK, MM, RED
from marey.solution import Solution

if TYPE_CHECKING:
    import matplotlib.figure


MAX_ROWS = 8
"""Joints in one column of the figure; more joints make more columns."""

N_BINS = 40

_NOISE: dict[str, Any] = {"color": INK, "linestyle": (0, (4, 2))}

SCALE_PERCENTILE, SCALE_MARGIN = 99.5, 1.25
"""Top of the scale: a percentile of the residuals of every joint, times a margin.
Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class JointResidual:
    """The residual of one joint of the tree, to be drawn."""

    title: str
    residual: Float[Array, " frame"]
    """Distance of the two centres in every frame, in metres; NaN = not seen."""

    noise: float
    """Residual predicted from the measurement noise alone, rms in metres."""


@style.with_style
def residuals(
    solution: Solution,
    *,
    joints: Sequence[str] = (),
    take: int = 0,
    top: float | None = None,
) -> "matplotlib.figure.Figure":
    """Return the residual of every joint, over time and as a histogram.

    In the manner of OBrien2000, Figs. 6-8: on the left the length of the residual
    vector, on the right the percentage of frames. All joints have one scale. The red
    line is the root mean square; the dashed line, where the noise is known, is the
    residual that noise alone predicts. Frames beyond the scale are marked at its top
    and counted.

    Args:
        solution: What `marey.solve` returned.
        joints: Names of the bodies whose joint to their parent is shown; all when
            empty.
        take: Which take of the solution.
        top: Top of the scale in metres, for several pictures on one scale.

    Raises:
        DataError: If there is no such joint, or no frame shows one.
        OptionError: If there is no such take, or `top` is not above 0 m.
        MissingExtraError: If matplotlib is not installed.
    """
    every = list(_joints(solution, take, joints))
    limit = _limit(every) if top is None else top
    if not 0.0 < limit < np.inf:
        raise OptionError("top", found=top, needed="a length above 0 m")
    times = solution.takes[take].times
    blocks = -(-len(every) // MAX_ROWS)
    rows = -(-len(every) // blocks)
    figure = style.new_figure(5.2 if blocks == 1 else 3.7 * blocks, 0.78 * rows + 1.0)
    columns = figure.subfigures(1, blocks, squeeze=False)[0]
    for k, column in enumerate(columns):
        _draw_column(column, rows, every[k * rows : (k + 1) * rows], times, limit)
    columns[0].supylabel("residual, mm", fontsize=8)
    figure.suptitle("Residuals of joints")
    _draw_legend(figure, every)
    return figure


def _draw_column(
    figure: Any,
    rows: int,
    every: Sequence[JointResidual],
    times: Float[Array, " frame"],
    limit: float,
) -> None:
    """Draw joints below each other; rows without a joint stay empty."""
    cells = figure.subplots(rows, 2, width_ratios=(2.4, 1), squeeze=False)
    for (left, right), joint in zip(cells, every, strict=False):
        residual_panel(
            left, right, times, joint.residual, limit=limit, noise=joint.noise
        )
        left.set_title(joint.title, loc="left", pad=3.0)
        low = joint is every[-1]
        left.set_xlabel("time, s" if low else "")
        right.set_xlabel("residual, mm" if low else "")
        for axes in (left, right):
            axes.tick_params(labelbottom=low)
    for axes in cells[len(every) :].ravel():
        axes.remove()


def residual_panel(
    left: Any,
    right: Any,
    times: Float[Array, " frame"],
    residual: Float[Array, " frame"],
    *,
    limit: float,
    noise: float = float("nan"),
    unit: style.LengthUnit = MM,
) -> None:
    """Draw the residual of a joint over time, and its histogram beside it.

    Args:
        left: Axes for the series.
        right: Axes for the histogram.
        times: Time of each frame, in seconds.
        residual: Length of the residual vector by frame, in metres; NaN = not seen.
        limit: Top of the scale, in metres.
        noise: Residual predicted from noise alone, rms in metres; NaN = unknown.
        unit: Unit of the axes.
    """
    size, top = unit.per_metre * residual, unit.per_metre * limit
    known = size[np.isfinite(size)]
    left.plot(times, size, color=BLUE, linewidth=0.6)
    over = size > top
    left.plot(times[over], np.full(over.sum(), top), "^", color=RED, markersize=3.0)
    edges = np.linspace(0.0, top, N_BINS + 1)
    share = 100.0 * np.histogram(known, edges)[0] / max(len(known), 1)
    right.bar(edges[:-1], share, np.diff(edges), align="edge", color=BLUE)
    lines = ((rms(known), {"color": RED}), (unit.per_metre * noise, _NOISE))
    for value, look in lines:
        left.axhline(value, linewidth=0.9, **look)
        right.axvline(value, linewidth=0.9, **look)
    right.set_title(
        f"rms {style.format_number(rms(known))} {unit.name}",
        loc="right",
        pad=3.0,
        color=RED,
    )
    if over.any():
        words = f"{over.sum()} beyond"
        at: dict[str, Any] = {"xycoords": "axes fraction", "ha": "right", "va": "top"}
        left.annotate(words, (0.995, 0.93), fontsize=7, color=RED, **at)
    left.set(xlim=(times[0], times[-1]) if len(times) > 1 else None, ylim=(0.0, top))
    right.set(xlim=(0.0, top), ylim=(0.0, 1.1 * max(share.max(), 1.0)))
    right.yaxis.set_major_formatter("{x:g} %")
    for axes in (left, right):
        style.simplify_axes(axes)


def _draw_legend(figure: Any, every: Sequence[JointResidual]) -> None:
    from matplotlib.lines import Line2D

    entries = [Line2D([], [], linewidth=0.9, color=RED, label="root mean square")]
    if any(np.isfinite(joint.noise) for joint in every):
        words = "predicted from noise alone"
        entries.append(Line2D([], [], linewidth=0.9, label=words, **_NOISE))
    figure.legend(handles=entries, loc="outside lower center", ncols=2)


def _limit(every: Sequence[JointResidual]) -> float:
    """Return the top of a scale that a few outliers do not stretch."""
    known = [joint.residual[np.isfinite(joint.residual)] for joint in every]
    seen = [residual for residual in known if len(residual)]
    if not seen:
        raise DataError("joints", found="no frame with both bodies", needed="some")
    # Exact data leave rounding only; the scale does not shrink to it.
    top = max(float(np.percentile(values, SCALE_PERCENTILE)) for values in seen)
    return max(1e-6, SCALE_MARGIN * top)


def _joints(
    solution: Solution, take: int, names: Sequence[str]
) -> Iterator[JointResidual]:
    """Yield the joints of the tree, or those of the named bodies."""
    bodies = solution.bodies[check_take_number(solution, take)]
    tree, fits = solution.tree, solution.joints
    moving = [int(body) for body in np.flatnonzero(tree.edge >= 0)]
    known = [bodies.names[body] for body in moving]
    unknown = [name for name in names if name not in known]
    if unknown or not known:
        raise DataError(
            "joints",
            found=", ".join(unknown) or "none",
            needed=f"some of {', '.join(known)}" if known else "bodies with a joint",
        )
    for name in names or known:
        body = moving[known.index(name)]
        pair = (int(tree.parent[body]), body)
        residual = np.linalg.norm(joint_residuals(bodies, fits, pair), axis=1)
        title = (
            f"{style.escape_name(name)} on {style.escape_name(bodies.names[pair[0]])}"
        )
        yield JointResidual(title, residual, float(fits.noise[tree.edge[body]]))
