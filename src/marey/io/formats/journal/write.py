"""Writing a whole take as a journal."""

from collections.abc import Iterator

import numpy as np

from marey.io.contract import Output, WriteOptions
from marey.io.formats.journal.blocks import (
    END,
    EVENT,
    FRAME,
    HEAD,
    LAYOUT,
    MAGIC,
    FrameRecord,
    Layout,
    pack_block,
    pack_frame,
    pack_json,
    pack_layout,
)
from marey.io.units_axes import points_to_file, poses_to_file
from marey.take import Take


def write_take(take: Take, options: WriteOptions) -> Output:
    """Return the journal of a take."""
    return {"": _chunks(take, *options.world("m", "z"))}


def _chunks(take: Take, unit: str, up: str) -> Iterator[bytes]:
    yield pack_head(rate=take.rate, unit=unit, up=up)
    layout = Layout(take.full_labels, take.sensor_names)
    yield pack_block(LAYOUT, (0).to_bytes(4, "little") + pack_layout(layout))
    points = points_to_file(take.points, unit, up)
    poses = poses_to_file(take.T_world_sensor, unit, up)
    for i, time in enumerate(take.times.tolist()):
        record = FrameRecord(0, i, time, np.nan, points[i], poses[i])
        yield pack_block(FRAME, pack_frame(record))
    for event in take.events:
        yield pack_event(event.label, event.context, event.time)
    yield pack_end(take.n_frames)


def pack_head(
    *, rate: float, source: str = "", unit: str = "m", up: str = "z"
) -> bytes:
    """Return the begin of a journal.

    Args:
        rate: Frames per second; NaN if it is not known.
        source: Address of the stream.
        unit: Length unit of positions.
        up: Axis that points up.
    """
    stated = rate if np.isfinite(rate) else None
    head = {"rate": stated, "source": source, "unit": unit, "up": up}
    return MAGIC + pack_block(HEAD, pack_json(head))


def pack_event(label: str, context: str, time: float) -> bytes:
    """Return the block of an event; its time is that of the frames, in seconds."""
    content = {"label": label, "context": context, "time": time}
    return pack_block(EVENT, pack_json(content))


def pack_end(n_frames: int, **facts: int | float) -> bytes:
    """Return the block that closes a journal, with facts about the stream."""
    return pack_block(END, pack_json({"frames": n_frames, "stream": facts}))
