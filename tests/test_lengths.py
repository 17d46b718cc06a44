"""Constant bone lengths: what they minimise, and how outliers affect them."""

import numpy as np
import pytest

import marey
from marey import synth
from marey.numerics import geometry
from marey.rig.lengths import (
    bone_lengths,
    find_outlier_joints,
    with_bone_lengths,
    with_constant_lengths,
)

METHODS = ("median", "mean", "huber", "tukey")
CHAIN = np.array([-1, 0, 1, 2])
BRANCHED = np.array([3, 0, 0, -1, 5, 3, -1])


def random_positions(rng, parent, n_frames=60):
    """Joints at independent positions in every frame."""
    return rng.normal(size=(n_frames, len(parent), 3))


def bone(distance):
    """A root at the origin and a joint at these distances, in any direction."""
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(len(distance), 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    joint = np.asarray(distance)[:, None] * direction
    return np.stack([np.zeros_like(joint), joint], axis=1)


def length_of(distance, method):
    return bone_lengths(bone(distance), np.array([-1, 0]), method)[1]


@pytest.mark.parametrize("method", METHODS)
def test_bones_that_are_constant_stay_as_they_are(method):
    motion = synth.human(seed=3).perform("walk", seconds=1.0, rate=60.0)
    skeleton, positions = motion.skeleton, motion.T_world_joint()[..., :3, 3]
    lengths = bone_lengths(positions, skeleton.parent, method)
    true = np.linalg.norm(skeleton.offset, axis=1)
    np.testing.assert_allclose(lengths[1:], true[1:], atol=1e-12)
    assert np.isnan(lengths[0])
    same = with_constant_lengths(positions, skeleton.parent, lengths)
    np.testing.assert_allclose(same, positions, atol=1e-12)


@pytest.mark.parametrize("parent", [CHAIN, BRANCHED])
def test_new_bones_are_constant_and_keep_their_direction_from_the_new_parent(
    parent, rng
):
    old = random_positions(rng, parent)
    lengths = bone_lengths(old, parent)
    new = with_constant_lengths(old, parent, lengths)
    for joint, above in enumerate(parent):
        if above < 0:
            np.testing.assert_array_equal(new[:, joint], old[:, joint])
            assert np.isnan(lengths[joint])
            continue
        bone, goal = new[:, joint] - new[:, above], old[:, joint] - new[:, above]
        np.testing.assert_allclose(np.linalg.norm(bone, axis=1), lengths[joint])
        np.testing.assert_allclose(np.cross(bone, goal), 0.0, atol=1e-12)
        assert (np.sum(bone * goal, axis=1) > 0.0).all()


@pytest.mark.parametrize(("method", "power"), [("median", 1), ("mean", 2)])
def test_no_other_length_moves_joints_less(method, power, rng):
    """Eq. 6 as printed for the median, squared for the mean, root to leaf."""
    old = random_positions(rng, CHAIN, 41)
    best = bone_lengths(old, CHAIN, method)

    def cost(joint, length):
        lengths = np.where(np.arange(4) == joint, length, best)
        new = with_constant_lengths(old, CHAIN, lengths)
        moved = np.linalg.norm(new[:, joint] - old[:, joint], axis=1)
        return np.sum(moved**power)

    for joint in (1, 2, 3):
        others = best[joint] + np.linspace(-0.5, 0.5, 101)
        least = min(cost(joint, length) for length in others)
        assert cost(joint, best[joint]) <= least + 1e-9
        assert cost(joint, best[joint] + 0.1) > cost(joint, best[joint])


@pytest.mark.parametrize("method", METHODS)
def test_the_world_the_unit_and_the_order_change_nothing(method, rng):
    old = random_positions(rng, BRANCHED)
    lengths = bone_lengths(old, BRANCHED, method)
    T = geometry.transform(geometry.rotation_exp(rng.normal(size=3)), np.ones(3))
    moved = bone_lengths(geometry.apply(T, old), BRANCHED, method)
    np.testing.assert_allclose(moved, lengths, rtol=1e-9)
    np.testing.assert_allclose(
        bone_lengths(1e3 * old, BRANCHED, method), 1e3 * lengths, rtol=1e-9
    )
    order = rng.permutation(len(BRANCHED))
    place = np.argsort(order)
    mixed = np.where(BRANCHED[order] < 0, -1, place[BRANCHED[order]])
    np.testing.assert_allclose(
        bone_lengths(old[::-1][:, order], mixed, method), lengths[order], rtol=1e-9
    )


@pytest.mark.parametrize("method", METHODS)
def test_unseen_frames_do_not_count(method, rng):
    old = random_positions(rng, CHAIN)
    hidden = old.copy()
    hidden[:20, 1] = np.nan
    lengths = bone_lengths(hidden, CHAIN, method)
    np.testing.assert_allclose(
        lengths[1], bone_lengths(old[20:], CHAIN, method)[1], rtol=1e-12
    )
    new = with_constant_lengths(hidden, CHAIN, lengths)
    assert np.isnan(new[:20, 1]).all()
    np.testing.assert_array_equal(new[:20, 2], old[:20, 2])
    distance = np.linalg.norm(new[:, 3] - new[:, 2], axis=1)
    np.testing.assert_allclose(distance, lengths[3])


def test_a_joint_never_seen_has_no_length_and_stays(rng):
    old = random_positions(rng, CHAIN)
    old[:, 2] = np.nan
    lengths = bone_lengths(old, CHAIN)
    assert np.isfinite(lengths).tolist() == [False, True, False, False]
    new = with_constant_lengths(old, CHAIN, lengths)
    np.testing.assert_array_equal(new[:, 2:], old[:, 2:])


def test_a_joint_in_its_parent_has_no_direction():
    old = bone([0.0, 0.2, 0.2])
    new = with_constant_lengths(old, np.array([-1, 0]), np.array([np.nan, 0.2]))
    assert np.isnan(new[0, 1]).all()
    np.testing.assert_allclose(new[1:], old[1:])
    flat = with_constant_lengths(old, np.array([-1, 0]), np.array([np.nan, 0.0]))
    np.testing.assert_array_equal(flat[:, 1], 0.0)


@pytest.mark.parametrize("method", METHODS)
def test_constant_data_has_no_scale_and_needs_none(method):
    assert length_of(np.full(9, 0.3), method) == pytest.approx(0.3, abs=1e-15)
    # More than half are equal: the median deviation is zero, whatever the others are.
    length = length_of([0.3] * 6 + [3.0] * 3, method)
    assert length == pytest.approx(1.2 if method == "mean" else 0.3)


def test_huber_is_the_printed_formula():
    x = np.array([1.0, 1.1, 1.2, 1.4, 9.0])
    scale = 1.483 * 0.2
    psi = np.array([-0.2, -0.1, 0.0, 0.2, 2.0 * scale]) / scale
    # 9.0 alone lies beyond the cutoff: psi' is 1 for the other four.
    assert length_of(x, "huber") == pytest.approx(1.2 + scale * psi.sum() / 4)


def test_the_influence_of_an_outlier_is_bounded():
    x = np.linspace(0.9, 1.1, 21)
    found = [length_of([*x, far], "huber") for far in (2.0, 2e3, 2e9)]
    np.testing.assert_allclose(found, found[0], rtol=1e-12)
    assert found[0] > 1.0
    np.testing.assert_allclose(length_of([*x, 2e9], "tukey"), 1.0, atol=5e-3)


def test_a_collarbone_of_508_frames_with_six_outliers():
    """Bodenheimer1997, Sec. 3.1: 13.3 by hand, 13.2 robust, 14.1 cm by the mean."""
    found = {method: [] for method in METHODS}
    for seed in range(100):
        rng = np.random.default_rng(seed)
        x = rng.normal(13.3, 0.6, 508)
        outliers = rng.choice(508, 6, replace=False)
        edited = np.delete(x, outliers).mean()
        x[outliers] = 13.3 + rng.exponential(0.8 * 508 / 6, 6)
        for method in METHODS:
            found[method].append(100.0 * length_of(x / 100.0, method) - edited)
    mean = {method: 13.3 + np.mean(off) for method, off in found.items()}
    rms = {method: np.sqrt(np.mean(np.square(off))) for method, off in found.items()}
    assert round(mean["mean"], 1) == 14.1
    assert round(mean["huber"], 1) == round(mean["tukey"], 1) == 13.3
    assert rms["huber"] < 0.02
    assert rms["tukey"] < 0.01
    assert rms["tukey"] < rms["huber"] < rms["median"] < rms["mean"]


def test_invalid_arguments_are_refused(rng):
    old = random_positions(rng, CHAIN)
    with pytest.raises(marey.OptionError, match="median, mean, huber, tukey"):
        bone_lengths(old, CHAIN, "mode")
    with pytest.raises(marey.DataError, match="cycle"):
        bone_lengths(old, np.array([-1, 2, 1, 0]))
    with pytest.raises(marey.DataError, match="-1 to 3"):
        bone_lengths(old, np.array([-1, 0, 1, 4]))
    with pytest.raises(marey.DataError, match="0 or more"):
        with_constant_lengths(old, CHAIN, np.array([np.nan, 1.0, -1.0, 1.0]))


# --- outlier joints, and the skeleton's size ------------------------------------------


def walk_positions(seed=3):
    motion = synth.human(seed=seed).perform("walk", seconds=4.0, rate=60.0)
    return motion.skeleton, motion.T_world_joint()[..., :3, 3].copy()


@pytest.mark.parametrize("name", ["LeftHandEnd", "LeftLowerArm", "Spine"])
def test_the_joint_that_is_off_is_blamed_and_not_its_neighbours(name, rng):
    skeleton, position = walk_positions()
    position += rng.normal(scale=2e-3, size=position.shape)
    joint = skeleton.index(name)
    position[50:53, joint] += [0.5, 0.5, 0.0]
    tags = find_outlier_joints(position, skeleton.parent)
    assert np.flatnonzero(tags[:, joint]).tolist() == [50, 51, 52]
    assert tags[50:53].sum() == 3
    assert tags.mean() < 5e-3


def test_joints_that_keep_their_lengths_are_no_outliers():
    skeleton, position = walk_positions()
    assert not find_outlier_joints(position, skeleton.parent).any()
    position[20:40] = np.nan
    assert not find_outlier_joints(position, skeleton.parent).any()


def test_an_outlier_between_two_joints_is_attributed_to_both(rng):
    position = bone(rng.normal(0.3, 1e-3, 100))
    position[7, 1] *= 4.0
    tags = find_outlier_joints(position, np.array([-1, 0]))
    assert np.argwhere(tags).tolist() == [[7, 0], [7, 1]]


def test_a_resized_skeleton_has_the_lengths_and_the_directions():
    skeleton, position = walk_positions()
    other = synth.human(height=1.6, seed=8).skeleton
    same = with_bone_lengths(other, bone_lengths(position, skeleton.parent))
    np.testing.assert_allclose(same.lengths, skeleton.lengths, atol=1e-12)
    np.testing.assert_allclose(np.cross(same.offset, other.offset), 0.0, atol=1e-12)
    np.testing.assert_array_equal(same.offset[0], other.offset[0])
    with pytest.raises(marey.DataError, match="length of Hips"):
        with_bone_lengths(other, np.full(other.n_joints, -1.0))
