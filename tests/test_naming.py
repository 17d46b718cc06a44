"""Names, left and right, and the T-pose of figures with the shape of people."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import synth
from marey.anatomy.names import (
    has_tail,
    is_person,
    mirror_name,
    side_of,
    without_side,
)
from marey.anatomy.naming import (
    MIN_SIDE_CONFIDENCE,
    NamingInput,
    find_names,
    find_path,
    naming_cost,
)
from marey.numerics import geometry
from marey.pipeline.person.prior import (
    merge_pieces,
    prefer_nameable_tree,
    prefer_person,
)
from marey.report import Finding, mark_name
from marey.rig import build_skeletons, name_bodies
from marey.segmentation import Candidate, divide_bodies, segment
from marey.segmentation.body_poses import make_bodies, merge_bodies
from marey.segmentation.methods.overlap import default_names
from marey.topology import MAX_DOUBTFUL_SPACING


def segment_unlabelled(figure, motion, T=None, **options):
    """Bodies, joints and tree of a recording without its labels."""
    take = figure.record(motion, seconds=10.0, rate=50.0, noise=3e-4, **options)
    if T is not None:
        take = replace(take, points=geometry.apply(T, take.points))
    bodies = segment(take, method="overlap")
    joints = marey.fit_joints(bodies)
    return take, bodies, joints, marey.infer_tree(joints)


@pytest.mark.parametrize("name", synth.human().skeleton.names)
def test_mirroring_a_name_swaps_its_side_and_twice_is_the_name(name):
    assert mirror_name(mirror_name(name)) == name
    assert {side_of(name), side_of(mirror_name(name))} in ({"Left", "Right"}, {""})
    assert without_side(mirror_name(name)) == without_side(name)


def test_an_animal_with_the_names_of_a_person_has_a_tail():
    names = synth.quadruped().skeleton.names
    assert not is_person(names)
    assert has_tail(names)
    assert is_person([name for name in names if not name.startswith("Tail")])


def test_people_have_hips_and_two_legs():
    assert is_person(synth.human().skeleton.names)
    assert not has_tail(synth.human().skeleton.names)
    assert not is_person(("Hips", "LeftUpperLeg"))


@pytest.fixture(scope="module")
def performer():
    return segment_unlabelled(synth.human(seed=2), "chicken_walk", markers="dense110")


def true_names(take, bodies):
    """The true name of most markers of each body."""
    names = take.truth.skeleton.names
    return [
        names[np.bincount(take.truth.marker_joint[bodies.marker_body == i]).argmax()]
        for i in range(len(bodies.names))
    ]


def test_a_person_gets_the_right_names(performer):
    take, bodies, joints, tree = performer
    named, namings = name_bodies(bodies, joints, tree)
    assert [naming.kind for naming in namings] == ["human"]
    same = {"Spine": "Chest", "Neck": "Head"}
    expected = [same.get(name, name) for name in true_names(take, bodies)]
    assert list(named.names) == expected


@pytest.mark.parametrize("axis", [(1.5707963, 0, 0), (0, -1.5707963, 0)])
def test_a_person_lying_along_another_axis_is_recognised(axis):
    T = geometry.transform(geometry.rotation_exp(np.array(axis)), np.zeros(3))
    _, bodies, joints, tree = segment_unlabelled(
        synth.human(seed=2), "chicken_walk", T, markers="dense110"
    )
    _, (naming,) = name_bodies(bodies, joints, tree)
    assert naming.kind == "human"
    np.testing.assert_allclose(naming.up, T[:3, 2], atol=1e-6)


def test_names_of_the_user_are_kept(performer):
    _, bodies, joints, tree = performer
    given = replace(bodies, names=tuple(f"part {i}" for i in range(len(bodies.names))))
    named, namings = name_bodies(given, joints, tree)
    assert named.names == given.names
    assert namings == []


def test_findings_of_the_segmentation_use_the_new_names(performer):
    _, bodies, joints, tree = performer
    body = bodies.names[3]
    finding = Finding(
        "markers-on-a-line",
        "segment",
        "warning",
        f"the 3 markers of {mark_name(body)} are on a line",
        subject=body,
    )
    found = replace(bodies, findings=(finding,), parents={body: bodies.names[0]})
    named, _ = name_bodies(found, joints, tree)
    (renamed,) = named.findings
    assert renamed.subject == named.names[3] != body
    assert renamed.message == f"the 3 markers of {named.names[3]} are on a line"
    assert named.parents == {named.names[3]: named.names[0]}


def test_a_robot_arm_is_no_person():
    _, bodies, joints, tree = segment_unlabelled(synth.linkage(), "swing", markers=6)
    assert name_bodies(bodies, joints, tree)[1] == []


def test_rest_is_a_t_pose_that_stands_on_the_ground(performer):
    _, bodies, joints, tree = performer
    named, _ = name_bodies(bodies, joints, tree)
    (skeleton,) = build_skeletons(named, joints, tree)
    position = dict(zip(skeleton.names, skeleton.rest()[:, :3, 3], strict=True))
    reach = position["LeftHand"] - position["LeftUpperArm"]
    assert reach[1] / np.linalg.norm(reach) == pytest.approx(1.0, abs=1e-6)
    drop = position["RightFoot"] - position["RightUpperLeg"]
    assert -drop[2] / np.linalg.norm(drop) == pytest.approx(1.0, abs=1e-6)
    assert position["LeftUpperLeg"][1] > position["RightUpperLeg"][1]
    assert position["LeftFoot_end"][0] > position["LeftFoot"][0]
    markers = skeleton.rest()[skeleton.marker_joint, :3, 3] + skeleton.marker_offset
    lowest = min(markers[:, 2].min(), skeleton.rest()[:, 2, 3].min())
    assert lowest == pytest.approx(0.0, abs=1e-12)


def test_the_t_pose_changes_no_bone(performer):
    _, bodies, joints, tree = performer
    named, _ = name_bodies(bodies, joints, tree)
    (in_t_pose,) = build_skeletons(named, joints, tree)
    (plain,) = build_skeletons(bodies, joints, tree)
    np.testing.assert_allclose(in_t_pose.lengths[1:], plain.lengths[1:], atol=1e-12)


def test_a_stick_figure():
    """Hips, two legs of two, a chest with two arms and a head, made by hand."""
    neighbours = {
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
    position = np.stack([np.zeros(11), y, z], axis=-1)[None]
    joint = {
        (min(a, b), max(a, b)): 0.5 * (position[:, a] + position[:, b])
        for a in neighbours
        for b in neighbours[a]
    }
    # Knees bend forward, +x; elbows back.
    for leg in ((1, 2), (3, 4)):
        joint[leg] = joint[leg] + [0.1, 0.0, 0.0]
    for arm in ((6, 7), (8, 9)):
        joint[arm] = joint[arm] - [0.1, 0.0, 0.0]
    naming = find_names(NamingInput(position, joint, neighbours))
    assert naming.names[1] == "LeftUpperLeg"
    assert naming.names[9] == "RightLowerArm"
    assert naming.names[10] == "Head"
    assert find_path(neighbours, 2, 7) == [2, 1, 0, 5, 6, 7]


# --- figures made by hand -------------------------------------------------------------


def still_figure(positions, bones):
    """A figure that stands still, its joints in the middle of two bodies.

    Args:
        positions: Of each body, by name.
        bones: Pairs of names.
    """
    names = list(positions)
    position = np.array([list(map(float, positions[name])) for name in names])[None]
    neighbours = {i: [] for i in range(len(names))}
    joint = {}
    for one, other in bones:
        a, b = sorted((names.index(one), names.index(other)))
        neighbours[a].append(b)
        neighbours[b].append(a)
        joint[a, b] = 0.5 * (position[:, a] + position[:, b])
    return names, NamingInput(position, joint, neighbours)


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
SIDES = (("Left", 1), ("Right", -1))
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


def test_figures_are_equal_if_positions_joints_and_tree_are():
    """Stages that ask for the names of one figure again get them at once."""
    (_, one), (_, two) = (still_figure(PERSON, PERSON_BONES) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert find_names(one) is find_names(two) is not None
    joint = {pair: center + 1e-9 for pair, center in one.joint.items()}
    tree = {body: near[::-1] for body, near in one.neighbours.items()}
    assert one != replace(one, position=one.position + 1e-9)
    assert one != replace(one, joint=joint)
    assert one != replace(one, neighbours=tree)


def names_of(positions, bones):
    known, figure = still_figure(positions, bones)
    naming = find_names(figure)
    return {known[body]: name for body, name in naming.names.items()}


def without(part, positions, bones):
    """The figure without one part; the children of the part get its parent."""
    parent = next(a for a, b in bones if b == part)
    kept = [(parent if a == part else a, b) for a, b in bones if b != part]
    return {name: at for name, at in positions.items() if name != part}, kept


def test_a_whole_person():
    assert names_of(PERSON, PERSON_BONES) == {name: name for name in PERSON}


@pytest.mark.parametrize(
    "part", ["LeftHand", "RightFoot", "LeftUpperLeg", "RightLowerLeg", "Head"]
)
def test_a_missing_part_leaves_the_other_names(part):
    positions, bones = without(part, PERSON, PERSON_BONES)
    names = names_of(positions, bones)
    assert {true: name for true, name in names.items() if name != true} == {}
    assert len(names) >= len(positions) - 1


@pytest.mark.parametrize("side", ["Left", "Right"])
def test_a_thigh_between_trunk_and_legs_is_no_hips(side):
    """The pelvis is one body with the trunk, and its joint to one thigh is missed."""
    other = "Right" if side == "Left" else "Left"
    near, far = f"{side}UpperLeg", f"{other}UpperLeg"
    positions = {name: at for name, at in PERSON.items() if name != "Hips"}
    positions |= {thigh: (*PERSON[thigh][:2], 0.75) for thigh in (near, far)}
    bones = [bone for bone in PERSON_BONES if "Hips" not in bone]
    bones += [("Chest", near), (near, far)]
    known, figure = still_figure(positions, bones)
    naming = find_names(figure)
    sure = naming.names.keys() - naming.unsure
    names = {known[body]: naming.names[body] for body in sure}
    assert {true: name for true, name in names.items() if name != true} == {}


def add_collar_bones(sides):
    positions, bones = dict(PERSON), list(PERSON_BONES)
    for side, y in sides:
        name, arm = f"{side}Shoulder", f"{side}UpperArm"
        positions[name] = (0.0, y * 0.13, 1.37)
        bones = [(name, b) if b == arm else (a, b) for a, b in bones]
        bones.append(("Chest", name))
    return positions, bones


def test_collar_bones_on_both_sides_have_names():
    positions, bones = add_collar_bones((("Left", 1), ("Right", -1)))
    assert names_of(positions, bones) == {name: name for name in positions}


def test_a_collar_bone_on_one_side_only_has_no_name_and_is_no_upper_arm():
    names = names_of(*add_collar_bones((("Right", -1),)))
    assert names == {name: name for name in PERSON}


LEGS = [name for name in PERSON if name.endswith(("Leg", "Foot"))]


@pytest.mark.parametrize("trunk", [["Hips"], ["Hips", "Chest"]])
def test_legs_without_arms_have_names(trunk):
    kept = [*trunk, *LEGS]
    bones = [bone for bone in PERSON_BONES if set(bone) <= set(kept)]
    positions = {name: PERSON[name] for name in kept}
    assert names_of(positions, bones) == {name: name for name in kept}


def test_a_hanging_chain_is_no_pair_of_legs():
    """Both ends of legs are low; a chain that sags has its middle below."""
    heights = (1.6, 1.2, 0.8, 0.5, 0.8, 1.2, 1.6)
    positions = {f"link{i}": (0, 0.2 * i, z) for i, z in enumerate(heights)}
    bones = [(f"link{i}", f"link{i + 1}") for i in range(len(heights) - 1)]
    assert find_names(still_figure(positions, bones)[1]) is None


@pytest.mark.parametrize(
    ("part", "has_name"), [("LeftHand", True), ("LeftLowerArm", False)]
)
def test_a_single_marker_has_a_name_only_at_the_tip_of_a_limb(
    performer, part, has_name
):
    _, bodies, joints, tree = performer
    body = name_bodies(bodies, joints, tree)[0].names.index(part)
    shared = bodies.shared.copy()
    shared[np.flatnonzero(shared[:, body])[1:], body] = False
    names = name_bodies(replace(bodies, shared=shared), joints, tree)[0].names
    assert names[body] == (part if has_name else bodies.names[body])
    assert "LeftUpperArm" in names


def test_a_piece_of_the_pelvis_gets_no_name():
    positions = PERSON | {"piece": (-0.05, 0.05, 0.98)}
    bones = [("piece", b) if b == "LeftUpperLeg" else (a, b) for a, b in PERSON_BONES]
    names = names_of(positions, [*bones, ("Hips", "piece")])
    assert "piece" not in names
    assert {name: names[name] for name in PERSON} == {name: name for name in PERSON}


def test_a_stick_in_the_hand_takes_no_name_from_the_person():
    positions = PERSON | {"stick": (0.5, -0.3, 0.3)}
    names = names_of(positions, [*PERSON_BONES, ("RightHand", "stick")])
    assert {name: names[name] for name in PERSON} == {name: name for name in PERSON}
    assert "stick" not in names


def mirror(positions):
    return {name: (x, -y, z) for name, (x, y, z) in positions.items()}


def test_the_mirrored_person_has_left_and_right_swapped():
    names = names_of(mirror(PERSON), PERSON_BONES)
    assert names == {name: mirror_name(name) for name in names}


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_people_travel_forward(direction):
    """Feet that point nowhere, straight knees and elbows: the path decides."""
    flat = {name: (0.0, y, z) for name, (_, y, z) in PERSON.items()}
    known, figure = still_figure(flat, PERSON_BONES)
    path = direction * np.linspace(0.0, 4.0, 50)[:, None, None] * [1.0, 0.0, 0.0]
    joint = {pair: center + path[:, 0] for pair, center in figure.joint.items()}
    naming = find_names(NamingInput(figure.position + path, joint, figure.neighbours))
    sides = {"LeftFoot": "LeftFoot" if direction > 0 else "RightFoot"}
    assert {naming.names[known.index(body)] for body in sides} == set(sides.values())
    assert naming.side_confidence > MIN_SIDE_CONFIDENCE


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_toes_and_knees_decide_for_people_who_walk_backward(direction):
    known, figure = still_figure(PERSON, PERSON_BONES)
    path = direction * np.linspace(0.0, 4.0, 50)[:, None, None] * [1.0, 0.0, 0.0]
    joint = {pair: center + path[:, 0] for pair, center in figure.joint.items()}
    naming = find_names(NamingInput(figure.position + path, joint, figure.neighbours))
    assert {known[body]: name for body, name in naming.names.items()} == {
        name: name for name in PERSON
    }


def test_frames_that_do_not_show_a_limb_say_nothing_about_its_side():
    known, figure = still_figure(PERSON, PERSON_BONES)
    position = np.repeat(figure.position, 20, axis=0)
    joint = {
        pair: np.repeat(center, 20, axis=0) for pair, center in figure.joint.items()
    }
    seen = find_names(NamingInput(position, joint, figure.neighbours))
    hidden = position.copy()
    for frames, name in (((1, 16), "LeftUpperLeg"), ((4, 20), "RightUpperArm")):
        hidden[slice(*frames), known.index(name)] = np.nan
    naming = find_names(NamingInput(hidden, joint, figure.neighbours))
    assert naming.names == seen.names
    assert naming.side_confidence == pytest.approx(seen.side_confidence)


def test_a_path_against_an_unclear_body_names_no_sides():
    """One foot points forward, the other back; the path goes back, and forth a bit."""
    unclear = {name: (0.0, y, z) for name, (_, y, z) in PERSON.items()}
    unclear |= {"LeftFoot": (0.1, 0.1, 0.05), "RightFoot": (-0.07, -0.1, 0.05)}
    known, figure = still_figure(unclear, PERSON_BONES)
    steps = np.where(np.arange(100) < 70, -0.06, 0.06)
    path = np.cumsum(steps)[:, None, None] * [1.0, 0.0, 0.0]
    joint = {pair: center + path[:, 0] for pair, center in figure.joint.items()}
    naming = find_names(NamingInput(figure.position + path, joint, figure.neighbours))
    sure = {known[body] for body in naming.names.keys() - naming.unsure}
    assert naming.side_confidence == 0.0
    assert sure == {"Hips", "Chest", "Head"}


@pytest.mark.parametrize("side", ["Left", "Right"])
def test_a_single_arm_is_no_trunk(side):
    """Nothing is on the head and on the other arm."""
    other = "Right" if side == "Left" else "Left"
    positions, bones = PERSON, PERSON_BONES
    for part in ("Head", f"{other}Hand", f"{other}LowerArm", f"{other}UpperArm"):
        positions, bones = without(part, positions, bones)
    assert names_of(positions, bones) == {name: name for name in positions}


def test_an_arm_beside_the_hips_is_no_trunk():
    """The chest hangs from an arm, which hangs from the hips: that is no person."""
    bones = [("Hips", "RightUpperArm"), *PERSON_BONES[1:]]
    _, figure = still_figure(PERSON, bones)
    assert naming_cost(figure) > naming_cost(still_figure(PERSON, PERSON_BONES)[1]) + 3


def test_a_merged_figure_has_the_neighbours_of_both_bodies():
    known, figure = still_figure(PERSON, PERSON_BONES)
    knee = known.index("LeftUpperLeg"), known.index("LeftLowerLeg")
    merged = figure.merge(*knee)
    neighbours = {known[body] for body in merged.neighbours[knee[0]]}
    assert neighbours == {"Hips", "LeftFoot"}
    assert len(merged.neighbours) == len(PERSON) - 1
    assert len(merged.joint) == len(PERSON_BONES) - 1


def test_a_piece_of_a_thigh_is_merged_with_it(performer):
    take, bodies, _, _ = performer
    thigh = true_names(take, bodies).index("LeftUpperLeg")
    owner, n_bodies = bodies.marker_body.copy(), len(bodies.names)
    half = np.flatnonzero(owner == thigh)[::3]
    owner[half] = n_bodies
    members = owner == np.arange(n_bodies + 1)[:, None]
    split = make_bodies(take, default_names(n_bodies + 1), members, owner)
    joints = marey.fit_joints(split)
    tree = prefer_nameable_tree(split, joints, marey.infer_tree(joints))
    (merged,) = merge_pieces((split,), joints, tree)
    together = merged.marker_body[:, None] == merged.marker_body
    assert (together == (bodies.marker_body[:, None] == bodies.marker_body)).all()
    assert [f.code for f in merged.findings].count("bodies-merged") == 1


def test_people_who_exercise_on_the_spot_are_no_animal():
    """Their hips do not move against each other, and have four legs together."""
    takes = [
        synth.human(seed=seed).record(
            "exercise", seconds=6.0, rate=15.0, noise=5e-4, seed=seed, markers="set53"
        )
        for seed in (3, 5)
    ]
    points = [one.points + np.array([0.0, 1.5 * i, 0.0]) for i, one in enumerate(takes)]
    parts = [one.truth.marker_joint + 100 * i for i, one in enumerate(takes)]
    owner = np.unique(np.concatenate(parts), return_inverse=True)[1]
    members = owner == np.arange(owner.max() + 1)[:, None]
    take = marey.Take(
        rate=15.0,
        points=np.concatenate(points, axis=1),
        labels=tuple(f"m{i}" for i in range(len(owner))),
    )
    bodies = make_bodies(take, default_names(len(members)), members, owner)
    joints = marey.fit_joints(bodies)
    tree = prefer_nameable_tree(bodies, joints, marey.infer_tree(joints))
    namings = name_bodies(bodies, joints, tree)[1]
    assert [naming.kind for naming in namings] == ["human", "human"]
    below = tree.parent >= 0
    person = np.arange(len(members)) < len(members) // 2
    assert (person[below] == person[tree.parent[below]]).all()


class TriedBodies:
    """Candidates of several clusterings, and those after one change."""

    def __init__(self, *candidates, changed=()):
        self.candidates, self.changes = candidates, changed

    def of_clusterings(self):
        return self.candidates

    def changed(self, takes, without, *, merged):
        return [one for one in self.changes if one.change not in without]


def join_pairs(takes):
    fits = marey.fit_joints(takes[0])
    return takes, fits, marey.infer_tree(fits)


@pytest.mark.parametrize(
    ("part", "whole"), [("Leg", "Hips"), ("RightLowerLeg", "RightUpperLeg")]
)
def test_of_clusterings_that_agree_as_well_the_one_that_makes_a_person_is_taken(
    performer, part, whole
):
    """Thighs and hips in one body make no person; with thigh and shank it lacks a part.

    The true bodies do.
    """
    take, bodies, joints, tree = performer
    names = true_names(take, bodies)
    target = np.arange(len(names))
    target[[part in name for name in names]] = names.index(whole)

    coarse = merge_bodies((bodies,), target)
    found = join_pairs(coarse)
    tried = TriedBodies(Candidate(0.91, coarse), Candidate(0.9, (bodies,)))
    chosen, _, _ = prefer_person(found, coarse, tried, join_pairs)
    assert (chosen[0].marker_body == bodies.marker_body).all()
    assert [f.code for f in chosen[0].findings].count("bodies-chosen") == 1
    person = (bodies,), joints, tree
    assert prefer_person(person, (bodies,), tried, join_pairs) is person


@pytest.mark.parametrize(("agreement", "is_changed"), [(0.9, True), (0.1, False)])
def test_a_person_that_lacks_a_part_takes_it_from_another_clustering(
    performer, agreement, is_changed
):
    """No clustering is right as a whole; a change that agrees badly is not made."""
    take, bodies, _, _ = performer
    names = true_names(take, bodies)

    def without(*parts):
        target = np.arange(len(names))
        for part in parts:
            target[names.index(part)] = names.index(part.replace("Lower", "Upper"))
        return merge_bodies((bodies,), target) if parts else (bodies,)

    both, left = without("LeftLowerLeg", "RightLowerLeg"), without("LeftLowerLeg")
    changed = [
        Candidate(agreement, left, b"right"),
        Candidate(agreement, without(), b"all"),
    ]
    tried = TriedBodies(Candidate(0.91, both), changed=changed)
    found = join_pairs(both)
    chosen, _, _ = prefer_person(found, both, tried, join_pairs)
    expected = bodies if is_changed else both[0]
    assert (chosen[0].marker_body == expected.marker_body).all()


def test_bodies_in_pieces_far_apart_are_divided_and_others_are_not(performer):
    take, bodies, _, _ = performer
    (same,) = divide_bodies((bodies,), MAX_DOUBTFUL_SPACING)
    assert same is bodies
    names = true_names(take, bodies)
    first, last = names.index("LeftFoot"), names.index("RightFoot")
    target = np.arange(len(names))
    target[last] = first
    feet = replace(take, points=take.points.copy())
    feet.points[:, bodies.marker_body == last, 0] += 1.0
    (joined,) = merge_bodies((replace(bodies, take=feet),), target)
    (divided,) = divide_bodies((joined,), MAX_DOUBTFUL_SPACING)
    together = divided.marker_body[:, None] == divided.marker_body
    assert (together == (bodies.marker_body[:, None] == bodies.marker_body)).all()
    assert len(set(divided.names)) == len(names)


def test_bodies_of_a_person_are_not_merged(performer):
    _, bodies, joints, tree = performer
    takes = (bodies,)
    assert merge_pieces(takes, joints, tree) is takes


def test_names_do_not_depend_on_the_heading():
    for angle in np.linspace(0.3, 6.0, 5):
        c, s = np.cos(angle), np.sin(angle)
        rotated = {
            n: (c * x - s * y, s * x + c * y, z) for n, (x, y, z) in PERSON.items()
        }
        assert names_of(rotated, PERSON_BONES) == {name: name for name in PERSON}


def hand_of(side):
    """A hand with its palm down and its fingers ahead, +y, a little bent."""
    sign = -1.0 if side == "Right" else 1.0
    across = {"Index": -0.03, "Middle": -0.01, "Ring": 0.01, "Little": 0.03}
    positions = {"Hand": (0.0, 0.0, 0.0)}
    for finger, x in across.items():
        for i, part in enumerate(("Proximal", "Intermediate", "Distal")):
            at = (-sign * x, 0.06 + 0.025 * i, -0.006 * i * (i + 1))
            positions[f"{finger}{part}"] = at
    for i, part in enumerate(("Proximal", "Intermediate")):
        positions[f"Thumb{part}"] = (sign * (0.05 + 0.02 * i), 0.01 + 0.03 * i, -0.01)
    bones = []
    for name in positions:
        if name.endswith("Proximal"):
            bones.append(("Hand", name))
        elif name.endswith("Intermediate"):
            bones.append((name.replace("Intermediate", "Proximal"), name))
        elif name.endswith("Distal"):
            bones.append((name.replace("Distal", "Intermediate"), name))
    return positions, bones


@pytest.mark.parametrize("side", ["Left", "Right"])
def test_a_hand(side):
    positions, bones = hand_of(side)
    assert names_of(positions, bones) == {name: side + name for name in positions}


def test_a_hand_on_a_forearm():
    positions, bones = hand_of("Right")
    positions |= {"arm": (0.0, -0.2, 0.0)}
    names = names_of(positions, [*bones, ("Hand", "arm")])
    assert names["Hand"] == "RightHand"
    assert "arm" not in names


def test_a_star_of_six_is_no_hand():
    angles = np.linspace(0.0, 2.0 * np.pi, 7)[:-1]
    positions = {"hub": (0, 0, 0)} | {
        f"arm{i}": (np.cos(a), np.sin(a), 0.0) for i, a in enumerate(angles)
    }
    bones = [("hub", name) for name in positions if name != "hub"]
    _, figure = still_figure(positions, bones)
    assert find_names(figure) is None


def test_a_dog_gets_four_legs_and_a_tail():
    figure = synth.quadruped()
    _, bodies, joints, tree = segment_unlabelled(figure, "walk", markers=6)
    named, (naming,) = name_bodies(bodies, joints, tree)
    assert naming.kind == "quadruped"
    sides = [f"{end}{side}" for end in ("Front", "Hind") for side in ("Left", "Right")]
    assert {f"{side}UpperLeg" for side in sides} <= set(named.names)


def animal():
    """Positions and bones of an animal whose hips and chest are one body."""
    positions = {"trunk": (0.0, 0.0, 0.5), "neck": (0.45, 0.0, 0.65)}
    positions |= {"head": (0.55, 0.0, 0.75), "tail": (-0.45, 0.0, 0.6)}
    bones = [("trunk", "neck"), ("neck", "head"), ("trunk", "tail")]
    for end, x in (("Front", 0.3), ("Hind", -0.3)):
        for side, y in (("Left", 0.1), ("Right", -0.1)):
            leg = [f"{end}{side}{part}" for part in ("UpperLeg", "LowerLeg", "Foot")]
            for name, z in zip(leg, (0.4, 0.2, 0.03), strict=True):
                positions[name] = (x, y, z)
            bones += zip(("trunk", *leg), leg, strict=False)
    return positions, bones


def test_an_animal_whose_trunk_is_one_body_is_no_person():
    """Hips and chest that never moved against each other: four legs on one body."""
    positions, bones = animal()
    named = names_of(positions, bones)
    legs = [name for name in positions if "Leg" in name or "Foot" in name]
    assert {name: named[name] for name in legs} == {name: name for name in legs}
    assert (named["trunk"], named["tail"]) == ("Hips", "Tail")


def test_who_bends_down_with_a_stick_on_the_ground_is_no_animal():
    """One hand holds a stick that reaches the ground, the other one nothing."""
    positions, bones = animal()
    positions["FrontRightFoot"] = (0.3, -0.1, 0.24)
    _, figure = still_figure(positions, bones)
    naming = find_names(figure)
    assert naming is None or naming.kind != "quadruped"
