"""Arrays and a JSON header in one compressed blob that a browser unpacks quickly.

The blob is zlib over: `MRY1`, the length of the header (unsigned, 32 bits, little
endian), the header padded with spaces, and the arrays. Header and arrays begin at
multiples of eight bytes.

Values over time are rounded to a step and written as differences from frame to frame,
lowest bytes first. Motion is smooth, so most of these bytes are equal.
"""

import json
import math
import re
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from marey.numerics import Array, Float, Int, Shaped

MAGIC = b"MRY1"
ALIGNMENT_BYTES = 8

TRACK_STEP = 1e-5
"""Rounding of positions in metres, and of the components of quaternions."""

MAX_TRACK_VALUE = 2e4
"""Largest absolute value of a track, in its unit."""

SURROGATES = re.compile("[\ud800-\udfff]")
"""Code points by which Python represents bytes that are no text."""


class SceneArrays:
    """The arrays of a scene, collected one by one, and the offset of each."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0
        self._index: dict[str, dict[str, Any]] = {}

    def track(
        self, key: str, values: Float[Array, "frame *item"], step: float = TRACK_STEP
    ) -> str:
        """Keep values over frames, to half a step, and return their key.

        A value that is not finite, or too far away to be drawn, repeats the one before;
        a separate mask marks it. An empty array has the key "".
        """
        return self._add(key, "track", values.shape, encode_track(values, step), step)

    def small(self, key: str, values: Shaped[Array, "*any"]) -> str:
        """Keep small whole numbers, one byte each, and return their key."""
        whole = np.ascontiguousarray(values, dtype=np.uint8)
        return self._add(key, "u8", values.shape, whole.tobytes())

    def floats(self, key: str, values: Float[Array, "*any"]) -> str:
        """Keep values in single precision, NaN among them, and return their key."""
        single = np.ascontiguousarray(values, dtype="<f4")
        return self._add(key, "f32", values.shape, single.tobytes())

    def _add(
        self,
        key: str,
        coding: str,
        shape: tuple[int, ...],
        data: bytes,
        step: float | None = None,
    ) -> str:
        if not data:
            return ""
        entry = {"offset": self._size, "bytes": len(data), "shape": list(shape)}
        stepped = {} if step is None else {"step": step}
        self._index[key] = {**entry, "coding": coding, **stepped}
        padding = bytes(-len(data) % ALIGNMENT_BYTES)
        self._chunks += [data, padding]
        self._size += len(data) + len(padding)
        return key

    def encode(self, header: Mapping[str, Any]) -> bytes:
        """Return the arrays with a header that says what they are."""
        written = json.dumps(
            to_json({**header, "arrays": self._index}),
            ensure_ascii=False,
            allow_nan=False,
            separators=(",", ":"),
        )
        text = replace_surrogates(written).encode()
        text += b" " * (-(len(MAGIC) + 4 + len(text)) % ALIGNMENT_BYTES)
        head = MAGIC + struct.pack("<I", len(text)) + text
        packer = zlib.compressobj(level=6)
        parts = [packer.compress(part) for part in (head, *self._chunks)]
        return b"".join([*parts, packer.flush()])


def encode_track(values: Float[Array, "frame *item"], step: float) -> bytes:
    """Return values over frames as byte planes of zig-zag differences."""
    if values.size == 0:
        return b""
    q = quantize_track(values.reshape(len(values), -1), step)
    with np.errstate(over="ignore"):
        difference = np.diff(q, axis=1, prepend=np.int32(0))
        zigzag = (difference << 1) ^ (difference >> 31)
    planes = np.ascontiguousarray(zigzag, dtype="<i4").view(np.uint8)
    return np.ascontiguousarray(planes.reshape(-1, 4).T).tobytes()


def quantize_track(
    values: Float[Array, "frame item"], step: float
) -> Int[Array, "item frame"]:
    """Return values in steps; an unknown one repeats the one before, or is zero."""
    by_item = np.ascontiguousarray(values.T)
    known = np.abs(by_item) <= MAX_TRACK_VALUE * (step / TRACK_STEP)
    frame = np.where(known, np.arange(by_item.shape[1]), -1)
    last = np.maximum.accumulate(frame, axis=1)
    q = np.round(np.where(known, by_item, 0.0) / step).astype(np.int32)
    filled = np.take_along_axis(q, last.clip(0), axis=1)
    return np.where(last >= 0, filled, np.int32(0))


def to_json(value: Any) -> Any:
    """Return a value as JSON holds it: a number that is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return to_json(value.tolist())
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)


def replace_surrogates(text: str) -> str:
    """Return text that UTF-8 can hold: invalid bytes become "\ufffd"."""
    return SURROGATES.sub("\ufffd", text)
