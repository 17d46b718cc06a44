"""Columns of numbers as a take, and a take as columns: what tables share."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from marey import geometry
from marey.io._columns import Columns, Item
from marey.io._format import File
from marey.io._text import LARGEST, rounded
from marey.io._world import points_in, points_out, poses_in, poses_out, unit_named
from marey.take import Fact, Take

POINT = ("x", "y", "z")
POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")
"""The columns of a marker and of a sensor, after its name and a dot."""

LARGEST_EPOCH = 1e8
"""Seconds beyond which a clock counts from 1970 rather than from the recording."""

JITTER = 0.2
"""Share of the mean step by which time steps may differ before it is a finding."""


def take_of_columns(
    file: File,
    values: Float[np.ndarray, "frame column"],
    columns: Columns,
    stated: Mapping[str, str],
) -> Take:
    """Return the take that a table holds.

    Args:
        file: Keeps the findings.
        values: The numbers, NaN where there is none.
        columns: Which of them belong together.
        stated: Unit, up and rate as the table states them.

    Raises:
        FormatError: If a number is beyond all reason.
    """
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
        labels=tuple(item.name.rpartition(":")[2] for item in markers),
        subjects=tuple(item.name.rpartition(":")[0] for item in markers),
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
        cells = [*item.position, *item.quaternion, *item.euler, *item.matrix]
        wild = np.abs(values[:, cells]) > LARGEST
        if wild.any():
            raise file.error(
                None,
                expected=f"numbers within {LARGEST:g}",
                found=f"{values[:, cells][wild][0]:g} in a column of {item.name!r}",
            )


def note_inferred(file: File, columns: Columns) -> None:
    """Keep a finding that says how the columns of a foreign table were understood."""
    items = [f"{i.name} ({'6-DoF' if i.is_sensor else '3-D'})" for i in columns.items]
    file.note(
        "columns-inferred",
        f"the columns were taken as {len(items)} items: {', '.join(items[:6])}"
        f"{', ...' if len(items) > 6 else ''}",
        severity="info",
    )


def columns_of_take(
    take: Take, unit: str, up: str, *, decimals: int
) -> tuple[list[str], Float[np.ndarray, "frame column"]]:
    """Return names and values of the columns that hold a take, without the time.

    Args:
        take: The recording.
        unit: Length unit of the columns.
        up: Axis of the columns that points up.
        decimals: To which quaternions are rounded.
    """
    names = [f"{label}.{part}" for label in take.full_labels for part in POINT]
    names += [f"{sensor}.{part}" for sensor in take.sensor_names for part in POSE]
    points = points_out(take.points, unit, up).reshape(take.n_frames, -1)
    T = poses_out(take.T_world_sensor, unit, up)
    q = geometry.quat_continuous(geometry.quat_from_matrix(T[..., :3, :3]))
    poses = np.concatenate([T[..., :3, 3], _settled(q, decimals)], axis=-1)
    return names, np.concatenate([points, poses.reshape(take.n_frames, -1)], axis=1)


def _settled(q: np.ndarray, decimals: int) -> np.ndarray:
    """Return rounded quaternions that come out the same when read and written again."""
    for _ in range(8):
        q = rounded(q, decimals)
        unit = q / np.linalg.norm(q, axis=-1, keepdims=True)
        if np.array_equal(rounded(unit, decimals), q, equal_nan=True):
            break
        q = unit
    return rounded(q, decimals)
