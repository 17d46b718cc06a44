"""Bodies of two markers get their pose from the joint they hang by."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from marey import synth
from marey.joints import firmed, fit_joints
from marey.numerics import geometry
from marey.segmentation import segment
from marey.topology import named_tree

TREE = {"RightLowerArm": "RightUpperArm", "RightHand": "RightLowerArm"}


def arm(*, hand, forearm, markers="set53", **options):
    """The right arm of an exercising human with so many markers on its last parts."""
    take = synth.human(height=1.8, seed=1).record(
        "exercise", seconds=10.0, rate=60.0, markers=markers, seed=1, **options
    )
    (motion,) = take.truth.motions
    worn = [motion.skeleton.names[joint] for joint in take.truth.marker_joint]
    most = {"RightUpperArm": 9, "RightLowerArm": forearm, "RightHand": hand}
    parts = {
        part: [take.labels[i] for i, on in enumerate(worn) if on == part][:count]
        for part, count in most.items()
    }
    return motion, segment(take, method="template", template={"bodies": parts})


def hung(bodies, method="ball"):
    fit = partial(fit_joints, method=method)
    joints = fit(bodies)
    (firm,), joints = firmed(
        (bodies,), joints, named_tree(TREE, bodies.names, joints), fit=fit
    )
    return firm, joints


def center(bodies, joints, name):
    """The joint above a body in the world, as each of its two bodies has it."""
    own, above = bodies.names.index(name), bodies.names.index(TREE[name])
    row = joints.pair.tolist().index(sorted((own, above)))
    both = zip(
        joints.pair[row], (joints.center_a[row], joints.center_b[row]), strict=True
    )
    return [geometry.apply(bodies.T_world_body[:, body], place) for body, place in both]


def worst(bodies, joints, motion, name):
    true = motion.T_world_joint()[:, motion.skeleton.index(name), :3, 3]
    return max(np.abs(c - true).max() for c in center(bodies, joints, name))


@pytest.mark.parametrize("method", ["ball", "gdke"])
def test_a_hand_of_two_markers_is_posed_exactly_by_its_wrist(method):
    motion, bodies = arm(hand=2, forearm=5)
    assert bodies.determined.tolist() == [True, True, False]
    firm, joints = hung(bodies, method)
    assert firm.determined.all()
    assert worst(firm, joints, motion, "RightHand") < 1e-6
    turn = firm.T_world_body[:, 2, :3, :3]
    true = motion.T_world_joint()[:, motion.skeleton.index("RightHand"), :3, :3]
    off = np.swapaxes(true, 1, 2) @ turn
    assert np.abs(off - off[0]).max() < 1e-5, "one constant turn between both axes"


def test_poses_spread_along_a_chain_of_soft_bodies():
    motion, bodies = arm(hand=2, forearm=2)
    assert bodies.determined.tolist() == [True, False, False]
    firm, joints = hung(bodies)
    assert firm.determined.all()
    assert worst(firm, joints, motion, "RightLowerArm") < 1e-6
    assert worst(firm, joints, motion, "RightHand") < 1e-5


def test_bodies_with_poses_of_their_own_are_left_alone():
    _, bodies = arm(hand=9, forearm=9, markers="dense110")
    joints = fit_joints(bodies)
    tree = named_tree(TREE, bodies.names, joints)
    (same,), rows = firmed((bodies,), joints, tree, fit=fit_joints)
    assert bodies.determined.all()
    assert same is bodies
    assert rows is joints


def test_the_wrist_is_where_it_was_when_the_world_is_turned():
    _, bodies = arm(hand=2, forearm=5, noise=1e-3)
    T = geometry.transform(
        Rotation.random(rng=3).as_matrix(), np.array([1.0, -2.0, 0.5])
    )
    moved = segment(
        replace(bodies.take, points=geometry.apply(T, bodies.take.points)),
        method="template",
        template={
            "bodies": {
                name: [
                    bodies.take.labels[i]
                    for i in np.flatnonzero(bodies.marker_body == b)
                ]
                for b, name in enumerate(bodies.names)
            }
        },
    )
    before, after = (center(*hung(b), "RightHand")[0] for b in (bodies, moved))
    assert np.abs(geometry.apply(T, before) - after).max() < 1e-5


def test_with_noise_the_wrist_is_within_its_own_error():
    motion, bodies = arm(hand=2, forearm=5, noise=1e-3)
    firm, joints = hung(bodies)
    row = joints.pair.tolist().index([1, 2])
    sd = np.sqrt(np.trace(joints.covariance[row, :3, :3]))
    assert 0.0 < sd < 5e-3
    assert worst(firm, joints, motion, "RightHand") < 5.0 * sd + 3e-3
