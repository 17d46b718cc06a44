"""A skeleton placed from constants, frame by frame (Knight2007, Sec. 2.6)."""

import naive
import numpy as np
import pytest

import marey
from marey.errors import DataError
from marey.joints import estimate_hierarchy
from marey.numerics import geometry
from marey.papers.recordings import true_bodies

NOISE = 1e-3


@pytest.fixture(scope="module")
def person():
    return marey.synth.human(seed=1)


@pytest.fixture(scope="module")
def noisy(person):
    return person.record(
        "kick_punch", seconds=4.2, rate=30.0, markers="set53", noise=NOISE, seed=1
    )


def place_all(skeleton, labels, points):
    """The motion of frames that are placed one after the other."""
    placer = marey.SkeletonPlacer(skeleton, labels)
    placed = [placer.place(frame) for frame in points]
    root, wxyz = (np.array(part) for part in zip(*placed, strict=True))
    T = geometry.transform(geometry.matrix_from_quat(wxyz[:, 0]), root)
    return marey.Motion(skeleton=skeleton, T_world_root=T, wxyz=wxyz, rate=30.0)


def joint_errors(motion, true):
    error = motion.T_world_joint() - true.T_world_joint()
    return np.linalg.norm(error[..., :3, 3], axis=-1)


def test_exact_markers_give_the_exact_pose(noisy):
    """With balls, hinges and universal joints, whatever the frame before was."""
    skeleton, true = noisy.true_skeleton, noisy.truth.motion
    motion = place_all(skeleton, noisy.labels, noisy.truth.points)
    assert joint_errors(motion, true).max() < 1e-6


@pytest.mark.parametrize("count", [2, 3])
def test_the_constants_of_root_to_leaf_give_the_motion_of_the_whole_take(person, count):
    take = person.record("exercise", seconds=6.0, rate=30.0, markers=4, seed=2)
    names, body = person.skeleton.names, person.body_of
    parents = {
        names[b]: names[body[person.skeleton.parent[b]]] for b in person.bodies[1:]
    }
    bodies = true_bodies(take, count)
    hierarchy = estimate_hierarchy((bodies,), parents)
    frames = slice(None, None, 10)
    motion = place_all(hierarchy.skeleton, take.labels, take.points[frames])
    whole = hierarchy.pose(bodies).T_world_joint()[frames, :, :3, 3]
    np.testing.assert_allclose(motion.T_world_joint()[..., :3, 3], whole, atol=1e-6)


def test_it_is_the_rigid_fit_of_markers_and_joint_bone_by_bone(rng):
    """Against Kabsch by singular values, and the angle of a hinge by an optimiser."""
    skeleton = marey.Skeleton(
        names=("pelvis", "thigh", "shank", "foot"),
        parent=np.array([-1, 0, 1, 2]),
        offset=np.array([[0, 0, 1.0], [0, 0.1, 0], [0, 0, -0.4], [0, 0, -0.4]]),
        kind=("root", "ball", "hinge", "ball"),
        axes=np.tile([[0.0, 0.6, 0.8], [1.0, 0.0, 0.0]], (4, 1, 1)),
        marker_labels=tuple("abcdefghijk"),
        marker_joint=np.array([0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3]),
        marker_offset=rng.normal(scale=0.1, size=(11, 3)),
    )
    wxyz = geometry.quat_exp(0.6 * rng.normal(size=(20, 4, 3)))
    wxyz[:, 2] = geometry.quat_exp(rng.normal(size=(20, 1)) * skeleton.axes[2, 0])
    position = np.array([1.0, 2.0, 3.0])
    T = geometry.transform(geometry.matrix_from_quat(wxyz[:, 0]), position)
    true = marey.Motion(skeleton=skeleton, T_world_root=T, wxyz=wxyz, rate=30.0)
    points = true.marker_points() + rng.normal(scale=5e-3, size=(20, 11, 3))
    points[::3, 4] = np.nan
    motion = place_all(skeleton, skeleton.marker_labels, points)
    R = motion.T_world_joint()[..., :3, :3]
    for frame in range(20):
        expected, root = naive.place_skeleton(skeleton, points[frame], 2e-3)
        np.testing.assert_allclose(R[frame], expected, atol=1e-6)
        np.testing.assert_allclose(motion.T_world_root[frame, :3, 3], root, atol=1e-9)


def test_a_person_is_placed_almost_as_well_as_by_inverse_kinematics(noisy):
    skeleton, true = noisy.true_skeleton, noisy.truth.motion
    placed = place_all(skeleton, noisy.labels, noisy.points)
    fitted = marey.solve_pose(skeleton, noisy, method="gauss_newton")
    rms = [
        np.sqrt(np.mean(joint_errors(motion, true) ** 2)) for motion in (placed, fitted)
    ]
    assert rms[0] < 2.0 * rms[1]
    assert rms[0] < 2.0 * NOISE


def test_unseen_joints_keep_their_rotation(noisy):
    skeleton = noisy.true_skeleton
    placer = marey.SkeletonPlacer(skeleton, noisy.labels)
    unseen = np.full_like(noisy.points[0], np.nan)
    assert np.isnan(placer.place(unseen)[0]).all()
    root, wxyz = placer.place(noisy.points[0])
    again_root, again = placer.place(unseen)
    np.testing.assert_array_equal(again_root, root)
    np.testing.assert_array_equal(again, wxyz)
    hand = skeleton.index("LeftHand")
    hidden = noisy.points[60].copy()
    hidden[skeleton.marker_joint == hand] = np.nan
    _, moved = placer.place(hidden)
    np.testing.assert_array_equal(moved[hand], wxyz[hand])
    _, seen = placer.place(noisy.points[60])
    other = np.arange(skeleton.n_joints) != hand
    np.testing.assert_array_equal(moved[other], seen[other])
    placer.reset()
    assert np.isnan(placer.place(unseen)[0]).all()


def test_a_frame_of_another_size_is_named(noisy):
    placer = marey.SkeletonPlacer(noisy.true_skeleton, noisy.labels)
    with pytest.raises(DataError, match="found 52 markers, 0 sensors, need 53"):
        placer.place(noisy.points[0, 1:])
