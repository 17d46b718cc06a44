"""Hinges in the calibration: kinds, places along their axes, and their uncertainty."""

from dataclasses import replace

import numpy as np
import pytest
from calibrated import linkage, random_rotations, record_take
from joint_samples import autoregressive

import marey
from marey.calibration import calibrate
from marey.calibration.hinges import is_noise, single_axes
from marey.calibration.problem import build_problem
from marey.numerics import geometry

MILLIMETRE = 1e-3
Z = np.array([0.0, 0.0, 1.0])
HINGES = ("LowerLeg", "LowerArm")


# --- people without labels ------------------------------------------------------------


@pytest.fixture(scope="module", params=["walk", "exercise"])
def robot(request):
    """A walking robot with hinge knees and elbows, without labels, and its solution."""
    take = marey.synth.robot().record(
        request.param,
        seconds=6.0,
        rate=100.0,
        noise=MILLIMETRE,
        labels=False,
        markers=4,
        seed=2,
    )
    return take, marey.solve(take, options=marey.SolveOptions(whole=False))


def found_hinges(take, solution):
    """The joint of the solution that each true hinge is, by place; with its truth."""
    truth, motion = take.truth, solution.motion
    true, found = (one.T_world_joint() for one in (truth.motion, motion))
    position = found[..., :3, 3].copy()
    position[:, [kind == "fixed" for kind in motion.skeleton.kind]] = np.nan
    for hinge, name in enumerate(truth.skeleton.names):
        if not name.endswith(HINGES):
            continue
        axis = true[:, hinge, :3, :3] @ truth.skeleton.axes[hinge, 0]
        error = position - true[:, hinge, None, :3, 3]
        along = np.einsum("fjx,fx->fj", error, axis)
        across = np.linalg.norm(error - along[..., None] * axis[:, None], axis=-1)
        joint = int(np.nanargmin(np.mean(across**2 + along**2, axis=0)))
        yield (
            joint,
            axis,
            along[:, joint].mean(),
            np.sqrt(np.mean(across[:, joint] ** 2)),
        )


def test_the_hinges_of_people_without_labels_stay_hinges(robot):
    take, solution = robot
    hinges = {joint for joint, *_ in found_hinges(take, solution)}
    kind = np.array(solution.skeleton.kind)
    assert set(np.flatnonzero(kind == "hinge").tolist()) == hinges
    assert len(hinges) == 4


def test_a_hinge_of_a_person_is_as_far_along_its_axis_as_stated(robot):
    """Noise feigns rotation about other axes; it is no evidence of a place."""
    take, solution = robot
    found = solution.motion.T_world_joint()[..., :3, :3]
    for joint, axis, along, across in found_hinges(take, solution):
        parent = solution.skeleton.parent[joint]
        in_parent = np.einsum("fji,fj->i", found[:, parent], axis) / len(axis)
        in_parent /= np.linalg.norm(in_parent)
        sd = np.sqrt(in_parent @ solution.skeleton.covariance[joint] @ in_parent)
        assert abs(along) < min(2.0 * sd, 10.0 * MILLIMETRE)
        assert sd > 10.0 * MILLIMETRE
        assert across < 5.0 * MILLIMETRE


@pytest.mark.parametrize("is_calibrated", [True, False])
def test_markers_fit_hinges_as_well_as_balls(robot, is_calibrated):
    """At rest, both bodies of a hinge have its axis in one direction."""
    take, solution = robot
    if not is_calibrated:
        options = marey.SolveOptions(whole=False, calibrate=False)
        solution = marey.solve(take, options=options)
    skeleton, T = solution.skeleton, solution.motion.T_world_joint()
    T = T[:, skeleton.marker_joint]
    column = [take.labels.index(label) for label in skeleton.marker_labels]
    error = geometry.apply(T, skeleton.marker_offset) - take.points[:, column]
    # Noise of three coordinates, less what the poses absorb.
    assert np.sqrt(np.mean(np.sum(error**2, axis=-1))) < np.sqrt(3.0) * MILLIMETRE


def test_hinges_stay_hinges_under_noise_that_lasts_as_long_as_the_swing(rng):
    """At 60 Hz a limb swings on before noise with a correlation of 0.9 has gone."""
    options = {"seconds": 6.0, "rate": 60.0, "markers": 4, "labels": False}
    take = marey.synth.robot().record("walk", seed=2, **options)
    noise = MILLIMETRE * autoregressive(rng, 0.9, take.points.shape)
    solution = marey.solve(
        replace(take, points=take.points + noise),
        options=marey.SolveOptions(whole=False),
    )
    hinges = {joint for joint, *_ in found_hinges(take, solution)}
    kind = np.array(solution.skeleton.kind)
    assert set(np.flatnonzero(kind == "hinge").tolist()) == hinges


def test_a_knee_without_labels_is_midway_between_markers_on_either_side():
    """The motion alone puts the left knee 8 mm from the truth."""
    take = marey.synth.human(seed=1).record(
        "exercise",
        seconds=4.0,
        rate=60.0,
        markers="set53",
        noise=MILLIMETRE,
        labels=False,
    )
    solution = marey.solve(take, options=marey.SolveOptions(whole=False))
    both = take.truth.motion, solution.motion
    for side in ("Left", "Right"):
        true, found = (
            one.T_world_joint()[:, one.skeleton.index(f"{side}LowerLeg"), :3, 3]
            for one in both
        )
        distance = np.linalg.norm(true - found, axis=-1)
        assert np.sqrt(np.mean(distance**2)) < 7.0 * MILLIMETRE


# --- noise and soft tissue ------------------------------------------------------------


def residual_pairs(rng, six):
    """Residuals of four markers in six directions, in 45 pairs of frames."""
    directions = np.linalg.qr(rng.normal(size=(12, 6)))[0]
    first = np.linspace(0, len(six) - 2, 45).astype(int)
    return np.stack([six[first], six[first + 1]], axis=1) @ directions.T


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6, 0.9])
def test_noise_is_equal_in_all_directions_that_a_pose_leaves(rng, correlation):
    noise = autoregressive(rng, correlation, (360, 6))
    assert is_noise(residual_pairs(rng, noise), len(noise))


def test_soft_tissue_moves_in_few_directions(rng):
    tissue = autoregressive(rng, 0.9, (360, 6)) * [4.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert not is_noise(residual_pairs(rng, tissue), len(tissue))


def test_too_few_independent_residuals_do_not_show_that_they_are_noise(rng):
    lasting = autoregressive(rng, 0.98, (360, 6))
    assert not is_noise(residual_pairs(rng, lasting), len(lasting))


# --- one axis -------------------------------------------------------------------------


@pytest.mark.parametrize(("is_white", "is_hinge"), [(True, True), (False, False)])
def test_a_hinge_leaves_its_axis_by_noise_alone(rng, is_white, is_hinge):
    """The same deviation is a rotation if it lasts from frame to frame."""
    true = replace(linkage(rng, (-1, 0)), kind=("root", "hinge"))
    true.axes[1, 0] = Z
    wxyz = random_rotations(rng, 2, 200, 0.8, axes=(None, Z))
    off_axis = random_rotations(rng, 2, 200, 0.03, axes=(None, np.eye(3)[0]))[:, 1]
    if is_white:
        off_axis = rng.permutation(off_axis)
    wxyz[:, 1] = geometry.quat_multiply(wxyz[:, 1], off_axis)
    problem = build_problem(true, [record_take(true, wxyz, rng)], [0])
    (axis,) = single_axes(problem)
    assert axis.is_hinge == is_hinge
    np.testing.assert_allclose(np.abs(axis.direction @ Z), 1.0, atol=0.01)


@pytest.mark.parametrize("correlation", [0.3, 0.6, 0.9])
def test_a_hinge_stays_one_under_correlated_noise(rng, correlation):
    """Noise that lasts for some frames has gone before the joint has swung."""
    true = replace(linkage(rng, (-1, 0)), kind=("root", "hinge"))
    true.axes[1, 0] = Z
    wxyz = random_rotations(rng, 2, 800, 0.8, axes=(None, Z))
    noise = autoregressive(rng, correlation, (800, 1))
    off_axis = geometry.quat_exp(0.025 * noise * np.eye(3)[0])
    wxyz[:, 1] = geometry.quat_multiply(wxyz[:, 1], off_axis)
    problem = build_problem(true, [record_take(true, wxyz, rng)], [0])
    (axis,) = single_axes(problem)
    assert axis.is_hinge


def test_the_bone_below_a_hinge_is_as_uncertain_along_the_axis(rng):
    true = linkage(rng, (-1, 0, 1))
    wxyz = random_rotations(rng, 3, 60, 0.8, axes=(None, Z, None))
    found = calibrate(true, record_take(true, wxyz, rng, noise=0.2 * MILLIMETRE))
    above, below = (found.skeleton.covariance[joint] for joint in (1, 2))
    assert Z @ above @ Z > 0.1**2
    assert Z @ below @ Z == pytest.approx(Z @ above @ Z, rel=0.01)
    open_joints = [one.subject for one in found.findings if one.code == "joint-open"]
    assert open_joints == ["bone1"]
