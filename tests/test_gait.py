"""Steps of walks: counted, measured, and averaged over cycles."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import synth
from marey.clinical import gait
from marey.errors import DataError

STRIDE_S, SPEED, SWING_RAD = 1.0, 1.4, 0.4


@pytest.fixture(scope="module")
def walk():
    """A compass: straight legs that swing as sines of one second, along a diagonal."""
    skeleton = synth.human(seed=1).record("walk", seconds=0.1).truth.motion.skeleton
    rate, n = 100.0, 550
    seconds = np.arange(n) / rate
    R = marey.geometry.rotation_exp(np.array([0.0, 0.0, 0.7]))
    T = np.tile(np.eye(4), (n, 1, 1))
    T[:, :3, :3] = R
    T[:, :3, 3] = skeleton.offset[0] + SPEED * seconds[:, None] * R[:, 0]
    rotvec = np.zeros((n, skeleton.n_joints, 3))
    for side, sign in (("Left", 1.0), ("Right", -1.0)):
        swing = sign * SWING_RAD * np.sin(2 * np.pi * seconds / STRIDE_S)
        rotvec[:, skeleton.index(f"{side}UpperLeg"), 1] = -swing
    wxyz = marey.geometry.quat_exp(rotvec)
    wxyz[:, 0] = marey.geometry.quat_from_matrix(T[:, :3, :3])
    return marey.Motion(skeleton=skeleton, T_world_root=T, wxyz=wxyz, rate=rate)


def test_feet_strike_ahead_and_leave_behind(walk):
    """A left foot is ahead at a quarter of its second, and behind at three quarters."""
    left = [plant for plant in gait(walk).plants if plant.side == "Left"]
    np.testing.assert_allclose([p.start for p in left], np.arange(6) + 0.25, atol=0.011)
    whole = [plant for plant in left if plant.whole]
    np.testing.assert_allclose([p.end for p in whole], np.arange(5) + 0.75, atol=0.05)


def test_cadence_speed_and_times_are_those_of_the_walk(walk):
    found = gait(walk)
    assert found.cadence == pytest.approx(120.0 / STRIDE_S, rel=0.01)
    assert found.speed == pytest.approx(SPEED)
    np.testing.assert_allclose(found.stride_time, STRIDE_S, atol=0.011)
    np.testing.assert_allclose(found.stance_share, 0.5, atol=0.05)
    assert found.double_support == pytest.approx(0.0, abs=0.1)


def test_steps_have_their_lengths_and_widths(walk):
    """In the middle of its stance each ankle is below the hips of a steady walker."""
    found = gait(walk)
    rest = walk.skeleton.rest()[:, :3, 3]
    ankles = [rest[walk.skeleton.index(f"{side}Foot")] for side in ("Left", "Right")]
    width = abs(ankles[0][1] - ankles[1][1])
    step = 0.5 * SPEED * STRIDE_S
    inner = {side: lengths[1:-1] for side, lengths in found.step_length.items()}
    np.testing.assert_allclose(inner["Left"], step, atol=0.05)
    np.testing.assert_allclose(inner["Right"], step, atol=0.05)
    np.testing.assert_allclose(found.step_width, width, atol=0.01)


def test_the_way_walked_does_not_matter(walk):
    found, wanted = gait(turned(walk, 1.1)), gait(walk)
    np.testing.assert_allclose(found.step_width, wanted.step_width, atol=1e-9)
    np.testing.assert_allclose(
        found.step_length["Left"], wanted.step_length["Left"], atol=1e-9
    )


def turned(motion, angle):
    R = marey.geometry.rotation_exp(np.array([0.0, 0.0, angle]))
    T = marey.geometry.transform(R, np.zeros(3)) @ motion.T_world_root
    return replace(motion, T_world_root=T)


def test_the_mean_cycle_of_a_regular_walk_is_its_swing(walk):
    angles = marey.angles(walk)
    mean, sd, n = gait(walk).mean_cycle(angles, "left_hip_flexion", "Left")
    assert n == 5
    share = np.linspace(0.0, 1.0, 101)
    swing = np.rad2deg(SWING_RAD) * np.cos(2 * np.pi * share)
    np.testing.assert_allclose(mean, swing, atol=2.0)
    assert sd.max() < 1.0


@pytest.mark.parametrize("side", ["Left", "Right"])
@pytest.mark.parametrize("first", [10, 35, 60])
def test_a_stance_that_the_recording_cuts_begins_no_cycle(walk, side, first):
    """Wherever a regular walk is cut, all its cycles are alike."""
    cut = walk.cut(first, walk.n_frames)
    name = f"{side.lower()}_hip_flexion"
    _, sd, n = gait(cut).mean_cycle(marey.angles(cut), name, side)
    assert n >= 1
    assert sd.max() < 0.5


def test_who_stands_does_not_walk(walk):
    still = replace(
        walk,
        T_world_root=np.repeat(walk.T_world_root[:1], 550, axis=0),
        wxyz=np.repeat(walk.wxyz[:1], 550, axis=0),
    )
    with pytest.raises(DataError, match="no foot"):
        gait(still)


def test_one_stance_has_no_cycle(walk):
    short = walk.cut(0, 100)
    with pytest.raises(DataError, match="two or more"):
        gait(short).mean_cycle(marey.angles(short), "left_knee_flexion", "Left")
