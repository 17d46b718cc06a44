"""Markers in error: spikes are blanked, slips on the skin are put back."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import synth
from marey.cleaning import CleanOptions, find_marker_slips, find_spikes, put_back
from marey.errors import OptionError
from marey.numerics import geometry

SHORT = {"markers": "set53", "seconds": 5.0, "rate": 60.0}
REAL = {"noise": 1e-3, "soft_tissue": 3e-3}


def moved(take, label, first, last, way):
    points = take.points.copy()
    points[first : last + 1, take.labels.index(label)] += way
    return replace(take, points=points)


@pytest.fixture(scope="module")
def walker():
    return synth.human(seed=2).record("walk", seed=2, **SHORT, **REAL)


@pytest.mark.parametrize("motion", synth.human().motions)
@pytest.mark.parametrize(
    "spoilt", [{}, REAL, REAL | {"gaps": 0.3}], ids=["exact", "real", "gaps"]
)
def test_fast_motion_is_no_spike(motion, spoilt):
    take = synth.human(seed=1).record(
        motion, seed=1, **SHORT | {"rate": 120.0}, **spoilt
    )
    assert find_spikes(take) == ()


def test_nothing_is_done_to_a_take_without_errors(walker):
    assert marey.clean(walker) is walker


@pytest.mark.parametrize(
    ("gaps", "share"), [(0.0, 0.99), (0.3, 0.97)], ids=["whole", "gaps"]
)
def test_gross_errors_are_found_and_nothing_else(gaps, share):
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
def test_a_marker_that_jumps_is_blanked_while_it_is_away(walker, frames):
    spoilt = moved(walker, "LANK", *frames, [0.1, 0.0, 0.05])
    (spike,) = find_spikes(spoilt)
    assert (spike.name, spike.kind, spike.first, spike.last) == (
        "LANK",
        "spike",
        *frames,
    )
    assert spike.size == pytest.approx(np.hypot(0.1, 0.05), abs=0.02)
    clean = marey.clean(spoilt)
    lost = spoilt.seen & ~clean.seen
    assert np.flatnonzero(lost.any(axis=1)).tolist() == list(
        range(frames[0], frames[1] + 1)
    )
    np.testing.assert_array_equal(clean.points[~lost], spoilt.points[~lost])
    (finding,) = clean.source.findings
    assert (finding.code, finding.subject) == ("marker-spike", "LANK")
    assert clean.history[-1] == f"blanked {lost.sum()} positions of markers in error"


def test_how_large_a_spike_must_be_can_be_said(walker):
    spoilt = moved(walker, "LANK", 100, 100, [0.1, 0.0, 0.0])
    assert find_spikes(spoilt, CleanOptions(spike=0.2)) == ()
    with pytest.raises(OptionError, match="spike"):
        CleanOptions(spike=-1.0)


# --- slips ----------------------------------------------------------------------------


def slipped(take, bodies, label, frame, shift):
    """The take with one marker moved on its body from a frame on."""
    marker = take.labels.index(label)
    R = bodies.T_world_body[frame:, bodies.marker_body[marker], :3, :3]
    points = take.points.copy()
    points[frame:, marker] += R @ np.array(shift)
    return replace(take, points=points)


@pytest.fixture(scope="module")
def exact():
    take = synth.human(seed=2).record("walk", seed=2, **SHORT)
    return take, marey.segment(take, method="overlap")


@pytest.mark.parametrize("motion", synth.human().motions)
def test_skin_is_no_slip(motion):
    take = synth.human(seed=1).record(
        motion, seed=1, noise=1e-3, soft_tissue=0.01, **SHORT
    )
    assert find_marker_slips(marey.segment(take, method="overlap")) == ()


def test_a_slip_is_put_back_exactly_where_all_is_exact(exact):
    take, bodies = exact
    spoilt = slipped(take, bodies, "LFHD", 140, [0.012, 0.0, -0.01])
    (slip,) = find_marker_slips(replace(bodies, take=spoilt))
    assert (slip.label, slip.frame) == ("LFHD", 140)
    assert slip.size == pytest.approx(np.hypot(0.012, 0.01), rel=1e-6)
    back = put_back(spoilt, [slip])
    np.testing.assert_allclose(back.points, take.points, atol=1e-8)
    (finding,) = back.source.findings
    assert (finding.code, finding.frames) == ("marker-slipped", (140, 140))


@pytest.mark.parametrize("label", ["LFHD", "CLAV", "RFWT"])
def test_a_slip_in_noise_and_skin_is_found_to_the_frame(walker, label):
    bodies = marey.segment(walker, method="overlap")
    spoilt = slipped(walker, bodies, label, 150, [0.0, 0.02, 0.0])
    (slip,) = find_marker_slips(marey.segment(spoilt, method="overlap"))
    assert (slip.label, slip.frame) == (label, 150)
    assert slip.size == pytest.approx(0.02, abs=2e-3)


@pytest.mark.parametrize("shift", [(0.015, 0.0, 0.0), (0.01, -0.008, 0.012)], ids=str)
def test_two_mates_are_enough_to_put_a_slip_back(walker, shift):
    bodies = marey.segment(walker, method="overlap")
    three = [walker.labels.index(name) for name in ("LFHD", "RFHD", "LBHD")]
    head = bodies.marker_body[three[0]]
    shared, owner = bodies.shared.copy(), bodies.marker_body.copy()
    shared[:, head], owner[owner == head] = False, -1
    shared[three, head], owner[three] = True, head
    spoilt = slipped(walker, bodies, "LFHD", 150, shift)
    small = replace(bodies, take=spoilt, shared=shared, marker_body=owner)
    (slip,) = find_marker_slips(small)
    assert (slip.label, slip.frame, len(slip.mates)) == ("LFHD", 150, 2)
    off = put_back(spoilt, [slip]).points - walker.points
    assert np.abs(off).max() < 5e-3


def test_the_world_makes_no_difference_to_a_slip(walker, rng):
    bodies = marey.segment(walker, method="overlap")
    spoilt = slipped(walker, bodies, "CLAV", 150, [0.0, 0.02, 0.0])
    T = geometry.transform(geometry.rotation_exp(rng.normal(size=3)), np.ones(3))
    other = replace(spoilt, points=geometry.apply(T, spoilt.points))
    one, two = (
        find_marker_slips(marey.segment(t, method="overlap")) for t in (spoilt, other)
    )
    assert [(s.label, s.frame) for s in one] == [(s.label, s.frame) for s in two]
    np.testing.assert_allclose(one[0].shift, two[0].shift, atol=1e-6)


def test_solve_puts_a_slip_back_and_tells_of_it(walker):
    bodies = marey.segment(walker, method="overlap")
    spoilt = slipped(walker, bodies, "CLAV", 150, [0.0, 0.02, 0.0])
    options = marey.SolveOptions(segment="overlap")
    solution = marey.solve(spoilt, options=options)
    (finding,) = [f for f in solution.report.findings if f.code == "marker-slipped"]
    assert (finding.subject, finding.frames[0]) == ("CLAV", 150)
    column = spoilt.labels.index("CLAV")
    off = solution.take.points[:, column] - walker.points[:, column]
    assert np.abs(off).max() < 4e-3


def test_a_level_that_is_no_probability_is_refused(exact):
    with pytest.raises(OptionError, match="level"):
        find_marker_slips(exact[1], level=0.0)
