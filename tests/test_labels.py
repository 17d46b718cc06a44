"""Known marker sets: labels in any spelling, the set's tree, and wrong labels."""

import itertools
import math
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import marey
from marey.anatomy.names import mirror_name, side_of
from marey.errors import DataError, FormatError
from marey.numerics.thresholds import MIN_SAMPLES
from marey.segmentation import segment
from marey.segmentation.clusters.pair_statistics import log_odds, pair_statistics
from marey.segmentation.labels.joint_names import (
    are_joint_names,
    bones_of_names,
    parse_joint_names,
)
from marey.segmentation.labels.label_check import check_labels, swap_gains
from marey.segmentation.labels.marker_sets import (
    ENTRY_POINTS,
    known_marker_sets,
    read_marker_set,
)
from marey.segmentation.labels.match import (
    recognise_marker_set,
)
from marey.segmentation.labels.spelling import is_name, normalise_label
from marey.segmentation.methods.labels import bodies_from_labels

HUMAN = {
    "Chest": "Hips",
    "Head": "Chest",
    **{f"{side}UpperArm": "Chest" for side in ("Left", "Right")},
    **{f"{side}LowerArm": f"{side}UpperArm" for side in ("Left", "Right")},
    **{f"{side}Hand": f"{side}LowerArm" for side in ("Left", "Right")},
    **{f"{side}UpperLeg": "Hips" for side in ("Left", "Right")},
    **{f"{side}LowerLeg": f"{side}UpperLeg" for side in ("Left", "Right")},
    **{f"{side}Foot": f"{side}LowerLeg" for side in ("Left", "Right")},
}
LEGS = {"Hips", *(body for body in HUMAN if body.endswith(("Leg", "Foot")))}


@pytest.fixture(scope="module")
def walk():
    """A walk with 41 markers and half a millimetre of noise."""
    take = marey.synth.human(seed=0).record("walk", seconds=3.0)
    noise = np.random.default_rng(7).normal(scale=5e-4, size=take.points.shape)
    return replace(take, points=take.points + noise)


def without_truth(take):
    """A take without the source and the truth behind it."""
    return marey.Take(rate=take.rate, points=take.points, labels=take.labels)


def with_labels(take, labels):
    return replace(without_truth(take), labels=tuple(labels))


def codes(match):
    return [finding.code for finding in match.findings]


def bodies_by_label(take, match):
    """The labels of each body."""
    return {
        body: {take.labels[i] for i in markers}
        for body, markers in match.members.items()
    }


# --- names ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("normal", "spellings"),
    [
        ("rknee", "RKnee rknee r_knee R.Knee R-KNEE Right_Knee RightKnee knee.R"),
        ("lwristradius", "L_wrist_radius LeftWristRadius wrist_radius_left"),
        ("lhead", "HeadLeft head_l LHEAD"),
        ("c7", "C7 c7 C_7"),
        ("clav", "CLAV Clav"),
        ("right", "Right"),
    ],
)
def test_all_spellings_of_a_label_are_normalised(normal, spellings):
    assert {normalise_label(label) for label in spellings.split()} == {normal}


@pytest.mark.parametrize(
    "label", ["C7", "T10", "RTHI", "LFT3", "HV", "Hip1", "r_5meta"]
)
def test_names_are_names(label):
    assert is_name(label)


@pytest.mark.parametrize(
    "label",
    [
        *("", "*0", "*111", "M000", "M7", "U12", "Unlabeled 2012", "unlabelled_3"),
        *("New 0007", "uname*3", "2000", "Point    1", "Channel101", "Marker1"),
        *("RBAC-1", "liu RWRB-1", "x52"),
    ],
)
def test_numbers_and_ghosts_are_no_names(label):
    assert not is_name(label)


# --- the sets -------------------------------------------------------------------------


@pytest.fixture(params=known_marker_sets(), ids=lambda known: known.name)
def known(request):
    return request.param


def test_a_set_is_a_human(known):
    tree = known.template.parent
    assert set(known.template.markers) == {"Hips", *tree}
    for body, parent in tree.items():
        while body not in HUMAN or HUMAN[body] not in known.template.markers:
            body = HUMAN[body]
        assert parent == HUMAN[body]


def test_a_set_has_two_equal_sides(known):
    sides = {"l": "r", "r": "l"}
    for label, bodies in known.bodies_of.items():
        if any(side_of(body) for body in bodies):
            other = sides[label[0]] + label[1:]
            assert known.bodies_of[other] == tuple(map(mirror_name, bodies))


def test_a_marker_is_on_one_body_or_on_both_sides_of_a_joint(known):
    tree = known.template.parent
    for bodies in known.bodies_of.values():
        assert len(bodies) == 1 or tree[bodies[1]] == bodies[0]
        assert len(bodies) <= 2


def test_the_complete_set_is_recognised_as_itself(known):
    labels = list(dict.fromkeys(itertools.chain(*known.template.markers.values())))
    points = np.random.default_rng(3).normal(size=(3, len(labels), 3))
    take = marey.Take(rate=1.0, points=points, labels=tuple(labels))
    match = recognise_marker_set(take)
    assert match.name == known.name
    assert match.present == match.explained == 1.0
    assert match.parents == known.template.parent


# --- sets of other packages -----------------------------------------------------------

ROBOT = """
name = "{name}"
[bodies]
{prefix}base = ["{prefix}b1", "{prefix}b2", "{prefix}b3"]
{prefix}arm = {{ markers = ["{prefix}a1", "{prefix}a2"], parent = "{prefix}base" }}
{prefix}tool = {{ markers = ["{prefix}t1", "{prefix}t2"], parent = "{prefix}arm" }}
"""


@pytest.fixture
def installed_package(tmp_path, monkeypatch):
    """A package with a folder of marker sets, and one at a path of its own."""
    folder = tmp_path / "my_lab" / "marker_sets"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "first.toml").write_text(ROBOT.format(name="First", prefix="one"))
    (folder.parent / "second.toml").write_text(
        ROBOT.format(name="Second", prefix="two")
    )
    (folder.parent / "__init__.py").write_text(
        "from pathlib import Path\nSECOND = Path(__file__).parent / 'second.toml'\n"
    )
    info = tmp_path / "my_lab-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my_lab\nVersion: 1.0")
    (info / "entry_points.txt").write_text(
        f"[{ENTRY_POINTS}]\nall = my_lab.marker_sets\nsecond = my_lab:SECOND\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    known_marker_sets.cache_clear()
    yield
    known_marker_sets.cache_clear()


@pytest.mark.parametrize(("name", "prefix"), [("First", "one"), ("Second", "two")])
@pytest.mark.usefixtures("installed_package")
def test_another_package_adds_marker_sets_by_entry_points(name, prefix):
    labels = tuple(
        prefix + label for label in ["b1", "b2", "b3", "a1", "a2", "t1", "t2"]
    )
    points = np.random.default_rng(3).normal(size=(3, len(labels), 3))
    match = recognise_marker_set(marey.Take(rate=1.0, points=points, labels=labels))
    assert match.name == name
    assert match.parents == {
        f"{prefix}arm": f"{prefix}base",
        f"{prefix}tool": f"{prefix}arm",
    }


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("name = [", FormatError, "expected TOML"),
        ("[bodies]\na = ['A']", DataError, "need name ="),
        ("name = 'x'", DataError, "need name ="),
    ],
)
def test_a_bad_marker_set_is_refused(tmp_path, text, error, words):
    path = tmp_path / "set.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=words):
        read_marker_set(path)


# --- recognising ----------------------------------------------------------------------


def test_a_walk_is_recognised_with_its_tree(walk):
    match = recognise_marker_set(walk)
    assert match.name == "Plug-in Gait"
    assert match.parents == HUMAN
    assert (match.present, match.explained) == (1.0, 1.0)
    assert match.trusted
    assert match.label_probability == {}
    assert match.unused == ()
    assert codes(match) == ["labels-recognised"]
    bodies = bodies_by_label(walk, match)
    assert bodies["Hips"] == {"LFWT", "RFWT", "LBWT", "RBWT"}
    assert bodies["LeftUpperLeg"] == {"LTHI", "LKNE"}
    assert bodies["LeftLowerLeg"] == {"LKNE", "LSHN", "LANK"}
    assert bodies["RightFoot"] == {"RANK", "RHEE", "RTOE", "RMT5"}


def test_bodies_of_a_walk(walk):
    bodies = segment(walk, method="labels")
    assert set(bodies.names) == {"Hips", *HUMAN}
    of = {label: i for i, label in enumerate(walk.labels)}
    names = [bodies.names[body] for body in bodies.marker_body]
    assert names[of["LKNE"]] == "LeftUpperLeg"
    assert bodies.shared[of["LKNE"]].sum() == 2
    assert (bodies.marker_confidence == 1.0).all()
    assert [f.code for f in bodies.findings] == ["labels-recognised"]
    head, hips = bodies.names.index("Head"), bodies.names.index("Hips")
    assert bodies.rms[[head, hips]].max() < 1e-3
    assert bodies.determined[[head, hips]].all()


SPELLINGS = {
    "lower case": str.lower,
    "sides in words": lambda x: {"L": "Left ", "R": "Right "}.get(x[0], x[0]) + x[1:],
    "sides behind": lambda x: f"{x[1:]}.{x[0]}" if x[0] in "LR" else x,
    "one subject": lambda x: f"Joe_{x}",
    "a long prefix": lambda x: f"trial 2.joe_{x}",
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_spelling_changes_nothing(walk, spelling):
    match = recognise_marker_set(with_labels(walk, map(spelling, walk.labels)))
    same = recognise_marker_set(walk)
    assert (match.members, match.parents) == (same.members, same.parents)


def test_the_order_of_the_markers_changes_nothing(walk, rng):
    order = rng.permutation(len(walk.labels))
    other = without_truth(walk).select(order)
    here, there = recognise_marker_set(walk), recognise_marker_set(other)
    assert bodies_by_label(other, there) == bodies_by_label(walk, here)
    assert there.parents == here.parents


def test_a_lower_body_is_recognised(walk):
    legs = ("WT", "THI", "KNE", "SHN", "ANK", "HEE", "TOE", "MT5")
    indices = [i for i, label in enumerate(walk.labels) if label.endswith(legs)]
    match = recognise_marker_set(walk.select(indices))
    assert set(match.members) == LEGS
    assert match.parents == {b: p for b, p in HUMAN.items() if b in LEGS}
    assert match.explained == 1.0
    assert match.present == pytest.approx(7 / 15)


def test_bodies_without_markers_are_contracted(walk):
    gone = ("WT", "FRM", "WRA", "WRB")
    indices = [i for i, label in enumerate(walk.labels) if not label.endswith(gone)]
    match = recognise_marker_set(walk.select(indices))
    assert "LeftLowerArm" not in match.members
    assert match.parents["LeftHand"] == "LeftUpperArm"
    assert "Hips" not in match.members
    assert "Chest" not in match.parents
    assert match.parents["LeftUpperLeg"] == match.parents["RightUpperLeg"] == "Chest"


def test_points_that_a_program_added_are_ignored(walk, rng):
    n_frames, n_markers = walk.points.shape[:2]
    extra = rng.normal(size=(n_frames, 300, 3))
    labels = (*walk.labels, *(f"LFEM{i}" for i in range(300)))
    take = marey.Take(
        rate=walk.rate, points=np.concatenate([walk.points, extra], 1), labels=labels
    )
    match = recognise_marker_set(take)
    assert match.members == recognise_marker_set(walk).members
    assert match.unused == labels[n_markers:]
    assert match.trusted
    message = match.findings[0].message
    assert message.startswith(
        "41 labels are of the marker set Plug-in Gait and make 15"
    )
    assert "not of this set: LFEM0, LFEM1" in message


@pytest.mark.parametrize("ghost", ["RKNE-1", "*3", "M012", "Unlabeled 4"])
def test_ghosts_and_numbers_are_unused(walk, ghost):
    labels = [ghost if label == "RKNE" else label for label in walk.labels]
    match = recognise_marker_set(with_labels(walk, labels))
    assert match.unused == (ghost,)
    assert match.explained == 1.0


def test_of_equal_labels_the_first_that_was_seen_counts(walk):
    points = np.concatenate([walk.points, walk.points[:, :2]], axis=1)
    points[:, 0] = np.nan
    labels = (*walk.labels, *walk.labels[:2])
    match = recognise_marker_set(
        marey.Take(rate=walk.rate, points=points, labels=labels)
    )
    assert set(match.used) == set(range(1, 42))


@pytest.mark.parametrize(
    "labels",
    [
        "StaticO StaticX StaticY UpperO UpperX UpperY LowerO LowerX LowerY",
        "M000 M001 M002 M003 M004 M005 M006 M007",
        "hand_top hand_left hand_right thumb_tip index_tip",
        "LSHO LELB LKNE LANK RSHO RELB RKNE RANK",
        "LASI RASI LPSI RPSI",
        "LASI RASI LPSI RPSI LTHI LKNE LSHN LANK "
        + " ".join(f"x{i}y" for i in range(9)),
        "",
    ],
    ids=["machine", "numbers", "glove", "joints", "one body", "half of it", "nothing"],
)
def test_other_labels_are_of_no_set(labels):
    labels = tuple(labels.split())
    points = np.random.default_rng(0).normal(size=(30, len(labels), 3))
    take = marey.Take(rate=30.0, points=points, labels=labels)
    assert recognise_marker_set(take) is None
    with pytest.raises(DataError, match=r"labels: found .*need markers of a known set"):
        segment(take, method="labels")


@pytest.mark.parametrize("style", ["subjects", "prefixes"])
def test_each_subject_has_bodies_of_its_own(walk, style):
    points = np.concatenate([walk.points, walk.points[::-1] + 2.0], axis=1)
    if style == "subjects":
        names = {"labels": walk.labels * 2, "subjects": ("JOE",) * 41 + ("ANN",) * 41}
    else:
        names = {
            "labels": tuple(f"{who}_{x}" for who in ("JOE", "ANN") for x in walk.labels)
        }
    match = recognise_marker_set(marey.Take(rate=walk.rate, points=points, **names))
    one = recognise_marker_set(walk)
    assert match.name == "Plug-in Gait"
    assert match.members == {
        **{f"JOE:{body}": markers for body, markers in one.members.items()},
        **{f"ANN:{b}": tuple(i + 41 for i in mine) for b, mine in one.members.items()},
    }
    assert match.parents == {
        f"{who}:{body}": f"{who}:{above}"
        for who in ("JOE", "ANN")
        for body, above in HUMAN.items()
    }
    assert match.label_probability == {}


def test_a_subject_without_known_labels_is_left_out(walk):
    points = np.concatenate([walk.points, walk.points[:, :9] + 1.0], axis=1)
    take = marey.Take(
        rate=walk.rate,
        points=points,
        labels=(*walk.labels, *(f"shaft{i}" for i in range(9))),
        subjects=("JOE",) * 41 + ("Stick",) * 9,
    )
    match = recognise_marker_set(take)
    assert match.members == recognise_marker_set(walk).members
    assert match.unused == tuple(f"Stick:shaft{i}" for i in range(9))


# --- wrong labels ---------------------------------------------------------------------


def swap_labels(take, one, other):
    """The take with the trajectories of two labels swapped."""
    order = list(range(len(take.labels)))
    i, j = take.labels.index(one), take.labels.index(other)
    order[i], order[j] = j, i
    return replace(without_truth(take), points=take.points[:, order])


@pytest.mark.parametrize("kind", ["walk", "exercise", "kick_punch"])
@pytest.mark.parametrize("skin", [0.0, 0.003])
def test_right_labels_are_not_doubted(kind, skin, rng):
    take = marey.synth.human(seed=1).record(kind, seconds=4.0)
    noise = rng.normal(scale=skin, size=take.points.shape)
    match = recognise_marker_set(replace(take, points=take.points + noise))
    assert codes(match) == ["labels-recognised"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("LKNE", "RKNE"),
        ("LSHN", "LHEE"),
        ("RUPA", "RFRM"),
        ("C7", "LFWT"),
        ("LFIN", "RTOE"),
    ],
)
def test_two_swapped_labels_are_reported(walk, one, other):
    take = swap_labels(walk, one, other)
    match = recognise_marker_set(take)
    assert match.trusted
    assert codes(match) == ["labels-recognised", "labels-swapped"]
    finding = match.findings[1]
    assert set(finding.subject.split(", ")) == {one, other}
    assert finding.value > 3.0
    bodies = bodies_from_labels(take, match)
    low = {take.labels[i] for i in np.flatnonzero(bodies.marker_confidence < 0.1)}
    assert low >= {one, other}


def test_a_swap_between_two_people_is_reported(walk):
    points = np.concatenate([walk.points, walk.points[::-1] + 2.0], axis=1)
    subjects = ("JOE",) * 41 + ("ANN",) * 41
    take = marey.Take(
        rate=walk.rate, points=points, labels=walk.labels * 2, subjects=subjects
    )
    points[:, [5, 46]] = points[:, [46, 5]]
    match = recognise_marker_set(replace(take, points=points))
    label = walk.labels[5]
    assert match.findings[1].subject == f"JOE:{label}, ANN:{label}"


def test_a_label_on_something_else_is_left_out_if_the_body_has_others(walk):
    for label, body, code, is_left in (
        ("LTOE", "LeftFoot", "label-wrong", False),
        ("LTHI", "LeftUpperLeg", "label-doubtful", True),
    ):
        points = walk.points.copy()
        marker = walk.labels.index(label)
        points[:, marker] = np.array([1.0, 2.0, 3.0])
        match = recognise_marker_set(replace(without_truth(walk), points=points))
        finding = match.findings[-1]
        assert (finding.code, finding.subject) == (code, label)
        assert f"no other marker of {body}" in finding.message
        assert ("left out" not in finding.message) == is_left
        assert (marker in match.members[body]) == is_left
        assert finding.value < 0.0
        assert match.label_probability[marker] < 0.5


@pytest.mark.parametrize("disorder", ["shuffled", "shifted"])
def test_shuffled_labels_are_ignored(walk, disorder, rng):
    n_markers = len(walk.labels)
    order = rng.permutation(n_markers)
    if disorder == "shifted":
        order = np.roll(np.arange(n_markers), 3)
    take = replace(without_truth(walk), points=walk.points[:, order])
    match = recognise_marker_set(take)
    assert not match.trusted
    assert codes(match) == ["labels-recognised", "labels-contradicted"]
    with pytest.raises(DataError, match="the labels are ignored"):
        bodies_from_labels(take, match)


def test_markers_seen_in_few_frames_are_not_checked(walk):
    take = without_truth(walk).cut(0, MIN_SAMPLES - 1)
    match = recognise_marker_set(replace(take, points=np.roll(take.points, 3, axis=1)))
    assert match.trusted
    assert match.label_probability == {}


# --- gains of swaps -------------------------------------------------------------------


def naive_gain(odds, known, members, i, j):
    """Log odds that two markers gain by swapping bodies, pair by pair."""

    def others(marker):
        bodies = [body for body in members if body[marker]]
        return {k for body in bodies for k in np.flatnonzero(body)} - {marker}

    def mean(marker, neighbours):
        return np.mean([odds[marker, k] for k in neighbours if known[marker, k]])

    # A pair that is not known with the one does not count with the other either.
    others_i = {k for k in others(i) if known[i, k]}
    others_j = {k for k in others(j) if known[j, k]}
    before = mean(i, others_i) + mean(j, others_j)
    return mean(i, others_j) + mean(j, others_i) - before


def test_swap_gains_agree_with_naive_loops(walk):
    points = walk.points.copy()
    points[: len(points) - MIN_SAMPLES + 1, 3] = np.nan
    match = recognise_marker_set(walk)
    members = np.array(
        [np.isin(np.arange(41), markers) for markers in match.members.values()]
    )
    stats = pair_statistics([points])
    odds = log_odds(stats, members)
    gain = swap_gains(stats, odds, members)
    together = (members.T.astype(int) @ members) > 0
    assert (gain[together] == -np.inf).all()
    assert (gain[3] == -np.inf).all()
    free = [
        (i, j) for i, j in itertools.combinations(range(41), 2) if not together[i, j]
    ]
    for i, j in free:
        if 3 not in (i, j):
            naive = naive_gain(odds, stats.is_known, members, i, j)
            assert gain[i, j] == pytest.approx(naive)
            assert gain[j, i] == pytest.approx(naive)


def test_swaps_are_found_surest_first_and_undone(walk):
    match = recognise_marker_set(walk)
    members = np.array(
        [np.isin(np.arange(41), markers) for markers in match.members.values()]
    )
    of = {label: i for i, label in enumerate(walk.labels)}
    wrong = walk.points.copy()
    pairs = [("LKNE", "RELB"), ("C7", "LTOE")]
    for one, other in pairs:
        wrong[:, [of[one], of[other]]] = wrong[:, [of[other], of[one]]]
    check = check_labels(pair_statistics([wrong]), members)
    expected = {tuple(sorted((of[one], of[other]))) for one, other in pairs}
    assert set(check.swaps) == expected
    gains = list(check.swaps.values())
    assert gains == sorted(gains, reverse=True)
    assert check.doubtful == ()
    assert check_labels(pair_statistics([walk.points]), members).swaps == {}


def test_a_stick_beside_the_performer_is_a_separate_body():
    performer = marey.synth.human(seed=2).record(
        "walk", seconds=2.0, rate=50.0, markers="set53", seed=2
    )
    stick = stick_and_puck(performer.n_frames)
    take = marey.Take(
        rate=performer.rate,
        points=np.concatenate([performer.points, stick], axis=1),
        labels=(*performer.labels, "1", "2", "3", "4", "5"),
        subjects=("Reed",) * len(performer.labels) + ("Stick",) * 4 + ("Puck",),
    )
    bodies = marey.segment(take)
    assert "Stick" in bodies.names
    assert "Hips" in bodies.names
    prop_bodies = bodies.marker_body[-5:].tolist()
    assert prop_bodies == [bodies.names.index("Stick")] * 4 + [-1]
    assert bodies.rms[bodies.names.index("Stick")] < 1e-9
    solution = marey.solve(take)
    assert [subject.name for subject in solution.subjects] == ["Reed", "Stick"]


def stick_and_puck(n_frames):
    """A stick of four markers that rotates and moves, and a puck of one marker."""
    rng = np.random.default_rng(0)
    R = Rotation.from_rotvec(np.linspace(0.0, 2.0, n_frames)[:, None] * [0.0, 0.6, 0.8])
    shape = rng.normal(size=(4, 3)) * 0.3
    path = np.linspace(0.0, 1.0, n_frames)[:, None] * [1.0, 2.0, 0.0]
    stick = np.einsum("fij,mj->fmi", R.as_matrix(), shape) + path[:, None]
    return np.concatenate([stick, (3.0 * path)[:, None]], axis=1)


# --- names of keypoints ---------------------------------------------------------------

OPENPOSE_BODY_25 = """Nose Neck RShoulder RElbow RWrist LShoulder LElbow LWrist MidHip
RHip RKnee RAnkle LHip LKnee LAnkle REye LEye REar LEar LBigToe LSmallToe LHeel RBigToe
RSmallToe RHeel"""
HALPE_26 = """Nose LEye REye LEar REar LShoulder RShoulder LElbow RElbow LWrist RWrist
LHip RHip LKnee Rknee LAnkle RAnkle Head Neck Hip LBigToe RBigToe LSmallToe RSmallToe
LHeel RHeel"""
COCO_17 = """nose left_eye right_eye left_ear right_ear left_shoulder right_shoulder
left_elbow right_elbow left_wrist right_wrist left_hip right_hip left_knee right_knee
left_ankle right_ankle"""


@pytest.mark.parametrize("names", [OPENPOSE_BODY_25, HALPE_26, COCO_17])
def test_names_of_keypoints_give_limbs(names):
    labels = names.split()
    words = parse_joint_names(labels)
    assert are_joint_names(words)
    bones = {frozenset(labels[i].casefold() for i in b) for b in bones_of_names(words)}
    plain = {label.casefold().replace("_", ""): label.casefold() for label in labels}
    for side in ("l", "r") if "LHip" in labels else ("left", "right"):
        for a, b in ("shoulder", "elbow"), ("elbow", "wrist"), ("hip", "knee"):
            assert frozenset({plain[side + a], plain[side + b]}) in bones
        assert frozenset({plain[side + "knee"], plain[side + "ankle"]}) in bones
    match = recognise_marker_set(
        marey.Take(rate=1.0, points=np.ones((3, len(labels), 3)), labels=tuple(labels))
    )
    assert match is None


def test_distances_of_pairs_are_measured_once(walk, monkeypatch):
    """The check of the labels and the bodies use the same statistics."""
    from marey.segmentation.clusters import pair_statistics_kernel as kernel

    measure = Mock(wraps=kernel.pair_spreads)
    monkeypatch.setattr(kernel, "pair_spreads", measure)
    bodies_from_labels(walk, recognise_marker_set(walk))
    measured = np.concatenate([call.args[2] for call in measure.call_args_list])
    assert len(measured) == len(np.unique(measured, axis=0)) == math.comb(41, 2)
