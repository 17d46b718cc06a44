"""The option `subject`: one of several by name, or a name for the only one."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import synth
from marey.editing import EditSession
from marey.pipeline.stages.takes import read_takes


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


def solve_subject(takes, subject):
    return marey.solve(takes, options=marey.SolveOptions(subject=subject))


def test_each_of_several_subjects_is_solved_alone(walk):
    both = together(walk, "JOE", "JIM")
    for who in ("JOE", "JIM"):
        solution = solve_subject(both, who)
        assert [subject.name for subject in solution.subjects] == [who]
        assert set(solution.take.subjects) == {who}


@pytest.mark.parametrize(
    "opened",
    [
        solve_subject,
        lambda take, who: EditSession(take, options=marey.SolveOptions(subject=who)),
    ],
    ids=["solve", "session"],
)
def test_a_misspelt_name_is_refused_with_the_known_names(walk, opened):
    with pytest.raises(marey.OptionError, match=r"JON.*need one of JOE, JIM"):
        opened(together(walk, "JOE", "JIM"), "JON")


@pytest.mark.parametrize("names", [("",), ("JOE",)])
def test_the_only_subject_may_have_any_name(walk, names):
    """The file may have none, or not the one that is wanted."""
    assert solve_subject(together(walk, *names), "S01").subjects[0].name == "S01"


def test_every_take_must_name_the_subject(walk):
    both, jim = together(walk, "JOE", "JIM"), together(walk, "JIM")
    with pytest.raises(marey.OptionError, match=r"JOE.*need one of JIM"):
        read_takes([both, jim], "JOE")
    assert [len(take.labels) for take in read_takes([both, jim], "JIM")] == [53, 53]
    # A take without names may be of anybody.
    assert read_takes([both, walk], "JOE")[1] is walk
    # Takes of one person each, by whatever names, are of whom they are said to be.
    joe = replace(jim, subjects=("JOE",) * 53)
    assert read_takes([joe, jim], "S01") == (joe, jim)


def test_markers_without_a_subject_are_no_subject(walk):
    mixed = replace(walk, subjects=("JOE",) * 50 + ("",) * 3)
    assert read_takes(mixed, "S01") == (mixed,)
    assert len(read_takes(mixed, "JOE")[0].labels) == 50
