"""The journal of a live recording (.marey-live), which only grows.

After a line of text come blocks: a sync word, a kind, a length and a checksum (CRC-32)
before the content. The first block says unit, axes and rate; a layout names markers and
sensors of the frames that follow it, each of which is a block of its own; the last
block closes the journal. A journal that was cut off is read up to its last whole block,
and blocks after a damaged one are found by their sync word.
"""

from marey.io.contract import Format
from marey.io.formats.journal.blocks import MAGIC, write_take
from marey.io.formats.journal.read import read_take


def sniff(head: bytes) -> bool:
    """Whether a file begins like a journal."""
    return head.startswith(MAGIC)


FORMAT = Format(
    name="journal",
    title="journal of a live recording",
    suffixes=(".marey-live",),
    sniff=sniff,
    read_take=read_take,
    write_take=write_take,
    loses=("filled", "analog", "computed", "confidence"),
)
