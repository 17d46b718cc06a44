"""The formats that marey knows, and which of them a file has."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from os import PathLike
from pathlib import Path

from marey.errors import FormatError, OptionError, reason
from marey.io.contract import SNIFF_BYTES, Format
from marey.io.text.encoding import BYTE_ORDER_MARKS, normalize_text
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


# --- the format of a file -------------------------------------------------------------


def recognise(path: str | PathLike[str], needs: Sequence[str] = ()) -> Format:
    """Return the format of a file by its content.

    Args:
        path: The file.
        needs: Prefer a format that has one of these readers.

    Raises:
        FormatError: If there is no such file or no format knows it.
    """
    path = Path(path)
    head = read_head(path)
    # Of several formats that recognise the content, prefer the one with this suffix.
    likely = _able(formats_with_suffix(path.name), head, needs)
    able = likely or _able(formats(), head, needs)
    if able:
        return able[0]
    matches = _able(formats(), head, ())
    if matches:
        raise _missing_content_error(path, matches[0], needs[0])
    if not head:
        raise FormatError(path, expected="a recording", found="an empty file")
    known = (f.name for f in formats() if f.reads)
    raise FormatError(
        path,
        expected=f"one of the formats {', '.join(known)}",
        found=f"{len(head)} bytes that none of them knows: {head[:16]!r}",
    )


def _able(
    candidates: Sequence[Format], head: bytes, needs: Sequence[str]
) -> list[Format]:
    """Return the formats that know the content and have one of the readers."""
    return [
        known
        for known in candidates
        if (not needs or any(getattr(known, need) for need in needs))
        and known.sniff(head)
    ]


def _missing_content_error(path: Path, found: Format, need: str) -> FormatError:
    """Return the error of a file whose format holds something else."""
    readers = ("read_take", "read_motion", "read_skeleton")
    able = " or ".join(name for name in readers if getattr(found, name))
    return FormatError(
        path,
        expected=f"a file that holds a {need.removeprefix('read_')}",
        found=f"{found.title}, which does not: {able or 'nothing'} reads it",
        format=found.name,
    )


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file as UTF-8, to recognise its format.

    Raises:
        FormatError: If the file cannot be read.
    """
    if not path.exists():
        raise FormatError(path, expected="a file", found="nothing at this path")
    if not path.is_file():
        raise FormatError(path, expected="a file", found="a folder or device")
    try:
        with path.open("rb") as handle:
            head = handle.read(SNIFF_BYTES)
    except OSError as error:
        expected = "a readable file"
        raise FormatError(path, expected=expected, found=reason(error)) from error
    marked = head.startswith(BYTE_ORDER_MARKS)
    return normalize_text(head) if marked else head


def format_by_name(name: str) -> Format:
    """Return the format of this name.

    Raises:
        OptionError: If there is none.
    """
    for known in formats():
        if known.name == name:
            return known
    names = ", ".join(known.name for known in formats())
    raise OptionError("format", found=name, needed=f"one of {names}")


def format_for_suffix(path: Path) -> Format:
    """Return the format that a file to be written asks for by its suffix.

    Raises:
        OptionError: If no format has it.
        MissingExtraError: If an optional package that it needs is not installed.
    """
    # A format that is only read may share its suffix with one that is written.
    for known in formats_with_suffix(path.name):
        if known.writes:
            if known.import_packages is not None:
                known.import_packages()
            return known
    able = (known for known in formats() if known.writes)
    suffixes = ", ".join(suffix for known in able for suffix in known.suffixes)
    raise OptionError("path", found=path.name, needed=f"a suffix out of {suffixes}")
