"""Skeletons from bodies, joints and trees, their poses, and the ground."""

from dataclasses import replace

import jointed
import numpy as np
import pytest

import marey
from marey import metrics, synth
from marey.pose import solve_pose
from marey.rig import build_skeleton, build_skeletons
from marey.rig.ground import estimate_ground
from marey.segmentation import segment
from marey.topology import infer_tree


@pytest.fixture(scope="module")
def solved():
    take, bodies = jointed.record_sensors(synth.human(), seconds=12.0)
    joints = jointed.fit_all_pairs(bodies)
    return take, bodies, joints, infer_tree(joints)


def test_exact_data_gives_exact_bones(solved):
    take, *parts = solved
    score = metrics.compare(build_skeleton(*parts), take)
    assert score.max < 1e-9


def test_playback_of_exact_data_is_the_recording(solved):
    take, *parts = solved
    skeleton = build_skeleton(*parts)
    motion = solve_pose(skeleton, take)
    T = motion.T_world_joint()[:, skeleton.sensor_joint] @ skeleton.T_joint_sensor
    order = [take.sensor_names.index(name) for name in skeleton.sensor_names]
    np.testing.assert_allclose(T, take.T_world_sensor[:, order], atol=1e-9)


def test_an_animal_with_the_names_of_a_person_rests_on_its_four_legs():
    """No T-pose: the front legs are not stretched sideways."""
    _, bodies = jointed.record_sensors(synth.quadruped(), seconds=12.0)
    joints = jointed.fit_all_pairs(bodies)
    skeleton = build_skeleton(bodies, joints, infer_tree(joints))
    position = dict(zip(skeleton.names, skeleton.rest()[:, :3, 3], strict=True))
    for side in ("Left", "Right"):
        leg = position[f"{side}Hand"] - position[f"{side}UpperArm"]
        assert -leg[2] / np.linalg.norm(leg) > 0.7


def test_every_root_becomes_a_skeleton():
    take = synth.scene("together", markers="none", sensors=True, rate=60.0)
    bodies = segment(take)
    joints = jointed.fit_all_pairs(bodies)
    tree = infer_tree(joints)
    with pytest.raises(marey.DataError, match="2 roots"):
        build_skeleton(bodies, joints, tree)
    names = [set(s.sensor_names) for s in build_skeletons(bodies, joints, tree)]
    assert names[0] | names[1] == set(bodies.names)
    assert not names[0] & names[1]


def test_joints_have_names_without_subjects_where_these_are_enough(solved):
    """Two subjects in one tree: only equal names keep their subject."""
    _, bodies, joints, tree = solved
    one_subject = replace(bodies, names=tuple(f"JOE:{name}" for name in bodies.names))
    of_one = build_skeleton(one_subject, joints, tree).names
    assert of_one == build_skeleton(bodies, joints, tree).names
    both = [f"JOE:{bodies.names[0]}", f"JIM:{bodies.names[0]}"]
    names = (*both, *(f"JIM:{name}" for name in bodies.names[2:]))
    skeleton = build_skeleton(replace(bodies, names=names), joints, tree)
    bare = {name for name in skeleton.names if ":" not in name}
    assert set(both) <= set(skeleton.names)
    assert set(bodies.names[2:]) <= bare
    assert [skeleton.joint_of(name) for name in names] == [*both, *bodies.names[2:]]


def test_playback_keeps_bone_lengths_under_noise():
    take, bodies = jointed.record_sensors(
        synth.human(), seconds=8.0, noise=5e-3, sensor_gaps=0.1
    )
    joints = jointed.fit_all_pairs(bodies)
    skeleton = build_skeleton(bodies, joints, infer_tree(joints))
    motion = solve_pose(skeleton, take)
    positions = motion.T_world_joint()[..., :3, 3]
    lengths = np.linalg.norm(positions - positions[:, skeleton.parent], axis=-1)[:, 1:]
    assert np.isfinite(positions).all()
    np.testing.assert_allclose(lengths, lengths[:1] + 0 * lengths, atol=1e-12)


def test_playback_averages_the_error_of_the_root():
    """The mean over sensors is nearer than the root's sensor alone."""
    take, bodies = jointed.record_sensors(synth.human(), seconds=6.0, noise=5e-3)
    joints = jointed.fit_all_pairs(bodies)
    skeleton = build_skeleton(bodies, joints, infer_tree(joints))
    motion = solve_pose(skeleton, take)
    T = motion.T_world_joint()[:, skeleton.sensor_joint] @ skeleton.T_joint_sensor
    order = [take.sensor_names.index(name) for name in skeleton.sensor_names]
    clean = take.truth.T_world_sensor[:, order][..., :3, 3]
    error = np.linalg.norm(T[..., :3, 3] - clean, axis=-1)
    sensor_error = np.linalg.norm(
        take.T_world_sensor[:, order][..., :3, 3] - clean, axis=-1
    )
    assert np.sqrt((error**2).mean()) < 0.7 * np.sqrt((sensor_error**2).mean())


def test_a_take_without_the_sensors_is_refused(solved):
    take, *parts = solved
    other = synth.snowman().record(markers="none", sensors=True)
    with pytest.raises(marey.DataError, match="Hips"):
        solve_pose(build_skeleton(*parts), other)
    with pytest.raises(marey.OptionError, match="magic"):
        solve_pose(build_skeleton(*parts), take, method="magic")


# --- the ground -----------------------------------------------------------------------


def record_walk(**options):
    return synth.human().record("walk", seconds=6.0, rate=60.0, **options)


@pytest.mark.parametrize("sensors", [False, True])
def test_the_ground_is_just_below_the_feet(sensors):
    markers = "none" if sensors else "dense110"
    ground = estimate_ground(record_walk(markers=markers, sensors=sensors, noise=1e-3))
    assert -3e-3 <= ground.height < (0.12 if sensors else 0.04)


def test_the_ground_rises_with_the_recording_and_does_not_rotate_with_it():
    take = record_walk(noise=1e-3)
    R = marey.geometry.rotation_exp(np.array([0.0, 0.0, 1.2]))
    moved = replace(take, points=take.points @ R.T + [3.0, -1.0, 0.7])
    here, there = estimate_ground(take), estimate_ground(moved)
    assert there.height == pytest.approx(here.height + 0.7, abs=1e-9)
    assert there.spread == pytest.approx(here.spread, abs=1e-9)


def test_occlusions_and_single_outliers_do_not_move_the_ground(rng):
    take = record_walk(noise=1e-3)
    points = take.points.copy()
    points[rng.random(points.shape[:2]) < 0.2] = np.nan
    points[::50, 3] = [0.0, 0.0, -2.0]
    assert estimate_ground(replace(take, points=points)).height == pytest.approx(
        estimate_ground(take).height, abs=0.01
    )


def test_a_recording_without_still_points_has_no_ground():
    take = record_walk()
    falling = take.points + np.linspace(0.0, -30.0, len(take.points))[:, None, None]
    assert estimate_ground(replace(take, points=falling)) is None
