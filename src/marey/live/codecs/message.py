"""marey's own message of a WebSocket: one frame with its names, in binary."""

import struct

import numpy as np

from marey.io.formats.journal.blocks import (
    FrameRecord,
    Layout,
    pack_frame,
    pack_layout,
    unpack_frame,
    unpack_layout,
)
from marey.live.codecs.packet import Packet
from marey.live.codecs.poses import hide_non_poses
from marey.live.frame import Frame

PROTOCOL = "ws"
MAGIC = b"MRYF"
MAX_MESSAGE_BYTES = 2**20
"""Bytes of the largest message; a frame of 6000 sensors. Higher takes more memory."""


def encode_frame(frame: Frame) -> bytes:
    """Return the message of a frame: magic, length of names, names, frame.

    Names are JSON; the frame is that of a journal (`marey.io.formats.journal`).
    """
    names = pack_layout(Layout(frame.labels, frame.sensor_names))
    return MAGIC + struct.pack("<I", len(names)) + names + pack_frame(to_record(frame))


def decode_frame(data: bytes, arrival: float = np.nan) -> Frame:
    """Return the frame of a message.

    Args:
        data: The message.
        arrival: When it came, in seconds.

    Raises:
        StreamError: If it is no whole message.
    """
    packet = Packet(PROTOCOL, data)
    if packet.take(len(MAGIC)) != MAGIC:
        packet.fail(MAGIC.decode(), repr(data[:4]))
    try:
        layout = unpack_layout(packet.take(packet.count(1, "I")))
        record = unpack_frame(packet.take(packet.remaining), layout)
    except ValueError as error:
        packet.fail("a frame with its names", error)
    return Frame(
        number=record.number,
        time=record.time,
        arrival=arrival,
        points=record.points,
        labels=layout.labels,
        T_world_sensor=hide_non_poses(record.T_world_sensor),
        sensor_names=layout.sensor_names,
    )


def to_record(frame: Frame, layout: int = 0) -> FrameRecord:
    """Return a frame as a journal keeps it, of the layout with this number."""
    number = max(-(2**63), min(frame.number, 2**63 - 1))
    times = frame.time, frame.arrival
    return FrameRecord(layout, number, *times, frame.points, frame.T_world_sensor)
