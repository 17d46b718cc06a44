"""Joints from the paths of markers: spheres, circles, and what is neither."""

from dataclasses import replace
from typing import Literal

import joint_samples as samples
import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey.errors import OptionError
from marey.joints import SphereAccumulator, fit_joints, fit_sphere, joint_findings
from marey.numerics import geometry
from marey.papers.joint_samples import cramer_rao_bound_of_markers
from marey.segmentation import segment

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
quick = settings(deadline=None, max_examples=12)
ESTIMATORS: tuple[Literal["kasa", "corrected", "geometric"], ...]
ESTIMATORS = ("kasa", "corrected", "geometric")


def on_ball(rng, n_frames, *, swing=0.5, n_markers=1, noise=0.0, center=None):
    """Markers that rotate about a point by rotation vectors of size `swing` rms."""
    center = rng.normal(size=3) if center is None else center
    arms = rng.normal(size=(n_markers, 3))
    R = geometry.rotation_exp(swing * rng.normal(size=(n_frames, 3)))
    points = center + np.einsum("fij,mj->fmi", R, arms)
    return points + noise * rng.normal(size=points.shape), center, arms


def on_hinge(rng, n_frames, *, reach=1.0, n_markers=1, noise=0.0):
    """Markers that rotate about an axis by angles up to `reach`."""
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    center, arms = rng.normal(size=3), rng.normal(size=(n_markers, 3))
    R = geometry.rotation_exp(rng.uniform(-reach, reach, (n_frames, 1)) * axis)
    points = center + np.einsum("fij,mj->fmi", R, arms)
    return points + noise * rng.normal(size=points.shape), center, axis, arms


def on_cap(rng, n_frames, half_angle, noise):
    """Points spread evenly over a cap of the unit sphere about the origin."""
    z = rng.uniform(np.cos(half_angle), 1.0, n_frames)
    angle = rng.uniform(0.0, 2.0 * np.pi, n_frames)
    flat = np.sqrt(1.0 - z**2)
    points = np.stack([flat * np.cos(angle), flat * np.sin(angle), z], axis=-1)
    return points + noise * rng.normal(size=points.shape)


# --- exact data -----------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
@given(rng=seeds, n_frames=st.integers(12, 80), n_markers=st.integers(1, 4))
@quick
def test_exact_positions_give_the_exact_centre(estimator, rng, n_frames, n_markers):
    swing = rng.uniform(0.1, 2.0)
    points, center, arms = on_ball(rng, n_frames, swing=swing, n_markers=n_markers)
    sphere = fit_sphere(points, estimator=estimator, kind="ball")
    size = np.linalg.norm(arms, axis=-1).max()
    np.testing.assert_allclose(sphere.center, center, atol=1e-8 * size)
    np.testing.assert_allclose(
        sphere.radius, np.linalg.norm(arms, axis=-1), atol=1e-8 * size
    )
    assert sphere.noise < 1e-6 * size


@pytest.mark.parametrize("estimator", ESTIMATORS)
@given(rng=seeds, n_markers=st.integers(1, 4), reach=st.floats(0.3, 3.0))
@quick
def test_exact_circles_give_axis_and_distance(estimator, rng, n_markers, reach):
    points, center, axis, arms = on_hinge(rng, 60, reach=reach, n_markers=n_markers)
    sphere = fit_sphere(points, estimator=estimator)
    assert sphere.kind == "hinge"
    assert abs(sphere.axis @ axis) == pytest.approx(1.0, abs=1e-9)
    error = sphere.center - center
    np.testing.assert_allclose(error, (error @ axis) * axis, atol=1e-6)
    radius = np.linalg.norm(np.cross(arms, axis), axis=-1)
    np.testing.assert_allclose(sphere.radius, radius, atol=1e-6)


@given(rng=seeds)
@quick
def test_four_positions_are_enough(rng):
    points, center, _ = on_ball(rng, 4, swing=1.0)
    sphere = fit_sphere(points[:, 0], estimator="kasa", kind="ball")
    worst = np.linalg.cond(points[1:, 0] - points[0, 0]) ** 2
    assert np.linalg.norm(sphere.center - center) < 1e-12 * worst


# --- agreement and invariance ---------------------------------------------------------


@given(rng=seeds)
@quick
def test_the_kasa_estimator_is_the_linear_least_squares(rng):
    points, _, _ = on_ball(rng, 50, noise=0.05)
    points[rng.random(50) < 0.2] = np.nan
    sphere = fit_sphere(points, estimator="kasa", kind="ball")
    np.testing.assert_allclose(
        sphere.center, naive.sphere_center(points[:, 0]), atol=1e-9
    )


@given(rng=seeds)
@quick
def test_no_centre_has_less_scatter_of_squared_distances(rng):
    points, _, _ = on_ball(rng, 40, noise=0.1)
    best = fit_sphere(points, estimator="kasa", kind="ball").center
    least = naive.radius_variance(points[:, 0], best)
    for step in rng.normal(size=(8, 3)) * 1e-3:
        assert naive.radius_variance(points[:, 0], best + step) > least


@pytest.mark.parametrize("estimator", ESTIMATORS)
@given(rng=seeds, scale=st.floats(1e-3, 1e3))
@quick
def test_centres_follow_rotation_translation_and_scale(estimator, rng, scale):
    points, _, _ = on_ball(rng, 60, swing=0.4, n_markers=3, noise=0.01)
    before = fit_sphere(points, estimator=estimator)
    R = geometry.rotation_exp(rng.normal(size=3))
    translation = rng.normal(size=3)
    after = fit_sphere(scale * (points @ R.T + translation), estimator=estimator)
    assert after.kind == before.kind
    np.testing.assert_allclose(
        after.center,
        scale * (R @ before.center + translation),
        rtol=1e-6,
        atol=1e-6 * scale,
    )
    assert after.noise == pytest.approx(scale * before.noise, rel=1e-5)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@given(rng=seeds)
@quick
def test_the_order_of_frames_and_markers_does_not_matter(estimator, rng):
    points, _, _ = on_ball(rng, 50, n_markers=3, noise=0.01)
    points[rng.random((50, 3)) < 0.1] = np.nan
    before = fit_sphere(points, estimator=estimator)
    permuted = points[rng.permutation(50)][:, [2, 0, 1]]
    after = fit_sphere(permuted, estimator=estimator)
    np.testing.assert_allclose(after.center, before.center, atol=1e-9)
    np.testing.assert_allclose(after.radius, before.radius[[2, 0, 1]], atol=1e-9)


@pytest.mark.parametrize("estimator", ["kasa", "corrected"])
@given(rng=seeds, cut=st.integers(0, 60))
@quick
def test_accumulated_moments_give_the_fit_of_all_positions(estimator, rng, cut):
    points, _, _ = on_ball(rng, 60, swing=0.4, n_markers=2, noise=0.01)
    points[rng.random((60, 2)) < 0.2] = np.nan
    accumulator = SphereAccumulator(n_markers=2)
    for part in (points[cut:], points[:cut]):
        accumulator.update(part)
    whole = fit_sphere(points, estimator=estimator)
    fit = accumulator.fit(estimator=estimator)
    assert fit.kind == whole.kind
    np.testing.assert_allclose(fit.center, whole.center, atol=1e-9)
    np.testing.assert_allclose(fit.radius, whole.radius, atol=1e-9)


# --- noise ----------------------------------------------------------------------------


@pytest.mark.parametrize(("degrees", "noise"), [(20, 0.01), (30, 0.03), (60, 0.03)])
def test_a_cap_biases_only_the_kasa_estimator(rng, degrees, noise):
    error = {}
    for estimator in ESTIMATORS:
        fits = [
            fit_sphere(
                on_cap(rng, 1000, np.radians(degrees), noise), estimator=estimator
            )
            for _ in range(12)
        ]
        error[estimator] = np.linalg.norm(np.mean([f.center for f in fits], axis=0))
    assert error["kasa"] > 3.0 * error["corrected"]
    assert error["kasa"] > 3.0 * error["geometric"]


@pytest.mark.parametrize("estimator", ["corrected", "geometric"])
def test_covariance_is_calibrated(rng, estimator):
    squares, model = [], []
    for _ in range(120):
        points = on_cap(rng, 200, np.radians(45), 0.01)
        sphere = fit_sphere(points, estimator=estimator)
        squares.append(
            sphere.center @ np.linalg.solve(sphere.covariance, sphere.center)
        )
        accumulator = SphereAccumulator()
        accumulator.update(points)
        sphere = accumulator.fit()
        model.append(sphere.center @ np.linalg.solve(sphere.covariance, sphere.center))
    assert 2.4 < np.mean(squares) < 3.6
    assert 2.4 < np.mean(model) < 3.6


def test_correlated_noise_widens_the_covariance(rng):
    """Noise held for ten frames leaves a tenth of the data: errors grow by sqrt(10)."""
    squares = []
    for _ in range(60):
        points = on_cap(rng, 3000, np.radians(60), 0.0)
        points += np.repeat(0.01 * rng.normal(size=(300, 3)), 10, axis=0)
        sphere = fit_sphere(points)
        squares.append(
            sphere.center @ np.linalg.solve(sphere.covariance, sphere.center)
        )
    assert 2.0 < np.mean(squares) < 4.5


def test_markers_that_disagree_widen_the_covariance(rng):
    """One of five markers slides with the rotation: single frames do not show it."""
    points, center, _ = on_ball(rng, 1000, swing=0.3, n_markers=5, noise=1e-3)
    consistent = np.trace(fit_sphere(points).covariance)
    points[:, 0] += 0.05 * (points[:, 1] - points[:, 1].mean(axis=0))
    sphere = fit_sphere(points)
    error = sphere.center - center
    assert np.trace(sphere.covariance) > 10.0 * consistent
    assert error @ np.linalg.solve(sphere.covariance, error) < 12.0


@given(rng=seeds, noise=st.floats(0.002, 0.02))
@settings(deadline=None, max_examples=10)
def test_noise_is_estimated_and_subtracted_from_the_radius(rng, noise):
    points = on_cap(rng, 4000, np.radians(90), noise)
    for estimator in ESTIMATORS:
        sphere = fit_sphere(points, estimator=estimator)
        assert sphere.noise == pytest.approx(noise, rel=0.1)
    corrected = fit_sphere(points, estimator="corrected")
    assert corrected.radius[0] == pytest.approx(1.0, abs=10.0 * noise / np.sqrt(4000))


# --- what kind of motion --------------------------------------------------------------


@pytest.mark.parametrize("noise", [1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("n_markers", [1, 3])
def test_the_kind_of_motion_is_tested_against_the_noise(rng, noise, n_markers):
    ball = on_ball(rng, 400, n_markers=n_markers, noise=noise)[0]
    hinge = on_hinge(rng, 400, n_markers=n_markers, noise=noise)[0]
    at_rest = rng.normal(size=(n_markers, 3)) + noise * rng.normal(
        size=(400, n_markers, 3)
    )
    kinds = [fit_sphere(points).kind for points in (ball, hinge, at_rest)]
    assert kinds == ["ball", "hinge", "fixed"]


def test_a_small_cap_is_no_hinge_though_it_is_flat(rng):
    assert fit_sphere(on_cap(rng, 2000, np.radians(10), 0.01)).kind == "ball"


def test_a_pin_with_play_is_a_hinge(rng):
    """A third of a degree of play, five times the noise."""
    points, center, axis, _ = on_hinge(rng, 800, n_markers=5, noise=1e-3)
    tilt = geometry.rotation_exp(np.radians(0.2) * rng.normal(size=(800, 3)))
    points = center + np.einsum("fij,fmj->fmi", tilt, points - center)
    sphere = fit_sphere(points)
    assert sphere.kind == "hinge"
    assert abs(sphere.axis @ axis) > 0.9999


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        (np.zeros((0, 3)), "0 positions"),
        (np.eye(3), "3 positions"),
        (np.full((9, 3), np.nan), "0 positions"),
        (np.full((9, 3), np.inf), "0 positions"),
        (np.full((9, 3), 1.7), "coincide"),
        (np.full((9, 3), 1e200) * np.arange(9)[:, None], "too large"),
        (np.linspace(0.0, 1.0, 30)[:, None] * np.ones(3), "too small"),
        (np.zeros((9, 0, 3)), "0 positions"),
    ],
    ids=["none", "three", "unseen", "infinite", "one place", "vast", "line", "markers"],
)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_missing_centres_have_a_reason(points, reason, estimator):
    sphere = fit_sphere(points, estimator=estimator)
    assert reason in sphere.reason
    assert sphere.kind == "fixed"
    assert np.isnan(sphere.center).all()
    assert np.isnan(sphere.covariance).all()


def test_a_marker_never_seen_changes_nothing_but_its_radius(rng):
    points, _, _ = on_ball(rng, 50, n_markers=2, noise=0.01)
    without = fit_sphere(points)
    points = np.concatenate([points, np.full((50, 1, 3), np.nan)], axis=1)
    sphere = fit_sphere(points)
    np.testing.assert_allclose(sphere.center, without.center, atol=1e-12)
    assert np.isnan(sphere.radius[2])


def test_a_hundred_thousand_positions(rng):
    points, center, _ = on_ball(rng, 100_000, noise=0.01)
    sphere = fit_sphere(points)
    error = sphere.center - center
    assert error @ np.linalg.solve(sphere.covariance, error) < 25.0


def test_unknown_options_are_named(unchecked):
    with pytest.raises(OptionError, match="estimator: found 'best'"):
        fit_sphere(np.eye(3), estimator="best")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="kind: found 'knee'"):
        fit_sphere(np.eye(3), kind="knee")  # type: ignore[arg-type]


# --- joints between bodies ------------------------------------------------------------


def record_bodies(figure, *, keep=None, **options):
    """A recording and its bodies by the true map, `keep` markers on some bodies."""
    take = figure.record(**{"rate": 60.0, "seconds": 8.0, "markers": 4} | options)
    joint = take.truth.marker_joint
    names = figure.skeleton.names
    of_body = {names[b]: np.flatnonzero(joint == b) for b in figure.bodies}
    template = {
        name: [take.labels[i] for i in markers[: (keep or {}).get(name)]]
        for name, markers in of_body.items()
    }
    return take, segment(take, method="template", template=template)


def distances_from_true_joint(take, bodies, fits, pair):
    """Distances of both centres of a pair from the true joint, over all frames."""
    row = fits.pair.tolist().index(list(pair[:2]))
    joint = take.truth.motion.T_world_joint()[:, pair[2], :3, 3]
    T = bodies.T_world_body
    a = geometry.apply(T[:, pair[0]], fits.center_a[row]) - joint
    b = geometry.apply(T[:, pair[1]], fits.center_b[row]) - joint
    return np.linalg.norm(a, axis=-1), np.linalg.norm(b, axis=-1), row


@pytest.mark.parametrize(
    ("figure", "estimator"),
    [("linkage", "kasa"), ("linkage", "corrected"), ("snowman", "geometric")],
)
def test_exact_markers_give_every_joint(figure, estimator):
    figure = getattr(marey.synth, figure)()
    take, bodies = record_bodies(figure, motion="exercise", rate=20.0)
    fits = fit_joints(bodies, method="gdke", estimator=estimator)
    for edge in take.truth.edges:
        a, b, row = distances_from_true_joint(take, bodies, fits, edge)
        assert max(a.max(), b.max()) < 1e-8
        assert fits.residual[row] < 1e-8
        assert fits.kind[row] == "ball"


@pytest.mark.parametrize("sensors", [False, True], ids=["markers", "sensors"])
def test_a_hinge_is_found_in_both_bodies(sensors):
    figure = marey.synth.hinge_pair(seed=3)
    if sensors:
        take = figure.record(rate=60.0, markers="none", sensors=True)
        bodies = segment(take)
    else:
        take, bodies = record_bodies(figure)
    fits = fit_joints(bodies, method="gdke")
    assert fits.kind == ("hinge",)
    assert fits.residual[0] < 1e-8
    truth = take.truth.T_world_body()
    axis = truth[:, 1, :3, :3] @ figure.skeleton.axes[1, 0]
    for side, name in enumerate(("axis_a", "axis_b")):
        R = bodies.T_world_body[:, side, :3, :3]
        along = np.sum(axis * (R @ getattr(fits, name)[0]), axis=-1)
        np.testing.assert_allclose(np.abs(along), 1.0, atol=1e-9)
    joint = take.truth.motion.T_world_joint()[:, 1, :3, 3]
    error = geometry.apply(bodies.T_world_body[:, 0], fits.center_a[0]) - joint
    np.testing.assert_allclose(
        np.linalg.norm(np.cross(error, axis), axis=-1), 0, atol=1e-8
    )


def test_sensors_are_single_markers():
    take = marey.synth.linkage().record(rate=60.0, markers="none", sensors=True)
    bodies = segment(take)
    fits = fit_joints(bodies, method="gdke")
    for edge in take.truth.edges:
        a, b, row = distances_from_true_joint(take, bodies, fits, edge)
        assert max(a.max(), b.max(), fits.residual[row]) < 1e-8


def test_a_sensor_in_the_joint_itself_is_its_centre():
    """As in takes read from BVH: the child's origin never moves in the parent."""
    figure = marey.synth.linkage()
    motion = figure.perform(rate=60.0)
    take = marey.Take(
        rate=60.0,
        T_world_sensor=motion.T_world_joint()[:, figure.bodies],
        sensor_names=tuple(figure.skeleton.names[b] for b in figure.bodies),
    )
    fits = fit_joints(segment(take), method="gdke")
    row = fits.pair.tolist().index([0, 1])
    assert fits.kind[row] == "ball"
    np.testing.assert_allclose(fits.center_b[row], 0.0, atol=1e-9)
    offset = figure.skeleton.offset[figure.bodies[1]]
    np.testing.assert_allclose(fits.center_a[row], offset, atol=1e-9)


def test_gdke_and_ball_agree_on_exact_markers():
    _, bodies = record_bodies(marey.synth.linkage(), motion="exercise")
    gdke, ball = (fit_joints(bodies, method=method) for method in ("gdke", "ball"))
    joined = ball.residual < 1e-6
    assert joined.sum() == 5
    for name in ("center_a", "center_b", "distance"):
        np.testing.assert_allclose(
            getattr(gdke, name)[joined], getattr(ball, name)[joined], atol=1e-6
        )
    np.testing.assert_allclose(gdke.spread, ball.spread, atol=1e-6)
    np.testing.assert_allclose(gdke.mediated, ball.mediated, rtol=1e-6)


@pytest.mark.parametrize("count", [1, 2])
def test_a_body_of_few_markers_gives_the_centre_in_the_other(count):
    figure = marey.synth.linkage()
    take, bodies = record_bodies(figure, keep={"Head": count})
    fits = fit_joints(bodies, method="gdke")
    assert bodies.determined.tolist() == [name != "Head" for name in bodies.names]
    a, b, row = distances_from_true_joint(take, bodies, fits, take.truth.edges[0])
    assert a.max() < 1e-8
    assert fits.residual[row] < 1e-8
    assert np.isfinite(fits.noise[row])
    # In the body without axes it is where the joint is on average: the scatter of the
    # joint in the poses of that body, which its covariance states.
    scatter = np.trace(fits.covariance[row][3:, 3:])
    assert np.mean(b**2) == pytest.approx(scatter, rel=1e-3)


def test_two_bodies_without_axes_are_joined_in_the_poses_of_segmentation():
    _, bodies = record_bodies(
        marey.synth.linkage(), keep={"LeftUpperArm": 1, "LeftLowerArm": 2}
    )
    fits = fit_joints(bodies, method="gdke")
    assert (~bodies.determined[fits.pair].any(axis=1)).sum() == 1
    assert fits.fitted.all()
    for column in (fits.center_a, fits.center_b, fits.mediated, fits.covariance):
        assert np.isfinite(column).all()


def test_bodies_that_never_move_apart_are_fixed(rng):
    points, _, _ = on_ball(rng, 50, swing=1.0, n_markers=8, noise=1e-4)
    take = marey.Take(rate=60.0, points=points, labels=tuple("abcdefgh"))
    bodies = segment(
        take, method="template", template={"A": list("abcd"), "B": list("efgh")}
    )
    fits = fit_joints(bodies, method="gdke")
    assert fits.kind == ("fixed",)
    assert fits.residual[0] < 1e-3
    assert np.isnan(fits.axis_a).all()


def test_a_pair_never_seen_together_is_unknown():
    take, bodies = record_bodies(marey.synth.hinge_pair())
    T = bodies.T_world_body.copy()
    T[:200, 0], T[200:, 1] = np.nan, np.nan
    points = take.points.copy()
    points[:200, bodies.marker_body == 0] = np.nan
    points[200:, bodies.marker_body == 1] = np.nan
    occluded = replace(bodies, take=replace(take, points=points), T_world_body=T)
    fits = fit_joints(occluded, method="gdke")
    assert not fits.fitted[0]
    assert np.isnan(fits.center_a).all()
    assert np.isnan(fits.noise).all()


def test_takes_pool_whatever_axes_their_bodies_have():
    figure = marey.synth.linkage()
    first, bodies = record_bodies(figure, motion="swing", seed=1)
    _, other = record_bodies(figure, motion="exercise", seed=1)
    T = geometry.transform(
        geometry.rotation_exp(np.array([0.3, -1.0, 0.5])), np.ones(3)
    )
    other_axes = replace(
        other,
        T_world_body=other.T_world_body @ geometry.inverse(T),
        marker_offset=geometry.apply(T, other.marker_offset),
    )
    fits = fit_joints([bodies, other_axes], method="gdke")
    for edge in first.truth.edges:
        a, b, row = distances_from_true_joint(first, bodies, fits, edge)
        assert max(a.max(), b.max(), fits.residual[row]) < 1e-8


def hip(rng, *, swing, noise, n_frames=1000):
    """Pelvis and thigh of four markers each, and their true offsets from the hip."""
    pelvis = np.array(
        [[210, 60, 110], [-30, 60, 110], [200, -90, 120], [-20, -90, 120]]
    )
    thigh = np.array(
        [[60, 40, -150], [-50, 60, -220], [40, -60, -300], [-30, 30, -380]]
    )
    offsets = 1e-3 * np.stack([pelvis, thigh])
    R = geometry.rotation_exp(0.4 * rng.normal(size=(n_frames, 3)))
    joint = rng.normal(size=(n_frames, 3))
    R_hip = geometry.rotation_exp(swing * rng.normal(size=(n_frames, 3)) * [1, 1, 0.5])
    points = np.concatenate(
        [
            np.einsum("fij,mj->fmi", R_body, offsets)
            for R_body, offsets in zip((R, R @ R_hip), offsets, strict=True)
        ],
        axis=1,
    )
    points += joint[:, None] + noise * rng.normal(size=points.shape)
    labels = tuple(f"{body}{i}" for body in "PT" for i in range(4))
    take = marey.Take(rate=100.0, points=points, labels=labels)
    template = {"pelvis": ["P*"], "thigh": ["T*"]}
    return segment(take, method="template", template=template), offsets


def hip_errors(rng, runs, **options):
    """Rms error of both centres over the Cramer-Rao bound, and mean NEES.

    A body's axes are as accurate as its marker offsets: the true joint in them follows
    from the rigid fit of the true offsets to the estimated ones. The mean over frames
    of the joint in the body's noisy poses would share their noise with the answer.
    """
    errors, squares = [], []
    for _ in range(runs):
        bodies, offsets = hip(rng, **options)
        fits = fit_joints(bodies, method="gdke")
        found = bodies.marker_offset.reshape(2, 4, 3)
        true = geometry.kabsch(offsets, found)[:, :3, 3]
        for side, center in enumerate((fits.center_a[0], fits.center_b[0])):
            error = center - true[side]
            C = fits.covariance[0][3 * side : 3 * side + 3, 3 * side : 3 * side + 3]
            errors.append(error)
            squares.append(error @ np.linalg.solve(C, error))
    C = cramer_rao_bound_of_markers(
        bodies.T_world_body, offsets, np.zeros((2, 3)), options["noise"]
    )
    rms = np.sqrt(np.mean(np.sum(np.square(errors), axis=1)))
    return rms / np.sqrt(0.5 * np.trace(C)), np.mean(squares)


@pytest.mark.parametrize(("degrees", "noise"), [(5, 1e-3), (10, 3e-3), (20, 1e-3)])
def test_a_hip_of_small_range_and_noisy_axes(rng, degrees, noise):
    """The error is at the Cramer-Rao bound and the covariance is calibrated.

    40 runs scatter by 8 % of the error and by 0.39 of the NEES, which should be 3;
    `marey papers knight2007` has a hundred runs of twelve such cells.
    """
    swing = np.radians(degrees)
    ratio, square = hip_errors(rng, 40, swing=swing, noise=noise, n_frames=300)
    assert 0.8 < ratio < 1.2
    assert 2.2 < square < 3.8


def test_the_joint_residual_helps_where_the_range_is_small(rng):
    """Radii alone double the error of a hip of five degrees."""
    error = {"corrected": [], "geometric": []}
    for _ in range(10):
        bodies, offsets = hip(rng, swing=np.radians(5), noise=1e-3, n_frames=300)
        true = geometry.kabsch(offsets[0], bodies.marker_offset[:4])[:3, 3]
        for estimator, errors in error.items():
            fits = fit_joints(bodies, method="gdke", estimator=estimator)
            errors.append(np.sum((fits.center_a[0] - true) ** 2))
    assert np.sum(error["geometric"]) < 0.6 * np.sum(error["corrected"])


def hinged_bodies(rng, *, noise, n_frames=300):
    """Two bodies of four markers on a pin along z, and their offsets."""
    offsets = rng.normal(size=(2, 4, 3)) * [0.15, 0.15, 0.1] + [0.2, 0.0, 0.0]
    R = geometry.rotation_exp(0.4 * rng.normal(size=(n_frames, 3)))
    about = 0.5 * rng.normal(size=(n_frames, 1)) * [0.0, 0.0, 1.0]
    T = geometry.transform(
        np.stack([R, R @ geometry.rotation_exp(about)], axis=1),
        rng.normal(size=(n_frames, 1, 3)),
    )
    points = geometry.apply(T[:, :, None], offsets)
    points = points + noise * rng.normal(size=points.shape)
    labels = tuple(f"{body}{i}" for body in "AB" for i in range(4))
    take = marey.Take(rate=100.0, points=points.reshape(n_frames, 8, 3), labels=labels)
    return segment(
        take, method="template", template={"A": ["A*"], "B": ["B*"]}
    ), offsets


def test_covariance_of_a_hinge_axis_is_calibrated(rng):
    """An axis has two degrees of freedom: the mean NEES is 2."""
    squares = []
    for _ in range(40):
        bodies, offsets = hinged_bodies(rng, noise=1e-3)
        fits = fit_joints(bodies, method="gdke")
        assert fits.kind == ("hinge",)
        R = geometry.kabsch(offsets, bodies.marker_offset.reshape(2, 4, 3))[:, :3, :3]
        for side, axis in enumerate((fits.axis_a[0], fits.axis_b[0])):
            true = R[side, :, 2] * np.sign(axis @ R[side, :, 2])
            block = slice(3 * side, 3 * side + 3)
            C = fits.axis_covariance[0][block, block]
            error = axis - true
            squares.append(error @ np.linalg.pinv(C, rcond=1e-6) @ error)
    assert 1.4 < np.mean(squares) < 2.7


@pytest.mark.parametrize("estimator", ["corrected", "geometric"])
def test_covariance_of_a_circle_axis_is_calibrated(rng, estimator):
    squares, model = [], []
    for _ in range(80):
        points, _, axis, _ = on_hinge(rng, 200, n_markers=2, noise=0.01)
        sphere = fit_sphere(points, estimator=estimator)
        accumulator = SphereAccumulator(2)
        accumulator.update(points)
        for fit, kept in ((sphere, squares), (accumulator.fit(), model)):
            error = fit.axis - axis * np.sign(axis @ fit.axis)
            C = np.linalg.pinv(fit.axis_covariance, rcond=1e-6)
            kept.append(error @ C @ error)
    assert 1.5 < np.mean(squares) < 2.6
    assert 1.5 < np.mean(model) < 2.6


def test_an_axis_that_was_given_or_is_none_has_no_covariance(rng):
    points, _, axis, _ = on_hinge(rng, 100, noise=0.01)
    given_axis = fit_sphere(points, kind="hinge", axis=axis)
    ball = fit_sphere(on_ball(rng, 100, noise=0.01)[0])
    for sphere in (given_axis, ball):
        assert np.isnan(sphere.axis_covariance).all()


@pytest.mark.parametrize("n_markers", [1, 3])
@pytest.mark.parametrize("n_frames", [50, 200, 1000])
def test_markers_at_rest_show_no_joint(rng, n_markers, n_frames):
    """Noise of any size is hardly ever taken for motion."""
    kinds = [
        fit_sphere(rng.normal(size=(n_frames, n_markers, 3))).kind for _ in range(60)
    ]
    assert kinds.count("fixed") >= 58


# --- bad input ------------------------------------------------------------------------


def segment_two_bodies(points):
    take = marey.Take(rate=30.0, points=points, labels=tuple("abcdefgh"))
    names = {"A": list("abcd"), "B": list("efgh")}
    return segment(take, method="template", template=names)


def rotating_bodies(rng, n_frames):
    """Two bodies of four markers that rotate about the same point."""
    parts = [on_ball(rng, n_frames, swing=1.0, n_markers=4, center=np.zeros(3))[0]]
    parts += [on_ball(rng, n_frames, swing=1.0, n_markers=4, center=np.zeros(3))[0]]
    return np.concatenate(parts, axis=1)


@pytest.mark.parametrize("n_frames", [1, 2, 3])
def test_fewer_than_four_positions_are_no_joint(rng, n_frames):
    bodies = segment_two_bodies(rotating_bodies(rng, n_frames))
    fits = fit_joints(bodies, method="gdke")
    assert not fits.fitted[0]
    assert [f.code for f in joint_findings(bodies, fits)] == ["pair-unseen"]


def test_markers_on_a_line_give_the_centre_in_the_other(rng):
    points = rotating_bodies(rng, 200)
    line = points[:, :1] + np.arange(4)[:, None] * (points[:, 1:2] - points[:, :1])
    points[:, :4] = line
    bodies = segment_two_bodies(points)
    fits = fit_joints(bodies, method="gdke")
    np.testing.assert_allclose(
        geometry.apply(bodies.T_world_body[:, 1], fits.center_b[0]), 0.0, atol=1e-7
    )
    assert np.isfinite(fits.center_a).all()
    assert np.isfinite(fits.covariance).all()
    joint_findings(bodies, fits)


def test_a_body_that_is_never_seen_is_reported(rng):
    points = rotating_bodies(rng, 50)
    points[:, :4] = np.nan
    bodies = segment_two_bodies(points)
    fits = fit_joints(bodies, method="gdke")
    assert not fits.fitted[0]
    assert {f.code for f in joint_findings(bodies, fits)} == {
        "body-unseen",
        "pair-unseen",
    }


def test_identical_frames_are_fixed(rng):
    bodies = segment_two_bodies(np.repeat(rotating_bodies(rng, 1), 50, axis=0))
    fits = fit_joints(bodies, method="gdke")
    assert fits.kind == ("fixed",)
    assert "joint-still" in {f.code for f in joint_findings(bodies, fits)}


def test_bodies_rarely_posed_together_are_fitted_separately(rng):
    """In the frames of either pose, only one marker of the other body is seen."""
    points = rotating_bodies(rng, 60)
    points[:30, 5:] = np.nan
    points[30:, 1:4] = np.nan
    fits = fit_joints(segment_two_bodies(points), method="gdke")
    assert fits.fitted[0]
    assert np.isfinite(fits.covariance[0, :3, :3]).all()
    assert np.isfinite(fits.covariance[0, 3:, 3:]).all()
    assert np.isnan(fits.spread).all()


def test_unknown_options_of_the_fit_are_named(unchecked):
    _, bodies = record_bodies(marey.synth.hinge_pair(), seconds=1.0)
    with pytest.raises(OptionError, match="estimator: found 'best'"):
        fit_joints(bodies, method="gdke", estimator="best")
    with pytest.raises(OptionError, match="robust: found True, need one of estimator"):
        fit_joints(bodies, method="gdke", robust=True)


@pytest.mark.parametrize("turn_noise", [0.0, 0.01])
def test_a_sensor_on_the_axis_of_its_hinge_gets_the_centre_of_the_other_side(
    turn_noise, rng
):
    """As in BVH files, whose joints are the origins of the bodies below them."""
    angle = 0.5 * np.sin(np.linspace(0.0, 6.0, 200))
    T = np.tile(np.eye(4), (200, 2, 1, 1))
    T[:, 1, :3, :3] = geometry.rotation_exp(np.outer(angle, [0.0, 0.0, 1.0]))
    T[:, 1, 0, 3] = 0.3
    noise = geometry.rotation_exp(turn_noise * rng.normal(size=(200, 2, 3)))
    T[:, :, :3, :3] = T[:, :, :3, :3] @ noise
    bodies = samples.sensor_bodies(T)
    fits = fit_joints(bodies, method="gdke")
    assert fits.kind == ("hinge",)
    np.testing.assert_allclose(fits.center_a[0, :2], [0.3, 0.0], atol=2e-3)
    np.testing.assert_allclose(fits.center_b[0, :2], [0.0, 0.0], atol=2e-3)
    assert "joint-free" in {finding.code for finding in joint_findings(bodies, fits)}


@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("rank", [1, 3, 6])
def test_small_pseudo_inverses_are_those_of_lapack(size, rank, rng):
    """Also of matrices that are singular or indefinite."""
    from marey.joints.sphere.symmetric_kernel import count_rank, pseudo_inverse

    for scale in (1e-12, 1.0, 1e9):
        columns = rng.normal(size=(size, min(rank, size)))
        signs = rng.choice([-1.0, 1.0], size=columns.shape[1])
        A = scale * (columns * signs) @ columns.T
        expected = np.linalg.pinv(A, rcond=1e-12, hermitian=True)
        tolerance = 1e-9 * np.abs(expected).max()
        np.testing.assert_allclose(pseudo_inverse(A, 1e-12), expected, atol=tolerance)
        assert count_rank(A, 1e-12) == np.linalg.matrix_rank(A, rtol=1e-12)
