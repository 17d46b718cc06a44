"""Checks of the options of a joint method."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from marey.errors import OptionError

Options = TypeVar("Options")


def parse_options(kind: type[Options], options: Mapping[str, Any]) -> Options:
    """Return the options of a method as its dataclass.

    Raises:
        OptionError: If a name is not a field of the dataclass or its value is out of
            range.
    """
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name, value in options.items():
        if name not in known:
            raise OptionError(name, found=value, needed=f"one of {', '.join(known)}")
    return kind(**options)


def check_choice(option: str, value: str, choices: Iterable[str]) -> None:
    """Raise an OptionError if a value is not one of the choices."""
    if value not in choices:
        raise OptionError(option, found=value, needed=f"one of {', '.join(choices)}")


def check_range(
    option: str, value: int | float, low: int | float, high: int | float, unit: str
) -> None:
    """Raise an OptionError if a value is outside the closed interval [low, high]."""
    if not low <= value <= high:
        needed = f"{low:g} to {high:g} {unit}".rstrip()
        raise OptionError(option, found=value, needed=needed)
