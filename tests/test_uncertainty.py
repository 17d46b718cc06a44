"""Uncertainty of joint angles over time: `Motion.angle_sd`."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from posed import hide_markers, markers_on, random_pose, record, skeleton_of_every_kind

import marey
from marey.numerics import geometry
from marey.pose import fit_pose
from marey.pose.uncertainty import FittedTargets
from marey.skeleton import Kind


def relative_errors(motion, truth):
    """Errors of joint rotations over their standard deviations, where there is one."""
    inverse = geometry.quat_conjugate(motion.wxyz)
    error = geometry.quat_log(geometry.quat_multiply(inverse, truth.wxyz))
    known = motion.angle_sd > 0.0
    return error[known] / motion.angle_sd[known]


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


def noisy_pose_of_every_kind(seed):
    rng = np.random.default_rng(seed)
    skeleton = skeleton_of_every_kind(rng)
    root, wxyz = random_pose(skeleton, rng)
    T_world_root = geometry.transform(geometry.matrix_from_quat(wxyz[0]), root)
    motion = marey.Motion(
        skeleton=skeleton, T_world_root=T_world_root[None], wxyz=wxyz[None], rate=100.0
    )
    T = motion.T_world_joint()[:, skeleton.sensor_joint] @ skeleton.T_joint_sensor
    take = marey.Take(
        rate=100.0,
        points=motion.marker_points(),
        labels=skeleton.marker_labels,
        T_world_sensor=T,
        sensor_names=skeleton.sensor_names,
    )
    return motion, take


@pytest.mark.parametrize("seed", range(3))
def test_the_sparse_inverse_agrees_with_the_dense_one(seed):
    """For joints of every kind, from markers and sensors."""
    motion, take = noisy_pose_of_every_kind(seed)
    skeleton, sds = motion.skeleton, (2e-3, 3e-3, 1e-2)
    fitted = FittedTargets(motion, take)
    sensor_weight = np.tile(np.array(sds[1:]) ** -2.0, (2, 1))
    weight = np.full(len(fitted.matches.marker), sds[0] ** -2.0)
    found = fitted.rotation_sd((weight, sensor_weight), prior=1e-9)
    turns = geometry.matrix_from_quat(motion.wxyz[0])
    root, seen = motion.T_world_root[0, :3, 3], (take.points[0], take.T_world_sensor[0])
    expected = naive.joint_rotation_sd(skeleton, root, turns, *seen, sds)
    np.testing.assert_allclose(found[0], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "damage",
    [
        {"noise": 1e-3},
        {"noise": 3e-3, "markers": "sparse41"},
        {"noise": 1e-3, "gaps": 0.1, "gross": 0.005},
        {"noise": 1e-3, "soft_tissue": 4e-3},
        {"noise": 2e-3, "markers": "none", "sensors": True, "turn_noise": 5e-3},
    ],
    ids=lambda damage: ", ".join(damage),
)
def test_errors_are_as_large_as_their_standard_deviations(damage):
    skeleton, take = record(motion="walk", seed=5, seconds=2.0, **damage)
    motion = marey.solve_pose(skeleton, take)
    assert 0.8 < rms(relative_errors(motion, take.truth.motion)) < 1.25


def test_a_solve_returns_calibrated_angles():
    """With a skeleton of its own, whose joints rotate from another zero."""
    take = marey.synth.human(seed=2).record(
        "exercise", markers="set53", seconds=4.0, rate=50.0, noise=1e-3
    )
    motion = marey.solve(take).motion
    true = take.truth.motion
    ratios = []
    for name in ("LeftLowerLeg", "RightLowerArm", "LeftFoot", "RightUpperLeg"):
        a, b = motion.skeleton.index(name), true.skeleton.index(name)
        found = geometry.matrix_from_quat(motion.wxyz[:, a])
        known = geometry.matrix_from_quat(true.wxyz[:, b])
        ratios.append(_residual_rotation(found, known) / motion.angle_sd[:, a])
    assert 0.8 < rms(np.concatenate(ratios)) < 1.25


def _residual_rotation(found, known):
    """Rotation vectors from one to the other, after the best P found Q = known."""
    P, Q = np.eye(3), np.eye(3)
    for _ in range(50):
        P = _nearest((known @ np.swapaxes(found @ Q, -1, -2)).mean(axis=0))
        Q = _nearest((np.swapaxes(P @ found, -1, -2) @ known).mean(axis=0))
    error = np.swapaxes(found, -1, -2) @ (P.T @ known @ Q.T)
    return geometry.quat_log(geometry.quat_from_matrix(error))


def _nearest(M):
    U, _, Vt = np.linalg.svd(M)
    return U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt


def test_twice_the_noise_is_twice_the_uncertainty():
    skeleton, take = record(motion="walk", seconds=1.0, noise=1e-3)
    clean = record(motion="walk", seconds=1.0)[1].points
    noisy = replace(take, points=clean + 2.0 * (take.points - clean))
    once, twice = (marey.solve_pose(skeleton, t).angle_sd for t in (take, noisy))
    ratio = twice[once > 0.0] / once[once > 0.0]
    np.testing.assert_allclose(np.median(ratio), 2.0, rtol=0.02)


def test_angles_that_nothing_determines_are_nan_and_only_they():
    """An arm is hidden for a while, then all but one marker of a hand."""
    skeleton, take = record(motion="walk", seconds=1.0, noise=1e-3)
    arm = ("LeftLowerArm", "LeftHand")
    hidden = hide_markers(
        take, slice(20, 40), markers_on(take, skeleton, *arm)[:, None]
    )
    sd = marey.solve_pose(skeleton, hidden).angle_sd
    unknown = np.isnan(sd).all(axis=2)
    joints = [skeleton.index(name) for name in arm]
    assert unknown[20:40, joints].all()
    others = np.setdiff1d(np.arange(skeleton.n_joints), joints)
    assert not unknown[:, others].any()
    assert not unknown[:20].any()
    assert not unknown[40:].any()


def chain_of_points(rng, n_bones=5, n_frames=60):
    """A chain whose bones have one marker each, at their ends; four on the root."""
    offset = np.concatenate([np.zeros((1, 3)), rng.uniform(-0.2, 0.2, (n_bones, 3))])
    kinds: list[Kind] = ["ball"] * n_bones
    skeleton = marey.Skeleton(
        names=("Root", *(f"bone{i}" for i in range(n_bones))),
        parent=np.arange(-1, n_bones),
        offset=offset,
        kind=("root", *kinds),
        marker_labels=tuple(f"M{k}" for k in range(4 + n_bones)),
        marker_joint=np.array([0, 0, 0, 0, *range(1, n_bones + 1)]),
        marker_offset=np.concatenate(
            [rng.uniform(-0.1, 0.1, (4, 3)), offset[2:], [[0.1, 0.0, 0.05]]]
        ),
    )
    swing = np.cumsum(rng.normal(0.0, 0.05, (n_frames, n_bones + 1, 3)), axis=0)
    T_world_root = np.tile(np.eye(4), (n_frames, 1, 1))
    wxyz = geometry.quat_exp(swing)
    T_world_root[:, :3, :3] = geometry.matrix_from_quat(wxyz[:, 0])
    return marey.Motion(
        skeleton=skeleton, T_world_root=T_world_root, wxyz=wxyz, rate=60.0
    )


@pytest.mark.parametrize("noise", [1e-5, 1e-4, 1e-3])
def test_single_markers_determine_no_rotation_however_exact_they_are(noise):
    """Each may roll about the line to its end, if the next one rolls back."""
    rng = np.random.default_rng(0)
    truth = chain_of_points(rng)
    skeleton, points = truth.skeleton, truth.marker_points()
    take = marey.Take(
        rate=truth.rate,
        points=points + rng.normal(0.0, noise, points.shape),
        labels=skeleton.marker_labels,
    )
    motion, findings = fit_pose(skeleton, take)
    assert np.isnan(motion.angle_sd[:, 1:]).any(axis=2).all()
    assert np.isfinite(motion.angle_sd[:, 0]).all()
    (never,) = [f for f in findings if f.code == "joint-never-seen"]
    assert never.value == skeleton.n_joints - 1
    assert never.severity == "info"
    assert "as usual for keypoints" in never.message
    shown = never.message.partition(" turn about")[0]
    assert sum(name in shown for name in skeleton.names) == min(never.value, 3)


def test_a_bone_between_two_that_are_seen_is_named_and_they_are_not():
    """The two have markers enough; how the bend is shared between both joints is not
    known."""
    skeleton, take = record(motion="walk", seconds=1.0, noise=1e-3)
    middle, last = (skeleton.index(f"Left{name}") for name in ("LowerLeg", "Foot"))
    hidden = hide_markers(
        take, slice(None), markers_on(take, skeleton, "LeftLowerLeg")[:, None]
    )
    motion, findings = fit_pose(skeleton, hidden)
    (never,) = [f for f in findings if f.code == "joint-never-seen"]
    assert np.isnan(motion.angle_sd[:, [middle, last]]).any(axis=2).all()
    assert "LeftLowerLeg" in never.message
    assert "LeftFoot" not in never.message


def test_joints_that_cannot_rotate_are_certain():
    motion, take = noisy_pose_of_every_kind(0)
    motion = marey.solve_pose(motion.skeleton, take)
    fixed = motion.skeleton.index("fixed")
    assert (motion.angle_sd[:, fixed] == 0.0).all()


def test_uncertainty_goes_with_its_frames(tmp_path):
    skeleton, take = record(motion="walk", seconds=1.0, noise=1e-3, gaps=0.2)
    motion = marey.solve_pose(skeleton, take)
    sd = motion.angle_sd
    np.testing.assert_array_equal(motion.cut(10, 30).angle_sd, sd[10:30])
    np.testing.assert_array_equal(motion.at(motion.times[[3, 7]]).angle_sd, sd[[3, 7]])
    between = motion.at(motion.start + 3.5 / motion.rate).angle_sd[0]
    np.testing.assert_allclose(between, 0.5 * (sd[3] + sd[4]))
    assert motion.resample(50.0).angle_sd.shape[0] == 50
    marey.write(motion, tmp_path / "walk.npz")
    np.testing.assert_array_equal(marey.read_motion(tmp_path / "walk.npz").angle_sd, sd)


def test_a_motion_of_unknown_uncertainty_says_so(unchecked):
    skeleton, take = record(motion="walk", seconds=0.2)
    motion = take.truth.motion
    assert motion.angle_sd.shape == (motion.n_frames, skeleton.n_joints, 3)
    assert np.isnan(motion.angle_sd).all()
    with pytest.raises(marey.DataError, match=r"motion.angle_sd: found \(1, "):
        replace(motion, angle_sd=np.zeros((1, skeleton.n_joints, 3)))


@pytest.mark.parametrize(
    ("markers", "sensors", "method"),
    [
        ("set53", False, "gauss_newton"),
        ("none", True, "playback"),
        ("set53", True, "gauss_newton"),
    ],
)
def test_without_a_method_the_targets_decide(markers, sensors, method):
    skeleton, take = record(seconds=0.3, markers=markers, sensors=sensors)
    found = marey.solve_pose(skeleton, take)
    expected = marey.solve_pose(skeleton, take, method=method)
    np.testing.assert_array_equal(found.wxyz, expected.wxyz)
