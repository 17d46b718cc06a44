"""Ball and hinge joints of 6-DoF bodies: exact, unbiased, calibrated covariance."""

import re
from dataclasses import replace

import joint_samples as samples
import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joint_samples import CENTER_A, CENTER_B

import marey
from marey.joints import (
    find_differing_takes,
    homogeneity,
    joint_findings,
    joint_residuals,
    rigid_pair,
)
from marey.joints.ball.closed_form import FREE_SD_M
from marey.joints.ball.gauss_helmert import fit_gauss_helmert
from marey.joints.ball.hinge import universal_axes
from marey.joints.ball.pair_frames import correlation_length
from marey.joints.noise import estimate_pose_noise
from marey.numerics import geometry

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
quick = settings(deadline=None, max_examples=15)
TRUE = np.concatenate([CENTER_A, CENTER_B])
LEAST_SQUARES = {"estimator": "least_squares"}


def centers(fits, row=0):
    return np.concatenate([fits.center_a[row], fits.center_b[row]])


def three_bodies(rng, n_frames=150):
    """A chain of three noisy bodies."""
    T = samples.joined_poses(rng, n_frames)
    R = geometry.rotation_exp(0.5 * samples.smooth_signals(rng, n_frames, 3))
    third = T[:, 1] @ geometry.transform(R, np.array([0.1, 0.2, -0.1]))
    return samples.add_noise(rng, np.concatenate([T, third[:, None]], axis=1))


# --- the paper's least squares -------------------------------------------------------


@given(rng=seeds, occluded=st.sampled_from([0.0, 0.3]))
@quick
def test_all_pairs_at_once_agree_with_one_at_a_time(rng, occluded):
    T = three_bodies(rng)
    T[rng.random(T.shape[:2]) < occluded] = np.nan
    fits = marey.fit_joints(samples.sensor_bodies(T), **LEAST_SQUARES)
    for row, (a, b) in enumerate(fits.pair):
        center_a, center_b, residual, spread = naive.ball_joint(T[:, a], T[:, b])
        np.testing.assert_allclose(fits.center_a[row], center_a, atol=1e-10)
        np.testing.assert_allclose(fits.center_b[row], center_b, atol=1e-10)
        np.testing.assert_allclose(fits.spread[row], spread, atol=1e-10)
        assert fits.residual[row] == pytest.approx(residual, abs=1e-10)


@given(rng=seeds)
@quick
def test_poses_may_scale_and_shear(rng):
    T = samples.joined_poses(rng)
    shear = np.eye(3) + 0.3 * rng.normal(size=(2, 3, 3))
    T[..., :3, :3] = T[..., :3, :3] @ shear
    fits = marey.fit_joints(samples.sensor_bodies(T))
    np.testing.assert_allclose(shear[0] @ fits.center_a[0], CENTER_A, atol=1e-8)
    np.testing.assert_allclose(shear[1] @ fits.center_b[0], CENTER_B, atol=1e-8)
    assert fits.residual[0] < 1e-9


@given(rng=seeds)
@quick
def test_singular_values_are_one_plus_and_minus_those_of_the_mean_rotation(rng):
    T = samples.joined_poses(rng)
    M = np.mean(T[:, 0, :3, :3].mT @ T[:, 1, :3, :3], axis=0)
    s = np.linalg.svd(M)[1]
    fits = marey.fit_joints(samples.sensor_bodies(T), **LEAST_SQUARES)
    expected = np.sqrt(np.sort(np.concatenate([1.0 - s, 1.0 + s])))
    np.testing.assert_allclose(fits.spread[0], expected, atol=1e-7)


def test_residuals_of_exact_data_are_not_lost_in_the_sums(rng):
    T = samples.joined_poses(rng)
    T[..., :3, 3] += [10.0, -10.0, 10.0]
    fits = marey.fit_joints(samples.sensor_bodies(T), **LEAST_SQUARES)
    assert fits.residual[0] < 1e-13


# --- hinges, universal joints and bodies that move as one ----------------------------


@given(rng=seeds)
@quick
def test_of_a_hinge_the_point_nearest_to_both_origins_is_given(rng):
    T = samples.pair_poses(rng, samples.relative_rotations(rng, 200, 0.4, "hinge")[0])
    fits = marey.fit_joints(samples.sensor_bodies(T))
    along = np.concatenate([fits.axis_a[0], fits.axis_b[0]])
    assert abs(centers(fits) @ along) < 1e-9
    error = centers(fits) - TRUE
    assert np.linalg.norm(error - error @ along * along / 2.0) < 1e-8
    unit = along / np.sqrt(2.0)
    assert unit @ fits.covariance[0] @ unit == pytest.approx(2.0 * FREE_SD_M**2)


def test_covariance_of_hinge_axes_is_calibrated(rng):
    square = []
    for _ in range(40):
        R_b_a, axis_b = samples.relative_rotations(rng, 500, 0.4, "hinge")
        T = samples.add_noise(rng, samples.pair_poses(rng, R_b_a))
        fits = marey.fit_joints(samples.sensor_bodies(T))
        assert fits.kind == ("hinge",)
        sign = np.sign(fits.axis_b[0] @ axis_b)
        error = np.concatenate(
            [
                sign * fits.axis_a[0] - R_b_a[0].T @ axis_b,
                sign * fits.axis_b[0] - axis_b,
            ]
        )
        square.append(
            error @ np.linalg.pinv(fits.axis_covariance[0], rcond=1e-6) @ error
        )
    assert 2.8 < np.mean(square) < 5.4  # four degrees of freedom


@pytest.mark.parametrize("correlation", [0.3, 0.6, 0.9])
def test_hinges_are_found_under_correlated_noise(correlation):
    """First-order autoregressive noise; the kinds and the covariances hold."""
    axis_square, center_square = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        R_b_a, axis_b = samples.relative_rotations(rng, 600, 0.4, "hinge")
        T = samples.pair_poses(rng, R_b_a)
        T = samples.add_correlated_noise(rng, T, correlation)
        fits = marey.fit_joints(samples.sensor_bodies(T))
        assert fits.kind == ("hinge",)
        axis = np.concatenate([R_b_a[0].T @ axis_b, axis_b])
        found = np.concatenate([fits.axis_a[0], fits.axis_b[0]])
        error = np.sign(found @ axis) * found - axis
        C = np.linalg.pinv(fits.axis_covariance[0], rcond=1e-6)
        axis_square.append(error @ C @ error / 4.0)
        across = np.linalg.svd(np.outer(axis, axis))[0][:, 1:]
        # Without the direction that is free, whose tilt would hide all others.
        C = fits.covariance[0] - np.outer(found, found) * FREE_SD_M**2
        error = across.T @ (centers(fits) - TRUE)
        C = np.linalg.inv(across.T @ C @ across)
        center_square.append(error @ C @ error / 5.0)
    assert 0.7 < np.mean(axis_square) < 1.3
    assert 0.7 < np.mean(center_square) < 1.3


@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.9])
def test_means_that_a_fit_removed_make_residuals_no_more_certain(rng, correlation):
    """The variance of a mean of n residuals, after two means were fitted to them."""
    n = 600
    noise = samples.autoregressive(rng, correlation, (n, 300, 3))
    means = np.stack([np.ones(n), np.sign(np.arange(n) - n / 2.0)]) / np.sqrt(n)
    residual = noise - np.einsum("kf,kg,gdi->fdi", means, means, noise)
    variance = [
        correlation_length(r, n_fitted_means=2) * np.mean(r**2) / n
        for r in np.moveaxis(residual, 1, 0)
    ]
    true = (1.0 + correlation) / (1.0 - correlation) / n
    assert np.mean(variance) == pytest.approx(true, rel=0.08)


def test_a_ball_joint_is_no_hinge_under_correlated_noise():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        T = samples.add_correlated_noise(rng, samples.joined_poses(rng, 600), 0.9)
        assert marey.fit_joints(samples.sensor_bodies(T)).kind == ("ball",)


def test_a_hinge_with_play_keeps_the_best_centre_and_states_its_doubt(rng):
    """A third of a degree of rotation across the axis is play of the pin."""
    axis = np.array([0.6, 0.0, 0.8])
    bend = 0.5 * samples.smooth_signals(rng, 900, 1) * axis
    play = 0.006 * samples.smooth_signals(rng, 900, 3)
    T = samples.pair_poses(rng, geometry.rotation_exp(bend + play))
    fits = marey.fit_joints(samples.sensor_bodies(T))
    assert fits.kind == ("hinge",)
    np.testing.assert_allclose(centers(fits), TRUE, atol=1e-6)
    noisy = samples.add_noise(rng, T, noise=1e-4, turn_noise=1e-4)
    fits = marey.fit_joints(samples.sensor_bodies(noisy))
    assert fits.kind == ("hinge",)
    sd = np.sqrt(fits.axis_a[0] @ fits.covariance[0, :3, :3] @ fits.axis_a[0])
    # All frames count as one: the residual over the angle of the play.
    assert 0.2 < sd / (fits.residual[0] / 0.006) < 1.0


def test_twist_makes_a_hinge_a_ball_once_it_determines_the_centre(rng):
    axis = np.array([0.6, 0.0, 0.8])
    bend = 0.5 * samples.smooth_signals(rng, 900, 1) * axis
    for twist, kind in ((0.0, "hinge"), (0.002, "hinge"), (0.1, "ball")):
        rotation = geometry.rotation_exp(
            bend + twist * samples.smooth_signals(rng, 900, 3)
        )
        T = samples.add_noise(rng, samples.pair_poses(rng, rotation))
        fits = marey.fit_joints(samples.sensor_bodies(T))
        assert (twist, fits.kind) == (twist, (kind,))


def test_the_limit_of_a_hinge_is_the_predicted_error_of_its_centre(rng):
    rotation = geometry.rotation_exp(0.02 * samples.smooth_signals(rng, 60, 3))
    T = samples.add_noise(rng, samples.pair_poses(rng, rotation), turn_noise=0.001)
    bodies = samples.sensor_bodies(T)
    fits = marey.fit_joints(bodies, **LEAST_SQUARES)
    weakest = np.linalg.eigh(fits.covariance[0])[1][:, -1]
    sd = np.sqrt(0.5 * weakest @ fits.covariance[0] @ weakest)
    below, above = (
        marey.fit_joints(bodies, max_sd=k * sd, **LEAST_SQUARES) for k in (0.9, 1.1)
    )
    assert (below.kind, above.kind) == (("hinge",), ("ball",))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise", [{}, {"noise": 2e-3, "turn_noise": 0.01}])
def test_universal_joints_have_two_axes(seed, noise):
    take = marey.synth.universal_pair(seed=seed).record(
        sensors=True, markers="none", seed=seed, **noise
    )
    fits = marey.fit_joints(marey.segment(take))
    assert fits.kind == ("universal",)
    axes = take.truth.skeleton.axes[1]
    rotations = take.truth.T_body_sensor[:, :3, :3]
    for found, axis, R in zip((fits.axis_a, fits.axis_b), axes, rotations, strict=True):
        error = np.linalg.norm(np.cross(found[0], R.T @ axis))
        assert error < (0.01 if noise else 1e-6)


def test_a_ball_joint_is_no_universal_joint(rng):
    R_a_b = geometry.rotation_exp(0.3 * samples.smooth_signals(rng, 300, 3))
    third = universal_axes([R_a_b])[2]
    assert third[0] > 0.1


@pytest.mark.parametrize("figure", [marey.synth.hinge_pair(), marey.synth.pendulum()])
def test_hinges_of_exact_mechanisms_are_exact(figure):
    take = figure.record(sensors=True, markers="none", seconds=5.0)
    bodies = marey.segment(take)
    score = marey.metrics.compare(marey.fit_joints(bodies), take, bodies=bodies)
    assert score.kinds_right == score.true == len(take.truth.edges)
    assert score.axis < 1e-6
    assert score.off_axis < 1e-9


# --- noise ---------------------------------------------------------------------------


def test_the_noise_of_sensors_is_estimated(rng):
    T = samples.add_noise(
        rng, samples.joined_poses(rng, 3000), noise=2e-3, turn_noise=0.01
    )
    T[::100, 0, :3, 3] += 0.5
    measured = estimate_pose_noise(
        [samples.sensor_bodies(T)], noise=None, turn_noise=None
    )
    np.testing.assert_allclose(np.sqrt(measured.position_variance), 2e-3, rtol=0.08)
    sd = np.sqrt(measured.rotation_covariance[:, [0, 1, 2], [0, 1, 2]])
    np.testing.assert_allclose(sd, 0.01, rtol=0.08)


def test_the_noise_of_marker_bodies_is_that_of_a_rigid_fit(rng):
    T = samples.joined_poses(rng, 4000)
    bodies = samples.marker_bodies(T, rng, noise=1e-3)
    noise = estimate_pose_noise([bodies], noise=None, turn_noise=None)
    T_true_found = geometry.inverse(T) @ bodies.T_world_body
    rotation = geometry.rotation_log(T_true_found[..., :3, :3])
    anchor = samples.MARKERS.mean(axis=0)
    displacement = geometry.apply(T_true_found, anchor) - anchor
    np.testing.assert_allclose(noise.anchor, [anchor, anchor])
    for body in range(2):
        np.testing.assert_allclose(
            noise.rotation_covariance[body],
            np.cov(rotation[:, body].T),
            atol=0.06 * noise.rotation_covariance[body].max(),
        )
        assert noise.position_variance[body] == pytest.approx(
            displacement[:, body].var(), rel=0.06
        )


def test_fast_motion_is_not_taken_for_noise(rng):
    T = samples.pair_poses(
        rng,
        geometry.rotation_exp(0.5 * samples.smooth_signals(rng, 300, 3, hertz=10.0)),
    )
    fits = marey.fit_joints(samples.sensor_bodies(T[rng.permutation(300)]))
    np.testing.assert_allclose(centers(fits), TRUE, atol=1e-9)
    assert fits.noise[0] < 1e-9


def sweep(degrees, noise_degrees, runs, n_frames=1000, **options):
    """Error over the Cramer-Rao bound, and mean normalised error squared, of a."""
    square, least, nees = [], [], []
    turn_noise, noise = np.radians(noise_degrees), 1e-3
    for run in range(runs):
        rng = np.random.default_rng([degrees, int(10 * noise_degrees), run])
        T = samples.joined_poses(rng, n_frames, np.radians(degrees))
        bodies = samples.sensor_bodies(samples.add_noise(rng, T, noise, turn_noise))
        fits = marey.fit_joints(bodies, **options)
        error = fits.center_a[0] - CENTER_A
        square.append(error @ error)
        nees.append(error @ np.linalg.solve(fits.covariance[0, :3, :3], error))
        least.append(np.trace(samples.cramer_rao_bound(T, noise, turn_noise)[:3, :3]))
    return np.sqrt(np.mean(square) / np.mean(least)), np.mean(nees)


@pytest.mark.parametrize(
    ("degrees", "noise"), [(5, 0.5), (10, 1.0), (20, 2.0), (45, 1)]
)
def test_centres_reach_the_cramer_rao_bound_and_their_covariance_is_calibrated(
    degrees, noise
):
    ratio, nees = sweep(degrees, noise, runs=24)
    assert ratio < 1.2
    assert 1.8 < nees < 4.4  # three, give or take 2.5 standard errors of 24 runs


def test_only_least_squares_is_biased_by_noisy_orientations():
    biased, _ = sweep(10, 1.0, runs=12, **LEAST_SQUARES)
    corrected, _ = sweep(10, 1.0, runs=12, estimator="corrected")
    likelihood, _ = sweep(10, 1.0, runs=12, estimator="likelihood")
    assert biased > 2.5
    assert corrected < 1.4
    assert likelihood < 1.2


def test_the_error_falls_with_the_root_of_the_frames():
    errors = []
    for n_frames in (300, 2700):
        square = []
        for run in range(24):
            rng = np.random.default_rng(run)
            T = samples.add_noise(rng, samples.joined_poses(rng, n_frames, 0.35))
            error = centers(marey.fit_joints(samples.sensor_bodies(T))) - TRUE
            square.append(error @ error)
        errors.append(np.sqrt(np.mean(square)))
    assert 2.2 < errors[0] / errors[1] < 4.2


def gauss_helmert(T, noise, turn_noise):
    R_a, C = T[:, 0, :3, :3], turn_noise**2 * np.eye(3)
    return fit_gauss_helmert(
        R_a.mT @ T[:, 1, :3, :3],
        np.einsum("fji,fj->fi", R_a, T[:, 1, :3, 3] - T[:, 0, :3, 3]),
        TRUE.copy(),
        C_a=C,
        C_b=C,
        position_variance=2 * noise**2,
        free=np.zeros((6, 0)),
        robust=False,
    )


def test_gauss_helmert_agrees_with_the_closest_exact_poses(rng):
    noise, turn_noise = 1e-4, 1e-3
    T = samples.add_noise(rng, samples.joined_poses(rng, 300)[::50], noise, turn_noise)
    found = gauss_helmert(T, noise, turn_noise)
    u = naive.closest_poses(T[:, 0], T[:, 1], turn_noise, noise, TRUE)
    sd = np.sqrt(np.diag(np.linalg.inv(found.information)))
    np.testing.assert_allclose(found.u, u, atol=0.02 * sd.min())
    least_squares = np.concatenate(naive.ball_joint(T[:, 0], T[:, 1])[:2])
    assert np.abs(least_squares - u).max() > 0.2 * sd.max()


def test_noise_across_an_arm_does_not_lengthen_it():
    lengths = []
    for run in range(30):
        rng = np.random.default_rng(run)
        T = samples.joined_poses(rng, 1000, np.radians(45.0))
        T = samples.add_noise(rng, T, 1e-3, np.radians(4.0))
        u = gauss_helmert(T, 1e-3, np.radians(4.0)).u
        lengths.append([np.linalg.norm(u[:3]), np.linalg.norm(u[3:])])
    true = [np.linalg.norm(CENTER_A), np.linalg.norm(CENTER_B)]
    error = np.std(lengths, axis=0) / np.sqrt(30)
    assert (np.abs(np.mean(lengths, axis=0) - true) < 2.5 * error).all()


# --- outlier frames ------------------------------------------------------------------


def test_outlier_frames_do_not_move_the_centre(rng):
    T = samples.add_noise(rng, samples.joined_poses(rng, 508))
    clean = marey.fit_joints(samples.sensor_bodies(T))
    bad = rng.choice(508, 6, replace=False)
    T[bad, 0, :3, 3] += rng.exponential(0.677, (6, 1)) * rng.normal(size=(6, 3))
    fits = marey.fit_joints(samples.sensor_bodies(T))
    sd = np.sqrt(np.diag(clean.covariance[0]))
    assert (np.abs(centers(fits) - centers(clean)) < 0.5 * sd).all()
    assert fits.residual[0] == pytest.approx(clean.residual[0], rel=0.08)
    not_robust = marey.fit_joints(samples.sensor_bodies(T), robust=False)
    assert np.abs(centers(not_robust) - centers(clean)).max() > 5.0 * sd.max()


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_bodies_that_rarely_move_apart_are_not_made_rigid(noise, rng):
    T = samples.joined_poses(rng, 600)
    separation = 0.1 * np.sin(np.linspace(0.0, 2 * np.pi, 60))
    T[200:260, 1, :3, 3] += separation[:, None]
    T = samples.add_noise(rng, T, noise, noise)
    fits = marey.fit_joints(samples.sensor_bodies(T), estimator="corrected")
    assert fits.residual[0] == pytest.approx(
        naive.ball_joint(T[:, 0], T[:, 1])[2], rel=0.01
    )


# --- third bodies --------------------------------------------------------------------


@pytest.mark.parametrize("occluded", [0.0, 0.2])
def test_mediation_agrees_with_nine_unknowns_one_pair_at_a_time(occluded, rng):
    T = three_bodies(rng)
    T[rng.random(T.shape[:2]) < occluded] = np.nan
    fits = marey.fit_joints(samples.sensor_bodies(T))
    for row, (a, b) in enumerate(fits.pair):
        expected = naive.mediation(T, a, b)
        assert fits.mediated[row] == pytest.approx(expected, rel=1e-4)
    assert fits.mediated[0] < 1.02 < 1.5 < fits.mediated[1]


# --- figures -------------------------------------------------------------------------


def test_joints_of_an_exact_human_are_exact():
    take = marey.synth.human(seed=1).record(
        "exercise", sensors=True, markers="none", seconds=20.0, rate=60.0
    )
    bodies = marey.segment(take)
    score = marey.metrics.compare(marey.fit_joints(bodies), take, bodies=bodies)
    assert score.found == score.true == 14
    assert score.center_max < 1e-10


# --- streams -------------------------------------------------------------------------


@given(rng=seeds, occluded=st.sampled_from([0.0, 0.2]))
@quick
def test_a_stream_gives_the_closed_form_of_the_take(rng, occluded):
    T = three_bodies(rng)
    T[rng.random(T.shape[:2]) < occluded] = np.nan
    stream = marey.JointAccumulator(3)
    for frame in T:
        stream.update(frame)
    fits = stream.fits()
    whole = marey.fit_joints(samples.sensor_bodies(T), refine=0, **LEAST_SQUARES)
    assert stream.n_frames == len(T)
    assert fits.kind == whole.kind
    for name in ("center_a", "center_b", "residual", "spread", "covariance"):
        np.testing.assert_allclose(getattr(fits, name), getattr(whole, name), atol=1e-9)
    if not occluded:
        np.testing.assert_allclose(fits.mediated, whole.mediated, rtol=1e-6)


def test_a_stream_forgets(rng):
    before, after = samples.joined_poses(rng, 400), samples.joined_poses(rng, 400)
    after[:, 0] = after[:, 0] @ geometry.transform(np.eye(3), np.array([0.03, 0, 0]))
    stream = marey.JointAccumulator(2, forgetting=0.9)
    for frame in np.concatenate([before, after]):
        stream.update(frame)
    found = stream.fits().center_a[0]
    np.testing.assert_allclose(found, CENTER_A - [0.03, 0.0, 0.0], atol=1e-6)


def test_a_stream_corrects_for_given_noise():
    bias = np.zeros((2, 6))
    for run in range(10):
        rng = np.random.default_rng(run)
        T = samples.add_noise(
            rng, samples.joined_poses(rng, 600, 0.15), turn_noise=0.02
        )
        for row, given_noise in enumerate((0.0, 0.02)):
            stream = marey.JointAccumulator(2, noise=1e-3, turn_noise=given_noise)
            for frame in T:
                stream.update(frame)
            bias[row] += (centers(stream.fits()) - TRUE) / 10
    assert np.linalg.norm(bias[1]) < 0.4 * np.linalg.norm(bias[0])


def test_a_stream_has_no_fit_for_occluded_bodies(rng):
    stream = marey.JointAccumulator(3)
    assert not stream.fits().fitted.any()
    for frame in three_bodies(rng):
        frame[2] = np.nan
        stream.update(frame)
    assert stream.fits().fitted.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("options", "word"),
    [({"forgetting": 0.0}, "forgetting"), ({"turn_noise": 2.0}, "turn_noise")],
)
def test_a_stream_checks_its_options(options, word):
    with pytest.raises(marey.OptionError, match=word):
        marey.JointAccumulator(2, **options)


def test_a_stream_needs_two_bodies_and_always_the_same_number(unchecked):
    with pytest.raises(marey.DataError, match="found 1 bodies"):
        marey.JointAccumulator(1)
    with pytest.raises(marey.DataError, match=r"need \(2, 4, 4\)"):
        marey.JointAccumulator(2).update(np.eye(4)[None])


# --- residuals, takes that differ, scale ---------------------------------------------


def test_residuals_are_differences_of_the_centres_in_the_world(rng):
    T = three_bodies(rng)
    T[3, 0] = np.nan
    bodies = samples.sensor_bodies(T)
    fits = marey.fit_joints(bodies, **LEAST_SQUARES)
    vectors = joint_residuals(bodies, fits, (0, 1))
    assert np.isnan(vectors[3]).all()
    expected = geometry.apply(T[:, 0], fits.center_a[0]) - geometry.apply(
        T[:, 1], fits.center_b[0]
    )
    np.testing.assert_allclose(vectors, expected, atol=1e-12)
    np.testing.assert_array_equal(joint_residuals(bodies, fits, (1, 0)), -vectors)
    rms = np.sqrt(np.nanmean(np.sum(vectors**2, axis=1)))
    assert rms == pytest.approx(fits.residual[0], rel=1e-9)
    with pytest.raises(marey.DataError, match="two bodies"):
        joint_residuals(bodies, fits, (0, 7))


def test_a_sensor_moved_between_takes_is_reported():
    rng = np.random.default_rng(3)
    takes = [samples.add_noise(rng, samples.joined_poses(rng, 300)) for _ in range(4)]
    same = [samples.sensor_bodies(T) for T in takes]
    test = homogeneity(same)
    assert test.p_value.shape == (4, 1)
    assert (test.p_value > 1e-3).all()
    assert find_differing_takes(same, marey.fit_joints(same), test) == ()
    slip = geometry.transform(np.eye(3), np.array([0.02, 0.0, 0.0]))
    takes[2][:, 0] = takes[2][:, 0] @ slip
    moved = [samples.sensor_bodies(T) for T in takes]
    test = homogeneity(moved)
    assert np.argmin(test.p_value[:, 0]) == 2
    assert test.displacement[2, 0] == pytest.approx(0.02, abs=2e-3)
    reported = find_differing_takes(moved, marey.fit_joints(moved), test)
    assert {f.code for f in reported} == {"take-differs"}
    assert any("take 3" in f.message for f in reported)


def test_one_take_cannot_differ(rng):
    with pytest.raises(marey.DataError, match="at least 2"):
        homogeneity([samples.sensor_bodies(samples.joined_poses(rng))])


def test_two_sensors_on_a_stick_give_the_scale_of_the_volume(rng):
    T = samples.joined_poses(rng, 2000, kind="still")
    distance = np.linalg.norm(T[0, 0, :3, 3] - T[0, 1, :3, 3])
    T[..., :3, 3] *= 1.0 / 0.94
    T = samples.add_noise(rng, T, noise=5e-3)
    found = rigid_pair(samples.sensor_bodies(T), (0, 1), distance=float(distance))
    assert found.scale == pytest.approx(0.94, rel=2e-3)
    assert found.sd == pytest.approx(0.94 * 5e-3 * np.sqrt(2.0), rel=0.08)


# --- bad input -----------------------------------------------------------------------


@pytest.mark.parametrize("n_frames", [0, 1, 2, 3, 7])
def test_few_frames_give_a_large_covariance(n_frames, rng):
    T = samples.add_noise(rng, samples.joined_poses(rng))[:n_frames]
    fits = marey.fit_joints(samples.sensor_bodies(T))
    assert fits.fitted[0] == (n_frames > 0)
    if 0 < n_frames < 3:
        assert np.linalg.eigvalsh(fits.covariance[0])[-1] > FREE_SD_M**2


def found_codes(T):
    bodies = samples.sensor_bodies(T)
    return {f.code for f in joint_findings(bodies, marey.fit_joints(bodies))}


def test_good_data_have_no_findings(rng):
    assert found_codes(three_bodies(rng)) == set()


def test_faulty_bodies_are_reported(rng):
    T = three_bodies(rng)
    still, mirrored, scaled, unseen, duplicate = (T.copy() for _ in range(5))
    still[:, 2] = still[0, 2]
    mirrored[:, 1, :3, 2] *= -1.0
    scaled[:, 1, :3, :3] *= 1.1
    unseen[:, 2] = np.nan
    duplicate[:, 2] = duplicate[:, 1]
    assert "body-still" in found_codes(still)
    assert found_codes(mirrored) == {"body-mirrored"}
    assert found_codes(scaled) == {"body-bent"}
    assert found_codes(unseen) == {"body-unseen", "pair-unseen"}
    assert "joint-still" in found_codes(duplicate)


@pytest.mark.parametrize("roll", [1, -1])
def test_a_quaternion_in_the_wrong_order_is_recognised(roll, rng):
    T = three_bodies(rng)
    wxyz = np.roll(geometry.quat_from_matrix(T[..., :3, :3]), roll, axis=-1)
    T[..., :3, :3] = geometry.matrix_from_quat(wxyz)
    bodies = samples.sensor_bodies(T)
    reported = joint_findings(bodies, marey.fit_joints(bodies))
    assert any(
        "xyzw" in f.message for f in reported if f.code == "orientations-inconsistent"
    )


def test_the_reading_that_fits_best_is_named():
    """Quaternions in another order may fit better too, but not as well."""
    figure = marey.synth.human(1.75, seed=3)
    errors = marey.synth.Corruption(noise=1e-3, turn_noise=5e-3)
    take = figure.record("walk", sensors=True, markers="none", corruption=errors)
    poses = take.T_world_sensor.copy()
    poses[..., :3, :3] = np.swapaxes(poses[..., :3, :3], -1, -2)
    bodies = samples.sensor_bodies(poses)
    reported = joint_findings(bodies, marey.fit_joints(bodies))
    (odd,) = (f for f in reported if f.code == "orientations-inconsistent")
    assert "inverted orientations" in odd.message
    assert odd.value < 5e-3


def test_a_hinge_is_reported_with_its_range(rng):
    T = samples.pair_poses(rng, samples.relative_rotations(rng, 600, 0.2, "hinge")[0])
    bodies = samples.sensor_bodies(samples.add_noise(rng, T))
    (reported,) = joint_findings(bodies, marey.fit_joints(bodies))
    assert (reported.code, reported.subject) == ("joint-free", "body0-body1")
    assert re.search("centre .*along .*: bend and twist", reported.message)
    assert re.search("1[12] deg seen", reported.message)


def test_a_weak_joint_is_reported_with_its_standard_deviation():
    rng = np.random.default_rng(1)
    T = samples.add_noise(rng, samples.joined_poses(rng, 60, 0.03), turn_noise=0.003)
    bodies = samples.sensor_bodies(T)
    fits = marey.fit_joints(bodies, noise=1e-3, turn_noise=0.003)
    (reported,) = joint_findings(bodies, fits)
    assert reported.code == "joint-weak"
    assert reported.value**2 == pytest.approx(
        np.linalg.eigvalsh(fits.covariance[0, :3, :3])[-1]
    )


def test_an_unattached_body_is_reported(rng):
    T = three_bodies(rng)
    T[:, 2, :3, 3] = samples.smooth_signals(rng, len(T), 3)
    bodies = samples.sensor_bodies(T)
    reported = joint_findings(bodies, marey.fit_joints(bodies))
    assert [f.subject for f in reported if f.code == "body-loose"] == ["body2"]


def test_a_body_of_markers_without_a_joint_is_no_error(rng):
    """Two things of their own: nothing was misread, and they do not move as one."""
    figures = [marey.synth.prop(), marey.synth.prop(0.4)]
    motions = [f.perform("swing", seconds=4.0, seed=k) for k, f in enumerate(figures)]
    place = motions[1].T_world_root.copy()
    place[:, :3, 3] += samples.smooth_signals(rng, len(place), 3)
    motions[1] = replace(motions[1], T_world_root=place)
    take = marey.synth.capture(figures, motions, names=("A", "B"), markers=6)
    solution = marey.solve(take)
    separate = [f for f in solution.report.findings if f.code == "body-separate"]
    assert len(separate) == len(solution.subjects) == 2
    assert {f.severity for f in separate} == {"info"}
    other = {f.code for f in solution.report.findings}
    assert not other & {"body-loose", "joint-still"}


def test_long_takes_are_summed_in_pieces(rng):
    T = np.tile(samples.joined_poses(rng, 2000), (10, 1, 1, 1))
    fits = marey.fit_joints(samples.sensor_bodies(T), refine=0)
    np.testing.assert_allclose(centers(fits), TRUE, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("estimator", "magic"),
        ("noise", -1.0),
        ("turn_noise", 2.0),
        ("max_sd", 0.0),
        ("refine", -1),
    ],
)
def test_options_out_of_range_are_refused(name, value, rng, unchecked):
    bodies = samples.sensor_bodies(samples.joined_poses(rng))
    with pytest.raises(marey.OptionError, match=name):
        marey.fit_joints(bodies, **{name: value})


def test_undetermined_bodies_are_fitted_too(rng):
    bodies = samples.marker_bodies(samples.joined_poses(rng), rng, noise=1e-3)
    undetermined = replace(bodies, determined=np.array([True, False]))
    fits = marey.fit_joints(undetermined)
    np.testing.assert_allclose(centers(fits), TRUE, atol=5e-3)
