"""How findings and tables look in a terminal."""

from rich.markup import escape
from rich.table import Table as RichTable

from marey.errors import printable
from marey.report import Table

COLOURS = {"info": "dim", "warning": "yellow", "error": "red"}
"""Style of each severity."""


def rich_table(table: Table) -> RichTable:
    """Return a table of results for the terminal."""
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
    # Counts keep all their digits.
    whole = abs(value) < 1e9 and value == round(value)
    return f"{value:.0f}" if whole else f"{value:.3g}"
