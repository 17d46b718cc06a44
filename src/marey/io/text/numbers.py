"""Numbers out of text, fast and strict: tables with gaps, and single words."""

import math
import re
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt8

from marey.io.contract import File

NUMBER, BLANK, NAN, WORD, LONG = 0, 1, 2, 3, 4
"""What a cell may be; LONG never leaves this module."""

# A table may ask for more cells than the text can hold (short lines): this many are
# granted on top of one per byte.
SPARE_CELLS = 2_000_000

# The same for motions, in bytes: a number in text takes no fewer than in memory, but
# one or two digits are enough for a turn.
LARGEST_GROWTH = 8
SPARE_BYTES = 32 * 2**20

LONG_WORD = re.compile(rb"\s*([-+.eE\d]+)")
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
    from marey.io.text.number_kernel import count_lines  # numba is slow to import

    if not data.endswith(b"\n"):
        data += b"\n"
    lines = count_lines(np.frombuffer(data, np.uint8))
    check_room(file, lines, columns, len(data), first_line)
    return _parsed(data, lines, columns, delimiter, first_line)


def _parsed(
    data: bytes, rows: int, columns: int, delimiter: str, first_line: int = 1
) -> Numbers:
    """Return the numbers of a text of at most so many rows that ends in a line end."""
    from marey.io.text.number_kernel import parse_rows  # numba is slow to import

    values = np.full((rows, columns), np.nan)
    status = np.full((rows, columns), BLANK, np.uint8)
    cells = np.zeros(rows, np.int64)
    line = np.zeros(rows, np.int64)
    text = np.frombuffer(data, np.uint8)
    rows = parse_rows(text, ord(delimiter), values, status, cells, line)
    values, status, line = values[:rows], status[:rows], line[:rows]
    _finish_long_cells(data, values.reshape(-1), status.reshape(-1))
    line += first_line
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


def check_motion(file: File, frames: int, joints: int, n_bytes: int) -> None:
    """Refuse a motion that would take far more room than its text.

    Raises:
        FormatError: If there would be more than `LARGEST_GROWTH` bytes of it for each
            byte of text, and `SPARE_BYTES`.
    """
    root_pose, rotation = 16, 4
    needed = 8 * frames * (root_pose + rotation * joints)
    if needed > LARGEST_GROWTH * n_bytes + SPARE_BYTES:
        raise file.error(
            None,
            expected="frames that fill the file; if it is right, cut it into parts",
            found=f"{frames} frames of {joints} joints in {n_bytes} bytes",
        )


def parse_stream(data: bytes) -> Float[np.ndarray, " number"] | None:
    """Return all blank-separated numbers of a text; None if a word is among them."""
    one_line = data.replace(b"\n", b" ") + b"\n"
    count = int(_parsed(one_line, 1, 0, " ").cells.sum())
    row = _parsed(one_line, 1, count, " ")
    return row.values.reshape(-1) if (row.status == NUMBER).all() else None


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
    data: bytes, values: Float[np.ndarray, " cell"], status: UInt8[np.ndarray, " cell"]
) -> None:
    """Convert the cells with too many digits for the fast path, in place."""
    for cell in np.flatnonzero(status == LONG):
        word = LONG_WORD.match(data, int(values[cell]))
        assert word is not None
        value = float(word[1])
        finite = math.isfinite(value)
        values[cell] = value if finite else np.nan
        status[cell] = NUMBER if finite else WORD
