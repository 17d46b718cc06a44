"""Joints from the paths of markers: spheres, circles, and what is neither."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey.errors import DataError, OptionError
from marey.joints import findings, fit_joints
from marey.joints.sphere.gdke import SphereAccumulator, fit_sphere
from marey.numerics import geometry
from marey.papers.pairs import bound_of_markers
from marey.segmentation import segment

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
quick = settings(deadline=None, max_examples=12)
ESTIMATORS = ("kasa", "corrected", "geometric")


def on_ball(rng, n_frames, *, swing=0.5, n_markers=1, noise=0.0, center=None):
    """Markers that turn about a point by rotation vectors of size `swing` rms."""
    center = rng.normal(size=3) if center is None else center
    arms = rng.normal(size=(n_markers, 3))
    R = geometry.rotation_exp(swing * rng.normal(size=(n_frames, 3)))
    points = center + np.einsum("fij,mj->fmi", R, arms)
    return points + noise * rng.normal(size=points.shape), center, arms


def on_hinge(rng, n_frames, *, reach=1.0, n_markers=1, noise=0.0):
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    center, arms = rng.normal(size=3), rng.normal(size=(n_markers, 3))
    R = geometry.rotation_exp(rng.uniform(-reach, reach, (n_frames, 1)) * axis)
    points = center + np.einsum("fij,mj->fmi", R, arms)
    return points + noise * rng.normal(size=points.shape), center, axis, arms


def cap(rng, n_frames, half_angle, noise):
    """Points spread evenly over a cap of the unit sphere about the origin."""
    z = rng.uniform(np.cos(half_angle), 1.0, n_frames)
    turn = rng.uniform(0.0, 2.0 * np.pi, n_frames)
    flat = np.sqrt(1.0 - z**2)
    points = np.stack([flat * np.cos(turn), flat * np.sin(turn), z], axis=-1)
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
    off = sphere.center - center
    np.testing.assert_allclose(off, (off @ axis) * axis, atol=1e-6)
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
def test_the_plain_estimator_is_the_linear_least_squares(rng):
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
def test_moving_turning_and_scaling_carry_over(estimator, rng, scale):
    points, _, _ = on_ball(rng, 60, swing=0.4, n_markers=3, noise=0.01)
    before = fit_sphere(points, estimator=estimator)
    R = geometry.rotation_exp(rng.normal(size=3))
    shift = rng.normal(size=3)
    after = fit_sphere(scale * (points @ R.T + shift), estimator=estimator)
    assert after.kind == before.kind
    np.testing.assert_allclose(
        after.center, scale * (R @ before.center + shift), rtol=1e-6, atol=1e-6 * scale
    )
    assert after.noise == pytest.approx(scale * before.noise, rel=1e-5)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@given(rng=seeds)
@quick
def test_order_does_not_matter(estimator, rng):
    points, _, _ = on_ball(rng, 50, n_markers=3, noise=0.01)
    points[rng.random((50, 3)) < 0.1] = np.nan
    before = fit_sphere(points, estimator=estimator)
    mixed = points[rng.permutation(50)][:, [2, 0, 1]]
    after = fit_sphere(mixed, estimator=estimator)
    np.testing.assert_allclose(after.center, before.center, atol=1e-9)
    np.testing.assert_allclose(after.radius, before.radius[[2, 0, 1]], atol=1e-9)


@pytest.mark.parametrize("estimator", ["kasa", "corrected"])
@given(rng=seeds, cut=st.integers(0, 60))
@quick
def test_growing_data_gives_the_fit_of_all_of_it(estimator, rng, cut):
    points, _, _ = on_ball(rng, 60, swing=0.4, n_markers=2, noise=0.01)
    points[rng.random((60, 2)) < 0.2] = np.nan
    growing = SphereAccumulator(n_markers=2)
    for part in (points[cut:], points[:cut]):
        growing.update(part)
    whole = fit_sphere(points, estimator=estimator)
    fit = growing.fit(estimator=estimator)
    assert fit.kind == whole.kind
    np.testing.assert_allclose(fit.center, whole.center, atol=1e-9)
    np.testing.assert_allclose(fit.radius, whole.radius, atol=1e-9)


# --- noise ----------------------------------------------------------------------------


@pytest.mark.parametrize(("degrees", "noise"), [(20, 0.01), (30, 0.03), (60, 0.03)])
def test_a_cap_draws_only_the_plain_estimator(rng, degrees, noise):
    error = {}
    for estimator in ESTIMATORS:
        fits = [
            fit_sphere(cap(rng, 1000, np.radians(degrees), noise), estimator=estimator)
            for _ in range(12)
        ]
        error[estimator] = np.linalg.norm(np.mean([f.center for f in fits], axis=0))
    assert error["kasa"] > 3.0 * error["corrected"]
    assert error["kasa"] > 3.0 * error["geometric"]


@pytest.mark.parametrize("estimator", ["corrected", "geometric"])
def test_covariance_is_calibrated(rng, estimator):
    squares, model = [], []
    for _ in range(120):
        points = cap(rng, 200, np.radians(45), 0.01)
        sphere = fit_sphere(points, estimator=estimator)
        squares.append(
            sphere.center @ np.linalg.solve(sphere.covariance, sphere.center)
        )
        growing = SphereAccumulator()
        growing.update(points)
        plain = growing.fit()
        model.append(plain.center @ np.linalg.solve(plain.covariance, plain.center))
    assert 2.4 < np.mean(squares) < 3.6
    assert 2.4 < np.mean(model) < 3.6


def test_noise_that_lasts_widens_the_covariance(rng):
    """Noise held for ten frames is a tenth of the data: errors are sqrt(10) larger."""
    squares = []
    for _ in range(60):
        points = cap(rng, 3000, np.radians(60), 0.0)
        points += np.repeat(0.01 * rng.normal(size=(300, 3)), 10, axis=0)
        sphere = fit_sphere(points)
        squares.append(
            sphere.center @ np.linalg.solve(sphere.covariance, sphere.center)
        )
    assert 2.0 < np.mean(squares) < 4.5


def test_markers_that_disagree_widen_the_covariance(rng):
    """One of five markers slides as the limb turns: the frames alone do not show it."""
    points, center, _ = on_ball(rng, 1000, swing=0.3, n_markers=5, noise=1e-3)
    honest = np.trace(fit_sphere(points).covariance)
    points[:, 0] += 0.05 * (points[:, 1] - points[:, 1].mean(axis=0))
    sphere = fit_sphere(points)
    off = sphere.center - center
    assert np.trace(sphere.covariance) > 10.0 * honest
    assert off @ np.linalg.solve(sphere.covariance, off) < 12.0


@given(rng=seeds, noise=st.floats(0.002, 0.02))
@settings(deadline=None, max_examples=10)
def test_the_noise_is_measured_and_taken_off_the_radius(rng, noise):
    points = cap(rng, 4000, np.radians(90), noise)
    for estimator in ESTIMATORS:
        sphere = fit_sphere(points, estimator=estimator)
        assert sphere.noise == pytest.approx(noise, rel=0.1)
    corrected = fit_sphere(points, estimator="corrected")
    assert corrected.radius[0] == pytest.approx(1.0, abs=10.0 * noise / np.sqrt(4000))


# --- what kind of motion --------------------------------------------------------------


@pytest.mark.parametrize("noise", [1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("n_markers", [1, 3])
def test_the_kind_of_motion_is_told_from_the_noise(rng, noise, n_markers):
    ball = on_ball(rng, 400, n_markers=n_markers, noise=noise)[0]
    hinge = on_hinge(rng, 400, n_markers=n_markers, noise=noise)[0]
    still = rng.normal(size=(n_markers, 3)) + noise * rng.normal(
        size=(400, n_markers, 3)
    )
    kinds = [fit_sphere(points).kind for points in (ball, hinge, still)]
    assert kinds == ["ball", "hinge", "fixed"]


def test_a_small_cap_is_no_hinge_though_it_is_flat(rng):
    assert fit_sphere(cap(rng, 2000, np.radians(10), 0.01)).kind == "ball"


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
def test_what_shows_no_centre_says_why(points, reason, estimator):
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
    off = sphere.center - center
    assert off @ np.linalg.solve(sphere.covariance, off) < 25.0


def test_unknown_options_are_named(unchecked):
    with pytest.raises(OptionError, match="estimator: found 'best'"):
        fit_sphere(np.eye(3), estimator="best")
    with pytest.raises(OptionError, match="kind: found 'knee'"):
        fit_sphere(np.eye(3), kind="knee")


# --- joints between bodies ------------------------------------------------------------


def recorded(figure, *, keep=None, **options):
    """A recording and its bodies by the true map, `keep` markers on some bodies."""
    take = figure.record(**{"rate": 60.0, "seconds": 8.0, "markers": 4} | options)
    joint = take.truth.marker_joint
    names = figure.skeleton.names
    template = {names[b]: np.flatnonzero(joint == b) for b in figure.bodies}
    template = {
        name: [take.labels[i] for i in markers[: (keep or {}).get(name)]]
        for name, markers in template.items()
    }
    return take, segment(take, method="template", template=template)


def true_gaps(take, bodies, fits, pair):
    """How far both centres of a pair are from the true joint, over all frames."""
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
    take, bodies = recorded(figure, motion="exercise", rate=20.0)
    fits = fit_joints(bodies, method="gdke", estimator=estimator)
    for edge in take.truth.edges:
        a, b, row = true_gaps(take, bodies, fits, edge)
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
        take, bodies = recorded(figure)
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
    off = geometry.apply(bodies.T_world_body[:, 0], fits.center_a[0]) - joint
    np.testing.assert_allclose(
        np.linalg.norm(np.cross(off, axis), axis=-1), 0, atol=1e-8
    )


def test_sensors_are_single_markers():
    take = marey.synth.linkage().record(rate=60.0, markers="none", sensors=True)
    bodies = segment(take)
    fits = fit_joints(bodies, method="gdke")
    for edge in take.truth.edges:
        a, b, row = true_gaps(take, bodies, fits, edge)
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


def test_both_methods_say_the_same_of_exact_markers():
    _, bodies = recorded(marey.synth.linkage(), motion="exercise")
    ours, theirs = (fit_joints(bodies, method=method) for method in ("gdke", "ball"))
    joined = theirs.residual < 1e-6
    assert joined.sum() == 5
    for name in ("center_a", "center_b", "distance"):
        np.testing.assert_allclose(
            getattr(ours, name)[joined], getattr(theirs, name)[joined], atol=1e-6
        )
    np.testing.assert_allclose(ours.spread, theirs.spread, atol=1e-6)
    np.testing.assert_allclose(ours.mediated, theirs.mediated, rtol=1e-6)


@pytest.mark.parametrize("count", [1, 2])
def test_a_body_of_few_markers_serves_as_the_moving_side(count):
    figure = marey.synth.linkage()
    take, bodies = recorded(figure, keep={"Head": count})
    fits = fit_joints(bodies, method="gdke")
    assert bodies.determined.tolist() == [name != "Head" for name in bodies.names]
    a, _, row = true_gaps(take, bodies, fits, take.truth.edges[0])
    assert a.max() < 1e-8
    assert fits.residual[row] < 1e-8
    assert np.isnan(fits.center_b[row]).all()
    assert np.isfinite(fits.covariance[row][:3, :3]).all()
    assert np.isnan(fits.covariance[row][3:]).all()
    assert np.isfinite(fits.noise[row])


def test_two_bodies_without_axes_have_no_joint():
    _, bodies = recorded(
        marey.synth.linkage(), keep={"LeftUpperArm": 1, "LeftLowerArm": 2}
    )
    fits = fit_joints(bodies, method="gdke")
    soft = ~bodies.determined[fits.pair].any(axis=1)
    assert soft.sum() == 1
    assert (fits.fitted == ~soft).all()
    assert np.isnan(fits.center_a[soft]).all()


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
    take, bodies = recorded(marey.synth.hinge_pair())
    T = bodies.T_world_body.copy()
    T[:200, 0], T[200:, 1] = np.nan, np.nan
    points = take.points.copy()
    points[:200, bodies.marker_body == 0] = np.nan
    points[200:, bodies.marker_body == 1] = np.nan
    gone = replace(bodies, take=replace(take, points=points), T_world_body=T)
    fits = fit_joints(gone, method="gdke")
    assert not fits.fitted[0]
    assert np.isnan(fits.center_a).all()
    assert np.isnan(fits.noise).all()


def test_takes_pool_whatever_axes_their_bodies_have():
    figure = marey.synth.linkage()
    first, bodies = recorded(figure, motion="swing", seed=1)
    _, other = recorded(figure, motion="exercise", seed=1)
    R = geometry.transform(
        geometry.rotation_exp(np.array([0.3, -1.0, 0.5])), np.ones(3)
    )
    turned = replace(
        other,
        T_world_body=other.T_world_body @ geometry.inverse(R),
        marker_offset=geometry.apply(R, other.marker_offset),
    )
    fits = fit_joints([bodies, turned], method="gdke")
    for edge in first.truth.edges:
        a, b, row = true_gaps(first, bodies, fits, edge)
        assert max(a.max(), b.max(), fits.residual[row]) < 1e-8


def hip(rng, *, swing, noise, n_frames=1000):
    """Pelvis and thigh of four markers each, their true places seen from the hip."""
    pelvis = np.array(
        [[210, 60, 110], [-30, 60, 110], [200, -90, 120], [-20, -90, 120]]
    )
    thigh = np.array(
        [[60, 40, -150], [-50, 60, -220], [40, -60, -300], [-30, 30, -380]]
    )
    places = 1e-3 * np.stack([pelvis, thigh])
    R = geometry.rotation_exp(0.4 * rng.normal(size=(n_frames, 3)))
    joint = rng.normal(size=(n_frames, 3))
    turn = geometry.rotation_exp(swing * rng.normal(size=(n_frames, 3)) * [1, 1, 0.5])
    points = np.concatenate(
        [
            np.einsum("fij,mj->fmi", frame, own)
            for frame, own in zip((R, R @ turn), places, strict=True)
        ],
        axis=1,
    )
    points += joint[:, None] + noise * rng.normal(size=points.shape)
    labels = tuple(f"{body}{i}" for body in "PT" for i in range(4))
    take = marey.Take(rate=100.0, points=points, labels=labels)
    template = {"pelvis": ["P*"], "thigh": ["T*"]}
    return segment(take, method="template", template=template), places


def hip_errors(rng, runs, **options):
    """Rms error of both centres over the least possible, and over their covariance.

    A body's axes are known as well as its markers' places are: the true joint in them
    is where the true places, laid on those found, put it. The mean over frames of the
    joint in the body's noisy poses would share their noise with the answer.
    """
    errors, squares = [], []
    for _ in range(runs):
        bodies, places = hip(rng, **options)
        fits = fit_joints(bodies, method="gdke")
        found = bodies.marker_offset.reshape(2, 4, 3)
        true = geometry.kabsch(places, found)[:, :3, 3]
        for side, center in enumerate((fits.center_a[0], fits.center_b[0])):
            off = center - true[side]
            C = fits.covariance[0][3 * side : 3 * side + 3, 3 * side : 3 * side + 3]
            errors.append(off)
            squares.append(off @ np.linalg.solve(C, off))
    C = bound_of_markers(
        bodies.T_world_body, places, np.zeros((2, 3)), options["noise"]
    )
    rms = np.sqrt(np.mean(np.sum(np.square(errors), axis=1)))
    return rms / np.sqrt(0.5 * np.trace(C)), np.mean(squares)


@pytest.mark.parametrize(("degrees", "noise"), [(5, 1e-3), (10, 3e-3), (20, 1e-3)])
def test_a_hip_of_small_range_and_noisy_axes(rng, degrees, noise):
    """At the bound of Cramer and Rao, and known to be: both to the scatter of 40 runs.

    That is 8 % of the error and 0.39 of its square over the covariance, 3 if honest;
    `marey papers knight2007` has a hundred runs of twelve such cells.
    """
    swing = np.radians(degrees)
    ratio, square = hip_errors(rng, 40, swing=swing, noise=noise, n_frames=300)
    assert 0.8 < ratio < 1.2
    assert 2.2 < square < 3.8


def test_the_gap_counts_where_the_spheres_show_little(rng):
    """Radii alone leave a hip of five degrees half as well known."""
    off = {"corrected": [], "geometric": []}
    for _ in range(10):
        bodies, places = hip(rng, swing=np.radians(5), noise=1e-3, n_frames=300)
        true = geometry.kabsch(places[0], bodies.marker_offset[:4])[:3, 3]
        for estimator, errors in off.items():
            fits = fit_joints(bodies, method="gdke", estimator=estimator)
            errors.append(np.sum((fits.center_a[0] - true) ** 2))
    assert np.sum(off["geometric"]) < 0.6 * np.sum(off["corrected"])


def pinned(rng, *, noise, n_frames=300):
    """Two bodies of four markers on a pin along z, and where they are."""
    places = rng.normal(size=(2, 4, 3)) * [0.15, 0.15, 0.1] + [0.2, 0.0, 0.0]
    R = geometry.rotation_exp(0.4 * rng.normal(size=(n_frames, 3)))
    about = 0.5 * rng.normal(size=(n_frames, 1)) * [0.0, 0.0, 1.0]
    T = geometry.transform(
        np.stack([R, R @ geometry.rotation_exp(about)], axis=1),
        rng.normal(size=(n_frames, 1, 3)),
    )
    points = geometry.apply(T[:, :, None], places)
    points = points + noise * rng.normal(size=points.shape)
    labels = tuple(f"{body}{i}" for body in "AB" for i in range(4))
    take = marey.Take(rate=100.0, points=points.reshape(n_frames, 8, 3), labels=labels)
    return segment(take, method="template", template={"A": ["A*"], "B": ["B*"]}), places


def test_the_axis_of_a_hinge_knows_its_error(rng):
    """Two directions are free: the mean square error over its covariance is 2."""
    squares = []
    for _ in range(40):
        bodies, places = pinned(rng, noise=1e-3)
        fits = fit_joints(bodies, method="gdke")
        assert fits.kind == ("hinge",)
        R = geometry.kabsch(places, bodies.marker_offset.reshape(2, 4, 3))[:, :3, :3]
        for side, axis in enumerate((fits.axis_a[0], fits.axis_b[0])):
            true = R[side, :, 2] * np.sign(axis @ R[side, :, 2])
            block = slice(3 * side, 3 * side + 3)
            C = fits.axis_covariance[0][block, block]
            off = axis - true
            squares.append(off @ np.linalg.pinv(C, rcond=1e-6) @ off)
    assert 1.4 < np.mean(squares) < 2.7


@pytest.mark.parametrize("estimator", ["corrected", "geometric"])
def test_the_axis_of_a_circle_knows_its_error(rng, estimator):
    squares, model = [], []
    for _ in range(80):
        points, _, axis, _ = on_hinge(rng, 200, n_markers=2, noise=0.01)
        sphere = fit_sphere(points, estimator=estimator)
        growing = SphereAccumulator(2)
        growing.update(points)
        for fit, kept in ((sphere, squares), (growing.fit(), model)):
            off = fit.axis - axis * np.sign(axis @ fit.axis)
            C = np.linalg.pinv(fit.axis_covariance, rcond=1e-6)
            kept.append(off @ C @ off)
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
    """Whatever the noise: nearly never is it taken for motion."""
    kinds = [
        fit_sphere(rng.normal(size=(n_frames, n_markers, 3))).kind for _ in range(60)
    ]
    assert kinds.count("fixed") >= 58


# --- bodies that cannot do ------------------------------------------------------------


def two_bodies(points):
    take = marey.Take(rate=30.0, points=points, labels=tuple("abcdefgh"))
    names = {"A": list("abcd"), "B": list("efgh")}
    return segment(take, method="template", template=names)


def turning(rng, n_frames):
    """Two bodies of four markers that turn about the same point."""
    parts = [on_ball(rng, n_frames, swing=1.0, n_markers=4, center=np.zeros(3))[0]]
    parts += [on_ball(rng, n_frames, swing=1.0, n_markers=4, center=np.zeros(3))[0]]
    return np.concatenate(parts, axis=1)


@pytest.mark.parametrize("n_frames", [1, 2, 3])
def test_fewer_than_four_positions_are_no_joint(rng, n_frames):
    bodies = two_bodies(turning(rng, n_frames))
    fits = fit_joints(bodies, method="gdke")
    assert not fits.fitted[0]
    assert [f.code for f in findings(bodies, fits)] == ["pair-unseen"]


def test_somebody_must_have_axes(rng):
    points = turning(rng, 50)
    points[:, :4] = points[:, :1]
    points[:, 4:] = points[:, 4:5] + np.arange(4)[:, None] * rng.normal(size=(50, 1, 3))
    with pytest.raises(DataError, match="need one body with axes"):
        fit_joints(two_bodies(points), method="gdke")


def test_markers_on_a_line_serve_as_the_moving_side(rng):
    points = turning(rng, 200)
    line = points[:, :1] + np.arange(4)[:, None] * (points[:, 1:2] - points[:, :1])
    points[:, :4] = line
    bodies = two_bodies(points)
    fits = fit_joints(bodies, method="gdke")
    assert np.isnan(fits.center_a).all()
    np.testing.assert_allclose(
        geometry.apply(bodies.T_world_body[:, 1], fits.center_b[0]), 0.0, atol=1e-7
    )
    assert np.isfinite(fits.covariance[0, 3:, 3:]).all()
    findings(bodies, fits)


def test_a_body_that_is_never_seen_is_named(rng):
    points = turning(rng, 50)
    points[:, :4] = np.nan
    bodies = two_bodies(points)
    fits = fit_joints(bodies, method="gdke")
    assert not fits.fitted[0]
    assert {f.code for f in findings(bodies, fits)} == {"body-unseen", "pair-unseen"}


def test_identical_frames_are_fixed(rng):
    bodies = two_bodies(np.repeat(turning(rng, 1), 50, axis=0))
    fits = fit_joints(bodies, method="gdke")
    assert fits.kind == ("fixed",)
    assert "joint-still" in {f.code for f in findings(bodies, fits)}


def test_bodies_hardly_ever_posed_together_are_seen_one_by_one(rng):
    """Each body sees single markers of the other in frames without its pose."""
    points = turning(rng, 60)
    points[:30, 5:] = np.nan
    points[30:, 1:4] = np.nan
    fits = fit_joints(two_bodies(points), method="gdke")
    assert fits.fitted[0]
    assert np.isfinite(fits.covariance[0, :3, :3]).all()
    assert np.isfinite(fits.covariance[0, 3:, 3:]).all()
    assert np.isnan(fits.spread).all()


def test_unknown_options_of_the_fit_are_named(unchecked):
    _, bodies = recorded(marey.synth.hinge_pair(), seconds=1.0)
    with pytest.raises(OptionError, match="estimator: found 'best'"):
        fit_joints(bodies, method="gdke", estimator="best")
    with pytest.raises(OptionError, match="robust: found True, need estimator"):
        fit_joints(bodies, method="gdke", robust=True)
