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
    joe, same = read_takes([both, walk], "JOE")
    assert same.full_labels == joe.full_labels
    # Takes of one person each, by whatever names, are of whom they are said to be.
    joe = replace(jim, subjects=("JOE",) * 53)
    joe, same = read_takes([joe, jim], "S01")
    assert same.full_labels == joe.full_labels
    assert [f.code for f in same.source.findings] == ["subject-renamed"]


@pytest.mark.parametrize("subject", ["", "JOE", "S01"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_take_without_prefix_shows_the_subject_of_the_others(walk, subject, is_first):
    """Only labels that the subject has elsewhere: props stay without a subject."""
    joe = together(walk, "JOE")
    labels = (*walk.labels[:50], "stick1", "stick2", "stick3")
    takes = [replace(walk, labels=labels), joe]
    found = read_takes(takes if is_first else takes[::-1], subject)
    bare = found[0 if is_first else 1]
    assert bare.full_labels[:50] == joe.full_labels[:50]
    assert bare.full_labels[50:] == (() if subject == "JOE" else labels[50:])
    (finding,) = bare.source.findings
    assert "no subject" in finding.message


@pytest.mark.parametrize("names", [("JOE", ""), ("", "JOE"), ("JOE", "JIM")])
def test_takes_with_different_prefixes_are_solved_together(names):
    figure = synth.human(seed=1)
    takes = [
        together(figure.record("walk", markers="set53", seconds=2.0, seed=seed), name)
        for seed, name in enumerate(names)
    ]
    solution = solve_subject(takes, "S01")
    assert [subject.name for subject in solution.subjects] == ["S01"]
    assert len(solution.skeleton.marker_labels) == 53


def test_markers_without_a_subject_are_no_subject(walk):
    mixed = replace(walk, subjects=("JOE",) * 50 + ("",) * 3)
    assert read_takes(mixed, "S01") == (mixed,)
    assert len(read_takes(mixed, "JOE")[0].labels) == 50


@pytest.mark.parametrize("spell", [str.lower, "{0[0]}_{1}".format, "Bob_{0}".format])
def test_markers_may_be_spelled_otherwise_in_another_take(walk, spell):
    """Labels of the trunk have no side, and so no letter before a separator."""
    labels = tuple(
        spell(label, label[1:]) if spell != str.lower else label.lower()
        for label in walk.labels
    )
    found = read_takes([walk, replace(walk, labels=labels)], "")
    assert found[1].full_labels == found[0].full_labels == walk.full_labels
    (finding,) = found[1].source.findings
    assert (finding.code, finding.value) == ("labels-respelled", 53.0)


def test_two_markers_that_one_spelling_may_mean_stay_apart(walk):
    """Neither numbers nor labels that differ in one take are spellings of one."""
    labels = ("l_hee", "LHEE", *(f"*{i}" for i in range(51)))
    known = ("lhee", "toe", *(f"{i}" for i in range(51)))
    takes = [replace(walk, labels=names) for names in (known, labels)]
    assert read_takes(takes, "")[1].labels == labels
