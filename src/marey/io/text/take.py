"""Columns of a table to a take, and a take to columns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from marey.io.contract import File
from marey.io.text.columns import (
    FRAME,
    TableColumns,
    TableItem,
    columns_from_map,
    columns_from_names,
)
from marey.io.text.names import make_unique, printable_name, unique_names
from marey.io.text.numbers import MAX_NUMBER, round_values
from marey.io.units_axes import (
    parse_unit,
    points_from_file,
    points_to_file,
    poses_from_file,
    poses_to_file,
)
from marey.numerics import geometry
from marey.take import Fact, Take

TIME = "time"
MARKER_COMPONENTS = ("x", "y", "z")
SENSOR_COMPONENTS = ("x", "y", "z", "qw", "qx", "qy", "qz")
"""The columns of a marker and of a sensor, after its name and a dot."""

FACTS = ("unit", "up", "rate")

MAX_START_S = 1e8
"""Largest start time in seconds; larger times count from 1970."""

MAX_STEP_DEVIATION = 0.2
"""Largest relative deviation of a time step from the mean without a finding.

Higher accepts more uneven times silently. Chosen by hand.
"""


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
    facts = {**stated, **columns.facts}
    named = parse_unit(facts.get("unit", ""))
    unit = file.decide_fact(
        "unit", stated=named, assumed="m", note=_fact_note(facts, "unit")
    )
    up = file.decide_fact(
        "up", stated=facts.get("up"), assumed="z", note=_fact_note(facts, "up")
    )
    rate, start = _decide_timing(file, values, columns, facts)
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
    return Take(
        rate=float(rate.value),
        points=points_from_file(points, unit.value, up.value),
        labels=tuple(item.name for item in markers),
        subjects=tuple(item.subject for item in markers),
        T_world_sensor=poses_from_file(T, unit.value, up.value),
        sensor_names=tuple(item.name for item in sensors),
        start=start,
        source=file.source(unit=unit, up=up, rate=rate),
    )


def _fact_note(facts: Mapping[str, str], what: str) -> str:
    """Return where a table states something."""
    return "with the table" if what in facts else "not in the table"


def _poses(values: np.ndarray, item: TableItem) -> np.ndarray:
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


def _decide_timing(
    file: File, values: np.ndarray, columns: TableColumns, facts: Mapping[str, str]
) -> tuple[Fact, float]:
    """Return the frame rate and the time of the first frame."""
    times = values[:, columns.time] if columns.time >= 0 else np.zeros(0)
    span = float(times[-1] - times[0]) if len(times) > 1 else 0.0
    start = float(times[0]) if len(times) and abs(times[0]) < MAX_START_S else 0.0
    stated = facts.get("rate")
    if stated is not None or not (np.isfinite(span) and span > 0.0):
        note = _fact_note(facts, "rate")
        return file.decide_fact("rate", stated=stated, assumed="100", note=note), start
    mean = span / (len(times) - 1)
    uneven = np.abs(np.diff(times) - mean) > MAX_STEP_DEVIATION * mean
    if uneven.any():
        file.note(
            "times-uneven",
            f"{uneven.mean():.0%} of the time steps differ from their mean by over "
            f"{MAX_STEP_DEVIATION:.0%}: took even frames at {1.0 / mean:.6g} Hz",
            value=1.0 / mean,
        )
    note = "mean step of the time column"
    return (
        file.decide_fact(
            "rate", stated=f"{1.0 / mean:.10g}", assumed="", note=note, how="inferred"
        ),
        start,
    )


def _note_repeats(file: File, values: np.ndarray, columns: TableColumns) -> None:
    used = [c for c in range(values.shape[1]) if c != columns.time]
    same = (values[1:, used] == values[:-1, used]).all(axis=1)
    if same.mean() > 0.05 if len(same) else False:
        file.note(
            "rows-repeated",
            f"{same.mean():.0%} of the lines repeat the line before: "
            "the table was written faster than measured",
            value=float(same.mean()),
        )


def _check_values(file: File, values: np.ndarray, columns: TableColumns) -> None:
    for item in columns.items:
        cells = values[:, item.columns]
        too_large = np.abs(cells) > MAX_NUMBER
        if too_large.any():
            raise file.error(
                None,
                expected=f"numbers within {MAX_NUMBER:g}",
                found=f"{cells[too_large][0]:g} in a column of {item.name!r}",
            )


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
        meta: What `table_metadata` wrote, or anything else.
        counted: What the columns are taken for when their names say nothing.

    Raises:
        FormatError: If nothing says what the columns are.
    """
    if file.options.columns is not None:
        return columns_from_map(file.options.columns, names)
    columns = _marey_columns(names, meta)
    if columns is not None:
        return columns
    columns = columns_from_names(names) or counted
    if columns is None:
        raise file.error(
            None,
            expected="columns named like LFHD.x LFHD.y LFHD.z; or give columns=",
            found=", ".join(names[:12]) or "no columns of numbers",
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
    owners = list(zip(subjects, markers, strict=True))
    full = [f"{subject}:{label}" if subject else label for subject, label in owners]
    if _column_names(full, sensors) != tuple(names):
        return None
    items, at = [], 1
    for subject, label in owners:
        items.append(TableItem(label, (at, at + 1, at + 2), subject=subject))
        at += len(MARKER_COMPONENTS)
    for name in sensors:
        numbers = tuple(range(at, at + len(SENSOR_COMPONENTS)))
        items.append(TableItem(name, numbers[:3], quaternion=numbers[3:]))
        at += len(SENSOR_COMPONENTS)
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
    used.add(columns.time)
    left = [
        name
        for i, name in enumerate(names)
        if i not in used and not FRAME.fullmatch(name.strip())
    ]
    text = f"the columns were taken as {len(items)} items: {_first_names(items)}"
    if left:
        text += (
            f"; left out {len(left)}: {_first_names(left)}; give columns= to use them"
        )
    file.note("columns-inferred", text, severity="info")


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")


def _make_names_unique(file: File, columns: TableColumns) -> TableColumns:
    """Return the layout with names of markers, and of sensors, made unique."""
    markers = [item for item in columns.items if not item.is_sensor]
    sensors = [item for item in columns.items if item.is_sensor]
    full = [f"{item.subject}:{item.name}" for item in markers]
    labels = unique_names(file, full, "marker")
    names = unique_names(file, [item.name for item in sensors], "sensor")
    return replace(
        columns,
        items=(
            *(
                replace(item, name=label.removeprefix(f"{item.subject}:"))
                for item, label in zip(markers, labels, strict=True)
            ),
            *(replace(s, name=name) for s, name in zip(sensors, names, strict=True)),
        ),
    )


def table_metadata(take: Take, unit: str, up: str) -> dict[str, Any]:
    """Return what a table of a take states about it, as plain data for JSON."""
    return {
        "unit": unit,
        "up": up,
        "rate": take.rate,
        "subjects": list(take.subjects),
        "markers": list(take.labels),
        "sensors": list(take.sensor_names),
    }


def columns_of_take(
    take: Take, unit: str, up: str, *, decimals: int
) -> tuple[tuple[str, ...], Float[np.ndarray, "frame column"]]:
    """Return the names of all columns, the time first, and the values after the time.

    Args:
        take: The recording.
        unit: Length unit of the columns.
        up: Axis of the columns that points up.
        decimals: To which quaternions are rounded.
    """
    names = _column_names(take.full_labels, take.sensor_names)
    points = points_to_file(take.points, unit, up)
    T = poses_to_file(take.T_world_sensor, unit, up)
    q = geometry.quat_continuous(geometry.quat_from_matrix(T[..., :3, :3]))
    poses = np.concatenate([T[..., :3, 3], _round_quaternions(q, decimals)], axis=-1)
    flat = [v.reshape(take.n_frames, v.shape[1] * v.shape[2]) for v in (points, poses)]
    return names, np.concatenate(flat, axis=1)


def _round_quaternions(q: np.ndarray, decimals: int) -> np.ndarray:
    """Return rounded quaternions that come out the same when read and written again."""
    for _ in range(8):
        q = round_values(q, decimals)
        unit = q / np.linalg.norm(q, axis=-1, keepdims=True)
        if np.array_equal(round_values(unit, decimals), q, equal_nan=True):
            break
        q = unit
    return round_values(q, decimals)
