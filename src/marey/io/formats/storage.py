"""OpenSim storage tables (.sto, .mot): marker positions and sensor orientations.

Header lines of key=value end with "endheader"; a line of column names that begins with
`time` and one line per frame follow. Read are tables of markers, either DataType=Vec3
with cells x,y,z or three columns of numbers per marker (LFHD_tx LFHD_ty LFHD_tz), and
tables of orientations, DataType=Quaternion with cells w,x,y,z. Joint coordinates say
nothing without their model, and forces are no motion: both are refused. A motion is
written as the coordinates of a model, which is written beside it (`formats/osim`).

OpenSim's world has Y up and is in metres. Orientation tables mostly come straight from
inertial sensors, whose worlds have Z up, and hold no positions: the sensors are at
the origin.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from marey.io import contract
from marey.io.contract import Format, Output
from marey.io.file import Facts, File
from marey.io.formats import osim
from marey.io.losses import find_losses
from marey.io.options import WriteOptions
from marey.io.text import numbers, timing
from marey.io.text.encoding import decode_text, normalize_text
from marey.io.text.header import TableHeader, delimiter_of, split_cells
from marey.io.text.names import unique_names
from marey.io.text.rotations import rotations_from_quaternions
from marey.io.text.take import marker_table
from marey.io.units_axes import parse_unit
from marey.motion import Motion
from marey.numerics import geometry
from marey.take import Fact, Take

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


def sniff(head: bytes) -> bool:
    """Whether a file begins like a storage table."""
    text = normalize_text(head)
    return b"\0" not in text and END.search(text) is not None


def read_take(file: File) -> Take:
    """Return the markers or the oriented sensors of a storage table."""
    text = file.text()
    head = _read_header(file, text)
    kind = head.fields.get("datatype", "").lower()
    if kind not in NUMBERS_PER_CELL:
        file.fail(EXPECTED_TABLE, f"DataType={kind}")
    numbers.note_missing_line_end(file, text)
    size = NUMBERS_PER_CELL[kind]
    names, order = _split_columns(file, head, size)
    if not names:
        file.fail(EXPECTED_TABLE, "a table of times alone")
    table = _numbers(file, head, size, whole=text.endswith(b"\n"))
    values, times = table.values[:, order], table.values[:, 0]
    values = values.reshape(len(values), len(names), -1)
    content = _sensors if kind == "quaternion" else _markers
    unit, up = (_unit_and_up_of_sensors if kind == "quaternion" else _unit_and_up)(
        file, head
    )
    rate = timing.decide_rate(
        file, head.fields.get("datarate", ""), times, note="DataRate"
    )
    return file.take(
        Facts(unit, up, rate),
        **content(file, names, values),
        start=timing.first_time(times),
        parameters=head.fields,
    )


# --- header --------------------------------------------------------------------------


def _read_header(file: File, text: bytes) -> TableHeader:
    end = END.search(text[: contract.SNIFF_BYTES])
    if end is None:
        file.fail("a line endheader", "none")
    rest = text[end.end() :].lstrip()
    line, _, body = rest.partition(b"\n")
    number = text.count(b"\n", 0, len(text) - len(rest)) + 1
    numbers.check_width(file, line, b"\t", number)
    cells = split_cells(line)
    if not cells or cells[0].lower() != "time":
        found = decode_text(line) or "none"
        file.fail("column names that begin with time", found, line=number)
    while not cells[-1]:
        cells.pop()
    pairs = map(_field, decode_text(text[: end.start()]).split("\n"))
    fields = {key: value for key, value in pairs if key}
    return TableHeader(fields, tuple(cells[1:]), body, number + 1)


def _field(line: str) -> tuple[str, str]:
    key, sign, value = line.partition("=")
    if not sign:
        key, _, value = line.strip().partition(" ")
    name = key.strip().lower()
    return OLD_KEYS.get(name, name), value.strip()


def _numbers(
    file: File, head: TableHeader, size: int, *, whole: bool
) -> numbers.NumberTable:
    """Return the rows of a table with `size` numbers to a cell.

    A table of cells with commas must fill every line, because a missing cell could
    not be distinguished from the next one. A last line that was cut off is left out.

    Args:
        file: The file.
        head: Its header and lines of numbers.
        size: Numbers to a cell.
        whole: Whether the last line has its end.
    """
    packed = size > 1
    columns = 1 + size * len(head.columns)
    table = numbers.read_numbers(
        file,
        head.body.replace(b",", b" ") if packed else head.body,
        columns=columns,
        delimiter=" " if packed else delimiter_of(head.body),
        first_line=head.body_line,
    )
    timing.note_frame_count(file, head.fields.get("nrows", ""), len(table.cells))
    declared = numbers.parse_number(head.fields.get("ncolumns", ""))
    if declared is not None and declared != 1 + len(head.columns):
        file.note(
            "columns-mismatch",
            f"columns declared {declared:.15g}, present {1 + len(head.columns)}",
        )
    short = np.flatnonzero(packed & (table.cells < columns))
    if not len(short):
        return table
    last = len(table.cells) - 1
    if short[0] < last or whole or last == 0:
        file.fail(
            f"{len(head.columns)} cells of {size} numbers",
            f"{table.cells[short[0]] - 1} numbers",
            line=int(table.line[short[0]]),
        )
    return table.select(slice(last))


def _split_columns(
    file: File, head: TableHeader, size: int
) -> tuple[list[str], list[int]]:
    """Return the names of markers or sensors, and the columns of their numbers.

    Raises:
        FormatError: If there are columns of single numbers that belong to no marker.
    """
    if size > 1:
        letter = "M" if size == 3 else "S"
        named = [name or f"{letter}{i + 1}" for i, name in enumerate(head.columns)]
        return named, list(range(1, 1 + size * len(named)))
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
        file.fail(EXPECTED_TABLE, _describe_columns(alone or list(head.columns)))
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


# --- markers and orientations --------------------------------------------------------


def _unit_and_up(file: File, head: TableHeader) -> tuple[Fact, Fact]:
    word, up = head.fields.get("units"), head.fields.get("up")
    stated = None if word is None else parse_unit(word) or word
    unit = file.decide_fact("unit", stated=stated, assumed="m", note="Units")
    if up is not None:
        return unit, file.decide_fact("up", stated=up, assumed="y", note="up")
    note = "OpenSim's own axes"
    return unit, file.decide_fact(
        "up", stated="y", assumed="y", note=note, how="inferred"
    )


def _unit_and_up_of_sensors(file: File, head: TableHeader) -> tuple[Fact, Fact]:
    note = "no lengths in a table of orientations"
    unit = file.decide_fact("unit", stated="m", assumed="m", note=note, how="inferred")
    up = head.fields.get("up")
    return unit, file.decide_fact("up", stated=up, assumed="z", note="inertial sensors")


def _markers(file: File, names: Sequence[str], points: np.ndarray) -> dict[str, Any]:
    return {"points": points, "markers": unique_names(file, names, "marker")}


def _sensors(file: File, names: Sequence[str], wxyz: np.ndarray) -> dict[str, Any]:
    file.note(
        "positions-unknown",
        "the file holds orientations alone: every sensor is at the origin",
    )
    T = geometry.transform(rotations_from_quaternions(file, wxyz), np.zeros(3))
    names = unique_names(file, names, "sensor")
    return {"T_world_sensor": T, "sensor_names": names}


# --- writing -------------------------------------------------------------------------


def write_take(take: Take, options: WriteOptions) -> Output:
    """Return the Vec3 table of a take, in metres with Y up unless asked otherwise.

    Sensors become markers at their origins. Coordinates are rounded to 1e-9 m. Unit
    and up axis are stated in the header, where OpenSim ignores the latter.
    """
    world = options.world("m", "y")
    labels, points, decimals = marker_table(take, world, PRECISION_M)
    fields: dict[str, Any] = {"nRows": take.n_frames, "nColumns": 1 + len(labels)}
    fields |= {"DataRate": repr(float(take.rate)), "DataType": "Vec3"}
    unit = parse_unit(world.unit) or "m"
    fields |= {"Units": unit, "up": world.up, "version": 3}
    head = "".join(f"{key}={value}\n" for key, value in fields.items())
    head += "endheader\n" + "\t".join(["time", *labels]) + "\n"
    cell = "\t" + ",".join([f"%.{decimals}f"] * 3)
    values = np.column_stack(
        [take.times, points.reshape(take.n_frames, 3 * points.shape[1])]
    )
    return {"": numbers.format_lines(head, f"%.9f{cell * len(labels)}\n", values)}


def write_motion(motion: Motion, options: WriteOptions) -> Output:
    """Return the coordinates of a motion and, beside them, the model that has them."""
    options.findings.extend(find_losses(motion, osim.FORMAT))
    model, table = osim.write_model_and_table(motion, options)
    return {"": table, ".osim": model}


FORMAT = Format(
    name="storage",
    title="OpenSim storage table (STO, MOT)",
    suffixes=(".sto", ".mot"),
    sniff=sniff,
    read_take=read_take,
    write_take=write_take,
    write_motion=write_motion,
    companions=(".osim",),
    loses=("sensors", "filled", "events", "analog", "computed", "confidence"),
    precision=PRECISION_M,
)
