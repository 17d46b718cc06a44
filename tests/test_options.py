"""Options: ranges and choices are checked where they are declared."""

from dataclasses import dataclass, fields
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest

import marey
from marey.anatomy.renaming.schemes import find_scheme
from marey.cli.commands.solve import SolveArguments
from marey.cli.solve_output import read_section
from marey.options import Options, choice, number, options_from
from marey.pipeline.posing.holds import read_holds
from marey.pipeline.posing.limits import read_limits
from marey.segmentation import read_template


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


def test_a_solve_takes_its_options_as_keywords():
    take = marey.synth.human(seed=2).record("walk", seconds=1.0)
    both = marey.SolveOptions(subject="S01", calibrate=False)
    at_once = marey.solve(take, options=both)
    by_word = marey.solve(take, subject="S01", calibrate=False)
    assert by_word.options == at_once.options
    mixed = marey.solve(take, options=both, subject="S02")
    assert mixed.options == {**by_word.options, "subject": "S02"}


def test_an_unknown_keyword_of_a_solve_is_refused_by_name():
    with pytest.raises(marey.OptionError, match=r"joint_method.*one of joints, weight"):
        marey.solve("walk.c3d", joint_method="ball")


FLAGS = {"template": ("map_",), "segment": ("bodies",), "n_bodies": ("bodies",)}
"""Flags of the command line with another name than their option."""


def test_every_option_of_a_solve_has_a_flag():
    flags = {one.name for one in fields(SolveArguments)}
    options = [one.name for one in fields(marey.SolveOptions)]
    assert [name for name in options if not flags & {*FLAGS.get(name, (name,))}] == []


FILES_OF_OPTIONS = {
    "limits": ("LowerLeg = {twist = [0, 1]}", read_limits),
    "hold": ('[[hold]]\njoint = "LeftHand"', read_holds),
    "edits": ("version = 1", marey.read_edits),
    "template": ('[bodies]\nA = ["M1"]', read_template),
    "tree": ('[tree]\nA = "B"', lambda path: read_section(Path(path), "tree")),
    "names": ('Hips = "pelvis"\nUpperLeg = "thigh_#"', find_scheme),
}
"""Text of a small file for an option, and the function that reads it."""


@pytest.mark.parametrize("option", FILES_OF_OPTIONS)
def test_a_file_of_an_option_that_is_not_there_is_refused_in_words(option, tmp_path):
    _, read = FILES_OF_OPTIONS[option]
    with pytest.raises(marey.MareyError, match="No such file") as refused:
        read(tmp_path / "absent.toml")
    assert "Errno" not in str(refused.value)


@pytest.mark.parametrize("option", FILES_OF_OPTIONS)
def test_a_file_of_an_option_may_begin_with_a_byte_order_mark(option, tmp_path):
    text, read = FILES_OF_OPTIONS[option]
    path = tmp_path / "option.toml"
    path.write_text(text, encoding="utf-8-sig")
    read(path)


def test_a_rod_needs_sensors():
    take = marey.synth.human().record("walk", seconds=0.1)
    with pytest.raises(marey.OptionError, match="rigid_pair: found 'markers only'"):
        marey.solve(take, rigid_pair=("a", "b", 1.0))
