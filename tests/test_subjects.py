"""Whose markers are solved: one of several by name, or a name for the only one."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import synth
from marey.pipeline import EditSession
from marey.pipeline.inputs import taken


@pytest.fixture(scope="module")
def walk():
    take = synth.human(seed=1).record("walk", markers="set53", seconds=1.0, rate=50.0)
    return marey.Take(rate=take.rate, points=take.points, labels=take.labels)


def together(take, *names):
    """A take of several people, each with the same labels."""
    count = len(take.labels)
    return marey.Take(
        rate=take.rate,
        points=np.concatenate([take.points + 2.0 * i for i in range(len(names))], 1),
        labels=take.labels * len(names),
        subjects=tuple(name for name in names for _ in range(count)),
    )


def asked(takes, subject):
    return marey.solve(takes, options=marey.SolveOptions(subject=subject))


def test_each_of_several_is_solved_as_if_alone(walk):
    both = together(walk, "JOE", "JIM")
    for who in ("JOE", "JIM"):
        solution = asked(both, who)
        assert [subject.name for subject in solution.subjects] == [who]
        assert set(solution.take.subjects) == {who}


@pytest.mark.parametrize(
    "opened",
    [
        asked,
        lambda take, who: EditSession(take, options=marey.SolveOptions(subject=who)),
    ],
    ids=["solve", "desk"],
)
def test_a_misspelt_name_is_refused_with_those_there_are(walk, opened):
    with pytest.raises(marey.OptionError, match=r"JON.*need one of JOE, JIM"):
        opened(together(walk, "JOE", "JIM"), "JON")


@pytest.mark.parametrize("names", [("",), ("JOE",)])
def test_the_only_one_may_be_called_anything(walk, names):
    """The file may have none, or not the one that is wanted."""
    assert asked(together(walk, *names), "S01").subjects[0].name == "S01"


def test_every_take_must_show_who_is_asked_for(walk):
    both, jim = together(walk, "JOE", "JIM"), together(walk, "JIM")
    with pytest.raises(marey.OptionError, match=r"JOE.*need one of JIM"):
        taken([both, jim], "JOE")
    assert [len(take.labels) for take in taken([both, jim], "JIM")] == [53, 53]
    # A take without names may be of anybody.
    assert taken([both, walk], "JOE")[1] is walk
    # Takes of one person each, by whatever names, are of whom they are said to be.
    joe = replace(jim, subjects=("JOE",) * 53)
    assert taken([joe, jim], "S01") == (joe, jim)


def test_markers_of_nobody_are_no_subject(walk):
    mixed = replace(walk, subjects=("JOE",) * 50 + ("",) * 3)
    assert taken(mixed, "S01") == (mixed,)
    assert len(taken(mixed, "JOE")[0].labels) == 50
