"""The first block of a C3D file."""

from dataclasses import dataclass

from marey.io.formats.c3d.encoding import C3dEncoding
from marey.io.formats.c3d.parameters import BLOCK


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
            0.1 < self.rate < 1e5,
            1e-6 < abs(self.scale) < 1e4,
            0 < self.data <= size,
            self.first <= self.last + 1,
        )
        return sum(plausible)
