"""Bodies of two markers get their pose from the joint to their neighbour."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from marey import synth
from marey.joints import fit_joints, pose_underdetermined_bodies
from marey.numerics import geometry
from marey.segmentation import segment
from marey.topology import tree_from_parents

PARENTS = {"RightLowerArm": "RightUpperArm", "RightHand": "RightLowerArm"}


def arm(*, hand, forearm, markers="set53", **options):
    """The right arm of an exercising person, with few markers on forearm and hand."""
    take = synth.human(height=1.8, seed=1).record(
        "exercise", seconds=10.0, rate=60.0, markers=markers, seed=1, **options
    )
    (motion,) = take.truth.motions
    body_of = [motion.skeleton.names[joint] for joint in take.truth.marker_joint]
    count_of = {"RightUpperArm": 9, "RightLowerArm": forearm, "RightHand": hand}
    labels = {
        body: [take.labels[i] for i, name in enumerate(body_of) if name == body][:count]
        for body, count in count_of.items()
    }
    return motion, segment(take, method="template", template={"bodies": labels})


def pose_from_joints(bodies, method="ball"):
    fit = partial(fit_joints, method=method)
    joints = fit(bodies)
    (posed,), joints = pose_underdetermined_bodies(
        (bodies,), joints, tree_from_parents(PARENTS, bodies.names, joints), fit=fit
    )
    return posed, joints


def centers_in_world(bodies, joints, name):
    """The joint between a body and its parent, as carried by each of the two."""
    body, parent = bodies.names.index(name), bodies.names.index(PARENTS[name])
    row = joints.pair.tolist().index(sorted((body, parent)))
    a, b = joints.pair[row]
    return [
        geometry.apply(bodies.T_world_body[:, a], joints.center_a[row]),
        geometry.apply(bodies.T_world_body[:, b], joints.center_b[row]),
    ]


def max_center_error(bodies, joints, motion, name):
    true = motion.T_world_joint()[:, motion.skeleton.index(name), :3, 3]
    return max(np.abs(c - true).max() for c in centers_in_world(bodies, joints, name))


@pytest.mark.parametrize("method", ["ball", "gdke"])
def test_a_hand_of_two_markers_is_posed_exactly_by_its_wrist(method):
    motion, bodies = arm(hand=2, forearm=5)
    assert bodies.determined.tolist() == [True, True, False]
    posed, joints = pose_from_joints(bodies, method)
    assert posed.determined.all()
    assert max_center_error(posed, joints, motion, "RightHand") < 1e-6
    R = posed.T_world_body[:, 2, :3, :3]
    true = motion.T_world_joint()[:, motion.skeleton.index("RightHand"), :3, :3]
    difference = np.swapaxes(true, 1, 2) @ R
    assert np.abs(difference - difference[0]).max() < 1e-5, "a constant rotation"


def test_poses_spread_along_a_chain_of_underdetermined_bodies():
    motion, bodies = arm(hand=2, forearm=2)
    assert bodies.determined.tolist() == [True, False, False]
    posed, joints = pose_from_joints(bodies)
    assert posed.determined.all()
    assert max_center_error(posed, joints, motion, "RightLowerArm") < 1e-6
    assert max_center_error(posed, joints, motion, "RightHand") < 1e-5


def test_determined_bodies_are_not_changed():
    _, bodies = arm(hand=9, forearm=9, markers="dense110")
    joints = fit_joints(bodies)
    tree = tree_from_parents(PARENTS, bodies.names, joints)
    (posed,), fits = pose_underdetermined_bodies(
        (bodies,), joints, tree, fit=fit_joints
    )
    assert bodies.determined.all()
    assert posed is bodies
    assert fits is joints


def test_joints_move_with_the_world():
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
    before, after = (
        centers_in_world(*pose_from_joints(b), "RightHand")[0] for b in (bodies, moved)
    )
    assert np.abs(geometry.apply(T, before) - after).max() < 1e-5


def test_with_noise_the_wrist_is_within_its_standard_deviation():
    motion, bodies = arm(hand=2, forearm=5, noise=1e-3)
    posed, joints = pose_from_joints(bodies)
    row = joints.pair.tolist().index([1, 2])
    sd = np.sqrt(np.trace(joints.covariance[row, :3, :3]))
    assert 0.0 < sd < 5e-3
    assert max_center_error(posed, joints, motion, "RightHand") < 5.0 * sd + 3e-3


@pytest.mark.parametrize("seed", [1, 8])
def test_thighs_of_two_markers_stay_near_them_in_a_third_of_a_second(seed):
    """Markers that hardly rotate move on a piece of a sphere that is nearly plane."""
    take = synth.human(height=1.8, seed=seed).record(
        "walk", seconds=0.35, rate=60.0, markers="sparse41", noise=1e-3, seed=seed
    )
    bodies = segment(take)
    joints = fit_joints(bodies)
    tree = tree_from_parents(bodies.parents, bodies.names, joints)
    (posed,), _ = pose_underdetermined_bodies((bodies,), joints, tree, fit=fit_joints)
    for body in range(len(posed.names)):
        markers = take.points[:, posed.marker_body == body].mean(axis=1)
        away = posed.T_world_body[:, body, :3, 3] - markers
        assert np.linalg.norm(away, axis=1).max() < 0.3
