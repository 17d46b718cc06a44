"""A packet being read, never beyond its end."""

import struct
from typing import Any, NoReturn

import numpy as np

from marey.errors import StreamError


class Packet:
    """Reads numbers and texts one after the other; every read is checked.

    Args:
        protocol: Name of the protocol, for errors.
        data: The bytes.
        order: Byte order of numbers, "<" or ">".
    """

    def __init__(self, protocol: str, data: bytes, order: str = "<") -> None:
        self.protocol, self.data, self.order = protocol, data, order
        self.position = 0

    @property
    def remaining(self) -> int:
        """Bytes that are not read yet."""
        return len(self.data) - self.position

    def fail(self, expected: str, found: object) -> NoReturn:
        """Raise the error that names the protocol and this byte."""
        raise StreamError(
            self.protocol, self.position, expected=expected, found=str(found)
        )

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        if not 0 <= count <= self.remaining:
            self.fail(f"{count} bytes", f"{self.remaining} to the end")
        start, self.position = self.position, self.position + count
        return self.data[start : self.position]

    def numbers(self, kinds: str) -> tuple[Any, ...]:
        """Return numbers of these `struct` characters, without padding."""
        layout = self.order + kinds
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def number(self, kind: str) -> Any:
        """Return one number."""
        return self.numbers(kind)[0]

    def count(self, bytes_each: int, kind: str = "i") -> int:
        """Return a count of things that the rest of the packet has room for.

        Args:
            bytes_each: Smallest size of one thing.
            kind: `struct` character of the count.
        """
        count: int = self.number(kind)
        if not 0 <= count * bytes_each <= self.remaining or count < 0:
            room = f"at most {self.remaining // max(bytes_each, 1)} more"
            self.fail(f"a count of {room}", count)
        return count

    def floats(self, *shape: int) -> np.ndarray:
        """Return an array of 32-bit floats as 64-bit ones."""
        data = self.take(4 * int(np.prod(shape)))
        with np.errstate(invalid="ignore"):  # signalling NaN
            values = np.frombuffer(data, f"{self.order}f4").astype(float)
        return values.reshape(shape)

    def text(self) -> str:
        """Return text up to the next zero byte."""
        end = self.data.find(b"\0", self.position)
        if end < 0:
            self.fail("a text that ends in zero", "no zero byte")
        text = self.take(end - self.position).decode("utf-8", "replace")
        self.position += 1
        return text
