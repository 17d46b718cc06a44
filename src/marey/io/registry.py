"""The formats that marey knows: built-in ones and those of other packages."""

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from marey.io.contract import Format
from marey.motion import Motion
from marey.solution import Solution
from marey.take import Take

# Recognised in this order; csv is last because it accepts any table of numbers.
FORMAT_NAMES = (
    *("c3d", "npz", "parquet", "hdf5", "trb", "journal"),
    *("bvh", "amc", "asf", "trc", "htr", "mvnx", "vsk", "skel"),
    *("openpose", "markerless", "html"),
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


def formats_for(thing: Solution | Motion | Take) -> tuple[Format, ...]:
    """Return the formats that can be written of a thing, in the order of recognition.

    Of several subjects or takes, those are left out that hold one subject in one take.
    """
    if isinstance(thing, Take):
        return tuple(f for f in formats() if f.write_take)
    if isinstance(thing, Motion):
        return tuple(f for f in formats() if f.write_motion or f.write_take)
    if len(thing.subjects) == len(thing.takes) == 1:
        return tuple(f for f in formats() if f.writes)
    return tuple(f for f in formats() if f.write_solution and not f.one_subject)
