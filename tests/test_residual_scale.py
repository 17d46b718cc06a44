"""Scales of a stream's residuals: limbs that do not fit are followed, not errors."""

from dataclasses import replace

import numpy as np
import posed
import pytest

from marey.numerics import geometry
from marey.numerics.robust import normal_length_quantile
from marey.numerics.thresholds import VELOCITY_TIME_S
from marey.pipeline.reporting.readiness import JointReadiness, doubt_joints
from marey.pose.gauss_newton.tracker import PoseTracker

MARKER_SD = 2e-3


@pytest.fixture(scope="module")
def exercise():
    """Every joint moves once; the true skeleton."""
    return posed.record(motion="exercise", seconds=12.0, rate=60.0, noise=5e-4)


def with_wrong_bones(skeleton):
    """Bones 10 % too long and too short in turn."""
    share = np.where(np.arange(skeleton.n_joints) % 2, 1.1, 0.9)
    return replace(skeleton, offset=skeleton.offset * share[:, None])


def marker_positions(skeleton, T):
    T = T[..., skeleton.marker_joint, :, :]
    turned = np.einsum("...ij,...j->...i", T[..., :3, :3], skeleton.marker_offset)
    return T[..., :3, 3] + turned


def tracked(skeleton, take, points, **options):
    """Poses of a stream, and its scales, by frame."""
    tracker = PoseTracker(skeleton, take.labels, rate=take.rate, **options)
    T, scales = [], []
    for frame in points:
        T.append(tracker.update_poses(frame))
        scales.append(tracker.residual_scale_m)
    return np.array(T), np.array(scales)


def posed_errors(T, take):
    """Distances of joints from the true ones, by frame and joint, in metres."""
    true = take.truth.motion.T_world_joint()
    return np.linalg.norm((T - true)[..., :3, 3], axis=-1)


def residuals(skeleton, take, T):
    return np.linalg.norm(marker_positions(skeleton, T) - take.points, axis=-1)


def test_a_stream_loses_no_limb_of_a_skeleton_with_wrong_bones(exercise):
    """At scales that are fixed, a marker is over 100 mm off in 28 % of the frames."""
    skeleton, take = exercise
    wrong = with_wrong_bones(skeleton)
    live = residuals(wrong, take, tracked(wrong, take, take.points)[0])
    fixed = tracked(wrong, take, take.points, adapt=False)[0]
    is_lost = (live.max(axis=1) > 0.1).mean()
    assert is_lost < 0.01
    assert is_lost < 0.1 * (residuals(wrong, take, fixed).max(axis=1) > 0.1).mean()


def test_scales_do_not_change_poses_of_a_skeleton_that_fits(exercise):
    skeleton, take = exercise
    points = take.points[:200]
    T, scales = tracked(skeleton, take, points)
    np.testing.assert_array_equal(scales, MARKER_SD)
    np.testing.assert_array_equal(T, tracked(skeleton, take, points, adapt=False)[0])


def test_spikes_and_a_swap_do_not_draw_the_pose(exercise, rng):
    skeleton, take = exercise
    points = take.points.copy()
    hit = rng.random(points.shape[:2]) < 0.02
    points[hit] += 0.3 * rng.normal(size=(hit.sum(), 3))
    left, right = (
        np.flatnonzero(skeleton.marker_joint == skeleton.names.index(name))[0]
        for name in ("LeftLowerArm", "RightLowerArm")
    )
    points[200:400, [left, right]] = points[200:400, [right, left]]
    error = posed_errors(tracked(skeleton, take, points)[0], take).max(axis=1)
    fixed = tracked(skeleton, take, points, adapt=False)[0]
    assert error.max() <= 1.1 * posed_errors(fixed, take).max()
    assert np.quantile(error, 0.99) < 0.005


def test_scales_are_those_of_the_plain_recursion(exercise):
    """Lower median of each bone's markers, followed by its logarithm."""
    skeleton, take = exercise
    wrong = with_wrong_bones(skeleton)
    tracker = PoseTracker(wrong, take.labels, rate=take.rate, adapt=False)
    step = 1.0 / (take.rate * VELOCITY_TIME_S)
    scale = np.full(skeleton.n_joints, MARKER_SD)
    for points in take.points[:60]:
        root, wxyz = tracker.update(points)
        T_root = geometry.transform(geometry.matrix_from_quat(wxyz[0]), root)
        T = wrong.forward(T_root[None], wxyz[None])[0]
        off = np.linalg.norm(marker_positions(wrong, T) - points, axis=-1)
        for joint in set(skeleton.marker_joint.tolist()):
            seen = np.sort(off[skeleton.marker_joint == joint])
            usual = seen[(len(seen) - 1) // 2] / normal_length_quantile(0.5)
            factor = np.exp(step if usual > scale[joint] else -step)
            scale[joint] = max(scale[joint] * factor, MARKER_SD)
        found = tracker.residual_scale_m[skeleton.marker_joint]
        np.testing.assert_allclose(found, scale[skeleton.marker_joint], rtol=1e-9)
    assert scale.max() > 3.0 * MARKER_SD


def test_a_joint_is_not_ready_while_the_markers_beyond_it_do_not_fit(exercise):
    skeleton, take = exercise
    ready = tuple(JointReadiness(name, "ready", 1.0, "") for name in skeleton.names[1:])
    wrist = skeleton.names.index("LeftHand")
    wrong = replace(skeleton, marker_offset=skeleton.marker_offset.copy())
    wrong.marker_offset[skeleton.marker_joint == wrist] += [0.0, 0.0, 0.3]
    for one in (skeleton, wrong):
        scale = tracked(one, take, take.points[:120])[1][-1]
        states = doubt_joints(ready, one, scale)
        doubted = {joint.joint for joint in states if joint.state == "unknown"}
        assert bool(doubted) == (one is wrong)
        assert doubted <= {"LeftUpperArm", "LeftLowerArm", "LeftHand"}
        assert all((j.advice == "") == (j.state == "ready") for j in states)


def test_a_bone_without_markers_is_judged_by_those_beyond_it(exercise):
    skeleton = exercise[0]
    ready = tuple(JointReadiness(name, "ready", 1.0, "") for name in skeleton.names[1:])
    on_arm = np.isin(
        skeleton.marker_joint,
        [skeleton.names.index(f"Left{part}Arm") for part in ("Upper", "Lower")],
    )
    bare = replace(
        skeleton,
        marker_joint=skeleton.marker_joint[~on_arm],
        marker_offset=skeleton.marker_offset[~on_arm],
        marker_labels=tuple(np.array(skeleton.marker_labels)[~on_arm]),
    )
    scale = np.full(skeleton.n_joints, MARKER_SD)
    scale[skeleton.names.index("LeftHand")] = 0.05
    states = doubt_joints(ready, bare, scale)
    doubted = {joint.joint for joint in states if joint.state == "unknown"}
    assert {"LeftUpperArm", "LeftLowerArm", "LeftHand"} <= doubted
    assert not {"Spine", "RightHand", "LeftFoot"} & doubted
