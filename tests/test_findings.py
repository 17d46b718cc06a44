"""Findings about joints that never moved, missing parts, and the ground."""

import re
from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import synth
from marey.joints import fit_joints, joint_findings, joint_name_and_exercise
from marey.numerics import geometry
from marey.pipeline.reporting.findings import (
    ground_findings,
    loop_findings,
    part_findings,
)
from marey.segmentation import segment
from marey.take import Fact, Source
from marey.tree import Loop


def findings_of_stiff_joint(frozen, parent):
    """Findings of a person with one joint that never moves, from 6-DoF sensors."""
    take = synth.human().record("exercise", seconds=8.0, markers="none", sensors=True)
    T = take.T_world_sensor.copy()
    a, b = (take.sensor_names.index(name) for name in (parent, frozen))
    T[:, b] = T[:, a] @ (geometry.inverse(T[0, a]) @ T[0, b])
    bodies = segment(replace(take, T_world_sensor=T))
    return joint_findings(bodies, fit_joints(bodies))


@pytest.mark.parametrize(
    ("frozen", "parent", "joint"),
    [
        ("LeftFoot", "LeftLowerLeg", "left ankle"),
        ("RightHand", "RightLowerArm", "right wrist"),
    ],
)
def test_a_joint_that_never_moved_is_reported_by_its_name(frozen, parent, joint):
    found = findings_of_stiff_joint(frozen, parent)
    still = [f for f in found if f.code == "joint-still"]
    named = [f for f in still if {frozen, parent} == set(f.subject.split("-"))]
    assert len(named) == 1
    assert f"the {joint} never moved" in named[0].message
    assert "recorded as one; flex it" in named[0].message


def test_joints_that_move_are_not_called_still():
    take = synth.human().record("exercise", seconds=8.0, markers="none", sensors=True)
    bodies = segment(take)
    still = [
        f.subject
        for f in joint_findings(bodies, fit_joints(bodies))
        if "still" in f.code
    ]
    parts = {name.removeprefix("Left").removeprefix("Right") for name in bodies.names}
    assert {"Foot", "Hand"} <= parts
    assert not [name for name in still if joint_name_and_exercise(*name.split("-"))]


def test_names_of_joints_do_not_depend_on_the_order_or_the_subject():
    assert joint_name_and_exercise(
        "LeftFoot", "LeftLowerLeg"
    ) == joint_name_and_exercise("JOE:LeftLowerLeg", "JOE:LeftFoot")
    assert joint_name_and_exercise("Chest", "Head")[0] == "neck"
    assert joint_name_and_exercise("body1", "body2") is None


def part_findings_of(names, parent):
    """Findings about missing parts of bodies with these names and parents."""
    take = synth.human().record("walk", seconds=0.2, markers="none", sensors=True)
    bodies = replace(segment(take), names=names)
    edge = np.where(np.array(parent) >= 0, 0, -1)
    tree = marey.Tree(
        parent=np.array(parent), edge=edge, margin=np.full(len(parent), np.inf)
    )
    return list(part_findings(tree, bodies))


def test_a_limb_that_ends_early_is_reported_with_advice():
    (finding,) = part_findings_of(("Chest", "LeftUpperArm", "LeftLowerArm"), [-1, 0, 1])
    assert finding.subject == "LeftLowerArm"
    assert "LeftHand has no markers, or the left wrist never moved" in finding.message


def test_a_limb_with_a_next_body_is_not_reported():
    names = ("Chest", "LeftUpperArm", "LeftLowerArm", "body7")
    assert part_findings_of(names, [-1, 0, 1, 2]) == []


def test_a_ground_far_from_zero_is_a_warning():
    take = synth.human().record("walk", seconds=4.0, rate=60.0)
    take = replace(take, source=replace(take.source, up=Fact("z", "stated")))
    (ground,) = ground_findings([take])
    assert (ground.code, ground.severity) == ("ground", "info")
    low = replace(take, points=take.points - [0.0, 0.0, 1.0])
    (moved,) = ground_findings([low])
    assert moved.severity == "warning"
    assert next(ground_findings([low], has_feet=False)).severity == "info"
    assert ", not at 0: check that z is up, or give ground=" in moved.message
    assert moved.value == pytest.approx(ground.value - 1.0)


def test_an_assumed_up_axis_is_reported():
    take = synth.human().record("walk", seconds=4.0, rate=60.0)
    guess = replace(take, source=replace(take.source, up=Fact("z", "assumed")))
    (finding,) = ground_findings([guess])
    assert "that z is up is assumed" in finding.message


@pytest.mark.parametrize("axis", ["x", "-x", "y", "-y", "-z"])
def test_another_axis_that_fits_as_up_is_named(axis):
    """A walk over a floor at zero, read as if its z were up."""
    take = synth.human().record("walk", seconds=4.0, rate=60.0)
    lying = take.points @ geometry.R_Z_UP[axis]
    guess = Source(up=Fact("z", "assumed"))
    (finding,) = ground_findings([replace(take, points=lying, source=guess)])
    assert f"{axis} fits: read it with up={axis}" in finding.message


@pytest.mark.parametrize("axis", ["x", "-x", "y", "-y", "z", "-z"])
@pytest.mark.parametrize("read", ["x", "-x", "y", "-y", "z", "-z"])
def test_an_axis_that_fits_as_up_is_called_as_in_the_file(read, axis):
    """The file has a floor at zero across `axis`, but was read as if `read` were up."""
    take = synth.human().record("walk", seconds=4.0, rate=60.0)
    in_file = take.points @ geometry.R_Z_UP[axis]
    guess = Source(up=Fact(read, "assumed"))
    lying = replace(take, points=in_file @ geometry.R_Z_UP[read].T, source=guess)
    (finding,) = ground_findings([lying])
    advice = re.findall("read it with up=([-xyz]+)", finding.message)
    assert advice == ([] if axis == read else [axis])


def test_a_loop_between_bodies_without_axes_has_no_place_in_them():
    """Two bodies of two markers each have no axes, so no centre has coordinates."""
    take = synth.human().record("exercise", seconds=8.0, markers="none", sensors=True)
    bodies = segment(take)
    joints = fit_joints(bodies)
    unknown = np.full_like(joints.center_a, np.nan)
    tree = replace(marey.infer_tree(joints), loops=(Loop(0),))
    (known,) = loop_findings(joints, tree, [bodies])
    assert "mm from" in known.message
    fits = replace(joints, center_a=unknown)
    (one,) = loop_findings(fits, tree, [bodies])
    assert one.message.count("mm from") == 1
    fits = replace(joints, center_a=unknown, center_b=unknown)
    (none,) = loop_findings(fits, tree, [bodies])
    a, b = (bodies.names[body] for body in joints.pair[0])
    assert f"a joint between {a} and {b}" in none.message
    assert not re.search(r"\bnan\b", one.message + none.message)
