"""Blocks with checksums, and what is in them; a whole take as such blocks."""

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from marey.io.contract import Output
from marey.io.options import WriteOptions
from marey.io.units_axes import FileWorld
from marey.numerics import Array, Float
from marey.take import Take

MAGIC = b"marey live journal 1\n"


SYNC = b"\xf5MRY"
"""Bytes that begin every block, to find the next one after damage."""


BLOCK = struct.Struct("<4s4sII")
"""Sync word, kind, bytes of content, CRC-32 of kind, length and content."""


MAX_SEARCH = 8
"""Bytes of damaged blocks that are summed, in sizes of the file. Higher finds more
blocks behind much damage, and takes longer with forged files."""


HEAD, LAYOUT, FRAME, EVENT, END = b"head", b"layo", b"fram", b"evnt", b"ends"


FRAME_HEAD = struct.Struct("<Iqdd")
"""Layout, number, the sender's time and the time of arrival of a frame."""


POINT_BYTES, POSE_BYTES = 24, 96


class Layout(NamedTuple):
    """Names of the markers and sensors of frames."""

    labels: tuple[str, ...]
    sensor_names: tuple[str, ...]

    @property
    def frame_bytes(self) -> int:
        """Bytes of a frame of this layout."""
        points, poses = len(self.labels), len(self.sensor_names)
        return FRAME_HEAD.size + POINT_BYTES * points + POSE_BYTES * poses


class FrameRecord(NamedTuple):
    """A frame of a layout; positions in metres, NaN where not seen."""

    layout: int
    number: int
    time: float
    arrival: float
    points: Float[Array, "marker 3"]
    T_world_sensor: Float[Array, "sensor 4 4"]


def pack_block(kind: bytes, content: bytes) -> bytes:
    """Return a block with its checksum."""
    length = len(content)
    return BLOCK.pack(SYNC, kind, length, _checksum(kind, content)) + content


def _checksum(kind: bytes, content: bytes) -> int:
    start = zlib.crc32(kind + len(content).to_bytes(4, "little"))
    return zlib.crc32(content, start)


def find_blocks(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield byte, kind and content of every whole block; damaged ones are skipped.

    A file made of sync words is given up when `MAX_SEARCH` times its size was summed.
    """
    position, budget = data.find(SYNC, len(MAGIC)), MAX_SEARCH * len(data)
    while position >= 0 and budget > 0:
        kind, content, is_whole = _block_at(data, position)
        if not is_whole:
            budget -= len(content)
            position = data.find(SYNC, position + 1)
            continue
        yield position, kind, content
        position = data.find(SYNC, position + BLOCK.size + len(content))


def _block_at(data: bytes, position: int) -> tuple[bytes, bytes, bool]:
    """Return kind and content of the block at a byte, and if its checksum is right."""
    if position + BLOCK.size > len(data):
        return b"", b"", False
    _, kind, length, checksum = BLOCK.unpack_from(data, position)
    start = position + BLOCK.size
    if length > len(data) - start:
        return b"", b"", False
    content = data[start : start + length]
    return kind, content, _checksum(kind, content) == checksum


def pack_json(content: Any) -> bytes:
    """Return JSON, the same for equal content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def pack_layout(layout: Layout) -> bytes:
    """Return a layout as JSON."""
    names = {"labels": layout.labels, "sensors": layout.sensor_names}
    return pack_json(names)


def unpack_layout(content: bytes) -> Layout:
    """Return the layout of JSON.

    Raises:
        ValueError: If it is something else.
    """
    try:
        names = json.loads(content)
        lists = [names["labels"], names["sensors"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no names: {error}") from error
    for one in lists:
        if not isinstance(one, list) or not all(isinstance(n, str) for n in one):
            raise ValueError("names that are no texts")
    return Layout(*map(tuple, lists))


def pack_frame(frame: FrameRecord) -> bytes:
    """Return a frame in 64-bit floats; of a pose the first three rows."""
    points = np.ascontiguousarray(frame.points, "<f8")
    poses = np.ascontiguousarray(frame.T_world_sensor[:, :3], "<f8")
    return FRAME_HEAD.pack(*frame[:4]) + points.tobytes() + poses.tobytes()


def unpack_frame(content: bytes, layout: Layout) -> FrameRecord:
    """Return the frame of these bytes.

    Raises:
        ValueError: If there are more or fewer bytes than the layout has.
    """
    if len(content) != layout.frame_bytes:
        raise ValueError(f"{len(content)} bytes, not {layout.frame_bytes}")
    values = np.frombuffer(content, "<f8", offset=FRAME_HEAD.size).astype(float)
    n_points = 3 * len(layout.labels)
    T = np.zeros((len(layout.sensor_names), 4, 4))
    T[:, :3] = values[n_points:].reshape(-1, 3, 4)
    T[:, 3, 3] = 1.0
    points = values[:n_points].reshape(-1, 3)
    layout_number, number, time, arrival = FRAME_HEAD.unpack_from(content)
    return FrameRecord(layout_number, number, time, arrival, points, T)


def write_take(take: Take, options: WriteOptions) -> Output:
    """Return the journal of a take."""
    return {"": _chunks(take, options.world("m", "z"))}


def _chunks(take: Take, world: FileWorld) -> Iterator[bytes]:
    yield pack_head(rate=take.rate, unit=world.unit, up=world.up)
    layout = Layout(take.full_labels, take.sensor_names)
    yield pack_block(LAYOUT, (0).to_bytes(4, "little") + pack_layout(layout))
    points = world.points(take.points)
    poses = world.poses(take.T_world_sensor)
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
