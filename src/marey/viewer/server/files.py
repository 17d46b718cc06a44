"""Access to the recordings in one folder, and to no file outside of it."""

import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from marey.errors import MareyError
from marey.io.registry import formats

MAX_PATH_LENGTH = 1024
"""Longest path that a page may request, in characters. Chosen by hand."""

MAX_NAME_BYTES = 100
"""Longest name of a dropped file, in bytes; its end is kept. Chosen by hand."""

MAX_FOLDER_DEPTH = 4
"""Deepest level of subfolders that is listed. Chosen by hand."""

MAX_LISTED_FILES = 2000
"""Largest number of recordings that is listed. Chosen by hand."""


class RecordingNotFoundError(MareyError):
    """A requested recording is not in the folder."""


class RequestTooLargeError(MareyError):
    """A file or a request body is larger than allowed."""


def resolve_inside(root: Path, relative: str) -> Path:
    """Return the absolute path of a file in a folder, with symbolic links resolved.

    Raises:
        RecordingNotFoundError: If the path is outside of the folder, or is not a
            regular file.
    """
    has_unsafe_character = "\0" in relative or "\\" in relative or ":" in relative
    parts = PurePosixPath(relative).parts if len(relative) <= MAX_PATH_LENGTH else ()
    missing = RecordingNotFoundError("there is no such recording in this folder")
    if has_unsafe_character or not parts or relative.startswith("/") or ".." in parts:
        raise missing
    try:
        path = root.joinpath(*parts).resolve(strict=True)
        is_regular = stat.S_ISREG(path.stat().st_mode)
    except (OSError, RuntimeError, ValueError):
        raise missing from None
    if not is_regular or not path.is_relative_to(root.resolve()):
        raise missing
    return path


def list_recordings(root: Path) -> list[dict[str, Any]]:
    """Return path, size and format of the recordings in a folder, sorted by path."""
    format_suffixes = [
        (suffix, file_format.name)
        for file_format in formats()
        if file_format.read_take or file_format.read_motion
        for suffix in file_format.suffixes
    ]
    files = []
    for path in _walk(root, root, 0):
        name = path.name.lower()
        format = next((f for suffix, f in format_suffixes if name.endswith(suffix)), "")
        if format:
            relative = path.relative_to(root).as_posix()
            size = path.stat().st_size
            files.append({"path": relative, "bytes": size, "format": format})
            if len(files) == MAX_LISTED_FILES:
                break
    return sorted(files, key=lambda file: file["path"].lower())


def _walk(root: Path, folder: Path, depth: int) -> Iterator[Path]:
    """Yield the files of a folder that can be opened, without hidden files."""
    with suppress(OSError):
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if entry.name.startswith("."):
                continue
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False) and depth < MAX_FOLDER_DEPTH:
                yield from _walk(root, path, depth + 1)
                continue
            with suppress(MareyError):
                resolve_inside(root, path.relative_to(root).as_posix())
                yield path


def sanitize_file_name(name: str) -> str:
    """Return a name that is valid on every file system, with the same suffix."""
    last = name.replace("\\", "/").rpartition("/")[2]
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in last)
    # File systems count bytes; a character that is cut in two is dropped.
    end = safe.encode()[-MAX_NAME_BYTES:].decode(errors="ignore")
    return end.lstrip(".") or "recording"


async def store_upload(
    chunks: AsyncIterator[bytes], path: Path, max_bytes: int
) -> None:
    """Write a file while it is received; delete it if it is too large.

    Raises:
        RequestTooLargeError: As soon as more than `max_bytes` bytes are received.
    """
    size = 0
    try:
        with path.open("xb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > max_bytes:
                    raise RequestTooLargeError(
                        f"the file is larger than the limit of {max_bytes} bytes"
                    )
                file.write(chunk)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
