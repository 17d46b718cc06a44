"""Tables of markers or 6-DoF poses: CSV, TSV and blank-separated text.

A column map, or the names of the columns, determine which columns belong together; a
finding states it. Stacks of 4 x 4 matrices, four lines each, are read as one sensor.
"""

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from marey.io import contract
from marey.io.contract import Format, Output, QuantityTable
from marey.io.file import Facts, File
from marey.io.options import WriteOptions
from marey.io.text import numbers
from marey.io.text import take as tables
from marey.io.text.columns import TableColumns, TableItem
from marey.io.text.encoding import decode_text, normalize_text
from marey.io.text.timing import note_frame_count
from marey.take import Take

MAREY_COMMENT = "# marey table: "
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|nan", re.IGNORECASE)
DECIMALS = 9
"""Decimals of a written number: nanometres, or 1e-9 radians."""

CELL = f"%.{DECIMALS}f"

MAX_HEADER_BYTES = 2**20
"""Bytes in which the first line of numbers begins."""


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """How a table is laid out as text."""

    delimiter: str
    names: tuple[str, ...]
    """The header; empty when there is none."""

    meta: dict[str, Any]
    """What marey's writer states in its first line; empty for other tables."""

    body_line: int
    """Number of the first line of numbers, from 1."""

    decimal_comma: bool


def sniff(head: bytes) -> bool:
    """Whether a file begins like a table: text, then lines of numbers."""
    text = normalize_text(head)
    if b"\0" in text or not text.strip():
        return False
    if text.startswith(MAREY_COMMENT.encode()):
        return True
    whole = len(head) < contract.SNIFF_BYTES
    lines = decode_text(text).split("\n")[: None if whole else -1]
    return _find_layout(lines) is not None


def _find_layout(lines: Sequence[str]) -> CsvLayout | None:
    """Return the layout of a table from its first lines, None if it is no table."""
    comments = list(takewhile(lambda line: not line.strip() or line[0] == "#", lines))
    meta: dict[str, Any] = {}
    for comment in comments:
        meta |= _parse_marey_comment(comment)
    start = len(comments)
    if meta and start + 1 < len(lines):
        return CsvLayout(",", _header(lines[start], ","), meta, start + 2, False)
    for first, line in enumerate(lines[start : start + 2], start):
        found = _find_delimiter(line)
        if found is not None:
            delimiter, comma = found
            names = _header(lines[start], delimiter) if first > start else ()
            return CsvLayout(delimiter, names, meta, first + 1, comma)
    return None


def _find_delimiter(line: str) -> tuple[str, bool] | None:
    """Return what separates the numbers of a line, and whether commas are decimal.

    None if it is no line of three numbers or more; some may be missing.
    """
    for delimiter in (",", ";", "\t", " "):
        comma = delimiter == ";" and "," in line
        cells = _cells(line.replace(",", ".") if comma else line, delimiter)
        numbers = any(cells) and all(NUMBER.fullmatch(c) or not c for c in cells)
        if len(cells) >= 3 and numbers:
            return delimiter, comma
    return None


def _parse_marey_comment(line: str) -> dict[str, Any]:
    """Return what a line of marey's writer states, nothing of any other line."""
    if not line.startswith(MAREY_COMMENT):
        return {}
    try:
        meta = json.loads(line.removeprefix(MAREY_COMMENT))
    except (ValueError, RecursionError):
        return {}
    return meta if isinstance(meta, dict) else {}


def _cells(line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    return [cell.strip().strip('"') for cell in line.split(delimiter)]


def _header(line: str, delimiter: str) -> tuple[str, ...]:
    if delimiter == " ":
        return tuple(line.split())
    try:
        names = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # a name of over 131,072 characters
        names = line.split(delimiter)
    return tuple(name.strip() for name in names)


def read_take(file: File) -> Take:
    """Return the take of a table."""
    text = file.text()
    front = text.find(b"\n", MAX_HEADER_BYTES) + 1
    layout = _find_layout(decode_text(text[: front or None]).split("\n"))
    if layout is None:
        file.fail("a header and lines of numbers", "neither", line=1)
    body = text.split(b"\n", layout.body_line - 1)[-1]
    if layout.decimal_comma:
        body = body.replace(b",", b".")
    count = len(layout.names) or len(
        _cells(decode_text(body.split(b"\n", 1)[0]), layout.delimiter)
    )
    table = numbers.parse_table(
        file,
        body.replace(b'"', b""),
        columns=count,
        delimiter=layout.delimiter,
        first_line=layout.body_line,
    )
    numbers.refuse_words(file, table)
    numbers.refuse_long_lines(file, table)
    note_frame_count(file, str(layout.meta.get("frames", "")), len(table.cells))
    numbers.note_missing_line_end(file, text)
    if not layout.names and _is_matrix_stack(table.values):
        return _matrix_take(file, table.values.reshape(-1, 4, 4))
    names = layout.names or tuple(str(i) for i in range(count))
    counted = None if layout.names else _columns_by_threes(table.values)
    columns = tables.decide_columns(file, names, layout.meta, counted)
    return tables.take_of_columns(file, table.values, columns, layout.meta)


def _is_matrix_stack(values: np.ndarray) -> bool:
    if values.shape[1] != 4 or len(values) < 4 or len(values) % 4:
        return False
    return bool((values[3::4] == [0.0, 0.0, 0.0, 1.0]).all())


def _columns_by_threes(values: np.ndarray) -> TableColumns | None:
    """Return markers by threes for a table without a header."""
    steps = np.diff(values[:, 0])
    clocked = values.shape[1] % 3 == 1 and len(steps) > 0 and bool((steps > 0.0).all())
    first = 1 if clocked else 0
    if (values.shape[1] - first) % 3:
        return None
    items = [
        TableItem(f"M{k:03d}", (column, column + 1, column + 2))
        for k, column in enumerate(range(first, values.shape[1], 3))
    ]
    whole = clocked and bool((values[:, 0] == np.round(values[:, 0])).all())
    return TableColumns(tuple(items), 0 if clocked and not whole else -1)


def _matrix_take(file: File, T: np.ndarray) -> Take:
    facts = Facts(
        file.decide_fact("unit", assumed="m", note="no unit in a stack of matrices"),
        file.decide_fact("up", assumed="z", note="no axes in a stack of matrices"),
        file.decide_fact("rate", assumed="100", note="no times in a stack of matrices"),
    )
    T[~np.isfinite(T).all(axis=(-1, -2))] = np.nan
    return file.take(facts, T_world_sensor=T[:, None], sensor_names=("sensor",))


def write_take(take: Take, options: WriteOptions) -> Output:
    """Return the table of a take: the time, then x y z and for sensors qw qx qy qz."""
    names, values, meta = tables.table_of_take(take, options, decimals=DECIMALS)
    meta["frames"] = take.n_frames
    comment = f"{MAREY_COMMENT}{json.dumps(meta)}\n"
    return {"": numbers.format_csv(names, values, [CELL] * len(names), comment)}


def write_table(table: QuantityTable, options: WriteOptions) -> Output:
    """Return the text of a table: names of columns, then one line per frame."""
    formats = [CELL] * len(table.names)
    return {"": numbers.format_csv(table.names, table.values + 0.0, formats)}


FORMAT = Format(
    name="csv",
    title="table of markers or poses (CSV, TSV)",
    suffixes=(".csv", ".tsv", ".txt", ".traj"),
    sniff=sniff,
    read_take=read_take,
    write_take=write_take,
    write_table=write_table,
    loses=("events", "analog", "filled", "computed", "confidence"),
    precision=1e-9,
)
