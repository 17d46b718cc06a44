"""Qualisys Track Manager TSV: marker positions (3D) and rigid bodies (6D).

Header lines of a key and its values, a line of column names that may be left out with
the columns Frame and Time, then one line per frame in millimetres with Z up, which is
QTM's convention and not stated. A marker that was not seen is "nan", NULL, a blank or,
in older versions, three zeros. Trajectories of type Virtual are computed points.

A body has X Y Z, three angles in degrees, a residual and Rot[0] to Rot[8], the rotation
matrix column by column, which is read. Without it the angles are used: roll,
pitch, yaw about the moving axes x, y, z. A residual of -1 marks a body not seen.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from marey.io.contract import Format
from marey.io.file import Facts, File
from marey.io.text import names, numbers, timing
from marey.io.text.encoding import decode_text, normalize_text
from marey.io.text.header import TableHeader
from marey.io.text.rotations import repair_rotations
from marey.numerics import Float, geometry
from marey.take import Event, Take

SINGLE_WORD_KEYS = ("DESCRIPTION", "EVENT", "FILE_VERSION", "FREQUENCY", "TIME_STAMP")
KEY = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
TIME_COLUMN = re.compile(r"(frame|time)\W*s?\W*", re.IGNORECASE)
SIGNATURE = re.compile(
    rb"\s*(FILE_VERSION|NO_OF_(FRAMES|CAMERAS|MARKERS|BODIES))[ \t]+\S"
)
MAX_HEADER_LINES = 10_000
AXES = ("X", "Y", "Z")
ANGLES = ("Roll", "Pitch", "Yaw")
MATRIX = tuple(f"Rot[{i}]" for i in range(9))
BODY_COLUMNS = (*AXES, *ANGLES, "Residual", *MATRIX)


def sniff(head: bytes) -> bool:
    """Whether a file begins like a TSV of Qualisys."""
    return SIGNATURE.match(normalize_text(head)) is not None


def read_take(file: File) -> Take:
    """Return the markers or the rigid bodies of a QTM export."""
    text = file.text()
    head, events = _read_header(file, text)
    kind = head.fields.get("DATA_INCLUDED", "").partition("\t")[0].upper()
    kind = kind or ("6D" if _count(head, "NO_OF_BODIES") else "3D")
    if kind not in ("3D", "6D"):
        file.fail("DATA_INCLUDED 3D or 6D; export trajectories or 6DOF data", kind)
    numbers.note_missing_line_end(file, text)
    content, times = (_bodies if kind == "6D" else _markers)(file, head)
    note = "QTM's convention"
    facts = Facts(
        file.decide_fact("unit", stated="mm", assumed="mm", note=note, how="inferred"),
        file.decide_fact("up", stated="z", assumed="z", note=note, how="inferred"),
        timing.decide_rate(
            file, _values(head, "FREQUENCY")[0], times, note="FREQUENCY"
        ),
    )
    start = timing.first_time(times)
    return file.take(
        facts, **content, start=start, events=events, parameters=head.fields
    )


# --- header --------------------------------------------------------------------------


def _read_header(file: File, text: bytes) -> tuple[TableHeader, tuple[Event, ...]]:
    fields: dict[str, str] = {}
    events: list[Event] = []
    start = 0
    lines = text.split(b"\n", MAX_HEADER_LINES)[:MAX_HEADER_LINES]
    for number, line in enumerate(lines, 1):
        numbers.check_width(file, line, b"\t", number)
        row = decode_text(line).split("\t")
        cells = [cell.strip() for cell in row]
        key, values = _key(cells)
        if not key and any(cells):
            columns = () if _is_numbers(cells) else _strip_empty_cells(cells)
            body = text[start + (len(line) + 1 if columns else 0) :]
            line_of_body = number + bool(columns)
            return TableHeader(fields, columns, body, line_of_body), tuple(events)
        if key == "EVENT":
            events += _event(values)
        elif key:
            fields.setdefault(key, "\t".join(_strip_empty_cells(values)))
        start += len(line) + 1
    file.fail("lines of numbers", "a header alone")


def _values(head: TableHeader, key: str) -> list[str]:
    """Return the values of a key, at least one."""
    return head.fields.get(key, "").split("\t")


def _names(head: TableHeader, key: str) -> list[str]:
    """Return the names that a key lists, perhaps none."""
    return _values(head, key) if head.fields.get(key) else []


def _count(head: TableHeader, key: str) -> int:
    """Return a declared count, 0 when there is none."""
    value = numbers.parse_number(_values(head, key)[0])
    return int(value) if value is not None and value > 0.0 else 0


def _strip_empty_cells(cells: Sequence[str]) -> tuple[str, ...]:
    """Return cells without the empty ones at the end, which trailing tabs make."""
    last = max((i for i, cell in enumerate(cells) if cell), default=-1)
    return tuple(cells[: last + 1])


def _key(cells: Sequence[str]) -> tuple[str, list[str]]:
    """Return key and values of a header line; "" when it is none."""
    first, _, rest = cells[0].partition(" ")
    if KEY.fullmatch(cells[0]) or cells[0] in SINGLE_WORD_KEYS:
        return cells[0], list(cells[1:])
    if first in SINGLE_WORD_KEYS:
        return first, [rest.strip(), *cells[1:]]
    return "", []


def _is_numbers(cells: Sequence[str]) -> bool:
    return all(
        cell.lower() in ("", "nan", "null") or numbers.parse_number(cell) is not None
        for cell in cells
    )


def _event(values: Sequence[str]) -> list[Event]:
    """Return the event of a line: its name, frame and time."""
    time = numbers.parse_number(values[2]) if len(values) > 2 else None
    return [] if time is None else [Event(values[0], "", time)]


# --- numbers -------------------------------------------------------------------------


def _clocks(head: TableHeader) -> list[str]:
    """Return the names of the leading columns that are no coordinates."""
    return [name.lower() for name in takewhile(TIME_COLUMN.fullmatch, head.columns)]


def _table(
    file: File, head: TableHeader, width: int
) -> tuple[Float[np.ndarray, "frame width"], Float[np.ndarray, " frame"]]:
    """Return `width` columns of numbers and the times, NaN where there are none.

    Without column names, the extra cells per line determine the time columns.
    """
    clocks = _clocks(head)
    body = head.body.replace(b"NULL", b"")
    columns = width + (len(clocks) if head.columns else 2)
    table = numbers.read_numbers(
        file, body, columns=columns, delimiter="\t", first_line=head.body_line
    )
    if not head.columns:
        clocks = _clocks_by_count(table, width)
    times = np.full(len(table.values), np.nan)
    for i, name in enumerate(clocks):
        if name.startswith("time"):
            times = table.values[:, i]
    timing.note_frame_count(file, _values(head, "NO_OF_FRAMES")[0], len(times))
    first = len(clocks)
    return table.values[:, first : first + width], times


def _clocks_by_count(table: numbers.NumberTable, width: int) -> list[str]:
    extra = int(table.cells.max(initial=0)) - width
    if extra == 1:
        whole = (table.values[:, 0] == np.round(table.values[:, 0])).all()
        return ["frame" if whole else "time"]
    return ["frame", "time"] if extra == 2 else []


def _check_count(
    file: File, head: TableHeader, what: str, named: int, present: int
) -> None:
    declared = _count(head, f"NO_OF_{what.upper()}")
    if {declared or present, named} != {present}:
        file.note(
            f"{what}-mismatch",
            f"{what} declared {declared}, named {named}, present {present}",
            value=present,
        )


def _labels(file: File, titles: Sequence[str], count: int) -> tuple[str, ...]:
    if not count:
        file.fail("at least one marker or body", "none")
    return names.name_all(file, titles, count, "item")


# --- markers -------------------------------------------------------------------------


def _markers(
    file: File, head: TableHeader
) -> tuple[dict[str, Any], Float[np.ndarray, " frame"]]:
    """Return the fields of a take of markers, and the times in seconds."""
    titles = _names(head, "MARKER_NAMES")
    given = head.columns[len(_clocks(head)) :]
    if len(given) % 3:
        found, line = f"{len(given)} columns", head.body_line - 1
        file.fail("three columns per marker", found, line=line)
    # Of count, names and columns the columns are the data itself.
    count = len(given) // 3 or len(titles) or _count(head, "NO_OF_MARKERS")
    values, times = _table(file, head, 3 * count)
    labels = _labels(file, titles or [_without_axis(n) for n in given[::3]], count)
    if titles:
        _check_count(file, head, "markers", len(titles), count)
    keep = _choose_trajectories(file, head, count)
    points = values.reshape(len(values), count, 3)[:, keep]
    zero = (points == 0.0).all(axis=-1)
    points[zero] = np.nan
    file.note_count(
        "points-zero",
        int(zero.sum()),
        "{} positions are exactly zero: taken as not seen",
        severity="info",
    )
    return {"points": points, "markers": [labels[i] for i in keep]}, times


def _without_axis(name: str) -> str:
    return name.removesuffix("X").rstrip(" _.")


def _last_word(cell: str) -> str:
    return cell.rpartition(" ")[2]


def _choose_trajectories(file: File, head: TableHeader, count: int) -> list[int]:
    """Return the trajectories to keep: without virtual ones unless asked for."""
    types = [name.lower() for name in _values(head, "TRAJECTORY_TYPES")[:count]]
    virtual = {i for i, name in enumerate(types) if name == "virtual"}
    filled = sum(name in ("mixed", "gap-filled") for name in types)
    file.note_count(
        "trajectories-filled",
        filled,
        "{} trajectories hold gap-filled values, which are not marked",
        severity="info",
    )
    if file.options.computed:
        return list(range(count))
    file.note_count(
        "computed-left-out",
        len(virtual),
        "left out {} virtual trajectories, which QTM computed; computed=True "
        "keeps them",
        severity="info",
    )
    return [i for i in range(count) if i not in virtual]


# --- bodies --------------------------------------------------------------------------


def _bodies(
    file: File, head: TableHeader
) -> tuple[dict[str, Any], Float[np.ndarray, " frame"]]:
    """Return the fields of a take of rigid bodies, and the times in seconds."""
    bodies = _body_columns(file, head)
    width = max((max(columns.values()) + 1 for columns in bodies), default=0)
    values, times = _table(file, head, width)
    titles = _names(head, "BODY_NAMES") or [
        _without_axis(cell) for cell in head.columns if _last_word(cell) == "X"
    ]
    _check_count(file, head, "bodies", len(titles), len(bodies))
    labels = _labels(file, titles, len(bodies))
    T = np.stack([_poses(file, values, columns) for columns in bodies], axis=1)
    return {"T_world_sensor": T, "sensor_names": labels}, times


def _body_columns(file: File, head: TableHeader) -> list[dict[str, int]]:
    """Return the columns of each body by name, counted after frame and time."""
    if not head.columns:
        count = _count(head, "NO_OF_BODIES") or len(_names(head, "BODY_NAMES"))
        step = len(BODY_COLUMNS)
        return [
            {name: step * b + i for i, name in enumerate(BODY_COLUMNS)}
            for b in range(min(count, numbers.MAX_COLUMNS // step))
        ]
    bodies: list[dict[str, int]] = []
    for i, cell in enumerate(head.columns[len(_clocks(head)) :]):
        name = _last_word(cell)
        if name == "X":
            bodies.append({})
        if bodies and name:
            bodies[-1].setdefault(name, i)
    for columns in bodies:
        missing = [n for n in AXES if n not in columns]
        if missing or not _rotation_columns(columns):
            file.fail(
                "X Y Z and Rot[0] to Rot[8] or Roll Pitch Yaw for each body",
                " ".join(columns),
                line=head.body_line - 1,
            )
    return bodies


def _rotation_columns(columns: Mapping[str, int]) -> tuple[str, ...]:
    """Return the names of the columns that hold the rotation, () when none do."""
    return next((n for n in (MATRIX, ANGLES) if set(n) <= set(columns)), ())


def _poses(
    file: File, values: np.ndarray, columns: Mapping[str, int]
) -> Float[np.ndarray, "frame 4 4"]:
    """Return T_world_sensor of one body in millimetres."""
    position = values[:, [columns[name] for name in AXES]]
    parts = _rotation_columns(columns)
    rotation = values[:, [columns[name] for name in parts]]
    if parts == MATRIX:
        R = repair_rotations(file, rotation.reshape(-1, 3, 3).swapaxes(-1, -2))
    else:
        R = geometry.matrix_from_euler(np.radians(rotation), "XYZ")
    T = geometry.transform(R, position)
    if "Residual" in columns:
        T[values[:, columns["Residual"]] < 0.0] = np.nan
    return T


FORMAT = Format(
    name="qualisys",
    title="Qualisys Track Manager TSV",
    suffixes=(".tsv",),
    sniff=sniff,
    read_take=read_take,
)
