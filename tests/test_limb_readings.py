"""Names along a limb: which parts its bodies consist of."""

import numpy as np
import pytest

from marey.anatomy.naming.limb_readings import (
    BONE_LENGTH,
    LimbChain,
    name_limb,
)
from marey.anatomy.naming.limbs import ARM, ARM_WITH_SHOULDER, LEG

BONES = [BONE_LENGTH[name] for name in ARM]
SHOULDER, ELBOW, WRIST = 0.1 + np.cumsum([0.0, *BONES[:2]])
HIP, KNEE, ANKLE = 0.54, 0.285, 0.03


def limb_of(positions, joints):
    """A limb whose bodies begin at joints that are given along it."""
    joints = np.asarray(joints, dtype=float)
    distances = np.abs(joints[:, None] - joints)
    return LimbChain(range(10, 10 + len(joints)), np.array(positions), distances)


def sure_names(limb, expected):
    named = name_limb(limb, expected)
    return {name: b for name, b in named.bodies.items() if b not in named.unsure}


@pytest.mark.parametrize("shift", [-0.06, 0.0, 0.06])
def test_joints_decide_wherever_markers_are_on_their_parts(shift):
    limb = limb_of([0.2 + shift, 0.36 + shift, 0.43 + shift], [SHOULDER, ELBOW, WRIST])
    assert sure_names(limb, ARM) == {"UpperArm": 10, "LowerArm": 11, "Hand": 12}


def test_a_collar_bone_does_not_shift_the_names_further_out():
    """By positions alone the three bodies would be upper arm, forearm and hand."""
    limb = limb_of([0.11, 0.28, 0.43], [SHOULDER - 0.09, SHOULDER, ELBOW])
    assert sure_names(limb, ARM) == {"UpperArm": 11, "LowerArm": 12}


def test_a_collar_bone_has_its_name_where_it_is_expected():
    limb = limb_of([0.11, 0.22, 0.38], [SHOULDER - 0.09, SHOULDER, ELBOW])
    names = {"Shoulder": 10, "UpperArm": 11, "LowerArm": 12}
    assert sure_names(limb, ARM_WITH_SHOULDER) == names


@pytest.mark.parametrize(("cut", "longer"), [(0.48, 11), (0.34, 10)])
def test_of_two_pieces_the_longer_has_the_name(cut, longer):
    middle = [0.5 * (HIP + cut), 0.5 * (cut + KNEE), 0.14, 0.03]
    limb = limb_of(middle, [HIP, cut, KNEE, ANKLE])
    assert sure_names(limb, LEG) == {"UpperLeg": longer, "LowerLeg": 12, "Foot": 13}


def test_a_shank_and_foot_in_one_is_the_foot():
    limb = limb_of([0.37, 0.06], [HIP, KNEE])
    assert sure_names(limb, LEG) == {"UpperLeg": 10, "Foot": 11}


def test_a_forearm_and_hand_in_one_is_the_forearm():
    limb = limb_of([0.2, 0.4], [SHOULDER, ELBOW])
    assert sure_names(limb, ARM) == {"UpperArm": 10, "LowerArm": 11}


def test_a_body_that_could_be_either_part_is_unsure():
    named = name_limb(limb_of([0.27], [SHOULDER]), ARM)
    assert named.unsure == {10}


def test_a_stick_beyond_the_wrist_is_no_hand():
    limb = limb_of([0.2, 0.36, 0.8], [SHOULDER, ELBOW, WRIST])
    assert sure_names(limb, ARM) == {"UpperArm": 10, "LowerArm": 11}


def test_an_unknown_joint_leaves_the_positions():
    limb = limb_of([0.2, 0.36, 0.43], [SHOULDER, np.nan, np.nan])
    assert sure_names(limb, ARM) == {"UpperArm": 10, "LowerArm": 11, "Hand": 12}


def test_a_limb_without_bodies_has_no_names():
    assert name_limb(limb_of([], []), ARM).bodies == {}
