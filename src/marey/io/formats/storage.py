"""OpenSim storage tables (.sto, .mot): marker positions and sensor orientations.

Header lines of key=value end with "endheader"; a line of column names that begins with
`time` and one line per frame follow. Read are tables of markers, either DataType=Vec3
with cells x,y,z or three columns of numbers per marker (LFHD_tx LFHD_ty LFHD_tz), and
tables of orientations, DataType=Quaternion with cells w,x,y,z. Joint coordinates say
nothing without their model, and forces are no motion: both are refused.

OpenSim's world has Y up and is in metres. Orientation tables mostly come straight from
inertial sensors, whose worlds have Z up, and hold no positions: the sensors stand in
the origin.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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
from marey.io.text.lines import decimals_of, rounded, spelled, unique_names
from marey.io.text.numbers import Numbers, note_unended, parse_number
from marey.io.text.tables import (
    check_width,
    first_time,
    note_frames,
    read_numbers,
    settle_rate,
    turns,
)
from marey.io.units_axes import points_in, points_out, poses_in, unit_named
from marey.numerics import geometry
from marey.take import Take

END = re.compile(rb"^[ \t]*endheader[ \t]*$", re.IGNORECASE | re.MULTILINE)
OLD_KEYS = {"datarows": "nrows", "datacolumns": "ncolumns"}
"""Keys of the older tables, which part key and value by a blank."""

SIZES = {"vec3": 3, "quaternion": 4, "double": 1, "": 1}
"""Numbers in a cell by data type."""

ENDINGS = (("_tx", "_ty", "_tz"), ("_x", "_y", "_z"), (".x", ".y", ".z"))
ADVICE = (
    "a table of markers (DataType=Vec3, or three columns such as LFHD_tx LFHD_ty "
    "LFHD_tz for each) or of orientations (DataType=Quaternion)"
)
PRECISION = 1e-9
"""Metres to which a coordinate is written."""

TIME_DECIMALS = 9


@dataclass(frozen=True, slots=True)
class Head:
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
    text = plain_text(head)
    return b"\0" not in text and END.search(text) is not None


def read_take(file: File) -> Take:
    """Return the markers or the oriented sensors of a storage table."""
    text = file.text()
    head = _head(file, text)
    if head.data_type not in SIZES:
        raise file.error(None, expected=ADVICE, found=f"DataType={head.data_type}")
    note_unended(file, text)
    if head.data_type == "quaternion":
        return _orientations_take(file, head, text)
    return _markers_take(file, head, text)


# --- header --------------------------------------------------------------------------


def _head(file: File, text: bytes) -> Head:
    end = END.search(text[:HEAD])
    if end is None:
        raise file.error(None, expected="a line endheader", found="none")
    rest = text[end.end() :].lstrip()
    line, _, body = rest.partition(b"\n")
    number = text.count(b"\n", 0, len(text) - len(rest)) + 1
    check_width(file, line, b"\t", number)
    names = decoded(line)
    cells = names.split("\t") if "\t" in names else names.split()
    cells = [cell.strip() for cell in cells]
    if not cells or cells[0].lower() != "time":
        file.fail_at_line(
            number, expected="column names that begin with time", found=names or "none"
        )
    while not cells[-1]:
        cells.pop()
    pairs = map(_field, decoded(text[: end.start()]).split("\n"))
    fields = {key: value for key, value in pairs if key}
    return Head(fields, tuple(cells[1:]), body, number + 1)


def _field(line: str) -> tuple[str, str]:
    key, sign, value = line.partition("=")
    if not sign:
        key, _, value = line.strip().partition(" ")
    name = key.strip().lower()
    return OLD_KEYS.get(name, name), value.strip()


def _numbers(file: File, head: Head, text: bytes, size: int) -> Numbers:
    """Return the rows of a table with `size` numbers to a cell.

    A table of cells with commas must fill every line, for a cell left out could not be
    told from the next; a last line that was cut off is left out.
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
    note_frames(file, head.fields.get("nrows", ""), len(table.cells))
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
    return Numbers(
        table.values[:last], table.status[:last], table.cells[:last], table.line[:last]
    )


# --- markers -------------------------------------------------------------------------


def _markers_take(file: File, head: Head, text: bytes) -> Take:
    size = SIZES[head.data_type]
    names, order = _packed(head) if size == 3 else _grouped(file, head)
    if not names:
        raise file.error(None, expected=ADVICE, found="a table of times alone")
    table = _numbers(file, head, text, size)
    points = table.values[:, order].reshape(len(table.values), -1, 3)
    times = table.values[:, 0]
    fields = head.fields
    stated = (
        unit_named(fields["units"]) or fields["units"] if "units" in fields else None
    )
    unit = file.settle("unit", stated=stated, assumed="m", note="Units")
    up = file.settle(
        "up",
        stated=fields.get("up", "y"),
        assumed="y",
        note="up" if "up" in fields else "OpenSim's own axes",
        how="stated" if "up" in fields else "inferred",
    )
    rate = settle_rate(file, fields.get("datarate", ""), times, note="DataRate")
    parts = [name.rpartition(":") for name in unique_names(file, names, "marker")]
    return Take(
        rate=float(rate.value),
        points=points_in(points, unit.value, up.value),
        labels=tuple(label for *_, label in parts),
        subjects=tuple(subject for subject, *_ in parts),
        start=first_time(times),
        source=file.source(unit=unit, up=up, rate=rate, parameters=fields),
    )


def _packed(head: Head) -> tuple[list[str], list[int]]:
    names = [name or f"M{i + 1}" for i, name in enumerate(head.columns)]
    return names, list(range(1, 1 + 3 * len(names)))


def _grouped(file: File, head: Head) -> tuple[list[str], list[int]]:
    """Return the markers that columns of single numbers spell out, with their columns.

    Raises:
        FormatError: If there are columns that belong to no marker.
    """
    column = {name.lower(): i + 1 for i, name in enumerate(head.columns)}
    names: list[str] = []
    order: list[int] = []
    for name in head.columns:
        for ending in ENDINGS:
            stem = name[: -len(ending[0])]
            group = [column.get(stem.lower() + e) for e in ending]
            if name.lower().endswith(ending[0]) and None not in group and stem:
                names.append(stem)
                order += [i for i in group if i is not None]
    alone = [n for i, n in enumerate(head.columns) if i + 1 not in set(order)]
    if alone or len(set(order)) != len(order):
        raise file.error(
            None, expected=ADVICE, found=_what(alone or list(head.columns))
        )
    return names, order


def _what(alone: Sequence[str]) -> str:
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


def _orientations_take(file: File, head: Head, text: bytes) -> Take:
    if not head.columns:
        raise file.error(None, expected=ADVICE, found="a table of times alone")
    table = _numbers(file, head, text, 4)
    wxyz = table.values[:, 1:].reshape(len(table.values), -1, 4)
    times = table.values[:, 0]
    note = "no lengths in a table of orientations"
    unit = file.settle("unit", stated="m", assumed="m", note=note, how="inferred")
    up = file.settle(
        "up", stated=head.fields.get("up"), assumed="z", note="inertial sensors"
    )
    rate = settle_rate(file, head.fields.get("datarate", ""), times, note="DataRate")
    file.note(
        "positions-unknown",
        "the file holds orientations alone: every sensor stands in the origin",
    )
    names = [name or f"S{i + 1}" for i, name in enumerate(head.columns)]
    T = geometry.transform(turns(file, wxyz), np.zeros(3))
    return Take(
        rate=float(rate.value),
        T_world_sensor=poses_in(T, unit.value, up.value),
        sensor_names=unique_names(file, names, "sensor"),
        start=first_time(times),
        source=file.source(unit=unit, up=up, rate=rate, parameters=head.fields),
    )


# --- writing -------------------------------------------------------------------------


def write_take(take: Take, options: WriteOptions) -> Output:
    """Return the Vec3 table of a take, in metres with Y up unless asked otherwise.

    Sensors stand as markers at their origins. Coordinates are rounded to 1e-9 m. Unit
    and up axis are stated in the header, where OpenSim reads over the latter.
    """
    unit = unit_named(options.unit or "m") or "m"
    up = options.up or "y"
    places = np.concatenate([take.points, take.T_world_sensor[..., :3, 3]], axis=1)
    labels = [spelled(n) for n in (*take.full_labels, *take.sensor_names)]
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
    decimals = decimals_of(unit, PRECISION)
    values = rounded(points_out(places, unit, up), decimals)
    return {"": _lines(f"{header}endheader\n{titles}\n", take.times, values, decimals)}


def _lines(
    header: str, times: np.ndarray, points: np.ndarray, decimals: int
) -> Iterator[bytes]:
    yield header.encode()
    cell = ",".join([f"%.{decimals}f"] * 3)
    row = "\t".join([f"%.{TIME_DECIMALS}f", *[cell] * points.shape[1]])
    for time, place in zip(times.tolist(), points, strict=True):
        yield (row % (time, *place.ravel().tolist()) + "\n").encode()


FORMAT = Format(
    name="storage",
    title="OpenSim storage table (STO, MOT)",
    suffixes=(".sto", ".mot"),
    sniff=sniff,
    read_take=read_take,
    write_take=write_take,
    loses=("sensors", "filled", "events", "analog"),
    precision=PRECISION,
)
