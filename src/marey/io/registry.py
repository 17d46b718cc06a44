"""The formats that marey knows: built-in ones and those of other packages."""

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from marey.io.contract import Format
from marey.motion import Motion
from marey.solution import Solution
from marey.take import Take

# Recognised in this order; csv is last because it accepts any table of numbers.
FORMAT_SUFFIXES = {
    "c3d": (".c3d",),
    "npz": (".npz", ".marey"),
    "parquet": (".parquet",),
    "hdf5": (".h5", ".nc"),
    "trb": (".trb",),
    "journal": (".marey-live",),
    "bvh": (".bvh",),
    "amc": (".amc",),
    "asf": (".asf",),
    "trc": (".trc",),
    "htr": (".htr", ".htr2"),
    "mvnx": (".mvnx",),
    "vsk": (".vsk",),
    "skel": (".skel.json",),
    "openpose": (".json",),
    "markerless": (".json",),
    "html": (".html",),
    "gltf": (".glb", ".gltf"),
    "usd": (".usda", ".usdc"),
    "fbx": (".fbx",),
    "mjcf": (".mjcf",),
    "urdf": (".urdf",),
    "osim": (".osim",),
    "motive": (".csv",),
    "qualisys": (".tsv",),
    "keypoints": (".csv",),
    "storage": (".sto", ".mot"),
    "csv": (".csv", ".tsv", ".txt", ".traj"),
}
"""Suffixes of the built-in formats, so that a file's own are imported before others."""

ENTRY_POINT_GROUP = "marey.formats"
"""Group of entry points by which another package adds a format."""


@cache
def formats() -> tuple[Format, ...]:
    """Return every format, in the order of recognition.

    Formats of other packages (entry points of the group `marey.formats`, each naming a
    `Format`) come first, because csv, the last one, accepts any table of numbers.
    """
    return (*_added_formats(), *map(_built_in_format, FORMAT_SUFFIXES))


def formats_with_suffix(name: str) -> tuple[Format, ...]:
    """Return the formats that a file's name ends like, in the order of recognition."""
    ending = name.lower()
    built_in = (n for n, known in FORMAT_SUFFIXES.items() if ending.endswith(known))
    added = (f for f in _added_formats() if ending.endswith(f.suffixes))
    return (*added, *map(_built_in_format, built_in))


@cache
def _added_formats() -> tuple[Format, ...]:
    added = sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.name)
    return tuple(entry.load() for entry in added)


def _built_in_format(name: str) -> Format:
    found: Format = import_module(f"marey.io.formats.{name}").FORMAT
    return found


def formats_for(thing: Solution | Motion | Take) -> tuple[Format, ...]:
    """Return the formats that can be written of a thing, in the order of recognition.

    If there are several subjects or takes, formats of one subject are left out.
    """
    if isinstance(thing, Take):
        return tuple(f for f in formats() if f.write_take)
    if isinstance(thing, Motion):
        return tuple(f for f in formats() if f.write_motion or f.write_take)
    if len(thing.subjects) == len(thing.takes) == 1:
        return tuple(f for f in formats() if f.writes)
    return tuple(f for f in formats() if f.write_solution and not f.one_subject)
