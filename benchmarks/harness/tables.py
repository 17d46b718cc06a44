"""Results as tables, for the terminal and for the page."""

import math
from collections.abc import Sequence

from benchmarks.harness.results import Result
from benchmarks.harness.task import Figure, Row, Spread


def columns_of(rows: Sequence[Row]) -> list[str]:
    """Return the names of all figures, in the order in which they first come."""
    return list(dict.fromkeys(name for row in rows for name in row.figures))


def spell(value: float) -> str:
    """Return a number with three digits, as a person would write it."""
    if not math.isfinite(value):
        return "–"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        digits = 2 - math.floor(math.log10(abs(value))) if value else 0
        return f"{round(value, digits):,.{max(digits, 0)}f}" if value else "0"
    return f"{value:.1e}"


def spell_figure(figure: Figure | None) -> str:
    """Return a figure; a median has its quartiles behind it where they differ."""
    if figure is None:
        return ""
    if not isinstance(figure, Spread):
        return f"{figure:,.0f}" if figure == int_or_none(figure) else spell(figure)
    low, median, high = spell(figure.low), spell(figure.median), spell(figure.high)
    return median if low == high else f"{median} ({low}–{high})"


def int_or_none(value: float) -> int | None:
    """Return a whole number as such."""
    return int(value) if math.isfinite(value) and value == int(value) else None


def cells_of(result: Result) -> list[list[str]]:
    """Return the head and the rows of the table of a task."""
    columns = columns_of(result.rows)
    lines = [["", *columns]]
    for row in result.rows:
        cells = [spell_figure(row.figures.get(name)) for name in columns]
        if row.skipped:
            cells = [f"SKIPPED: {row.skipped}", *[""] * (len(columns) - 1)]
        lines.append([row.case, *cells])
    return lines


def plain_table(result: Result) -> str:
    """Return the table of a task for the terminal."""
    lines = cells_of(result)
    skipped = {row.case for row in result.rows if row.skipped}
    counted = [line for line in lines if line[0] not in skipped]
    widths = [max(map(len, column)) for column in zip(*counted, strict=True)]
    widths[0] = max(len(line[0]) for line in lines)
    text = []
    for first, *others in lines:
        cells = [
            one.rjust(width) for one, width in zip(others, widths[1:], strict=False)
        ]
        text.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(
        [*text, *([f"STOPPED: {result.stopped}"] if result.stopped else [])]
    )


def markdown_table(result: Result) -> str:
    """Return the table of a task for the page."""
    head, *lines = cells_of(result)
    rule = ["---", *["---:"] * (len(head) - 1)]
    rows = [f"| {' | '.join(line)} |" for line in (head, rule, *lines)]
    return "\n".join(rows)
