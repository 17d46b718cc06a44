"""How far joints come apart, over time and as a distribution."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from marey.errors import DataError, OptionError
from marey.joints import joint_residuals as gaps_of
from marey.plot.arguments import take_number
from marey.plot.style import (
    BLUE,
    INK,
    MM,
    RED,
    Unit,
    in_look,
    plain,
    sheet,
    short,
    shown,
)
from marey.solution import Solution

if TYPE_CHECKING:
    import matplotlib.figure

Array = np.ndarray

ROWS = 8
"""Joints below each other; more stand in further columns."""

BINS = 40

_NOISE: dict[str, Any] = {"color": INK, "linestyle": (0, (4, 2))}

BEYOND, ROOM = 99.5, 1.25
"""The scale holds this percentage of the frames of every joint, and so much more."""


@dataclass(frozen=True, slots=True, eq=False)
class _Joint:
    title: str
    gap: Float[Array, " frame"]
    """Distance of the two centres in every frame, in metres; NaN = not seen."""

    noise: float
    """What the measurement noise alone would leave, rms in metres."""


@in_look
def residuals(
    solution: Solution,
    *,
    joints: Sequence[str] = (),
    take: int = 0,
    top: float | None = None,
) -> "matplotlib.figure.Figure":
    """Return the gap of every joint, over time and as a histogram.

    In the manner of OBrien2000, Figs. 6-8: on the left the length of the residual
    vector, on the right the share of frames. All joints have one scale. The red line is
    the root mean square; the dashed one, where the noise is known, is what noise alone
    would leave. Frames beyond the scale are marked at its top and counted.

    Args:
        solution: What `marey.solve` returned.
        joints: Names of the bodies whose joint to their parent is shown; all when
            empty.
        take: Which take of the solution.
        top: Top of the scale in metres, to make several pictures alike.

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
    blocks = -(-len(every) // ROWS)
    rows = -(-len(every) // blocks)
    figure = sheet(5.2 if blocks == 1 else 3.7 * blocks, 0.78 * rows + 1.0)
    columns = figure.subfigures(1, blocks, squeeze=False)[0]
    for k, column in enumerate(columns):
        _column(column, rows, every[k * rows : (k + 1) * rows], times, limit)
    columns[0].supylabel("gap, mm", fontsize=8)
    figure.suptitle("How far joints come apart")
    _legend(figure, every)
    return figure


def _column(
    figure: Any,
    rows: int,
    every: Sequence[_Joint],
    times: Float[Array, " frame"],
    limit: float,
) -> None:
    """Draw some joints below each other, with room for as many as there are rows."""
    cells = figure.subplots(rows, 2, width_ratios=(2.4, 1), squeeze=False)
    for (left, right), joint in zip(cells, every, strict=False):
        gap_panel(left, right, times, joint.gap, limit=limit, noise=joint.noise)
        left.set_title(joint.title, loc="left", pad=3.0)
        low = joint is every[-1]
        left.set_xlabel("time, s" if low else "")
        right.set_xlabel("gap, mm" if low else "")
        for axes in (left, right):
            axes.tick_params(labelbottom=low)
    for axes in cells[len(every) :].ravel():
        axes.remove()


def gap_panel(
    left: Any,
    right: Any,
    times: Float[Array, " frame"],
    gap: Float[Array, " frame"],
    *,
    limit: float,
    noise: float = float("nan"),
    unit: Unit = MM,
) -> None:
    """Draw one joint's gap over time on one pair of axes, and its histogram beside it.

    Args:
        left: Axes for the series.
        right: Axes for the histogram.
        times: Time of each frame, in seconds.
        gap: Length of the residual vector in each frame, in metres; NaN = not seen.
        limit: Top of the scale, in metres.
        noise: What noise alone would leave, rms in metres; NaN = not known.
        unit: What the axes count in.
    """
    size, top = unit.per_metre * gap, unit.per_metre * limit
    known = size[np.isfinite(size)]
    left.plot(times, size, color=BLUE, linewidth=0.6)
    over = size > top
    left.plot(times[over], np.full(over.sum(), top), "^", color=RED, markersize=3.0)
    edges = np.linspace(0.0, top, BINS + 1)
    share = 100.0 * np.histogram(known, edges)[0] / max(len(known), 1)
    right.bar(edges[:-1], share, np.diff(edges), align="edge", color=BLUE)
    rms = float(np.sqrt(np.mean(known**2))) if len(known) else float("nan")
    for value, style in ((rms, {"color": RED}), (unit.per_metre * noise, _NOISE)):
        left.axhline(value, linewidth=0.9, **style)
        right.axvline(value, linewidth=0.9, **style)
    right.set_title(f"rms {short(rms)} {unit.name}", loc="right", pad=3.0, color=RED)
    if over.any():
        words = f"{over.sum()} beyond"
        at: dict[str, Any] = {"xycoords": "axes fraction", "ha": "right", "va": "top"}
        left.annotate(words, (0.995, 0.93), fontsize=7, color=RED, **at)
    left.set(xlim=(times[0], times[-1]) if len(times) > 1 else None, ylim=(0.0, top))
    right.set(xlim=(0.0, top), ylim=(0.0, 1.1 * max(share.max(), 1.0)))
    right.yaxis.set_major_formatter("{x:g} %")
    for axes in (left, right):
        plain(axes)


def _legend(figure: Any, every: Sequence[_Joint]) -> None:
    from matplotlib.lines import Line2D

    entries = [Line2D([], [], linewidth=0.9, color=RED, label="root mean square")]
    if any(np.isfinite(joint.noise) for joint in every):
        words = "what noise alone would leave"
        entries.append(Line2D([], [], linewidth=0.9, label=words, **_NOISE))
    figure.legend(handles=entries, loc="outside lower center", ncols=2)


def _limit(every: Sequence[_Joint]) -> float:
    """Return the top of a scale that a few wild frames do not stretch."""
    known = [joint.gap[np.isfinite(joint.gap)] for joint in every]
    some = [gap for gap in known if len(gap)]
    if not some:
        raise DataError("joints", found="no frame with both bodies", needed="some")
    # Exact data leave rounding only, which is not worth a scale of its own.
    return max(1e-6, ROOM * max(float(np.percentile(gap, BEYOND)) for gap in some))


def _joints(solution: Solution, take: int, names: Sequence[str]) -> Iterator[_Joint]:
    """Return the joints of the tree, or those of some bodies."""
    bodies = solution.bodies[take_number(solution, take)]
    tree, fits = solution.tree, solution.joints
    moving = [int(body) for body in np.flatnonzero(tree.edge >= 0)]
    known = [bodies.names[body] for body in moving]
    strange = [name for name in names if name not in known]
    if strange or not known:
        raise DataError(
            "joints",
            found=", ".join(strange) or "none",
            needed=f"some of {', '.join(known)}" if known else "bodies with a joint",
        )
    for name in names or known:
        body = moving[known.index(name)]
        pair = (int(tree.parent[body]), body)
        gap = np.linalg.norm(gaps_of(bodies, fits, pair), axis=1)
        title = f"{shown(name)} on {shown(bodies.names[pair[0]])}"
        yield _Joint(title, gap, float(fits.noise[tree.edge[body]]))
