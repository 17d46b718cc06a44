"""Every error marey raises on purpose.

* MareyError
  - FormatError: a file is not what its format promises
  - DataError (also ValueError): the recording cannot support what was asked
  - OptionError (also ValueError): an argument is out of range or contradicts another
  - OutputError (also OSError): a result could not be written
  - MissingExtraError (also ImportError): an optional package is not installed
  - StreamError: a live stream is silent, or a packet is not what its protocol promises
"""

from collections.abc import Collection
from importlib import import_module
from os import PathLike, fspath
from typing import Any, Literal

LONGEST_PART = 500
"""Characters of a message that one value, such as a list of names, may take. Higher
makes longer messages. Chosen by hand."""

LONGEST_MESSAGE = 2000
"""Characters that a message may have. Higher makes longer messages. Chosen by hand."""


class MareyError(Exception):
    """Base of all errors raised on purpose; catch this one in applications.

    Whatever the message quotes, it is safe to print. All errors can be pickled, so
    they cross from a worker process whole.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message, limit=LONGEST_MESSAGE))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_error, (type(self), self.args, self.__dict__)


def _restore_error(
    kind: type[MareyError], args: tuple[Any, ...], state: Any
) -> MareyError:
    """Return a pickled error without asking its constructor, whose words differ."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class FormatError(MareyError):
    """A file is not what its format promises.

    Attributes:
        path: The file.
        format: Name of the format it was read as, or "" when none fits.
        offset: Byte or line where reading stopped; None when the file as a whole is
            meant. Lines count from 1, bytes from 0.
        counted: What `offset` counts, "byte" or "line".
        expected: What the format asks for at that place.
        found: What stands there.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        offset: int | None = None,
        *,
        expected: str,
        found: str,
        format: str = "",
        counted: Literal["byte", "line"] = "byte",
    ) -> None:
        where = "" if offset is None else f", {counted} {offset}"
        kind = f" ({format})" if format else ""
        super().__init__(
            f"{_part(fspath(path))}{kind}{where}: "
            f"expected {_part(expected)}, found {_part(found)}"
        )
        self.path = fspath(path)
        self.format = format
        self.offset = offset
        self.counted = counted
        self.expected = expected
        self.found = found


class DataError(MareyError, ValueError):
    """The recording cannot support the request.

    Attributes:
        found: What the recording holds.
        needed: What the operation needs.
    """

    def __init__(self, what: str, *, found: object, needed: object) -> None:
        super().__init__(f"{_part(what)}: found {_part(found)}, need {_part(needed)}")
        self.found = found
        self.needed = needed


class OptionError(MareyError, ValueError):
    """An argument is out of range or contradicts another.

    Attributes:
        option: Name of the argument.
        found: What was given.
        needed: What is allowed.
    """

    def __init__(self, option: str, *, found: object, needed: object) -> None:
        super().__init__(f"{option}: found {_part(repr(found))}, need {_part(needed)}")
        self.option = option
        self.found = found
        self.needed = needed


def check_choice(option: str, given: str, known: Collection[str]) -> None:
    """Raise an `OptionError` if what was given is none of the known names."""
    if given not in known:
        raise OptionError(option, found=given, needed=f"one of {', '.join(known)}")


class OutputError(MareyError, OSError):
    """A result could not be written; what stood at its place before is untouched."""


class MissingExtraError(MareyError, ImportError):
    """An optional package is not installed; the message holds the pip line."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs {package}, which is not installed: "
            f'pip install "marey[{extra}]"'
        )
        self.package = package
        self.extra = extra


class StreamError(MareyError):
    """A live stream is silent, or a packet of it is not what its protocol promises.

    Attributes:
        stream: Address of the stream, or name of its protocol.
        offset: Byte of the packet where reading stopped, from 0; None when the packet
            or the stream as a whole is meant.
        expected: What the protocol asks for.
        found: What came.
    """

    def __init__(
        self, stream: str, offset: int | None = None, *, expected: str, found: str
    ) -> None:
        where = "" if offset is None else f", byte {offset}"
        super().__init__(
            f"{_part(stream)}{where}: expected {_part(expected)}, found {_part(found)}"
        )
        self.stream = stream
        self.offset = offset
        self.expected = expected
        self.found = found


def import_extra(module: str, extra: str, package: str = "") -> Any:
    """Return a module of an optional package.

    Args:
        module: The module, such as "pyarrow.parquet".
        extra: The extra of marey that installs it.
        package: Name of the package to install, if it is not that of the module.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(package or module.partition(".")[0], extra) from error


def reason(error: Exception) -> str:
    """Return why a file could not be read, without the number and path of the system.

    For example "No such file or directory".
    """
    return str(getattr(error, "strerror", None) or error)


def printable(text: str, limit: int = LONGEST_PART) -> str:
    """Return text that is safe in a terminal: control characters become escapes.

    Args:
        text: Anything read from a file, file names included.
        limit: Longest result in characters; what is cut off ends in "…".
    """
    safe = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in text[: limit + 1]
    )
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


def _part(value: object) -> str:
    return printable(str(value), limit=LONGEST_PART)
