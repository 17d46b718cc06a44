"""Recordings on their way into a solve."""

from collections.abc import Sequence
from os import PathLike

from marey.errors import DataError, OptionError
from marey.io import read
from marey.take import Take

Recorded = str | PathLike[str] | Take
"""A recording, or the file that holds it."""


def taken(recordings: Recorded | Sequence[Recorded], subject: str) -> tuple[Take, ...]:
    """Return takes, of several subjects only the one that is asked for.

    Where none of them names several, it is a name for whoever was recorded.

    Raises:
        DataError: If there are none.
        OptionError: If a take names several subjects but not this one, or only another
            where some other take names this one.
        FormatError: If a file cannot be read.
    """
    alone = isinstance(recordings, str | PathLike | Take)
    several = (recordings,) if alone else tuple(recordings)  # type: ignore[arg-type]
    if not several:
        raise DataError("solve", found="no recordings", needed="at least one")
    takes = tuple(r if isinstance(r, Take) else read(r) for r in several)  # type: ignore[arg-type]
    if not subject:
        return takes
    known = any(subject in take.subjects for take in takes)
    return tuple(_of(take, subject, known=known) for take in takes)


def _of(take: Take, subject: str, *, known: bool) -> Take:
    """Return the take with one subject's markers only, if it names several.

    Args:
        take: The recording.
        subject: Who is asked for.
        known: Whether some take names them.
    """
    who = [name for name in dict.fromkeys(take.subjects) if name]
    if subject not in who:
        if len(who) > 1 or (known and who):
            raise OptionError(
                "subject",
                found=f"{subject}, whom {take.source.path or 'a take'} does not name",
                needed=f"one of {', '.join(who)}",
            )
        return take
    if set(take.subjects) == {subject}:
        return take
    return take.select([i for i, one in enumerate(take.subjects) if one == subject])
