"""C3D: the interchange format of optical motion capture and biomechanics.

Reads Intel, DEC and SGI/MIPS files of integers or reals; writes Intel reals.
"""

from marey.io.contract import Format
from marey.io.formats.c3d.file import C3D_KEY, C3DFile, load
from marey.io.formats.c3d.take import read_take
from marey.io.formats.c3d.write import write_take

__all__ = ["FORMAT", "C3DFile", "load", "read_take", "sniff", "write_take"]

_FIRST_PRINTABLE = 32


def sniff(head: bytes) -> bool:
    """Whether a file begins like a C3D: the block of its parameters, then 0x50."""
    if len(head) < 2 or head[1] != C3D_KEY or head[0] < 2:
        return False
    # 0x50 is also the letter P; only text has no zero byte near its beginning.
    return head[0] < _FIRST_PRINTABLE or 0 in head[:64]


FORMAT = Format(
    name="c3d",
    title="C3D (Vicon, Qualisys, OptiTrack, Theia and most others)",
    suffixes=(".c3d",),
    sniff=sniff,
    read_take=read_take,
    write_take=write_take,
    loses=("filled", "computed", "confidence"),
    # Half a step of a 32-bit real at 10 m, written in millimetres.
    precision=6e-7,
)
