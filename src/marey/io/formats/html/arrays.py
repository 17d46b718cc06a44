"""Arrays beside a JSON header, in one compressed blob that a browser unpacks quickly.

The blob is zlib over: `MRY1`, the length of the header (unsigned, 32 bits, little
endian), the header padded with spaces, and the arrays. Header and arrays begin at
multiples of eight bytes.

Values over time are rounded to a step and written as differences from frame to frame,
lowest bytes first: motion is smooth, so most of these bytes are alike and deflate well.
"""

import json
import math
import re
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

Array = np.ndarray

MAGIC = b"MRY1"
ALIGNED = 8

STEP = 1e-5
"""Rounding of places in metres, and of the components of quaternions."""

LARGEST = 2e4
"""Values, in the unit of the step's, beyond which a track cannot hold them."""

SURROGATES = re.compile("[\ud800-\udfff]")
"""What Python has in the place of bytes that are no text."""


class Arrays:
    """The arrays of a blob as they are gathered, and where each is."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0
        self._index: dict[str, dict[str, Any]] = {}

    def track(
        self, key: str, values: Float[Array, "frame *item"], step: float = STEP
    ) -> str:
        """Keep values over frames, to half a step, and return their key.

        What is not finite, or too far off to be drawn, stands at the value before it;
        a mask beside the track tells. An empty array has the key "".
        """
        return self._put(key, "track", values.shape, coded_track(values, step), step)

    def small(self, key: str, values: Shaped[Array, "*any"]) -> str:
        """Keep small whole numbers, one byte each, and return their key."""
        whole = np.ascontiguousarray(values, dtype=np.uint8)
        return self._put(key, "u8", values.shape, whole.tobytes())

    def floats(self, key: str, values: Float[Array, "*any"]) -> str:
        """Keep values in single precision, NaN among them, and return their key."""
        single = np.ascontiguousarray(values, dtype="<f4")
        return self._put(key, "f32", values.shape, single.tobytes())

    def _put(
        self,
        key: str,
        coding: str,
        shape: tuple[int, ...],
        data: bytes,
        step: float | None = None,
    ) -> str:
        if not data:
            return ""
        place = {"offset": self._size, "bytes": len(data), "shape": list(shape)}
        stepped = {} if step is None else {"step": step}
        self._index[key] = {**place, "coding": coding, **stepped}
        padding = bytes(-len(data) % ALIGNED)
        self._chunks += [data, padding]
        self._size += len(data) + len(padding)
        return key

    def blob(self, header: Mapping[str, Any]) -> bytes:
        """Return the arrays with a header that says what they are."""
        written = json.dumps(
            plain({**header, "arrays": self._index}),
            ensure_ascii=False,
            allow_nan=False,
            separators=(",", ":"),
        )
        text = plain_text(written).encode()
        text += b" " * (-(len(MAGIC) + 4 + len(text)) % ALIGNED)
        head = MAGIC + struct.pack("<I", len(text)) + text
        packer = zlib.compressobj(level=6)
        parts = [packer.compress(part) for part in (head, *self._chunks)]
        return b"".join([*parts, packer.flush()])


def coded_track(values: Float[Array, "frame *item"], step: float) -> bytes:
    """Return values over frames as byte planes of zig-zag differences."""
    if values.size == 0:
        return b""
    q = held(values.reshape(len(values), -1), step)
    with np.errstate(over="ignore"):
        difference = np.diff(q, axis=1, prepend=np.int32(0))
        zigzag = (difference << 1) ^ (difference >> 31)
    planes = np.ascontiguousarray(zigzag, dtype="<i4").view(np.uint8)
    return np.ascontiguousarray(planes.reshape(-1, 4).T).tobytes()


def held(values: Float[Array, "frame item"], step: float) -> Int[Array, "item frame"]:
    """Return values in steps, the unknown at the value before it, or at zero."""
    by_item = np.ascontiguousarray(values.T)
    known = np.abs(by_item) <= LARGEST * (step / STEP)
    frame = np.where(known, np.arange(by_item.shape[1]), -1)
    last = np.maximum.accumulate(frame, axis=1)
    q = np.round(np.where(known, by_item, 0.0) / step).astype(np.int32)
    filled = np.take_along_axis(q, last.clip(0), axis=1)
    return np.where(last >= 0, filled, np.int32(0))


def plain(value: Any) -> Any:
    """Return a value as JSON holds it: what is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)


def plain_text(text: str) -> str:
    """Return text as UTF-8 can hold it: odd bytes of a file's name become "\ufffd"."""
    return SURROGATES.sub("\ufffd", text)
