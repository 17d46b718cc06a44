"""Bodies of two parts of a leg are divided where motion and anatomy agree."""

from dataclasses import replace

import numpy as np
import pytest

from marey import synth
from marey.joints import fit_joints
from marey.pipeline.person.leg_division import (
    divide_legs,
    leg_positions,
    middle_markers,
)
from marey.segmentation import divide_at_joint, merge_bodies, segment
from marey.segmentation.clusters.pair_statistics import pair_statistics
from marey.segmentation.division import two_parts
from marey.topology import infer_tree


def partition(owner):
    owner = np.asarray(owner)
    return {frozenset(np.flatnonzero(owner == k).tolist()) for k in set(owner.tolist())}


@pytest.fixture(scope="module")
def performer():
    """Bodies of a person whose joints all move, found from the markers."""
    take = synth.human().record(
        "swing", seconds=10.0, rate=50.0, markers="dense110", noise=3e-4
    )
    take = replace(take, labels=tuple(f"M{i}" for i in range(len(take.labels))))
    bodies = segment(take, method="overlap")
    assert partition(bodies.marker_body) == partition(take.truth.marker_joint)
    return bodies


def body_of(bodies, name):
    """Return the body of a joint of the generated person."""
    joints = bodies.take.truth.motion.skeleton.names
    number = bodies.take.truth.marker_joint == joints.index(name)
    return int(bodies.marker_body[number][0])


def merge(bodies, one, other):
    target = np.arange(len(bodies.names))
    target[body_of(bodies, other)] = body_of(bodies, one)
    return merge_bodies((bodies,), target)


def join(takes):
    joints = fit_joints(takes)
    return takes, joints, infer_tree(joints)


def heights(bodies):
    """Return the marker heights of a person who stands, in metres."""
    return np.nanmedian(bodies.take.points[..., 2], axis=0)


@pytest.mark.parametrize("side", ["Left", "Right"])
@pytest.mark.parametrize("part", ["LowerLeg", "Foot"])
def test_a_leg_gets_the_joint_that_it_lacks(performer, side, part):
    upper = {"LowerLeg": "UpperLeg", "Foot": "LowerLeg"}[part]
    merged = merge(performer, side + upper, side + part)
    takes, joints, tree = divide_legs(join(merged), fit_joints)
    assert partition(takes[0].marker_body) == partition(performer.marker_body)
    assert [f.code for f in takes[0].findings].count("bodies-divided") == 1
    thigh, shank, foot = (
        body_of(takes[0], side + name) for name in ("UpperLeg", "LowerLeg", "Foot")
    )
    linked = {frozenset((a, int(b))) for a, b in enumerate(tree.parent) if b >= 0}
    assert {frozenset((thigh, shank)), frozenset((shank, foot))} <= linked
    assert (joints.pair.max(), len(linked)) == (14, 14)


def test_a_whole_person_is_not_divided(performer):
    found = join((performer,))
    assert divide_legs(found, fit_joints) is found


def test_a_body_that_does_not_bend_is_not_divided(performer):
    shank = performer.marker_body == body_of(performer, "LeftLowerLeg")
    height = heights(performer)
    lowest, *_, highest = np.flatnonzero(shank)[np.argsort(height[shank])].tolist()
    (after,) = divide_at_joint((performer,), lowest, highest, height)
    assert after is performer


def test_a_body_is_not_divided_across_the_limb(performer):
    """Parts that overlap along the limb are no two parts of it."""
    merged = merge(performer, "LeftUpperLeg", "LeftLowerLeg")
    below, above = (
        np.flatnonzero(performer.marker_body == body_of(performer, name)).tolist()
        for name in ("LeftLowerLeg", "LeftUpperLeg")
    )
    height = heights(performer)
    divided = divide_at_joint(merged, below[0], above[0], height)
    assert partition(divided[0].marker_body) == partition(performer.marker_body)
    mixed = np.where(np.arange(len(height)) == above[-1], height.min() - 1.0, height)
    assert divide_at_joint(merged, below[0], above[0], mixed)[0] is merged[0]


def test_the_parts_of_a_body_are_those_that_move_against_each_other(performer):
    stats = pair_statistics([performer.take.points])
    thigh, shank = (
        performer.marker_body == body_of(performer, f"Right{name}")
        for name in ("UpperLeg", "LowerLeg")
    )
    second = two_parts(stats, thigh | shank)
    assert (second[thigh] == second[thigh][0]).all()
    assert (second[shank] == ~second[thigh][0]).all()
    assert not second[~(thigh | shank)].any()


def test_positions_along_a_leg_are_those_of_a_person(performer):
    leg = [
        body_of(performer, name)
        for name in ("Hips", "LeftUpperLeg", "LeftLowerLeg", "LeftFoot")
    ]
    position = leg_positions(performer, leg)
    inside = np.isin(performer.marker_body, leg)
    assert np.isnan(position[~inside]).all()
    assert np.nanmin(position) == 0.0
    owners = [int(performer.marker_body[m]) for m in middle_markers(position)]
    assert owners == leg[::-1]


def test_a_part_without_markers_has_no_middle_marker():
    assert middle_markers(np.array([0.0, 0.3, np.nan, 1.0])) == [0, 1, 3]


def test_a_person_keeps_the_names_that_a_division_would_cost(performer, monkeypatch):
    merged = join(merge(performer, "LeftUpperLeg", "LeftLowerLeg"))
    count = iter((12, 11))
    monkeypatch.setattr(
        "marey.pipeline.person.leg_division._count_names", lambda *_: next(count)
    )
    assert divide_legs(merged, fit_joints) is merged


def test_a_leg_that_is_never_seen_with_the_hips_has_no_positions(performer):
    points = performer.take.points.copy()
    leg = [body_of(performer, "Hips"), body_of(performer, "LeftFoot")]
    for k, body in enumerate(leg):
        points[k::2, performer.marker_body == body] = np.nan
    apart = replace(performer, take=replace(performer.take, points=points))
    assert np.isnan(leg_positions(apart, leg)).all()
    assert middle_markers(leg_positions(apart, leg)) == []
