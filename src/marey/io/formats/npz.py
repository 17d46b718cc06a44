"""The archive of marey: a NumPy archive (.npz, .marey) that holds everything exactly.

Every array of a noun is one entry, in float64; `marey.json` says how they belong
together. `numpy.load` opens it too. Archives of other origin are read when they hold
`points` (frame, marker, 3) and perhaps `labels`, `rate`, `unit` and `up`.
"""

import io
import json
import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from marey.errors import DataError
from marey.io.codec import NOUNS, decode, encode
from marey.io.contract import File, Format, Output, WriteOptions
from marey.io.units_axes import parse_unit, points_from_file
from marey.motion import Motion
from marey.skeleton import Skeleton
from marey.solution import Solution
from marey.take import Take

DESCRIPTION = "marey.json"
VERSION = 1
ENTRY_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of every entry, so that the same thing gives the same bytes."""

# An archive may grow by this factor, plus the spare bytes, when unpacked.
MAX_GROWTH = 20
SPARE_BYTES = 16 * 2**20
MAX_HEADER_BYTES = 2**14
COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}

Noun = Take | Motion | Skeleton | Solution
N = TypeVar("N")


def sniff(head: bytes) -> bool:
    """Whether a zip archive begins with a NumPy array or `marey.json`."""
    if not head.startswith(b"PK\x03\x04") or len(head) < 30:
        return False
    length = int.from_bytes(head[26:28], "little")
    name = head[30 : 30 + length]
    return name.endswith(b".npy") or name == DESCRIPTION.encode()


def load(path: str | PathLike[str]) -> Any:
    """Return the content of a `.marey` or `.npz` file that marey wrote.

    Raises:
        FormatError: If the file is damaged or not marey's.
    """
    file = File(Path(path), FORMAT.name)
    return _decode_content(file, *_read_marey_archive(file))


def read_take(file: File) -> Take:
    """Return the take of an archive; of a motion, its joints as sensors."""
    arrays, description = _read_archive(file)
    if description is None:
        return _take_of_plain_archive(file, arrays)
    thing = _decode_content(file, arrays, description)
    if isinstance(thing, Solution):
        thing = thing.take
    if isinstance(thing, Motion):
        from marey.io import motion_as_take

        thing = motion_as_take(thing)
    return _check_noun(file, thing, Take)


def read_motion(file: File) -> Motion:
    """Return the motion of an archive."""
    thing = _decode_content(file, *_read_marey_archive(file))
    return _check_noun(
        file, thing.motion if isinstance(thing, Solution) else thing, Motion
    )


def read_skeleton(file: File) -> Skeleton:
    """Return the skeleton of an archive, or of the motion in it."""
    thing = _decode_content(file, *_read_marey_archive(file))
    if isinstance(thing, Solution | Motion):
        thing = thing.skeleton
    return _check_noun(file, thing, Skeleton)


def write_any(thing: Noun, options: WriteOptions) -> Output:
    """Return the archive of a noun."""
    options.check_metres_z_up()
    arrays: dict[str, np.ndarray] = {}
    content = {"marey": VERSION, "content": encode(thing, arrays)}
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


def _read_marey_archive(file: File) -> tuple[dict[str, np.ndarray], Any]:
    arrays, description = _read_archive(file)
    if description is None:
        raise file.error(None, expected=DESCRIPTION, found="a NumPy archive without it")
    return arrays, description


def _read_archive(file: File) -> tuple[dict[str, np.ndarray], Any]:
    """Return the arrays of an archive and its description, None if it has none."""
    try:
        with zipfile.ZipFile(file.path) as archive:
            entries = archive.infolist()
            _check_sizes(file, entries)
            contents = {entry.filename: _content(archive, entry) for entry in entries}
    except (
        zipfile.BadZipFile,
        EOFError,
        ValueError,
        NotImplementedError,
        OSError,
        RuntimeError,
        zlib.error,
    ) as error:
        raise file.error(
            None, expected="a whole zip archive", found=str(error)
        ) from error
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
        raise file.error(
            None, expected=f"JSON in {DESCRIPTION}", found=str(error)
        ) from error


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return an entry, never more of it than it says it has."""
    with archive.open(entry) as handle:
        return handle.read(entry.file_size)


def _check_sizes(file: File, entries: list[zipfile.ZipInfo]) -> None:
    unsupported = {entry.compress_type for entry in entries} - COMPRESSIONS
    if unsupported:
        # Other methods allocate what their own headers ask for.
        raise file.error(
            None,
            expected="stored or deflated entries",
            found=f"method {unsupported.pop()}",
        )
    # Reading an entry makes room for its packed size, whatever the file holds.
    packed = sum(entry.compress_size for entry in entries)
    if packed > file.size:
        raise file.error(
            None,
            expected=f"entries within the {file.size} bytes of the file",
            found=f"{packed} bytes",
        )
    total = sum(entry.file_size for entry in entries)
    allowed = MAX_GROWTH * file.size + SPARE_BYTES
    if total > allowed:
        raise file.error(
            None, expected=f"at most {allowed} bytes unpacked", found=f"{total} bytes"
        )


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
    except (
        ValueError,
        TypeError,
        SyntaxError,
        OverflowError,
        MemoryError,
        EOFError,
        tokenize.TokenError,
    ) as error:
        raise file.error(
            None, expected="a plain NumPy array", found=f"{name}: {error}"
        ) from error


def _decode_content(file: File, arrays: dict[str, np.ndarray], description: Any) -> Any:
    try:
        if not isinstance(description, dict) or description.get("marey") != VERSION:
            raise DataError(
                DESCRIPTION, found="another layout", needed=f"version {VERSION}"
            )
        content = description.get("content")
        if not isinstance(content, dict) or "noun" not in content:
            raise DataError(DESCRIPTION, found="no noun", needed="one of marey's")
        return decode(content, arrays)
    except (DataError, TypeError, ValueError, AttributeError) as error:
        raise file.error(
            None, expected="marey's own archive", found=str(error)
        ) from error


def _check_noun(file: File, thing: Any, noun: type[N]) -> N:
    if not isinstance(thing, noun):
        names = {kind: name for name, kind in NOUNS.items()}
        raise file.error(
            None,
            expected=f"a {names[noun].lower()}",
            found=f"a {names.get(type(thing), type(thing).__name__).lower()}",
        )
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
        raise file.error(None, expected="points (frame, marker, 3)", found=found)
    unit = file.decide_fact(
        "unit", stated=_scalar_text(arrays, "unit", parse_unit), assumed="m"
    )
    up = file.decide_fact(
        "up", stated=_scalar_text(arrays, "up", str.lower), assumed="z"
    )
    rate = file.decide_fact(
        "rate", stated=_scalar_text(arrays, "rate", str), assumed="100"
    )
    return Take(
        rate=float(rate.value),
        points=points_from_file(points.astype(float), unit.value, up.value),
        labels=_labels(file, arrays, points.shape[1]),
        source=file.source(unit=unit, up=up, rate=rate),
    )


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


def _scalar_text(arrays: dict[str, np.ndarray], name: str, parse: Any) -> str | None:
    """Return a scalar entry as a word, None when it is absent or makes no sense."""
    if name not in arrays or arrays[name].size != 1:
        return None
    word = parse(str(arrays[name].item()))
    return word if isinstance(word, str) else None


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
