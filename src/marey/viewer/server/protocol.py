"""Messages between the server and its worker: their framing, and the shape they share.

A frame is two lengths (unsigned, 32 bits, big endian), the JSON and the bytes. The
worker parses untrusted files, so the messages are plain data and never pickled objects.
A request names a method of `WorkerSession` ("do") and its arguments.
"""

import asyncio
import json
import struct
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from marey.io.formats.html import to_json

FRAME_HEADER = struct.Struct(">II")

MAX_JSON_BYTES = 2**26
"""Largest JSON of a message of the worker, in bytes. A larger one ends the connection.
Chosen by hand."""

Frame = tuple[dict[str, Any], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """Title, edits and possible actions, as the page receives them."""

    title: str
    edits: list[dict[str, Any]] = field(default_factory=list)
    """Record of each edit, and its sentence as `text`."""

    can_undo: bool = False
    can_redo: bool = False
    trial: bool = False
    """Whether an edit is on trial."""

    saved: str = ""
    """Name of the edits file; "" = edits are not saved."""


def encode_frame(message: dict[str, Any], data: bytes = b"") -> bytes:
    """Return a frame with a message and binary data."""
    text = json.dumps(to_json(message), allow_nan=False).encode()
    return FRAME_HEADER.pack(len(text), len(data)) + text + data


def read_frame(stream: BinaryIO) -> Frame | None:
    """Return the next message and its data; None at the end of the stream."""
    header = stream.read(FRAME_HEADER.size)
    if len(header) < FRAME_HEADER.size:
        return None
    n_json, n_data = FRAME_HEADER.unpack(header)
    return json.loads(stream.read(n_json)), stream.read(n_data)


async def read_frame_async(reader: asyncio.StreamReader) -> Frame | None:
    """Return the worker's next message and its data; None if it ended or is invalid."""
    try:
        header = await reader.readexactly(FRAME_HEADER.size)
        n_json, n_data = FRAME_HEADER.unpack(header)
        if n_json > MAX_JSON_BYTES:
            return None
        message = json.loads(await reader.readexactly(n_json))
        data = await reader.readexactly(n_data)
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        return None
    return (message, data) if isinstance(message, dict) else None
