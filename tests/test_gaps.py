"""Gaps of markers: filled where others go along, marked, and never measured."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import synth
from marey.cleaning import fill_gaps
from marey.errors import OptionError
from marey.numerics import geometry

SHORT = {"seconds": 4.0, "rate": 60.0}
SPARSE = {"markers": "set53", "seed": 3, **SHORT}


def hidden(take, marker, first, last):
    points = take.points.copy()
    points[first : last + 1, marker] = np.nan
    return replace(take, points=points)


@pytest.fixture(scope="module")
def exact():
    return synth.human(seed=3).record("walk", markers="dense110", seed=3, **SHORT)


@pytest.fixture(scope="module")
def soft():
    return synth.human(seed=3).record(
        "walk", markers="dense110", seed=3, noise=1e-3, soft_tissue=5e-3, **SHORT
    )


def test_fills_are_exact_where_markers_are_rigid(exact):
    spoilt = synth.human(seed=3).record(
        "walk", markers="dense110", seed=3, gaps=0.05, gap_seconds=0.1, **SHORT
    )
    filled = fill_gaps(spoilt, 0.25)
    assert filled.filled.sum() > 0.8 * (~spoilt.seen).sum()
    np.testing.assert_array_equal(filled.filled, filled.seen & ~spoilt.seen)
    np.testing.assert_array_equal(
        filled.points[spoilt.seen], spoilt.points[spoilt.seen]
    )
    off = np.abs(filled.points - exact.points)[filled.filled]
    assert off.max() < 1e-9


def test_a_fill_leaves_and_meets_its_track_without_a_step(soft):
    marker, first, last = 12, 100, 112
    filled = fill_gaps(hidden(soft, marker, first, last), 0.25)
    way = filled.points[first - 1 : last + 2, marker]
    true = soft.points[first - 1 : last + 2, marker]
    step, usual = (np.linalg.norm(np.diff(x, axis=0), axis=1) for x in (way, true))
    assert step.max() < usual.max() + 3e-3
    assert np.linalg.norm(way - true, axis=1).max() < 0.02


def test_fills_are_the_same_backwards_and_in_another_world(soft, rng):
    spoilt = hidden(hidden(soft, 12, 100, 110), 40, 50, 55)
    plain = fill_gaps(spoilt, 0.25).points
    back = fill_gaps(replace(spoilt, points=spoilt.points[::-1].copy()), 0.25)
    np.testing.assert_allclose(back.points[::-1], plain, atol=1e-9)
    T = geometry.transform(geometry.rotation_exp(rng.normal(size=3)), np.ones(3))
    moved = fill_gaps(replace(spoilt, points=geometry.apply(T, spoilt.points)), 0.25)
    np.testing.assert_allclose(moved.points, geometry.apply(T, plain), atol=1e-9)


def test_the_error_that_is_told_is_the_error_made(soft):
    spoilt = synth.human(seed=3).record(
        "walk",
        markers="dense110",
        seed=3,
        noise=1e-3,
        soft_tissue=5e-3,
        gaps=0.05,
        gap_seconds=0.1,
        **SHORT,
    )
    bodies = marey.segment(spoilt)
    filled = fill_gaps(spoilt, 0.25, bodies=bodies)
    off = np.linalg.norm(filled.points - soft.points, axis=-1)[filled.filled]
    (finding,) = filled.source.findings
    assert finding.code == "gaps-filled"
    assert finding.value == pytest.approx(np.sqrt(np.mean(off**2)), rel=0.5)
    assert f"{filled.filled.sum()} positions" in finding.message
    assert filled.history[-1] == f"filled {filled.filled.sum()} positions of markers"


@pytest.mark.parametrize(
    ("first", "last"), [(0, 5), (230, 239), (100, 130)], ids=["start", "end", "long"]
)
def test_what_has_no_two_ends_or_is_long_stays_open(exact, first, last):
    spoilt = hidden(exact, 12, first, last)
    assert fill_gaps(spoilt, 0.25) is spoilt


def test_a_body_of_which_nothing_is_seen_stays_open(exact):
    bodies = marey.segment(exact)
    mine = np.flatnonzero(bodies.marker_body == bodies.marker_body[12])
    spoilt = hidden(exact, mine, 100, 106)
    assert fill_gaps(spoilt, 0.25) is spoilt
    assert fill_gaps(spoilt, 0.25, bodies=bodies) is spoilt


def test_joints_hold_a_body_of_which_little_is_seen():
    take = synth.human(seed=3).record("exercise", markers="dense110", seed=3, **SHORT)
    bodies = marey.segment(take)
    joints = marey.fit_joints(bodies)
    tree = marey.infer_tree(joints)
    body = int(np.bincount(tree.parent[tree.parent >= 0]).argmax())
    mine = np.flatnonzero(bodies.marker_body == body)
    spoilt = hidden(take, mine[:-2], 100, 106)
    alone = fill_gaps(spoilt, 0.25, bodies=bodies)
    assert not alone.filled.any()
    held = fill_gaps(spoilt, 0.25, bodies=bodies, joints=joints, tree=tree)
    np.testing.assert_array_equal(held.filled, ~spoilt.seen)
    off = np.linalg.norm(held.points - take.points, axis=-1)[held.filled]
    assert off.max() < 2e-3


def test_what_is_filled_is_fitted_to_nowhere(exact):
    spoilt = hidden(exact, 12, 100, 110)
    filled = fill_gaps(spoilt, 0.25)
    wrong = filled.points.copy()
    wrong[filled.filled] += 1.0
    lie = replace(filled, points=wrong)
    expected, found = marey.segment(spoilt), marey.segment(lie)
    np.testing.assert_array_equal(found.T_world_body, expected.T_world_body)
    np.testing.assert_array_equal(lie.measured.points, spoilt.points)
    joints = marey.fit_joints(expected)
    tree = marey.infer_tree(joints)
    skeleton = marey.build_skeletons(expected, joints, tree)[0]
    motions = [
        marey.solve_pose(skeleton, take, method="gauss_newton")
        for take in (spoilt, lie)
    ]
    np.testing.assert_array_equal(motions[0].wxyz, motions[1].wxyz)


def test_solve_shows_filled_takes_and_tells_of_them():
    take = synth.human(seed=3).record("walk", **SPARSE)
    spoilt = hidden(take, 0, 100, 110)
    plain = marey.solve(spoilt)
    filled = marey.solve(spoilt, options=marey.SolveOptions(max_gap=0.25))
    assert not plain.take.filled.any()
    assert filled.take.filled.sum() == 11
    assert "gaps-filled" in {f.code for f in filled.report.findings}
    np.testing.assert_array_equal(filled.motion.wxyz, plain.motion.wxyz)


def test_clean_fills_only_when_asked(exact):
    spoilt = hidden(exact, 12, 100, 110)
    assert marey.clean(spoilt) is spoilt
    assert marey.clean(spoilt, max_gap=0.25).filled.sum() == 11
    with pytest.raises(OptionError, match="max_gap"):
        fill_gaps(spoilt, -1.0)
