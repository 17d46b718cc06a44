"""OpenSim storage tables (.sto, .mot): marker positions and sensor orientations.

Header lines of key=value end with "endheader"; a line of column names that begins with
`time` and one line per frame follow. Read are tables of markers, either DataType=Vec3
with cells x,y,z or three columns of numbers per marker (LFHD_tx LFHD_ty LFHD_tz), and
tables of orientations, DataType=Quaternion with cells w,x,y,z. Joint coordinates say
nothing without their model, and forces are no motion: both are refused.

OpenSim's world has Y up and is in metres. Orientation tables mostly come straight from
inertial sensors, whose worlds have Z up, and hold no positions: the sensors are at
the origin.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from marey.io.contract import (
    SNIFF_BYTES,
    File,
    Format,
    Output,
    WriteOptions,
    decode_text,
    normalize_text,
)
from marey.io.text.names import printable_name, split_subjects, unique_names
from marey.io.text.numbers import (
    NumberTable,
    check_width,
    decimals_for,
    note_missing_line_end,
    parse_number,
    read_numbers,
    round_values,
)
from marey.io.text.rotations import rotations_from_quaternions
from marey.io.text.timing import decide_rate, first_time, note_frame_count
from marey.io.units_axes import (
    parse_unit,
    points_from_file,
    points_to_file,
    poses_from_file,
)
from marey.numerics import geometry
from marey.take import Take

END = re.compile(rb"^[ \t]*endheader[ \t]*$", re.IGNORECASE | re.MULTILINE)
OLD_KEYS = {"datarows": "nrows", "datacolumns": "ncolumns"}
"""Keys of the older tables, which part key and value by a blank."""

NUMBERS_PER_CELL = {"vec3": 3, "quaternion": 4, "double": 1, "": 1}
"""Numbers in a cell by data type."""

AXIS_SUFFIXES = (("_tx", "_ty", "_tz"), ("_x", "_y", "_z"), (".x", ".y", ".z"))
EXPECTED_TABLE = (
    "a table of markers (DataType=Vec3, or three columns such as LFHD_tx LFHD_ty "
    "LFHD_tz for each) or of orientations (DataType=Quaternion)"
)
PRECISION_M = 1e-9
"""Metres to which a coordinate is written."""

TIME_DECIMALS = 9


@dataclass(frozen=True, slots=True)
class StorageHeader:
    """Everything above the first frame."""

    fields: Mapping[str, str]
    """Values by key in lower case."""

    columns: tuple[str, ...]
    """Column names after `time`."""

    body: bytes
    body_line: int

    @property
    def data_type(self) -> str:
        """What a cell holds, in lower case."""
        return self.fields.get("datatype", "").lower()


def sniff(head: bytes) -> bool:
    """Whether a file begins like a storage table."""
    text = normalize_text(head)
    return b"\0" not in text and END.search(text) is not None


def read_take(file: File) -> Take:
    """Return the markers or the oriented sensors of a storage table."""
    text = file.text()
    head = _read_header(file, text)
    if head.data_type not in NUMBERS_PER_CELL:
        raise file.error(
            None, expected=EXPECTED_TABLE, found=f"DataType={head.data_type}"
        )
    note_missing_line_end(file, text)
    if head.data_type == "quaternion":
        return _orientations_take(file, head, text)
    return _markers_take(file, head, text)


# --- header --------------------------------------------------------------------------


def _read_header(file: File, text: bytes) -> StorageHeader:
    end = END.search(text[:SNIFF_BYTES])
    if end is None:
        raise file.error(None, expected="a line endheader", found="none")
    rest = text[end.end() :].lstrip()
    line, _, body = rest.partition(b"\n")
    number = text.count(b"\n", 0, len(text) - len(rest)) + 1
    check_width(file, line, b"\t", number)
    names = decode_text(line)
    cells = names.split("\t") if "\t" in names else names.split()
    cells = [cell.strip() for cell in cells]
    if not cells or cells[0].lower() != "time":
        file.fail_at_line(
            number, expected="column names that begin with time", found=names or "none"
        )
    while not cells[-1]:
        cells.pop()
    pairs = map(_field, decode_text(text[: end.start()]).split("\n"))
    fields = {key: value for key, value in pairs if key}
    return StorageHeader(fields, tuple(cells[1:]), body, number + 1)


def _field(line: str) -> tuple[str, str]:
    key, sign, value = line.partition("=")
    if not sign:
        key, _, value = line.strip().partition(" ")
    name = key.strip().lower()
    return OLD_KEYS.get(name, name), value.strip()


def _numbers(file: File, head: StorageHeader, text: bytes, size: int) -> NumberTable:
    """Return the rows of a table with `size` numbers to a cell.

    A table of cells with commas must fill every line, because a missing cell could
    not be distinguished from the next one. A last line that was cut off is left out.
    """
    packed = size > 1
    columns = 1 + size * len(head.columns)
    tabbed = b"\t" in head.body[: 2**16]
    table = read_numbers(
        file,
        head.body.replace(b",", b" ") if packed else head.body,
        columns=columns,
        delimiter="\t" if tabbed and not packed else " ",
        first_line=head.body_line,
    )
    note_frame_count(file, head.fields.get("nrows", ""), len(table.cells))
    declared = parse_number(head.fields.get("ncolumns", ""))
    if declared is not None and declared != 1 + len(head.columns):
        file.note(
            "columns-mismatch",
            f"columns declared {declared:.15g}, present {1 + len(head.columns)}",
        )
    short = np.flatnonzero(table.cells < columns) if packed else np.zeros(0, int)
    if not len(short):
        return table
    last = len(table.cells) - 1
    if short[0] < last or text.endswith(b"\n") or last == 0:
        file.fail_at_line(
            int(table.line[short[0]]),
            expected=f"{len(head.columns)} cells of {size} numbers",
            found=f"{table.cells[short[0]] - 1} numbers",
        )
    return table.select(slice(last))


# --- markers -------------------------------------------------------------------------


def _markers_take(file: File, head: StorageHeader, text: bytes) -> Take:
    size = NUMBERS_PER_CELL[head.data_type]
    names, order = (
        _vector_columns(head) if size == 3 else _single_number_columns(file, head)
    )
    if not names:
        raise file.error(None, expected=EXPECTED_TABLE, found="a table of times alone")
    table = _numbers(file, head, text, size)
    points = table.values[:, order].reshape(len(table.values), -1, 3)
    times = table.values[:, 0]
    fields = head.fields
    stated = (
        parse_unit(fields["units"]) or fields["units"] if "units" in fields else None
    )
    unit = file.decide_fact("unit", stated=stated, assumed="m", note="Units")
    up = file.decide_fact(
        "up",
        stated=fields.get("up", "y"),
        assumed="y",
        note="up" if "up" in fields else "OpenSim's own axes",
        how="stated" if "up" in fields else "inferred",
    )
    rate = decide_rate(file, fields.get("datarate", ""), times, note="DataRate")
    labels, subjects = split_subjects(unique_names(file, names, "marker"))
    return Take(
        rate=float(rate.value),
        points=points_from_file(points, unit.value, up.value),
        labels=labels,
        subjects=subjects,
        start=first_time(times),
        source=file.source(unit=unit, up=up, rate=rate, parameters=fields),
    )


def _vector_columns(head: StorageHeader) -> tuple[list[str], list[int]]:
    names = [name or f"M{i + 1}" for i, name in enumerate(head.columns)]
    return names, list(range(1, 1 + 3 * len(names)))


def _single_number_columns(
    file: File, head: StorageHeader
) -> tuple[list[str], list[int]]:
    """Return the markers that columns of single numbers spell out, with their columns.

    Raises:
        FormatError: If there are columns that belong to no marker.
    """
    column = {name.lower(): i + 1 for i, name in enumerate(head.columns)}
    names: list[str] = []
    order: list[int] = []
    for name in head.columns:
        for ending in AXIS_SUFFIXES:
            stem = name[: -len(ending[0])]
            group = [column.get(stem.lower() + e) for e in ending]
            if name.lower().endswith(ending[0]) and None not in group and stem:
                names.append(stem)
                order += [i for i in group if i is not None]
    alone = [n for i, n in enumerate(head.columns) if i + 1 not in set(order)]
    if alone or len(set(order)) != len(order):
        raise file.error(
            None,
            expected=EXPECTED_TABLE,
            found=_describe_columns(alone or list(head.columns)),
        )
    return names, order


def _describe_columns(alone: Sequence[str]) -> str:
    """Return in words what a table with these columns holds."""
    text = " ".join(alone).lower()
    force = any(word in text for word in ("force", "torque", "moment", "grf"))
    kind = (
        "forces, which are no motion"
        if force
        else "joint coordinates or other numbers: give marey the markers they came from"
    )
    return f"columns {', '.join(alone[:4])}: {kind}"


# --- orientations --------------------------------------------------------------------


def _orientations_take(file: File, head: StorageHeader, text: bytes) -> Take:
    if not head.columns:
        raise file.error(None, expected=EXPECTED_TABLE, found="a table of times alone")
    table = _numbers(file, head, text, 4)
    wxyz = table.values[:, 1:].reshape(len(table.values), -1, 4)
    times = table.values[:, 0]
    note = "no lengths in a table of orientations"
    unit = file.decide_fact("unit", stated="m", assumed="m", note=note, how="inferred")
    up = file.decide_fact(
        "up", stated=head.fields.get("up"), assumed="z", note="inertial sensors"
    )
    rate = decide_rate(file, head.fields.get("datarate", ""), times, note="DataRate")
    file.note(
        "positions-unknown",
        "the file holds orientations alone: every sensor is at the origin",
    )
    names = [name or f"S{i + 1}" for i, name in enumerate(head.columns)]
    T = geometry.transform(rotations_from_quaternions(file, wxyz), np.zeros(3))
    return Take(
        rate=float(rate.value),
        T_world_sensor=poses_from_file(T, unit.value, up.value),
        sensor_names=unique_names(file, names, "sensor"),
        start=first_time(times),
        source=file.source(unit=unit, up=up, rate=rate, parameters=head.fields),
    )


# --- writing -------------------------------------------------------------------------


def write_take(take: Take, options: WriteOptions) -> Output:
    """Return the Vec3 table of a take, in metres with Y up unless asked otherwise.

    Sensors become markers at their origins. Coordinates are rounded to 1e-9 m. Unit
    and up axis are stated in the header, where OpenSim ignores the latter.
    """
    unit = parse_unit(options.unit or "m") or "m"
    up = options.up or "y"
    positions = np.concatenate([take.points, take.T_world_sensor[..., :3, 3]], axis=1)
    labels = [printable_name(n) for n in (*take.full_labels, *take.sensor_names)]
    fields = {
        "nRows": take.n_frames,
        "nColumns": 1 + len(labels),
        "DataRate": repr(float(take.rate)),
        "DataType": "Vec3",
        "Units": unit,
        "up": up,
        "version": 3,
    }
    header = "".join(f"{key}={value}\n" for key, value in fields.items())
    titles = "\t".join(["time", *labels])
    decimals = decimals_for(unit, PRECISION_M)
    values = round_values(points_to_file(positions, unit, up), decimals)
    return {"": _lines(f"{header}endheader\n{titles}\n", take.times, values, decimals)}


def _lines(
    header: str, times: np.ndarray, points: np.ndarray, decimals: int
) -> Iterator[bytes]:
    yield header.encode()
    cell = ",".join([f"%.{decimals}f"] * 3)
    row = "\t".join([f"%.{TIME_DECIMALS}f", *[cell] * points.shape[1]])
    for time, position in zip(times.tolist(), points, strict=True):
        yield (row % (time, *position.ravel().tolist()) + "\n").encode()


FORMAT = Format(
    name="storage",
    title="OpenSim storage table (STO, MOT)",
    suffixes=(".sto", ".mot"),
    sniff=sniff,
    read_take=read_take,
    write_take=write_take,
    loses=("sensors", "filled", "events", "analog"),
    precision=PRECISION_M,
)
