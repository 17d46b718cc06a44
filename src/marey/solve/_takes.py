"""Recordings on their way into a solve."""

from collections.abc import Sequence
from os import PathLike

from marey.errors import DataError
from marey.io import read
from marey.take import Take

Recorded = str | PathLike[str] | Take
"""A recording, or the file that holds it."""


def taken(recordings: Recorded | Sequence[Recorded], subject: str) -> tuple[Take, ...]:
    """Return takes, of several subjects only the one that is asked for.

    Raises:
        DataError: If there are none.
        FormatError: If a file cannot be read.
    """
    alone = isinstance(recordings, str | PathLike | Take)
    several = (recordings,) if alone else tuple(recordings)  # type: ignore[arg-type]
    if not several:
        raise DataError("solve", found="no recordings", needed="at least one")
    takes = (r if isinstance(r, Take) else read(r) for r in several)  # type: ignore[arg-type]
    return tuple(_of(take, subject) for take in takes)


def _of(take: Take, subject: str) -> Take:
    """Return the take with one subject's markers only, if it names several."""
    if not subject or subject not in take.subjects or set(take.subjects) == {subject}:
        return take
    return take.select([i for i, who in enumerate(take.subjects) if who == subject])
