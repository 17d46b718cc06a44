"""TRC, the marker table of Motion Analysis and OpenSim.

Five header lines, then one line per frame: number, time, and x y z of each marker,
between tabs, blanks or, after a spreadsheet, commas. A marker that was not seen is a
blank or "nan". Zeros are kept as measured, and counted in
a finding. The up axis is not stated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import NoReturn

import numpy as np

from marey.io.contract import Format, Output
from marey.io.file import Facts, File
from marey.io.options import WriteOptions
from marey.io.text import names, numbers, timing
from marey.io.text.encoding import decode_text, normalize_text
from marey.io.text.header import HEAD_BYTES, TableHeader, delimiter_of, split_cells
from marey.io.text.take import marker_table
from marey.io.units_axes import parse_unit
from marey.numerics import Float
from marey.report import Finding
from marey.take import Take

MAGIC = b"pathfiletype"
MAX_MARKERS = 100_000
"""Largest number of markers; bounds the work on damaged files."""

UNSEEN_AT_END = b"\t\t\t\n"
NAN_AT_END = b"\tnan\tnan\tnan\n"
"""The last marker of a line, not seen: as blanks, and as words."""

PRECISION_M = 1e-8
"""Metres to which a coordinate is written."""


@dataclass(frozen=True, slots=True, eq=False)
class Trc:
    """The content of a TRC file in its own unit, axes and order."""

    points: Float[np.ndarray, "frame point 3"]
    """Coordinates in `units`; NaN where a marker was not seen."""

    labels: tuple[str, ...]
    """Labels, subject included; neutral ones where the file has none."""

    rate: float
    """DataRate in hertz; NaN when the file does not say it."""

    first_frame: int
    last_frame: int
    units: str
    """The word of the file, such as "mm"."""

    times: Float[np.ndarray, " frame"]
    """The Time column in seconds; NaN where it is blank."""

    header: Mapping[str, str]
    """Header fields by name, and "PathFileType"."""

    findings: tuple[Finding, ...] = ()


def sniff(head: bytes) -> bool:
    """Whether a file begins like a TRC."""
    return normalize_text(head).lstrip()[: len(MAGIC)].lower() == MAGIC


def load(path: str | PathLike[str]) -> Trc:
    """Return everything a TRC file holds, in its own unit and axes.

    Raises:
        FormatError: If the file is not a TRC or is damaged beyond reading.
    """
    return _load(File(Path(path), "trc"))


def read_take(file: File) -> Take:
    """Return the take of a TRC file."""
    raw = _load(file)
    stated = parse_unit(raw.units)
    unit = file.decide_fact("unit", stated=stated, assumed="mm", note="Units")
    up = file.decide_fact("up", assumed="y", note="TRC does not state it")
    word = raw.header.get("DataRate", "")
    rate = timing.decide_rate(
        file, word, raw.times, note="DataRate", clock="Time column"
    )
    return file.take(
        Facts(unit, up, rate),
        points=raw.points,
        markers=raw.labels,
        start=timing.first_time(raw.times),
        parameters=raw.header,
    )


def _load(file: File) -> Trc:
    data = file.text()
    head = _read_header(file, data)
    table = _table(file, head)
    points = _points(file, table)
    labels = names.name_all(file, head.columns, points.shape[1], "marker")
    _check_counts(file, head, points)
    numbers.note_missing_line_end(file, data)
    known = table.values[np.isfinite(table.values[:, 0]), 0]
    first = int(known[0]) if len(known) else 1
    rate = timing.parse_rate(head.fields.get("DataRate", ""))
    return Trc(
        points=points,
        labels=labels,
        rate=np.nan if rate is None else rate,
        first_frame=first,
        last_frame=int(known[-1]) if len(known) else first + len(points) - 1,
        units=head.fields.get("Units", ""),
        times=table.values[:, 1].copy(),
        header=head.fields,
        findings=tuple(file.findings),
    )


# --- header --------------------------------------------------------------------------


def _read_header(file: File, data: bytes) -> TableHeader:
    """Return the fields, labels and body of the table, and the line of the body."""
    lines = data.lstrip().split(b"\n", 5)
    delimiter = _delimiter(b"\n".join(lines[1:4]))
    skipped = data[: len(data) - len(data.lstrip())].count(b"\n")
    if lines[0][: len(MAGIC)].lower() != MAGIC:
        _fail_at(file, "PathFileType", lines[0], 1 + skipped)
    if len(lines) < 5:
        end = len(lines) + skipped
        file.fail("five header lines", "the end of the file", line=end)
    keys, values, titles, axes = (split_cells(line, delimiter) for line in lines[1:5])
    fields = {"PathFileType": decode_text(lines[0])[len(MAGIC) :].strip(", \t")}
    fields |= dict(zip(keys, values, strict=False))
    if not titles or not titles[0].lower().startswith("frame"):
        _fail_at(file, "Frame#, Time and the markers' names", lines[3], 4 + skipped)
    # Some writers leave out the line of X1 Y1 Z1.
    first = 5 - any(numbers.parse_number(cell) is not None for cell in axes)
    body = b"\n".join(lines[first:])
    return TableHeader(fields, _labels(titles[2:]), body, 1 + first + skipped)


def _delimiter(text: bytes) -> str:
    """Return what separates cells: tabs, else commas, else blanks."""
    return "," if b"," in text and b"\t" not in text else delimiter_of(text)


def _fail_at(file: File, expected: str, found: bytes, line: int) -> NoReturn:
    file.fail(expected, decode_text(found)[:80] or "nothing", line=line)


def _labels(cells: list[str]) -> tuple[str, ...]:
    """Return the names of markers, each in the first of three columns or without."""
    if any(name for i, name in enumerate(cells) if i % 3):
        return tuple(name for name in cells if name)
    while cells and not cells[-1]:
        cells.pop()
    return tuple(cells[::3])


# --- numbers -------------------------------------------------------------------------


def _table(file: File, head: TableHeader) -> numbers.NumberTable:
    columns = 2 + 3 * len(head.columns)
    table = _parse_body(file, head, columns)
    widest = int(table.cells.max(initial=0))
    if max(widest, columns) > 2 + 3 * MAX_MARKERS:
        found = f"{max(widest, columns)} cells on a line"
        file.fail(f"at most {MAX_MARKERS} markers", found, line=head.body_line)
    if widest > columns:
        table = _parse_body(file, head, 2 + 3 * -(-(widest - 2) // 3))
    if len(table.cells) == 0:
        declared = head.count("NumFrames")
        found = f"the end of the file, with {declared} frames declared"
        file.fail("at least one frame", found, line=head.body_line)
    numbers.refuse_words(file, table)
    return table


def _parse_body(file: File, head: TableHeader, columns: int) -> numbers.NumberTable:
    delimiter, line = _delimiter(head.body[:HEAD_BYTES]), head.body_line
    return numbers.parse_table(
        file, head.body, columns=columns, delimiter=delimiter, first_line=line
    )


def _points(
    file: File, table: numbers.NumberTable
) -> Float[np.ndarray, "frame point 3"]:
    """Return the coordinates; a marker with one of three missing counts as unseen."""
    n_frames, columns = table.values.shape
    points = table.values[:, 2:].reshape(n_frames, (columns - 2) // 3, 3).copy()
    # Three slices: numpy is slow to reduce along an axis of three.
    x, y, z = np.moveaxis(points, -1, 0)
    missing = np.isnan(x) + np.isnan(y).astype(np.uint8) + np.isnan(z)
    partly = (missing > 0) & (missing < 3)
    points[partly] = np.nan
    lacking = int(partly.sum())
    file.note_count(
        "points-partial", lacking, "{} positions lack a coordinate: taken as not seen"
    )
    zero = int(((x == 0.0) & (y == 0.0) & (z == 0.0)).sum())
    file.note_count(
        "points-zero",
        zero,
        "{} positions are exactly zero, as some software writes what it did not see: "
        "reading keeps them, cleaning masks those far from the others",
    )
    return points


def _check_counts(file: File, head: TableHeader, points: np.ndarray) -> None:
    n_frames, n_markers = points.shape[:2]
    timing.note_frame_count(file, head.fields.get("NumFrames", ""), n_frames)
    markers = head.count("NumMarkers")
    if {markers, len(head.columns)} - {None} != {n_markers}:
        file.note(
            "markers-mismatch",
            f"markers declared {markers}, named {len(head.columns)}, "
            f"present {n_markers}: {n_markers} are read",
            value=n_markers,
        )


# --- writing -------------------------------------------------------------------------


def write_take(take: Take, options: WriteOptions) -> Output:
    """Return the TRC of a take: mm and Y up, or what the TRC it came from had.

    Sensors become markers at their origins. Coordinates are rounded to 1e-8 m.
    """
    world = options.world("mm", "y", take.source, "trc")
    labels, points, decimals = marker_table(take, world, PRECISION_M)
    points[~np.isfinite(points).all(axis=-1)] = np.nan
    row = "%d\t%.9f" + f"\t%.{decimals}f" * (3 * len(labels)) + "\n"
    frame = np.arange(take.n_frames) + 1.0
    values = np.column_stack(
        [frame, take.times, points.reshape(take.n_frames, 3 * points.shape[1])]
    )
    head = _header(take, parse_unit(world.unit) or "mm", labels)
    lines = numbers.format_lines(head, row, values, nan="")
    return {"": map(_end_in_text, lines)}


def _end_in_text(line: bytes) -> bytes:
    """Return a line with "nan" for the last marker if it was not seen.

    OpenSim drops a blank at the end of a line and then misses a column.
    """
    if not line.endswith(UNSEEN_AT_END):
        return line
    return line.removesuffix(UNSEEN_AT_END) + NAN_AT_END


def _header(take: Take, unit: str, labels: Sequence[str]) -> str:
    rate, frames = repr(float(take.rate)), str(take.n_frames)
    fields = {"DataRate": rate, "CameraRate": rate, "NumFrames": frames}
    fields |= {"NumMarkers": str(len(labels)), "Units": unit, "OrigDataRate": rate}
    fields |= {"OrigDataStartFrame": "1", "OrigNumFrames": frames}
    lines = [
        ["PathFileType", "4", "(X/Y/Z)", "marey.trc"],
        [*fields],
        [*fields.values()],
        ["Frame#", "Time", *(cell for label in labels for cell in (label, "", ""))],
        ["", "", *(f"{axis}{i + 1}" for i in range(len(labels)) for axis in "XYZ")],
        [],
    ]
    return "".join("\t".join(line) + "\n" for line in lines)


FORMAT = Format(
    name="trc",
    title="TRC (Motion Analysis, OpenSim)",
    suffixes=(".trc",),
    sniff=sniff,
    read_take=read_take,
    write_take=write_take,
    loses=("sensors", "filled", "events", "analog", "computed", "confidence"),
    precision=PRECISION_M,
)
