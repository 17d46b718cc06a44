"""Real-time protocol of Qualisys Track Manager (QTM), from version 1.8 on.

A message has its length, its kind and its content, little-endian. A data message has a
time, a number and components, each again with its length and its kind. Positions are in
millimetres, rotations are matrices column by column, and the world has +Z up.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from marey.errors import StreamError
from marey.io.units_axes import METRES_PER_UNIT
from marey.live.codecs.packet import Packet
from marey.live.frame import Frame
from marey.numerics import Array, Float, geometry
from marey.numerics.thresholds import MAX_NON_ROTATION

PROTOCOL, PORT = "qtm", 22223
ERROR, COMMAND, XML, DATA = range(4)
"""Kinds of messages."""

MARKERS, BODIES = 1, 5
"""Kinds of components: labelled markers, and bodies with rotation matrices."""

HEAD_BYTES, MARKER_BYTES, BODY_BYTES = 8, 12, 48
MAX_MESSAGE_BYTES = 2**24
"""Longest message that is read. Higher lets a forged length take more memory."""

MM = METRES_PER_UNIT["mm"]


class QtmNames(NamedTuple):
    """Names that frames do not repeat."""

    markers: tuple[str, ...]
    bodies: tuple[str, ...]


class QtmMessages:
    """Messages in the bytes of a connection, which come in pieces."""

    def __init__(self) -> None:
        self._data = b""

    def add(self, data: bytes) -> None:
        """Add the bytes that came next."""
        self._data += data

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield the kind and the content of each whole message, and forget it.

        Raises:
            StreamError: If the length of a message is forged; the next one cannot be
                found.
        """
        while len(self._data) >= HEAD_BYTES:
            size, kind = struct.unpack_from("<II", self._data)
            if not HEAD_BYTES <= size <= MAX_MESSAGE_BYTES:
                expected = f"a length of {HEAD_BYTES} to {MAX_MESSAGE_BYTES} bytes"
                raise StreamError(PROTOCOL, expected=expected, found=str(size))
            if len(self._data) < size:
                return
            content, self._data = self._data[HEAD_BYTES:size], self._data[size:]
            yield kind, content


def encode_command(text: str) -> bytes:
    """Return the message of a command."""
    content = text.encode() + b"\0"
    return struct.pack("<II", HEAD_BYTES + len(content), COMMAND) + content


def decode_names(content: bytes) -> QtmNames:
    """Return labels of markers and names of bodies in the parameters, which are XML.

    Raises:
        StreamError: If they are no XML.
    """
    text = content.rstrip(b"\0")
    try:
        if b"<!" in text:  # entities are declared there
            raise ElementTree.ParseError("a document type")
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise StreamError(PROTOCOL, expected="plain XML", found=str(error)) from error
    return QtmNames(
        *(
            tuple((item.findtext("Name") or "").strip() for item in root.findall(path))
            for path in ("./The_3D/Label", "./The_6D/Body")
        )
    )


def decode_qtm(content: bytes, names: QtmNames, arrival: float) -> Frame:
    """Return the frame of a data message.

    Args:
        content: The message without its head.
        names: Names of its markers and bodies.
        arrival: When it came, in seconds.

    Raises:
        StreamError: If it is cut or forged.
        DataError: If it has other numbers of markers or bodies than there are names.
    """
    packet = Packet(PROTOCOL, content)
    microseconds, number = packet.numbers("qI")
    points, poses = np.zeros((0, 3)), np.zeros((0, 4, 4))
    for _ in range(packet.count(HEAD_BYTES, "I")):
        size, kind = packet.numbers("II")
        component = Packet(PROTOCOL, packet.take(size - HEAD_BYTES))
        if kind == MARKERS:
            points = MM * _rows(component, MARKER_BYTES)
        elif kind == BODIES:
            poses = _body_poses(_rows(component, BODY_BYTES))
    return Frame(
        number=number,
        time=1e-6 * microseconds,
        arrival=arrival,
        points=points,
        labels=names.markers,
        T_world_sensor=poses,
        sensor_names=names.bodies,
    )


def _rows(component: Packet, bytes_each: int) -> Float[Array, "item _"]:
    """Return the floats of every item, after their count and two rates of loss."""
    count = component.count(bytes_each, "I")
    component.numbers("HH")
    return component.floats(count, bytes_each // 4)


def _body_poses(rows: Float[Array, "body 12"]) -> Float[Array, "body 4 4"]:
    """Return poses in metres; NaN where the matrix is no rotation."""
    R = rows[:, 3:].reshape(-1, 3, 3).swapaxes(1, 2)
    with np.errstate(all="ignore"):
        error = np.abs(R.swapaxes(1, 2) @ R - np.eye(3)).max(axis=(1, 2), initial=0.0)
        is_rotation = (error < MAX_NON_ROTATION) & (np.linalg.det(R) > 0.0)
    return geometry.transform(
        np.where(is_rotation[:, None, None], R, np.nan), MM * rows[:, :3]
    )
