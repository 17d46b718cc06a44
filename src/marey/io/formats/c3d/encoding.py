"""Number encodings of C3D files: Intel, DEC (VAX) or SGI/MIPS."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from marey.numerics import Float32, Int16

Processor = Literal["intel", "dec", "mips"]
Bytes = bytes | bytearray | memoryview

PROCESSORS: dict[int, Processor] = {84: "intel", 85: "dec", 86: "mips"}
"""The byte by which the parameter section names the processor."""

_EXPONENT = np.uint32(0x7F80_0000)
# A VAX number reads four times its value when its bits are taken for IEEE.
_TWO_BINARY_ORDERS = np.uint32(2 << 23)


@dataclass(frozen=True, slots=True)
class C3dEncoding:
    """The byte order and the kind of floating point number of a file."""

    processor: Processor = "intel"

    @property
    def order(self) -> str:
        """Byte order of 16-bit integers, as NumPy writes it."""
        return ">" if self.processor == "mips" else "<"

    def integers(self, data: Bytes) -> Int16[np.ndarray, " value"]:
        """Return signed 16-bit integers; a single byte at the end is ignored."""
        words = np.frombuffer(data, f"{self.order}i2", len(data) // 2)
        return words.astype(np.int16, copy=False)

    def reals(self, data: Bytes) -> Float32[np.ndarray, " value"]:
        """Return 32-bit real numbers; incomplete bytes at the end are ignored."""
        count = len(data) // 4
        if self.processor == "dec":
            return _from_vax(np.frombuffer(data, "<u2", 2 * count))
        words = np.frombuffer(data, f"{self.order}f4", count)
        return words.astype(np.float32, copy=False)

    def unsigned(self, data: Bytes, offset: int) -> int:
        """Return the unsigned 16-bit integer at this byte."""
        big = self.processor == "mips"
        return int.from_bytes(data[offset : offset + 2], "big" if big else "little")

    def real(self, data: Bytes, offset: int) -> float:
        """Return the real number at this byte."""
        return float(self.reals(data[offset : offset + 4])[0])


def _from_vax(words: np.ndarray) -> Float32[np.ndarray, " value"]:
    """Return VAX F numbers: the word with sign and exponent comes first."""
    pairs = words.reshape(-1, 2).astype(np.uint32)
    bits = (pairs[:, 0] << np.uint32(16)) | pairs[:, 1]
    in_range = (bits & _EXPONENT) > _TWO_BINARY_ORDERS
    return np.where(in_range, bits - _TWO_BINARY_ORDERS, 0).astype("u4").view("f4")
