"""The contract of all pose solvers: one suite that runs on each of them."""

from dataclasses import fields, replace
from importlib import import_module
from typing import Any

import numpy as np
import posed
import pytest

import marey
from marey import synth
from marey.numerics import geometry
from marey.pose import REGISTRY, fit_pose

METHODS = tuple(REGISTRY)
OPTIONS = {
    method: getattr(import_module(module), f"{method.title().replace('_', '')}Options")
    for method, module in REGISTRY.items()
}
FIGURES = {"human": synth.human, "robot": synth.robot, "snowman": synth.snowman}
pytestmark = pytest.mark.parametrize("method", METHODS)


def record(name="human", **options):
    markers = "set53" if name == "human" else 6
    return posed.record(FIGURES[name](), markers=markers, sensors=True, **options)


@pytest.mark.parametrize("name", list(FIGURES))
def test_exact_data_give_the_exact_pose(method, name):
    skeleton, take = record(name)
    motion = marey.solve_pose(skeleton, take, method=method)
    assert posed.joint_errors(motion, take).max() < 1e-9
    truth = take.truth.motion
    np.testing.assert_allclose(motion.wxyz, truth.wxyz, atol=1e-8)
    np.testing.assert_allclose(motion.T_world_root, truth.T_world_root, atol=1e-8)


def test_the_motion_is_the_takes(method):
    skeleton, take = record(noise=2e-3, turn_noise=5e-3)
    take = replace(take, start=3.5)
    motion, findings = fit_pose(skeleton, take, method=method)
    assert motion.skeleton is skeleton
    assert (motion.n_frames, motion.rate) == (take.n_frames, take.rate)
    assert motion.start == take.start
    assert all(finding.stage == "pose" for finding in findings)
    alone = marey.solve_pose(skeleton, take, method=method)
    np.testing.assert_array_equal(alone.wxyz, motion.wxyz)


def test_rotations_are_unit_continuous_and_whole(method):
    skeleton, take = record(seconds=2.0, noise=2e-3, turn_noise=5e-3, gaps=0.1)
    motion = marey.solve_pose(skeleton, take, method=method)
    assert np.isfinite(motion.wxyz).all()
    assert np.isfinite(motion.T_world_root).all()
    np.testing.assert_allclose(np.linalg.norm(motion.wxyz, axis=-1), 1.0, atol=1e-12)
    assert (np.sum(motion.wxyz[1:] * motion.wxyz[:-1], axis=-1) > 0.0).all()


def test_sensors_that_come_and_go_leave_no_hole(method):
    noise = {"noise": 2e-3, "turn_noise": 5e-3, "sensor_gaps": 0.2}
    skeleton, take = posed.record(markers="none", sensors=True, seconds=2.0, **noise)
    motion = marey.solve_pose(skeleton, take, method=method)
    assert np.isfinite(motion.wxyz).all()
    assert np.isfinite(motion.T_world_root).all()
    assert np.median(posed.joint_errors(motion, take)) < 0.01


def test_what_is_ignored_is_as_good_as_unseen(method):
    """And the values there do not matter."""
    skeleton, take = record(noise=2e-3, turn_noise=5e-3)
    joint = skeleton.index("LeftLowerArm")
    ignore = np.zeros((take.n_frames, skeleton.n_joints), dtype=bool)
    ignore[30:40, joint] = True
    points, T = take.points.copy(), take.T_world_sensor.copy()
    points[30:40, take.truth.marker_joint == joint] = np.nan
    T[30:40, take.truth.sensor_joint == joint] = np.nan
    unseen = replace(take, points=points, T_world_sensor=T)
    corrupted = replace(
        take,
        points=np.where(np.isnan(points), 1e3, points),
        T_world_sensor=np.where(np.isnan(T), np.diag([1.0, -1.0, -1.0, 1.0]), T),
    )
    one, two = (
        marey.solve_pose(skeleton, t, method=method, ignore=ignore)
        for t in (take, corrupted)
    )
    three = marey.solve_pose(skeleton, unseen, method=method)
    np.testing.assert_array_equal(one.wxyz, two.wxyz)
    np.testing.assert_array_equal(one.wxyz, three.wxyz)


def test_bones_keep_their_lengths(method):
    skeleton, take = record(noise=5e-3, turn_noise=1e-2)
    motion = marey.solve_pose(skeleton, take, method=method)
    position = motion.T_world_joint()[..., :3, 3]
    bone = position - position[:, skeleton.parent]
    length = np.linalg.norm(bone, axis=-1)[:, 1:]
    every = np.broadcast_to(skeleton.lengths[1:], length.shape)
    np.testing.assert_allclose(length, every, atol=1e-12)


def test_moving_the_world_moves_the_root_alone(method, rng):
    skeleton, take = record(noise=2e-3, turn_noise=5e-3)
    T = geometry.transform(
        geometry.rotation_exp(rng.normal(size=3)), np.array([8.0, -5.0, 2.0])
    )
    before = marey.solve_pose(skeleton, take, method=method)
    after = marey.solve_pose(skeleton, posed.move_world(take, T), method=method)
    np.testing.assert_allclose(after.wxyz[:, 1:], before.wxyz[:, 1:], atol=1e-7)
    np.testing.assert_allclose(after.T_world_root, T @ before.T_world_root, atol=1e-7)


def test_the_order_of_markers_and_sensors_does_not_matter(method, rng):
    skeleton, take = record(noise=2e-3, turn_noise=5e-3)
    markers, sensors = rng.permutation(53), rng.permutation(len(take.sensor_names))
    mixed = replace(
        take,
        points=take.points[:, markers],
        labels=tuple(take.labels[i] for i in markers),
        subjects=tuple(take.subjects[i] for i in markers),
        T_world_sensor=take.T_world_sensor[:, sensors],
        sensor_names=tuple(take.sensor_names[i] for i in sensors),
    )
    one = marey.solve_pose(skeleton, take, method=method)
    two = marey.solve_pose(skeleton, mixed, method=method)
    np.testing.assert_allclose(two.wxyz, one.wxyz, atol=1e-9)


def test_the_same_input_gives_the_same_bits(method):
    skeleton, take = record(noise=2e-3, turn_noise=5e-3, gaps=0.1)
    one, two = (marey.solve_pose(skeleton, take, method=method) for _ in range(2))
    np.testing.assert_array_equal(one.wxyz, two.wxyz)
    np.testing.assert_array_equal(one.T_world_root, two.T_world_root)


def test_the_input_is_left_alone(method):
    skeleton, take = record(noise=2e-3)
    points, T = take.points.copy(), take.T_world_sensor.copy()
    marey.solve_pose(skeleton, take, method=method)
    np.testing.assert_array_equal(take.points, points)
    np.testing.assert_array_equal(take.T_world_sensor, T)


def test_a_take_of_another_skeleton_is_refused(method):
    skeleton, _ = record()
    _, other = posed.record(synth.snowman(), markers=3, sensors=True)
    with pytest.raises(marey.DataError, match="Hips"):
        marey.solve_pose(skeleton, other, method=method)


@pytest.mark.parametrize("option", ["magic", "marker_sds"])
def test_an_unknown_option_is_refused_and_those_known_are_named(method, option):
    skeleton, take = record()
    known = [field.name for field in fields(OPTIONS[method])]
    one: dict[str, Any] = {option: 1.0}
    with pytest.raises(marey.OptionError) as refused:
        marey.solve_pose(skeleton, take, method=method, **one)
    assert str(refused.value).startswith(f"{option}: found 1.0")
    needed = f"one of {', '.join(known)}" if known else "no option at all"
    assert refused.value.needed == needed


@pytest.mark.parametrize(
    ("option", "value"),
    [("marker_sd", "2 mm"), ("reference_sd", None), ("steps", 2.5), ("ground", [0.0])],
)
def test_an_option_of_another_kind_is_refused(method, option, value, unchecked):
    skeleton, take = record()
    with pytest.raises(marey.OptionError, match=f"^{option}: "):
        marey.solve_pose(skeleton, take, method=method, **{option: value})


def test_numbers_of_numpy_are_numbers(method, unchecked):
    known = {field.name for field in fields(OPTIONS[method])}
    given = {"marker_sd": np.float32(0.001), "rotation_sd": 1, "steps": np.int32(50)}
    options = {name: value for name, value in given.items() if name in known}
    chosen = OPTIONS[method](**options)
    assert {name: getattr(chosen, name) for name in options} == options


def test_what_one_method_knows_another_need_not(method):
    """Every name that some method knows is taken here, or refused as unknown."""
    skeleton, take = record()
    known = {field.name for field in fields(OPTIONS[method])}
    for name in {field.name for kind in OPTIONS.values() for field in fields(kind)}:
        if name not in known:
            one: dict[str, Any] = {name: 1.0}
            with pytest.raises(marey.OptionError, match=f"^{name}: "):
                marey.solve_pose(skeleton, take, method=method, **one)
