"""Names, left and right, and the T-pose of figures that look like people."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import geometry, synth
from marey.rig import build_skeletons, renamed
from marey.rig.naming import Figure, named, path
from marey.segment import segment


def found(figure, motion, turn=None, **options):
    """Bodies, joints and tree of a recording without its labels."""
    take = figure.record(motion, seconds=10.0, rate=50.0, noise=3e-4, **options)
    if turn is not None:
        take = replace(take, points=geometry.apply(turn, take.points))
    bodies = segment(take, method="overlap")
    joints = marey.fit_joints(bodies)
    return take, bodies, joints, marey.infer_tree(joints)


@pytest.fixture(scope="module")
def performer():
    return found(synth.human(seed=2), "chicken_walk", markers="dense110")


def true_names(take, bodies):
    """Of each body the name that most of its markers truly have."""
    names = take.truth.skeleton.names
    return [
        names[np.bincount(take.truth.marker_joint[bodies.marker_body == i]).argmax()]
        for i in range(len(bodies.names))
    ]


def test_a_person_gets_the_right_names(performer):
    take, bodies, joints, tree = performer
    seen, namings = renamed(bodies, joints, tree)
    assert [naming.kind for naming in namings] == ["human"]
    same = {"Spine": "Chest", "Neck": "Head"}
    wanted = [same.get(name, name) for name in true_names(take, bodies)]
    assert list(seen.names) == wanted


@pytest.mark.parametrize("axis", [(1.5707963, 0, 0), (0, -1.5707963, 0)])
def test_a_person_lying_along_another_axis_is_still_one(axis):
    turn = geometry.transform(geometry.rotation_exp(np.array(axis)), np.zeros(3))
    _, bodies, joints, tree = found(
        synth.human(seed=2), "chicken_walk", turn, markers="dense110"
    )
    _, (naming,) = renamed(bodies, joints, tree)
    assert naming.kind == "human"
    np.testing.assert_allclose(naming.up, turn[:3, 2], atol=1e-6)


def test_names_of_the_user_are_kept(performer):
    _, bodies, joints, tree = performer
    own = replace(bodies, names=tuple(f"part {i}" for i in range(len(bodies.names))))
    seen, namings = renamed(own, joints, tree)
    assert seen.names == own.names
    assert namings == []


def test_a_robot_arm_is_no_person():
    _, bodies, joints, tree = found(synth.linkage(), "swing", markers=6)
    assert renamed(bodies, joints, tree)[1] == []


def test_rest_is_a_t_pose_that_stands_on_the_ground(performer):
    _, bodies, joints, tree = performer
    seen, _ = renamed(bodies, joints, tree)
    (skeleton,) = build_skeletons(seen, joints, tree)
    place = dict(zip(skeleton.names, skeleton.rest()[:, :3, 3], strict=True))
    reach = place["LeftHand"] - place["LeftUpperArm"]
    assert reach[1] / np.linalg.norm(reach) == pytest.approx(1.0, abs=1e-6)
    drop = place["RightFoot"] - place["RightUpperLeg"]
    assert -drop[2] / np.linalg.norm(drop) == pytest.approx(1.0, abs=1e-6)
    assert place["LeftUpperLeg"][1] > place["RightUpperLeg"][1]
    assert place["LeftFoot_end"][0] > place["LeftFoot"][0]
    markers = skeleton.rest()[skeleton.marker_joint, :3, 3] + skeleton.marker_offset
    lowest = min(markers[:, 2].min(), skeleton.rest()[:, 2, 3].min())
    assert lowest == pytest.approx(0.0, abs=1e-12)


def test_the_t_pose_changes_no_bone(performer):
    _, bodies, joints, tree = performer
    seen, _ = renamed(bodies, joints, tree)
    (named_one,) = build_skeletons(seen, joints, tree)
    (plain,) = build_skeletons(bodies, joints, tree)
    np.testing.assert_allclose(named_one.lengths[1:], plain.lengths[1:], atol=1e-12)


def test_a_stick_figure():
    """Hips, two legs of two, a chest with two arms and a head, drawn by hand."""
    near = {
        0: [1, 3, 5],
        1: [0, 2],
        2: [1],
        3: [0, 4],
        4: [3],
        5: [0, 6, 8, 10],
        6: [5, 7],
        7: [6],
        8: [5, 9],
        9: [8],
        10: [5],
    }
    z = [1.0, 0.8, 0.3, 0.8, 0.3, 1.3, 1.3, 1.3, 1.3, 1.3, 1.7]
    y = [0.0, 0.1, 0.1, -0.1, -0.1, 0.0, 0.3, 0.6, -0.3, -0.6, 0.0]
    place = np.stack([np.zeros(11), y, z], axis=-1)[None]
    joint = {
        (min(a, b), max(a, b)): 0.5 * (place[:, a] + place[:, b])
        for a in near
        for b in near[a]
    }
    # Knees bend forward, +x; elbows back.
    for leg in ((1, 2), (3, 4)):
        joint[leg] = joint[leg] + [0.1, 0.0, 0.0]
    for arm in ((6, 7), (8, 9)):
        joint[arm] = joint[arm] - [0.1, 0.0, 0.0]
    naming = named(Figure(place, joint, near))
    assert naming.names[1] == "LeftUpperLeg"
    assert naming.names[9] == "RightLowerArm"
    assert naming.names[10] == "Head"
    assert path(near, 2, 7) == [2, 1, 0, 5, 6, 7]
