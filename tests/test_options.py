"""Options: ranges and choices are checked where they are declared."""

from dataclasses import dataclass
from math import inf, nan

import numpy as np
import pytest

import marey
from marey.options import Options, choice, number, options_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothing(Options):
    cutoff: float = number(6.0, above=0.0)
    tolerance: float = number(1e-3, low=0.0)
    span: float = number(1.0, above=0.0, infinite=True)
    order: int = number(4, low=1, high=8)
    edges: str = choice("keep", "drop")
    label: str = "any text"


@pytest.mark.parametrize(
    "good",
    [
        {},
        {"cutoff": 1e-9},
        {"cutoff": np.float32(2.5)},
        {"cutoff": 3},
        {"tolerance": 0.0},
        {"span": inf},
        {"order": 1},
        {"order": np.int64(8)},
        {"edges": "drop"},
    ],
)
def test_values_of_the_range_are_kept_as_they_are(good):
    options = options_from(Smoothing, good)
    assert all(getattr(options, name) == value for name, value in good.items())


@pytest.mark.parametrize(
    ("name", "value", "needed"),
    [
        ("cutoff", 0.0, "a number above 0"),
        ("cutoff", inf, "a number above 0"),
        ("cutoff", nan, "a number above 0"),
        ("cutoff", "6", "a number above 0"),
        ("cutoff", True, "a number above 0"),
        ("tolerance", -1e-12, "0 or more"),
        ("span", nan, "a number above 0"),
        ("order", 0, "a whole number from 1 to 8"),
        ("order", 4.0, "a whole number from 1 to 8"),
        ("edges", "fill", "keep or drop"),
        ("edges", 1, "keep or drop"),
    ],
)
def test_values_outside_are_refused_by_name(name, value, needed):
    with pytest.raises(marey.OptionError) as caught:
        options_from(Smoothing, {name: value})
    assert caught.value.option == name
    assert caught.value.needed == needed


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(marey.OptionError, match="one of cutoff, tolerance"):
        options_from(Smoothing, {"cut_off": 6.0})
