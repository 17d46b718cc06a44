"""Names, left and right, and the T-pose of figures that look like people."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import synth
from marey.anatomy.naming import Figure, named, path
from marey.numerics import geometry
from marey.rig import build_skeletons, renamed
from marey.segmentation import segment


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


# --- figures drawn by hand ------------------------------------------------------------


def drawn(places, bones, bends=None):
    """A figure that stands still: where bodies are, and which hang together.

    Args:
        places: The middle of each body.
        bones: Pairs of names.
        bends: How far a joint is off the middle of its two bodies.
    """
    names = list(places)
    place = np.array([list(map(float, places[name])) for name in names])[None]
    near = {i: [] for i in range(len(names))}
    joint = {}
    for one, other in bones:
        a, b = sorted((names.index(one), names.index(other)))
        near[a].append(b)
        near[b].append(a)
        away = (bends or {}).get((one, other), np.zeros(3))
        joint[a, b] = 0.5 * (place[:, a] + place[:, b]) + away
    return names, Figure(place, joint, near)


PERSON = {
    "Hips": (0, 0, 0.95),
    "Chest": (0, 0, 1.35),
    "Head": (0, 0, 1.6),
    **{f"{s}UpperLeg": (0, y * 0.1, 0.6) for s, y in (("Left", 1), ("Right", -1))},
    **{f"{s}LowerLeg": (0, y * 0.1, 0.24) for s, y in (("Left", 1), ("Right", -1))},
    **{f"{s}Foot": (0.08, y * 0.1, 0.05) for s, y in (("Left", 1), ("Right", -1))},
    **{f"{s}UpperArm": (0, y * 0.27, 1.2) for s, y in (("Left", 1), ("Right", -1))},
    **{f"{s}LowerArm": (0, y * 0.27, 0.95) for s, y in (("Left", 1), ("Right", -1))},
    **{f"{s}Hand": (0, y * 0.27, 0.82) for s, y in (("Left", 1), ("Right", -1))},
}
LIMBS = (("Hips", "Leg", "Foot"), ("Chest", "Arm", "Hand"))
PERSON_BONES = [
    ("Hips", "Chest"),
    ("Chest", "Head"),
    *(
        bone
        for side in ("Left", "Right")
        for root, limb, end in LIMBS
        for bone in (
            (root, f"{side}Upper{limb}"),
            (f"{side}Upper{limb}", f"{side}Lower{limb}"),
            (f"{side}Lower{limb}", f"{side}{end}"),
        )
    ),
]


def names_of(places, bones):
    known, figure = drawn(places, bones)
    naming = named(figure)
    return {known[body]: name for body, name in naming.names.items()}


def without(part, places, bones):
    """The figure with one part gone; what hung from it hangs from what it hung from."""
    above = next(a for a, b in bones if b == part)
    kept = [(above if a == part else a, b) for a, b in bones if b != part]
    return {name: at for name, at in places.items() if name != part}, kept


def test_a_whole_person():
    assert names_of(PERSON, PERSON_BONES) == {name: name for name in PERSON}


@pytest.mark.parametrize(
    "part", ["LeftHand", "RightFoot", "LeftUpperLeg", "RightLowerLeg", "Head"]
)
def test_a_missing_part_leaves_the_other_names(part):
    places, bones = without(part, PERSON, PERSON_BONES)
    found = names_of(places, bones)
    wrong = {name: seen for name, seen in found.items() if seen != name}
    assert wrong == {}
    assert len(found) >= len(places) - 1


def test_a_collar_bone_is_no_upper_arm():
    places = PERSON | {"clavicle": (0.0, -0.13, 1.37)}
    bones = [
        ("clavicle", b) if b == "RightUpperArm" else (a, b) for a, b in PERSON_BONES
    ]
    found = names_of(places, [*bones, ("Chest", "clavicle")])
    assert found["clavicle"] == "RightShoulder"
    assert found["RightUpperArm"] == "RightUpperArm"


def test_a_piece_of_the_pelvis_gets_no_name():
    places = PERSON | {"piece": (-0.05, 0.05, 0.98)}
    bones = [("piece", b) if b == "LeftUpperLeg" else (a, b) for a, b in PERSON_BONES]
    found = names_of(places, [*bones, ("Hips", "piece")])
    assert "piece" not in found
    assert {name: found[name] for name in PERSON} == {name: name for name in PERSON}


def test_a_stick_in_the_hand_takes_no_name_from_the_person():
    places = PERSON | {"stick": (0.5, -0.3, 0.3)}
    found = names_of(places, [*PERSON_BONES, ("RightHand", "stick")])
    assert {name: found[name] for name in PERSON} == {name: name for name in PERSON}
    assert "stick" not in found


def mirrored(places):
    return {name: (x, -y, z) for name, (x, y, z) in places.items()}


def test_the_mirrored_person_has_left_and_right_exchanged():
    found = names_of(mirrored(PERSON), PERSON_BONES)
    swap = {"Left": "Right", "Right": "Left"}
    for name, seen in found.items():
        side = next((s for s in swap if name.startswith(s)), "")
        assert seen == swap.get(side, "") + name.removeprefix(side)


def test_names_do_not_turn_with_the_person():
    for angle in np.linspace(0.3, 6.0, 5):
        c, s = np.cos(angle), np.sin(angle)
        turned = {
            n: (c * x - s * y, s * x + c * y, z) for n, (x, y, z) in PERSON.items()
        }
        assert names_of(turned, PERSON_BONES) == {name: name for name in PERSON}


def hand_of(side):
    """A hand with its palm down and its fingers ahead, +y, a little bent."""
    way = -1.0 if side == "Right" else 1.0
    across = {"Index": -0.03, "Middle": -0.01, "Ring": 0.01, "Little": 0.03}
    places = {"Hand": (0.0, 0.0, 0.0)}
    for finger, x in across.items():
        for i, part in enumerate(("Proximal", "Intermediate", "Distal")):
            at = (-way * x, 0.06 + 0.025 * i, -0.006 * i * (i + 1))
            places[f"{finger}{part}"] = at
    for i, part in enumerate(("Proximal", "Intermediate")):
        places[f"Thumb{part}"] = (way * (0.05 + 0.02 * i), 0.01 + 0.03 * i, -0.01)
    bones = []
    for name in places:
        if name.endswith("Proximal"):
            bones.append(("Hand", name))
        elif name.endswith("Intermediate"):
            bones.append((name.replace("Intermediate", "Proximal"), name))
        elif name.endswith("Distal"):
            bones.append((name.replace("Distal", "Intermediate"), name))
    return places, bones


@pytest.mark.parametrize("side", ["Left", "Right"])
def test_a_hand(side):
    places, bones = hand_of(side)
    assert names_of(places, bones) == {name: side + name for name in places}


def test_a_hand_on_a_forearm():
    places, bones = hand_of("Right")
    places |= {"arm": (0.0, -0.2, 0.0)}
    found = names_of(places, [*bones, ("Hand", "arm")])
    assert found["Hand"] == "RightHand"
    assert "arm" not in found


def test_a_star_of_six_is_no_hand():
    angles = np.linspace(0.0, 2.0 * np.pi, 7)[:-1]
    places = {"hub": (0, 0, 0)} | {
        f"arm{i}": (np.cos(a), np.sin(a), 0.0) for i, a in enumerate(angles)
    }
    _, figure = drawn(places, [("hub", name) for name in places if name != "hub"])
    assert named(figure) is None


def test_a_dog_gets_four_legs_and_a_tail():
    figure = synth.quadruped()
    _, bodies, joints, tree = found(figure, "walk", markers=6)
    seen, (naming,) = renamed(bodies, joints, tree)
    assert naming.kind == "quadruped"
    sides = [f"{end}{side}" for end in ("Front", "Hind") for side in ("Left", "Right")]
    assert {f"{side}UpperLeg" for side in sides} <= set(seen.names)
