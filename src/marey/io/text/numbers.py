"""Text to numbers, strictly: tables with gaps and single words; written decimals."""

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from marey.io.file import File
from marey.io.units_axes import metres_per_unit
from marey.numerics import Bool, Float, Int, UInt8

NUMBER, BLANK, NAN, WORD, LONG = 0, 1, 2, 3, 4
"""Status of a cell; LONG never leaves this module."""

MAX_NUMBER = 1e12
"""Largest absolute value of a length, angle or time; larger numbers are damage."""

MAX_COLUMNS = 100_000
"""Largest number of columns of a table; more are damage."""

# A table may ask for more cells than the text can hold (short lines): this many are
# granted on top of one per byte.
SPARE_CELLS = 2_000_000

# The same for motions, in bytes: a number in text takes no fewer than in memory, but
# one or two digits are enough for an angle.
MAX_GROWTH = 8
SPARE_BYTES = 32 * 2**20

LONG_WORD = re.compile(rb"\s*([-+.eE\d]+)")
DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class NumberTable:
    """A table of numbers; one row per line that is not blank."""

    values: Float[np.ndarray, "row column"]
    """The numbers; NaN where a cell is blank, missing, "nan" or not a number."""

    status: UInt8[np.ndarray, "row column"]
    """NUMBER, BLANK, NAN or WORD for every cell; BLANK beyond the end of a line."""

    cells: Int[np.ndarray, " row"]
    """Cells on each line, trailing blank ones not counted."""

    line: Int[np.ndarray, " row"]
    """Line number of each row."""

    def select(self, rows: slice | Bool[np.ndarray, " row"]) -> "NumberTable":
        """Return the table of some rows."""
        return NumberTable(
            self.values[rows], self.status[rows], self.cells[rows], self.line[rows]
        )


def parse_table(
    file: File, data: bytes, *, columns: int, delimiter: str, first_line: int = 1
) -> NumberTable:
    """Return the numbers of a table.

    A cell is a number when Python's `float` takes it and it is finite, less
    underscores, hexadecimal and words; "nan" in any case is NAN, all else is a WORD.

    Args:
        file: Named in errors.
        data: The lines of the table.
        columns: How many cells to keep of each line.
        delimiter: One character; a space means any run of blanks.
        first_line: Number of the table's first line in the file.

    Raises:
        FormatError: If the lines are far too short for that many columns.
    """
    from marey.io.text.number_kernel import count_lines  # numba is slow to import

    if not data.endswith(b"\n"):
        data += b"\n"
    lines = count_lines(np.frombuffer(data, np.uint8), 0, 255)
    check_table_size(file, lines, columns, len(data), first_line)
    return _parse_rows(data, lines, columns, delimiter, first_line)


def read_numbers(
    file: File, data: bytes, *, columns: int, delimiter: str, first_line: int
) -> NumberTable:
    """Return the rows of a table that hold anything, each a number, "nan" or blank.

    The arguments are those of `parse_table`.

    Raises:
        FormatError: If there is a word among the numbers or a number beyond reason, a
            line has more cells than there are columns, or no line holds anything.
    """
    table = parse_table(
        file, data, columns=columns, delimiter=delimiter, first_line=first_line
    )
    refuse_words(file, table)
    least = np.fmin.reduce(table.values, axis=None, initial=0.0)
    most = np.fmax.reduce(table.values, axis=None, initial=0.0)
    if max(-least, most) > MAX_NUMBER:
        beyond = np.abs(table.values) > MAX_NUMBER
        _refuse_cells(file, table, beyond, f"a number beyond {MAX_NUMBER:g}")
    refuse_long_lines(file, table)
    filled = table.cells > 0
    if not filled.any():
        file.fail("frames", "the end of the file", line=first_line)
    return table if filled.all() else table.select(filled)


def refuse_words(file: File, table: NumberTable) -> None:
    """Raise the error of the first cell that is a word, if there is one."""
    _refuse_cells(file, table, table.status == WORD, "a word")


def refuse_long_lines(file: File, table: NumberTable) -> None:
    """Raise the error of the first line with too many cells, if there is one."""
    columns = table.values.shape[1]
    long = np.flatnonzero(table.cells > columns)
    if len(long):
        file.fail(
            f"{columns} cells", table.cells[long[0]], line=int(table.line[long[0]])
        )


def _refuse_cells(
    file: File, table: NumberTable, wrong: Bool[np.ndarray, "row column"], what: str
) -> None:
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        file.fail(
            "a number or a blank",
            f"{what} in column {column + 1}",
            line=int(table.line[row]),
        )


def check_width(file: File, line: bytes, delimiter: bytes, number: int) -> None:
    """Refuse a line of the header that holds more cells than any recording has.

    Raises:
        FormatError: If there are more than `MAX_COLUMNS`.
    """
    count = line.count(delimiter) + 1
    if count > MAX_COLUMNS:
        file.fail(f"at most {MAX_COLUMNS} columns", count, line=number)


def _parse_rows(
    data: bytes, rows: int, columns: int, delimiter: str, first_line: int = 1
) -> NumberTable:
    """Return the numbers of at most `rows` lines; the text ends in a line end."""
    from marey.io.text.number_kernel import parse_rows  # numba is slow to import

    values = np.full((rows, columns), np.nan)
    status = np.full((rows, columns), BLANK, np.uint8)
    cells = np.zeros(rows, np.int64)
    line = np.zeros(rows, np.int64)
    text = np.frombuffer(data, np.uint8)
    rows = parse_rows(text, ord(delimiter), values, status, cells, line)
    values, status, line = values[:rows], status[:rows], line[:rows]
    finish_long_cells(data, values.reshape(-1), status.reshape(-1))
    line += first_line
    return NumberTable(values, status, cells[:rows], line)


def check_table_size(
    file: File, rows: int, columns: int, n_bytes: int, line: int
) -> None:
    """Refuse a table that would take far more room than its text.

    Raises:
        FormatError: If there would be more cells than bytes and `SPARE_CELLS`.
    """
    if rows * columns > n_bytes + SPARE_CELLS:
        file.fail(
            f"lines of {columns} cells", f"{rows} lines in {n_bytes} bytes", line=line
        )


def check_motion_size(file: File, frames: int, joints: int, n_bytes: int) -> None:
    """Refuse a motion that would take far more room than its text.

    Raises:
        FormatError: If there would be more than `MAX_GROWTH` bytes of it for each
            byte of text, and `SPARE_BYTES`.
    """
    root_pose, rotation = 16, 4
    needed = 8 * frames * (root_pose + rotation * joints)
    if needed > MAX_GROWTH * n_bytes + SPARE_BYTES:
        file.fail(
            "frames that fill the file; if it is right, cut it into parts",
            f"{frames} frames of {joints} joints in {n_bytes} bytes",
        )


def parse_stream(data: bytes) -> Float[np.ndarray, " number"] | None:
    """Return all blank-separated numbers of a text; None if a word is among them."""
    one_line = data.replace(b"\n", b" ") + b"\n"
    count = int(_parse_rows(one_line, 1, 0, " ").cells.sum())
    row = _parse_rows(one_line, 1, count, " ")
    return row.values.reshape(-1) if (row.status == NUMBER).all() else None


def parse_number(text: str) -> float | None:
    """Return the number that a word spells, None if it spells none."""
    word = text.strip()
    if not DECIMAL.fullmatch(word):
        return None
    value = float(word)
    return value if np.isfinite(value) else None


def note_missing_line_end(file: File, data: bytes) -> None:
    """Add a finding when the last line has no end: its last number may be cut."""
    if not data.endswith(b"\n"):
        file.note(
            "line-unended",
            "the last line has no line end: the file may be cut off",
            severity="info",
        )


def finish_long_cells(
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


def decimals_for(unit: str, precision_m: float) -> int:
    """Return how many decimals hold lengths to a precision given in metres."""
    return max(int(np.ceil(np.log10(metres_per_unit(unit) / precision_m) - 1e-9)), 0)


def round_values(values: np.ndarray, decimals: int) -> np.ndarray:
    """Return values rounded as they are written; -0 becomes 0."""
    return np.asarray(np.round(values, decimals) + 0.0)


def format_lines(
    head: str, row: str, values: Float[np.ndarray, "row cell"], nan: str = "nan"
) -> Iterator[bytes]:
    """Yield a header, then one line for every row of numbers.

    Args:
        head: The lines before the first row.
        row: A %-format of one row, its line end included.
        values: The numbers.
        nan: What stands for NaN.
    """
    yield head.encode()
    for cells in values:
        line = row % tuple(cells.tolist())
        yield (line if nan == "nan" else line.replace("nan", nan)).encode()


def format_csv(
    names: Sequence[str],
    values: Float[np.ndarray, "row column"],
    formats: Sequence[str],
    comment: str = "",
) -> Iterator[bytes]:
    """Return a table with commas: names of columns, then numbers, blank where unknown.

    Args:
        names: Names of the columns.
        values: The numbers.
        formats: A %-format of each column.
        comment: The lines before the names.
    """
    titles = io.StringIO()
    csv.writer(titles, lineterminator="\n").writerow(names)
    row = ",".join(formats) + "\n"
    return format_lines(comment + titles.getvalue(), row, values, nan="")
