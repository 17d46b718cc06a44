"""The edits file beside a recording: `walk.c3d.edits.toml` for `walk.c3d`."""

import os
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from marey.edits import Edit, read_edits, write_edits
from marey.errors import MareyError, OutputError
from marey.io.atomic import write_atomic

SUFFIX = ".edits.toml"

OTHER_FILE_HINT = (
    "nothing was changed, and `marey view --edits FILE` selects another edits file"
)


def default_edits_path(path: Path) -> Path:
    """Return the path of a recording's edits file: walk.c3d.edits.toml for walk.c3d.

    The suffix `.c3d` stays, because a `walk.trc` in the same folder is another
    recording.
    """
    return path.with_name(path.name + SUFFIX)


def read_saved_edits(path: Path | None) -> tuple[Edit, ...] | None:
    """Return the edits in an edits file; None if the file does not exist.

    Raises:
        FormatError: If the file is not an edits file.
        OptionError: If an edit in the file is invalid.
    """
    # Path.exists raises an error if the name is too long; os.path.exists is False.
    if path is None or not os.path.exists(path):
        return None
    return read_edits(path)


def save_edits(path: Path, before: tuple[Edit, ...], after: tuple[Edit, ...]) -> str:
    """Write the edits file and return a note for the user, empty if all is usual.

    If the file does not contain the edits `before`, because these could not be applied
    or another program wrote the file, a backup of it is made first.

    Raises:
        OutputError: If the file cannot be written; all files are then unchanged.
    """
    note = ""
    try:
        with ExitStack() as rollback:
            if _holds_other_edits(path, before):
                backup = _unused_path(path)
                rollback.callback(backup.unlink, missing_ok=True)
                write_atomic({backup: [path.read_bytes()]})
                note = (
                    f"{path.name} contained other edits: they are in {backup.name} now"
                )
            write_edits(after, path, overwrite=True)
            rollback.pop_all()
    except OSError as error:
        raise OutputError(f"{error}; {OTHER_FILE_HINT}") from None
    return note


def _holds_other_edits(path: Path, edits: tuple[Edit, ...]) -> bool:
    try:
        return read_saved_edits(path) not in (None, edits)
    except MareyError:
        return True


def _unused_path(path: Path) -> Path:
    """Return the first of `path.1`, `path.2`, ... that does not exist."""
    candidates = (path.with_name(f"{path.name}.{number}") for number in count(1))
    return next(path for path in candidates if not os.path.lexists(path))
