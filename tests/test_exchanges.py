"""Labels exchanged between takes: found, told, and traded back to the bit."""

from dataclasses import replace

import numpy as np
import pytest
from calibrated import filmed, linkage, swung

import marey
from marey import synth
from marey.cleaning import Exchange, find_exchanges, unexchanged
from marey.report import Finding
from marey.take import Take

SHORT = {"rate": 60.0, "markers": "set53"}
MOTIONS = ("walk", "kick_punch", "exercise")


def recorded(seconds=(5.0, 4.0, 3.0), skin=0.005, again=False, seed=2):
    """Takes of one person; the markers put on anew for each if so wished."""
    person = synth.human(1.7, seed=seed)
    return tuple(
        person.record(
            motion,
            seconds=length,
            noise=5e-4,
            soft_tissue=skin,
            seed=seed + number * again,
            **SHORT,
        )
        for number, (motion, length) in enumerate(zip(MOTIONS, seconds, strict=False))
    )


def exchanged(take, *ring):
    """The take with each label of a ring on the next one's marker."""
    mine = [take.full_labels.index(label) for label in ring]
    points, filled = take.points.copy(), take.filled.copy()
    points[:, mine] = take.points[:, [*mine[1:], mine[0]]]
    filled[:, mine] = take.filled[:, [*mine[1:], mine[0]]]
    return replace(take, points=points, filled=filled)


def with_take(takes, number, take):
    return (*takes[:number], take, *takes[number + 1 :])


def told(exchanges):
    return {(one.take, frozenset(one.labels), one.certain) for one in exchanges}


@pytest.fixture(scope="module")
def takes():
    return recorded()


# --- nothing is there -----------------------------------------------------------------


@pytest.mark.parametrize("skin", [0.0, 0.02])
@pytest.mark.parametrize("again", [False, True], ids=["same", "put on anew"])
@pytest.mark.parametrize("seed", range(2))
def test_labels_that_mean_the_same_in_all_takes_are_left_alone(skin, again, seed):
    clean = recorded(skin=skin, again=again, seed=seed)
    assert find_exchanges(clean) == ()
    assert all(x is y for x, y in zip(unexchanged(clean, ()), clean, strict=True))


@pytest.mark.parametrize("seed", range(2))
def test_another_person_has_no_labels_exchanged(seed):
    people = [
        synth.human(height, seed=seed + k).record("walk", seconds=3.0, seed=k, **SHORT)
        for k, height in enumerate((1.5, 1.9))
    ]
    assert find_exchanges(people) == ()


def test_one_take_tells_nothing(takes):
    assert find_exchanges(takes[:1]) == ()
    assert find_exchanges(()) == ()


def test_takes_without_labels_in_common_tell_nothing(takes):
    other = replace(takes[1], labels=tuple(f"x{k}" for k in range(53)))
    assert find_exchanges([takes[0], other]) == ()


# --- two labels -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "pair",
    [("LELB", "LELI"), ("RKNE", "RKNI"), ("LWRA", "LWRB"), ("LFHD", "RBHD")],
    ids="-".join,
)
def test_two_exchanged_labels_are_found_and_traded_back_to_the_bit(takes, pair):
    wrong = with_take(takes, 1, exchanged(takes[1], *pair))
    found = find_exchanges(wrong)
    assert told(found) == {(1, frozenset(pair), True)}
    assert found[0].others == (0, 2)
    assert found[0].after < found[0].before / 3.0
    for right, take in zip(unexchanged(wrong, found), takes, strict=True):
        np.testing.assert_array_equal(right.points, take.points)
        np.testing.assert_array_equal(right.filled, take.filled)
        assert right.labels == take.labels


def test_to_exchange_twice_is_nothing(takes):
    one = Exchange(1, ("LELB", "LELI"), (0,), False, 0.02, 0.001)
    twice = unexchanged(unexchanged(takes, [one]), [one])
    np.testing.assert_array_equal(twice[1].points, takes[1].points)


def test_what_was_traded_back_is_told(takes):
    wrong = with_take(takes, 1, exchanged(takes[1], "LELB", "LELI"))
    right = unexchanged(wrong, find_exchanges(wrong))
    (finding,) = right[1].source.findings
    assert finding.code == "labels-exchanged"
    assert finding.severity == "warning"
    assert finding.subject == "LELB-LELI"
    assert finding.frames == (0, takes[1].n_frames - 1)
    assert "in all of take 2, unlike take 1 and take 3" in finding.message
    assert right[1].history[-1] == "traded back labels 1 times"
    assert right[0] is takes[0]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_of_three_takes_the_odd_one_is_named(takes, number):
    wrong = with_take(takes, number, exchanged(takes[number], "LELB", "LELI"))
    assert told(find_exchanges(wrong)) == {
        (number, frozenset({"LELB", "LELI"}), True),
    }


def test_of_two_takes_the_shorter_is_traded_and_nobody_blamed(takes):
    pair = frozenset({"RKNE", "RKNI"})
    for number in (0, 1):
        wrong = with_take(takes[:2], number, exchanged(takes[number], *pair))
        found = find_exchanges(wrong)
        assert told(found) == {(1, pair, False)}
        right = unexchanged(wrong, found)
        assert find_exchanges(right) == ()
        assert "which do not tell who is right" in right[1].source.findings[0].message


def test_frames_in_which_labels_had_been_traded_speak_for_the_other_take(takes):
    pair = ("RKNE", "RKNI")
    long = exchanged(takes[0], *pair)
    last = int(0.45 * long.n_frames)
    swap = Finding(
        "labels-swapped", "clean", "warning", "", "RKNI-RKNE", (0, last), 0.1
    )
    long = replace(long, source=replace(long.source, findings=(swap,)))
    assert told(find_exchanges([long, takes[1]])) == {(0, frozenset(pair), False)}


def test_several_pairs_are_found_at_once(takes):
    wrong = exchanged(exchanged(takes[1], "LELB", "LELI"), "RKNE", "RKNI")
    wrong = with_take(takes, 1, exchanged(wrong, "RANK", "RHEE"))
    found = find_exchanges(wrong)
    assert len(found) == 3
    right = unexchanged(wrong, found)
    np.testing.assert_array_equal(right[1].points, takes[1].points)


def test_a_ring_of_three_is_not_taken_for_a_pair(takes):
    wrong = with_take(takes, 1, exchanged(takes[1], "RANK", "RHEE", "RTOE"))
    assert find_exchanges(wrong) == ()


# --- invariance -----------------------------------------------------------------------


def test_neither_the_order_of_takes_nor_of_markers_matters(takes, rng):
    wrong = with_take(takes, 1, exchanged(takes[1], "LELB", "LELI"))
    found = find_exchanges(wrong)
    order = [2, 0, 1]
    again = find_exchanges([wrong[k] for k in order])
    assert {(order[one.take], one.labels) for one in again} == {
        (one.take, one.labels) for one in found
    }
    shuffled = [take.select(rng.permutation(53).tolist()) for take in wrong]
    once_more = find_exchanges(shuffled)
    assert told(once_more) == told(found)
    assert once_more[0].before == pytest.approx(found[0].before)
    assert once_more[0].after == pytest.approx(found[0].after)


def test_labels_that_are_missing_or_double_in_one_take_do_no_harm(takes):
    wrong = exchanged(takes[1], "LELB", "LELI")
    some = wrong.select([k for k, x in enumerate(wrong.labels) if x != "C7"])
    double = replace(
        some, labels=tuple("RHEE" if x == "RTOE" else x for x in some.labels)
    )
    found = find_exchanges([takes[0], double, takes[2]])
    assert told(found) == {(1, frozenset({"LELB", "LELI"}), True)}


@pytest.mark.parametrize("n_frames", [0, 1, 3])
def test_takes_of_hardly_a_frame_do_no_harm(takes, n_frames):
    points, labels = takes[1].points, takes[1].labels
    short = Take(rate=60.0, points=points[:n_frames], labels=labels)
    unseen = Take(rate=60.0, points=np.full_like(points, np.nan), labels=labels)
    assert find_exchanges([takes[0], short, unseen]) == ()


# --- in a solve -----------------------------------------------------------------------


@pytest.mark.usefixtures("unchecked")
def test_a_solve_trades_back_before_it_fits(rng):
    figure = linkage(rng, markers=6)
    right = [filmed(figure, swung(rng, 3, n, 0.6), rng, noise=2e-4) for n in (90, 80)]
    wrong = [right[0], exchanged(right[1], "m7", "m10")]
    solution = marey.solve(wrong)
    assert "labels-exchanged" in [f.code for f in solution.report.findings]
    np.testing.assert_array_equal(solution.takes[1].points, right[1].points)
