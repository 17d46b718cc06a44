"""Writing that never leaves half a file behind."""

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from marey.errors import OptionError, OutputError


def check_target(path: Path, *, overwrite: bool, inputs: Sequence[str] = ()) -> None:
    """Refuse a path before any work is done for it.

    Args:
        path: Where the output is to stand.
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
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{path}: the folder {folder} cannot be written")
    if path.is_dir():
        raise OutputError(f"{path}: is a folder, need a file name")
    for source in inputs:
        if source and path.exists() and Path(source).exists() and path.samefile(source):
            raise OptionError(
                "path", found=str(path), needed="another name: this is the input file"
            )
    if path.exists() and not overwrite:
        raise OptionError(
            "path",
            found=f"{path}, which exists",
            needed="a new name, or overwrite=True",
        )


def write_atomic(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file whole or not at all: temporary file, fsync, replace.

    Raises:
        OutputError: If writing fails; what stood at `path` before is untouched.
    """
    handle, name = _temporary(path)
    try:
        with os.fdopen(handle, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OutputError(f"{path}: not written, {error}") from error
        raise
    _sync_folder(path.parent)


def _temporary(path: Path) -> tuple[int, str]:
    try:
        return tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    except OSError as error:
        raise OutputError(f"{path}: not written, {error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make the new name durable where the system can (not on Windows)."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
