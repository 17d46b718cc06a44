"""Joint angles of people: signs, sides, sequences, zeros and uncertainties."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import marey
from marey import synth
from marey.anatomy import names as vrm
from marey.clinical.plug_in_gait import center_beside
from marey.errors import DataError, OptionError
from marey.motion import Contact
from marey.numerics import geometry

FORWARD, LEFTWARD, UP = np.eye(3)
PIG: Literal["plug-in-gait"] = "plug-in-gait"


@pytest.fixture(scope="module")
def skeleton():
    """A person in a T-pose that faces +x."""
    take = synth.human(seed=1).record("walk", seconds=0.1, markers="none", sensors=True)
    return take.truth.motion.skeleton


def posed(skeleton, turns, sd=None, R_root=None):
    """One frame, each joint turned by a rotation vector in degrees."""
    rotvec = np.zeros((1, skeleton.n_joints, 3))
    for name, turn in turns.items():
        rotvec[0, skeleton.index(name)] = np.deg2rad(turn)
    wxyz = geometry.quat_exp(rotvec)
    R = geometry.matrix_from_quat(wxyz[:, 0]) if R_root is None else R_root[None]
    wxyz[:, 0] = geometry.quat_from_matrix(R)
    T = geometry.transform(R, skeleton.offset[:1])
    motion = marey.Motion(skeleton=skeleton, T_world_root=T, wxyz=wxyz, rate=100.0)
    return motion if sd is None else replace(motion, angle_sd=np.full((1, 26, 3), sd))


HANGING = {
    "LeftUpperArm": [-90.0, 0.0, 0.0],
    "RightUpperArm": [90.0, 0.0, 0.0],
}
"""Turns of the arms from a T-pose until they hang."""


def test_at_attention_all_angles_are_zero(skeleton):
    angles = marey.angles(posed(skeleton, HANGING), "plug-in-gait")
    np.testing.assert_allclose(angles.degrees, 0.0, atol=1e-6)


MOVES = [
    ({"RightUpperLeg": [0, -30, 0]}, "right_hip_flexion", "thigh forward"),
    ({"RightUpperLeg": [30, 0, 0]}, "right_hip_adduction", "thigh to the left"),
    ({"LeftUpperLeg": [-30, 0, 0]}, "left_hip_adduction", "thigh to the right"),
    ({"RightUpperLeg": [0, 0, 30]}, "right_hip_internal_rotation", "toes to the left"),
    ({"LeftUpperLeg": [0, 0, -30]}, "left_hip_internal_rotation", "toes to the right"),
    ({"LeftLowerLeg": [0, 30, 0]}, "left_knee_flexion", "shank backward"),
    ({"RightLowerLeg": [0, 0, 30]}, "right_knee_internal_rotation", "toes to the left"),
    ({"RightFoot": [0, -30, 0]}, "right_ankle_dorsiflexion", "toes up"),
    ({"RightFoot": [30, 0, 0]}, "right_ankle_inversion", "sole to the left"),
    ({"Hips": [0, 30, 0]}, "pelvis_anterior_tilt", "the top of the pelvis forward"),
    ({"Hips": [-30, 0, 0]}, "pelvis_right_up", "the right side up"),
    ({"Chest": [0, 30, 0]}, "trunk_flexion", "chest forward"),
    ({"Chest": [30, 0, 0]}, "trunk_right_bending", "chest to the right"),
    ({"Chest": [0, 0, 30]}, "trunk_left_rotation", "chest to the left"),
    ({"LeftLowerArm": [0, 0, -30]}, "left_elbow_flexion", "hand forward"),
    ({"RightLowerArm": [0, 0, 30]}, "right_elbow_flexion", "hand forward"),
    ({"RightLowerArm": [0, 30, 0]}, "right_elbow_pronation", "thumb down from forward"),
    ({"LeftHand": [-30, 0, 0]}, "left_wrist_flexion", "fingers down from a T-pose"),
    ({"LeftHand": [0, 0, 30]}, "left_wrist_ulnar_deviation", "fingers backward"),
]


@pytest.mark.parametrize(
    ("turns", "name", "what"), MOVES, ids=[f"{name}: {what}" for _, name, what in MOVES]
)
@pytest.mark.parametrize("convention", ["isb", "plug-in-gait"])
def test_one_turn_is_one_angle_of_the_stated_sign(
    skeleton, turns, name, what, convention
):
    angles = marey.angles(posed(skeleton, turns), convention)
    assert angles[name][0] == pytest.approx(30.0, abs=1e-6), what
    joint = name.removeprefix("left_").removeprefix("right_").split("_")[0]
    side = name.split("_")[0] if name.split("_")[0] in ("left", "right") else ""
    siblings = [n for n in angles.names if n.startswith(f"{side}_{joint}_".lstrip("_"))]
    assert len(siblings) == 3
    for other in set(siblings) - {name}:
        assert angles[other][0] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("side", ["Left", "Right"])
def test_a_shoulder_is_raised_in_a_plane(skeleton, side):
    """Sideways is plane 0, forward is plane 90, as Wu (2005) has it."""
    sideways = marey.angles(posed(skeleton, {}))
    sign = 1.0 if side == "Left" else -1.0
    forward = marey.angles(posed(skeleton, {f"{side}UpperArm": [0, 0, -90.0 * sign]}))
    for angles, plane in ((sideways, 0.0), (forward, 90.0)):
        assert angles[f"{side.lower()}_shoulder_elevation"][0] == pytest.approx(90.0)
        found = angles[f"{side.lower()}_shoulder_plane_of_elevation"][0]
        assert found == pytest.approx(plane, abs=1e-6)


def test_both_sides_of_a_mirrored_pose_have_the_same_angles(skeleton, rng):
    turns = {}
    for part in ("UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot"):
        turn = rng.normal(scale=25.0, size=3)
        turns["Left" + part], turns["Right" + part] = turn, turn * [-1, 1, -1]
    angles = marey.angles(posed(symmetric(skeleton), turns))
    for name in angles.names:
        if name.startswith("left_") and "pelvis" not in name:
            other = angles["right_" + name.removeprefix("left_")]
            np.testing.assert_allclose(angles[name], other, atol=1e-6, err_msg=name)


def symmetric(skeleton):
    """The skeleton with right limbs that mirror the left ones."""
    offset = skeleton.offset.copy()
    for joint, name in enumerate(skeleton.names):
        if vrm.side_of(name) == vrm.RIGHT:
            left = skeleton.index(vrm.mirror_name(name))
            offset[joint] = offset[left] * [1, -1, 1]
    return replace(skeleton, offset=offset)


def test_the_way_a_person_faces_does_not_matter(skeleton, rng):
    turns = {"RightUpperLeg": [10, -30, 5], "RightLowerLeg": [0, 40, 0]}
    wanted = marey.angles(posed(skeleton, turns)).degrees
    R = geometry.rotation_exp(rng.uniform(-3.0, 3.0) * UP)
    found = marey.angles(posed(skeleton, turns, R_root=R)).degrees
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_a_rest_pose_that_faces_another_way_gives_the_same_angles(skeleton):
    """The front is known from the hips, not from the axes of the file."""
    turn = geometry.rotation_exp(-0.5 * np.pi * UP)
    other = replace(skeleton, offset=skeleton.offset @ turn.T)
    angles = marey.angles(posed(other, {"LeftLowerLeg": turn @ [0.0, 30.0, 0.0]}))
    assert angles["left_knee_flexion"][0] == pytest.approx(30.0)
    assert angles["left_knee_adduction"][0] == pytest.approx(0.0, abs=1e-6)


def test_names_of_other_programs_are_known(skeleton):
    names = {"LeftUpperLeg": "LeftUpLeg", "LeftLowerLeg": "LeftLeg"}
    names |= {"RightUpperLeg": "RightUpLeg", "RightLowerLeg": "RightLeg"}
    mixamo = replace(skeleton, names=tuple(names.get(n, n) for n in skeleton.names))
    angles = marey.angles(posed(mixamo, {"LeftLeg": [0, 30, 0]}))
    assert angles["left_knee_flexion"][0] == pytest.approx(30.0)


def test_an_animal_has_no_clinical_angles():
    dog = synth.quadruped().record("walk", seconds=0.2).truth.motion
    with pytest.raises(DataError, match="a person"):
        marey.angles(dog)


def test_standard_deviations_are_those_of_the_angles(skeleton, rng):
    """Against many poses drawn from the stated spread."""
    turns = {"RightUpperLeg": [15, -40, 20], "RightLowerLeg": [3, 50, -10]}
    sd = np.deg2rad(0.5)
    pose = posed(skeleton, turns, sd)
    stated = marey.angles(pose)
    n = 4000
    noise = geometry.quat_exp(rng.normal(scale=sd, size=(n, skeleton.n_joints, 3)))
    noise[:, 0] = [1.0, 0.0, 0.0, 0.0]
    drawn = marey.Motion(
        skeleton=skeleton,
        T_world_root=np.repeat(pose.T_world_root, n, axis=0),
        wxyz=geometry.quat_multiply(np.repeat(pose.wxyz, n, axis=0), noise),
        rate=100.0,
    )
    found = marey.angles(drawn)
    for name in ("right_hip_flexion", "right_hip_adduction", "right_knee_flexion"):
        column = stated.names.index(name)
        spread = found.degrees[:, column].std()
        assert stated.sd[0, column] == pytest.approx(spread, rel=0.1)


def test_every_angle_names_the_joint_that_turns_its_outer_segment(skeleton):
    angles = marey.angles(posed(skeleton, {}))
    joint = dict(zip(angles.names, angles.joints, strict=True))
    assert joint["right_knee_flexion"] == "RightLowerLeg"
    assert joint["left_hip_adduction"] == "LeftUpperLeg"
    assert joint["left_shoulder_elevation"] == "LeftUpperArm"
    assert joint["pelvis_anterior_tilt"] == "Hips"


def test_a_foot_on_the_ground_is_level(skeleton):
    """The zero of the ankle is where the foot stands, whatever its bone's slope."""
    motion = posed(skeleton, {"RightFoot": [0, 12.0, 0]})
    plant = Contact("RightFoot", -1.0, 1.0, np.zeros(3))
    angles = marey.angles(replace(motion, contacts=(plant,)))
    assert angles["right_ankle_dorsiflexion"][0] == pytest.approx(0.0, abs=1e-6)
    zero = angles.zeros[angles.names.index("right_ankle_dorsiflexion")]
    assert "flat on the ground" in zero


def test_the_pelvis_has_the_axes_of_its_iliac_spines(skeleton):
    tilted = geometry.rotation_exp(np.deg2rad(10.0) * LEFTWARD)
    spines = np.array(
        [[0.1, 0.12, 0], [0.1, -0.12, 0], [-0.1, 0.04, 0], [-0.1, -0.04, 0]]
    )
    marked = replace(
        skeleton,
        marker_labels=("LASI", "RASI", "LPSI", "RPSI"),
        marker_joint=np.zeros(4, dtype=np.int64),
        marker_offset=spines @ tilted.T,
    )
    angles = marey.angles(posed(marked, {}))
    assert angles["pelvis_anterior_tilt"][0] == pytest.approx(10.0)
    assert "iliac spines" in angles.zeros[0]


def test_a_walk_has_the_knees_of_a_walk():
    """Knees bend by 40 to 80 degrees and hardly ever past straight."""
    take = synth.human(seed=2).record("walk", seconds=3.0, rate=50.0, markers="set53")
    angles = marey.angles(take.truth.motion)
    for side in ("left", "right"):
        knee = angles[f"{side}_knee_flexion"]
        assert 40.0 < np.ptp(knee) < 80.0
        assert knee.min() > -5.0


def test_unknown_frames_stay_unknown(skeleton):
    motion = posed(skeleton, {})
    gap = replace(
        motion,
        T_world_root=np.full((1, 4, 4), np.nan),
        wxyz=np.full_like(motion.wxyz, np.nan),
    )
    assert np.isnan(marey.angles(gap).degrees).all()


def test_no_person_has_no_clinical_angles():
    prop = synth.linkage().record(markers=4, seconds=0.2).truth.motion
    with pytest.raises(DataError, match="a person"):
        marey.angles(prop)


def test_an_unknown_convention_is_refused(skeleton, unchecked):
    with pytest.raises(OptionError, match="isb or plug-in-gait"):
        marey.angles(posed(skeleton, {}), "wu")  # type: ignore[arg-type]


def test_sequences_agree_with_scipy(skeleton, rng):
    turn = rng.normal(scale=30.0, size=3)
    angles = marey.angles(posed(skeleton, {"RightUpperLeg": turn}))
    wanted = Rotation.from_rotvec(np.deg2rad(turn)).as_euler("YXZ", degrees=True)
    found = [angles[f"right_hip_{a}"][0] for a in ("flexion", "adduction")]
    np.testing.assert_allclose(found, wanted[:2] * [-1, 1], atol=1e-6)


def with_markers(skeleton, places):
    """The skeleton with markers: label, joint and offset from it."""
    labels, joints, offsets = zip(*places, strict=True)
    return replace(
        skeleton,
        marker_labels=labels,
        marker_joint=np.array([skeleton.index(name) for name in joints]),
        marker_offset=np.array(offsets, dtype=float),
    )


def test_landmarks_decide_where_a_knee_is_between_front_and_back(skeleton):
    """A fitted centre 3 cm before the epicondyle gives no flexion to a straight leg."""
    knee = skeleton.offset[skeleton.index("LeftLowerLeg")]
    ankle = skeleton.offset[skeleton.index("LeftFoot")]
    beside = np.array([0.0, 0.05, 0.0])
    before = np.array([0.03, 0.0, 0.0])
    offset = skeleton.offset.copy()
    offset[skeleton.index("LeftLowerLeg")] += before
    offset[skeleton.index("LeftFoot")] -= before
    bent = replace(skeleton, offset=offset)
    marked = with_markers(
        bent,
        [
            ("LKNE", "LeftUpperLeg", knee + beside),
            ("LANK", "LeftLowerLeg", ankle - before + beside),
        ],
    )
    motion = posed(marked, {"LeftLowerLeg": [0, 0, 0]})
    assert marey.angles(motion)["left_knee_flexion"][0] == pytest.approx(0.0, abs=1e-6)
    by_centers = marey.angles(posed(bent, {}))["left_knee_flexion"][0]
    assert by_centers > 7.0  # the angle of the bones between the centres alone


@pytest.mark.parametrize("roll", [0.0, 25.0])
def test_a_foot_of_two_markers_has_no_roll_of_its_own(skeleton, roll):
    """Its flexion is that of the line from heel to toe, whatever the roll about it."""
    markers = [
        ("RHEE", "RightFoot", [-0.05, 0.0, -0.05]),
        ("RTOE", "RightFoot", [0.12, 0.0, -0.05]),
    ]
    flexed = Rotation.from_euler("YX", [-20.0, roll], degrees=True).as_rotvec(True)
    motion = posed(with_markers(skeleton, markers), {"RightFoot": flexed})
    angles = marey.angles(motion, "plug-in-gait")
    assert angles["right_ankle_dorsiflexion"][0] == pytest.approx(20.0, abs=1e-6)
    assert angles["right_ankle_inversion"][0] == pytest.approx(0.0, abs=1e-6)


def plug_in_gait_markers(skeleton, wand_degrees=0.0):
    """Markers on spines, knees and ankles, wands turned outward to the front."""
    places = [("SACR", "Hips", np.array([-0.12, 0.0, 0.08]))]
    turn = np.deg2rad(wand_degrees)
    for side, sign in (("Left", 1.0), ("Right", -1.0)):
        out = np.array([np.sin(turn), sign * np.cos(turn), 0.0])
        across = np.array([0.0, sign, 0.0])
        places.append((f"{side[0]}ASI", "Hips", 0.08 * FORWARD + 0.12 * across))
        for segment, child, wand, mark in (
            ("UpperLeg", "LowerLeg", "THI", "KNE"),
            ("LowerLeg", "Foot", "TIB", "ANK"),
        ):
            joint = skeleton.offset[skeleton.index(side + child)]
            body = side + segment
            places.append((side[0] + mark, body, joint + 0.05 * out))
            places.append((side[0] + wand, body, 0.5 * joint + 0.15 * out))
    return with_markers(skeleton, places)


def test_a_wand_decides_the_axes_of_plug_in_gait(skeleton):
    """Its plane is that of the knee's axis, so a turned wand is a turned thigh."""
    both = [
        marey.angles(posed(plug_in_gait_markers(skeleton, degrees), HANGING), PIG)
        for degrees in (0.0, 20.0)
    ]
    for side in ("left", "right"):
        name = f"{side}_hip_internal_rotation"
        turned = both[1][name][0] - both[0][name][0]
        assert abs(turned) == pytest.approx(20.0, abs=2.0)
        assert "wands" in both[0].zeros[both[0].names.index(name)]
    isb = marey.angles(posed(plug_in_gait_markers(skeleton, 20.0), HANGING))
    assert isb["left_hip_internal_rotation"][0] == pytest.approx(0.0, abs=1e-6)


def test_a_knee_of_plug_in_gait_bends_as_far_as_it_does(skeleton):
    marked = plug_in_gait_markers(skeleton)
    straight, bent = (
        marey.angles(posed(marked, HANGING | {"LeftLowerLeg": [0, turn, 0]}), PIG)
        for turn in (0.0, 40.0)
    )
    change = bent["left_knee_flexion"][0] - straight["left_knee_flexion"][0]
    assert change == pytest.approx(40.0, abs=1.0)
    assert bent["right_knee_flexion"][0] == straight["right_knee_flexion"][0]


def test_the_centre_of_a_joint_is_on_the_chord():
    """At its distance from the marker, at a right angle, in the plane of the wand."""
    rng = np.random.default_rng(4)
    mark, upper, wand = rng.normal(size=(3, 50, 3))
    center = center_beside(mark, upper, wand, 0.05)
    np.testing.assert_allclose(np.linalg.norm(center - mark, axis=1), 0.05)
    right = np.sum((center - mark) * (center - upper), axis=1)
    np.testing.assert_allclose(right, 0.0, atol=1e-12)
    normal = np.cross(upper - mark, wand - mark)
    np.testing.assert_allclose(
        np.sum(normal * (center - mark), axis=1), 0.0, atol=1e-12
    )
    outward = np.cross(np.cross(upper - mark, wand - mark), upper - mark)
    assert (np.sum(outward * (center - mark), axis=1) < 0.0).all(), "not away from it"
