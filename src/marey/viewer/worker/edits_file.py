"""The file beside a recording that keeps its edits."""

import os
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from marey.edits import Edit, read_edits, write_edits
from marey.errors import MareyError, OutputError
from marey.io.atomic import write_atomic

SUFFIX = ".edits.toml"

ELSEWHERE = "nothing was changed, and `marey view --edits FILE` keeps edits elsewhere"


def edits_beside(path: Path) -> Path:
    """Return where a recording's edits are kept: walk.c3d.edits.toml for walk.c3d.

    By its whole name, since a walk.trc beside it is another recording.
    """
    return path.with_name(path.name + SUFFIX)


def kept_edits(path: Path | None) -> tuple[Edit, ...] | None:
    """Return the edits that a file keeps, None if there is no such file.

    Raises:
        FormatError: If it is not a file of edits.
        OptionError: If an edit in it is odd.
    """
    # Unlike Path.exists, this takes a name that is too long for a file not there.
    if path is None or not os.path.exists(path):
        return None
    return read_edits(path)


def keep_edits(path: Path, before: tuple[Edit, ...], after: tuple[Edit, ...]) -> str:
    """Write edits to their file and return what there is to tell about it.

    A file that does not hold the edits as they were before, because they did not fit or
    somebody else wrote them, stays beside it under another name.

    Raises:
        OutputError: If it cannot be written; all files are as they were then.
    """
    note = ""
    try:
        with ExitStack() as otherwise:
            if _holds_others(path, before):
                aside = _free_beside(path)
                otherwise.callback(aside.unlink, missing_ok=True)
                write_atomic({aside: [path.read_bytes()]})
                note = f"{path.name} held other edits: they are in {aside.name} now"
            write_edits(after, path, overwrite=True)
            otherwise.pop_all()
    except OSError as error:
        raise OutputError(f"{error}; {ELSEWHERE}") from None
    return note


def _holds_others(path: Path, edits: tuple[Edit, ...]) -> bool:
    try:
        return kept_edits(path) not in (None, edits)
    except MareyError:
        return True


def _free_beside(path: Path) -> Path:
    """Return a name beside a file that no file has."""
    names = (path.with_name(f"{path.name}.{number}") for number in count(1))
    return next(name for name in names if not os.path.lexists(name))
