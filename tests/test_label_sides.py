"""Labels that name a limb and no side: a single arm, one hand, fingers."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey.anatomy.names import mirror_name, side_of
from marey.segmentation.labels.label_sides import bodies_of_labels
from marey.segmentation.labels.match import recognise_marker_set
from marey.segmentation.labels.words import bodies_of_label

TRUNK = {"C7": "C7", "T10": "T10", "CLAV": "Manubrium", "STRN": "Xiphoid"}
ARM = {"UPA": "upper_arm", "ELB": "elbow", "FRM": "forearm", "FIN": "hand"}
ARM |= {"WRA": "wrist_inner", "WRB": "wrist_outer"}


def read(*labels):
    """The readings of labels that belong to one subject."""
    return bodies_of_labels({label: label for label in labels})


@pytest.fixture(scope="module")
def exercise():
    take = marey.synth.human(seed=0).record("exercise", seconds=5.0, rate=60.0)
    noise = np.random.default_rng(7).normal(scale=5e-4, size=take.points.shape)
    return marey.Take(rate=take.rate, points=take.points + noise, labels=take.labels)


def one_arm(take, side, trunk=True):
    """One arm of a performer, with labels that do not say which."""
    words = {side[0] + label: word for label, word in ARM.items()}
    words |= TRUNK if trunk else {}
    kept = [i for i, label in enumerate(take.labels) if label in words]
    some = take.select(kept)
    return replace(some, labels=tuple(words[label] for label in some.labels))


# --- labels alone ---------------------------------------------------------------------


def test_a_single_arm_has_bodies_without_a_side():
    found = read("upper_arm_1", "elbow_lat", "forearm", "C7")
    assert found["upper_arm_1"] == (("UpperArm",),)
    assert found["elbow_lat"] == (("UpperArm", "LowerArm"),)
    assert found["C7"] == (("Chest",),)


def test_a_label_without_a_side_is_on_the_only_side_that_others_name():
    found = read("upper_arm", "forearm", "right_elbow", "right_shoulder")
    assert found["forearm"] == (("RightLowerArm",),)


def test_a_label_without_a_side_may_be_on_either_side_of_two():
    found = read("upper_arm", "left_elbow", "right_elbow")
    assert set(found["upper_arm"]) == {("LeftUpperArm",), ("RightUpperArm",)}


def test_one_word_makes_no_limb():
    """A cluster called "arm" beside nothing else may be that of a robot."""
    assert read("arm1", "arm2", "base1", "base2")["arm1"] == ()


def test_vertebrae_are_no_thighs():
    found = read("th12", "left_thigh", "right_thigh", "left_knee")
    assert found["th12"] == (("Chest",),)


def test_ends_of_a_hand_are_no_sides():
    found = read("hand_top", "hand_left", "hand_right", "thumb_tip", "index_tip")
    assert found["hand_left"] == found["hand_right"] == (("Hand",),)
    assert read("hand_left", "hand_right")["hand_left"] == (("LeftHand",),)


FINGERS = {
    "Thumb": "thumb daumen pouce pollice pulgar polegar duim",
    "Index": "index zeigefinger indice wijsvinger index_finger",
    "Middle": "mittelfinger majeur middle_finger",
    "Ring": "ring ringfinger annulaire anulare anular",
    "Little": "little pinky kleiner_finger auriculaire mignolo meñique",
}


@pytest.mark.parametrize("finger", FINGERS)
@pytest.mark.parametrize("spell", [str, str.upper, str.title])
def test_fingers_in_many_languages(finger, spell):
    for word in FINGERS[finger].split():
        for label in (f"l_{word}_1", f"{word}.left", f"Left-{word}-tip"):
            assert bodies_of_label(spell(label)) == (
                (f"Left{finger}Proximal", "LeftHand"),
            ), label


def test_the_middle_finger_is_known_by_the_others():
    found = read("thumb_tip", "index_tip", "middle_tip", "ring_tip", "hand_top")
    assert found["middle_tip"] == (("MiddleProximal", "Hand"),)
    assert read("left_hand", "middle_tip")["middle_tip"] == ()


@pytest.mark.parametrize(
    "label", ["LXQZW", "ciseaux_li", "banana", "R_Quux_3", "lorem_ipsum", "Rpolka"]
)
def test_unknown_words_name_no_body(label):
    assert bodies_of_label(label) == ()


@pytest.mark.parametrize(
    ("label", "bodies"),
    [
        ("fibula_head_right", "RightLowerLeg"),
        ("Head_of_Fibula.L", "LeftLowerLeg"),
        ("R_5th_metatarsal", "RightFoot"),
        ("1st-metatarsal-head_left", "LeftFoot"),
        ("R_navicular_tuberosity", "RightFoot"),
        ("LM5", "LeftFoot"),
        ("Mittelfuss_li", "LeftFoot"),
        ("Sprunggelenk_re", "RightLowerLeg RightFoot"),
        ("joelho_dir", "RightUpperLeg RightLowerLeg"),
        ("cotovelo_esq", "LeftUpperArm LeftLowerArm"),
        ("Sternal_notch", "Chest"),
        ("R_Deltoid_insertion", "RightUpperArm"),
    ],
)
def test_words_of_published_sets(label, bodies):
    assert bodies_of_label(label) == (tuple(bodies.split()),)


# --- sides by the trunk ---------------------------------------------------------------


@pytest.mark.parametrize("side", ["Left", "Right"])
@pytest.mark.parametrize("up", ["x", "-x", "y", "-y", "z", "-z"])
def test_an_arm_whose_labels_name_no_side_is_on_its_side_of_the_trunk(
    exercise, side, up
):
    """Whatever the axes are: the trunk shows them."""
    take = one_arm(exercise, side)
    take = replace(take, points=take.points @ marey.geometry.R_Z_UP[up])
    match = recognise_marker_set(take)
    arm = {f"{side}{part}" for part in ("UpperArm", "LowerArm", "Hand")}
    assert set(match.members) == {"Chest", *arm}
    assert match.parents[f"{side}LowerArm"] == f"{side}UpperArm"
    assert match.trusted


def test_a_mirrored_arm_is_on_the_other_side(exercise):
    take = one_arm(exercise, "Left")
    mirrored = replace(take, points=take.points * [1.0, -1.0, 1.0])
    here, there = map(recognise_marker_set, (take, mirrored))
    assert {mirror_name(body): m for body, m in here.members.items()} == there.members


def test_an_arm_without_a_trunk_has_no_side(exercise):
    match = recognise_marker_set(one_arm(exercise, "Left", trunk=False))
    assert set(match.members) == {"UpperArm", "LowerArm", "Hand"}
    assert match.parents == {"LowerArm": "UpperArm", "Hand": "LowerArm"}


@pytest.mark.parametrize("spell", [str.upper, str.title, lambda x: x.replace("_", " ")])
def test_spelling_and_order_change_no_side(exercise, spell, rng):
    take = one_arm(exercise, "Right")
    order = rng.permutation(len(take.labels))
    other = replace(take, labels=tuple(map(spell, take.labels))).select(order)
    found = recognise_marker_set(other).members
    members = {body: {int(order[i]) for i in some} for body, some in found.items()}
    same = recognise_marker_set(take).members
    assert members == {body: set(some) for body, some in same.items()}


def test_a_solved_arm_without_a_side_has_its_tree(exercise):
    solution = marey.solve(one_arm(exercise, "Left", trunk=False))
    skeleton = solution.skeleton
    assert {"UpperArm", "LowerArm", "Hand"} <= set(skeleton.names)
    assert not any(map(side_of, skeleton.names))


# --- a glove --------------------------------------------------------------------------


def glove(side):
    """A hand with five fingers of two markers that bend one after the other."""
    t = np.arange(0.0, 6.0, 0.02)
    palm = np.array([[0.0, 0, 0.01], [0.08, 0.03, 0], [0.08, -0.03, 0.0]])
    points, labels = [np.repeat(palm[None], len(t), 0)], ["top", "left", "right"]
    labels = [f"hand_{x}" for x in labels]
    for k, finger in enumerate(("thumb", "index", "middle", "ring", "little")):
        bend = 0.9 * np.clip(np.sin(2 * np.pi * (t / 6.0 - k / 5.0)), 0.0, None)
        direction = np.stack([np.cos(bend), 0.0 * t, -np.sin(bend)], axis=-1)
        base = np.array([0.09, 0.04 - 0.02 * k, 0.0])
        reach = np.array([0.03, 0.06])
        points.append(base + reach[:, None] * direction[:, None])
        labels += [f"{finger}_middle", f"{finger}_tip"]
    arm = np.array([[-0.25, 0.0, 0.0], [-0.25, 0.05, 0.03]])
    swing = np.stack([0 * t, 0.1 * np.sin(t), 0.1 * np.sin(1.7 * t)], axis=-1)
    points.append(arm + swing[:, None])
    labels += [f"{side}_elbow_lat", f"{side}_elbow_med"]
    all_points = np.concatenate(points, axis=1)
    noise = np.random.default_rng(5).normal(scale=2e-4, size=all_points.shape)
    return marey.Take(rate=50.0, points=all_points + noise, labels=tuple(labels))


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_glove_has_the_side_of_its_arm_and_a_body_per_finger(side):
    match = recognise_marker_set(glove(side))
    name = side.title()
    fingers = {f"{name}{finger}Proximal" for finger in FINGERS}
    assert set(match.members) == {f"{name}Hand", f"{name}UpperArm", *fingers}
    assert all(match.parents[finger] == f"{name}Hand" for finger in fingers)
    assert match.trusted


def test_a_finger_with_one_marker_is_part_of_the_hand(exercise):
    labels = tuple(x.replace("FIN", "_thumb") for x in exercise.labels)
    match = recognise_marker_set(replace(exercise, labels=labels))
    assert "LeftThumbProximal" not in match.members
    assert labels.index("L_thumb") in match.members["LeftHand"]


LETTERS = {"French": "GD", "Spanish": "ID", "Portuguese": "ED", "Swedish": "VH"}


@pytest.mark.parametrize("language", LETTERS)
@pytest.mark.parametrize("form", ["{word}_{side}", "{side}_{word}_1", "{word}-{side}2"])
def test_letters_of_other_languages_are_sides_if_pairs_differ_in_them(language, form):
    words = ("thigh", "knee", "ankle", "heel")
    labels = [form.format(word=w, side=s) for s in LETTERS[language] for w in words]
    found = read(*labels, "C7", "sacrum")
    assert found[labels[0]] == (("LeftUpperLeg",),)
    assert found[labels[4]] == (("RightUpperLeg",),)
    assert found[labels[1]] == (("LeftUpperLeg", "LeftLowerLeg"),)
    assert found["C7"] == (("Chest",),)
    plain = read(*labels[:4], "C7", "sacrum")
    assert not any(side_of(b) for some in plain.values() for one in some for b in one)


@pytest.mark.parametrize(
    "sides", ["LP", "LD", "ЛП", "BJ", "VO", "SD", ("sol", "sag")], ids=str
)
def test_a_letter_beside_that_for_left_is_the_other_side(sides):
    """Not on the only side that is named: "P_kolano" is right beside "L_kolano"."""
    words = ("thigh", "knee", "ankle", "heel")
    found = read(*(f"{side}_{word}" for side in sides for word in words), "C7")
    for side, name in zip(sides, ("Left", "Right"), strict=True):
        assert found[f"{side}_thigh"] == ((f"{name}UpperLeg",),)
        assert found[f"{side}_heel"] == ((f"{name}Foot",),)


@pytest.mark.parametrize("form", ["{word}{side}", "{side}{word}"])
def test_letters_for_sides_need_no_separator(form):
    words = ("GT", "ANK", "CAL", "META1", "META5")
    labels = [form.format(word=w, side=s) for s in "GD" for w in words]
    found = read(*labels, "C7", "MAN", "XIPH")
    for side, name in (("G", "Left"), ("D", "Right")):
        heel = form.format(word="CAL", side=side)
        assert found[heel] == ((f"{name}Foot",),)
    assert found["C7"] == (("Chest",),)


def test_letters_are_no_sides_where_labels_name_sides():
    labels = [f"{x}_{s}" for x in ("L_thigh", "R_thigh", "L_shank") for s in "DG"]
    assert read(*labels)["R_thigh_D"] == (("RightUpperLeg",),)
