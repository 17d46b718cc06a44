"""Binary FBX 7.4 as a tree of records.

A record has a name, a list of typed values and nested records. On disk it begins with
the offset of its end, so a record is laid out once its size is known. Little-endian.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

VERSION = 7400
"""Version of the file: the newest with 32-bit offsets, which every program reads."""

MAGIC = b"Kaydara FBX Binary  \x00\x1a\x00"
FILE_ID = bytes.fromhex("28b32aebb624ccc2bfc8b02aa92bfcf1")
CREATION_TIME = "1970-01-01 10:00:00:000"
"""The file id and the time that belong to `FOOTER_ID`; with another time readers that
check would refuse the footer, and equal files would differ."""

FOOTER_ID = bytes.fromhex("fabcab09d0c8d466b176fb831cf7267e")
FOOTER_END = bytes.fromhex("f85a8c6adef5d97eece90ce3758f290b")
FOOTER_ZEROS = 120

EMPTY_RECORD = b"\x00" * 13
"""Ends a list of nested records."""

RAW_BYTES = 128
"""Arrays of fewer bytes are not compressed."""

MAX_BYTES = 2**32 - 1
"""Largest size of a file: offsets have 32 bits."""

ARRAY_CODES = {"f": b"f", "d": b"d", "i": b"i", "q": b"l", "l": b"l"}
"""Code of an array by the kind and size of its numbers, as `numpy.dtype.char`."""

Value = bool | int | np.int64 | float | str | bytes | np.ndarray
"""Whole numbers are written with 32 bits, NumPy ones with their own size."""


@dataclass(frozen=True, slots=True, eq=False)
class FbxNode:
    """A named node of the file."""

    name: str
    values: tuple[Value, ...] = ()
    children: tuple["FbxNode", ...] = ()


def record(
    name: str, *values: Value, children: Sequence[FbxNode] = (), **fields: Value
) -> FbxNode:
    """Return a record of values, with nested records.

    Args:
        name: Its name.
        *values: Its values.
        children: Nested records.
        **fields: Nested records of one value, which come before the others.
    """
    first = (FbxNode(field, (value,)) for field, value in fields.items())
    return FbxNode(name, values, (*first, *children))


def encode_file(records: Sequence[FbxNode]) -> bytes:
    """Return the bytes of a file of top-level records.

    Raises:
        OverflowError: If they do not fit the 32-bit offsets of the format.
    """
    parts = [MAGIC, struct.pack("<I", VERSION)]
    offset = sum(map(len, parts))
    for one in records:
        parts.append(_encode_record(one, offset))
        offset += len(parts[-1])
    if offset > MAX_BYTES:
        raise OverflowError(offset)
    parts += [EMPTY_RECORD, FOOTER_ID, bytes(4)]
    offset += len(EMPTY_RECORD) + len(FOOTER_ID) + 4
    padding = 16 - offset % 16
    parts += [bytes(padding), struct.pack("<I", VERSION), bytes(FOOTER_ZEROS)]
    return b"".join([*parts, FOOTER_END])


def _encode_record(one: FbxNode, offset: int) -> bytes:
    """Return the bytes of a record that begins at an offset of the file."""
    name = one.name.encode()
    values = b"".join(_encode_value(value) for value in one.values)
    start = offset + len(EMPTY_RECORD) + len(name) + len(values)
    parts, end = [], start
    for child in one.children:
        parts.append(_encode_record(child, end))
        end += len(parts[-1])
    if one.children or not one.values:
        parts.append(EMPTY_RECORD)
        end += len(EMPTY_RECORD)
    if end > MAX_BYTES:
        raise OverflowError(end)
    head = struct.pack("<IIIB", end, len(one.values), len(values), len(name))
    return b"".join([head, name, values, *parts])


def _encode_value(value: Value) -> bytes:
    """Return a value with the letter of its type."""
    if isinstance(value, np.ndarray):
        return _encode_array(value)
    if isinstance(value, bool):
        return struct.pack("<cB", b"C", value)
    if isinstance(value, np.int64):
        return struct.pack("<cq", b"L", int(value))
    if isinstance(value, int):
        return struct.pack("<ci", b"I", value)
    if isinstance(value, float):
        return struct.pack("<cd", b"D", value)
    letter, data = (b"S", value.encode()) if isinstance(value, str) else (b"R", value)
    return struct.pack("<cI", letter, len(data)) + data


def _encode_array(values: np.ndarray) -> bytes:
    """Return an array of numbers: its code, count, encoding, size and data."""
    data = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()
    count, compressed = values.size, len(data) >= RAW_BYTES
    if compressed:
        data = zlib.compress(data, level=1)
    code = ARRAY_CODES[values.dtype.char]
    return struct.pack("<cIII", code, count, compressed, len(data)) + data
