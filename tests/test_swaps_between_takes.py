"""Label swaps between takes: found, reported and undone without rounding."""

from dataclasses import replace

import numpy as np
import pytest
from calibrated import linkage, random_rotations, record_take

import marey
from marey import synth
from marey.cleaning import (
    SwapBetweenTakes,
    find_swaps_between_takes,
    undo_swaps_between_takes,
)
from marey.numerics import geometry
from marey.report import Finding
from marey.take import Take

SHORT = {"rate": 60.0, "markers": "set53"}
MOTIONS = ("walk", "kick_punch", "exercise")


def record_takes(seconds=(5.0, 4.0, 3.0), skin=0.005, reattached=False, seed=2):
    """Return takes of one person, with markers attached again for each if asked."""
    person = synth.human(1.7, seed=seed)
    return tuple(
        person.record(
            motion,
            seconds=length,
            noise=5e-4,
            soft_tissue=skin,
            seed=seed + number * reattached,
            **SHORT,
        )
        for number, (motion, length) in enumerate(zip(MOTIONS, seconds, strict=False))
    )


def swap_labels(take, *cycle):
    """Return the take with each label of a cycle on the next one's marker."""
    columns = [take.full_labels.index(label) for label in cycle]
    owners = [*columns[1:], columns[0]]
    points, filled = take.points.copy(), take.filled.copy()
    points[:, columns] = take.points[:, owners]
    filled[:, columns] = take.filled[:, owners]
    return replace(take, points=points, filled=filled)


def replace_take(takes, number, take):
    return (*takes[:number], take, *takes[number + 1 :])


def summary(swaps):
    """Return take, labels and certainty of swaps, in any order."""
    return {(swap.take, frozenset(swap.labels), swap.certain) for swap in swaps}


@pytest.fixture(scope="module")
def takes():
    return record_takes()


# --- no swap --------------------------------------------------------------------------


@pytest.mark.parametrize("skin", [0.0, 0.02])
@pytest.mark.parametrize("reattached", [False, True], ids=["same", "reattached"])
@pytest.mark.parametrize("seed", range(2))
def test_equal_labels_in_all_takes_are_unchanged(skin, reattached, seed):
    clean = record_takes(skin=skin, reattached=reattached, seed=seed)
    assert find_swaps_between_takes(clean) == ()
    assert all(
        x is y for x, y in zip(undo_swaps_between_takes(clean, ()), clean, strict=True)
    )


@pytest.mark.parametrize("seed", range(2))
def test_another_person_is_no_swap(seed):
    people = [
        synth.human(height, seed=seed + k).record("walk", seconds=3.0, seed=k, **SHORT)
        for k, height in enumerate((1.5, 1.9))
    ]
    assert find_swaps_between_takes(people) == ()


def test_one_take_alone_has_no_swaps(takes):
    assert find_swaps_between_takes(takes[:1]) == ()
    assert find_swaps_between_takes(()) == ()


def test_takes_without_common_labels_have_no_swaps(takes):
    other = replace(takes[1], labels=tuple(f"x{k}" for k in range(53)))
    assert find_swaps_between_takes([takes[0], other]) == ()


# --- two labels -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "pair",
    [("LELB", "LELI"), ("RKNE", "RKNI"), ("LWRA", "LWRB"), ("LFHD", "RBHD")],
    ids="-".join,
)
def test_two_swapped_labels_are_found_and_restored_without_rounding(takes, pair):
    wrong = replace_take(takes, 1, swap_labels(takes[1], *pair))
    found = find_swaps_between_takes(wrong)
    assert summary(found) == {(1, frozenset(pair), True)}
    assert found[0].others == (0, 2)
    assert found[0].misfit_after < found[0].misfit_before / 3.0
    for right, take in zip(undo_swaps_between_takes(wrong, found), takes, strict=True):
        np.testing.assert_array_equal(right.points, take.points)
        np.testing.assert_array_equal(right.filled, take.filled)
        assert right.labels == take.labels


def test_a_swap_undone_twice_changes_nothing(takes):
    one = SwapBetweenTakes(1, ("LELB", "LELI"), (0,), False, 0.02, 0.001)
    twice = undo_swaps_between_takes(undo_swaps_between_takes(takes, [one]), [one])
    np.testing.assert_array_equal(twice[1].points, takes[1].points)


def test_undone_swaps_are_reported(takes):
    wrong = replace_take(takes, 1, swap_labels(takes[1], "LELB", "LELI"))
    right = undo_swaps_between_takes(wrong, find_swaps_between_takes(wrong))
    (finding,) = right[1].source.findings
    assert finding.code == "labels-swapped-between-takes"
    assert finding.severity == "warning"
    assert finding.subject == "LELB-LELI"
    assert finding.frames == (0, takes[1].n_frames - 1)
    assert "swapped in take 2, compared with take 1 and take 3" in finding.message
    assert right[1].history[-1] == "undid 1 label swap"
    assert right[0] is takes[0]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_of_three_takes_the_one_in_the_minority_is_wrong(takes, number):
    wrong = replace_take(takes, number, swap_labels(takes[number], "LELB", "LELI"))
    assert summary(find_swaps_between_takes(wrong)) == {
        (number, frozenset({"LELB", "LELI"}), True),
    }


def test_of_two_takes_the_shorter_is_changed_and_the_swap_uncertain(takes):
    pair = frozenset({"RKNE", "RKNI"})
    for number in (0, 1):
        wrong = replace_take(takes[:2], number, swap_labels(takes[number], *pair))
        found = find_swaps_between_takes(wrong)
        assert summary(found) == {(1, pair, False)}
        right = undo_swaps_between_takes(wrong, found)
        assert find_swaps_between_takes(right) == ()
        assert "unknown which is right" in right[1].source.findings[0].message


def test_frames_with_swaps_within_a_take_count_for_the_other_take(takes):
    pair = ("RKNE", "RKNI")
    long = swap_labels(takes[0], *pair)
    last = int(0.45 * long.n_frames)
    swap = Finding(
        "labels-swapped", "clean", "warning", "", "RKNI-RKNE", (0, last), 0.1
    )
    long = replace(long, source=replace(long.source, findings=(swap,)))
    assert summary(find_swaps_between_takes([long, takes[1]])) == {
        (0, frozenset(pair), False)
    }


def test_several_swaps_are_found_at_once(takes):
    wrong = swap_labels(swap_labels(takes[1], "LELB", "LELI"), "RKNE", "RKNI")
    wrong = replace_take(takes, 1, swap_labels(wrong, "RANK", "RHEE"))
    found = find_swaps_between_takes(wrong)
    assert len(found) == 3
    right = undo_swaps_between_takes(wrong, found)
    np.testing.assert_array_equal(right[1].points, takes[1].points)


def test_a_cycle_of_three_is_no_pair(takes):
    wrong = replace_take(takes, 1, swap_labels(takes[1], "RANK", "RHEE", "RTOE"))
    assert find_swaps_between_takes(wrong) == ()


# --- two pairs of a plate -------------------------------------------------------------

CORNERS = ("P1", "P2", "P3", "P4")


def attach_plate(take, rng, skin=0.0):
    """Return the take with a nearly rectangular plate of four markers on the thigh.

    The plate shifts as a whole, as it does on skin.
    """
    joint = take.truth.motion.skeleton.index("LeftUpperLeg")
    T = take.truth.motion.T_world_joint()[:, joint, None]
    corners = [[20, 70, -140], [22, 66, -270], [-45, 72, -138], [-50, 64, -272]]
    shift = skin * np.sin(np.linspace(0.0, 9.0, take.n_frames))[:, None, None]
    plate = geometry.apply(T, 1e-3 * np.array(corners) + rng.normal(size=3) * shift)
    plate = plate + rng.normal(scale=5e-4, size=plate.shape)
    points = np.concatenate([take.points, plate], axis=1)
    return Take(rate=take.rate, points=points, labels=(*take.labels, *CORNERS))


@pytest.fixture(scope="module", params=[(0.005, False), (0.01, True)])
def plates(request):
    """Takes with a plate on skin, with the other markers attached again or not."""
    skin, reattached = request.param
    rng = np.random.default_rng(5)
    takes = record_takes((4.0, 3.0), skin=skin, reattached=reattached)
    return [attach_plate(take, rng, skin) for take in takes]


def test_two_exchanged_pairs_of_a_plate_are_found_and_undone(plates):
    """The plate has nearly the same shape either way, so no pair shows alone."""
    wrong = swap_labels(swap_labels(plates[1], "P1", "P3"), "P2", "P4")
    found = find_swaps_between_takes([plates[0], wrong])
    pairs = {(1, frozenset(pair), False) for pair in (("P1", "P3"), ("P2", "P4"))}
    assert summary(found) == pairs
    right = undo_swaps_between_takes([plates[0], wrong], found)
    np.testing.assert_array_equal(right[1].points, plates[1].points)
    assert find_swaps_between_takes(right) == ()


def test_a_plate_with_right_labels_is_unchanged(plates):
    assert find_swaps_between_takes(plates) == ()


def test_one_exchanged_pair_of_a_plate_is_found_alone(plates):
    wrong = swap_labels(plates[1], "P1", "P3")
    found = find_swaps_between_takes([plates[0], wrong])
    assert summary(found) == {(1, frozenset({"P1", "P3"}), False)}


# --- invariance -----------------------------------------------------------------------


def test_the_order_of_takes_and_markers_does_not_matter(takes, rng):
    wrong = replace_take(takes, 1, swap_labels(takes[1], "LELB", "LELI"))
    found = find_swaps_between_takes(wrong)
    order = [2, 0, 1]
    again = find_swaps_between_takes([wrong[k] for k in order])
    assert {(order[swap.take], swap.labels) for swap in again} == {
        (swap.take, swap.labels) for swap in found
    }
    shuffled = [take.select(rng.permutation(53).tolist()) for take in wrong]
    once_more = find_swaps_between_takes(shuffled)
    assert summary(once_more) == summary(found)
    assert once_more[0].misfit_before == pytest.approx(found[0].misfit_before)
    assert once_more[0].misfit_after == pytest.approx(found[0].misfit_after)


def test_missing_and_repeated_labels_do_not_matter(takes):
    wrong = swap_labels(takes[1], "LELB", "LELI")
    some = wrong.select([k for k, x in enumerate(wrong.labels) if x != "C7"])
    double = replace(
        some, labels=tuple("RHEE" if x == "RTOE" else x for x in some.labels)
    )
    found = find_swaps_between_takes([takes[0], double, takes[2]])
    assert summary(found) == {(1, frozenset({"LELB", "LELI"}), True)}


@pytest.mark.parametrize("n_frames", [0, 1, 3])
def test_takes_of_few_frames_have_no_swaps(takes, n_frames):
    points, labels = takes[1].points, takes[1].labels
    short = Take(rate=60.0, points=points[:n_frames], labels=labels)
    unseen = Take(rate=60.0, points=np.full_like(points, np.nan), labels=labels)
    assert find_swaps_between_takes([takes[0], short, unseen]) == ()


# --- in a solve -----------------------------------------------------------------------


@pytest.mark.usefixtures("unchecked")
def test_solve_undoes_swaps_between_takes(rng):
    figure = linkage(rng, markers=6)
    right = [
        record_take(figure, random_rotations(rng, 3, n, 0.6), rng, noise=2e-4)
        for n in (90, 80)
    ]
    wrong = [right[0], swap_labels(right[1], "m7", "m10")]
    solution = marey.solve(wrong)
    assert "labels-swapped-between-takes" in [f.code for f in solution.report.findings]
    np.testing.assert_array_equal(solution.takes[1].points, right[1].points)


@pytest.mark.usefixtures("unchecked")
def test_a_bone_with_unknown_labels_does_not_limit_the_joint_below_it(takes):
    """A cycle of three is not found, and turns the thigh about its bone."""
    wrong = swap_labels(takes[2], "LTHI", "LKNE", "LTHF")
    found = {f.code: f for f in marey.solve([takes[1], wrong]).report.findings}
    assert "marker-noisy" in found
    assert "LeftLowerLeg" in found["limit-left-out"].message
    right = marey.solve([takes[1], takes[2]]).report.findings
    assert not {"marker-noisy", "limit-left-out"} & {f.code for f in right}
