"""Columns of a table to a take, and a take to columns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Any, Literal

import numpy as np

from marey.io.file import Facts, File
from marey.io.options import WriteOptions
from marey.io.text import columns as table_columns
from marey.io.text.columns import FACTS, TableColumns, TableItem
from marey.io.text.names import make_unique, printable_name, unique_names
from marey.io.text.numbers import MAX_NUMBER, decimals_for, round_values
from marey.io.text.timing import mean_rate
from marey.io.units_axes import FileWorld, parse_unit
from marey.numerics import Float, geometry
from marey.take import Fact, Take

TIME = "time"
MARKER_COMPONENTS = ("x", "y", "z")
SENSOR_COMPONENTS = ("x", "y", "z", "qw", "qx", "qy", "qz")
"""The columns of a marker and of a sensor, after its name and a dot."""

MAX_START_S = 1e8
"""Largest start time in seconds; larger times count from 1970."""

MAX_STEP_DEVIATION = 0.2
"""Largest relative deviation of a time step from the mean without a finding.

Higher accepts more uneven times silently. Chosen by hand.
"""

MAX_REPEATED_SHARE = 0.05
"""Largest share of lines that repeat the line before without a finding.

Higher accepts more tables written faster than measured. Chosen by hand.
"""

QUATERNION_ROUNDINGS = 8
"""Most attempts to round a quaternion so that it is read as it was written."""


def take_of_columns(
    file: File,
    values: Float[np.ndarray, "frame column"],
    columns: TableColumns,
    meta: Mapping[str, Any],
) -> Take:
    """Return the take that a table holds.

    Args:
        file: Keeps the findings.
        values: The numbers, NaN where there is none.
        columns: Which of them belong together.
        meta: What the table states, among it unit, up and rate.

    Raises:
        FormatError: If a number is beyond all reason.
    """
    stated = {key: str(meta[key]) for key in FACTS if key in meta}
    stated |= dict(columns.facts)
    unit = _decide(file, "unit", stated, parse_unit(stated.get("unit", "")), "m")
    up = _decide(file, "up", stated, stated.get("up"), "z")
    times = values[:, columns.time] if columns.time >= 0 else np.zeros(0)
    facts = Facts(unit, up, _decide_rate(file, stated, times))
    _check_values(file, values, columns)
    markers = [item for item in columns.items if not item.is_sensor]
    sensors = [item for item in columns.items if item.is_sensor]
    points = values[:, [c for item in markers for c in item.position]]
    points = points.reshape(len(values), len(markers), 3)
    points[~np.isfinite(points).all(axis=-1)] = np.nan
    T = np.empty((len(values), len(sensors), 4, 4))
    for k, sensor in enumerate(sensors):
        T[:, k] = _poses(values, sensor)
    _note_repeats(file, values, columns)
    return file.take(
        facts,
        points=points,
        labels=tuple(item.name for item in markers),
        subjects=tuple(item.subject for item in markers),
        T_world_sensor=T,
        sensor_names=tuple(item.name for item in sensors),
        start=float(times[0]) if (np.abs(times[:1]) < MAX_START_S).any() else 0.0,
    )


def _decide(
    file: File,
    what: Literal["unit", "up", "rate"],
    facts: Mapping[str, str],
    stated: str | None,
    assumed: str,
) -> Fact:
    note = "with the table" if what in facts else "not in the table"
    return file.decide_fact(what, stated=stated, assumed=assumed, note=note)


def _decide_rate(
    file: File, facts: Mapping[str, str], times: Float[np.ndarray, " frame"]
) -> Fact:
    """Return the frame rate: the stated one, else the mean one of the times."""
    rate = mean_rate(times)
    if "rate" in facts or not 0.0 < rate < np.inf:
        return _decide(file, "rate", facts, facts.get("rate"), "100")
    uneven = np.abs(np.diff(times) * rate - 1.0) > MAX_STEP_DEVIATION
    if uneven.any():
        file.note(
            "times-uneven",
            f"{uneven.mean():.0%} of the time steps differ from their mean by over "
            f"{MAX_STEP_DEVIATION:.0%}: even frames at {rate:.6g} Hz are assumed",
            value=rate,
        )
    note, stated = "mean step of the time column", f"{rate:.10g}"
    return file.decide_fact(
        "rate", stated=stated, assumed="100", note=note, how="inferred"
    )


def _poses(values: np.ndarray, item: TableItem) -> np.ndarray:
    """Return T_world_sensor of one item, in the units of the file."""
    if item.matrix:
        cells = values[:, item.matrix].reshape(len(values), -1, 4)
        R, t = cells[:, :3, :3], cells[:, :3, 3]
    elif item.quaternion:
        q = values[:, item.quaternion]
        length = np.linalg.norm(q, axis=-1, keepdims=True)
        R = geometry.matrix_from_quat(q / np.where(length > 0.0, length, np.nan))
    else:
        angles = values[:, item.euler]
        angles = np.radians(angles) if item.degrees else angles
        R = geometry.matrix_from_euler(angles, item.order)
    return geometry.transform(R, values[:, item.position] if item.position else t)


def _note_repeats(file: File, values: np.ndarray, columns: TableColumns) -> None:
    used = [c for c in range(values.shape[1]) if c != columns.time]
    same = (values[1:, used] == values[:-1, used]).all(axis=1)
    if same.sum() > MAX_REPEATED_SHARE * len(same):
        file.note(
            "rows-repeated",
            f"{same.mean():.0%} of the lines repeat the line before: "
            "the table was written faster than measured; write it at the rate of "
            "the sensors",
            value=same.mean(),
        )


def _check_values(file: File, values: np.ndarray, columns: TableColumns) -> None:
    for item in columns.items:
        cells = values[:, item.columns]
        too_large = cells[np.abs(cells) > MAX_NUMBER]
        if len(too_large):
            found = f"{too_large[0]:g} in a column of {item.name!r}"
            file.fail(f"numbers within {MAX_NUMBER:g}", found)


def decide_columns(
    file: File,
    names: Sequence[str],
    meta: Mapping[str, Any],
    counted: TableColumns | None = None,
) -> TableColumns:
    """Return the items of a table: by the caller's map, marey's metadata, or names.

    Args:
        file: Gives the map and keeps the findings.
        names: The header of the table.
        meta: What `table_of_take` states, or anything else.
        counted: What the columns are taken for when their names say nothing.

    Raises:
        FormatError: If nothing says what the columns are.
    """
    if file.options.columns is not None:
        return table_columns.columns_from_map(file.options.columns, names)
    columns = _marey_columns(names, meta)
    if columns is not None:
        return columns
    columns = table_columns.columns_from_names(names) or counted
    if columns is None:
        file.fail(
            "columns named like LFHD.x LFHD.y LFHD.z; or give columns=",
            ", ".join(names[:12]) or "no columns of numbers",
        )
    _note_inferred(file, columns, names)
    return _make_names_unique(file, columns)


def _marey_columns(
    names: Sequence[str], meta: Mapping[str, Any]
) -> TableColumns | None:
    """Return the layout of a table that marey wrote, None of any other."""
    lists = [meta.get(key) for key in ("subjects", "markers", "sensors")]
    if not all(isinstance(given, list) for given in lists):
        return None
    subjects, markers, sensors = (
        [str(name) for name in given or ()] for given in lists
    )
    if len(subjects) != len(markers):
        return None
    items = [
        TableItem(label, subject=subject)
        for subject, label in zip(subjects, markers, strict=True)
    ]
    if _column_names([item.full_name for item in items], sensors) != tuple(names):
        return None
    column = count(1)
    items = [replace(item, position=tuple(islice(column, 3))) for item in items]
    for name in sensors:
        position, quaternion = (tuple(islice(column, size)) for size in (3, 4))
        items.append(TableItem(name, position, quaternion))
    return TableColumns(tuple(items), time=0)


def _column_names(markers: Sequence[str], sensors: Sequence[str]) -> tuple[str, ...]:
    """Return the header of a table: distinct names that fit on a line."""
    parts = [f"{marker}.{part}" for marker in markers for part in MARKER_COMPONENTS]
    parts += [f"{sensor}.{part}" for sensor in sensors for part in SENSOR_COMPONENTS]
    return make_unique([TIME, *(printable_name(name) for name in parts)])


def _note_inferred(file: File, columns: TableColumns, names: Sequence[str]) -> None:
    """Keep a finding that says how the columns of a foreign table were understood."""
    items = [f"{i.name} ({'6-DoF' if i.is_sensor else '3-D'})" for i in columns.items]
    used = {column for item in columns.items for column in item.columns}
    left = [
        name
        for i, name in enumerate(names)
        if i not in {*used, columns.time}
        and not table_columns.FRAME.fullmatch(name.strip())
    ]
    text = f"the columns were taken as {len(items)} items: {_first_names(items)}"
    if left:
        text += f"; left out {len(left)}: {_first_names(left)}"
        text += "; give columns= to use them"
    file.note("columns-inferred", text, severity="info")


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")


def _make_names_unique(file: File, columns: TableColumns) -> TableColumns:
    """Return the layout with names of markers, and of sensors, made unique."""
    items: list[TableItem] = []
    for kind in ("marker", "sensor"):
        group = [i for i in columns.items if i.is_sensor == (kind == "sensor")]
        names = unique_names(file, [item.full_name for item in group], kind)
        for item, name in zip(group, names, strict=True):
            prefix = f"{item.subject}:" if item.subject else ""
            items.append(replace(item, name=name.removeprefix(prefix)))
    return replace(columns, items=tuple(items))


def marker_table(
    take: Take, world: FileWorld, precision_m: float
) -> tuple[list[str], Float[np.ndarray, "frame marker 3"], int]:
    """Return labels, rounded positions and their decimals; sensors become markers.

    Args:
        take: The recording.
        world: Unit and up axis of the table.
        precision_m: Metres to which a coordinate is written.
    """
    labels = [printable_name(n) for n in (*take.full_labels, *take.sensor_names)]
    decimals = decimals_for(world.unit, precision_m)
    points = round_values(world.points(take.positions), decimals)
    return labels, points, decimals


def table_of_take(
    take: Take, options: WriteOptions, *, decimals: int
) -> tuple[tuple[str, ...], Float[np.ndarray, "frame column"], dict[str, Any]]:
    """Return the names and values of all columns, the time first, and what to state.

    Args:
        take: The recording.
        options: Unit and up axis; metres and z by default.
        decimals: To which quaternions are rounded.
    """
    world = options.world("m", "z")
    names = _column_names(take.full_labels, take.sensor_names)
    points = world.points(take.points)
    T = world.poses(take.T_world_sensor)
    q = geometry.quat_continuous(geometry.quat_from_matrix(T[..., :3, :3]))
    poses = np.concatenate([T[..., :3, 3], _round_quaternions(q, decimals)], axis=-1)
    flat = [v.reshape(take.n_frames, v.shape[1] * v.shape[2]) for v in (points, poses)]
    meta: dict[str, Any] = {**world._asdict(), "rate": take.rate}
    meta |= {"subjects": list(take.subjects), "markers": list(take.labels)}
    meta |= {"sensors": list(take.sensor_names)}
    return names, np.column_stack([take.times, *flat]), meta


def _round_quaternions(q: np.ndarray, decimals: int) -> np.ndarray:
    """Return rounded quaternions that come out the same when read and written again."""
    for _ in range(QUATERNION_ROUNDINGS):
        q = round_values(q, decimals)
        unit = geometry.unit_vectors(q)
        if np.array_equal(round_values(unit, decimals), q, equal_nan=True):
            break
        q = unit
    return round_values(q, decimals)
