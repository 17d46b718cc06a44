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
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.io.contract import File, Format, decode_text, normalize_text
from marey.io.text.names import fill_missing_names, split_subjects, unique_names
from marey.io.text.numbers import (
    MAX_COLUMNS,
    NumberTable,
    check_width,
    note_missing_line_end,
    parse_number,
    read_numbers,
)
from marey.io.text.rotations import repair_rotations
from marey.io.text.timing import decide_rate, first_time, note_frame_count
from marey.io.units_axes import points_from_file, poses_from_file
from marey.numerics import geometry
from marey.take import Event, Fact, Take

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


@dataclass(frozen=True, slots=True)
class QualisysHeader:
    """Everything above the first frame."""

    fields: Mapping[str, tuple[str, ...]]
    """Values by key; the first value of a repeated key."""

    events: tuple[Event, ...]
    columns: tuple[str, ...]
    """Column names; empty when there are none."""

    body: bytes
    body_line: int

    def value(self, key: str) -> str:
        """Return the first value of a key, "" when there is none."""
        return next(iter(self.values(key)), "")

    def values(self, key: str) -> tuple[str, ...]:
        """Return the values of a key."""
        return self.fields.get(key, ())

    def count(self, key: str) -> int:
        """Return a declared count, 0 when there is none."""
        value = parse_number(self.value(key))
        return int(value) if value is not None and value > 0.0 else 0


def sniff(head: bytes) -> bool:
    """Whether a file begins like a TSV of Qualisys."""
    return SIGNATURE.match(normalize_text(head)) is not None


def read_take(file: File) -> Take:
    """Return the markers or the rigid bodies of a QTM export."""
    text = file.text()
    head = _read_header(file, text)
    kind = head.value("DATA_INCLUDED").upper() or (
        "6D" if head.count("NO_OF_BODIES") else "3D"
    )
    if kind not in ("3D", "6D"):
        raise file.error(
            None,
            expected="DATA_INCLUDED 3D or 6D; export trajectories or 6DOF data",
            found=kind,
        )
    note_missing_line_end(file, text)
    return _bodies_take(file, head) if kind == "6D" else _markers_take(file, head)


# --- header --------------------------------------------------------------------------


def _read_header(file: File, text: bytes) -> QualisysHeader:
    fields: dict[str, tuple[str, ...]] = {}
    events: list[Event] = []
    start = 0
    lines = text.split(b"\n", MAX_HEADER_LINES)[:MAX_HEADER_LINES]
    for number, line in enumerate(lines, 1):
        check_width(file, line, b"\t", number)
        cells = [cell.strip() for cell in decode_text(line).split("\t")]
        key, values = _key(cells)
        if not key and any(cells):
            columns = () if _is_numbers(cells) else tuple(_strip_empty_cells(cells))
            body = text[start + (len(line) + 1 if columns else 0) :]
            return QualisysHeader(
                fields, tuple(events), columns, body, number + bool(columns)
            )
        if key == "EVENT":
            events += _event(values)
        elif key:
            fields.setdefault(key, tuple(_strip_empty_cells(values)))
        start += len(line) + 1
    raise file.error(None, expected="lines of numbers", found="a header alone")


def _strip_empty_cells(cells: Sequence[str]) -> Sequence[str]:
    """Return cells without the empty ones at the end, which trailing tabs make."""
    last = max((i for i, cell in enumerate(cells) if cell), default=-1)
    return cells[: last + 1]


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
        cell.lower() in ("", "nan", "null") or parse_number(cell) is not None
        for cell in cells
    )


def _event(values: Sequence[str]) -> list[Event]:
    """Return the event of a line: its name, frame and time."""
    time = parse_number(values[2]) if len(values) > 2 else None
    return [] if time is None else [Event(values[0], "", time)]


# --- numbers -------------------------------------------------------------------------


def _time_columns(head: QualisysHeader) -> list[str]:
    """Return the names of the leading columns that are no coordinates."""
    clocks = []
    for name in head.columns:
        if not TIME_COLUMN.fullmatch(name):
            break
        clocks.append(name.lower())
    return clocks


def _table(
    file: File, head: QualisysHeader, width: int
) -> tuple[Float[np.ndarray, "frame width"], Float[np.ndarray, " frame"]]:
    """Return `width` columns of numbers and the times, NaN where there are none.

    Without column names, the extra cells per line determine the time columns.
    """
    clocks = _time_columns(head)
    body = head.body.replace(b"NULL", b"")
    spare = len(clocks) if head.columns else 2
    numbers = read_numbers(
        file, body, columns=spare + width, delimiter="\t", first_line=head.body_line
    )
    if not head.columns:
        clocks = _time_columns_by_count(numbers, width)
    times = np.full(len(numbers.values), np.nan)
    for i, name in enumerate(clocks):
        if name.startswith("time"):
            times = numbers.values[:, i]
    note_frame_count(file, head.value("NO_OF_FRAMES"), len(times))
    first = len(clocks)
    return numbers.values[:, first : first + width], times


def _time_columns_by_count(numbers: NumberTable, width: int) -> list[str]:
    extra = int(numbers.cells.max(initial=0)) - width
    if extra == 1:
        whole = (numbers.values[:, 0] == np.round(numbers.values[:, 0])).all()
        return ["frame" if whole else "time"]
    return ["frame", "time"] if extra == 2 else []


def _take_facts(
    file: File, head: QualisysHeader, times: np.ndarray
) -> tuple[Fact, Fact, Fact]:
    note = "QTM's convention"
    unit = file.decide_fact(
        "unit", stated="mm", assumed="mm", note=note, how="inferred"
    )
    up = file.decide_fact("up", stated="z", assumed="z", note=note, how="inferred")
    rate = decide_rate(file, head.value("FREQUENCY"), times, note="FREQUENCY")
    return unit, up, rate


def _parameters(head: QualisysHeader) -> dict[str, str]:
    return {key: "\t".join(values) for key, values in head.fields.items()}


# --- markers -------------------------------------------------------------------------


def _markers_take(file: File, head: QualisysHeader) -> Take:
    names = head.values("MARKER_NAMES")
    given = head.columns[len(_time_columns(head)) :]
    if len(given) % 3:
        file.fail_at_line(
            head.body_line - 1,
            expected="three columns per marker",
            found=f"{len(given)} columns",
        )
    # Of count, names and columns the columns are the data itself.
    declared = head.count("NO_OF_MARKERS")
    count = len(given) // 3 or len(names) or declared
    values, times = _table(file, head, 3 * count)
    labels = _labels(file, names or [_without_axis(n) for n in given[::3]], count)
    if names and {declared or count, len(names)} != {count}:
        file.note(
            "markers-mismatch",
            f"markers declared {declared}, named {len(names)}, present {count}",
            value=float(count),
        )
    points = values.reshape(len(values), count, 3)
    keep = _choose_trajectories(file, head, count)
    points = points[:, keep]
    _blank_zeros(file, points)
    unit, up, rate = _take_facts(file, head, times)
    labels, subjects = split_subjects([labels[i] for i in keep])
    return Take(
        rate=float(rate.value),
        points=points_from_file(points, unit.value, up.value),
        labels=labels,
        subjects=subjects,
        start=first_time(times),
        events=head.events,
        source=file.source(unit=unit, up=up, rate=rate, parameters=_parameters(head)),
    )


def _without_axis(name: str) -> str:
    return name.removesuffix("X").rstrip(" _.")


def _last_word(cell: str) -> str:
    return cell.rpartition(" ")[2]


def _labels(file: File, names: Sequence[str], count: int) -> tuple[str, ...]:
    names = [*names[:count], *[""] * (count - len(names))]
    if not count:
        raise file.error(None, expected="at least one marker or body", found="none")
    return unique_names(file, fill_missing_names(file, names, "item"), "item")


def _choose_trajectories(file: File, head: QualisysHeader, count: int) -> list[int]:
    """Return the trajectories to keep: without virtual ones unless asked for."""
    types = [name.lower() for name in head.values("TRAJECTORY_TYPES")[:count]]
    virtual = {i for i, name in enumerate(types) if name == "virtual"}
    filled = sum(name in ("mixed", "gap-filled") for name in types)
    if filled:
        file.note(
            "trajectories-filled",
            f"{filled} trajectories hold gap-filled values, which are not marked",
            severity="info",
            value=float(filled),
        )
    if virtual and not file.options.computed:
        file.note(
            "computed-left-out",
            f"left out {len(virtual)} virtual trajectories, which QTM computed; "
            "computed=True keeps them",
            severity="info",
            value=float(len(virtual)),
        )
        return [i for i in range(count) if i not in virtual]
    return list(range(count))


def _blank_zeros(file: File, points: Float[np.ndarray, "frame marker 3"]) -> None:
    zero = (points == 0.0).all(axis=-1)
    if zero.any():
        points[zero] = np.nan
        file.note(
            "points-zero",
            f"{int(zero.sum())} positions are exactly zero: taken as not seen",
            severity="info",
            value=float(zero.sum()),
        )


# --- bodies --------------------------------------------------------------------------


def _bodies_take(file: File, head: QualisysHeader) -> Take:
    bodies = _body_columns(file, head)
    width = max((max(columns.values()) + 1 for columns in bodies), default=0)
    values, times = _table(file, head, width)
    names = head.values("BODY_NAMES") or tuple(
        _without_axis(cell) for cell in head.columns if _last_word(cell) == "X"
    )
    if {head.count("NO_OF_BODIES") or len(bodies), len(names)} != {len(bodies)}:
        file.note(
            "bodies-mismatch",
            f"bodies declared {head.count('NO_OF_BODIES')}, named {len(names)}, "
            f"present {len(bodies)}",
            value=float(len(bodies)),
        )
    labels = _labels(file, names, len(bodies))
    T = np.stack([_poses(file, values, columns) for columns in bodies], axis=1)
    unit, up, rate = _take_facts(file, head, times)
    return Take(
        rate=float(rate.value),
        T_world_sensor=poses_from_file(T, unit.value, up.value),
        sensor_names=labels,
        start=first_time(times),
        events=head.events,
        source=file.source(unit=unit, up=up, rate=rate, parameters=_parameters(head)),
    )


def _body_columns(file: File, head: QualisysHeader) -> list[dict[str, int]]:
    """Return the columns of each body by name, counted after frame and time."""
    if not head.columns:
        count = head.count("NO_OF_BODIES") or len(head.values("BODY_NAMES"))
        count = min(count, MAX_COLUMNS // len(BODY_COLUMNS))
        step = len(BODY_COLUMNS)
        return [
            {name: step * b + i for i, name in enumerate(BODY_COLUMNS)}
            for b in range(count)
        ]
    bodies: list[dict[str, int]] = []
    for i, cell in enumerate(head.columns[len(_time_columns(head)) :]):
        name = _last_word(cell)
        if name == "X":
            bodies.append({})
        if bodies and name:
            bodies[-1].setdefault(name, i)
    for columns in bodies:
        missing = [n for n in AXES if n not in columns]
        if missing or not _rotation_columns(columns):
            file.fail_at_line(
                head.body_line - 1,
                expected="X Y Z and Rot[0] to Rot[8] or Roll Pitch Yaw for each body",
                found=" ".join(columns),
            )
    return bodies


def _rotation_columns(columns: Mapping[str, int]) -> tuple[str, ...]:
    """Return the names of the columns that hold the rotation, () when none do."""
    return next((names for names in (MATRIX, ANGLES) if set(names) <= set(columns)), ())


def _poses(
    file: File, values: np.ndarray, columns: Mapping[str, int]
) -> Float[np.ndarray, "frame 4 4"]:
    """Return T_world_sensor of one body in millimetres."""
    position = values[:, [columns[name] for name in AXES]]
    names = _rotation_columns(columns)
    rotation = values[:, [columns[name] for name in names]]
    if names == MATRIX:
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
