"""Joints of two skeletons matched, bones compared, markers carried over."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import marey
from marey import synth
from marey.anatomy.name_schemes import recognise_joints
from marey.anatomy.names import without_side
from marey.anatomy.whole_person import insert_joint
from marey.attach import (
    adapt_lengths,
    carry_over,
    compare_bones,
    match_joints,
    match_skeletons,
    place_template,
    scale_skeleton,
    strip,
)
from marey.pipeline.reporting.compare_subjects import describe_bones

SCHEMES = {
    "VRM": "Hips LeftUpperLeg LeftLowerLeg LeftFoot LeftUpperArm LeftLowerArm LeftHand",
    "Mixamo": "mixamorig:Hips mixamorig:LeftUpLeg mixamorig:LeftLeg mixamorig:LeftFoot "
    "mixamorig:LeftArm mixamorig:LeftForeArm mixamorig:LeftHand",
    "Acclaim": "root lfemur ltibia lfoot lhumerus lradius lhand",
    "joints": "Hips LeftHip LeftKnee LeftAnkle LeftShoulder LeftElbow LeftWrist",
    "Biped": "Bip01_Pelvis Bip01_L_Thigh Bip01_L_Calf Bip01_L_Foot Bip01_L_UpperArm "
    "Bip01_L_Forearm Bip01_L_Hand",
    "Motive": "Joe_Hip Joe_LThigh Joe_LShin Joe_LFoot Joe_LUArm Joe_LFArm Joe_LHand",
    "Xsens": "Pelvis LeftUpperLeg LeftLowerLeg LeftFoot LeftUpperArm LeftForeArm "
    "LeftHand",
    "OpenSim": "pelvis femur_l tibia_l talus_l humerus_l ulna_l hand_l",
}
LEFT = ["LeftUpperLeg", "LeftLowerLeg", "LeftFoot"]
LEFT += ["LeftUpperArm", "LeftLowerArm", "LeftHand"]
SIDES = str.maketrans({"L": "R", "l": "r"})


def mirrored(name):
    """The same name of the right side, however the left is written."""
    for left, right in (
        ("Left", "Right"),
        ("_L_", "_R_"),
        ("_L", "_R"),
        ("_l", "_r"),
    ):
        if left in name:
            return name.replace(left, right)
    return name.translate(SIDES) if name[0] not in "lL" else "r" + name[1:]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_names_the_same_joints(scheme):
    hips, *left = SCHEMES[scheme].split()
    names = [hips, *left, *map(mirrored, left)]
    found = recognise_joints(names)
    expected = ["Hips", *LEFT, *(name.replace("Left", "Right") for name in LEFT)]
    assert [found[i] for i in range(len(names))] == expected


def test_names_that_are_no_persons_are_none():
    assert recognise_joints(["base", "link1", "link2"]) == {}
    assert recognise_joints([]) == {}


@pytest.fixture(scope="module")
def person():
    """A person with markers, as it stands at rest."""
    take = synth.human(seed=4).record("still", seconds=0.2, markers="set53", seed=2)
    return take.true_skeleton


def turned(skeleton, R):
    """The same skeleton with other axes at rest."""
    return replace(
        skeleton,
        offset=skeleton.offset @ R.T,
        marker_offset=skeleton.marker_offset @ R.T,
    )


def test_markers_are_carried_over_exactly_whatever_the_axes(person, rng):
    R = Rotation.random(rng=rng).as_matrix()
    other = turned(person, R)
    found = carry_over(strip(other), person, match_joints(other, person))
    moving = np.array(person.kind)[person.marker_joint] != "fixed"
    assert found.marker_labels == other.marker_labels
    np.testing.assert_array_equal(
        found.marker_joint[moving], other.marker_joint[moving]
    )
    expected = other.marker_offset[moving]
    np.testing.assert_allclose(found.marker_offset[moving], expected, atol=1e-9)


def test_markers_of_a_limb_in_another_rest_pose_turn_with_it(person):
    """An arm that hangs at rest has its markers where the stretched arm has them."""
    down = np.array([0.0, 0.0, -1.0])
    offset = person.offset.copy()
    for name in ("LeftLowerArm", "LeftHand"):
        joint = person.index(name)
        offset[joint] = np.linalg.norm(offset[joint]) * down
    hanging = strip(replace(person, offset=offset))
    found = carry_over(hanging, person, match_joints(hanging, person))
    for name in ("LeftUpperArm", "LeftLowerArm"):
        joint = person.index(name)
        below = person.index("LeftLowerArm" if name == "LeftUpperArm" else "LeftHand")
        on_bone = np.flatnonzero(person.marker_joint == joint)
        for skeleton in (person, found):
            assert (skeleton.marker_joint[on_bone] == joint).all()
        wanted, distance = (
            np.linalg.norm(s.marker_offset[on_bone] - s.offset[below], axis=-1)
            for s in (person, found)
        )
        np.testing.assert_allclose(distance, wanted, atol=1e-9)


def unnamed(skeleton):
    """The same skeleton with names that say nothing."""
    names = (f"Bone.{i:03d}" for i in range(skeleton.n_joints))
    return replace(skeleton, names=tuple(names))


@pytest.mark.parametrize("figure", ["human", "robot", "quadruped"])
def test_joints_without_names_are_found_by_tree_and_bones(figure, rng):
    """Whatever the axes and the size; left and right are not exchanged."""
    skeleton = getattr(synth, figure)().skeleton
    other = turned(scale_skeleton(skeleton, 0.7), Rotation.random(rng=rng).as_matrix())
    found = match_skeletons(unnamed(other), skeleton)
    wanted = [i for i, kind in enumerate(skeleton.kind) if kind != "fixed"]
    assert {m.free: m.joint for m in found.joints if m.free in wanted} == {
        i: i for i in wanted
    }
    assert found.tree.likeness == pytest.approx(1.0)
    assert not found.tree.is_ambiguous


def test_a_person_without_names_may_have_more_joints_and_hanging_arms(person):
    """Arms hang at rest, and each upper arm has a second bone that twists."""
    offset = person.offset.copy()
    for side in ("Left", "Right"):
        for part in ("LowerArm", "Hand", "HandEnd"):
            joint = person.index(side + part)
            offset[joint] = [0.0, 0.0, -np.linalg.norm(offset[joint])]
    other = replace(person, offset=offset)
    for side in ("Left", "Right"):
        upper, lower = (other.index(side + part) for part in ("UpperArm", "LowerArm"))
        middle = other.rest()[[upper, lower], :3, 3].mean(axis=0)
        other = insert_joint(other, f"{side}Twist", upper, [lower], middle, "ball")
    found = match_joints(unnamed(other), person)
    names = {person.names[m.free]: other.names[m.joint] for m in found}
    limbs = [name for name in names if "Left" in name or "Right" in name]
    assert {name: names[name] for name in limbs} == {name: name for name in limbs}
    bodies = {person.names[m.free]: other.names[m.body] for m in found}
    assert bodies["LeftUpperArm"] == "LeftTwist"


def test_a_figure_that_is_its_own_mirror_image_is_ambiguous():
    cross = marey.Skeleton(
        names=("base", "mast", "a1", "a2", "b1", "b2"),
        parent=np.array([-1, 0, 1, 2, 1, 4]),
        offset=np.array(
            [[0, 0, 0], [0, 0, 1], [0, 0.2, 0], [0, 0.4, 0], [0, -0.2, 0], [0, -0.4, 0]]
        ),
    )
    tree = match_skeletons(unnamed(cross), cross).tree
    assert tree.is_ambiguous
    assert tree.rival == pytest.approx(tree.likeness)


@pytest.mark.parametrize("scale", [0.5, 0.97, 1.0, 1.2])
def test_the_scale_of_a_skeleton_is_found_exactly(person, scale):
    given = scale_skeleton(person, scale)
    bones = compare_bones(given, person, match_joints(given, person))
    assert bones.scale == pytest.approx(1.0 / scale, rel=1e-12)
    assert bones.is_other_size == (abs(1.0 / scale - 1.0) > 0.05)
    assert len(bones.names) == 8


def test_every_bone_that_joints_determine_gets_its_length(person):
    """Trunk, neck, clavicles and pelvis as well as limbs, left and right alike."""
    factors = {"Spine": 0.9, "Chest": 0.9, "Neck": 1.2, "Shoulder": 0.8}
    factors |= {"UpperArm": 0.8, "UpperLeg": 1.25, "LowerLeg": 0.93, "Hand": 1.1}
    offset = person.offset.copy()
    for joint, name in enumerate(person.names):
        offset[joint] *= factors.get(without_side(name), 1.0)
    given = replace(person, offset=offset)
    free_offset = person.offset.copy()
    free_offset[person.index("LeftFoot")] *= 1.02
    free = replace(person, offset=free_offset)
    matches = match_joints(given, free)
    bones = compare_bones(given, free, matches)
    found = adapt_lengths(given, free, matches, bones)
    ends = {"HeadEnd", "HandEnd", "Heel", "Toes", "Head"}
    assert set(map(without_side, found.kept)) == ends
    for joint, name in enumerate(person.names):
        part = without_side(name)
        if part not in ends:
            wanted = person.lengths[joint] * (1.01 if part == "Foot" else 1.0)
            assert found.skeleton.lengths[joint] == pytest.approx(wanted, rel=1e-3)


def test_other_bones_of_equal_size_are_another_subject_if_both_were_estimated(person):
    known = replace(person, length_sd=np.full(person.n_joints, 5e-3))
    offset = known.offset.copy()
    for name, factor in (("LowerLeg", 1.06), ("Foot", 0.94), ("Hand", 1.0)):
        for side in ("Left", "Right"):
            offset[known.index(side + name)] *= factor
    other = replace(known, offset=offset)
    bones = compare_bones(other, known, match_joints(other, known))
    assert bones.is_other_subject
    assert not bones.is_other_size
    assert describe_bones(bones).startswith("its bones as long on average, ")
    from_file = replace(other, length_sd=np.full(person.n_joints, np.nan))
    bones = compare_bones(from_file, known, match_joints(from_file, known))
    assert not bones.is_other_subject


def test_an_animal_within_its_uncertainty_is_no_other_subject(rng):
    """People have common priors, and so common errors; errors of animals differ."""
    sd = 5e-3
    animal = synth.quadruped().skeleton
    animal = replace(animal, length_sd=np.full(animal.n_joints, sd))
    length = animal.lengths[:, None] + 1e-12
    for _ in range(20):
        error = np.sqrt(2.0) * sd * rng.normal(size=length.shape)
        again = replace(animal, offset=animal.offset * (1.0 + error / length))
        bones = compare_bones(animal, again, match_joints(animal, again))
        assert not bones.is_other_subject


def test_a_chain_of_trunk_bones_corresponds_from_hips_to_chest():
    def trunk(*names):
        chain = ["Hips", *names, "Head"]
        limbs = [side + part for side in ("Left", "Right") for part in ("Leg", "Arm")]
        joints = [*chain, *(f"{limb[:-3]}Upper{limb[-3:]}" for limb in limbs)]
        parent = [i - 1 for i in range(len(chain))]
        parent += [0, len(chain) - 2] * 2
        return marey.Skeleton(
            names=tuple(joints),
            parent=np.array(parent),
            offset=np.ones((len(joints), 3)),
        )

    given, free = trunk("a", "b", "c"), trunk("Chest")
    found = {free.names[m.free]: given.names[m.body] for m in match_joints(given, free)}
    assert found["Hips"] == "Hips"
    assert found["Chest"] == "c"
    assert found["Head"] == "Head"


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.2])
def test_a_template_grows_with_the_skeleton(person, scale):
    """Markers and sensors, whichever joints carry them."""
    T_joint_sensor = np.tile(np.eye(4), (2, 1, 1))
    T_joint_sensor[:, :3, 3] = [[0.1, 0.0, 0.02], [0.0, 0.05, -0.1]]
    template = replace(
        person,
        sensor_names=("a", "b"),
        sensor_joint=np.array([person.index("Hips"), person.index("LeftLowerArm")]),
        T_joint_sensor=T_joint_sensor,
    )
    found = place_template(scale_skeleton(person, scale), template)
    np.testing.assert_array_equal(found.marker_joint, template.marker_joint)
    np.testing.assert_allclose(
        found.marker_offset, scale * person.marker_offset, atol=1e-12
    )
    T_joint_sensor[:, :3, 3] *= scale
    np.testing.assert_allclose(found.T_joint_sensor, T_joint_sensor, atol=1e-12)


def test_a_marker_of_the_template_keeps_its_share_of_the_bone(person):
    """A marker a third of the way down a thigh is there on a longer thigh as well."""
    offset = person.offset.copy()
    for side in ("Left", "Right"):
        offset[person.index(side + "LowerLeg")] *= 1.1
    found = place_template(strip(replace(person, offset=offset)), person)
    on_thigh = np.isin(
        person.marker_joint,
        [person.index(side + "UpperLeg") for side in ("Left", "Right")],
    )
    assert on_thigh.any()
    np.testing.assert_allclose(
        found.marker_offset[on_thigh], 1.1 * person.marker_offset[on_thigh], atol=1e-12
    )
    on_forearm = person.marker_joint == person.index("LeftLowerArm")
    np.testing.assert_allclose(
        found.marker_offset[on_forearm], person.marker_offset[on_forearm], atol=1e-12
    )


def test_a_template_without_markers_or_of_another_creature_is_refused(person):
    with pytest.raises(marey.OptionError, match="without markers"):
        place_template(person, strip(person))
    dog = synth.quadruped().skeleton
    with pytest.raises(marey.OptionError, match="correspond"):
        place_template(replace(dog, names=tuple(f"x{n}" for n in dog.names)), person)


def test_a_neck_below_the_shoulders_does_not_turn_the_chest_over(person):
    """Skeletons have their necks above or below the line of the shoulders."""
    chest, neck = person.index("Chest"), person.index("Neck")
    on_chest = person.marker_joint == person.index("Spine")
    assert on_chest.any()
    template = replace(
        person,
        marker_joint=np.where(on_chest, chest, person.marker_joint),
        marker_offset=person.marker_offset - on_chest[:, None] * person.offset[chest],
    )
    offset = person.offset.copy()
    offset[neck, 2] -= 0.12
    other = strip(replace(person, offset=offset))
    above = [
        s.rest()[neck, 2, 3] > s.rest()[s.index("LeftUpperArm"), 2, 3]
        for s in (person, other)
    ]
    assert above == [True, False]
    found = place_template(other, template)
    np.testing.assert_allclose(
        found.marker_offset[on_chest], template.marker_offset[on_chest], atol=0.02
    )
