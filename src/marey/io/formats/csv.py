"""Tables of markers or 6-DoF poses: CSV, TSV and blank-separated text.

Which columns belong together is told by a column map, or read off their names, and
stated. Stacks of 4 x 4 matrices, four lines each, are read as one sensor.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marey.io.contract import (
    HEAD,
    File,
    Format,
    Output,
    WriteOptions,
    decoded,
    plain_text,
)
from marey.io.text.columns import Columns, Item
from marey.io.text.numbers import Numbers, parse_table
from marey.io.text.take import (
    columns_of_take,
    described,
    settle_columns,
    take_of_columns,
)
from marey.io.units_axes import poses_in
from marey.take import Take

MARK = "# marey table: "
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|nan", re.IGNORECASE)
DECIMALS = 9


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is laid out as text."""

    delimiter: str
    names: tuple[str, ...]
    """The header; empty when there is none."""

    meta: dict[str, Any]
    """What our own writer states in its first line; empty for other tables."""

    body_line: int
    """Number of the first line of numbers, from 1."""

    decimal_comma: bool


def sniff(head: bytes) -> bool:
    """Whether a file begins like a table: text, then lines of numbers."""
    text = plain_text(head)
    if b"\0" in text or not text.strip():
        return False
    if text.startswith(MARK.encode()):
        return True
    lines = decoded(text).split("\n")[: None if len(head) < HEAD else -1]
    return _layout(lines) is not None


def _layout(lines: Sequence[str]) -> Layout | None:
    """Return the layout of a table from its first lines, None if it is no table."""
    meta: dict[str, Any] = {}
    start = 0
    while start < len(lines) and (
        not lines[start].strip() or lines[start].startswith("#")
    ):
        meta |= _stated(lines[start])
        start += 1
    if meta and start + 1 < len(lines):
        return Layout(",", _header(lines[start], ","), meta, start + 2, False)
    for first in (start, start + 1):
        line = lines[first] if first < len(lines) else ""
        for delimiter in (",", ";", "\t", " "):
            comma = delimiter == ";" and "," in line
            cells = _cells(line.replace(",", ".") if comma else line, delimiter)
            numbers = any(cells) and all(NUMBER.fullmatch(c) or not c for c in cells)
            if len(cells) >= 3 and numbers:
                names = _header(lines[start], delimiter) if first > start else ()
                return Layout(delimiter, names, meta, first + 1, comma)
    return None


def _stated(line: str) -> dict[str, Any]:
    """Return what a line of our own writer states, nothing of any other line."""
    if not line.startswith(MARK):
        return {}
    try:
        meta = json.loads(line.removeprefix(MARK))
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
    front = text.find(b"\n", 2**20) + 1
    layout = _layout(decoded(text[: front or None]).split("\n"))
    if layout is None:
        file.fail_at_line(1, expected="a header and lines of numbers", found="neither")
    body = text.split(b"\n", layout.body_line - 1)[-1]
    if layout.decimal_comma:
        body = body.replace(b",", b".")
    count = len(layout.names) or len(
        _cells(decoded(body.split(b"\n", 1)[0]), layout.delimiter)
    )
    table = parse_table(
        file,
        body.replace(b'"', b""),
        columns=count,
        delimiter=layout.delimiter,
        first_line=layout.body_line,
    )
    _check_cells(file, table, count)
    _check_end(file, text, table, layout)
    if not layout.names and _is_matrix_stack(table.values):
        return _matrix_take(file, table.values.reshape(-1, 4, 4))
    names = layout.names or tuple(str(i) for i in range(count))
    counted = None if layout.names else _counted(table.values)
    columns = settle_columns(file, names, layout.meta, counted)
    return take_of_columns(file, table.values, columns, layout.meta)


def _check_cells(file: File, table: Numbers, count: int) -> None:
    word = table.word()
    if word is not None:
        row, column = word
        file.fail_at_line(
            int(table.line[row]),
            expected="a number",
            found=f"a word in column {column + 1}",
        )
    odd = np.flatnonzero(table.cells > count)
    if len(odd):
        file.fail_at_line(
            int(table.line[odd[0]]),
            expected=f"{count} cells",
            found=f"{table.cells[odd[0]]}",
        )


def _check_end(file: File, text: bytes, table: Numbers, layout: Layout) -> None:
    """Note the signs of a file that was cut off."""
    present, declared = len(table.cells), layout.meta.get("frames")
    if isinstance(declared, int) and declared != present:
        file.note("frames-missing", f"frames declared {declared}, present {present}")
    if not text.endswith(b"\n"):
        file.note(
            "line-unended",
            "the last line has no line end: the file may be cut off",
            severity="info",
        )


def _is_matrix_stack(values: np.ndarray) -> bool:
    if values.shape[1] != 4 or len(values) < 4 or len(values) % 4:
        return False
    return bool((values[3::4] == [0.0, 0.0, 0.0, 1.0]).all())


def _counted(values: np.ndarray) -> Columns | None:
    """Return markers by threes for a table without a header."""
    steps = np.diff(values[:, 0])
    clocked = values.shape[1] % 3 == 1 and len(steps) > 0 and bool((steps > 0.0).all())
    first = 1 if clocked else 0
    if (values.shape[1] - first) % 3:
        return None
    items = [
        Item(f"M{k:03d}", (first + 3 * k, first + 3 * k + 1, first + 3 * k + 2))
        for k in range((values.shape[1] - first) // 3)
    ]
    whole = clocked and bool((values[:, 0] == np.round(values[:, 0])).all())
    return Columns(tuple(items), 0 if clocked and not whole else -1, inferred=True)


def _matrix_take(file: File, T: np.ndarray) -> Take:
    unit = file.settle("unit", assumed="m", note="no unit in a stack of matrices")
    up = file.settle("up", assumed="z", note="no axes in a stack of matrices")
    rate = file.settle("rate", assumed="100", note="no times in a stack of matrices")
    T[~np.isfinite(T).all(axis=(-1, -2))] = np.nan
    return Take(
        rate=float(rate.value),
        T_world_sensor=poses_in(T[:, None], unit.value, up.value),
        sensor_names=("sensor",),
        source=file.source(unit=unit, up=up, rate=rate),
    )


def write_take(take: Take, options: WriteOptions) -> Output:
    """Return the table of a take: the time, then x y z and for sensors qw qx qy qz."""
    unit, up = options.unit or "m", options.up or "z"
    names, values = columns_of_take(take, unit, up, decimals=DECIMALS)
    meta = {**described(take, unit, up), "frames": take.n_frames}
    return {"": _lines(meta, names, take.times, values)}


def _lines(
    meta: dict[str, Any], names: Sequence[str], times: np.ndarray, values: np.ndarray
) -> Iterable[bytes]:
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(names)
    yield f"{MARK}{json.dumps(meta)}\n{header.getvalue()}".encode()
    for time, row in zip(times, values, strict=True):
        cells = ["" if v != v else f"{v:.{DECIMALS}f}" for v in row.tolist()]
        yield f"{','.join([f'{time:.{DECIMALS}f}', *cells])}\n".encode()


FORMAT = Format(
    name="csv",
    title="table of markers or poses (CSV, TSV)",
    suffixes=(".csv", ".tsv", ".txt", ".traj"),
    sniff=sniff,
    read_take=read_take,
    write_take=write_take,
    loses=("events", "analog", "filled"),
    precision=1e-9,
)
