"""Pictures of results: bars of one figure by case, or figures against a size."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.results import Result
from benchmarks.harness.tables import spell
from benchmarks.harness.task import Figure, Row, Spread, Task

IMAGES = Path(__file__).parents[2] / "docs" / "images"
LINES = "o-", "s--", "^:"
INK, GREY, MARK = "#333333", "#9aa5ab", ("#1f6f8b", "#c8553d", "#588157")


def picture_name(task: Task) -> str:
    """Return the file name of the picture of a task."""
    return f"benchmark-{task.name.replace('.', '-').replace('_', '-')}.png"


def draw_task(task: Task, result: Result, folder: Path = IMAGES) -> bool:
    """Draw the picture of a task; whether there is anything to draw."""
    rows = [row for row in result.rows if set(task.plot) <= set(row.figures)]
    if not task.plot or len(rows) < 2:
        return False
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        figsize=(7.0, 3.6 if len(task.plot) > 1 else 0.6 + 0.32 * len(rows)),
        layout="constrained",
    )
    (draw_bars if len(task.plot) == 1 else draw_curves)(axes, task, rows)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK)
    figure.savefig(folder / picture_name(task), dpi=110, metadata={"Software": None})
    plt.close(figure)
    return True


def draw_bars(axes: Any, task: Task, rows: Sequence[Row]) -> None:
    """Draw one figure by case, those of marey in another colour."""
    rows = rows[::-1]
    values = [middle_of(row.figures[task.plot[0]]) for row in rows]
    colours = [MARK[0] if "marey" in row.case else GREY for row in rows]
    bars = axes.barh([row.case for row in rows], values, color=colours)
    axes.bar_label(bars, [spell(value) for value in values], padding=4)
    axes.set_xscale("log")
    axes.set_xlabel(task.plot[0])
    axes.margins(x=0.15)


def draw_curves(axes: Any, task: Task, rows: Sequence[Row]) -> None:
    """Draw figures against the first one, on logarithmic axes if it is a size."""
    across, *up = task.plot
    for line, (case, some) in zip(LINES, series_of(rows, across).items(), strict=False):
        x = [middle_of(row.figures[across]) for row in some]
        for name, colour in zip(up, MARK, strict=False):
            y = [middle_of(row.figures[name]) for row in some]
            axes.plot(x, y, line, color=colour, label=f"{case}{name}")
    is_scale = task.name.startswith("scale")
    if is_scale:
        proportional = [y[-1] * size / x[-1] for size in x]
        axes.plot(x, proportional, "--", color=GREY, label="proportional", zorder=0)
        axes.set(xscale="log", yscale="log")
        axes.set_xticks(x, [f"{value:,.0f}" for value in x], minor=False)
        axes.set_yticks(y, [f"{value:.3g}" for value in y], minor=False)
        axes.minorticks_off()
    axes.set_xlabel(across)
    axes.set_ylabel(up[0] if len(up) == 1 else "")
    if is_scale:
        axes.legend(frameon=False)
    elif len(up) > 1:
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def series_of(rows: Sequence[Row], across: str) -> dict[str, list[Row]]:
    """Return the rows of each series by what its cases begin with; "" if there is one.

    A series ends where the first figure of a plot does not grow.
    """
    x = [middle_of(row.figures[across]) for row in rows]
    starts = [k for k in range(len(rows)) if k == 0 or x[k] <= x[k - 1]]
    if len(starts) == 1:
        return {"": list(rows)}
    ends = [*starts[1:], len(rows)]
    series = [list(rows[a:b]) for a, b in zip(starts, ends, strict=True)]
    return {f"{some[0].case.partition(',')[0]}: ": some for some in series}


def middle_of(figure: Figure) -> float:
    """Return the number of a figure, the median where it has a spread."""
    return figure.median if isinstance(figure, Spread) else float(figure)
