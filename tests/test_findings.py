"""What is told of joints that never moved, parts that are missing, and the ground."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import synth
from marey.joints import findings, fit_joints, spoken
from marey.numerics import geometry
from marey.pipeline.report import ground_findings, part_findings
from marey.rig.ground import OTHERS
from marey.segmentation import segment
from marey.take import Fact, Source


def stiff(frozen, above):
    """A person in whom one joint never moves, by 6-DoF sensors on all bodies."""
    take = synth.human().record("exercise", seconds=8.0, markers="none", sensors=True)
    T = take.T_world_sensor.copy()
    a, b = (take.sensor_names.index(name) for name in (above, frozen))
    T[:, b] = T[:, a] @ (geometry.inverse(T[0, a]) @ T[0, b])
    bodies = segment(replace(take, T_world_sensor=T))
    return findings(bodies, fit_joints(bodies))


@pytest.mark.parametrize(
    ("frozen", "above", "joint"),
    [
        ("LeftFoot", "LeftLowerLeg", "left ankle"),
        ("RightHand", "RightLowerArm", "right wrist"),
    ],
)
def test_a_joint_that_never_moved_is_told_in_plain_words(frozen, above, joint):
    told = [f for f in stiff(frozen, above) if f.code == "joint-still"]
    named = [f for f in told if {frozen, above} == set(f.subject.split("-"))]
    assert len(named) == 1
    assert f"the {joint} never moved" in named[0].message
    assert "recorded as one; flex it" in named[0].message


def test_joints_that_move_are_not_called_still():
    take = synth.human().record("exercise", seconds=8.0, markers="none", sensors=True)
    bodies = segment(take)
    told = [
        f.subject for f in findings(bodies, fit_joints(bodies)) if "still" in f.code
    ]
    parts = {name.removeprefix("Left").removeprefix("Right") for name in bodies.names}
    assert {"Foot", "Hand"} <= parts
    assert not [name for name in told if spoken(*name.split("-"))]


def test_names_of_joints_do_not_depend_on_the_order_or_the_subject():
    assert spoken("LeftFoot", "LeftLowerLeg") == spoken(
        "JOE:LeftLowerLeg", "JOE:LeftFoot"
    )
    assert spoken("Chest", "Head")[0] == "neck"
    assert spoken("body1", "body2") is None


def told_of(names, parent):
    """What is told of bodies with these names that hang on each other."""
    take = synth.human().record("walk", seconds=0.2, markers="none", sensors=True)
    bodies = replace(segment(take), names=names)
    edge = np.where(np.array(parent) >= 0, 0, -1)
    tree = marey.Tree(
        parent=np.array(parent), edge=edge, margin=np.full(len(parent), np.inf)
    )
    return list(part_findings(tree, bodies))


def test_a_limb_that_ends_early_is_told_with_what_to_do():
    (told,) = told_of(("Chest", "LeftUpperArm", "LeftLowerArm"), [-1, 0, 1])
    assert told.subject == "LeftLowerArm"
    assert "LeftHand has no markers, or the left wrist never moved" in told.message


def test_a_limb_that_goes_on_is_not():
    names = ("Chest", "LeftUpperArm", "LeftLowerArm", "body7")
    assert told_of(names, [-1, 0, 1, 2]) == []


def test_a_floor_that_is_elsewhere_is_a_warning():
    take = synth.human().record("walk", seconds=4.0, rate=60.0)
    take = replace(take, source=replace(take.source, up=Fact("z", "stated")))
    (told,) = ground_findings([take])
    assert (told.code, told.severity) == ("ground", "info")
    (moved,) = ground_findings([replace(take, points=take.points - [0.0, 0.0, 1.0])])
    assert moved.severity == "warning"
    assert "not at z = 0" in moved.message
    assert moved.value == pytest.approx(told.value - 1.0)


def test_an_up_axis_that_nobody_stated_is_said():
    take = synth.human().record("walk", seconds=4.0, rate=60.0)
    guess = replace(take, source=replace(take.source, up=Fact("z", "assumed")))
    (told,) = ground_findings([guess])
    assert "that z is up is assumed" in told.message


@pytest.mark.parametrize("axis", ["x", "-x", "y", "-y", "-z"])
def test_another_axis_that_is_up_is_named(axis):
    """A walk over a floor at zero, read as if its z were up."""
    take = synth.human().record("walk", seconds=4.0, rate=60.0)
    lying = take.points @ np.array(OTHERS[axis])
    guess = Source(up=Fact("z", "assumed"))
    (told,) = ground_findings([replace(take, points=lying, source=guess)])
    assert f"{axis} fits: read it with up={axis}" in told.message
