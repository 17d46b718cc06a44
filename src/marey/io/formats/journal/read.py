"""Reading a journal as a take: frames in order, lost ones as gaps."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from marey.io.file import Facts, File
from marey.io.formats.journal.blocks import (
    BLOCK,
    END,
    EVENT,
    FRAME,
    HEAD,
    LAYOUT,
    MAGIC,
    FrameRecord,
    Layout,
    find_blocks,
    unpack_frame,
    unpack_layout,
)
from marey.io.text.names import make_unique, name_all
from marey.numerics import Array, Float, Int
from marey.take import Event, Take

RESTART_FRAMES = 1024
"""Step of frame numbers from which on the sender counts from the start. Higher takes
restarts for losses, and the statistics of streams remember as many numbers."""

RESTART_S = 0.5
"""Seconds after the frame before from which on an old number means that the sender
restarted; frames that others overtook come sooner. Higher takes restarts for repeated
frames. Chosen by hand; packets on a busy network are late by less."""

PERIOD_SPREAD = 0.5
"""Difference from the median, relative to it, up to which periods between frames count
in the mean. Higher takes lost frames and pauses for frames. Chosen by hand; clocks of
1 ms tick 3 or 4 ms between frames of 300 Hz."""

MAX_GROWTH, SPARE_BYTES = 20, 16 * 2**20
"""Largest size of the arrays: this factor times the file, plus the spare bytes. Frames
of different layouts have gaps where the others have markers. Higher accepts forged
files that fill the memory. As in archives."""


@dataclass(slots=True)
class _Journal:
    """What the blocks of a file hold."""

    head: Mapping[str, Any] = field(default_factory=dict)
    layouts: dict[int, Layout] = field(default_factory=dict)
    frames: list[FrameRecord] = field(default_factory=list)
    events: list[tuple[int, Event]] = field(default_factory=list)
    """Each with the number of frames before it."""

    end: Mapping[str, Any] | None = None
    n_bytes: int = len(MAGIC)
    """Bytes of whole blocks."""


def read_take(file: File) -> Take:
    """Return the take of a journal."""
    data = file.content()
    journal = _Journal()
    for byte, kind, content in find_blocks(data):
        journal.n_bytes += BLOCK.size + len(content)
        _add_block(file, journal, byte, kind, content)
    if not journal.frames:
        file.fail("frames", f"no whole frame in {len(data)} bytes")
    file.note_count(
        "blocks-damaged",
        len(data) - journal.n_bytes,
        "{} bytes are no whole blocks: frames in them are lost",
    )
    if journal.end is None:
        text = "the recording was cut off: it holds what was written until then"
        file.note("journal-open", text)
    elif journal.end.get("frames") != len(journal.frames):
        text = f"frames declared {journal.end.get('frames')}, present {{}}"
        file.note_count("frames-missing", len(journal.frames), text)
    return _assemble_take(file, journal)


def _add_block(
    file: File, journal: _Journal, byte: int, kind: bytes, content: bytes
) -> None:
    try:
        if kind == FRAME:
            layout = journal.layouts.get(int.from_bytes(content[:4], "little"))
            if layout is not None:  # else its layout was damaged
                journal.frames.append(unpack_frame(content, layout))
        elif kind == LAYOUT:
            number = int.from_bytes(content[:4], "little")
            journal.layouts[number] = _unique(unpack_layout(content[4:]))
        elif kind == EVENT:
            event = _event(_read_json(content))
            journal.events.append((len(journal.frames), event))
        elif kind == HEAD:
            journal.head = _read_json(content)
        elif kind == END:
            journal.end = _read_json(content)
    except (ValueError, KeyError, TypeError) as error:
        file.fail(f"a block {kind.decode('latin-1')}", error, byte=byte, cause=error)


def _unique(layout: Layout) -> Layout:
    return Layout(make_unique(layout.labels), make_unique(layout.sensor_names))


def _read_json(content: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(content)
    except RecursionError as error:
        raise ValueError("JSON of great depth") from error
    if not isinstance(value, dict):
        raise ValueError("JSON that is no object")
    return value


def _event(content: Mapping[str, Any]) -> Event:
    time = float(content["time"])
    if not math.isfinite(time):
        raise ValueError("an event without time")
    return Event(str(content["label"]), str(content["context"]), time)


def _assemble_take(file: File, journal: _Journal) -> Take:
    frames = journal.frames
    row, n_rows = _rows(file, frames)
    labels = _union(layout.labels for layout in journal.layouts.values())
    sensors = _union(layout.sensor_names for layout in journal.layouts.values())
    needed = 8 * n_rows * (3 * len(labels) + 16 * len(sensors))
    if needed > MAX_GROWTH * file.size + SPARE_BYTES:
        file.fail("frames of similar layouts", f"{needed} bytes of gaps and frames")
    points = np.full((n_rows, len(labels), 3), np.nan)
    poses = np.full((n_rows, len(sensors), 4, 4), np.nan)
    columns = {
        number: (
            [labels[name] for name in layout.labels],
            [sensors[name] for name in layout.sensor_names],
        )
        for number, layout in journal.layouts.items()
    }
    for i, frame in zip(row.tolist(), frames, strict=True):
        own_labels, own_sensors = columns[frame.layout]
        if len(frame.points) == len(own_labels):  # else a layout came twice
            points[i, own_labels] = frame.points
            poses[i, own_sensors] = frame.T_world_sensor
    facts, start = _decide_facts(file, journal, row)
    return file.take(
        facts,
        points=points,
        markers=name_all(file, [*labels], len(labels), "marker"),
        T_world_sensor=poses,
        sensor_names=name_all(file, [*sensors], len(sensors), "sensor"),
        start=start,
        events=_place_events(journal, start + row / facts.hertz),
        parameters={"head": dict(journal.head), "end": dict(journal.end or {})},
    )


def _place_events(
    journal: _Journal, time: Float[Array, " record"]
) -> tuple[Event, ...]:
    """Return events on the clock of the take.

    An event is as long after the frame before it as the sender's clock says, which may
    have jumped since the start, or begun again; without a clock it is at that frame.

    Args:
        journal: The journal.
        time: Of every frame, in seconds on the clock of the take.
    """
    placed = []
    for count, event in journal.events:
        frame = max(count - 1, 0)
        now, sent = float(time[frame]), journal.frames[frame].time
        if not math.isclose(now, sent):  # else rounding would change the event
            later = event.time - sent
            event = replace(event, time=now + (later if math.isfinite(later) else 0.0))
        placed.append(event)
    return tuple(placed)


def _union(lists: Iterable[tuple[str, ...]]) -> dict[str, int]:
    """Return the column of every name, in the order of their first appearance."""
    names = dict.fromkeys(name for names in lists for name in names)
    return {name: i for i, name in enumerate(names)}


def _rows(file: File, frames: list[FrameRecord]) -> tuple[Int[Array, " record"], int]:
    """Return the row of the take for each frame, and the number of rows.

    Frames stand at their numbers; where the sender restarted, its frames follow the
    ones before. If more frames are lost than there are, the gaps are closed.
    """
    numbers = np.array([frame.number for frame in frames])
    steps = np.diff(numbers.astype(float))
    pauses = np.diff([frame.arrival for frame in frames])
    is_new = (np.abs(steps) >= RESTART_FRAMES) | ((steps <= 0) & (pauses > RESTART_S))
    run = np.concatenate([[0], np.cumsum(is_new)])
    row = np.zeros(len(numbers), dtype=np.int64)
    stop = 0
    for members in np.split(np.arange(len(run)), np.flatnonzero(np.diff(run)) + 1):
        own = numbers[members] - numbers[members].min()
        row[members] = stop + own
        stop = int(row[members].max()) + 1
    n_lost = stop - len(np.unique(row))
    if n_lost > len(numbers):
        row, stop = np.unique(row, return_inverse=True)[1], len(np.unique(row))
        message = "{} frames are lost, more than were recorded: no gap is left for them"
    else:
        message = "{} frames are lost: they are gaps"
    file.note_count("frames-missing", n_lost, message)
    return row, stop


def _decide_facts(
    file: File, journal: _Journal, row: Int[Array, " record"]
) -> tuple[Facts, float]:
    """Return unit, axes and rate, and the time of the first row in seconds."""
    head = journal.head
    unit, up, rate = (head.get(name) for name in ("unit", "up", "rate"))
    measured = _measure_rate(journal.frames, row)
    how: Any = "stated" if rate is not None else "inferred"
    stated = str(measured if rate is None else rate)
    known = stated if stated != "nan" else None
    facts = Facts(
        file.decide_fact("unit", stated=_text(unit), assumed="m"),
        file.decide_fact("up", stated=_text(up), assumed="z"),
        file.decide_fact("rate", stated=known, assumed="100", how=how),
    )
    time = journal.frames[int(row.argmin())].time
    return facts, time if math.isfinite(time) else 0.0


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _measure_rate(frames: list[FrameRecord], row: Int[Array, " record"]) -> float:
    """Return frames per second by the sender's clock; NaN if no times are known."""
    order = np.argsort(row, kind="stable")
    for times in ([f.time for f in frames], [f.arrival for f in frames]):
        with np.errstate(all="ignore"):
            period = np.diff(np.array(times)[order]) / np.diff(row[order])
        rate = estimate_rate(period[np.isfinite(period) & (period > 0.0)])
        if math.isfinite(rate):
            return rate
    return math.nan


def estimate_rate(period: Float[Array, " step"]) -> float:
    """Return frames per second from the periods between frames, in seconds.

    The mean of the periods near their median: pauses do not count, and steps of a
    coarse clock average out. NaN without a period above 0.
    """
    middle = float(np.median(period)) if len(period) else 0.0
    if not middle > 0.0:
        return math.nan
    near = np.abs(period - middle) < PERIOD_SPREAD * middle
    return 1.0 / float(np.mean(period[near]))
