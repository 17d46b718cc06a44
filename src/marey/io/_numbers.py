"""Numbers out of text, fast and strict: tables with gaps, and streams of tokens."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt8

from marey.io._format import File

NUMBER, BLANK, NAN, WORD, LONG = 0, 1, 2, 3, 4
"""What a cell may be; LONG never leaves this module."""

# A table may ask for more cells than the text can hold (short lines): this many are
# granted on top of one per byte.
SPARE_CELLS = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A table of numbers; one row per line that is not blank."""

    values: Float[np.ndarray, "row column"]
    """The numbers; NaN where a cell is blank, missing, "nan" or not a number."""

    status: UInt8[np.ndarray, "row column"]
    """NUMBER, BLANK, NAN or WORD for every cell; BLANK beyond the end of a line."""

    cells: Int[np.ndarray, " row"]
    """Cells on each line, trailing blank ones not counted."""

    line: Int[np.ndarray, " row"]
    """Line number of each row."""

    def word(self) -> tuple[int, int] | None:
        """Return row and column of the first cell that is not a number, or None."""
        rows, columns = np.nonzero(self.status == WORD)
        return (int(rows[0]), int(columns[0])) if len(rows) else None


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Blank-separated words and numbers in the order they stand."""

    data: bytes
    values: Float[np.ndarray, " token"]
    """The number, NaN for a token that is none."""

    status: UInt8[np.ndarray, " token"]
    """NUMBER, NAN or WORD."""

    start: Int[np.ndarray, " token"]
    """Byte where each token begins."""

    stop: Int[np.ndarray, " token"]
    """Byte after each token."""

    def text(self, token: int) -> bytes:
        """Return a token as it stands."""
        return self.data[self.start[token] : self.stop[token]]

    def line(self, token: int, first: int = 1) -> int:
        """Return the line number of a token when the text begins at line `first`."""
        return first + self.data.count(b"\n", 0, int(self.start[token]))


def parse_table(
    file: File, data: bytes, *, columns: int, delimiter: str, first_line: int = 1
) -> Numbers:
    r"""Return the numbers of a table.

    Args:
        file: Named in errors.
        data: The lines of the table, ending in \n.
        columns: How many cells to keep of each line.
        delimiter: One character; a space stands for any run of blanks.
        first_line: Number of the table's first line in the file.

    Raises:
        FormatError: If the lines are far too short for that many columns.
    """
    from marey.io._number_kernel import parse_rows  # numba is slow to import

    text = np.frombuffer(data, np.uint8)
    lines = data.count(b"\n") + 1
    if lines * columns > len(data) + SPARE_CELLS:
        file.fail_at_line(
            first_line,
            expected=f"lines of {columns} cells",
            found=f"{lines} lines in {len(data)} bytes",
        )
    values = np.full((lines, columns), np.nan)
    status = np.full((lines, columns), BLANK, np.uint8)
    cells = np.zeros(lines, np.int64)
    start = np.zeros(lines, np.int64)
    rows = parse_rows(text, ord(delimiter), values, status, cells, start)
    values, status, start = values[:rows], status[:rows], start[:rows]
    _finish_long_cells(data, delimiter, values, status, start)
    breaks = np.flatnonzero(text == ord("\n"))
    line = first_line + np.searchsorted(breaks, start)
    return Numbers(values, status, cells[:rows], line)


def parse_tokens(data: bytes) -> Tokens:
    """Return every blank-separated token of a text with its number, if it is one."""
    from marey.io import _number_kernel as kernel  # numba is slow to import

    text = np.frombuffer(data, np.uint8)
    none = np.zeros(0, np.int64)
    count = kernel.split_tokens(text, none, none)
    start, stop = np.zeros(count, np.int64), np.zeros(count, np.int64)
    kernel.split_tokens(text, start, stop)
    values, status = np.full(count, np.nan), np.full(count, BLANK, np.uint8)
    kernel.parse_tokens(text, start, stop, values, status)
    for k in np.flatnonzero(status == LONG):
        values[k] = float(data[start[k] : stop[k]])
        status[k] = NUMBER
    return Tokens(data, values, status, start, stop)


def parse_number(text: str) -> float | None:
    """Return the number a single word stands for, None if it stands for none."""
    tokens = parse_tokens(text.encode())
    if len(tokens.values) != 1 or tokens.status[0] != NUMBER:
        return None
    return float(tokens.values[0])


def _finish_long_cells(
    data: bytes,
    delimiter: str,
    values: np.ndarray,
    status: np.ndarray,
    start: np.ndarray,
) -> None:
    """Convert the cells with too many digits for the fast path, in place."""
    for row in np.flatnonzero((status == LONG).any(axis=1)):
        end = data.find(b"\n", start[row])
        line = data[start[row] : end if end >= 0 else len(data)]
        cells = line.split(None if delimiter == " " else delimiter.encode())
        for column in np.flatnonzero(status[row] == LONG):
            values[row, column] = float(cells[column])
            status[row, column] = NUMBER
