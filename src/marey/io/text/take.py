"""Columns of numbers as a take, and a take as columns: what tables share."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from marey.io.contract import File
from marey.io.text.columns import FRAME, Columns, Item, from_map, from_names
from marey.io.text.lines import LARGEST, distinct, rounded, spelled, unique_names
from marey.io.units_axes import points_in, points_out, poses_in, poses_out, unit_named
from marey.numerics import geometry
from marey.take import Fact, Take

TIME = "time"
POINT = ("x", "y", "z")
POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")
"""The columns of a marker and of a sensor, after its name and a dot."""

FACTS = ("unit", "up", "rate")

LARGEST_EPOCH = 1e8
"""Seconds beyond which a clock counts from 1970 rather than from the recording."""

JITTER = 0.2
"""Share of the mean step by which time steps may differ before it is a finding."""


def take_of_columns(
    file: File,
    values: Float[np.ndarray, "frame column"],
    columns: Columns,
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
    named = unit_named(facts.get("unit", ""))
    unit = file.settle("unit", stated=named, assumed="m", note=_place(facts, "unit"))
    up = file.settle(
        "up", stated=facts.get("up"), assumed="z", note=_place(facts, "up")
    )
    rate, start = _clock(file, values, columns, facts)
    _check_sizes(file, values, columns)
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
        points=points_in(points, unit.value, up.value),
        labels=tuple(item.name for item in markers),
        subjects=tuple(item.subject for item in markers),
        T_world_sensor=poses_in(T, unit.value, up.value),
        sensor_names=tuple(item.name for item in sensors),
        start=start,
        source=file.source(unit=unit, up=up, rate=rate),
    )


def _place(facts: Mapping[str, str], what: str) -> str:
    """Return where a table states something."""
    return "with the table" if what in facts else "not in the table"


def _poses(values: np.ndarray, item: Item) -> np.ndarray:
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


def _clock(
    file: File, values: np.ndarray, columns: Columns, facts: Mapping[str, str]
) -> tuple[Fact, float]:
    """Return the frame rate and the time of the first frame."""
    times = values[:, columns.time] if columns.time >= 0 else np.zeros(0)
    span = float(times[-1] - times[0]) if len(times) > 1 else 0.0
    start = float(times[0]) if len(times) and abs(times[0]) < LARGEST_EPOCH else 0.0
    stated = facts.get("rate")
    if stated is not None or not (np.isfinite(span) and span > 0.0):
        note = _place(facts, "rate")
        return file.settle("rate", stated=stated, assumed="100", note=note), start
    mean = span / (len(times) - 1)
    uneven = np.abs(np.diff(times) - mean) > JITTER * mean
    if uneven.any():
        file.note(
            "times-uneven",
            f"{uneven.mean():.0%} of the time steps differ from their mean by over "
            f"{JITTER:.0%}: frames are taken as evenly spaced at {1.0 / mean:.6g} Hz",
            value=1.0 / mean,
        )
    note = "mean step of the time column"
    return (
        file.settle(
            "rate", stated=f"{1.0 / mean:.10g}", assumed="", note=note, how="inferred"
        ),
        start,
    )


def _note_repeats(file: File, values: np.ndarray, columns: Columns) -> None:
    used = [c for c in range(values.shape[1]) if c != columns.time]
    same = (values[1:, used] == values[:-1, used]).all(axis=1)
    if same.mean() > 0.05 if len(same) else False:
        file.note(
            "rows-repeated",
            f"{same.mean():.0%} of the lines repeat the line before: "
            "the table was written faster than measured",
            value=float(same.mean()),
        )


def _check_sizes(file: File, values: np.ndarray, columns: Columns) -> None:
    for item in columns.items:
        cells = values[:, item.columns]
        wild = np.abs(cells) > LARGEST
        if wild.any():
            raise file.error(
                None,
                expected=f"numbers within {LARGEST:g}",
                found=f"{cells[wild][0]:g} in a column of {item.name!r}",
            )


def settle_columns(
    file: File,
    names: Sequence[str],
    meta: Mapping[str, Any],
    counted: Columns | None = None,
) -> Columns:
    """Return which columns are what: by the caller's map, by marey's own word, by name.

    Args:
        file: Gives the map and keeps the findings.
        names: The header of the table.
        meta: What `described` wrote, or anything else.
        counted: What the columns are taken for when their names say nothing.

    Raises:
        FormatError: If nothing says what the columns are.
    """
    if file.options.columns is not None:
        return from_map(file.options.columns, names)
    own = _own_columns(names, meta)
    if own is not None:
        return own
    columns = from_names(names) or counted
    if columns is None:
        raise file.error(
            None,
            expected="columns named like LFHD.x LFHD.y LFHD.z; or give columns=",
            found=", ".join(names[:12]) or "no columns of numbers",
        )
    _note_inferred(file, columns, names)
    return _unique(file, columns)


def _own_columns(names: Sequence[str], meta: Mapping[str, Any]) -> Columns | None:
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
        items.append(Item(label, (at, at + 1, at + 2), subject=subject))
        at += len(POINT)
    for name in sensors:
        numbers = tuple(range(at, at + len(POSE)))
        items.append(Item(name, numbers[:3], quaternion=numbers[3:]))
        at += len(POSE)
    return Columns(tuple(items), time=0)


def _column_names(markers: Sequence[str], sensors: Sequence[str]) -> tuple[str, ...]:
    """Return the header of a table: distinct names that fit on a line."""
    parts = [f"{marker}.{part}" for marker in markers for part in POINT]
    parts += [f"{sensor}.{part}" for sensor in sensors for part in POSE]
    return distinct([TIME, *(spelled(name) for name in parts)])


def _note_inferred(file: File, columns: Columns, names: Sequence[str]) -> None:
    """Keep a finding that says how the columns of a foreign table were understood."""
    items = [f"{i.name} ({'6-DoF' if i.is_sensor else '3-D'})" for i in columns.items]
    used = {column for item in columns.items for column in item.columns}
    used.add(columns.time)
    left = [
        name
        for i, name in enumerate(names)
        if i not in used and not FRAME.fullmatch(name.strip())
    ]
    text = f"the columns were taken as {len(items)} items: {_some(items)}"
    if left:
        text += f"; left out {len(left)}: {_some(left)}; give columns= to use them"
    file.note("columns-inferred", text, severity="info")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")


def _unique(file: File, columns: Columns) -> Columns:
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


def described(take: Take, unit: str, up: str) -> dict[str, Any]:
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
    points = points_out(take.points, unit, up)
    T = poses_out(take.T_world_sensor, unit, up)
    q = geometry.quat_continuous(geometry.quat_from_matrix(T[..., :3, :3]))
    poses = np.concatenate([T[..., :3, 3], _settled(q, decimals)], axis=-1)
    flat = [v.reshape(take.n_frames, v.shape[1] * v.shape[2]) for v in (points, poses)]
    return names, np.concatenate(flat, axis=1)


def _settled(q: np.ndarray, decimals: int) -> np.ndarray:
    """Return rounded quaternions that come out the same when read and written again."""
    for _ in range(8):
        q = rounded(q, decimals)
        unit = q / np.linalg.norm(q, axis=-1, keepdims=True)
        if np.array_equal(rounded(unit, decimals), q, equal_nan=True):
            break
        q = unit
    return rounded(q, decimals)
