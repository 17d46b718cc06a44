"""TRC, the marker table of Motion Analysis and OpenSim.

Five header lines, then one line per frame: number, time, and x y z of each marker. A
marker that was not seen is a blank or "nan". Zeros are kept as measured, and counted in
a finding. The up axis is not stated.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from jaxtyping import Float

from marey.io.contract import MAX_RATE_HZ, File, Format, decode_text, normalize_text
from marey.io.formats.trc.write import PRECISION_M, write_take
from marey.io.text.names import fill_missing_names, unique_names
from marey.io.text.numbers import (
    NumberTable,
    note_missing_line_end,
    parse_number,
    parse_table,
    refuse_words,
)
from marey.io.text.timing import MAX_RATE_DRIFT, TIME_ROUNDING_S, note_frame_count
from marey.io.units_axes import parse_unit, points_from_file
from marey.report import Finding
from marey.take import Fact, Take

MAGIC = b"pathfiletype"
MAX_MARKERS = 100_000
"""Largest number of markers; bounds the work on damaged files."""


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


@dataclass(frozen=True, slots=True)
class _TrcHeader:
    """Everything above the first frame."""

    fields: Mapping[str, str]
    labels: tuple[str, ...]
    body_line: int
    body: bytes

    def count(self, name: str) -> int | None:
        """Return a declared count, None when the header does not hold one."""
        value = parse_number(self.fields.get(name, ""))
        return None if value is None else int(value)


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
    rate = _decide_rate(file, raw)
    names = [_split_subject(label) for label in raw.labels]
    start = raw.times[0] if len(raw.times) else 0.0
    return Take(
        rate=float(rate.value),
        points=points_from_file(raw.points, unit.value, up.value),
        labels=tuple(label for _, label in names),
        subjects=tuple(subject for subject, _ in names),
        start=float(start) if np.isfinite(start) else 0.0,
        source=file.source(unit=unit, up=up, rate=rate, parameters=raw.header),
    )


def _split_subject(label: str) -> tuple[str, str]:
    """Return subject and label: "JOE:RTHI" is RTHI of JOE."""
    subject, _, rest = label.rpartition(":")
    return (subject, rest) if subject and rest else ("", label)


def _load(file: File) -> Trc:
    data = file.text()
    head = _read_header(file, data)
    table = _table(file, head)
    points = _points(file, table)
    labels = _labels(file, head, points.shape[1])
    _check_counts(file, head, points)
    note_missing_line_end(file, data)
    numbers = table.values[:, 0]
    known = numbers[np.isfinite(numbers)]
    first = int(known[0]) if len(known) else 1
    rate = parse_number(head.fields.get("DataRate", ""))
    return Trc(
        points=points,
        labels=labels,
        rate=rate if rate is not None and 0.0 < rate < MAX_RATE_HZ else np.nan,
        first_frame=first,
        last_frame=int(known[-1]) if len(known) else first + len(points) - 1,
        units=head.fields.get("Units", ""),
        times=table.values[:, 1].copy(),
        header=head.fields,
        findings=tuple(file.findings),
    )


# --- header --------------------------------------------------------------------------


def _read_header(file: File, data: bytes) -> _TrcHeader:
    lines = data.lstrip().split(b"\n", 5)
    skipped = data[: len(data) - len(data.lstrip())].count(b"\n")
    if lines[0][: len(MAGIC)].lower() != MAGIC:
        file.fail_at_line(
            1 + skipped,
            expected="PathFileType",
            found=decode_text(lines[0])[:80] or "nothing",
        )
    if len(lines) < 5:
        file.fail_at_line(
            len(lines) + skipped,
            expected="five header lines",
            found="the end of the file",
        )
    names, values = (_cells(line) for line in lines[1:3])
    fields = {"PathFileType": decode_text(lines[0])[len(MAGIC) :].strip()}
    fields |= dict(zip(names, values, strict=False))
    labels = _header_labels(file, lines[3], 4 + skipped)
    axes = _cells(lines[4])
    if any(parse_number(cell) is not None for cell in axes):
        # Some writers leave out the line of X1 Y1 Z1.
        body = b"\n".join(lines[4:])
        return _TrcHeader(fields, labels, 5 + skipped, body)
    return _TrcHeader(fields, labels, 6 + skipped, b"".join(lines[5:]))


def _cells(line: bytes) -> list[str]:
    """Return the cells of a header line: between tabs, or between blanks."""
    text = decode_text(line)
    return [c.strip() for c in text.split("\t")] if "\t" in text else text.split()


def _header_labels(file: File, line: bytes, number: int) -> tuple[str, ...]:
    cells = _cells(line)
    if not cells or not cells[0].lower().startswith("frame"):
        found = decode_text(line)[:80] or "nothing"
        file.fail_at_line(
            number,
            expected="Frame#, Time and the markers' names",
            found=found,
        )
    names = cells[2:]
    if any(name for i, name in enumerate(names) if i % 3):
        return tuple(name for name in names if name)
    while names and not names[-1]:
        names.pop()
    return tuple(names[::3])


def _labels(file: File, head: _TrcHeader, count: int) -> tuple[str, ...]:
    """Return one label per marker, unique, neutral ones where there is none."""
    named = list(head.labels[:count])
    named += [""] * (count - len(named))
    return unique_names(file, fill_missing_names(file, named, "marker"), "marker")


# --- numbers -------------------------------------------------------------------------


def _table(file: File, head: _TrcHeader) -> NumberTable:
    declared = head.count("NumFrames")
    delimiter = "\t" if b"\t" in head.body[: 2**16] else " "
    columns = 2 + 3 * len(head.labels)
    table = _parse_body(file, head, columns, delimiter)
    widest = int(table.cells.max(initial=0))
    if max(widest, columns) > 2 + 3 * MAX_MARKERS:
        file.fail_at_line(
            head.body_line,
            expected=f"at most {MAX_MARKERS} markers",
            found=f"{max(widest, columns)} cells on a line",
        )
    if widest > columns:
        columns = 2 + 3 * -(-(widest - 2) // 3)
        table = _parse_body(file, head, columns, delimiter)
    if len(table.cells) == 0:
        file.fail_at_line(
            head.body_line,
            expected="at least one frame",
            found=f"the end of the file, with {declared} frames declared",
        )
    refuse_words(file, table)
    return table


def _parse_body(
    file: File, head: _TrcHeader, columns: int, delimiter: str
) -> NumberTable:
    return parse_table(
        file,
        head.body,
        columns=columns,
        delimiter=delimiter,
        first_line=head.body_line,
    )


def _points(file: File, table: NumberTable) -> Float[np.ndarray, "frame point 3"]:
    """Return the coordinates; a marker with one of three missing counts as unseen."""
    n_frames, columns = table.values.shape
    points = table.values[:, 2:].reshape(n_frames, (columns - 2) // 3, 3).copy()
    # Three slices: numpy is slow to reduce along an axis of three.
    x, y, z = np.moveaxis(points, -1, 0)
    missing = np.isnan(x) + np.isnan(y).astype(np.uint8) + np.isnan(z)
    partly = (missing > 0) & (missing < 3)
    if partly.any():
        points[partly] = np.nan
        file.note(
            "points-partial",
            f"{int(partly.sum())} positions lack a coordinate: taken as not seen",
            value=float(partly.sum()),
        )
    zero = int(((x == 0.0) & (y == 0.0) & (z == 0.0)).sum())
    if zero:
        file.note(
            "points-zero",
            f"{zero} positions are exactly zero: kept, though some software "
            "writes zeros for markers it did not see",
            value=float(zero),
        )
    return points


def _check_counts(file: File, head: _TrcHeader, points: np.ndarray) -> None:
    frames, markers = head.count("NumFrames"), head.count("NumMarkers")
    n_frames, n_markers = points.shape[:2]
    note_frame_count(file, str(frames), n_frames)
    counts = {markers, len(head.labels)} - {None}
    if counts != {n_markers}:
        file.note(
            "markers-mismatch",
            f"markers declared {markers}, named {len(head.labels)}, "
            f"present {n_markers}: took {n_markers}",
            value=float(n_markers),
        )


# --- time ----------------------------------------------------------------------------


def _decide_rate(file: File, raw: Trc) -> Fact:
    """Decide the rate: DataRate, else the Time column; say where the two differ."""
    found = _rate_of(raw.times)
    stated = found if np.isnan(raw.rate) else raw.rate
    rate = file.decide_fact(
        "rate",
        stated=None if np.isnan(stated) else repr(stated),
        assumed="100",
        note="Time column" if np.isnan(raw.rate) else "DataRate",
        how="inferred" if np.isnan(raw.rate) else "stated",
    )
    if rate.how == "stated":
        # Times are rounded, often to a millisecond: the two ends may be off by that.
        tolerance = MAX_RATE_DRIFT + TIME_ROUNDING_S * stated / max(
            len(raw.times) - 1, 1
        )
        if abs(found / stated - 1.0) > tolerance:
            file.note(
                "rate-mismatch",
                f"DataRate says {stated:g} Hz, the Time column {found:g} Hz: "
                f"took {stated:g}",
                value=found,
            )
    _check_steps(file, raw.times)
    return rate


def _rate_of(times: np.ndarray) -> float:
    """Return the rate at which a time column runs, NaN when it does not."""
    with np.errstate(over="ignore"):
        span = float(times[-1] - times[0]) if len(times) > 1 else np.nan
    rate = (len(times) - 1) / span if span > 0.0 else np.nan
    return rate if 0.0 < rate < MAX_RATE_HZ else np.nan


def _check_steps(file: File, times: np.ndarray) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.diff(times)
        usual = np.median(steps) if len(steps) else np.nan
        uneven = np.abs(steps - usual) > 0.5 * abs(usual) + TIME_ROUNDING_S
    if uneven.any():
        file.note(
            "times-uneven",
            f"{int(uneven.sum())} steps of the Time column are not one frame",
            value=float(uneven.sum()),
        )


FORMAT = Format(
    name="trc",
    title="TRC (Motion Analysis, OpenSim)",
    suffixes=(".trc",),
    sniff=sniff,
    read_take=read_take,
    write_take=write_take,
    loses=("sensors", "filled", "events", "analog"),
    precision=PRECISION_M,
)
