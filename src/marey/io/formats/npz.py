"""The archive of marey: a NumPy archive (.npz, .marey) that holds everything exactly.

Every array of a noun is one entry, in float64; `marey.json` says how they belong
together. `numpy.load` opens it too. Archives of other origin are read when they hold
`points` (frame, marker, 3) and perhaps `labels`, `rate`, `unit` and `up`.
"""

import io
import json
import math
import tokenize
import types
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from marey.bodies import Bodies
from marey.errors import DataError
from marey.io import contract
from marey.io.contract import Format, Output
from marey.io.file import Facts, File
from marey.io.options import WriteOptions
from marey.io.units_axes import parse_unit
from marey.joint_fits import JointFits
from marey.motion import Contact, Motion
from marey.report import Finding, Report, Table
from marey.skeleton import Skeleton
from marey.solution import Solution, Subject
from marey.take import Analog, Computed, Event, Fact, Source, Take
from marey.tree import Loop, Tree

DESCRIPTION = "marey.json"
VERSION = 1
ENTRY_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of every entry, so that the same thing gives the same bytes."""

# An archive may grow by this factor, plus the spare bytes, when unpacked.
MAX_GROWTH = 20
SPARE_BYTES = 16 * 2**20
MAX_HEADER_BYTES = 2**14
COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}

# NotImplementedError is a RuntimeError.
ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error),
    *(EOFError, ValueError, OSError, RuntimeError),
)
ARRAY_ERRORS = (
    *(ValueError, TypeError, SyntaxError, OverflowError),
    *(MemoryError, EOFError, tokenize.TokenError),
)
"""What damaged bytes make Python and NumPy raise."""

NOUNS: dict[str, type] = {
    noun.__name__: noun
    for noun in (
        *(Take, Analog, Computed, Event, Fact, Source, Bodies, JointFits, Tree, Loop),
        *(Skeleton, Motion, Contact, Report, Finding, Table, Solution, Subject),
    )
}
MAX_DEPTH = 32
"""Largest nesting of a description; deeper ones are refused."""

Noun = Take | Motion | Skeleton | Solution
N = TypeVar("N")


def sniff(head: bytes) -> bool:
    """Whether a zip archive begins with a NumPy array or `marey.json`."""
    if not head.startswith(b"PK\x03\x04") or len(head) < 30:
        return False
    length = int.from_bytes(head[26:28], "little")
    name = head[30 : 30 + length]
    return name.endswith(b".npy") or name == DESCRIPTION.encode()


def may_be_take(path: Path) -> bool:
    """Return whether an archive is marey's, or another one with points by its names."""
    try:
        with zipfile.ZipFile(path) as archive:
            return not {DESCRIPTION, "points.npy"}.isdisjoint(archive.namelist())
    except ZIP_ERRORS:
        return True


def load(path: str | PathLike[str]) -> Any:
    """Return the content of a `.marey` or `.npz` file that marey wrote.

    Raises:
        FormatError: If the file is damaged or not marey's.
    """
    return _read_content(File(Path(path), FORMAT.name))


def read_take(file: File) -> Take:
    """Return the take of an archive; of a motion, its joints as sensors."""
    arrays, description = _read_archive(file)
    if description is None:
        return _take_of_plain_archive(file, arrays)
    thing = _decode_content(file, arrays, description)
    if isinstance(thing, Solution):
        thing = thing.take
    if isinstance(thing, Motion):
        thing = contract.motion_as_take(thing)
    return _check_noun(file, thing, Take)


def read_motion(file: File) -> Motion:
    """Return the motion of an archive."""
    thing = _read_content(file)
    if isinstance(thing, Solution):
        thing = thing.motion
    return _check_noun(file, thing, Motion)


def read_skeleton(file: File) -> Skeleton:
    """Return the skeleton of an archive, or of the motion in it."""
    thing = _read_content(file)
    if isinstance(thing, Solution | Motion):
        thing = thing.skeleton
    return _check_noun(file, thing, Skeleton)


def write_any(thing: Noun, options: WriteOptions) -> Output:
    """Return the archive of a noun."""
    options.check_world("m", "z")
    arrays: dict[str, np.ndarray] = {}
    content = {"marey": VERSION, "content": _encode(thing, arrays)}
    if options.provenance:
        content["provenance"] = options.provenance
    text = json.dumps(content, ensure_ascii=False)
    # Bytes of a file's name that are no text become escapes, which JSON reads back.
    return {"": _pack(arrays, text.encode(errors="backslashreplace"))}


def _pack(arrays: dict[str, np.ndarray], description: bytes) -> Iterable[bytes]:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(DESCRIPTION, ENTRY_DATE), description)
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", ENTRY_DATE)
            with archive.open(entry, "w", force_zip64=True) as handle:
                np.lib.format.write_array(handle, np.ascontiguousarray(array), (1, 0))
    yield buffer.getvalue()


def _read_content(file: File) -> Any:
    """Return the noun of an archive that marey wrote."""
    arrays, description = _read_archive(file)
    if description is None:
        file.fail(DESCRIPTION, "a NumPy archive without it")
    return _decode_content(file, arrays, description)


def _read_archive(file: File) -> tuple[dict[str, np.ndarray], Any]:
    """Return the arrays of an archive and its description, None if it has none."""
    try:
        with zipfile.ZipFile(file.path) as archive:
            entries = archive.infolist()
            _check_sizes(file, entries)
            contents = {entry.filename: _content(archive, entry) for entry in entries}
    except ZIP_ERRORS as error:
        file.fail("a whole zip archive", error, cause=error)
    arrays = {
        name.removesuffix(".npy"): _array(file, name, data)
        for name, data in contents.items()
        if name.endswith(".npy")
    }
    if DESCRIPTION not in contents:
        return arrays, None
    try:
        return arrays, json.loads(contents[DESCRIPTION])
    except (ValueError, RecursionError) as error:
        file.fail(f"JSON in {DESCRIPTION}", error, cause=error)


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return the bytes of an entry, at most as many as its header states."""
    with archive.open(entry) as handle:
        return handle.read(entry.file_size)


def _check_sizes(file: File, entries: list[zipfile.ZipInfo]) -> None:
    unsupported = {entry.compress_type for entry in entries} - COMPRESSIONS
    if unsupported:
        # Other methods allocate what their own headers ask for.
        file.fail("stored or deflated entries", f"method {unsupported.pop()}")
    # Reading an entry makes room for its packed size, whatever the file holds.
    packed = sum(entry.compress_size for entry in entries)
    if packed > file.size:
        file.fail(
            f"entries within the {file.size} bytes of the file", f"{packed} bytes"
        )
    total = sum(entry.file_size for entry in entries)
    allowed = MAX_GROWTH * file.size + SPARE_BYTES
    if total > allowed:
        file.fail(f"at most {allowed} bytes unpacked", f"{total} bytes")


def _array(file: File, name: str, data: bytes) -> np.ndarray:
    """Return one .npy entry, its declared size checked before anything is made."""
    handle = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(handle)
        reader = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = reader(handle, max_header_size=MAX_HEADER_BYTES)
        needed = math.prod(shape) * dtype.itemsize
        if (
            dtype.hasobject
            or needed != len(data) - handle.tell()
            or min(shape, default=0) < 0
        ):
            raise ValueError(f"{dtype} array of shape {shape} in {len(data)} bytes")
        flat = np.frombuffer(data, dtype, offset=handle.tell())
        return flat.reshape(shape, order="F" if fortran else "C").copy()
    except ARRAY_ERRORS as error:
        file.fail("a plain NumPy array", f"{name}: {error}", cause=error)


def _decode_content(file: File, arrays: dict[str, np.ndarray], description: Any) -> Any:
    try:
        if not isinstance(description, dict) or description.get("marey") != VERSION:
            raise DataError(
                DESCRIPTION, found="another layout", needed=f"version {VERSION}"
            )
        content = description.get("content")
        if not isinstance(content, dict) or "noun" not in content:
            raise DataError(DESCRIPTION, found="no noun", needed="one of marey's")
        return _decode(content, arrays)
    except (DataError, TypeError, ValueError, AttributeError) as error:
        file.fail("marey's own archive", error, cause=error)


def _check_noun(file: File, thing: Any, noun: type[N]) -> N:
    if not isinstance(thing, noun):
        needed, found = (kind.__name__.lower() for kind in (noun, type(thing)))
        file.fail(f"a {needed}", f"a {found}")
    return thing


def _take_of_plain_archive(file: File, arrays: dict[str, np.ndarray]) -> Take:
    """Return the take of an archive that other software wrote with NumPy."""
    points = arrays.get("points")
    if (
        points is None
        or points.ndim != 3
        or points.shape[2] != 3
        or points.dtype.kind != "f"
    ):
        found = ", ".join(f"{k} {v.shape}" for k, v in arrays.items()) or "no arrays"
        file.fail("points (frame, marker, 3)", found)
    facts = Facts(
        _decide(file, arrays, "unit", parse_unit, "m"),
        _decide(file, arrays, "up", str.lower, "z"),
        _decide(file, arrays, "rate", str, "100"),
    )
    labels = _labels(file, arrays, points.shape[1])
    return file.take(facts, points=points.astype(float), labels=labels)


def _labels(
    file: File, arrays: dict[str, np.ndarray], n_markers: int
) -> tuple[str, ...]:
    labels = arrays.get("labels", np.array([]))
    if labels.shape == (n_markers,):
        return tuple(str(label) for label in labels)
    file.note(
        "labels-missing",
        f"the file has {labels.size} labels for {n_markers} markers: "
        "named M000, M001, ...",
    )
    return tuple(f"M{i:03d}" for i in range(n_markers))


def _decide(
    file: File,
    arrays: dict[str, np.ndarray],
    what: Literal["unit", "up", "rate"],
    parse: Callable[[str], str | None],
    assumed: str,
) -> Fact:
    """Return a fact that a scalar entry states, if it is there and makes sense."""
    entry = arrays.get(what)
    word = parse(str(entry.item())) if entry is not None and entry.size == 1 else None
    return file.decide_fact(what, stated=word, assumed=assumed)


# --- nouns as arrays and one JSON description, and back with type checks -------------


def _encode(value: Any, arrays: dict[str, np.ndarray], name: str = "") -> Any:
    """Return a value as JSON; `arrays` collects its arrays by field path."""
    if isinstance(value, np.ndarray):
        key = name or "array"
        arrays[key] = value
        return {"array": key}
    if is_dataclass(value) and not isinstance(value, type):
        noun = next(c for c in type(value).__mro__ if c.__name__ in NOUNS)
        content = {
            f.name: _encode(getattr(value, f.name), arrays, _join(name, f.name))
            for f in fields(noun)
        }
        return {"noun": noun.__name__, "fields": content}
    if isinstance(value, Mapping):
        return {
            "map": {k: _encode(v, arrays, _join(name, k)) for k, v in value.items()}
        }
    if isinstance(value, tuple | list):
        return [_encode(v, arrays, _join(name, str(i))) for i, v in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


def _join(name: str, part: str) -> str:
    return f"{name}/{part}" if name else part


def _decode(description: Any, arrays: Mapping[str, np.ndarray], depth: int = 0) -> Any:
    """Return the value of a description.

    Raises:
        DataError: If it names an unknown noun, field or array, or a field's value has
            not the type or shape that the noun asks for.
    """
    if depth > MAX_DEPTH:
        raise DataError(
            "description", found="deep nesting", needed=f"{MAX_DEPTH} levels"
        )
    if isinstance(description, list):
        return tuple(_decode(item, arrays, depth + 1) for item in description)
    if not isinstance(description, dict):
        return description
    if "array" in description:
        return _find_array(arrays, description["array"])
    if "map" in description and isinstance(description["map"], dict):
        return {k: _decode(v, arrays, depth + 1) for k, v in description["map"].items()}
    return _decode_noun(description, arrays, depth)


def _find_array(arrays: Mapping[str, np.ndarray], key: Any) -> np.ndarray:
    if not isinstance(key, str) or key not in arrays:
        raise DataError(
            "description", found=f"array {key!r}", needed="one of the file's"
        )
    return arrays[key]


def _decode_noun(
    description: dict[str, Any], arrays: Mapping[str, np.ndarray], depth: int
) -> Any:
    name, content = description.get("noun"), description.get("fields")
    if not isinstance(name, str) or name not in NOUNS or not isinstance(content, dict):
        raise DataError(
            "description", found=repr(name), needed=f"one of {sorted(NOUNS)}"
        )
    noun = NOUNS[name]
    hints = get_type_hints(noun)
    known = {f.name for f in fields(noun)}
    # A file from before a noun had some field leaves it out.
    needed = {f.name for f in fields(noun) if f.default is f.default_factory is MISSING}
    wrong = sorted((set(content) - known) | (needed - set(content)))
    if wrong:
        raise DataError(
            f"{name}", found=f"fields {wrong} unknown or missing", needed=sorted(known)
        )
    values = {key: _decode(item, arrays, depth + 1) for key, item in content.items()}
    for key, value in values.items():
        if not _matches_type(value, hints[key]):
            raise DataError(
                f"{name}.{key}",
                found=_describe_value(value),
                needed=_describe_type(hints[key]),
            )
    return noun(**values)


def _matches_type(value: Any, hint: Any) -> bool:
    """Whether a value is what a field's annotation asks for, array shapes included."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin is Literal:
        return value in args
    if origin in (Union, types.UnionType):
        return any(_matches_type(value, arg) for arg in args)
    if origin is tuple:
        return _matches_tuple(value, args)
    if origin is not None:
        return isinstance(value, Mapping) and all(
            _matches_type(k, args[0]) and _matches_type(v, args[1])
            for k, v in value.items()
        )
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _matches_tuple(value: Any, args: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple):
        return False
    if len(args) == 2 and args[1] is Ellipsis:
        return all(_matches_type(item, args[0]) for item in value)
    return len(value) == len(args) and all(map(_matches_type, value, args))


def _describe_value(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array of shape {value.shape}"
    return f"{type(value).__name__} {str(value)[:60]!r}"


def _describe_type(hint: Any) -> str:
    return getattr(hint, "__name__", str(hint))


FORMAT = Format(
    name="npz",
    title="marey archive (NumPy)",
    suffixes=(".npz", ".marey"),
    sniff=sniff,
    read_take=read_take,
    read_motion=read_motion,
    read_skeleton=read_skeleton,
    write_take=write_any,
    write_motion=write_any,
    write_skeleton=write_any,
    write_solution=write_any,
)
