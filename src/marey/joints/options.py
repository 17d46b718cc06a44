"""Checks of the options of a joint method."""

from collections.abc import Iterable

from marey.errors import OptionError


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
