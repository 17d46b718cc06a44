"""Words in labels: bodies of marker sets that nobody lists, and doubts about names."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey.anatomy.names import mirror_name
from marey.cleaning import correct_up
from marey.pipeline.reporting.findings import contradicted_names
from marey.pipeline.stages.bodies import fit_bodies
from marey.pipeline.stages.takes import clean_takes
from marey.report import Finding
from marey.segmentation import segment
from marey.segmentation.labels.marker_sets import known_marker_sets
from marey.segmentation.labels.match import recognise_marker_set
from marey.segmentation.labels.word_set import WORDS
from marey.segmentation.labels.words import (
    bodies_of_label,
    names_no_body,
    vocabulary,
)
from marey.take import Fact, Source

PHRASES = {
    "FHD": "head_front",
    "BHD": "head_back",
    "C7": "C7",
    "T10": "T10",
    "CLAV": "Clavicle",
    "STRN": "sternum",
    "RBAC": "spine_mid",
    "SHO": "shoulder",
    "UPA": "upper_arm",
    "ELB": "elbow",
    "FRM": "forearm",
    "WRA": "wrist_inner",
    "WRB": "wrist_outer",
    "FIN": "finger",
    "FWT": "waist_front",
    "BWT": "waist_back",
    "THI": "thigh",
    "KNE": "knee",
    "SHN": "shank",
    "ANK": "ankle",
    "HEE": "heel",
    "MT5": "metatarsal_5",
    "TOE": "toe",
}
"""Words for the labels of the generated performer."""


@pytest.fixture(scope="module")
def walk():
    """A walk with 41 markers, in memory, without its truth."""
    take = marey.synth.human(seed=0).record("walk", seconds=3.0, rate=60.0, noise=5e-4)
    return marey.Take(rate=take.rate, points=take.points, labels=take.labels)


def in_words(label):
    """A label of the performer as another laboratory may write it."""
    if label in PHRASES:
        return PHRASES[label]
    side = {"L": "left", "R": "right"}[label[0]]
    return f"{PHRASES[label[1:]]}_{side}"


# --- labels ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "bodies"),
    [
        ("LTHI", "LeftUpperLeg"),
        ("R.Knee.Medial", "RightUpperLeg RightLowerLeg"),
        ("r_knee_lat", "RightUpperLeg RightLowerLeg"),
        ("Oberschenkel_links_1", "LeftUpperLeg"),
        ("cuisse gauche", "LeftUpperLeg"),
        ("genou_droit", "RightUpperLeg RightLowerLeg"),
        ("coscia_dx", "RightUpperLeg"),
        ("rodilla izq", "LeftUpperLeg LeftLowerLeg"),
        ("Spina_ant_sup_re", "Hips"),
        ("Left Back Hip", "Hips"),
        ("колено_левый", "LeftUpperLeg LeftLowerLeg"),
        ("어깨_오른쪽", "Chest RightUpperArm"),
        ("L_tekubi", "LeftLowerArm LeftHand"),
        ("右外果", "RightLowerLeg RightFoot"),
        ("onderbeen_rechts", "RightLowerLeg"),
        ("fot_vänster", "LeftFoot"),
        ("右足首", "RightLowerLeg RightFoot"),
        ("WaistLBack", "Hips"),
        ("SACRUM", "Hips"),
        ("L_SHANK_3", "LeftLowerLeg"),
        ("LForearm2", "LeftLowerArm"),
        ("R_wrist_radius", "RightLowerArm"),
        ("HeadTop", "Head"),
        ("RTH12", "RightUpperLeg"),
        ("T12", "Chest"),
    ],
)
def test_words_of_many_habits(label, bodies):
    assert bodies_of_label(label) == (tuple(bodies.split()),)


@pytest.mark.parametrize(
    ("label", "bodies"),
    [
        ("LELM", {"LeftUpperArm", "LeftLowerLeg"}),
        ("RLEPI", {"RightUpperArm", "RightUpperLeg"}),
        ("THEA", {"Head"}),
    ],
)
def test_equally_good_splits_are_left_to_the_motion(label, bodies):
    """The elbow's medial side, or a lateral malleolus behind an E."""
    assert {found[0] for found in bodies_of_label(label)} == bodies


@pytest.mark.parametrize("label", ["M001", "*12", "thigh", "Upper3", "XYZ", "Puck1"])
def test_labels_without_a_body(label):
    assert bodies_of_label(label) == ()


@pytest.mark.parametrize("label", ["RHJC", "L_HJC_reg", "V_R.Knee_JC", "Stick3"])
def test_computed_points_and_things_are_no_markers(label):
    assert names_no_body(label)


def test_the_other_side_has_the_mirrored_bodies():
    stems = ["THI", "KNE", "SHK1", "_elbow_lat", ".Heel", "FA2", "EPI", "HD1"]
    for stem in stems:
        left, right = bodies_of_label(f"L{stem}"), bodies_of_label(f"R{stem}")
        assert left
        assert [tuple(map(mirror_name, bodies)) for bodies in left] == list(right)


def test_an_ambiguous_word_has_all_its_meanings():
    assert set(bodies_of_label("RSH")) == {
        ("Chest", "RightUpperArm"),
        ("RightLowerLeg",),
    }
    assert ("Hips",) in bodies_of_label("LF_hip")


def test_every_word_of_the_table_is_read():
    words = vocabulary()
    assert all(word == word.casefold() for word in words.landmarks)
    assert not words.things & words.landmarks.keys()
    for word, bodies in words.landmarks.items():
        if bodies and len(word) > 3:
            assert bodies_of_label(f"left_{word}"), word


def test_words_read_nearly_all_labels_of_known_sets():
    """The bodies of the sets are among those that their words may mean."""
    n_labels = n_wrong = 0
    for known in known_marker_sets():
        for body, labels in known.template.markers.items():
            for label in labels:
                readings = bodies_of_label(label)
                n_labels += 1
                n_wrong += bool(readings) and not any(body in one for one in readings)
    assert n_wrong <= 0.05 * n_labels


# --- bodies ---------------------------------------------------------------------------


@pytest.mark.parametrize("spell", [str, in_words])
def test_words_give_the_bodies_and_the_tree_of_a_known_set(walk, spell, monkeypatch):
    known = recognise_marker_set(walk)
    monkeypatch.setattr("marey.segmentation.labels.match.known_marker_sets", tuple)
    match = recognise_marker_set(replace(walk, labels=tuple(map(spell, walk.labels))))
    assert match.name == WORDS
    assert match.trusted
    assert match.parents == known.parents
    owner = {i: b for b, ms in reversed([*match.members.items()]) for i in ms}
    expected = {i: b for b, ms in reversed([*known.members.items()]) for i in ms}
    assert owner == expected


def test_shuffled_words_are_ignored(walk):
    order = np.random.default_rng(1).permutation(len(walk.labels))
    labels = tuple(map(in_words, walk.labels))
    match = recognise_marker_set(
        replace(walk, labels=labels, points=walk.points[:, order])
    )
    assert not match.trusted


def test_labels_beside_a_known_set_join_its_bodies(walk):
    """A cluster on the thigh does; words that nobody knows and joint centres do not."""
    thigh, head, heel = (walk.labels.index(name) for name in ("LTHI", "LFHD", "LHEE"))
    shift = 0.01 * np.arange(4)[:, None]
    extra = walk.points[:, [thigh, thigh, head, heel]] + shift
    labels = (*walk.labels, "LTH_plate1", "LTH_plate2", "Quux", "LAJC")
    points = np.concatenate([walk.points, extra + 0.01], axis=1)
    match = recognise_marker_set(marey.Take(rate=60.0, points=points, labels=labels))
    new = {
        labels[i]: body
        for body, markers in match.members.items()
        for i in markers
        if i >= len(walk.labels)
    }
    assert new == dict.fromkeys(("LTH_plate1", "LTH_plate2"), "LeftUpperLeg")


def test_bodies_that_a_known_set_lacks_follow_from_words(walk):
    """OpenCap has no head: its labels beside words for the head are one person."""
    legs = {"KNE": "_knee", "ANK": "_ankle", "HEE": "_calc", "TOE": "_toe"}
    legs |= {"THI": "_thigh1", "SHN": "_sh2", "MT5": "_5meta", "FWT": ".ASIS"}
    legs |= {"BWT": ".PSIS", "UPA": "_humerus", "ELB": "_elbow_lat", "SHO": "_Shoulder"}
    legs |= {"FRM": "_forearm", "WRA": "_wrist_radius", "WRB": "_wrist_ulna"}
    labels = [
        label[0] + legs[label[1:]] if label[1:] in legs else in_words(label)
        for label in walk.labels
    ]
    match = recognise_marker_set(replace(walk, labels=tuple(labels)))
    known = recognise_marker_set(walk)
    assert match.name == "OpenCap"
    assert match.members["Head"] == known.members["Head"]
    assert match.parents == known.parents


@pytest.mark.parametrize("prefix", ["Human1:", "251112_KUO_", "Actor 7 "])
def test_a_prefix_changes_nothing(walk, prefix):
    labels = tuple(prefix + label for label in walk.labels)
    match = recognise_marker_set(replace(walk, labels=labels))
    assert match.members == recognise_marker_set(walk).members


def test_takes_with_different_prefixes_have_the_same_bodies(walk):
    takes = [
        replace(walk, labels=tuple(f"{prefix}:{label}" for label in walk.labels))
        for prefix in ("Human1", "Human2")
    ]
    first, second = segment(takes)
    assert first.names == second.names
    assert np.array_equal(first.marker_body, second.marker_body)


def test_names_of_joints_are_no_markers():
    """Keypoints have one point per joint; their words would name bodies too."""
    joints = ["shoulder", "elbow", "wrist", "hip", "knee", "ankle"]
    labels = ("nose", "neck", *(f"{s}_{j}" for j in joints for s in ("left", "right")))
    points = np.random.default_rng(0).normal(size=(20, len(labels), 3))
    take = marey.Take(rate=50.0, points=points, labels=labels)
    assert recognise_marker_set(take) is None


# --- doubts ---------------------------------------------------------------------------


def contradictions(take):
    options = marey.SolveOptions()
    return list(contradicted_names(fit_bodies(clean_takes((take,), options), options)))


def other_side(label):
    swap = {"L": "R", "R": "L"}
    return swap[label[0]] + label[1:] if label[1:] in PHRASES else label


def test_swapped_sides_are_reported(walk):
    assert not contradictions(walk)
    swapped = replace(walk, labels=tuple(map(other_side, walk.labels)))
    (finding,) = contradictions(swapped)
    assert finding.severity == "warning"
    assert "left and right" in finding.message


def test_mirrored_axes_are_reported(walk):
    mirrored = replace(walk, points=walk.points * [1.0, -1.0, 1.0])
    assert len(contradictions(mirrored)) == 1


@pytest.fixture(scope="module")
def dog():
    take = marey.synth.quadruped().record("walk", seconds=2.0, rate=60.0, noise=5e-4)
    return marey.Take(rate=take.rate, points=take.points, labels=take.labels)


def test_an_animal_is_no_person(dog):
    """Labels with a tail leave the bodies to the motion."""
    assert recognise_marker_set(dog) is None


def test_a_dog_with_the_words_of_a_person_is_reported(dog):
    tail = [i for i, label in enumerate(dog.labels) if not label.startswith("Tail")]
    (finding,) = contradictions(dog.select(tail))
    assert "looks like an animal" in finding.message


# --- up axis --------------------------------------------------------------------------


def lying(take, up, how):
    """The take as it is read from a file whose axis `up` points up, taken for z."""
    points = take.points @ marey.geometry.R_Z_UP[up]
    assumed = Finding("up-assumed", "read", "warning", "took z", "up")
    findings = (assumed,) if how == "assumed" else ()
    return replace(
        take, points=points, source=Source(up=Fact("z", how), findings=findings)
    )


@pytest.mark.parametrize("up", ["x", "-x", "y", "-y", "-z"])
def test_people_stand_along_the_up_axis(walk, up):
    (found,) = clean_takes((lying(walk, up, "assumed"),), marey.SolveOptions())
    assert found.source.up == Fact(up, "inferred", "people stand along it")
    assert np.abs(found.points - walk.points).max() < 1e-9
    assert [f.code for f in found.source.findings] == ["up-corrected"]


@pytest.mark.parametrize("up", ["x", "-x", "y", "-y", "-z"])
def test_people_who_lie_on_a_floor_at_zero_are_not_put_on_their_feet(up):
    """On the back, on a side, or on the hands: where the floor is, is down."""
    figure = marey.synth.human(seed=0)
    take = figure.record("still", markers="sparse41", seconds=2.0, noise=5e-4)
    points = take.points @ marey.geometry.R_Z_UP[up]
    points -= np.quantile(points, 0.5, axis=(0, 1)) * [1.0, 1.0, 0.0]
    points[..., 2] -= points[..., 2].min() - 0.01
    source = Source(up=Fact("z", "assumed"))
    (found,) = clean_takes(
        (replace(take, points=points, source=source),), marey.SolveOptions()
    )
    np.testing.assert_array_equal(found.points, points)
    doubt = next(f for f in found.source.findings if f.subject == "up")
    assert doubt.code == "up-doubtful"
    assert f"read it with up={up} if people stand" in doubt.message


@pytest.mark.parametrize("how", ["stated", "given"])
def test_a_stated_up_axis_is_doubted_and_kept(walk, how):
    take = lying(walk, "y", how)
    (found,) = clean_takes((take,), marey.SolveOptions())
    assert np.array_equal(found.points, take.points)
    (doubt,) = found.source.findings
    assert doubt.code == "up-doubtful"
    assert "up is y" in doubt.message


def test_a_right_up_axis_is_kept(walk):
    for how in ("stated", "assumed"):
        take = lying(walk, "z", how)
        assert clean_takes((take,), marey.SolveOptions())[0].source == take.source


def test_a_floor_shows_the_up_axis_without_names():
    """Feet stand in turn on one level while a figure without labels walks away."""
    figure = marey.synth.human(seed=0)
    take = figure.record("walk", seconds=8.0, rate=30.0, labels=False)
    take = marey.Take(rate=take.rate, points=take.points, labels=take.labels)
    forward = int(np.ptp(take.points.mean(axis=1), axis=0)[:2].argmax())
    up = "xy"[forward]
    found = correct_up(lying(take, up, "assumed"), [])
    assert found.source.up.value == up
    assert np.abs(found.points - take.points).max() < 1e-9
    assert correct_up(lying(take, "z", "assumed"), []).source.up.how == "assumed"


@pytest.mark.parametrize("up", ["x", "y", "-y", "-z"])
def test_a_jump_shows_the_up_axis_without_names(up):
    """What nothing holds accelerates downward by g."""
    t = np.arange(0.0, 2.0, 0.01)
    height = np.clip(0.6 - 0.5 * 9.81 * (t - 1.0) ** 2, 0.0, None)
    cloud = np.random.default_rng(0).uniform(size=(12, 3))
    points = cloud + height[:, None, None] * [0.0, 0.0, 1.0]
    points[..., 0] += t[:, None]
    labels = tuple(f"M{i}" for i in range(12))
    take = marey.Take(rate=100.0, points=points, labels=labels)
    found = correct_up(lying(take, up, "assumed"), [])
    assert found.source.up.value == up
    assert np.abs(found.points - points).max() < 1e-9
    slow = marey.Take(rate=70.0, points=points, labels=labels)
    assert correct_up(lying(slow, up, "assumed"), []).source.up.value == "z"


@pytest.mark.parametrize(
    "up", ["y", *(pytest.param(up, marks=pytest.mark.slow) for up in ("-y", "x"))]
)
def test_people_recognised_by_their_looks_stand_upright(up):
    """Bodies and names do not depend on the axes of the file."""
    figure = marey.synth.human(seed=0)
    take = figure.record("exercise", seconds=8.0, rate=30.0, labels=False)
    take = marey.Take(rate=take.rate, points=take.points, labels=take.labels)
    found, upright = (
        marey.solve(lying(take, axis, "assumed"), calibrate=False) for axis in (up, "z")
    )
    assert found.skeleton.names == upright.skeleton.names
    assert "Head" in found.skeleton.names
    codes = [finding.code for finding in found.report.findings]
    assert codes.count("up-corrected") == 1
    assert np.abs(found.take.points - upright.take.points).max() < 1e-9


def test_the_clustering_that_makes_a_person_does_not_depend_on_the_axes():
    """A walk hardly shows elbows: of several clusterings looks choose one."""
    figure = marey.synth.human(height=1.75, seed=3)
    errors = {"noise": 5e-4, "soft_tissue": 0.008, "gaps": 0.02}
    options = {"markers": "set53", "seconds": 5.0, "rate": 100.0, "seed": 1}
    take = figure.record("walk", **options, **errors)
    labels = tuple(f"M{i}" for i in range(len(take.labels)))
    take = marey.Take(rate=take.rate, points=take.points, labels=labels)
    found, upright = (
        marey.solve(lying(take, axis, "assumed"), calibrate=False)
        for axis in ("-y", "z")
    )
    assert found.take.source.up.value == "-y"
    np.testing.assert_array_equal(
        found.bodies[0].marker_body, upright.bodies[0].marker_body
    )
    assert found.skeleton.names == upright.skeleton.names
