"""Takes that are of no use beside the others are left out, and reported."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import segment, synth
from marey.io.solution_files import write_solution


@pytest.fixture(scope="module")
def walks():
    figure = synth.human(seed=3)
    return [
        figure.record(
            motion, seconds=2.0, rate=60.0, markers="sparse41", noise=5e-4, seed=k
        )
        for k, motion in enumerate(("walk", "exercise", "kick_punch"))
    ]


def rename(take, word):
    """The take with labels of no set."""
    return replace(take, labels=tuple(f"{word}{k}" for k in range(len(take.labels))))


def hide_all(take):
    return replace(take, points=np.full_like(take.points, np.nan))


def shuffle(take, rng):
    """The take with labels that its motion contradicts."""
    order = rng.permutation(len(take.labels))
    return replace(take, labels=tuple(take.labels[k] for k in order))


def unused(takes):
    """The paths or numbers of the takes that are reported."""
    return [
        k
        for k, take in enumerate(takes)
        if any(f.code == "take-unused" for f in take.source.findings)
    ]


@pytest.mark.parametrize("kind", ["anonymous", "unseen", "contradicted"])
def test_a_take_without_labels_of_use_is_left_out(walks, kind, rng):
    """The others have the bodies that they have without it, in any place."""
    of_no_use = {
        "anonymous": lambda take: rename(take, "marker"),
        "unseen": hide_all,
        "contradicted": lambda take: shuffle(take, rng),
    }[kind](walks[2])
    alone = segment(walks[:2])
    for k in range(3):
        takes = [*walks[:2]]
        takes.insert(k, of_no_use)
        found = segment(takes)
        assert unused([one.take for one in found]) == [k]
        assert not found[k].seen.any()
        others = [one for n, one in enumerate(found) if n != k]
        for one, expected in zip(others, alone, strict=True):
            assert one.names == expected.names
            np.testing.assert_array_equal(one.T_world_body, expected.T_world_body)


def test_few_labels_have_the_bodies_of_the_other_takes(walks):
    """A take of feet alone is no marker set, but these feet are known."""
    named = segment(walks[0])
    feet = [named.names.index(f"{side}Foot") for side in ("Left", "Right")]
    markers = np.flatnonzero(np.isin(named.marker_body, feet))
    found = segment([walks[0], walks[1].select(markers)])
    assert not unused([one.take for one in found])
    assert found[0].names == named.names
    assert set(np.flatnonzero(found[1].seen.any(axis=0))) == set(feet)


def test_anonymous_takes_do_without_the_one_of_other_names(walks):
    takes = [rename(walks[0], "p"), rename(walks[1], "q"), rename(walks[2], "p")]
    found = segment(takes)
    assert unused([one.take for one in found]) == [1]
    assert found[0].seen.any(axis=0).all()
    assert found[2].seen.any(axis=0).all()


def test_two_takes_of_other_names_are_an_error(walks):
    takes = [rename(walks[0], "p"), rename(walks[1], "q")]
    with pytest.raises(marey.DataError, match="with the same names in all 2 takes"):
        segment(takes)


def test_the_take_that_lacks_most_markers_is_named(walks):
    takes = [rename(walk, "p") for walk in walks]
    source = replace(takes[1].source, path="poor.c3d")
    takes[1] = replace(takes[1].select(range(9)), source=source)
    (finding,) = [f for f in segment(takes)[0].findings if f.code == "markers-uncommon"]
    assert finding.subject == "poor.c3d"
    assert "9 of 41 markers are in all takes" in finding.message
    assert "lacks p9, p10" in finding.message


@pytest.mark.slow
def test_a_solve_leaves_the_take_out_to_the_end(walks, tmp_path):
    """Its motion is not known, the skeleton is that of the other takes."""
    named = [
        replace(take, source=replace(take.source, path=f"{word}.c3d"))
        for word, take in zip(("one", "two", "other"), walks, strict=True)
    ]
    other = rename(named.pop(), "marker")
    solution = marey.solve([other, *named], whole=False)
    expected = marey.solve(walks[:2], whole=False)
    reported = [f for f in solution.report.findings if f.code == "take-unused"]
    assert [f.subject for f in reported] == ["other.c3d"]
    skeleton = solution.subjects[0].skeleton
    np.testing.assert_allclose(
        skeleton.offset, expected.subjects[0].skeleton.offset, atol=1e-6
    )
    known = [np.isfinite(m.wxyz).all() for m in solution.subjects[0].motions]
    assert known == [False, True, True]
    marey.write(solution, tmp_path / "all.html")
    written, _ = write_solution(solution, tmp_path / "out.bvh", {})
    assert [path.stem.split("_")[-1] for path in written] == ["one", "two"]
