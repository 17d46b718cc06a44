"""The header of a C3D file: the fixed fields of its first block."""

from dataclasses import dataclass

from marey.io.formats.c3d.encoding import C3dEncoding
from marey.io.formats.c3d.parameters import BLOCK

MAX_RATE_HZ = 1e5
"""Largest frame rate in hertz; larger ones are damage."""

MIN_RATE_HZ = 0.1
"""Smallest frame rate in hertz that speaks for the encoding of a header."""

MIN_SCALE, MAX_SCALE = 1e-7, 1e4
"""Units per integer step; others are damage."""


@dataclass(frozen=True, slots=True)
class C3dHeader:
    """The fixed fields of the first block."""

    points: int
    analog: int
    """Analog numbers per frame: channels times samples."""

    first: int
    last: int
    scale: float
    data: int
    """Byte where the frames begin."""

    samples: int
    """Analog samples per frame."""

    rate: float

    @classmethod
    def read(cls, data: bytes, encoding: C3dEncoding) -> "C3dHeader":
        """Return the header of a file that has at least one block."""
        words = [encoding.unsigned(data, offset) for offset in (2, 4, 6, 8, 16, 18)]
        points, analog, first, last, block, samples = words
        scale, rate = encoding.real(data, 12), encoding.real(data, 20)
        start = (block - 1) * BLOCK
        return cls(points, analog, first, last, scale, start, samples, rate)

    def plausibility(self, size: int) -> int:
        """Return the number of plausible fields in a file of this length, 0 to 4."""
        plausible = (
            MIN_RATE_HZ < self.rate < MAX_RATE_HZ,
            MIN_SCALE < abs(self.scale) < MAX_SCALE,
            0 < self.data <= size,
            self.first <= self.last + 1,
        )
        return sum(plausible)
