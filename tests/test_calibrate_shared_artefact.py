"""Soft-tissue artefact that all markers of a segment share, and what it hides."""

from dataclasses import replace

import numpy as np
import pytest
from test_calibrate_people import hip_distance, initial_skeleton

from marey import synth
from marey.calibration import calibrate, fit_problem
from marey.calibration.options import CalibrateOptions
from marey.calibration.problem import build_problem
from marey.calibration.shared_artefact import kept_share, shared_artefact_variance
from marey.numerics import geometry

MILLIMETRE = 1e-3
ARTEFACT_M_PER_RAD = 0.03
OPTIONS = CalibrateOptions(frames=40)


def record(seed, motion, artefact=0.0, hips_apart=0.0):
    """A take of a person whose markers shift with the joint above their segment.

    Each marker of a segment has a displacement B of a rotation of its own, and those of
    thighs shift together as if the hips were further apart.

    Args:
        artefact: Displacement of each marker, in metres per radian.
        hips_apart: By how much each hip seems to be further outward, in metres.
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
        if skeleton.names[body].endswith("UpperLeg"):
            outward = np.sign(skeleton.offset[body, 1]) * np.array(
                [0.0, hips_apart, 0.0]
            )
            seems = geometry.matrix_from_quat(truth.motion.wxyz[:, body])
            moved += (outward @ seems - outward)[:, None]
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
    J = rng.normal(size=(9, 5))
    variance = np.array([0.3, 0.0, 0.1, 2.0, 0.0])
    frames = J.T @ J
    wanted = np.linalg.inv(np.linalg.inv(frames) + np.diag(variance))
    assert kept_share(frames, variance) @ frames == pytest.approx(wanted)
    assert kept_share(frames, 0.0 * variance) == pytest.approx(np.eye(5))


def test_centres_vary_with_the_artefact_and_not_with_the_axes(soft_fit):
    model = soft_fit.estimate.model
    row = np.searchsorted(model.columns.shared, model.columns.joint_offset)
    variance = shared_artefact_variance(soft_fit)
    of_hip = variance[row[model.index("LeftUpperLeg")]]
    assert of_hip == pytest.approx(of_hip[0])
    assert 0.3 * ARTEFACT_M_PER_RAD < np.sqrt(of_hip[0]) < 3.0 * ARTEFACT_M_PER_RAD
    others = np.setdiff1d(np.arange(len(variance)), row[1:])
    assert not variance[others].any()
    assert not variance[row[model.index("Chest")]].any()


def test_white_noise_leaves_the_frames_all_they_know():
    assert not shared_artefact_variance(fit(record(0, "walk"))).any()


# --- bones ----------------------------------------------------------------------------


def test_hips_that_seem_elsewhere_by_an_artefact_hardly_move():
    """The frames show them there, and residuals show that markers shift."""
    moved = []
    for seed in range(3):
        takes = [record(seed, "walk", 0.02, apart) for apart in (0.0, 0.02)]
        skeleton = initial_skeleton(takes[0])
        found = [calibrate(skeleton, take, options=OPTIONS) for take in takes]
        moved.append(np.ptp([hip_distance(one.skeleton) for one in found]))
    assert np.mean(moved) < 3.0 * MILLIMETRE
