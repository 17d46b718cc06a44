"""Locks between runs: who works on a subject. They end with their process."""

import os
from pathlib import Path
from typing import IO

from marey.errors import OutputError, reason


class SubjectLock:
    """A lock on a file; at most one process has it.

    Args:
        path: The file of the lock, which stays.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def acquire(self) -> bool:
        """Return whether this process has the lock now, without waiting.

        Raises:
            OutputError: If the file cannot be made.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = self._path.open("ab")
        except OSError as error:
            raise OutputError(
                f"{self._path}: cannot be made, {reason(error)}"
            ) from error
        if not _try_lock(file):
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Give the lock back."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _try_lock(file: IO[bytes]) -> bool:
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
