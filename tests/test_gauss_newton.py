"""Inverse kinematics by Gauss-Newton: laws first, then faults of recordings."""

from dataclasses import replace
from typing import Any

import naive
import numpy as np
import posed
import pytest
from numba import njit
from scipy.optimize import least_squares

import marey
from marey import synth
from marey.articulated.kinematics_kernel import (
    forward_kinematics,
    sum_subtrees,
    write_gradient,
    write_hessian,
)
from marey.articulated.limits_kernel import write_rotation_axes
from marey.articulated.targets import TargetNames
from marey.articulated.targets_kernel import sum_targets, weight_targets
from marey.numerics import geometry
from marey.pose import fit_pose
from marey.pose.gauss_newton.fit import GaussNewtonSolver
from marey.pose.gauss_newton.tracker import PoseTracker
from marey.pose.options import GaussNewtonOptions
from marey.synth.performance.angles import joint_angles
from marey.take import Take

PLAIN: dict[str, Any] = {"outlier": 0.0, "limits": False}
STREAM: dict[str, Any] = {"adapt": False, "both_ways": False}
SDS = (2e-3, 3e-3, 0.01)


def solve(skeleton, take, **options):
    return marey.solve_pose(skeleton, take, method="gauss_newton", **options)


def findings(skeleton, take, **options):
    return fit_pose(skeleton, take, method="gauss_newton", **options)[1]


def matrices(wxyz):
    return geometry.matrix_from_quat(wxyz)


def marker_rms(motion, take):
    away = np.linalg.norm(take.points - motion.marker_points(), axis=-1)
    return np.sqrt(np.nanmean(away**2))


# --- agreement with the naive version -------------------------------------------------


@pytest.fixture
def scattered(rng):
    """A skeleton with joints of every kind, a pose, and targets near it."""
    skeleton = posed.skeleton_of_every_kind(rng)
    root, wxyz = posed.random_pose(skeleton, rng)
    T = geometry.transform(matrices(wxyz[0]), root)
    T_joint = skeleton.forward(T[None], wxyz[None])[0]
    points = geometry.apply(T_joint[skeleton.marker_joint], skeleton.marker_offset)
    sensors = T_joint[skeleton.sensor_joint] @ skeleton.T_joint_sensor
    points = points + rng.normal(scale=0.01, size=points.shape)
    sensors = sensors @ geometry.transform_exp(0.02 * rng.normal(size=(2, 6)))
    points[4] = np.nan
    return skeleton, root, wxyz, points, sensors


def test_the_naive_jacobian_is_the_finite_difference(scattered):
    skeleton, root, wxyz, *given = scattered
    turns, h = matrices(wxyz), 1e-6
    J = naive.target_jacobian(skeleton, root, turns, *given, SDS)
    for k, step in enumerate(h * np.eye(J.shape[1])):
        up, down = (
            naive.target_residuals(
                skeleton, *naive.moved(skeleton, root, turns, s), *given, SDS
            )
            for s in (step, -step)
        )
        np.testing.assert_allclose(J[:, k], (up - down) / (2 * h), atol=1e-5)


@njit
def linearised(tree, targets, work, points, sensors, root, q):
    forward_kinematics(tree, root, q, work.R, work.c)
    weight_targets(targets, points, sensors, np.zeros(3), work, 0.0)
    sum_targets(targets, points, sensors, np.zeros(3), work)
    sum_subtrees(tree, work)
    write_rotation_axes(tree, work)
    write_gradient(work)
    write_hessian(tree, work)


def node_rotations(skeleton, wxyz, n):
    """Split universal joints into their two hinges."""
    q = []
    for joint, kind in enumerate(skeleton.kind):
        if kind == "universal":
            x = skeleton.axes[joint, 0]
            a = synth.performance.angles.angles_of_joint(
                skeleton, joint, wxyz[joint : joint + 1]
            )[0, 0]
            first = geometry.quat_exp(a * x)
            second = geometry.quat_multiply(geometry.quat_conjugate(first), wxyz[joint])
            q += [first, second]
        elif kind != "fixed":
            q.append(wxyz[joint])
    assert len(q) == n
    return np.array(q)


def test_the_kernels_equations_are_the_naive_ones(scattered):
    skeleton, root, wxyz, points, sensors = scattered
    names = TargetNames(skeleton.marker_labels, skeleton.marker_labels, ("S0", "S1"))
    fit = GaussNewtonSolver(skeleton, names, 100.0, GaussNewtonOptions(**PLAIN))
    tree, work = fit.nodes.tree, fit.work
    q = node_rotations(skeleton, wxyz, len(tree.parent))
    linearised(tree, fit.targets, work, points, sensors, root, q)
    given = (skeleton, root, matrices(wxyz), points, sensors, SDS)
    J, r = naive.target_jacobian(*given), naive.target_residuals(*given)
    used = [(0, 0), (0, 1), (0, 2)]
    for i, hinge in enumerate(tree.is_hinge):
        used += [(i + 1, 0)] if hinge else [(i + 1, k) for k in range(3)]
    H, row = J.T @ J, {block_k: at for at, block_k in enumerate(used)}
    np.testing.assert_allclose([work.g[b, k] for b, k in used], -J.T @ r, rtol=1e-8)
    seen = np.zeros_like(H, dtype=bool)
    for (b, k), at in row.items():
        for step in range(tree.n_ancestor_unknowns[b] + k + 1):
            column = row[divmod(int(tree.ancestor_unknowns[b, step]), 3)]
            value = work.H[3 * b + k, step]
            size = np.sqrt(H[at, at] * H[column, column])
            assert abs(value - H[at, column]) < 1e-9 * size
            seen[at, column] = seen[column, at] = True
    # Unknowns of different branches never meet.
    assert np.abs(H[~seen]).max(initial=0.0) < 1e-9 * np.abs(H).max()


def test_it_reaches_the_least_squares_optimum():
    skeleton, take = posed.record(motion="walk", noise=2e-3, seconds=1.0)
    motion = solve(skeleton, take, **PLAIN)
    tight = solve(skeleton, take, tolerance=1e-13, **PLAIN)
    none = np.zeros((0, 4, 4))
    for f in (0, 50, 99):
        root, turns, r = naive.best_pose(
            skeleton,
            tight.T_world_root[f, :3, 3],
            matrices(tight.wxyz[f]),
            take.points[f],
            none,
            SDS,
        )
        np.testing.assert_allclose(matrices(tight.wxyz[f]), turns, atol=1e-6)
        np.testing.assert_allclose(tight.T_world_root[f, :3, 3], root, atol=1e-7)
        away = take.points[f] - motion.marker_points()[f]
        ours, best = np.sum((away / SDS[0]) ** 2), r @ r
        assert best * (1 - 1e-9) <= ours <= best * (1 + 1e-4)


# --- exactness and invariance ---------------------------------------------------------

FIGURES = (
    synth.robot,
    synth.hinge_pair,
    synth.universal_pair,
    synth.pendulum,
    synth.quadruped,
    synth.linkage,
)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.__name__)
def test_exact_markers_give_the_exact_pose(figure):
    skeleton, take = posed.record(figure(), markers=5, seconds=1.0)
    assert posed.joint_errors(solve(skeleton, take), take).max() < 1e-9


def test_markers_and_sensors_work_together():
    """Hands without markers wear sensors."""
    skeleton, take = posed.record(sensors=("LeftHand", "RightHand"))
    hands = posed.markers_on(take, skeleton, "LeftHand", "RightHand")
    take = posed.hide_markers(take, slice(None), hands)
    motion, found = fit_pose(skeleton, take, method="gauss_newton")
    assert posed.joint_errors(motion, take).max() < 1e-9
    assert found == ()


def test_poses_are_invariant_to_the_world_frame_with_gaps(rng):
    skeleton, take = posed.record(motion="walk", noise=2e-3)
    gone = rng.random(take.points.shape[:2]) < 0.3
    take = posed.hide_markers(take, *np.nonzero(gone))
    T = geometry.transform(geometry.rotation_exp(rng.normal(size=3)), np.ones(3))
    before = solve(skeleton, take)
    after = solve(skeleton, posed.move_world(take, T))
    np.testing.assert_allclose(after.wxyz[:, 1:], before.wxyz[:, 1:], atol=1e-6)


@pytest.mark.parametrize("figure", [synth.hinge_pair, synth.universal_pair])
def test_hinges_stay_on_their_axes(figure):
    skeleton, take = posed.record(figure(), markers=5, noise=5e-3)
    wxyz = solve(skeleton, take).wxyz
    angles = joint_angles(skeleton, wxyz)
    again = synth.performance.angles.quaternions_from_angles(skeleton, angles)
    off = np.abs(np.abs(np.sum(again[:, 1] * wxyz[:, 1], axis=-1)) - 1.0)
    assert off.max() < 1e-12


def test_any_heading_is_found_in_one_frame(rng):
    skeleton, take = posed.record(motion="chicken_walk", noise=2e-3, seconds=4.0)
    tracker = PoseTracker(skeleton, take.labels, rate=take.rate)
    place = take.truth.motion.T_world_joint()[..., :3, 3]
    for frame in range(0, 400, 10):
        R = geometry.rotation_exp(2.0 * rng.normal(size=3))
        tracker.reset()
        root, wxyz = tracker.update(take.points[frame] @ R.T)
        T = geometry.transform(matrices(wxyz[0]), root)
        found = skeleton.forward(T[None], wxyz[None])[0, :, :3, 3]
        assert np.linalg.norm(found - place[frame] @ R.T, axis=-1).max() < 0.03


# --- limits ---------------------------------------------------------------------------


def tightened(skeleton, share):
    low, high = skeleton.limits[..., 0], skeleton.limits[..., 1]
    middle, half = 0.5 * (low + high), 0.5 * share * (high - low)
    return replace(skeleton, limits=np.stack([middle - half, middle + half], axis=-1))


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_limits_are_kept(share):
    skeleton, take = posed.record(motion="exercise", noise=3e-3, seconds=4.0)
    skeleton = tightened(skeleton, share)
    angles = joint_angles(skeleton, solve(skeleton, take).wxyz)
    assert posed.within_limits(skeleton, angles, slack=1e-7)
    free = joint_angles(skeleton, solve(skeleton, take, limits=False).wxyz)
    assert not posed.within_limits(skeleton, free, slack=1e-3)


def test_at_its_limit_the_pose_is_the_best_there():
    """Agreement with bounded least squares in angles, on a snowman bent too far."""
    skeleton, take = posed.record(synth.snowman(), "swing", markers=5, noise=2e-3)
    skeleton = tightened(skeleton, 0.15)
    motion = solve(skeleton, take, outlier=0.0, tolerance=1e-12)
    held = 0
    for f in (10, 80):
        angles = joint_angles(skeleton, motion.wxyz[f : f + 1])[0, 1:3]
        low, high = skeleton.limits[1:3, :, 0], skeleton.limits[1:3, :, 1]
        held += (angles <= low + 1e-7).sum() + (angles >= high - 1e-7).sum()

        def off(x, f=f):
            turns = [np.eye(3)] * skeleton.n_joints
            turns[0] = naive.rotation(x[3:6])
            for j in (1, 2):
                own = x[3 + 3 * j : 6 + 3 * j]
                turns[j] = naive.swing_twist(*skeleton.axes[j], own)
            return naive.target_residuals(
                skeleton, x[:3], turns, take.points[f], np.zeros((0, 4, 4)), SDS
            )

        root = motion.T_world_root[f]
        start = np.hstack([root[:3, 3], geometry.rotation_log(root[:3, :3])])
        inner = np.clip(angles, low + 1e-6, high - 1e-6)
        free = np.full(6, np.inf)
        bounds = (np.hstack([-free, low.ravel()]), np.hstack([free, high.ravel()]))
        best = least_squares(
            off, np.hstack([start, inner.ravel()]), bounds=bounds, xtol=1e-12
        )
        ours = off(np.hstack([start, angles.ravel()]))
        assert ours @ ours <= 2.0 * best.cost * (1.0 + 1e-5)
    assert held > 0


# --- outliers and weights -------------------------------------------------------------


def test_gross_errors_hardly_matter(rng):
    skeleton, take = posed.record(motion="walk", noise=2e-3, seconds=4.0)
    clean = posed.joint_errors(solve(skeleton, take), take)
    bad = rng.random(take.points.shape[:2]) < 0.02
    points = take.points.copy()
    points[bad] += rng.normal(scale=0.3, size=(bad.sum(), 3))
    spoiled = posed.joint_errors(solve(skeleton, replace(take, points=points)), take)
    assert np.sqrt((spoiled**2).mean()) < 1.1 * np.sqrt((clean**2).mean())


def test_a_marker_without_weight_is_as_good_as_absent():
    skeleton, take = posed.record(motion="walk", noise=2e-3)
    gone = posed.hide_markers(take, slice(None), [7])
    one = solve(skeleton, take, weights={take.labels[7]: 0.0})
    two = solve(skeleton, gone)
    np.testing.assert_allclose(one.wxyz, two.wxyz, atol=1e-12)


def test_a_marker_on_the_wrong_bone_is_named():
    skeleton, take = posed.record(motion="walk", noise=1e-3, seconds=2.0)
    offset = skeleton.marker_offset.copy()
    offset[20] += [0.05, 0.05, 0.0]
    found = findings(replace(skeleton, marker_offset=offset), take)
    assert [(d.code, d.subject) for d in found] == [
        ("marker-outliers", take.labels[20])
    ]


def test_a_marker_far_away_in_few_frames_is_named():
    """It has no weight there, so nothing else would show it."""
    skeleton, take = posed.record(motion="walk", noise=1e-3, seconds=2.0)
    points = take.points.copy()
    points[40:44, 20] += [0.0, 0.1, 0.0]
    points[42, 20] += [0.0, 0.1, 0.0]
    (far,) = findings(skeleton, replace(take, points=points))
    assert (far.code, far.subject) == ("marker-far", take.labels[20])
    assert far.frames == (42, 42)
    assert far.value == pytest.approx(0.2, abs=0.01)
    assert "in 4 frames" in far.message


@pytest.mark.parametrize("seed", [3, 5])
def test_outliers_do_not_mislead_the_first_frame(seed):
    """A seventh of its markers are elsewhere, and a twentieth of all others."""
    skeleton, take = posed.record(motion="kick_punch", seconds=0.6, noise=2e-3)
    rng = np.random.default_rng(seed)
    points = take.points.copy()
    hit = rng.random(points.shape[:2]) < 0.05
    hit[0] |= rng.random(points.shape[1]) < 0.1
    error = rng.normal(size=(hit.sum(), 3))
    length = rng.uniform(0.5, 3.0, (len(error), 1))
    error *= length / np.linalg.norm(error, axis=1)[:, None]
    points[hit] += error
    clean, spoilt = (
        posed.joint_errors(solve(skeleton, replace(take, points=p)), take)
        for p in (take.points, points)
    )
    assert spoilt.max() < 2.0 * clean.max()


# --- occlusions -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def walk():
    return posed.record(motion="walk", noise=2e-3, seconds=6.0)


def test_a_third_of_the_markers_may_be_missing(walk, rng):
    skeleton, take = walk
    gone = rng.random(take.points.shape[:2]) < 0.3
    take = posed.hide_markers(take, *np.nonzero(gone))
    causal, smooth = solve(skeleton, take), solve(skeleton, take, smooth=100.0)
    assert posed.joint_errors(causal, take).max() < 0.08
    assert posed.rotation_steps(causal).max() < 0.6
    assert posed.joint_errors(smooth, take).max() < 0.04
    assert posed.rotation_steps(smooth).max() < 0.15


def test_an_occluded_forearm_stays_and_reappears(walk):
    skeleton, take = walk
    arm = posed.markers_on(take, skeleton, "LeftLowerArm", "LeftHand")
    gone = posed.hide_markers(take, np.arange(200, 400)[:, None], arm)
    motion, found = fit_pose(skeleton, gone, method="gauss_newton")
    elsewhere = np.r_[0:200, 400:600]
    assert posed.joint_errors(motion, take)[elsewhere].max() < 0.02
    assert posed.joint_errors(motion, take)[200:400].max() < 0.3
    assert posed.rotation_steps(motion).max() < 0.6
    named = {finding.subject: finding for finding in found}
    assert set(named) == {"LeftLowerArm", "LeftHand"}
    assert named["LeftHand"].frames == (200, 399)
    smooth = solve(skeleton, gone, smooth=100.0)
    true = posed.rotation_steps(take.truth.motion).max()
    assert posed.rotation_steps(smooth).max() < 1.5 * true
    assert posed.joint_errors(smooth, take)[200:400].max() < 0.2


def test_frames_without_anything_keep_a_pose(walk):
    skeleton, take = walk
    gone = posed.hide_markers(take, np.r_[0:20, 300:360, 590:600], slice(None))
    either: tuple[dict[str, Any], ...] = ({}, {"smooth": 100.0})
    for options in either:
        motion, found = fit_pose(skeleton, gone, method="gauss_newton", **options)
        assert np.isfinite(motion.wxyz).all()
        assert np.isfinite(motion.T_world_root).all()
        unseen = [d.frames for d in found if d.code == "pose-unseen"]
        assert unseen == [(0, 19), (300, 359), (590, 599)]
        seen = np.r_[20:300, 360:590]
        assert posed.joint_errors(motion, take)[seen].max() < 0.03
    bridged = motion.T_world_root[300:360, :3, 3]
    true = take.truth.motion.T_world_root[300:360, :3, 3]
    assert np.linalg.norm(bridged - true, axis=-1).max() < 0.1


def test_smoothing_takes_noise_away(walk):
    skeleton, take = walk
    plain, smooth = solve(skeleton, take), solve(skeleton, take, smooth=300.0)
    rms = [np.sqrt((posed.joint_errors(m, take) ** 2).mean()) for m in (plain, smooth)]
    assert rms[1] < 0.85 * rms[0]
    assert marker_rms(smooth, take) < 1.1 * marker_rms(plain, take)


@pytest.mark.parametrize("smooth", [100.0, 300.0])
def test_few_rounds_of_smoothing_are_enough(walk, smooth, monkeypatch):
    """The cost of targets and accelerations together is nearly at its least."""
    skeleton, take = walk
    take = take.cut(0, 200)

    def cost():
        motion = solve(skeleton, take, smooth=smooth, adapt=False, **PLAIN)
        second = (
            np.diff(motion.wxyz, 2, axis=0),
            np.diff(motion.T_world_root[:, :3, 3], 2, axis=0),
        )
        step = smooth / take.rate**2
        paths = np.sum((2.0 * second[0] / step) ** 2)
        paths += np.sum((second[1] / (0.5 * step)) ** 2)
        away = (take.points - motion.marker_points()) / SDS[0]
        return paths + np.sum(away**2)

    few = cost()
    monkeypatch.setattr(
        "marey.pose.gauss_newton.smoothing.MAX_ITERATIONS_SMOOTHING", 60
    )
    assert few < 1.01 * cost()


def test_exact_data_survive_weak_smoothing():
    skeleton, take = posed.record(motion="walk", seconds=2.0)
    assert posed.joint_errors(solve(skeleton, take, smooth=1e5), take).max() < 1e-4


# --- one frame at a time --------------------------------------------------------------


def test_a_tracker_gives_what_the_whole_take_gives(walk):
    skeleton, take = walk
    motion = solve(skeleton, take, **STREAM)
    tracker = PoseTracker(skeleton, take.labels, rate=take.rate, adapt=False)
    for f, points in enumerate(take.points[:100]):
        root, wxyz = tracker.update(points)
        np.testing.assert_array_equal(wxyz, motion.wxyz[f])
        np.testing.assert_array_equal(root, motion.T_world_root[f, :3, 3])
    with pytest.raises(marey.DataError, match="53 markers"):
        tracker.update(take.points[0, :5])


@pytest.mark.parametrize("make", [synth.human, synth.robot, synth.universal_pair])
def test_poses_of_joints_are_those_of_forward_kinematics(make):
    """Balls, hinges, universal and fixed joints alike."""
    skeleton, take = posed.record(make(), markers=5, seconds=0.3)
    one, other = (PoseTracker(skeleton, take.labels, rate=take.rate) for _ in range(2))
    for points in take.points:
        root, wxyz = one.update(points)
        R = geometry.matrix_from_quat(wxyz[0])
        T = skeleton.forward(geometry.transform(R, root)[None], wxyz[None])[0]
        np.testing.assert_allclose(other.update_poses(points), T, atol=1e-12)


# --- requests that cannot be met ------------------------------------------------------


def test_a_take_that_never_sees_the_skeleton_is_refused():
    skeleton, take = posed.record()
    with pytest.raises(marey.DataError, match="no frame"):
        solve(skeleton, posed.hide_markers(take, slice(None), slice(None)))


def test_labels_must_say_whose_marker_it_is():
    skeleton, take = posed.record(seconds=0.2)
    both = Take(
        rate=take.rate,
        points=np.concatenate([take.points, take.points + 1.0], axis=1),
        labels=take.labels * 2,
        subjects=("ANN",) * 53 + ("JOE",) * 53,
    )
    with pytest.raises(marey.DataError, match="ANN:"):
        solve(skeleton, both)
    labels = tuple(f"JOE:{label}" for label in skeleton.marker_labels)
    motion = solve(replace(skeleton, marker_labels=labels), both)
    np.testing.assert_allclose(motion.marker_points(), take.points + 1.0, atol=1e-9)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("marker_sd", 0.0),
        ("rotation_sd", np.nan),
        ("drift", -1.0),
        ("outlier", -1.0),
        ("smooth", np.inf),
        ("steps", 0),
        ("weights", {"unknown": 1.0}),
        ("weights", {"LFHD": -1.0}),
        ("magic", 1),
    ],
)
def test_bad_options_are_named(option, value):
    skeleton, take = posed.record(seconds=0.1)
    with pytest.raises(marey.OptionError, match=option):
        solve(skeleton, take, **{option: value})


def test_joints_need_their_axes():
    skeleton, take = posed.record(synth.hinge_pair(), markers=5)
    with pytest.raises(marey.DataError, match="axes of Arm"):
        solve(replace(skeleton, axes=np.full((3, 2, 3), np.nan)), take)
    crossed = np.array([[[0.0, 0.0]] * 3, [[1.0, -1.0]] * 3, [[0.0, 0.0]] * 3])
    with pytest.raises(marey.DataError, match="limits of Arm"):
        solve(replace(skeleton, limits=crossed), take)


# --- reappearance ---------------------------------------------------------------------


def tracked(skeleton, take, **options):
    """The motion that a stream shows."""
    tracker = PoseTracker(skeleton, take.labels, rate=take.rate, **options)
    root, wxyz = zip(*[tracker.update(points) for points in take.points], strict=True)
    root, wxyz = np.array(root), np.array(wxyz)
    T = geometry.transform(matrices(wxyz[:, 0]), root)
    return marey.Motion(skeleton=skeleton, T_world_root=T, wxyz=wxyz, rate=take.rate)


@pytest.mark.parametrize("solver", [solve, tracked])
def test_a_forearm_reappears_without_a_jump(walk, solver):
    """Two seconds unseen: no step is larger than those that noise makes anyway."""
    skeleton, take = walk
    arm = posed.markers_on(take, skeleton, "LeftLowerArm", "LeftHand")
    motion = solver(
        skeleton, posed.hide_markers(take, np.arange(200, 400)[:, None], arm)
    )
    usual = posed.rotation_steps(solve(skeleton, take)).max()
    assert posed.rotation_steps(motion).max() <= 1.05 * usual
    assert posed.joint_errors(motion, take).max() < 0.2


def test_a_stream_is_back_within_a_quarter_of_a_second(walk):
    skeleton, take = walk
    arm = posed.markers_on(take, skeleton, "LeftLowerArm", "LeftHand")
    gone = posed.hide_markers(take, np.arange(200, 400)[:, None], arm)
    motion = tracked(skeleton, gone, adapt=False)
    plain = solve(skeleton, gone, **STREAM)
    seen = np.r_[0:200, 425:600]
    np.testing.assert_array_equal(motion.wxyz[seen], plain.wxyz[seen])
    back = posed.joint_errors(motion, take)[400:425].max(axis=1)
    assert back[0] > 0.05
    assert back[-1] < 0.02
    assert np.diff(back).max() < 0.01


def test_a_stream_that_restarts_shows_the_new_pose_at_once(walk):
    skeleton, take = walk
    gone = posed.hide_markers(take, np.arange(200, 400), slice(None))
    motion = tracked(skeleton, gone)
    assert posed.joint_errors(motion, take)[400:].max() < 0.03


# --- fewer frames ---------------------------------------------------------------------


@pytest.mark.parametrize("rate", [30.0, 25.0, 10.0])
def test_frames_between_are_as_good_as_the_frames(walk, rate):
    """At any times: the truth between the truth's frames, and no more noise than had.

    Pose noise is correlated among joints, so that it is measured in the joints.
    """
    skeleton, take = walk
    motion, truth = solve(skeleton, take), take.truth.motion
    times = np.arange(0.0, take.n_frames / take.rate - 0.01, 1.0 / rate)
    noise = posed.joint_errors(motion, take).max()

    def places(some):
        return some.at(times).T_world_joint()[..., :3, 3]

    away = np.linalg.norm(places(motion) - places(truth), axis=-1)
    assert away.max() <= noise
    slow = motion.at(times)
    assert (np.sum(slow.wxyz[1:] * slow.wxyz[:-1], axis=-1) > 0.0).all()


@pytest.mark.parametrize("name", ["walk.bvh", "walk.amc"])
def test_no_exported_angle_jumps(walk, name, tmp_path):
    """Even where a third of the markers is missing, at full and at a tenth of the rate.

    Angles as they stand in the file: of a joint, none is half a turn from the last.
    """
    skeleton, take = walk
    gone = np.random.default_rng(2).random(take.points.shape[:2]) < 0.3
    motion = solve(skeleton, posed.hide_markers(take, *np.nonzero(gone)))
    for rate in (100.0, 10.0):
        path = tmp_path / f"{rate:.0f}" / name
        path.parent.mkdir()
        marey.write(motion.resample(rate), path)
        angles = written_angles(path)
        assert angles.shape[0] == round(600 * rate / 100.0)
        assert np.abs(np.diff(angles, axis=0)).max() <= 180.0


def written_angles(path):
    """Every angle of a BVH or AMC file in degrees, read line by line."""
    lines = path.read_text().splitlines()
    if path.suffix == ".bvh":
        channels = [
            channel
            for line in lines
            if line.split()[:1] == ["CHANNELS"]
            for channel in line.split()[2:]
        ]
        turns = [k for k, channel in enumerate(channels) if "rotation" in channel]
        first = next(k for k, line in enumerate(lines) if line.startswith("Frame Time"))
        return np.array([line.split() for line in lines[first + 1 :]], float)[:, turns]
    frames = []
    for line in lines:
        word, *values = line.split()
        if word.isdigit():
            frames.append([])
        elif frames:
            frames[-1] += values[3:] if word == "root" else values
    return np.array(frames, float)


# --- faults of recordings -------------------------------------------------------------


def whole(skeleton, take, **options):
    """The motion and its findings by code; finite, within limits, of unit length."""
    motion, found = fit_pose(skeleton, take, method="gauss_newton", **options)
    assert np.isfinite(motion.wxyz).all()
    assert np.isfinite(motion.T_world_root).all()
    np.testing.assert_allclose(np.linalg.norm(motion.wxyz, axis=-1), 1.0, atol=1e-12)
    assert posed.within_limits(
        skeleton, joint_angles(skeleton, motion.wxyz), slack=1e-6
    )
    return motion, {finding.code: finding for finding in found}


def test_one_marker_left_on_a_foot_is_kept_and_named(walk):
    skeleton, take = walk
    foot = posed.markers_on(take, skeleton, "LeftFoot")
    gone = posed.hide_markers(take, np.arange(200, 400)[:, None], foot[1:])
    motion, found = whole(skeleton, gone)
    away = motion.marker_points()[200:400, foot[0]] - take.points[200:400, foot[0]]
    assert np.linalg.norm(away, axis=-1).max() < 0.02
    assert found["joint-unseen"].subject == "LeftFoot"
    assert posed.joint_errors(motion, take).max() < 0.05


def test_a_limb_that_leaves_its_markers_is_reported(walk):
    """Hand and forearm are shown where no arm reaches, in few of the frames."""
    skeleton, take = walk
    points = take.points.copy()
    arm = posed.markers_on(take, skeleton, "LeftLowerArm", "LeftHand")
    points[200:212, arm] += [0.0, 0.0, 2.0]
    found = findings(skeleton, replace(take, points=points))
    lost = {f.subject: f for f in found if f.code == "joint-lost"}
    assert set(lost) == {"LeftLowerArm", "LeftHand"}
    assert lost["LeftHand"].frames == (200, 211)
    assert lost["LeftHand"].value == 12


def test_mirrored_data_are_reported(walk):
    skeleton, take = walk
    motion, found = whole(skeleton, replace(take, points=take.points * [1, -1, 1]))
    assert found["pose-lost"].frames == (0, 599)
    away = np.linalg.norm(motion.marker_points() - take.points * [1, -1, 1], axis=-1)
    assert away.max() < 0.5


def test_limits_that_exclude_the_data_are_reported(walk):
    """A knee that may not stretch, on somebody who walks."""
    skeleton, take = walk
    limits, knee = skeleton.limits.copy(), skeleton.index("LeftLowerLeg")
    limits[knee, 0] = [1.2, 2.3]
    motion, found = fit_pose(
        replace(skeleton, limits=limits), take, method="gauss_newton"
    )
    angles = joint_angles(motion.skeleton, motion.wxyz)
    assert posed.within_limits(motion.skeleton, angles, slack=1e-6)
    assert "LeftLowerLeg" in {d.subject for d in found if d.code == "joint-held"}
    assert posed.joint_errors(motion, take).max() < 0.6


def test_a_hinge_bent_backwards_stops_and_is_reported():
    skeleton, take = posed.record(synth.hinge_pair(), markers=5, noise=1e-3)
    true = joint_angles(skeleton, take.truth.motion.wxyz)[:, 1, 0]
    assert true.min() < -0.5
    limits = skeleton.limits.copy()
    limits[1, 0] = [0.0, 2.0]
    motion, found = whole(replace(skeleton, limits=limits), take)
    assert found["joint-held"].subject == "Arm"
    bent = joint_angles(skeleton, motion.wxyz)[:, 1, 0]
    np.testing.assert_array_equal(bent[true < -0.1], 0.0)


@pytest.mark.parametrize("rate", [1.0, 1000.0])
def test_any_rate_will_do(rate):
    skeleton, take = posed.record(
        motion="walk", noise=2e-3, rate=rate, seconds=max(1.0, 20.0 / rate)
    )
    motion, _ = whole(skeleton, take)
    assert posed.joint_errors(motion, take).max() < 0.02


@pytest.mark.parametrize("height", [1.5, 2.1])
def test_a_skeleton_of_someone_else_is_reported(walk, height):
    other, _ = posed.record(synth.human(height=height, seed=3), motion="walk")
    motion, found = whole(other, walk[1])
    assert "pose-lost" in found
    away = np.linalg.norm(motion.marker_points() - walk[1].points, axis=-1)
    assert away.max() < 0.5


def test_a_single_frame_among_nothing_is_held(walk):
    skeleton, take = walk
    alone = posed.hide_markers(take, np.r_[0:300, 301:600], slice(None))
    motion, found = whole(skeleton, alone)
    assert found["pose-unseen"].frames == (301, 599)
    assert posed.rotation_steps(motion).max() < 1e-9
