"""Numbers out of text, fast and strict: tables with gaps, and single words."""

import re
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt8

from marey.io._format import File

NUMBER, BLANK, NAN, WORD, LONG = 0, 1, 2, 3, 4
"""What a cell may be; LONG never leaves this module."""

# A table may ask for more cells than the text can hold (short lines): this many are
# granted on top of one per byte.
SPARE_CELLS = 2_000_000

DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


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
        return self.first(WORD)

    def first(self, *kinds: int) -> tuple[int, int] | None:
        """Return row and column of the first cell of one of these kinds, or None."""
        found = np.flatnonzero(np.isin(self.status, kinds))
        if not len(found):
            return None
        row, column = np.unravel_index(found[0], self.status.shape)
        return int(row), int(column)


def parse_table(
    file: File, data: bytes, *, columns: int, delimiter: str, first_line: int = 1
) -> Numbers:
    """Return the numbers of a table.

    A cell is a number when Python's `float` takes it and it is finite, less
    underscores, hexadecimal and words; "nan" in any case is NAN, all else is a WORD.

    Args:
        file: Named in errors.
        data: The lines of the table.
        columns: How many cells to keep of each line.
        delimiter: One character; a space stands for any run of blanks.
        first_line: Number of the table's first line in the file.

    Raises:
        FormatError: If the lines are far too short for that many columns.
    """
    from marey.io._number_kernel import parse_rows  # numba is slow to import

    if not data.endswith(b"\n"):
        data += b"\n"
    text = np.frombuffer(data, np.uint8)
    lines = data.count(b"\n")
    check_room(file, lines, columns, len(data), first_line)
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


def check_room(file: File, rows: int, columns: int, n_bytes: int, line: int) -> None:
    """Refuse a table that would take far more room than its text.

    Raises:
        FormatError: If there would be more cells than bytes and `SPARE_CELLS`.
    """
    if rows * columns > n_bytes + SPARE_CELLS:
        file.fail_at_line(
            line,
            expected=f"lines of {columns} cells",
            found=f"{rows} lines in {n_bytes} bytes",
        )


def parse_stream(data: bytes) -> Float[np.ndarray, " number"] | None:
    """Return all blank-separated numbers of a text; None if a word is among them."""
    from marey.io import _number_kernel as kernel  # numba is slow to import

    text = np.frombuffer(data + b"\n", np.uint8)
    count = kernel.parse_stream(text, np.zeros(0))
    if count < 0:
        return None
    values = np.zeros(count)
    kernel.parse_stream(text, values)
    if np.isnan(values).any():
        words = data.split()
        for k in np.flatnonzero(np.isnan(values)):
            values[k] = float(words[k])
    return values if np.isfinite(values).all() else None


def parse_number(text: str) -> float | None:
    """Return the number a single word stands for, None if it stands for none."""
    word = text.strip()
    if not DECIMAL.fullmatch(word):
        return None
    value = float(word)
    return value if np.isfinite(value) else None


def note_unended(file: File, data: bytes) -> None:
    """Keep a finding when the last line has no end: its last number may be cut."""
    if not data.endswith(b"\n"):
        file.note(
            "line-unended",
            "the last line has no line end: the file may be cut off",
            severity="info",
        )


def _finish_long_cells(
    data: bytes,
    delimiter: str,
    values: np.ndarray,
    status: np.ndarray,
    start: np.ndarray,
) -> None:
    """Convert the cells with too many digits for the fast path, in place."""
    long = np.unique(np.flatnonzero(status == LONG) // max(status.shape[1], 1))
    for row in long:
        end = data.find(b"\n", start[row])
        line = data[start[row] : end if end >= 0 else len(data)]
        cells = line.split(None if delimiter == " " else delimiter.encode())
        for column in np.flatnonzero(status[row] == LONG):
            value = float(cells[column])
            finite = np.isfinite(value)
            values[row, column] = value if finite else np.nan
            status[row, column] = NUMBER if finite else WORD
