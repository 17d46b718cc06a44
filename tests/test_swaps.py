"""Label swaps within a take: found to the frame and undone without rounding."""

from dataclasses import replace

import numpy as np
import pytest
from naive import swap_history

import marey
from marey import synth
from marey.cleaning import find_swaps, undo_swaps
from marey.numerics import geometry

SHORT = {"seconds": 5.0, "rate": 60.0}
REAL = {"noise": 1e-3, "soft_tissue": 0.01}


def swap_labels(take, cycle, first, last):
    """Return the take with each label of a cycle on the next one's marker."""
    points = take.points.copy()
    owners = [*cycle[1:], cycle[0]]
    points[first : last + 1, cycle] = take.points[first : last + 1, owners]
    return replace(take, points=points)


def columns(take, *labels):
    return [take.labels.index(label) for label in labels]


@pytest.fixture(scope="module")
def walker():
    return synth.human(seed=2).record("walk", markers="set53", seed=2, **SHORT, **REAL)


@pytest.mark.parametrize("motion", synth.human().motions)
@pytest.mark.parametrize("errors", [{}, REAL | {"gaps": 0.05}], ids=["exact", "real"])
def test_right_labels_have_no_swaps(motion, errors):
    take = synth.human(seed=1).record(
        motion, markers="set53", seed=1, **SHORT, **errors
    )
    assert find_swaps(take) == ()


@pytest.mark.parametrize(
    ("labels", "first", "last"),
    [
        (("RKNE", "RKNI"), 100, 160),
        (("RKNE", "RKNI"), 100, 100),
        (("LFHD", "C7"), 50, 120),
        (("LKNE", "RKNE"), 80, 140),
        (("LTOE", "LMT5"), 200, 299),
        (("LELB", "LELI"), 0, 90),
        (("RANK", "RHEE", "RTOE"), 120, 150),
        (("LFWT", "LBWT", "RBWT", "RFWT"), 40, 70),
    ],
    ids=["pair", "frame", "bodies", "sides", "end", "start", "three", "four"],
)
def test_a_swap_is_found_to_the_frame_and_undone_without_rounding(
    walker, labels, first, last
):
    cycle = columns(walker, *labels)
    corrupted = swap_labels(walker, cycle, first, last)
    (swap,) = find_swaps(corrupted)
    assert (set(swap.columns), swap.first, swap.last) == (set(cycle), first, last)
    assert swap.misfit_after < 0.5 * swap.misfit_before
    repaired = undo_swaps(corrupted, [swap])
    np.testing.assert_array_equal(repaired.points, walker.points)
    (finding,) = repaired.source.findings
    assert finding.code == "labels-swapped"
    assert finding.frames == (first, last)
    assert all(label in finding.message for label in labels)


def test_a_swap_that_begins_in_a_gap_of_one_label_is_undone(walker):
    a, b = columns(walker, "RKNE", "RKNI")
    points = swap_labels(walker, [a, b], 100, 170).points.copy()
    points[90:115, b] = np.nan
    corrupted = replace(walker, points=points)
    repaired = undo_swaps(corrupted, find_swaps(corrupted))
    expected = walker.points.copy()
    expected[90:100, b] = np.nan
    expected[100:115, a] = np.nan
    np.testing.assert_array_equal(repaired.points, expected)


def test_filled_flags_move_with_their_positions(walker):
    a, b = columns(walker, "RKNE", "RKNI")
    filled = np.zeros(walker.points.shape[:2], dtype=bool)
    filled[120, a] = True
    corrupted = replace(swap_labels(walker, [a, b], 100, 150), filled=filled)
    repaired = undo_swaps(corrupted, find_swaps(corrupted))
    assert np.argwhere(repaired.filled).tolist() == [[120, b]]


@pytest.mark.parametrize("change", ["order", "world", "time"])
def test_swaps_do_not_depend_on_marker_order_world_axes_or_time_direction(
    walker, change, rng
):
    pairs = [("RKNE", "RKNI", 60, 90), ("LANK", "LHEE", 150, 200)]
    corrupted = walker
    for one, other, first, last in pairs:
        corrupted = swap_labels(corrupted, columns(walker, one, other), first, last)
    plain = {(frozenset(s.labels), s.first, s.last) for s in find_swaps(corrupted)}
    assert plain == {(frozenset(p[:2]), *p[2:]) for p in pairs}
    n = corrupted.n_frames
    if change == "order":
        other = corrupted.select(rng.permutation(len(corrupted.labels)))
    elif change == "world":
        T = geometry.transform(geometry.rotation_exp(rng.normal(size=3)), np.ones(3))
        other = replace(corrupted, points=geometry.apply(T, corrupted.points))
    else:
        other = replace(corrupted, points=corrupted.points[::-1].copy())
    found = {(frozenset(s.labels), s.first, s.last) for s in find_swaps(other)}
    if change == "time":
        found = {(labels, n - 1 - last, n - 1 - first) for labels, first, last in found}
    assert found == plain


@pytest.mark.parametrize(
    "markers", ["set53", pytest.param("dense110", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("skin", "gaps"), [(0.002, 0.0), (0.02, 0.0), (0.02, 0.05)], ids=str
)
def test_nearly_all_swapped_frames_are_found_and_hardly_any_other(markers, skin, gaps):
    right = wrong = false = 0
    for seed, motion in ((3, "walk"), (4, "kick_punch")):
        take = synth.human(seed=seed).record(
            motion,
            markers=markers,
            seed=seed,
            noise=1e-3,
            soft_tissue=skin,
            gaps=gaps,
            swaps=8,
            **SHORT,
        )
        truth = swap_history(take, take.truth.changes("swaps"))
        spans = [(s.columns, s.first, s.last) for s in find_swaps(take)]
        found = np.tile(np.arange(len(take.labels)), (take.n_frames, 1))
        for cycle, first, last in spans:
            found[first : last + 1, list(cycle)] = np.roll(cycle, -1)
        swapped = (truth != np.arange(len(take.labels))) & take.seen
        called = (found != np.arange(len(take.labels))) & take.seen
        hit = swapped & (found == truth)
        right += hit.sum()
        wrong += swapped.sum()
        false += (called & ~hit).sum()
    assert right >= 0.99 * wrong
    assert false <= 0.005 * wrong


def test_a_swap_of_near_markers_for_40_percent_of_the_take_is_found():
    take = synth.human(seed=31).record(
        "exercise",
        markers="dense110",
        seconds=6.0,
        seed=31,
        noise=1e-3,
        soft_tissue=2e-3,
        swaps=8,
    )
    (longest,) = [
        c
        for c in take.truth.changes("swaps")
        if c.last - c.first + 1 > 0.35 * take.n_frames
    ]
    pair = {take.labels[longest.index], take.labels[longest.other]}
    assert pair == {"Hips03", "LeftUpperLeg01"}
    spans = [(s.first, s.last) for s in find_swaps(take) if set(s.labels) == pair]
    assert spans == [(longest.first, longest.last)]


def test_spikes_and_phantoms_do_not_hide_swaps():
    take = synth.human(seed=5).record(
        "walk",
        markers="set53",
        seed=5,
        gross=0.01,
        phantoms=3,
        swaps=3,
        **SHORT,
        **REAL,
    )
    clean = marey.clean(take)
    wanted = {
        frozenset((take.labels[c.index], take.labels[c.other]))
        for c in take.truth.changes("swaps")
    }
    found = {
        frozenset(f.subject.split("-"))
        for f in clean.source.findings
        if f.code == "labels-swapped"
    }
    assert found == wanted


def test_bodies_are_the_same_with_and_without_swaps():
    options = {"markers": "set53", "seed": 6, **SHORT, **REAL}
    figure = synth.human(seed=6)
    plain = figure.record("walk", **options)
    corrupted = marey.clean(figure.record("walk", swaps=8, **options))
    assert len(corrupted.source.findings) >= 6
    np.testing.assert_array_equal(corrupted.points, plain.points)
    expected, found = (marey.segment(t, method="overlap") for t in (plain, corrupted))
    np.testing.assert_array_equal(found.marker_body, expected.marker_body)


def test_undoing_swaps_is_an_option(walker):
    corrupted = swap_labels(walker, columns(walker, "RKNE", "RKNI"), 100, 160)
    assert marey.clean(corrupted, undo_swaps=False) is corrupted
    assert marey.clean(corrupted) is not corrupted


def test_too_few_markers_have_no_swaps():
    points = np.random.default_rng(1).normal(size=(50, 4, 3))
    take = marey.Take(rate=60.0, points=points, labels=("a", "b", "c", "d"))
    assert find_swaps(take) == ()
