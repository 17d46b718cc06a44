"""The two files of glTF: JSON with base64, and the binary GLB."""

import base64
import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from marey.errors import DataError

MAX_BYTES = 2**32 - 1
"""Largest GLB: its length is a number of four bytes."""

JSON_CHUNK, BINARY_CHUNK = 0x4E4F534A, 0x004E4942


def gltf_bytes(document: Mapping[str, Any], data: bytes) -> Iterator[bytes]:
    """Yield the bytes of a .gltf: one file, its buffer in base64."""
    uri = "data:application/octet-stream;base64," + base64.b64encode(data).decode()
    buffers = [{"byteLength": len(data), "uri": uri}]
    yield json.dumps({**document, "buffers": buffers}, indent=1).encode()
    yield b"\n"


def glb_bytes(document: Mapping[str, Any], data: bytes) -> Iterator[bytes]:
    """Yield the bytes of a .glb: a header, the JSON and the buffer.

    Raises:
        DataError: If they are more than a GLB can hold.
    """
    buffers = [{"byteLength": len(data)}]
    text = json.dumps({**document, "buffers": buffers}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    data += b"\0" * (-len(data) % 4)
    size = 12 + 8 + len(text) + 8 + len(data)
    if size > MAX_BYTES:
        raise DataError(
            "glTF scene",
            found=f"{size / 1e9:.1f} GB",
            needed="less than 4.3 GB: cut the motion, or resample it",
        )
    yield struct.pack("<4sII", b"glTF", 2, size)
    yield struct.pack("<II", len(text), JSON_CHUNK) + text
    yield struct.pack("<II", len(data), BINARY_CHUNK)
    yield data
