"""Holds found in a motion: where, by what and for how long a hand was held."""

from dataclasses import replace

import numpy as np
import posed
import pytest

import marey
from marey import synth
from marey.numerics import geometry
from marey.pose.contact.holds import find_holds
from marey.pose.physics import Hold, fit_physics

RAIL = np.array([0.1, 0.1, 0.1])


@pytest.fixture(scope="module")
def walk():
    return posed.record(motion="walk", seconds=3.0)


def recorded(walk, hold, noise=1e-3):
    """The motion of a walk with a hold, fitted to its noisy markers."""
    skeleton, take = walk
    true = fit_physics(skeleton, take, holds=(hold,)).motion
    rng = np.random.default_rng(0)
    points = true.marker_points()
    points += rng.normal(scale=noise, size=points.shape)
    return marey.solve_pose(
        skeleton, replace(take, points=points), method="gauss_newton"
    )


def rail_of(walk):
    """A position in the world near the left hand at half time."""
    skeleton, take = walk
    T = take.truth.motion.T_world_joint()
    return T[130, skeleton.index("LeftHand"), :3, 3] + RAIL


def test_a_hand_on_a_rail(walk):
    rail = rail_of(walk)
    given = Hold(joint="LeftHand", target=rail, start=1.0, end=1.7, strength=1e4)
    (found,) = find_holds(recorded(walk, given))
    assert (found.joint, found.target_joint) == ("LeftHand", "")
    assert (found.start, found.end) == pytest.approx((1.0, 1.7), abs=0.03)
    np.testing.assert_allclose(found.target, rail, atol=1e-3)


@pytest.mark.parametrize(
    ("other", "at"),
    [
        ("Hips", [0.1, 0.17, 0.05]),
        pytest.param("RightHand", [0.0, 0.0, -0.05], marks=pytest.mark.slow),
    ],
)
def test_a_hand_on_a_hip_and_on_the_other_hand(walk, other, at):
    point = "LeftHand" if other == "Hips" else "LeftHandEnd"
    given = Hold(
        joint=point,
        target=np.array(at),
        target_joint=other,
        start=0.8,
        end=2.2,
        strength=1e4,
    )
    (found,) = find_holds(recorded(walk, given), strength=30.0)
    assert (found.joint, found.target_joint) == ("LeftHand", other)
    assert (found.start, found.end) == pytest.approx((0.8, 2.2), abs=0.05)
    np.testing.assert_allclose(found.target, at, atol=2e-3)
    assert found.strength == 30.0


def test_holds_that_are_found_can_be_kept(walk):
    """The hand then moves less on its rail than its markers do."""
    skeleton, take = walk
    given = Hold(
        joint="LeftHand", target=rail_of(walk), start=1.0, end=1.7, strength=1e4
    )
    motion = recorded(walk, given, noise=2e-3)
    rng = np.random.default_rng(1)
    points = motion.marker_points()
    again = replace(take, points=points + rng.normal(scale=2e-3, size=points.shape))
    hand, spread = skeleton.index("LeftHand"), []
    for holds in ((), find_holds(motion, strength=100.0)):
        kept = fit_physics(skeleton, again, holds=holds).motion
        spread.append(kept.T_world_joint()[105:165, hand, :3, 3].std(axis=0).max())
    assert spread[1] < 0.2 * spread[0]


@pytest.mark.parametrize("scene", ["handover", "clasp"])
def test_hands_on_a_prop_and_in_the_hand_of_someone_else(scene):
    take = synth.scene(scene, seconds=6.0, rate=60.0)
    motions = take.truth.motions
    for link in take.truth.links:
        motion = motions[link.subject_a]
        others = {
            str(k): other for k, other in enumerate(motions) if k != link.subject_a
        }
        (found,) = find_holds(motion, others)
        assert found.joint == "RightHand"
        assert (found.start, found.end) == pytest.approx(
            (link.start, link.end), abs=0.05
        )
        assert found.target.shape == (motion.n_frames, 3)
        hand = motion.T_world_joint()[:, motion.skeleton.index(found.joint)]
        during = (motion.times > link.start + 0.1) & (motion.times < link.end - 0.1)
        away = geometry.apply(hand, found.point) - found.target
        assert np.linalg.norm(away[during], axis=-1).max() < 1e-3


@pytest.mark.parametrize("motion", ["walk", "kick_punch", "jump", "still", "swing"])
def test_nothing_is_held_where_nothing_holds(motion):
    """Feet stand and arms are at rest; none of that is a hold."""
    skeleton, take = posed.record(motion=motion, seconds=3.0, noise=1e-3)
    assert find_holds(marey.solve_pose(skeleton, take, method="gauss_newton")) == ()


def test_a_prop_has_the_same_frames(walk):
    motion = walk[1].truth.motion
    with pytest.raises(marey.DataError, match="prop stick"):
        find_holds(motion, {"stick": motion.at(motion.times[:5])})


def test_a_hold_by_frame_has_all_frames(walk):
    skeleton, take = walk
    path = np.zeros((7, 3))
    with pytest.raises(marey.DataError, match="7 positions"):
        fit_physics(skeleton, take, holds=(Hold(joint="LeftHand", target=path),))
    with pytest.raises(marey.OptionError, match="one position"):
        Hold(joint="LeftHand", target=path, target_joint="Hips")
