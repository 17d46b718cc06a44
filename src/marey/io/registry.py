"""The formats that marey knows: built-in ones and those of other packages."""

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from marey.io.contract import Format

# Recognised in this order; csv is last because it accepts any table of numbers.
FORMAT_NAMES = (
    *("c3d", "npz", "parquet", "hdf5", "trb"),
    *("bvh", "amc", "asf", "trc", "htr", "mvnx", "vsk", "skel", "openpose", "html"),
    *("gltf", "usd", "fbx"),
    *("mjcf", "urdf", "osim"),
    *("motive", "qualisys", "keypoints", "storage", "csv"),
)

ENTRY_POINT_GROUP = "marey.formats"
"""Group of entry points by which another package adds a format."""


@cache
def formats() -> tuple[Format, ...]:
    """Return every format, in the order of recognition.

    Formats of other packages (entry points of the group `marey.formats`, each naming a
    `Format`) come first, because csv, the last one, accepts any table of numbers.
    """
    added = sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.name)
    built_in = (
        import_module(f"marey.io.formats.{name}").FORMAT for name in FORMAT_NAMES
    )
    return (*(entry.load() for entry in added), *built_in)
