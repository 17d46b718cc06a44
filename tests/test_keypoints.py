"""Points that are joints: the bones between them and the joints in them."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import synth
from marey.joints import fit_joints
from marey.numerics import geometry
from marey.segmentation import segment
from marey.segmentation.clusters.pair_statistics import pair_statistics
from marey.segmentation.labels.joint_names import (
    are_joint_names,
    limb_ends_of_names,
    parse_joint_names,
)
from marey.segmentation.labels.match import recognise_marker_set
from marey.segmentation.methods.keypoints import are_keypoints, owning_bones
from marey.take import Fact, Source
from marey.topology import infer_tree


def record_keypoints(figure, motion, *, noise=0.0, names=False, seconds=8.0):
    """The joint centres of a figure as the points of a take, and its bones."""
    take = figure.record(motion, seconds=seconds, rate=50.0)
    skeleton, motion = take.truth.skeleton, take.truth.motion
    points = motion.T_world_joint()[..., :3, 3]
    rng = np.random.default_rng(5)
    points = points + noise * rng.standard_normal(points.shape)
    labels = skeleton.names if names else [f"M{i:03}" for i in range(points.shape[1])]
    bones = {
        frozenset((i, int(p))) for i, p in enumerate(skeleton.parent.tolist()) if p >= 0
    }
    return marey.Take(rate=50.0, points=points, labels=tuple(labels)), bones


def pairs_inside(bodies):
    """Every two points of one body."""
    return {
        frozenset((int(i), int(j)))
        for body in bodies.shared.T
        for i in np.flatnonzero(body)
        for j in np.flatnonzero(body)
        if i < j
    }


def sets_of(shared):
    """The points of each body, in no order."""
    return {frozenset(np.flatnonzero(body).tolist()) for body in shared.T}


@pytest.fixture(scope="module")
def person():
    return record_keypoints(synth.human(), "exercise")


def test_exact_joint_centres_are_recognised_by_their_motion(person):
    take, bones = person
    bodies = segment(take)
    assert bodies.keypoints
    assert bones <= pairs_inside(bodies)


def test_markers_are_not_keypoints():
    for markers in ("dense110", 53, 3):
        take = synth.human(seed=1).record(
            "exercise", seconds=3.0, rate=50.0, markers=markers, noise=1e-3
        )
        kept = np.arange(len(take.labels))
        assert not are_keypoints(take, pair_statistics([take.points]), kept)


def test_no_motion_shows_keypoints_in_less_time_than_limbs_need_to_move():
    """In 12 frames at 100 Hz too many markers keep their distances."""
    figure = synth.human(height=1.75, seed=3)
    errors = {"noise": 5e-4, "soft_tissue": 0.008, "gaps": 0.02}
    options = {"markers": "set53", "seconds": 5.0, "rate": 100.0, "seed": 1}
    take = figure.record("walk", **options, **errors).cut(0, 12)
    take = replace(take, labels=tuple(f"M{i}" for i in range(53)))
    assert not segment(take).keypoints


def test_bodies_of_exact_joints_are_rigid_and_share_their_joints(person):
    take, _ = person
    bodies = segment(take)
    for body in bodies.shared.T:
        inside = take.points[:, body]
        distance = np.linalg.norm(inside[:, :, None] - inside[:, None], axis=-1)
        assert np.ptp(distance, axis=0).max() < 5e-3
    joints = fit_joints(bodies)
    tree = infer_tree(joints)
    assert len(tree.roots) == 1
    for body in np.flatnonzero(tree.parent >= 0):
        shared = bodies.shared[:, body] & bodies.shared[:, tree.parent[body]]
        assert shared.sum() == 1
        a, _ = joints.pair[tree.edge[body]]
        center = geometry.apply(
            bodies.T_world_body[:, a], joints.center_a[tree.edge[body]]
        )
        np.testing.assert_allclose(center, take.points[:, shared][:, 0], atol=5e-3)


def test_the_order_of_the_points_does_not_matter(person, rng):
    take, _ = person
    order = rng.permutation(len(take.labels))
    mixed = segment(take.select(order.tolist()))
    assert sets_of(mixed.shared[np.argsort(order)]) == sets_of(segment(take).shared)


def test_size_and_position_do_not_matter(person):
    take, _ = person
    T = geometry.transform(
        geometry.rotation_exp(np.array([0.0, 0.0, 1.0])), np.array([1.0, 2.0, 0.0])
    )
    moved = replace(take, points=0.05 * geometry.apply(T, take.points))
    assert sets_of(segment(moved).shared) == sets_of(segment(take).shared)


FACE = {
    "nose": (0.1, 0.0, 0.08),
    "left_eye": (0.08, 0.03, 0.12),
    "right_eye": (0.08, -0.03, 0.12),
    "left_ear": (0.0, 0.08, 0.1),
    "right_ear": (0.0, -0.08, 0.1),
}
PARTS = {
    "shoulder": "UpperArm",
    "elbow": "LowerArm",
    "wrist": "Hand",
    "hip": "UpperLeg",
    "knee": "LowerLeg",
    "ankle": "Foot",
}
COCO = [*FACE, *(f"{side}_{joint}" for joint in PARTS for side in ("left", "right"))]


def coco(labels=tuple(COCO)):
    """A person as pose estimation gives it, with an error of a centimetre."""
    human = synth.human()
    take = human.record("walk", seconds=6.0, rate=50.0)
    names, T = take.truth.skeleton.names, take.truth.motion.T_world_joint()
    head = T[:, names.index("Head")]
    points = []
    for word in COCO:
        side, _, joint = word.partition("_")
        if word in FACE:
            points.append(geometry.apply(head, np.array(FACE[word])))
        else:
            points.append(T[:, names.index(side.title() + PARTS[joint]), :3, 3])
    rng = np.random.default_rng(2)
    stacked = np.stack(points, axis=1)
    stacked = stacked + 0.01 * rng.standard_normal(stacked.shape)
    return marey.Take(rate=50.0, points=stacked, labels=labels)


def test_noisy_joints_are_recognised_by_their_names():
    """Limbs go from joint to joint, left on the left."""
    bodies = segment(coco())
    inside = pairs_inside(bodies)
    for side in ("left", "right"):
        for limb in (("shoulder", "elbow", "wrist"), ("hip", "knee", "ankle")):
            ends = [COCO.index(f"{side}_{joint}") for joint in limb]
            assert {frozenset(ends[:2]), frozenset(ends[1:])} <= inside
    assert infer_tree(fit_joints(bodies)).roots.size == 1


def test_all_spellings_of_a_side_are_equal():
    spellings = (
        COCO,
        [f"{n.split('_')[-1].title()}{n[0].upper() if '_' in n else ''}" for n in COCO],
        [n.replace("left_", "L ").replace("right_", "R ") for n in COCO],
    )
    members = [segment(coco(tuple(labels))).shared for labels in spellings]
    assert (members[0] == members[1]).all()
    assert (members[0] == members[2]).all()


BODY_15 = {
    "Nose": "HeadEnd",
    "Neck": "Neck",
    "MidHip": "Hips",
    **{
        f"{side[0]}{joint.title()}": side + part
        for side in ("Left", "Right")
        for joint, part in PARTS.items()
    },
}


@pytest.mark.parametrize("left_out", [(), ("Neck", "MidHip")], ids=["15", "13"])
def test_named_joints_of_a_person_give_named_bodies(left_out):
    """Limbs from joint to joint, hands and feet at the last of them.

    Without points in the middle the trunk is one body.
    """
    take = synth.human(seed=1).record("walk", seconds=4.0, rate=100.0)
    names, T = take.truth.skeleton.names, take.truth.motion.T_world_joint()
    labels = tuple(label for label in BODY_15 if label not in left_out)
    points = np.stack([T[:, names.index(BODY_15[n]), :3, 3] for n in labels], axis=1)
    points += 2e-3 * np.random.default_rng(0).standard_normal(points.shape)
    solution = marey.solve(marey.Take(rate=100.0, points=points, labels=labels))
    limbs = {BODY_15[n].replace("Hand", "LowerArm") for n in labels if n[0] in "LR"}
    assert limbs - {"LeftFoot", "RightFoot"} <= set(solution.bodies[0].names)
    skeleton, found = solution.skeleton, solution.motion.T_world_joint()
    assert skeleton.names[0] == "Hips"
    assert "Head" in skeleton.names
    for joint in ("LowerArm", "LowerLeg", "Hand", "Foot"):
        for name in (f"Left{joint}", f"Right{joint}"):
            difference = (
                found[:, skeleton.names.index(name), :3, 3]
                - T[:, names.index(name), :3, 3]
            )
            assert np.median(np.linalg.norm(difference, axis=1)) < 0.01


FOOT = {
    "heel": (-0.05, 0.0, -0.06),
    "foot_index": (0.17, 0.0, -0.07),
    "big_toe": (0.16, 0.02, -0.07),
    "small_toe": (0.12, -0.04, -0.07),
}
"""Points of a foot beside its ankle, in metres forward, to the left and up."""

FINGERS = ("thumb", "index", "middle", "ring", "pinky")


def whole_body(foot, *, hands=False, noise=3e-3):
    """A person as pose estimation gives it: the joints of COCO, feet and hands."""
    take = synth.human().record("walk", seconds=5.0, rate=50.0)
    names, T = take.truth.skeleton.names, take.truth.motion.T_world_joint()
    truth = dict(zip(names, np.swapaxes(T, 0, 1), strict=True))
    points = {
        word: geometry.apply(truth["Head"], np.array(place))
        for word, place in FACE.items()
    }
    for side in ("left", "right"):
        for joint, part in PARTS.items():
            points[f"{side}_{joint}"] = truth[side.title() + part][:, :3, 3]
        ankle = truth[f"{side.title()}Foot"]
        for word in foot:
            points[f"{side}_{word}"] = geometry.apply(ankle, np.array(FOOT[word]))
        if hands:
            points |= fingers_of(side, truth[f"{side.title()}Hand"])
    stacked = np.stack(list(points.values()), axis=1)
    stacked += noise * np.random.default_rng(0).standard_normal(stacked.shape)
    return marey.Take(rate=50.0, points=stacked, labels=tuple(points))


def fingers_of(side, hand):
    """The joints of five fingers that bend, and the wrist a second time."""
    bend = 0.6 + 0.5 * np.sin(np.arange(len(hand)) / 20.0)
    none = np.zeros(len(hand))
    points = {f"{side}_wrist_pose": hand[:, :3, 3]}
    for finger, name in enumerate(FINGERS):
        joints = ("CMC", "MCP", "IP") if name == "thumb" else ("MCP", "PIP", "DIP")
        place = np.stack([none, none + 0.08, none + 0.02 * (finger - 2.0)], axis=1)
        for k, joint in enumerate((*joints, "tip")):
            step = np.stack([np.sin(k * bend), np.cos(k * bend), none], axis=1)
            place = place + (0.03 * step if k else 0.0)
            word = name if name in ("thumb", "pinky") else f"{name}_finger"
            points[f"{side}_{word}_{joint}"] = geometry.apply(hand, place)
    return points


@pytest.mark.parametrize(
    "foot",
    [
        ("heel", "big_toe", "small_toe"),
        ("heel", "foot_index"),
        ("big_toe", "small_toe"),
    ],
    ids=["heel and toes", "heel and foot", "toes"],
)
def test_heel_and_toes_are_one_foot(foot):
    take = whole_body(foot)
    solution = marey.solve(take)
    bodies = solution.bodies[0]
    for side in ("left", "right"):
        own = bodies.names.index(f"{side.title()}Foot")
        on_foot = {take.labels[i] for i in np.flatnonzero(bodies.shared[:, own])}
        assert on_foot == {f"{side}_{word}" for word in ("ankle", *foot)}
    assert not any(name.startswith("body") for name in solution.skeleton.names)


def test_foot_and_toe_without_a_heel_are_joints_of_a_chain():
    words = ["hip", "knee", "ankle", "foot", "toe", "shoulder", "elbow", "wrist"]
    labels = [f"{side}_{word}" for side in ("left", "right") for word in words]
    assert limb_ends_of_names(labels) == {}
    labels = [label.replace("foot", "heel") for label in labels]
    assert sorted(limb_ends_of_names(labels).values()) == ["LeftFoot", "RightFoot"]


def test_whole_body_keypoints_have_hands_with_named_fingers():
    """A second point of the wrist is on the hand; each finger has its three bones."""
    take = whole_body(("heel", "foot_index"), hands=True)
    bodies = segment(take)
    assert bodies.keypoints
    assert not any(name.startswith("body") for name in bodies.names)
    for side in ("left", "right"):
        hand = bodies.names.index(f"{side.title()}Hand")
        on_hand = {take.labels[i] for i in np.flatnonzero(bodies.shared[:, hand])}
        assert {f"{side}_wrist", f"{side}_wrist_pose", f"{side}_thumb_CMC"} <= on_hand
        assert len(on_hand) == 7
        bone = bodies.names.index(f"{side.title()}LittleIntermediate")
        on_bone = {take.labels[i] for i in np.flatnonzero(bodies.shared[:, bone])}
        assert on_bone == {f"{side}_pinky_PIP", f"{side}_pinky_DIP"}


def test_a_second_joint_beside_no_eyes_is_of_markers():
    labels = [*whole_body(("heel",)).labels, "left_wrist_in", "right_wrist_in"]
    assert are_joint_names(parse_joint_names(labels))
    blind = [label for label in labels if "eye" not in label]
    assert not are_joint_names(parse_joint_names(blind))


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_named_joints_show_the_up_axis_that_was_assumed(axis):
    """The file says nothing, so y is assumed; the person stands along another axis."""
    take = whole_body(("heel", "foot_index"))
    R = geometry.R_Z_UP["y"] @ geometry.R_Z_UP[axis].T
    source = Source(path="x.trc", up=Fact("y", "assumed"), unit=Fact("m", "stated"))
    turned = replace(take, points=take.points @ R.T, source=source)
    assert marey.solve(turned).takes[0].source.up.value == axis


VRM = ["UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot"]
PROGRAMS = {
    "VRM": VRM,
    "HumanIK": ["Arm", "ForeArm", "Hand", "UpLeg", "Leg", "Foot"],
    "Rokoko": ["Arm", "Forearm", "Hand", "Thigh", "Shin", "Foot"],
    "Theia": ["uarm", "larm", "hand", "thigh", "shank", "foot"],
}
"""Segments of a limb as programs name the joints that move them."""


@pytest.mark.parametrize("program", PROGRAMS)
def test_joints_may_be_called_after_the_segments_that_they_move(program):
    take = synth.human(seed=1).record("walk", seconds=4.0, rate=100.0)
    names, T = take.truth.skeleton.names, take.truth.motion.T_world_joint()
    spelled = dict(zip(VRM, PROGRAMS[program], strict=True))
    labels = {"Hips": "Hips", "Neck": "Neck", "Head": "Head"}
    labels |= {
        f"{s}{k}": f"{s}_{v}" for s in ("Left", "Right") for k, v in spelled.items()
    }
    points = np.stack([T[:, names.index(name), :3, 3] for name in labels], axis=1)
    points += 5e-3 * np.random.default_rng(0).standard_normal(points.shape)
    found = marey.Take(rate=100.0, points=points, labels=tuple(labels.values()))
    bodies = segment(found)
    assert bodies.keypoints
    order, inside = list(labels), pairs_inside(bodies)
    for side in ("Left", "Right"):
        for limb in (VRM[:3], VRM[3:]):
            ends = [order.index(side + part) for part in limb]
            assert {frozenset(ends[:2]), frozenset(ends[1:])} <= inside
    limbs = {f"{side}{part}" for side in ("Left", "Right") for part in VRM}
    assert limbs - {"LeftHand", "RightHand", "LeftFoot", "RightFoot"} <= set(
        bodies.names
    )


def test_markers_of_segments_beside_knees_are_no_joints():
    labels = [f"{side}_{part}" for side in "LR" for part in PROGRAMS["Theia"]]
    words = parse_joint_names([*labels, "L_knee", "R_knee"])
    assert not are_joint_names(words)


@pytest.mark.parametrize("tip", ["4", "_TIP"])
def test_the_joints_of_a_hand_are_no_markers_of_its_fingers(tip):
    fingers = ("thumb", "index", "middle", "ring", "pinky")
    ends = [*("1", "2", "3"), tip] if tip == "4" else ["_MCP", "_PIP", "_DIP", tip]
    labels = ("wrist", *(finger + end for finger in fingers for end in ends))
    points = np.random.default_rng(0).normal(size=(20, len(labels), 3))
    take = marey.Take(rate=50.0, points=points, labels=labels)
    assert recognise_marker_set(take) is None


def test_a_spine_that_ends_in_l_is_not_on_the_left():
    labels = ["SpineF", "SpineM", "SpineL", "HipL", "HipR", "KneeL", "KneeR"]
    labels += ["AnkleL", "AnkleR", "ShoulderL", "ShoulderR"]
    x = [0.0, 0.1, 0.2, 0.21, 0.21, 0.22, 0.22, 0.22, 0.22, -0.02, -0.02]
    y = [0.0, 0.0, 0.0, 0.03, -0.03, 0.03, -0.03, 0.03, -0.03, 0.03, -0.03]
    z = [0.3, 0.3, 0.3, 0.28, 0.28, 0.2, 0.2, 0.1, 0.1, 0.28, 0.28]
    rng = np.random.default_rng(0)
    points = np.stack([x, y, z], axis=-1) + 0.01 * rng.standard_normal((200, 11, 3))
    take = marey.Take(rate=50.0, points=points, labels=tuple(labels))
    inside = pairs_inside(segment(take))
    assert {frozenset((0, 1)), frozenset((1, 2))} <= inside


def test_every_point_has_one_owner_and_every_bone_its_far_end(person):
    bodies = segment(person[0])
    owner = owning_bones(bodies.shared.T)
    assert (owner >= 0).all()
    assert (np.bincount(owner, minlength=len(bodies.names)) >= 1).all()
    assert all(bodies.shared[point, body] for point, body in enumerate(owner))


def test_a_solved_person_of_keypoints_has_the_true_bones(person):
    """One picture: joint centres in, the same skeleton out."""
    take, bones = person
    solution = marey.solve(take)
    positions = solution.motion.T_world_joint()[..., :3, 3]
    distance = np.linalg.norm(take.points[:, :, None] - positions[:, None], axis=-1)
    inner = [i for i in range(len(take.labels)) if sum(i in b for b in bones) > 1]
    assert np.median(distance.min(axis=2)[:, inner]) < 1e-3
    assert any(f.code == "points-are-joints" for f in solution.report.findings)
