"""The formats that marey knows, its own and those of other packages."""

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from marey.io.contract import Format

# Asked in this order. The table reader comes last: it takes any table of numbers.
REGISTRY = (
    *("c3d", "npz", "parquet", "trb"),
    *("bvh", "amc", "asf", "trc", "htr", "mvnx", "vsk", "skel", "html"),
    *("motive", "qualisys", "storage", "csv"),
)

ENTRY_POINTS = "marey.formats"
"""Group of entry points by which another package adds a format."""


@cache
def formats() -> tuple[Format, ...]:
    """Return every format, in the order in which they are asked about a file.

    Formats of other packages (entry points of the group `marey.formats`, each naming a
    `Format`) are asked first, because the last of ours takes any table of numbers.
    """
    added = sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name)
    own = (import_module(f"marey.io.formats.{name}").FORMAT for name in REGISTRY)
    return (*(entry.load() for entry in added), *own)
