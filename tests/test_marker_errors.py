"""Errors of markers: spikes are masked, slips on the skin are undone."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import marey
from marey import synth
from marey.cleaning import (
    CleanOptions,
    find_marker_slips,
    find_spikes,
    mask_placeholders,
    report_lost_frames,
    undo_marker_slips,
)
from marey.cleaning.outliers.runs import JUMP_RATIO, find_position_runs, may_jump
from marey.errors import OptionError
from marey.numerics import geometry

SHORT = {"markers": "set53", "seconds": 5.0, "rate": 60.0}
REAL = {"noise": 1e-3, "soft_tissue": 3e-3}


def displace(take, label, first, last, vector):
    """Return the take with a marker displaced in some frames."""
    points = take.points.copy()
    points[first : last + 1, take.labels.index(label)] += vector
    return replace(take, points=points)


@pytest.fixture(scope="module")
def walker():
    return synth.human(seed=2).record("walk", seed=2, **SHORT, **REAL)


@pytest.mark.parametrize("motion", synth.human().motions)
@pytest.mark.parametrize(
    "errors", [{}, REAL, REAL | {"gaps": 0.3}], ids=["exact", "real", "gaps"]
)
def test_fast_motion_is_no_spike(motion, errors):
    take = synth.human(seed=1).record(
        motion, seed=1, **SHORT | {"rate": 120.0}, **errors
    )
    assert find_spikes(take) == ()


@pytest.mark.parametrize("height", [1.62, 1.90])
def test_hands_at_20_m_per_s_are_no_spikes_in_a_take_of_a_second(height):
    """Most joints move only once, so that all markers of an arm seem rigid."""
    take = synth.human(height=height, seed=1).record(
        "exercise", seed=2, seconds=1.0, rate=60.0, noise=5e-4
    )
    assert find_spikes(take) == ()


def test_a_take_without_errors_is_unchanged(walker):
    assert marey.clean(walker) is walker


@pytest.mark.parametrize(
    ("gaps", "share"), [(0.0, 0.99), (0.3, 0.97)], ids=["whole", "gaps"]
)
def test_all_gross_errors_and_nothing_else_are_spikes(gaps, share):
    take = synth.human(seed=4).record(
        "kick_punch",
        seed=4,
        gross=6 / 508,
        gaps=gaps,
        **SHORT | {"rate": 120.0},
        **REAL,
    )
    log = [
        c
        for c in take.truth.changes("gross")
        if c.item == "marker" and take.seen[c.first, c.index]
    ]
    found = {
        (o.name, frame)
        for o in find_spikes(take)
        for frame in range(o.first, o.last + 1)
        if take.seen[frame, take.labels.index(o.name)]
    }
    large = {(take.labels[c.index], c.first) for c in log if c.size > 0.05}
    assert len(found & large) >= share * len(large)
    assert found <= {(take.labels[c.index], c.first) for c in log}


@pytest.mark.parametrize("frames", [(100, 100), (100, 104), (0, 1), (298, 299)])
def test_a_jump_is_a_spike_while_the_marker_is_away(walker, frames):
    corrupted = displace(walker, "LANK", *frames, [0.1, 0.0, 0.05])
    (spike,) = find_spikes(corrupted)
    assert (spike.name, spike.kind, spike.first, spike.last) == (
        "LANK",
        "spike",
        *frames,
    )
    assert spike.size == pytest.approx(np.hypot(0.1, 0.05), abs=0.02)
    clean = marey.clean(corrupted)
    masked = corrupted.seen & ~clean.seen
    assert np.flatnonzero(masked.any(axis=1)).tolist() == list(
        range(frames[0], frames[1] + 1)
    )
    np.testing.assert_array_equal(clean.points[~masked], corrupted.points[~masked])
    (finding,) = clean.source.findings
    assert (finding.code, finding.subject) == ("marker-spike", "LANK")
    assert clean.history[-1] == f"masked {masked.sum()} outlier positions of markers"


def test_the_smallest_spike_is_an_option(walker):
    corrupted = displace(walker, "LANK", 100, 100, [0.1, 0.0, 0.0])
    assert find_spikes(corrupted, CleanOptions(min_spike=0.2)) == ()
    with pytest.raises(OptionError, match="spike"):
        CleanOptions(min_spike=-1.0)


# --- slips ----------------------------------------------------------------------------


def add_slip(take, bodies, label, frame, displacement):
    """Return the take with a marker displaced on its body from a frame on."""
    marker = take.labels.index(label)
    R = bodies.T_world_body[frame:, bodies.marker_body[marker], :3, :3]
    points = take.points.copy()
    points[frame:, marker] += R @ np.array(displacement)
    return replace(take, points=points)


@pytest.fixture(scope="module")
def exact():
    take = synth.human(seed=2).record("walk", seed=2, **SHORT)
    return take, marey.segment(take, method="overlap")


@pytest.mark.parametrize("last", [50, 200], ids=["frame", "seconds"])
def test_positions_of_exactly_zero_far_from_all_others_are_gaps(walker, last):
    column = walker.labels.index("LKNE")
    points = walker.points.copy()
    points[50 : last + 1, column] = 0.0
    cleaned = marey.clean(replace(walker, points=points))
    expected = walker.points.copy()
    expected[50 : last + 1, column] = np.nan
    np.testing.assert_array_equal(cleaned.points, expected)
    (finding,) = cleaned.source.findings
    assert (finding.code, finding.subject) == ("points-zero", "LKNE")
    assert finding.frames == (50, last)


@pytest.mark.parametrize("motion", synth.human().motions)
def test_frames_that_were_lost_are_reported(motion):
    """Whoever moves on in between is elsewhere; nothing else jumps as a whole."""
    take = synth.human(seed=1).record(motion, seed=1, **SHORT, **REAL, gaps=0.1)
    assert report_lost_frames(take) is take
    points = np.concatenate([take.points[:100], take.points[190:]])
    cut = marey.Take(rate=take.rate, points=points, labels=take.labels)
    moved = np.nanmedian(np.linalg.norm(points[100] - points[99], axis=-1))
    found = report_lost_frames(cut).source.findings
    if moved > 0.1:
        (finding,) = found
        assert (finding.code, finding.frames) == ("frames-lost", (99, 100))
        assert finding.value == pytest.approx(moved)


@pytest.mark.parametrize("number", [9.999, -10.0, 9999.0])
@pytest.mark.parametrize("axis", ["z", "-y"])
def test_one_number_for_all_coordinates_far_away_is_a_gap(walker, number, axis):
    """As software writes that has a number for markers it did not see."""
    never, hidden = walker.labels.index("RKNE"), walker.labels.index("LKNE")
    points = walker.points @ geometry.R_Z_UP[axis]
    points[50:90, hidden] = points[:, never] = number
    turned = replace(walker, points=points @ geometry.R_Z_UP[axis].T)
    masked = mask_placeholders(turned)
    expected = turned.points.copy()
    expected[50:90, hidden] = expected[:, never] = np.nan
    np.testing.assert_array_equal(masked.points, expected)
    (finding,) = masked.source.findings
    assert finding.code == "points-placeholder"
    assert finding.value == 40 + walker.n_frames


def test_corners_of_a_cube_around_the_origin_are_no_placeholders():
    corners = 0.5 * np.array(list(product((-1.0, 1.0), repeat=3)))
    points = np.repeat(corners[None], 20, axis=0)
    points[:, 0] += np.linspace(0.0, 1.0, 20)[:, None]
    take = marey.Take(rate=50.0, points=points, labels=tuple("abcdefgh"))
    assert mask_placeholders(take) is take


def test_a_marker_that_moves_through_the_origin_is_kept(walker):
    column = walker.labels.index("LKNE")
    moved = replace(walker, points=walker.points - walker.points[50, column])
    assert (moved.points[50, column] == 0.0).all()
    assert marey.clean(moved) is moved


@pytest.mark.parametrize("motion", synth.human().motions)
def test_skin_motion_is_no_slip(motion):
    take = synth.human(seed=1).record(
        motion, seed=1, noise=1e-3, soft_tissue=0.01, **SHORT
    )
    assert find_marker_slips(marey.segment(take, method="overlap")) == ()


def test_a_slip_is_undone_exactly_in_exact_data(exact):
    take, bodies = exact
    corrupted = add_slip(take, bodies, "LFHD", 140, [0.012, 0.0, -0.01])
    (slip,) = find_marker_slips(replace(bodies, take=corrupted))
    assert (slip.label, slip.frame) == ("LFHD", 140)
    assert slip.size == pytest.approx(np.hypot(0.012, 0.01), rel=1e-6)
    repaired = undo_marker_slips(corrupted, [slip])
    np.testing.assert_allclose(repaired.points, take.points, atol=1e-8)
    (finding,) = repaired.source.findings
    assert (finding.code, finding.frames) == ("marker-slipped", (140, 140))


@pytest.mark.parametrize("label", ["LFHD", "CLAV", "RFWT"])
def test_a_slip_in_noise_and_skin_is_found_to_the_frame(walker, label):
    """Also without labels: the slip may divide a body until a person is recognised."""
    bodies = marey.segment(walker, method="overlap")
    corrupted = add_slip(walker, bodies, label, 150, [0.0, 0.02, 0.0])
    names = tuple(f"P{k}" for k in range(len(walker.labels)))
    for labels in (walker.labels, names):
        take = replace(corrupted, labels=labels)
        findings = marey.solve(take, calibrate=False).report.findings
        (slip,) = (f for f in findings if f.code == "marker-slipped")
        assert slip.subject == labels[walker.labels.index(label)]
        assert slip.frames[0] == 150
        assert slip.value == pytest.approx(0.02, abs=2e-3)


@pytest.mark.parametrize(
    "displacement", [(0.015, 0.0, 0.0), (0.01, -0.008, 0.012)], ids=str
)
def test_two_neighbours_determine_a_slip(walker, displacement):
    bodies = marey.segment(walker, method="overlap")
    three = [walker.labels.index(name) for name in ("LFHD", "RFHD", "LBHD")]
    head = bodies.marker_body[three[0]]
    shared, owner = bodies.shared.copy(), bodies.marker_body.copy()
    shared[:, head], owner[owner == head] = False, -1
    shared[three, head], owner[three] = True, head
    corrupted = add_slip(walker, bodies, "LFHD", 150, displacement)
    small = replace(bodies, take=corrupted, shared=shared, marker_body=owner)
    (slip,) = find_marker_slips(small)
    assert (slip.label, slip.frame, len(slip.neighbours)) == ("LFHD", 150, 2)
    error = undo_marker_slips(corrupted, [slip]).points - walker.points
    assert np.abs(error).max() < 5e-3


def test_slips_do_not_depend_on_the_world_axes(walker, rng):
    bodies = marey.segment(walker, method="overlap")
    corrupted = add_slip(walker, bodies, "CLAV", 150, [0.0, 0.02, 0.0])
    T = geometry.transform(geometry.rotation_exp(rng.normal(size=3)), np.ones(3))
    other = replace(corrupted, points=geometry.apply(T, corrupted.points))
    one, two = (
        find_marker_slips(marey.segment(t, method="overlap"))
        for t in (corrupted, other)
    )
    assert [(s.label, s.frame) for s in one] == [(s.label, s.frame) for s in two]
    np.testing.assert_allclose(one[0].displacement, two[0].displacement, atol=1e-6)


def test_solve_undoes_a_slip_and_reports_it(walker):
    bodies = marey.segment(walker, method="overlap")
    corrupted = add_slip(walker, bodies, "CLAV", 150, [0.0, 0.02, 0.0])
    options = marey.SolveOptions(segment="overlap")
    solution = marey.solve(corrupted, options=options)
    (finding,) = [f for f in solution.report.findings if f.code == "marker-slipped"]
    assert (finding.subject, finding.frames[0]) == ("CLAV", 150)
    column = corrupted.labels.index("CLAV")
    error = solution.take.points[:, column] - walker.points[:, column]
    assert np.abs(error).max() < 4e-3


def test_a_level_that_is_no_probability_is_refused(exact):
    with pytest.raises(OptionError, match="level"):
        find_marker_slips(exact[1], level=0.0)


def test_only_paths_that_may_jump_have_runs_of_outliers(rng):
    """Of smooth paths, paths with a spike and paths with gaps, none is left out."""
    points = np.cumsum(rng.normal(scale=1e-3, size=(90, 30, 3)), axis=0)
    points[40, 10:20] += 0.2
    points[60:63, 15:25] = np.nan
    limits = JUMP_RATIO, 0.02
    may = may_jump(points, *limits)
    found = [
        bool(list(find_position_runs(points[:, k], 100.0, *limits, 20)))
        for k in range(30)
    ]
    assert sum(found) >= 10
    assert not (np.array(found) & ~may).any()
    np.testing.assert_array_equal(may[:10], False)
    np.testing.assert_array_equal(may[10:25], True)
