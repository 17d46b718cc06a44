"""Joints by distances to markers, beyond what the contract asks of all methods."""

from dataclasses import replace

import joint_samples as samples
import numpy as np
import pytest
from joint_samples import CENTER_A, CENTER_B

import marey
from marey.joints.distance.energy import Paths
from marey.joints.distance.fit import costs
from marey.numerics import geometry

MILLIMETRE = 1e-3


def path_of_markers(rng, n_frames=50, gaps=0.0):
    """Two own markers that stay, three others that turn about a point."""
    center = np.array([0.3, -0.1, 0.2])
    arms = rng.normal(size=(3, 3)) * 0.2
    R = geometry.rotation_exp(0.5 * samples.waves(rng, n_frames, 3))
    turning = center + np.einsum("fij,mj->fmi", R, arms)
    still = np.broadcast_to(rng.normal(size=(2, 3)), (n_frames, 2, 3))
    points = np.concatenate([still, turning], axis=1)
    points = np.where(rng.random((n_frames, 5, 1)) < gaps, np.nan, points)
    return Paths(points, np.arange(5) < 2), points, center


def naive_energy(points, center, alpha):
    """DeAguiar2006, Eqs. 2-4, marker by marker and frame by frame."""
    total = 0.0
    for marker in points.swapaxes(0, 1):
        away = [np.linalg.norm(center - x) for x in marker if np.isfinite(x).all()]
        mean = sum(away) / len(away)
        variance = sum((d - mean) ** 2 for d in away) / len(away)
        total += 0.5 * (variance + alpha * mean)
    return total


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("alpha", [0.0, 2e-4, 0.1])
def test_the_energy_is_that_of_the_paper(alpha, gaps, rng):
    paths, points, center = path_of_markers(rng, gaps=gaps)
    for place in (center, center + 0.1, rng.normal(size=3)):
        value, _ = paths.energy(place, alpha)
        assert value == pytest.approx(naive_energy(points, place, alpha), rel=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 2e-4, 0.1])
def test_gradient_and_curvature_are_those_of_small_steps(alpha, rng):
    paths, _, _ = path_of_markers(rng, gaps=0.2)
    step = 1e-6 * np.eye(3)
    for place in rng.normal(size=(5, 3)):
        _, slope = paths.energy(place, alpha)
        ahead = [paths.energy(place + h, alpha) for h in step]
        back = [paths.energy(place - h, alpha) for h in step]
        values = [(a[0] - b[0]) / 2e-6 for a, b in zip(ahead, back, strict=True)]
        np.testing.assert_allclose(slope, values, atol=1e-8)
        slopes = [(a[1] - b[1]) / 2e-6 for a, b in zip(ahead, back, strict=True)]
        np.testing.assert_allclose(paths.curvature(place, alpha), slopes, atol=1e-7)


def test_a_joint_in_a_marker_is_no_trouble(rng):
    paths, points, _ = path_of_markers(rng)
    value, slope = paths.energy(points[0, 0], 0.1)
    assert np.isfinite([value, *slope]).all()


def test_the_minimum_is_the_bottom_of_the_deepest_valley(rng):
    paths, _, center = path_of_markers(rng)
    np.testing.assert_allclose(paths.minimum(0.0, center + 0.05), center, atol=1e-9)
    for guess in rng.normal(size=(4, 3)):
        found = paths.minimum(1e-3, guess)
        least, slope = paths.energy(found, 1e-3)
        np.testing.assert_allclose(slope, 0.0, atol=1e-12)
        assert least <= paths.energy(paths.minimum(1e-3), 1e-3)[0]
        around = found + 0.02 * rng.normal(size=(50, 3))
        assert all(paths.energy(place, 1e-3)[0] > least for place in around)


def test_the_penalty_draws_the_joint_in_and_less_the_more_it_moves(rng):
    """The paper's 1/5 mm on exact data: off at a small range, good at a large one."""
    off = []
    for swing in (5.0, 10.0, 20.0, 35.0):
        T = samples.jointed(rng, 400, swing=np.radians(swing))
        bodies = samples.marker_bodies(T)
        printed = marey.fit_joints(bodies, method="distance", printed=True)
        off.append(np.linalg.norm(printed.center_a[0] - CENTER_A))
        ours = marey.fit_joints(bodies, method="distance")
        np.testing.assert_allclose(ours.center_a[0], CENTER_A, atol=1e-7)
    assert off[0] > 10.0 * MILLIMETRE
    assert off[-1] < 1.0 * MILLIMETRE
    assert (np.diff(off) < 0.0).all()


def test_the_printed_penalty_is_a_length_and_ours_is_not(rng):
    """A figure ten times as large: printed, its penalty counts a tenth."""
    T = samples.jointed(rng, 400, swing=0.2)
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
    bodies = samples.marker_bodies(samples.jointed(rng, swing=0.1), rng, MILLIMETRE)
    one = marey.fit_joints(bodies, method="distance", printed=True)
    two = marey.fit_joints(samples.swapped(bodies), method="distance", printed=True)
    assert np.linalg.norm(one.center_a - two.center_b) > MILLIMETRE
    assert one.kind == two.kind == ("ball",)


@pytest.mark.parametrize("swing", [0.1, 0.5])
def test_the_covariance_knows_of_noise_and_penalty(swing):
    """The squared error in its metric: 3 when honest, over 30 recordings."""
    nees = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        T = samples.jointed(rng, 300, swing=swing)
        bodies = samples.marker_bodies(T, rng, 0.5 * MILLIMETRE)
        fits = marey.fit_joints(bodies, method="distance")
        off = np.concatenate([fits.center_a[0] - CENTER_A, fits.center_b[0] - CENTER_B])
        for part in (slice(0, 3), slice(3, 6)):
            C = fits.covariance[0, part, part]
            nees.append(off[part] @ np.linalg.solve(C, off[part]))
    assert 1.0 < np.mean(nees) < 6.0


def test_a_body_without_axes_is_seen_from_the_other(rng):
    bodies = samples.marker_bodies(samples.jointed(rng))
    T = bodies.T_world_body.copy()
    # The second body's pose is worthless.
    T[:, 1, :3, :3] = geometry.rotation_exp(rng.normal(size=(len(T), 3)))
    soft = replace(bodies, T_world_body=T, determined=np.array([True, False]))
    fits = marey.fit_joints(soft, method="distance", alpha=0.0)
    np.testing.assert_allclose(fits.center_a[0], CENTER_A, atol=1e-7)


def test_many_frames_are_thinned_and_say_the_same(rng):
    bodies = samples.marker_bodies(samples.jointed(rng, 2000), rng, MILLIMETRE)
    all_of_it = marey.fit_joints(bodies, method="distance")
    every_fifth = samples.with_frames(bodies, slice(None, None, 5))
    part = marey.fit_joints(every_fifth, method="distance")
    np.testing.assert_allclose(all_of_it.center_a, part.center_a, atol=1e-4)


def test_sensors_have_no_distances_to_keep(rng):
    T = samples.jointed(rng)
    with pytest.raises(marey.DataError, match=r"body0, body1.*ball"):
        marey.fit_joints(samples.sensor_bodies(T), method="distance")


@pytest.mark.parametrize("option", [{"alpha": -1.0}, {"alpha": 2e3}, {"max_sd": 0.0}])
def test_options_out_of_range_are_refused(option, rng):
    bodies = samples.marker_bodies(samples.jointed(rng, 20))
    with pytest.raises(marey.OptionError, match=next(iter(option))):
        marey.fit_joints(bodies, method="distance", **option)


def test_costs_are_those_of_the_paper_and_hang_a_chain(rng):
    T = samples.jointed(rng)
    third = T[:, 1] @ geometry.transform_exp(0.3 * samples.waves(rng, len(T), 6))
    bodies = samples.marker_bodies(np.concatenate([T, third[:, None]], 1))
    fits = marey.fit_joints(bodies, method="distance", printed=True)
    cost = costs((bodies,), fits)
    assert cost.argmin() == 0
    for row, (a, b) in enumerate(fits.pair):
        back = geometry.inverse(T[:, a]) if a < 2 else geometry.inverse(third)
        worn = np.isin(bodies.marker_body, (a, b))
        seen = geometry.apply(back[:, None], bodies.take.points[:, worn])
        slow = naive_energy(seen, fits.center_a[row], 0.2 * MILLIMETRE)
        assert cost[row] == pytest.approx(slow, rel=1e-9)
