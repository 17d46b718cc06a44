"""Tables of markers or 6-DoF poses: CSV, TSV and blank-separated text.

Which columns belong together is told by a column map, or read off their names, and
stated. Stacks of 4 x 4 matrices, four lines each, are read as one sensor.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from marey import geometry
from marey.io._columns import Columns, Item, from_map, from_names
from marey.io._format import File, Format, Output, WriteOptions, decoded, plain_text
from marey.io._numbers import Numbers, parse_table
from marey.io._world import points_in, points_out, poses_in, poses_out, unit_named
from marey.take import Fact, Take

MARK = "# marey table"
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|nan", re.IGNORECASE)
DECIMALS = 9
LARGEST_EPOCH = 1e8
"""Seconds beyond which a clock counts from 1970 rather than from the recording."""

JITTER = 0.2
"""Share of the mean step by which time steps may differ before it is a finding."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is laid out as text."""

    delimiter: str
    names: tuple[str, ...]
    """The header; empty when there is none."""

    facts: dict[str, str]
    """Unit, up, rate and frames as the first line of our own writer states them."""

    body_line: int
    """Number of the first line of numbers, from 1."""

    decimal_comma: bool


def sniff(head: bytes) -> bool:
    """Whether a file begins like a table: text, then lines of numbers."""
    text = plain_text(head)
    if b"\0" in text or not text.strip():
        return False
    lines = decoded(text).split("\n")[: None if len(head) < 4096 else -1]
    return _layout(lines) is not None


def _layout(lines: Sequence[str]) -> Layout | None:
    """Return the layout of a table from its first lines, None if it is no table."""
    facts: dict[str, str] = {}
    start = 0
    while start < len(lines) and (
        not lines[start].strip() or lines[start].startswith("#")
    ):
        if lines[start].startswith(MARK):
            facts |= dict(re.findall(r"(\w+)=(\S+)", lines[start]))
        start += 1
    for first in (start, start + 1):
        line = lines[first] if first < len(lines) else ""
        for delimiter in (",", ";", "\t", " "):
            comma = delimiter == ";" and "," in line
            cells = _cells(line.replace(",", ".") if comma else line, delimiter)
            if len(cells) >= 3 and all(NUMBER.fullmatch(c) or not c for c in cells):
                names = _header(lines[start], delimiter) if first > start else ()
                return Layout(delimiter, names, facts, first + 1, comma)
    return None


def _cells(line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    return [cell.strip().strip('"') for cell in line.split(delimiter)]


def _header(line: str, delimiter: str) -> tuple[str, ...]:
    if delimiter == " ":
        return tuple(line.split())
    return tuple(
        name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])
    )


def read_take(file: File) -> Take:
    """Return the take of a table."""
    text = file.text()
    layout = _layout(decoded(text[: 2**20]).split("\n"))
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
    return _columns_take(
        file, table.values, _columns(file, layout, table.values), layout
    )


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
    present, declared = len(table.cells), layout.facts.get("frames", "")
    if declared.isdecimal() and int(declared) != present:
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


def _columns(file: File, layout: Layout, values: np.ndarray) -> Columns:
    """Return which columns are what: by the caller's map, the names or the count."""
    count = values.shape[1]
    if file.options.columns is not None:
        names = layout.names or tuple(str(i) for i in range(count))
        return from_map(file.options.columns, names)
    columns = from_names(layout.names) if layout.names else _counted(values)
    if columns is None:
        raise file.error(
            layout.body_line,
            expected="columns named like LFHD.x LFHD.y LFHD.z; or give columns=",
            found=", ".join(layout.names[:12]) or f"{count} columns without names",
            counted="line",
        )
    if not layout.facts:
        first = [
            f"{i.name} ({'6-DoF' if i.is_sensor else '3-D'})" for i in columns.items
        ]
        file.note(
            "columns-inferred",
            f"the columns were taken as {len(first)} items: {', '.join(first[:6])}"
            f"{', ...' if len(first) > 6 else ''}",
            severity="info",
        )
    return columns


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


def _columns_take(
    file: File, values: np.ndarray, columns: Columns, layout: Layout
) -> Take:
    facts = {**layout.facts, **columns.facts}
    unit = file.settle(
        "unit",
        stated=unit_named(facts.get("unit", "")),
        assumed="m",
        note="no unit in a table",
    )
    up = file.settle(
        "up", stated=facts.get("up"), assumed="z", note="no axes in a table"
    )
    rate, start = _clock(file, values, columns, facts)
    markers = [item for item in columns.items if not item.is_sensor]
    sensors = [item for item in columns.items if item.is_sensor]
    points = values[:, [c for item in markers for c in item.position]]
    points = points.reshape(len(values), len(markers), 3)
    points[~np.isfinite(points).all(axis=-1)] = np.nan
    T = np.empty((len(values), len(sensors), 4, 4))
    for k, sensor in enumerate(sensors):
        T[:, k] = _poses(values, sensor)
    _note_repeats(file, values, columns)
    return Take(
        rate=float(rate.value),
        points=points_in(points, unit.value, up.value),
        labels=tuple(item.name.rpartition(":")[2] for item in markers),
        subjects=tuple(item.name.rpartition(":")[0] for item in markers),
        T_world_sensor=poses_in(T, unit.value, up.value),
        sensor_names=tuple(item.name for item in sensors),
        start=start,
        source=file.source(unit=unit, up=up, rate=rate),
    )


def _poses(values: np.ndarray, item: Item) -> np.ndarray:
    """Return T_world_sensor of one item, in the units of the file."""
    if item.matrix:
        cells = values[:, item.matrix].reshape(len(values), -1, 4)
        R, t = cells[:, :3, :3], cells[:, :3, 3]
    elif item.quaternion:
        q = values[:, item.quaternion]
        length = np.linalg.norm(q, axis=-1, keepdims=True)
        q = q / np.where(length > 0.0, length, np.nan)
        R = geometry.matrix_from_quat(q)
    else:
        angles = values[:, item.euler]
        R = geometry.matrix_from_euler(
            np.radians(angles) if item.degrees else angles, item.order
        )
    return geometry.transform(R, values[:, item.position] if item.position else t)


def _clock(
    file: File, values: np.ndarray, columns: Columns, facts: dict[str, str]
) -> tuple[Fact, float]:
    """Return the frame rate and the time of the first frame."""
    times = values[:, columns.time] if columns.time >= 0 else np.zeros(0)
    span = float(times[-1] - times[0]) if len(times) > 1 else 0.0
    start = float(times[0]) if len(times) and abs(times[0]) < LARGEST_EPOCH else 0.0
    stated = facts.get("rate")
    if stated is not None or not (np.isfinite(span) and span > 0.0):
        return file.settle(
            "rate", stated=stated, assumed="100", note="no time column"
        ), start
    mean = span / (len(times) - 1)
    uneven = np.abs(np.diff(times) - mean) > JITTER * mean
    if uneven.any():
        file.note(
            "times-uneven",
            f"{uneven.mean():.0%} of the time steps differ from their mean by over "
            f"{JITTER:.0%}: frames are taken as evenly spaced at {1.0 / mean:.6g} Hz",
            value=1.0 / mean,
        )
    note = "mean step of the time column"
    return (
        file.settle(
            "rate", stated=f"{1.0 / mean:.10g}", assumed="", note=note, how="inferred"
        ),
        start,
    )


def _note_repeats(file: File, values: np.ndarray, columns: Columns) -> None:
    used = [c for c in range(values.shape[1]) if c != columns.time]
    same = (values[1:, used] == values[:-1, used]).all(axis=1)
    if same.mean() > 0.05 if len(same) else False:
        file.note(
            "rows-repeated",
            f"{same.mean():.0%} of the lines repeat the line before: "
            "the table was written faster than measured",
            value=float(same.mean()),
        )


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
    labels = [_cell_name(label) for label in take.full_labels]
    names = [f"{label}.{c}" for label in labels for c in "xyz"]
    parts = ("x", "y", "z", "qw", "qx", "qy", "qz")
    names += [f"{_cell_name(s)}.{part}" for s in take.sensor_names for part in parts]
    points = points_out(take.points, unit, up).reshape(take.n_frames, -1)
    T = poses_out(take.T_world_sensor, unit, up)
    q = geometry.quat_continuous(geometry.quat_from_matrix(T[..., :3, :3]))
    poses = np.concatenate([T[..., :3, 3], q], axis=-1).reshape(take.n_frames, -1)
    facts = f"{MARK}: unit={unit} up={up} rate={take.rate!r} frames={take.n_frames}"
    return {
        "": _lines(facts, names, take.times, np.concatenate([points, poses], axis=1))
    }


def _cell_name(name: str) -> str:
    return "".join(c if c.isprintable() else "_" for c in name)


def _lines(
    facts: str, names: Sequence[str], times: np.ndarray, values: np.ndarray
) -> Iterable[bytes]:
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(["time", *names])
    yield f"{facts}\n{header.getvalue()}".encode()
    for time, row in zip(times, values, strict=True):
        cells = ["" if v != v else f"{v:.{DECIMALS}f}" for v in row.tolist()]
        yield f"{time:.{DECIMALS}f},{','.join(cells)}\n".encode()


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
