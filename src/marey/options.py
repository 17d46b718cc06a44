"""Options of the stages: what a field may hold stands beside it and is checked once.

@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothOptions(Options):
    cutoff: float = number(6.0, above=0.0)
    order: int = number(4, low=1, high=8)
    edges: str = choice("keep", "drop")
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.resources import files
from math import inf, isfinite
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeVar

from marey.errors import OptionError, reason

Kind = TypeVar("Kind")
Number = float | int

ALLOWED = "allowed"
"""Key of a field's metadata under which its range or its choices stand."""


@dataclass(frozen=True, slots=True)
class Range:
    """An interval of numbers."""

    low: Number
    high: Number
    above: bool
    """Whether `low` itself is excluded."""

    infinite: bool
    """Whether infinity is allowed."""

    whole: bool
    """Whether only whole numbers are allowed."""

    def allows(self, value: object) -> bool:
        """Return whether a value is a number of the interval."""
        if isinstance(value, bool) or not isinstance(
            value, Integral if self.whole else Real
        ):
            return False
        number = float(value)
        inside = self.low < number if self.above else self.low <= number
        return inside and number <= self.high and (self.infinite or isfinite(number))

    def __str__(self) -> str:
        noun = "a whole number" if self.whole else "a number"
        if self.high < inf:
            return f"{noun} from {self.low:g} to {self.high:g}"
        if self.low == -inf:
            return noun
        return f"{noun} above {self.low:g}" if self.above else f"{self.low:g} or more"


@dataclass(frozen=True, slots=True)
class Choices:
    """A list of words."""

    words: tuple[str, ...]

    def allows(self, value: object) -> bool:
        """Return whether a value is one of the words."""
        return isinstance(value, str) and value in self.words

    def __str__(self) -> str:
        return " or ".join(self.words)


def number(
    default: Number | None,
    *,
    low: Number = -inf,
    high: Number = inf,
    above: Number | None = None,
    infinite: bool = False,
) -> Any:
    """Return a field that holds a number; a whole one if the default is an int.

    Args:
        default: The value when the option is left out; None is then allowed as well.
        low: The smallest value allowed.
        high: The largest value allowed.
        above: The value that must be exceeded, instead of `low`.
        infinite: Whether infinity is allowed.
    """
    whole = isinstance(default, int)
    bound = low if above is None else above
    allowed = Range(bound, high, above is not None, infinite, whole)
    return field(default=default, metadata={ALLOWED: allowed})


def choice(default: str, *others: str) -> Any:
    """Return a field that holds one of several words, the first being the default."""
    return field(default=default, metadata={ALLOWED: Choices((default, *others))})


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Base of all options: every field is checked when an object is made.

    Raises:
        OptionError: If a field is not a number of its range or not one of its choices.
    """

    def __post_init__(self) -> None:
        for one in fields(self):
            allowed, value = one.metadata.get(ALLOWED), getattr(self, one.name)
            is_left_out = value is None and one.default is None
            if allowed is not None and not (is_left_out or allowed.allows(value)):
                self.check(one.name, str(allowed), good=False)

    def check(self, name: str, needed: str, *, good: bool) -> None:
        """Raise an error about an option unless it is good.

        Raises:
            OptionError: If it is not.
        """
        if not good:
            raise OptionError(name, found=getattr(self, name), needed=needed)


def options_from(kind: type[Kind], given: Mapping[str, Any]) -> Kind:
    """Return options of a kind from keyword arguments.

    Raises:
        OptionError: If a name is not a field of the kind, or a value is not allowed.
    """
    _check_names(kind, given)
    return kind(**given)


def replace_options(options: Kind, given: Mapping[str, Any]) -> Kind:
    """Return options with some of their fields replaced by keyword arguments.

    Raises:
        OptionError: If a name is not a field of the options, or a value is not allowed.
    """
    _check_names(type(options), given)
    return replace(options, **given)  # type: ignore[type-var]


def _check_names(kind: type[Kind], given: Mapping[str, Any]) -> None:
    known = [one.name for one in fields(kind)]  # type: ignore[arg-type]
    for name, value in given.items():
        if name not in known:
            needed = f"one of {', '.join(known)}" if known else "no option at all"
            raise OptionError(name, found=value, needed=needed)


def read_toml(option: str, path: str | PathLike[str]) -> Mapping[str, Any]:
    """Return the content of a small TOML file that an option names.

    Raises:
        OptionError: If the file cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        found = f"{fspath(path)} ({reason(error)})"
        raise OptionError(option, found=found, needed="a TOML file") from error


@cache
def read_package_table(package: str, name: str) -> Mapping[str, Any]:
    """Return the content of a TOML file that stands in a package of marey."""
    return tomllib.loads((files(package) / name).read_text(encoding="utf-8"))
