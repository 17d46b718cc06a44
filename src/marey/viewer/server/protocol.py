"""Messages between the server and its worker: JSON with bytes beside it.

A frame is two lengths (unsigned, 32 bits, big endian), the JSON and the bytes. The
worker reads files of strangers, so nothing it says is trusted beyond plain data.
"""

import asyncio
import json
import struct
from typing import Any, BinaryIO

from marey.io.formats.html import plain

LENGTHS = struct.Struct(">II")

LONGEST_MESSAGE = 2**26
"""Bytes of JSON beyond which the other side is taken for broken."""

Frame = tuple[dict[str, Any], bytes]


def framed(message: dict[str, Any], data: bytes = b"") -> bytes:
    """Return the bytes of a message, with what goes beside it."""
    text = json.dumps(plain(message), allow_nan=False).encode()
    return LENGTHS.pack(len(text), len(data)) + text + data


def read_frame(stream: BinaryIO) -> Frame | None:
    """Return the next message, None at the end of the stream."""
    head = stream.read(LENGTHS.size)
    if len(head) < LENGTHS.size:
        return None
    text, data = LENGTHS.unpack(head)
    return json.loads(stream.read(text)), stream.read(data)


async def next_frame(reader: asyncio.StreamReader) -> Frame | None:
    """Return the worker's next message, None when it is gone or talks nonsense."""
    try:
        text, data = LENGTHS.unpack(await reader.readexactly(LENGTHS.size))
        if text > LONGEST_MESSAGE:
            return None
        message = json.loads(await reader.readexactly(text))
        beside = await reader.readexactly(data)
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        return None
    return (message, beside) if isinstance(message, dict) else None
