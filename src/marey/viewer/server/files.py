"""Recordings in the folder that was given, and nothing outside of it."""

import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from marey.errors import MareyError
from marey.io.registry import formats

LONGEST_PATH = 1024
LONGEST_NAME = 100
"""Bytes of a dropped file's name that are kept, those at its end."""

DEEPEST = 4
"""Folders within folders that are looked into."""

MOST_FILES = 2000
"""Recordings that are listed."""


class NotThereError(MareyError):
    """There is no such recording in the folder."""


class TooLargeError(MareyError):
    """A file is larger than allowed."""


def confined(root: Path, relative: str) -> Path:
    """Return the file of a path within a folder, links followed.

    Raises:
        NotThereError: If the path leads out of the folder, or to anything but a file.
    """
    odd = "\0" in relative or "\\" in relative or ":" in relative
    parts = PurePosixPath(relative).parts if len(relative) <= LONGEST_PATH else ()
    missing = NotThereError("there is no such recording in this folder")
    if odd or not parts or relative.startswith("/") or ".." in parts:
        raise missing
    try:
        path = root.joinpath(*parts).resolve(strict=True)
        regular = stat.S_ISREG(path.stat().st_mode)
    except (OSError, RuntimeError, ValueError):
        raise missing from None
    if not regular or not path.is_relative_to(root.resolve()):
        raise missing
    return path


def listed(root: Path) -> list[dict[str, Any]]:
    """Return the recordings in a folder and those within it, by name."""
    known = [
        (suffix, found.name)
        for found in formats()
        if found.read_take or found.read_motion
        for suffix in found.suffixes
    ]
    files = []
    for path in _walk(root, root, 0):
        name = path.name.lower()
        format = next((f for suffix, f in known if name.endswith(suffix)), "")
        if format:
            relative = path.relative_to(root).as_posix()
            size = path.stat().st_size
            files.append({"path": relative, "bytes": size, "format": format})
            if len(files) == MOST_FILES:
                break
    return sorted(files, key=lambda file: file["path"].lower())


def _walk(root: Path, folder: Path, depth: int) -> Iterator[Path]:
    """Return the files of a folder that can be opened, hidden ones left out."""
    with suppress(OSError):
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if entry.name.startswith("."):
                continue
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False) and depth < DEEPEST:
                yield from _walk(root, path, depth + 1)
                continue
            with suppress(MareyError):
                confined(root, path.relative_to(root).as_posix())
                yield path


def plain_name(name: str) -> str:
    """Return a file name that no system minds, with the suffix it came with."""
    last = name.replace("\\", "/").rpartition("/")[2]
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in last)
    # Systems count bytes; a character that is cut in two is left out.
    end = safe.encode()[-LONGEST_NAME:].decode(errors="ignore")
    return end.lstrip(".") or "recording"


async def stored(chunks: AsyncIterator[bytes], path: Path, largest: int) -> None:
    """Write a file as it comes in; of one that is too large nothing is left.

    Raises:
        TooLargeError: As soon as it has more bytes than allowed.
    """
    size = 0
    try:
        with path.open("xb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > largest:
                    raise TooLargeError(f"a file of at most {largest} bytes is taken")
                file.write(chunk)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
