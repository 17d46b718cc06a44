"""Joints by distances to markers: what holds beyond the contract of all methods."""

from dataclasses import replace

import joint_samples as samples
import numpy as np
import pytest
from joint_samples import CENTER_A, CENTER_B

import marey
from marey.joints.distance import DistanceCost, joint_costs
from marey.numerics import geometry
from marey.numerics.resampling import evenly_spaced

MILLIMETRE = 1e-3


def cost_of_markers(rng, n_frames=50, occluded=0.0):
    """Cost of two fixed markers and three that rotate about a point."""
    center = np.array([0.3, -0.1, 0.2])
    arms = rng.normal(size=(3, 3)) * 0.2
    R = geometry.rotation_exp(0.5 * samples.smooth_signals(rng, n_frames, 3))
    rotating = center + np.einsum("fij,mj->fmi", R, arms)
    fixed = np.broadcast_to(rng.normal(size=(2, 3)), (n_frames, 2, 3))
    points = np.concatenate([fixed, rotating], axis=1)
    points = np.where(rng.random((n_frames, 5, 1)) < occluded, np.nan, points)
    return DistanceCost(points, np.arange(5) < 2), points, center


def naive_cost(points, center, alpha):
    """DeAguiar2006, Eqs. 2-4, marker by marker and frame by frame."""
    total = 0.0
    for marker in points.swapaxes(0, 1):
        distance = [np.linalg.norm(center - x) for x in marker if np.isfinite(x).all()]
        mean = sum(distance) / len(distance)
        variance = sum((d - mean) ** 2 for d in distance) / len(distance)
        total += 0.5 * (variance + alpha * mean)
    return total


@pytest.mark.parametrize("occluded", [0.0, 0.3])
@pytest.mark.parametrize("alpha", [0.0, 2e-4, 0.1])
def test_the_cost_is_that_of_the_paper(alpha, occluded, rng):
    cost, points, center = cost_of_markers(rng, occluded=occluded)
    for point in (center, center + 0.1, rng.normal(size=3)):
        value, _ = cost.value_and_gradient(point, alpha)
        assert value == pytest.approx(naive_cost(points, point, alpha), rel=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 2e-4, 0.1])
def test_gradient_and_hessian_agree_with_finite_differences(alpha, rng):
    cost, _, _ = cost_of_markers(rng, occluded=0.2)
    step = 1e-6 * np.eye(3)
    for point in rng.normal(size=(5, 3)):
        _, gradient = cost.value_and_gradient(point, alpha)
        ahead = [cost.value_and_gradient(point + h, alpha) for h in step]
        back = [cost.value_and_gradient(point - h, alpha) for h in step]
        values = [(a[0] - b[0]) / 2e-6 for a, b in zip(ahead, back, strict=True)]
        np.testing.assert_allclose(gradient, values, atol=1e-8)
        gradients = [(a[1] - b[1]) / 2e-6 for a, b in zip(ahead, back, strict=True)]
        np.testing.assert_allclose(cost.hessian(point, alpha), gradients, atol=1e-7)


def test_the_cost_at_a_marker_is_finite(rng):
    cost, points, _ = cost_of_markers(rng)
    value, gradient = cost.value_and_gradient(points[0, 0], 0.1)
    assert np.isfinite([value, *gradient]).all()


def test_the_minimum_is_the_lowest_one_found(rng):
    cost, _, center = cost_of_markers(rng)
    np.testing.assert_allclose(cost.minimum(0.0, center + 0.05), center, atol=1e-9)
    for guess in rng.normal(size=(4, 3)):
        found = cost.minimum(1e-3, guess)
        least, gradient = cost.value_and_gradient(found, 1e-3)
        np.testing.assert_allclose(gradient, 0.0, atol=1e-12)
        assert least <= cost.value_and_gradient(cost.minimum(1e-3), 1e-3)[0]
        around = found + 0.02 * rng.normal(size=(50, 3))
        assert all(cost.value_and_gradient(point, 1e-3)[0] > least for point in around)


def test_the_penalty_biases_the_joint_less_the_larger_the_range(rng):
    """The penalty of the paper, 1/5 mm, on exact data."""
    error = []
    for swing in (5.0, 10.0, 20.0, 35.0):
        T = samples.joined_poses(rng, 400, swing=np.radians(swing))
        bodies = samples.marker_bodies(T)
        printed = marey.fit_joints(bodies, method="distance", printed=True)
        error.append(np.linalg.norm(printed.center_a[0] - CENTER_A))
        corrected = marey.fit_joints(bodies, method="distance")
        np.testing.assert_allclose(corrected.center_a[0], CENTER_A, atol=1e-7)
    assert error[0] > 10.0 * MILLIMETRE
    assert error[-1] < 1.0 * MILLIMETRE
    assert (np.diff(error) < 0.0).all()


def test_the_printed_penalty_is_a_length_and_ours_is_not(rng):
    """For bodies ten times as large the printed penalty counts a tenth."""
    T = samples.joined_poses(rng, 400, swing=0.2)
    points = samples.marker_bodies(T, rng, MILLIMETRE)
    moved = T.copy()
    moved[..., :3, 3] = 10.0 * points.T_world_body[..., :3, 3]
    moved[..., :3, :3] = points.T_world_body[..., :3, :3]
    large = replace(
        points,
        take=replace(points.take, points=10.0 * points.take.points),
        T_world_body=moved,
        marker_offset=10.0 * points.marker_offset,
        rms=10.0 * points.rms,
    )
    small, big = (
        marey.fit_joints(x, method="distance", max_sd=1.0) for x in (points, large)
    )
    np.testing.assert_allclose(big.center_a, 10.0 * small.center_a, rtol=1e-6)
    small, big = (
        marey.fit_joints(x, method="distance", printed=True) for x in (points, large)
    )
    assert np.linalg.norm(big.center_a - 10.0 * small.center_a) > MILLIMETRE


def test_as_printed_the_order_of_the_bodies_matters(rng):
    bodies = samples.marker_bodies(
        samples.joined_poses(rng, swing=0.1), rng, MILLIMETRE
    )
    one = marey.fit_joints(bodies, method="distance", printed=True)
    two = marey.fit_joints(
        samples.reverse_bodies(bodies), method="distance", printed=True
    )
    assert np.linalg.norm(one.center_a - two.center_b) > MILLIMETRE
    assert one.kind == two.kind == ("ball",)


@pytest.mark.parametrize("swing", [0.1, 0.5])
def test_the_covariance_covers_noise_and_penalty(swing):
    """The mean NEES of 30 recordings is 3 if calibrated."""
    nees = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        T = samples.joined_poses(rng, 300, swing=swing)
        bodies = samples.marker_bodies(T, rng, 0.5 * MILLIMETRE)
        fits = marey.fit_joints(bodies, method="distance")
        error = np.concatenate(
            [fits.center_a[0] - CENTER_A, fits.center_b[0] - CENTER_B]
        )
        for part in (slice(0, 3), slice(3, 6)):
            C = fits.covariance[0, part, part]
            nees.append(error[part] @ np.linalg.solve(C, error[part]))
    assert 1.0 < np.mean(nees) < 6.0


def test_a_body_without_axes_is_seen_from_the_other(rng):
    bodies = samples.marker_bodies(samples.joined_poses(rng))
    T = bodies.T_world_body.copy()
    # The pose of the second body is random.
    T[:, 1, :3, :3] = geometry.rotation_exp(rng.normal(size=(len(T), 3)))
    undetermined = replace(bodies, T_world_body=T, determined=np.array([True, False]))
    fits = marey.fit_joints(undetermined, method="distance", alpha=0.0)
    np.testing.assert_allclose(fits.center_a[0], CENTER_A, atol=1e-7)


def test_many_frames_are_subsampled(rng):
    bodies = samples.marker_bodies(samples.joined_poses(rng, 2000), rng, MILLIMETRE)
    all_frames = marey.fit_joints(bodies, method="distance")
    sample = samples.select_frames(bodies, evenly_spaced(2000))
    part = marey.fit_joints(sample, method="distance")
    np.testing.assert_allclose(all_frames.center_a, part.center_a, atol=1e-4)


def test_sensors_have_no_distances_to_keep(rng):
    T = samples.joined_poses(rng)
    with pytest.raises(marey.DataError, match=r"body0, body1.*ball"):
        marey.fit_joints(samples.sensor_bodies(T), method="distance")


@pytest.mark.parametrize("option", [{"alpha": -1.0}, {"alpha": 2e3}, {"max_sd": 0.0}])
def test_options_out_of_range_are_refused(option, rng):
    bodies = samples.marker_bodies(samples.joined_poses(rng, 20))
    with pytest.raises(marey.OptionError, match=next(iter(option))):
        marey.fit_joints(bodies, method="distance", **option)


def test_costs_are_those_of_the_paper_and_give_the_chain(rng):
    T = samples.joined_poses(rng)
    third = T[:, 1] @ geometry.transform_exp(
        0.3 * samples.smooth_signals(rng, len(T), 6)
    )
    bodies = samples.marker_bodies(np.concatenate([T, third[:, None]], 1))
    fits = marey.fit_joints(bodies, method="distance", printed=True)
    costs = joint_costs((bodies,), fits)
    assert costs.argmin() == 0
    for row, (a, b) in enumerate(fits.pair):
        inverse = geometry.inverse(T[:, a]) if a < 2 else geometry.inverse(third)
        on_pair = np.isin(bodies.marker_body, (a, b))
        points = geometry.apply(inverse[:, None], bodies.take.points[:, on_pair])
        expected = naive_cost(points, fits.center_a[row], 0.2 * MILLIMETRE)
        assert costs[row] == pytest.approx(expected, rel=1e-9)
