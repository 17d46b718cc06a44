"""Steps of walks: counted, measured, and averaged over cycles."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import synth
from marey.clinical import gait
from marey.errors import DataError
from marey.motion import Contact

STEP_S, STEP_M, WIDTH_M, STANCE_S = 0.5, 0.7, 0.12, 0.6


@pytest.fixture(scope="module")
def walk():
    """A figure that slides along, whose plants are those of a regular walk.

    Steps of 0.7 m every half second, a stance of 0.6 s, along a direction aslant.
    """
    skeleton = synth.human(seed=1).record("walk", seconds=0.1).truth.motion.skeleton
    rate, n = 100.0, 600
    forward = np.array([np.cos(0.7), np.sin(0.7), 0.0])
    way = np.arange(n)[:, None] / rate * STEP_M / STEP_S * forward
    T = np.tile(np.eye(4), (n, 1, 1))
    T[:, :3, 3] = skeleton.offset[0] + way
    wxyz = np.tile([1.0, 0.0, 0.0, 0.0], (n, skeleton.n_joints, 1))
    plants = []
    for k in range(10):
        side = ("Left", "Right")[k % 2]
        start = 0.3 + k * STEP_S
        for joint, begin, end in (
            ("Foot", start, start + 0.4),
            ("Toes", start + 0.2, start + STANCE_S),
        ):
            plants.append(Contact(side + joint, begin, end, np.zeros(3)))
    return marey.Motion(
        skeleton=skeleton, T_world_root=T, wxyz=wxyz, rate=rate, contacts=tuple(plants)
    )


def test_heel_and_toes_of_a_stance_are_one_plant(walk):
    plants = gait(walk).plants
    assert len(plants) == 10
    assert [plant.side for plant in plants[:3]] == ["Left", "Right", "Left"]
    for plant in plants:
        assert plant.end - plant.start == pytest.approx(STANCE_S)


def test_cadence_speed_and_times_are_those_of_the_walk(walk):
    found = gait(walk)
    assert found.cadence == pytest.approx(60.0 / STEP_S)
    assert found.speed == pytest.approx(STEP_M / STEP_S)
    np.testing.assert_allclose(found.stride_time, 2 * STEP_S)
    np.testing.assert_allclose(found.stance_share, STANCE_S / (2 * STEP_S))
    assert found.double_support == pytest.approx((STANCE_S - STEP_S) / STEP_S, rel=0.02)


def test_steps_have_their_lengths_and_widths(walk):
    """The figure slides: its ankles stay beside each other."""
    found = gait(walk)
    skeleton = walk.skeleton
    rest = skeleton.rest()[:, :3, 3]
    apart = rest[skeleton.index("LeftFoot")] - rest[skeleton.index("RightFoot")]
    forward = np.array([np.cos(0.7), np.sin(0.7)])
    along = float(apart[:2] @ forward)
    across = abs(forward[0] * apart[1] - forward[1] * apart[0])
    np.testing.assert_allclose(found.step_length["Left"], STEP_M + along, atol=0.01)
    np.testing.assert_allclose(found.step_length["Right"], STEP_M - along, atol=0.01)
    np.testing.assert_allclose(found.step_width, across, atol=1e-6)


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


def test_the_mean_cycle_of_a_regular_angle_is_the_angle(walk):
    angles = marey.angles(walk)
    phase = (angles.times - 0.3) / (2 * STEP_S)
    degrees = angles.degrees.copy()
    column = angles.names.index("left_knee_flexion")
    degrees[:, column] = 30.0 - 30.0 * np.cos(2 * np.pi * phase)
    mean, sd, n = gait(walk).mean_cycle(
        replace(angles, degrees=degrees), "left_knee_flexion", "Left"
    )
    assert n == 4
    share = np.linspace(0.0, 1.0, 101)
    np.testing.assert_allclose(mean, 30 - 30 * np.cos(2 * np.pi * share), atol=0.1)
    np.testing.assert_allclose(sd, 0.0, atol=0.1)


def test_a_motion_without_plants_is_no_walk(walk):
    with pytest.raises(DataError, match="both feet"):
        gait(replace(walk, contacts=()))


def test_one_stance_has_no_cycle(walk):
    short = replace(walk, contacts=walk.contacts[:4])
    with pytest.raises(DataError, match="two or more"):
        gait(short).mean_cycle(marey.angles(short), "left_knee_flexion", "Left")
