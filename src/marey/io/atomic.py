"""Atomic writing: a file is complete or absent."""

import os
import re
import socket
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from secrets import token_hex

from marey.errors import OptionError, OutputError, reason

PART_NAME = re.compile(r"\.(?P<host>.*)-(?P<process>\d+)-[0-9a-f]{16}\.part")
"""Name of a temporary file: who is writing it."""

ABANDONED_SECONDS = 86_400.0
"""Age from which a temporary file is abandoned where processes cannot be asked."""


def check_target(path: Path, *, overwrite: bool, inputs: Sequence[str] = ()) -> None:
    """Refuse an unusable output path before any work is done.

    Args:
        path: Path of the output.
        overwrite: Whether an existing file may be replaced.
        inputs: Files the output was made from; these are never replaced.

    Raises:
        OptionError: If the path is an input, or exists and `overwrite` is False.
        OutputError: If its folder does not exist or cannot be written.
    """
    folder = path.parent
    if not folder.is_dir():
        raise OutputError(
            f"{path}: the folder {folder} does not exist; create it first"
        )
    try:
        exists = _exists(path)
        _check_writable(folder)
    except (OSError, ValueError) as error:
        raise _write_error(path, error) from error
    if path.is_dir():
        raise OutputError(f"{path}: is a folder, need a file name")
    if any(_is_same_file(path, source) for source in inputs):
        raise OptionError(
            "path", found=str(path), needed="another name: this is the input file"
        )
    if exists and not overwrite:
        raise OptionError(
            "path",
            found=f"{path}, which exists",
            needed="a new name, or overwrite=True (--overwrite)",
        )


def _exists(path: Path) -> bool:
    """Whether the name is taken, also by a dangling link."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    return True


def _is_same_file(path: Path, source: str) -> bool:
    return path.exists() and os.path.exists(source) and path.samefile(source)


def _check_writable(folder: Path) -> None:
    """Raise unless a file can be made here; permissions alone do not determine it."""
    part = temporary_path(folder)
    part.open("xb").close()
    part.unlink()


def write_atomic(files: Mapping[Path, Iterable[bytes]]) -> None:
    """Write files whole or not at all: temporary files, fsync, replace.

    Files that belong together are all complete before the first is put in place. A
    file that is replaced keeps its permissions. Temporary files of processes that were
    killed are removed from the folders.

    Raises:
        OutputError: If writing fails; the previous file is untouched.
    """
    for folder in {path.parent for path in files}:
        remove_abandoned(folder.absolute())
    parts: dict[Path, Path] = {}
    try:
        for path, chunks in files.items():
            parts[path] = temporary_path(path.parent)
            _write_synced(parts[path], chunks)
            _copy_permissions(path, parts[path])
        for path, part in parts.items():
            os.replace(part, path)
    except BaseException as error:
        for part in parts.values():
            with suppress(OSError):
                part.unlink()
        if isinstance(error, OSError):
            raise _write_error(path, error) from error
        raise
    for folder in {path.parent for path in files}:
        _sync_folder(folder)


def _write_synced(path: Path, chunks: Iterable[bytes]) -> None:
    with path.open("xb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def _copy_permissions(path: Path, part: Path) -> None:
    """Give a new file the permissions of the one that it replaces."""
    with suppress(FileNotFoundError):
        os.chmod(part, stat.S_IMODE(os.stat(path).st_mode))


def temporary_path(folder: Path) -> Path:
    """Return a new name in a folder for what this process is about to finish."""
    name = f".{socket.gethostname()}-{os.getpid()}-{token_hex(8)}.part"
    return folder / name.replace(os.sep, "_")


@cache
def remove_abandoned(folder: Path) -> None:
    """Remove temporary files of killed processes, once per folder and process."""
    with suppress(OSError):
        for path in folder.glob(".*.part"):
            if is_abandoned(path):
                path.unlink()


def is_abandoned(part: Path) -> bool:
    """Return whether the process that was writing a temporary file is gone."""
    written_by = PART_NAME.fullmatch(part.name)
    if written_by is None or written_by["host"] != socket.gethostname():
        return False
    if os.name == "nt":  # where signal 0 would end the process
        return time.time() - part.stat().st_mtime > ABANDONED_SECONDS
    process = int(written_by["process"])
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return _is_zombie(process)


def _is_zombie(process: int) -> bool:
    """Return whether a process has ended and nobody has asked how, where that is known.

    In containers nobody may ever ask.
    """
    with suppress(OSError):
        status = Path(f"/proc/{process}/stat").read_text(errors="replace")
        return status.rpartition(")")[2].split()[0] == "Z"
    return False


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise errors of the file system in the block as `OutputError` about a path."""
    try:
        yield
    except OSError as error:
        raise _write_error(path, error) from error


def _write_error(path: Path, error: Exception) -> OutputError:
    return OutputError(f"{path}: not written, {reason(error)}")


def _sync_folder(folder: Path) -> None:
    """Make the new name durable where the system can (not on Windows)."""
    # The file is complete by now, so a refusal here is no failure.
    with suppress(OSError, AttributeError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
