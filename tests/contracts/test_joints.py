"""Laws that every joint method obeys; one suite for all of them."""

from dataclasses import fields, replace

import joint_samples as samples
import numpy as np
import pytest
from joint_samples import CENTER_A, CENTER_B

import marey
from marey.joints import REGISTRY
from marey.numerics import geometry

METHODS = tuple(REGISTRY)
pytestmark = pytest.mark.parametrize("method", METHODS)


def noisy_pair(rng, kind="ball", n_frames=240):
    T = samples.joined_poses(rng, n_frames, kind=kind)
    return samples.marker_bodies(T, rng, noise=1e-3)


# Fields computed from neighbouring frames, or from some frames only.
FRAME_ORDER = ("averaged_residual", "averaged_noise", "looseness", "marker_spacing")


def assert_equal_fits(fits, others, atol=1e-9):
    """Assert that two fits agree in everything but the sign of axes."""
    assert fits.kind == others.kind
    for f in fields(fits):
        one, two = getattr(fits, f.name), getattr(others, f.name)
        if f.name not in ("kind", "axis_a", "axis_b", "axis_covariance", *FRAME_ORDER):
            np.testing.assert_allclose(one, two, atol=atol, rtol=1e-6, err_msg=f.name)


def test_exact_data_gives_the_true_centre(method, rng):
    for swing in (0.1, 0.4, 1.0):
        bodies = samples.marker_bodies(samples.joined_poses(rng, swing=swing))
        fits = marey.fit_joints(bodies, method=method)
        np.testing.assert_allclose(fits.center_a[0], CENTER_A, atol=1e-7)
        np.testing.assert_allclose(fits.center_b[0], CENTER_B, atol=1e-7)
        assert fits.residual[0] < 1e-7
        assert fits.kind == ("ball",)


def test_fits_have_one_complete_row_per_pair(method, rng):
    T = samples.joined_poses(rng)
    third = T[:, 1] @ geometry.transform_exp(
        0.3 * samples.smooth_signals(rng, len(T), 6)
    )
    bodies = samples.marker_bodies(np.concatenate([T, third[:, None]], 1), rng, 1e-3)
    fits = marey.fit_joints(bodies, method=method)
    assert fits.pair.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert fits.fitted.all()
    complete = ("center_a", "center_b", "residual", "distance", "spread", "covariance")
    for name in complete:
        assert np.isfinite(getattr(fits, name)).all(), name
    assert (fits.residual >= 0.0).all()
    assert (np.diff(fits.spread, axis=1) >= 0.0).all()
    assert (fits.mediated >= 1.0 - 1e-9).all()
    np.testing.assert_allclose(fits.covariance, fits.covariance.swapaxes(1, 2))
    assert (np.linalg.eigvalsh(fits.covariance) > -1e-12).all()
    hinges = np.array([kind in ("hinge", "universal") for kind in fits.kind])
    assert (np.isfinite(fits.axis_a).all(axis=1) == hinges).all()
    assert (np.isfinite(fits.axis_b).all(axis=1) == hinges).all()


def test_moving_the_world_changes_nothing(method, rng):
    bodies = noisy_pair(rng)
    T_new_world = geometry.transform(
        geometry.rotation_exp(rng.normal(size=3)), np.array([10.0, -10.0, 5.0])
    )
    before = marey.fit_joints(bodies, method=method)
    after = marey.fit_joints(samples.move_world(bodies, T_new_world), method=method)
    assert_equal_fits(after, before, atol=1e-7)


def test_time_may_run_backwards(method, rng):
    bodies = noisy_pair(rng)
    reverse = samples.select_frames(bodies, np.arange(240)[::-1])
    assert_equal_fits(
        marey.fit_joints(reverse, method=method),
        marey.fit_joints(bodies, method=method),
    )


def test_frames_of_exact_data_may_come_in_any_order(method, rng):
    bodies = samples.marker_bodies(samples.joined_poses(rng))
    permuted = samples.select_frames(bodies, rng.permutation(240))
    fits = marey.fit_joints(permuted, method=method)
    np.testing.assert_allclose(fits.center_a[0], CENTER_A, atol=1e-7)
    np.testing.assert_allclose(fits.center_b[0], CENTER_B, atol=1e-7)


def test_the_order_of_the_bodies_swaps_the_two_centres(method, rng):
    bodies = noisy_pair(rng)
    fits = marey.fit_joints(bodies, method=method)
    other = marey.fit_joints(samples.reverse_bodies(bodies), method=method)
    # Iterations may stop, and frames be weighted, slightly differently in either order.
    close = 0.1 * np.sqrt(np.linalg.eigvalsh(fits.covariance[0]).max())
    np.testing.assert_allclose(other.center_a, fits.center_b, atol=close)
    np.testing.assert_allclose(other.center_b, fits.center_a, atol=close)
    np.testing.assert_allclose(other.residual, fits.residual, atol=close)
    assert other.kind == fits.kind


def test_another_unit_of_length_scales_the_centres(method, rng):
    bodies = samples.marker_bodies(samples.joined_poses(rng))
    T = bodies.T_world_body.copy()
    T[..., :3, 3] *= 2.0
    larger = replace(
        bodies,
        take=replace(bodies.take, points=2.0 * bodies.take.points),
        T_world_body=T,
        marker_offset=2.0 * bodies.marker_offset,
        rms=2.0 * bodies.rms,
    )
    fits = marey.fit_joints(larger, method=method)
    np.testing.assert_allclose(fits.center_a[0], 2.0 * CENTER_A, atol=2e-7)
    np.testing.assert_allclose(fits.center_b[0], 2.0 * CENTER_B, atol=2e-7)


def test_occluded_frames_are_ignored(method, rng):
    bodies = noisy_pair(rng)
    occluded = rng.random((240, 2)) < 0.15
    fits = marey.fit_joints(samples.occlude(bodies, occluded), method=method)
    seen = samples.select_frames(bodies, ~occluded.any(axis=1))
    assert_equal_fits(fits, marey.fit_joints(seen, method=method), atol=1e-8)


def test_a_pair_never_seen_together_is_nan(method, rng):
    T = samples.joined_poses(rng)
    bodies = samples.marker_bodies(np.concatenate([T, T[:, :1]], axis=1))
    occluded = np.zeros((240, 3), dtype=bool)
    occluded[:120, 0] = occluded[120:, 1] = True
    fits = marey.fit_joints(samples.occlude(bodies, occluded), method=method)
    assert fits.fitted.tolist() == [False, True, True]
    for f in fields(fits):
        if f.name not in ("pair", "kind"):
            assert np.isnan(getattr(fits, f.name)[0]).all(), f.name


def test_takes_together_are_one_take(method, rng):
    bodies = noisy_pair(rng)
    parts = [
        samples.select_frames(bodies, frames)
        for frames in (slice(0, 100), slice(100, 150), slice(150, 240))
    ]
    pooled = marey.fit_joints(parts, method=method)
    assert_equal_fits(pooled, marey.fit_joints(bodies, method=method), atol=1e-9)


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_a_hinge_is_found_as_a_hinge(method, noise, rng):
    R_b_a, axis_b = samples.relative_rotations(rng, 600, 0.5, "hinge")
    T = samples.pair_poses(rng, R_b_a)
    fits = marey.fit_joints(samples.marker_bodies(T, rng, noise), method=method)
    axis_a = R_b_a[0].T @ axis_b
    assert fits.kind == ("hinge",)
    for found, true in ((fits.axis_a[0], axis_a), (fits.axis_b[0], axis_b)):
        assert np.linalg.norm(found) == pytest.approx(1.0)
        angle = np.linalg.norm(np.cross(found, true))
        assert angle < (1e-6 if noise == 0.0 else 0.02)
    assert fits.axis_a[0] @ axis_a * (fits.axis_b[0] @ axis_b) > 0.0
    off_axis = np.cross(fits.center_b[0] - CENTER_B, axis_b)
    assert np.linalg.norm(off_axis) < (1e-6 if noise == 0.0 else 2e-3)


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_two_bodies_that_move_as_one_are_fixed(method, noise, rng):
    T = samples.joined_poses(rng, 600, kind="still")
    fits = marey.fit_joints(samples.marker_bodies(T, rng, noise), method=method)
    assert fits.kind == ("fixed",)
    assert np.isfinite(fits.center_a).all()


def test_one_body_has_no_joints(method, rng):
    bodies = samples.marker_bodies(samples.joined_poses(rng)[:, :1])
    with pytest.raises(marey.DataError, match="found 1 bodies, need at least 2"):
        marey.fit_joints(bodies, method=method)


def test_takes_of_other_bodies_are_refused(method, rng):
    bodies = noisy_pair(rng)
    other = replace(bodies, names=("left", "right"))
    with pytest.raises(marey.DataError, match="left"):
        marey.fit_joints([bodies, other], method=method)


def test_an_unknown_option_is_named(method, rng):
    with pytest.raises(marey.OptionError, match="colour"):
        marey.fit_joints(noisy_pair(rng), method=method, colour="red")
