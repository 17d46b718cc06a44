"""The confidence of a keypoint is the weight of its position."""

from dataclasses import replace

import numpy as np
import posed
import pytest
from calibrated import linkage, perturb, random_rotations, record_take

import marey
from marey.calibration import calibrate
from marey.cleaning import mask_unsure


@pytest.fixture(scope="module")
def walk():
    return posed.record(motion="walk", rate=50.0)


def pose(skeleton, take, **options):
    motion = marey.solve_pose(skeleton, take, method="gauss_newton", **options)
    return motion.T_world_joint()[..., :3, 3]


def noisy(take, sd, seed=0):
    rng = np.random.default_rng(seed)
    noise = sd * rng.normal(size=take.points.shape)
    return replace(take, points=take.points + noise)


def with_confidence(take, confidence):
    return replace(take, confidence=np.broadcast_to(confidence, take.seen.shape))


def test_sure_points_count_as_points_without_a_confidence(walk):
    skeleton, take = walk[0], noisy(walk[1], 0.002)
    sure = pose(skeleton, with_confidence(take, 1.0))
    np.testing.assert_array_equal(sure, pose(skeleton, take))


def test_only_ratios_of_confidences_matter(walk):
    skeleton, take = walk[0], noisy(walk[1], 0.002)
    half = pose(skeleton, with_confidence(take, 0.5), outlier=0.0)
    whole = pose(skeleton, take, outlier=0.0)
    np.testing.assert_allclose(half, whole, atol=1e-5)


def test_a_point_of_almost_no_confidence_hardly_moves_the_pose(walk):
    skeleton, take = walk
    wrong, confidence = take.points.copy(), np.ones(take.seen.shape)
    wrong[:, ::5] += 0.05
    confidence[:, ::5] = 1e-6
    trusted = replace(take, points=wrong)
    exact = pose(skeleton, take, outlier=0.0)
    unsure = pose(skeleton, replace(trusted, confidence=confidence), outlier=0.0)
    assert np.abs(unsure - exact).max() < 1e-4
    assert np.abs(pose(skeleton, trusted, outlier=0.0) - exact).max() > 1e-2


def test_weights_lower_the_error_of_unequal_noise(walk):
    skeleton, take = walk
    errors, exact = np.zeros(2), pose(skeleton, take)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        confidence = rng.uniform(0.02, 1.0, take.seen.shape)
        plain = noisy(take, 0.003 / np.sqrt(confidence)[..., None], seed)
        weighted = replace(plain, confidence=confidence)
        for k, one in enumerate((plain, weighted)):
            errors[k] += np.sum((pose(skeleton, one) - exact) ** 2)
    assert errors[1] < 0.8 * errors[0]


def test_the_skeleton_of_sure_points_is_that_without_confidences(rng):
    true = linkage(rng)
    take = record_take(true, random_rotations(rng, 3, 60, 0.6), rng, noise=1e-3)
    plain, sure = calibrate(true, take), calibrate(true, with_confidence(take, 1.0))
    np.testing.assert_array_equal(sure.skeleton.offset, plain.skeleton.offset)


def test_exact_points_give_the_exact_skeleton_whatever_their_confidences(rng):
    true = linkage(rng)
    take = record_take(true, random_rotations(rng, 3, 60, 0.6), rng)
    weighted = with_confidence(take, rng.uniform(0.1, 1.0, take.seen.shape))
    found = calibrate(perturb(true, rng, 0.01), weighted).skeleton
    assert found.lengths[2] == pytest.approx(true.lengths[2], abs=1e-7)


@pytest.mark.usefixtures("unchecked")
def test_weights_lower_the_error_of_bones_and_keep_it_calibrated():
    errors, z = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        true = linkage(rng)
        take = record_take(true, random_rotations(rng, 3, 40, 0.5), rng)
        confidence = rng.choice([0.05, 1.0], size=take.seen.shape)
        plain = noisy(take, 0.001 / np.sqrt(confidence)[..., None], seed)
        start = perturb(true, rng, 0.005)
        found = [
            calibrate(start, one).skeleton
            for one in (plain, replace(plain, confidence=confidence))
        ]
        errors.append([one.lengths[2] - true.lengths[2] for one in found])
        z.append(errors[-1][1] / found[1].length_sd[2])
    rms = np.sqrt(np.mean(np.square(errors), axis=0))
    assert rms[1] < 0.75 * rms[0]
    assert 0.7 < np.sqrt(np.mean(np.square(z))) < 1.3


def test_points_below_the_smallest_confidence_are_gaps(walk):
    take, rng = walk[1], np.random.default_rng(0)
    take = with_confidence(take, rng.uniform(size=take.seen.shape))
    masked = mask_unsure(take, 0.3)
    np.testing.assert_array_equal(masked.seen, take.confidence >= 0.3)
    assert "confidence-low" in {f.code for f in masked.source.findings}
    assert mask_unsure(with_confidence(take, np.nan), 1.0).seen.all()
    assert not marey.clean(with_confidence(take, 0.0)).seen.any()


def test_solve_takes_the_smallest_confidence(walk):
    take = walk[1]
    confidence = np.ones(take.seen.shape)
    confidence[10, :5] = 0.2
    solution = marey.solve(with_confidence(take, confidence), min_confidence=0.5)
    assert not solution.take.seen[10, :5].any()
    assert solution.take.seen.sum() == take.seen.sum() - 5
