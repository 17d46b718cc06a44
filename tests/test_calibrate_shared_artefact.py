"""Soft-tissue artefact that all markers of a segment share, and what it hides."""

from dataclasses import replace

import numpy as np
import pytest
from test_calibrate_people import hip_distance, initial_skeleton

from marey import synth
from marey.calibration import calibrate, fit_problem
from marey.calibration.options import CalibrateOptions
from marey.calibration.problem import build_problem
from marey.calibration.shared_artefact import (
    shared_artefact,
    shared_artefact_variance,
)
from marey.calibration.solver.levenberg_marquardt import displaced_equations
from marey.numerics import geometry

MILLIMETRE = 1e-3
ARTEFACT_M_PER_RAD = 0.03
OPTIONS = CalibrateOptions(frames=40)


def record(seed, motion, artefact=0.0, seems=("UpperLeg", (0.0, 0.0, 0.0))):
    """A take of a person whose markers shift with the joint above their segment.

    Each marker of a segment has a displacement B of a rotation of its own, and those of
    some segments shift together as if their joint were elsewhere.

    Args:
        artefact: Displacement of each marker, in metres per radian.
        seems: Ending of the names of these segments, and by how much their joint seems
            to be further forward, outward and up, in metres.
    """
    figure = synth.human(1.75, seed=seed)
    options = {"seconds": 3.0, "rate": 60.0, "markers": "set53", "noise": 5e-4}
    take = figure.record(motion, seed=seed, **options)
    truth, rng = take.truth, np.random.default_rng(seed)
    skeleton = truth.motion.skeleton
    rotation = geometry.quat_log(truth.motion.wxyz)
    R = truth.motion.T_world_joint()[..., :3, :3]
    points = take.points.copy()
    for body in np.unique(truth.marker_joint).tolist():
        markers = np.flatnonzero(truth.marker_joint == body)
        B = artefact * rng.normal(size=(len(markers), 3, 3)) / np.sqrt(3.0)
        moved = np.einsum("mjk,fk->fmj", B, rotation[:, body])
        if skeleton.names[body].endswith(seems[0]):
            outward = 1.0 if skeleton.names[body].startswith("Left") else -1.0
            at = np.multiply(seems[1], [1.0, outward, 1.0])
            R_joint = geometry.matrix_from_quat(truth.motion.wxyz[:, body])
            moved += (at @ R_joint - at)[:, None]
        points[:, markers] += np.einsum("fij,fmj->fmi", R[:, body], moved)
    return replace(take, points=points)


def fit(take):
    problem = build_problem(initial_skeleton(take), [take.measured], (0,))
    return fit_problem(problem, OPTIONS)


@pytest.fixture(scope="module")
def soft_fit():
    return fit(record(0, "walk", ARTEFACT_M_PER_RAD))


# --- variance -------------------------------------------------------------------------


def test_an_artefact_in_proportion_to_the_rotation_shifts_the_centre_by_as_much(rng):
    """However far the joint rotates, and about one axis or three."""
    for spread in ([0.1, 0.1, 0.1], [1.0, 1.0, 1.0], [1.0, 0.1, 0.1], [0.3, 0.3, 0.0]):
        shift = []
        for _ in range(400):
            phi = rng.normal(size=(60, 3)) * spread
            B = rng.normal(size=(3, 3))
            # A centre at e displaces what rotates about it by the cross product.
            lever = geometry.hat(phi).reshape(-1, 3)
            shift.append(np.linalg.lstsq(lever, (phi @ B.T).ravel(), rcond=None)[0])
        assert 0.6 < np.std(shift) < 1.1, spread


def test_what_frames_keep_is_information_less_the_variance(rng):
    J, D = rng.normal(size=(9, 5)), rng.normal(size=(5, 2))
    H, g = J.T @ J, rng.normal(size=5)
    kept, right, noise = displaced_equations(H, g, D)
    wanted = np.linalg.inv(np.linalg.inv(H) + D @ D.T)
    assert kept == pytest.approx(wanted)
    assert np.linalg.solve(kept, right) == pytest.approx(np.linalg.solve(H, g))
    assert noise == pytest.approx(wanted @ np.linalg.inv(H) @ wanted)


def test_frames_that_do_not_determine_everything_lose_only_what_is_displaced(rng):
    J = rng.normal(size=(3, 5))
    D = np.linalg.svd(J)[2][:2].T
    kept, _, _ = displaced_equations(J.T @ J, np.zeros(5), 1e6 * D)
    assert np.abs(D.T @ kept @ D).max() < 1e-9
    assert np.linalg.matrix_rank(kept, tol=1e-6) == 1


def test_a_joint_is_displaced_and_nothing_else_at_its_mean_rotation(soft_fit):
    """The bones and markers below it follow: frames show none of it there."""
    parameters, model = soft_fit.estimate.parameters, soft_fit.estimate.model
    R = np.empty((1, len(model.names), 3, 3))
    R[0, 0] = np.eye(3)
    for i, p in enumerate(model.parent[1:].tolist(), start=1):
        R[0, i] = R[0, p] @ parameters.mean_rotation[i]
    joints, markers = parameters.forward(np.zeros((1, 3)), R)
    for column in shared_artefact(soft_fit).T:
        step = column[None, : model.columns.count]
        still = np.zeros_like(parameters.center_motion)
        moved = parameters.add_step(step, 0.0, still)
        to_joints, to_markers = moved.forward(np.zeros((1, 3)), R)
        assert to_markers == pytest.approx(markers, abs=1e-9)
        displaced = np.linalg.norm(to_joints - joints, axis=-1) > 1e-6
        assert displaced.sum() == 1


def test_centres_of_hips_vary_with_the_artefact_and_axes_do_not(soft_fit):
    model = soft_fit.estimate.model
    variance = shared_artefact_variance(soft_fit)
    of_hip = variance[model.index("LeftUpperLeg")]
    assert 0.3 * ARTEFACT_M_PER_RAD < np.sqrt(of_hip) < 3.0 * ARTEFACT_M_PER_RAD
    assert not variance[[model.index("Chest"), model.index("LeftFoot")]].any()
    offset = model.columns.joint_offset[model.index("LeftUpperLeg")]
    assert shared_artefact(soft_fit)[offset].any(axis=0).sum() == 3
    assert not shared_artefact(soft_fit)[model.columns.axis.ravel()].any()


def test_white_noise_leaves_the_frames_all_they_know():
    assert shared_artefact(fit(record(0, "walk"))) is None


# --- bones ----------------------------------------------------------------------------


def test_hips_that_seem_elsewhere_by_an_artefact_hardly_move():
    """The frames show them there, and residuals show that markers shift."""
    moved = []
    for seed in range(3):
        takes = [
            record(seed, "walk", 0.02, ("UpperLeg", (0.0, apart, 0.0)))
            for apart in (0.0, 0.02)
        ]
        skeleton = initial_skeleton(takes[0])
        found = [calibrate(skeleton, take, options=OPTIONS) for take in takes]
        moved.append(np.ptp([hip_distance(one.skeleton) for one in found]))
    assert np.mean(moved) < 3.0 * MILLIMETRE


def test_knees_that_seem_higher_by_an_artefact_hardly_lengthen_shanks():
    """The frames show shanks longer by 20 mm; what they show of thighs fits it."""
    longer = []
    for seed in range(3):
        takes = [
            record(seed, "walk", 0.02, ("LowerLeg", (0.0, 0.0, up)))
            for up in (0.0, 0.02)
        ]
        skeleton = initial_skeleton(takes[0])
        found = [calibrate(skeleton, take, options=OPTIONS).skeleton for take in takes]
        shanks = [found[0].index(side + "Foot") for side in ("Left", "Right")]
        longer += list(found[1].lengths[shanks] - found[0].lengths[shanks])
    assert np.mean(longer) < 4.5 * MILLIMETRE
