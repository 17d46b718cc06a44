"""OptiTrack Motive CSV, format versions 1.20 to 1.25.

The first line holds keys and values. Rows of types, names, IDs (and from 1.24 on
parents) follow, then what each column holds and its axis, then one line per frame.

Entries with a rotation, rigid bodies and bones, become sensors. Among the others only
type "Marker" was measured: a "Rigid Body Marker" or "Bone Marker" is where Motive's
solved body puts it, or repeats the measured one, so these are read on request only
(`computed`). A blank is a gap. Quaternions are X, Y, Z, W; Euler angles are in
degrees about moving axes, in the order of the Rotation Type. Motive's world has Y up;
an export with other axes does not say so.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from marey.anatomy.names import subject_of, without_subject
from marey.io.contract import Format
from marey.io.file import Facts, File
from marey.io.text import numbers, timing
from marey.io.text.encoding import decode_text, normalize_text
from marey.io.text.names import name_all
from marey.io.text.rotations import rotations_from_quaternions
from marey.io.units_axes import parse_unit
from marey.numerics import geometry
from marey.take import Take

MAGIC = b"format version,"
KEYS = (
    *("Format Version", "Take Name", "Take Notes", "Capture Frame Rate"),
    *("Export Frame Rate", "Capture Start Time", "Capture Start Frame"),
    *("Total Frames in Take", "Total Exported Frames", "Rotation Type"),
    *("Length Units", "Coordinate Space"),
)
ROWS = ("Type", "Name", "ID", "Parent")
MAX_HEADER_LINES = 16
MEASURED = "marker"
UNLABELED = "Unlabeled"
FRAME, TIME, FIRST = 0, 1, 2
"""Columns of the frame number, of the time, and of the first value."""


@dataclass(frozen=True, slots=True)
class MotiveEntry:
    """One marker, rigid body or bone: what it is called and its columns by axis."""

    kind: str
    name: str
    ident: str
    parent: str
    position: dict[str, int] = field(default_factory=dict)
    rotation: dict[str, int] = field(default_factory=dict)

    @property
    def is_sensor(self) -> bool:
        """Whether it has an orientation."""
        return bool(self.rotation)

    @property
    def is_measured(self) -> bool:
        """Whether it was seen, and not put where a solved body has it."""
        return self.kind.lower() == MEASURED

    @property
    def is_whole(self) -> bool:
        """Whether no axis is missing."""
        rotation_whole = set(self.rotation) in (set(), set("XYZ"), set("XYZW"))
        return set(self.position) == set("XYZ") and rotation_whole


@dataclass(frozen=True, slots=True)
class MotiveHeader:
    """Everything above the first frame."""

    fields: Mapping[str, str]
    entries: tuple[MotiveEntry, ...]
    columns: int
    body_line: int


def sniff(head: bytes) -> bool:
    """Whether a file begins like a Motive CSV."""
    text = normalize_text(head).lstrip().replace(b'"', b"")
    return text[: len(MAGIC)].lower() == MAGIC


def read_take(file: File) -> Take:
    """Return the markers, rigid bodies and bones of a Motive CSV."""
    text = file.text()
    head = _read_header(file, text)
    values = numbers.read_numbers(
        file,
        text.split(b"\n", head.body_line - 1)[-1],
        columns=head.columns,
        delimiter=",",
        first_line=head.body_line,
    ).values
    fields, times = head.fields, values[:, TIME]
    declared = fields.get("Total Exported Frames", fields.get("Total Frames in Take"))
    timing.note_frame_count(file, declared or "", len(values))
    numbers.note_missing_line_end(file, text)
    key = "Export Frame Rate"
    key = key if key in fields else "Capture Frame Rate"
    rate = timing.decide_rate(file, fields.get(key, ""), times, note=key)
    stated = parse_unit(fields.get("Length Units", ""))
    unit = file.decide_fact("unit", stated=stated, assumed="m", note="Length Units")
    note = "Motive's own axes"
    up = file.decide_fact("up", stated="y", assumed="y", note=note, how="inferred")
    markers, sensors = _choose_entries(file, head)
    T = _poses(file, values, sensors, fields.get("Rotation Type", ""))
    names = _sensor_names(file, sensors)
    return file.take(
        Facts(unit, up, rate),
        points=_positions(values, markers),
        markers=_labels(file, markers),
        T_world_sensor=T,
        sensor_names=names,
        start=timing.first_time(times),
        parameters=fields,
        parents=_parents(sensors, names),
    )


def _positions(values: np.ndarray, entries: Sequence[MotiveEntry]) -> np.ndarray:
    columns = [entry.position[axis] for entry in entries for axis in "XYZ"]
    return values[:, columns].reshape(len(values), -1, 3)


# --- header --------------------------------------------------------------------------


def _read_header(file: File, text: bytes) -> MotiveHeader:
    lines = text.split(b"\n", MAX_HEADER_LINES)[:MAX_HEADER_LINES]
    rows = [_cells(file, line, i + 1) for i, line in enumerate(lines)]
    if not sniff(text[:200]):
        found = ",".join(rows[0][:4]) or "nothing"
        file.fail("Format Version and its value", found, line=1)
    last = next((i for i, r in enumerate(rows) if r[0].lower() == "frame"), None)
    if last is None:
        file.fail("a line Frame, Time, X, ...", "none", line=len(rows))
    titles = [row for row in rows[1:last] if any(row)]
    holds = titles.pop() if titles else []
    named = {
        (row[1] if len(row) > 1 else "") or ROWS[i]: row
        for i, row in enumerate(titles[: len(ROWS)])
    }
    if "Position" not in holds or not {"Type", "Name"} <= set(named):
        file.fail(
            "lines of types, names and Position or Rotation",
            ", ".join(named) or "none",
            line=last,
        )
    entries = _entries(named, holds, rows[last])
    return MotiveHeader(_fields(rows[0]), entries, len(rows[last]), last + 2)


def _cells(file: File, line: bytes, number: int) -> list[str]:
    """Return the cells of a header line, at least one."""
    numbers.check_width(file, line, b",", number)
    try:
        cells = next(csv.reader([decode_text(line)]), [])
    except csv.Error as error:
        file.fail("cells between commas", error, line=number)
    return [cell.strip() for cell in cells] or [""]


def _fields(cells: Sequence[str]) -> dict[str, str]:
    fields = {k: v for k, v in zip(cells[::2], cells[1::2], strict=False) if k}
    # A comma in the take's name shifts the pairs: known keys are looked up by name.
    found = {key: cells.index(key) for key in KEYS if key in cells[:-1]}
    return fields | {key: cells[i + 1] for key, i in found.items()}


def _entries(
    named: Mapping[str, Sequence[str]], holds: Sequence[str], axes: Sequence[str]
) -> tuple[MotiveEntry, ...]:
    """Return the entries: neighbouring columns of one name, no axis twice."""
    count = len(axes)
    rows = [[*named.get(key, ())[:count]] for key in ROWS]
    kinds, names, idents, parents = (r + [""] * (count - len(r)) for r in rows)
    entries: list[MotiveEntry] = []
    for c in range(FIRST, min(count, len(holds))):
        what = holds[c].lower()
        if not kinds[c] or what not in ("position", "rotation"):
            continue
        new = MotiveEntry(kinds[c], names[c], idents[c], parents[c])
        same = entries and _is_same(entries[-1], new)
        if not same or axes[c].upper() in getattr(entries[-1], what):
            entries.append(new)
        getattr(entries[-1], what)[axes[c].upper()] = c
    return tuple(entries)


def _is_same(a: MotiveEntry, b: MotiveEntry) -> bool:
    return (a.kind, a.name, a.ident) == (b.kind, b.name, b.ident)


# --- entries -------------------------------------------------------------------------


def _choose_entries(
    file: File, head: MotiveHeader
) -> tuple[list[MotiveEntry], list[MotiveEntry]]:
    """Return the entries to keep as markers, measured ones first, and as sensors."""
    whole = [entry for entry in head.entries if entry.is_whole]
    lost = len(head.entries) - len(whole)
    if lost:
        file.note("entries-partial", f"left out {lost} entries that lack an axis")
    sensors = [entry for entry in whole if entry.is_sensor]
    sensors = _without_local_bones(file, head, sensors)
    markers = [entry for entry in whole if not entry.is_sensor and entry.is_measured]
    solved = [e for e in whole if not e.is_sensor and not e.is_measured]
    if file.options.computed:
        markers += solved
    elif solved:
        file.note(
            "computed-left-out",
            f"left out {len(solved)} markers of type {solved[0].kind!r} or similar: "
            "Motive solved them; computed=True keeps them",
            severity="info",
            value=len(solved),
        )
    if not markers and not sensors:
        file.fail(
            "markers, rigid bodies or global bones; computed=True for solved",
            f"{len(solved)} solved markers",
            line=head.body_line - 1,
        )
    return markers, sensors


def _without_local_bones(
    file: File, head: MotiveHeader, sensors: list[MotiveEntry]
) -> list[MotiveEntry]:
    """Return the sensors whose poses are in world coordinates."""
    if head.fields.get("Coordinate Space", "").lower() != "local":
        return sensors
    bodies = [entry for entry in sensors if entry.kind.lower() != "bone"]
    if len(bodies) < len(sensors):
        file.note(
            "bones-local",
            f"left out {len(sensors) - len(bodies)} bones: their poses are relative to "
            "their parents; export with Coordinate Space Global",
        )
    return bodies


def _poses(
    file: File, values: np.ndarray, sensors: Sequence[MotiveEntry], rotation_type: str
) -> np.ndarray:
    """Return T_world_sensor in the unit and axes of the file."""
    position = _positions(values, sensors)
    R = np.empty((*position.shape, 3))
    q = [k for k, entry in enumerate(sensors) if "W" in entry.rotation]
    if q:
        wxyz = values[:, [sensors[k].rotation[axis] for k in q for axis in "WXYZ"]]
        wxyz = wxyz.reshape(len(values), -1, 4)
        R[:, q] = rotations_from_quaternions(file, wxyz)
    for k in set(range(len(sensors))) - set(q):
        order = _order(file, rotation_type)
        angles = values[:, [sensors[k].rotation[axis] for axis in order]]
        R[:, k] = geometry.matrix_from_euler(np.radians(angles), order)
    return geometry.transform(R, position)


def _order(file: File, rotation_type: str) -> str:
    order = rotation_type.strip().upper()
    if sorted(order) != ["X", "Y", "Z"]:
        file.fail(
            "Rotation Type of the three angles, such as XYZ",
            rotation_type or "none",
            line=1,
        )
    return order


def _labels(file: File, markers: Sequence[MotiveEntry]) -> tuple[str, ...]:
    """Return names of markers; a solved one never takes the name of a measured one."""
    measured = {m.name for m in markers if m.is_measured}
    names = [
        f"{m.name}_solved" if not m.is_measured and m.name in measured else m.name
        for m in markers
    ]
    # Motive 1.21 writes "Unlabeled:108", 1.25 "Unlabeled 108": no subject either way.
    names = [n.replace(f"{UNLABELED}:", f"{UNLABELED} ") for n in names]
    return name_all(file, names, len(names), "marker")


def _sensor_names(file: File, sensors: Sequence[MotiveEntry]) -> tuple[str, ...]:
    """Return names, without the skeleton's where there is but one skeleton."""
    names = [entry.name for entry in sensors]
    skeletons = {subject_of(name) for name in names} - {""}
    if len(skeletons) == 1:
        names = [without_subject(name) for name in names]
    return name_all(file, names, len(names), "sensor")


def _parents(sensors: Sequence[MotiveEntry], names: Sequence[str]) -> dict[str, str]:
    """Return the parents of the bones, where the file names them."""
    known = {s.name: name for s, name in zip(sensors, names, strict=True)}
    pairs = zip(names, [known.get(s.parent) for s in sensors], strict=True)
    return {name: parent for name, parent in pairs if parent is not None}


FORMAT = Format(
    name="motive",
    title="OptiTrack Motive CSV",
    suffixes=(".csv",),
    sniff=sniff,
    read_take=read_take,
)
