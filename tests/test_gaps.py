"""Gap filling: exact for rigid markers, marked, and never used as measurement."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import synth
from marey.cleaning import fill_gaps
from marey.errors import OptionError
from marey.numerics import geometry
from marey.pipeline.stages.bodies import fit_bodies
from marey.pipeline.stages.repair import repair_with_joints
from marey.report import Finding

SHORT = {"seconds": 4.0, "rate": 60.0}
SPARSE = {"markers": "set53", "seed": 3, **SHORT}


def hide(take, marker, first, last):
    """Return the take with a marker missing in some frames."""
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


def test_filled_values_are_exact_for_rigid_markers(exact):
    corrupted = synth.human(seed=3).record(
        "walk", markers="dense110", seed=3, gaps=0.05, gap_seconds=0.1, **SHORT
    )
    filled = fill_gaps(corrupted, 0.25)
    assert filled.filled.sum() > 0.8 * (~corrupted.seen).sum()
    np.testing.assert_array_equal(filled.filled, filled.seen & ~corrupted.seen)
    np.testing.assert_array_equal(
        filled.points[corrupted.seen], corrupted.points[corrupted.seen]
    )
    error = np.abs(filled.points - exact.points)[filled.filled]
    assert error.max() < 1e-9


def test_a_filled_path_has_no_step_at_its_ends(soft):
    marker, first, last = 12, 100, 112
    filled = fill_gaps(hide(soft, marker, first, last), 0.25)
    path = filled.points[first - 1 : last + 2, marker]
    true = soft.points[first - 1 : last + 2, marker]
    step, usual = (np.linalg.norm(np.diff(x, axis=0), axis=1) for x in (path, true))
    assert step.max() < usual.max() + 3e-3
    assert np.linalg.norm(path - true, axis=1).max() < 0.02


def test_filled_values_do_not_depend_on_time_direction_or_world_axes(soft, rng):
    corrupted = hide(hide(soft, 12, 100, 110), 40, 50, 55)
    plain = fill_gaps(corrupted, 0.25).points
    reverse = fill_gaps(replace(corrupted, points=corrupted.points[::-1].copy()), 0.25)
    np.testing.assert_allclose(reverse.points[::-1], plain, atol=1e-9)
    T = geometry.transform(geometry.rotation_exp(rng.normal(size=3)), np.ones(3))
    moved = fill_gaps(
        replace(corrupted, points=geometry.apply(T, corrupted.points)), 0.25
    )
    np.testing.assert_allclose(moved.points, geometry.apply(T, plain), atol=1e-9)


def test_the_reported_error_is_the_true_error(soft):
    corrupted = synth.human(seed=3).record(
        "walk",
        markers="dense110",
        seed=3,
        noise=1e-3,
        soft_tissue=5e-3,
        gaps=0.05,
        gap_seconds=0.1,
        **SHORT,
    )
    bodies = marey.segment(corrupted)
    filled = fill_gaps(corrupted, 0.25, bodies=bodies)
    error = np.linalg.norm(filled.points - soft.points, axis=-1)[filled.filled]
    (finding,) = filled.source.findings
    assert finding.code == "gaps-filled"
    assert finding.value == pytest.approx(np.sqrt(np.mean(error**2)), rel=0.5)
    assert f"{filled.filled.sum()} positions" in finding.message
    assert filled.history[-1] == f"filled {filled.filled.sum()} positions of markers"


@pytest.mark.parametrize(
    ("first", "last"), [(0, 5), (230, 239), (100, 130)], ids=["start", "end", "long"]
)
def test_gaps_that_are_long_or_at_an_end_stay_open(exact, first, last):
    corrupted = hide(exact, 12, first, last)
    assert fill_gaps(corrupted, 0.25) is corrupted


def test_gaps_of_a_whole_body_stay_open(exact):
    bodies = marey.segment(exact)
    markers = np.flatnonzero(bodies.marker_body == bodies.marker_body[12])
    corrupted = hide(exact, markers, 100, 106)
    assert fill_gaps(corrupted, 0.25) is corrupted
    assert fill_gaps(corrupted, 0.25, bodies=bodies) is corrupted


def test_joint_centres_support_a_body_with_few_seen_markers():
    take = synth.human(seed=3).record("exercise", markers="dense110", seed=3, **SHORT)
    bodies = marey.segment(take)
    joints = marey.fit_joints(bodies)
    tree = marey.infer_tree(joints)
    body = int(np.bincount(tree.parent[tree.parent >= 0]).argmax())
    markers = np.flatnonzero(bodies.marker_body == body)
    corrupted = hide(take, markers[:-2], 100, 106)
    without_joints = fill_gaps(corrupted, 0.25, bodies=bodies)
    assert not without_joints.filled.any()
    with_joints = fill_gaps(corrupted, 0.25, bodies=bodies, joints=joints, tree=tree)
    np.testing.assert_array_equal(with_joints.filled, ~corrupted.seen)
    error = np.linalg.norm(with_joints.points - take.points, axis=-1)
    assert error[with_joints.filled].max() < 2e-3


def test_filled_values_are_not_measurements(exact):
    corrupted = hide(exact, 12, 100, 110)
    filled = fill_gaps(corrupted, 0.25)
    wrong = filled.points.copy()
    wrong[filled.filled] += 1.0
    wrongly_filled = replace(filled, points=wrong)
    expected, found = marey.segment(corrupted), marey.segment(wrongly_filled)
    np.testing.assert_array_equal(found.T_world_body, expected.T_world_body)
    np.testing.assert_array_equal(wrongly_filled.measured.points, corrupted.points)
    joints = marey.fit_joints(expected)
    tree = marey.infer_tree(joints)
    skeleton = marey.build_skeletons(expected, joints, tree)[0]
    motions = [
        marey.solve_pose(skeleton, take, method="gauss_newton")
        for take in (corrupted, wrongly_filled)
    ]
    np.testing.assert_array_equal(motions[0].wxyz, motions[1].wxyz)


def test_solve_returns_and_reports_filled_takes():
    take = synth.human(seed=3).record("walk", **SPARSE)
    corrupted = hide(take, 0, 100, 110)
    plain = marey.solve(corrupted)
    filled = marey.solve(corrupted, options=marey.SolveOptions(max_gap=0.25))
    assert not plain.take.filled.any()
    assert filled.take.filled.sum() == 11
    assert "gaps-filled" in {f.code for f in filled.report.findings}
    np.testing.assert_array_equal(filled.motion.wxyz, plain.motion.wxyz)


def test_clean_fills_gaps_only_when_asked(exact):
    corrupted = hide(exact, 12, 100, 110)
    assert marey.clean(corrupted) is corrupted
    assert marey.clean(corrupted, max_gap=0.25).filled.sum() == 11
    with pytest.raises(OptionError, match="max_gap"):
        fill_gaps(corrupted, -1.0)


def test_gaps_are_filled_though_orientations_are_odd(exact):
    options = marey.SolveOptions(max_gap=0.25)
    corrupted = hide(exact, 0, 50, 54)
    fit = fit_bodies((corrupted,), options)
    odd = Finding("orientations-inconsistent", "joints", "error", "read otherwise")
    doubtful = replace(fit, joint_findings=(odd,))
    repaired = repair_with_joints(doubtful, options, fit_bodies)
    assert np.flatnonzero(repaired.takes[0].filled[:, 0]).tolist() == [*range(50, 55)]
