"""Styles of findings and tables in the terminal."""

from rich.markup import escape
from rich.table import Table as RichTable

from marey.errors import printable
from marey.report import Table

SEVERITY_STYLES = {"info": "dim", "warning": "yellow", "error": "red"}
"""Rich style of each severity of a finding."""


def rich_table(table: Table) -> RichTable:
    """Return a report table as a Rich table."""
    first, *others = table.columns
    shown = RichTable(escape(first), box=None, header_style="dim", pad_edge=False)
    for column in others:
        shown.add_column(escape(column), justify="right", overflow="fold")
    for row in table.rows:
        shown.add_row(*(escape(_cell(cell)) for cell in row))
    return shown


def _cell(value: str | float | int) -> str:
    if isinstance(value, str):
        return printable(value)
    # Counts are printed with all digits.
    whole = abs(value) < 1e9 and value == round(value)
    return f"{value:.0f}" if whole else f"{value:.3g}"
