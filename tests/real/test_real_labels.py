"""Known marker sets in real recordings: bodies, trees, and wrong labels."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from naive import adjusted_rand
from real.optical import (
    SETS,
    contract_edges,
    match_bodies,
    tolerant_score,
)

import marey
from marey.segmentation import read_template, segment
from marey.segmentation.labels.match import recognise_marker_set
from marey.segmentation.labels.word_set import WORDS
from marey.segmentation.methods.labels import bodies_from_labels

KNOWN = {
    **dict.fromkeys([name for name in SETS if name.startswith("cmu")], "Plug-in Gait"),
    **dict.fromkeys(["hdm05 dg", "plug-in gait", "hockey", "tennis"], "Plug-in Gait"),
    **dict.fromkeys([n for n in SETS if n.startswith("opencap")], "OpenCap"),
    **dict.fromkeys(["hamner run", "arnold walk"], "OpenSim full body"),
    "gatech": "Vicon 53",
    "biobuddy": "Qualisys clusters",
}
ONE_ARM = {"glove": "RightHand", "scapula": "RightShoulder"}
"""Sets of one arm, whose labels name no side, and a body of it."""

UNKNOWN = sorted(set(SETS) - {*KNOWN, *ONE_ARM, "racing"})

FILES = {
    "animal_dog/dog_walk00_joint_pos.txt": None,
    "olafhaag_unlabelled/sample_recording.c3d": None,
    "formats_c3d/phasespace_sample.c3d": None,
    "formats_c3d/golf.c3d": None,
    "formats_c3d/Dance.c3d": None,
    "formats_c3d/duplicate_labels.c3d": None,
    "sixdof_motive_csv/sample_optitrack_take.csv": None,
    "ktk/kinematics_racing_static.c3d": (WORDS, 10, 30),
    "formats_c3d/mocap36.c3d": ("OptiTrack", 15, 36),
    "sixdof_motive_csv/gaga_skeleton_bones_v1.25.csv": ("OptiTrack", 15, 53),
    "formats_c3d/Eb015pi.c3d": ("CAST clusters", 7, 26),
    "formats_c3d/gait-pig-nz.c3d": ("Plug-in Gait", 7, 13),
    # Three of the 24 markers without a name are clearly on the head.
    "btk_plugingait/PiG_Calibration2-NoOption.c3d": ("Plug-in Gait", 15, 38),
    "formats_trc/HHMotion.trb": ("Helen Hayes", 13, 37),
    "formats_trc/HHStatic.trb": ("Helen Hayes", 13, 37),
    "formats_trc/ballet_reduced.trc": ("Plug-in Gait", 15, 41),
    "formats_trc/dataWithEformat.trc": ("OpenSim full body", 4, 14),
    "biobuddy_functional/static_lower_body.c3d": ("Qualisys clusters", 8, 16),
    "addbio_uhlrich_s2/static1.trc": ("OpenCap", 12, 51),
    "cmu/16_07.c3d": ("Plug-in Gait", 15, 41),
}

# Two markers of the hockey player jump: a head marker ends 1.8 m from the head, one of
# the pelvis a metre from it. The third keeps its distance to that one alone: it slides
# by 8 cm against the others.
JUMPING = {"hockey": {"LFHD", "RPSI"}}
SLIDING = {"hockey": {"LPSI"}}


def split_subjects(take):
    """The take with the subjects separated from its labels."""
    split = [label.rpartition(":") for label in take.labels]
    return replace(
        take,
        labels=tuple(label for _, _, label in split),
        subjects=tuple(subject for subject, _, _ in split),
    )


@pytest.fixture(scope="module", params=sorted(KNOWN))
def case(request, recordings):
    """A set of markers, the match of its first take, and the bodies of the match."""
    known = SETS[request.param](recordings)
    take = known.takes[0]
    if not any(take.subjects):
        take = split_subjects(take)
    match = recognise_marker_set(take)
    return request.param, known, match, bodies_from_labels(take, match)


def true_names(known, bodies):
    """How far the bodies agree with the true ones, and which each of them is."""
    used = np.flatnonzero(bodies.marker_body >= 0)
    cut = replace(known, allowed=tuple(known.allowed[i] for i in used))
    found = bodies.marker_body[used]
    score, labels = tolerant_score(cut, found)
    true = match_bodies(found, labels)
    return score, {bodies.names[body]: name for body, name in true.items()}


def test_bodies_are_the_true_ones(case):
    name, known, match, bodies = case
    assert match.name == KNOWN[name]
    score, true = true_names(known, bodies)
    assert score == 1.0
    assert set(true) == set(bodies.names)
    for marker, members in enumerate(bodies.shared):
        names = {true[bodies.names[body]] for body in np.flatnonzero(members)}
        assert names <= set(known.allowed[marker])


def test_the_tree_is_the_true_one(case):
    _, known, match, bodies = case
    _, true = true_names(known, bodies)
    edges = {frozenset((true[a], true[b])) for a, b in match.parents.items()}
    present = {true[body] for body in match.members}  # Without the stick, a prop.
    assert edges == contract_edges(known.edges, present)


def test_right_labels_are_trusted(case):
    name, _, match, bodies = case
    assert match.trusted
    doubted = {bodies.take.labels[i] for i in match.label_probability}
    jumping = JUMPING.get(name, set())
    assert jumping <= doubted <= jumping | SLIDING.get(name, set())
    assert not any(f.code == "labels-swapped" for f in match.findings)


@pytest.mark.parametrize("name", UNKNOWN)
def test_other_markers_are_of_no_set(name, recordings):
    assert all(
        recognise_marker_set(take) is None for take in SETS[name](recordings).takes
    )


@pytest.mark.parametrize("name", ONE_ARM)
def test_one_arm_has_the_side_that_labels_or_the_trunk_show(name, recordings):
    for take in SETS[name](recordings).takes:
        match = recognise_marker_set(take)
        assert match.name == WORDS
        assert ONE_ARM[name] in match.members
        assert not any(body.startswith("Left") for body in match.members)


@pytest.mark.parametrize("file", FILES)
def test_whole_files(file, recordings):
    take = marey.read(recordings / file)
    match = recognise_marker_set(take)
    if FILES[file] is None:
        assert match is None
        return
    name, n_bodies, n_markers = FILES[file]
    assert (match.name, len(match.members)) == (name, n_bodies)
    assert len(match.used) == n_markers
    assert match.trusted
    assert {f.code for f in match.findings} <= {"labels-recognised", "markers-joined"}


def test_the_rat_is_of_no_set(recordings):
    from scipy.io import loadmat

    folder = recordings / "animal_rat"
    points = loadmat(folder / "test_rodent_mocap_1000_frames.mat")["pred"]
    names = loadmat(folder / "rat23.mat")["joint_names"].ravel()
    take = marey.Take(
        rate=50.0,
        points=1e-3 * points.transpose(0, 2, 1).astype(float),
        labels=tuple(str(np.ravel(name)[0]) for name in names),
    )
    assert recognise_marker_set(take) is None


# --- wrong labels ---------------------------------------------------------------------

SWAPPED = ["cmu 01_01", "cmu 07_01", "cmu 16_07", "hdm05 dg", "plug-in gait"]


@pytest.mark.parametrize("name", SWAPPED)
def test_nearly_all_swaps_of_two_labels_are_reported(name, recordings):
    """Whole takes with two labels of different bodies swapped, drawn at random."""
    take = SETS[name](recordings).takes[0]
    right = recognise_marker_set(take)
    together = {
        frozenset(pair)
        for markers in right.members.values()
        for pair in itertools.combinations(markers, 2)
    }
    pairs = [
        pair
        for pair in itertools.combinations(range(len(take.labels)), 2)
        if frozenset(pair) not in together
    ]
    drawn = np.random.default_rng(0).permutation(len(pairs))[:40]
    n_reported = 0
    for one, other in (pairs[i] for i in drawn):
        points = take.points.copy()
        points[:, [one, other]] = points[:, [other, one]]
        match = recognise_marker_set(replace(take, points=points))
        swaps = [f for f in match.findings if f.code == "labels-swapped"]
        full = {take.full_labels[one], take.full_labels[other]}
        n_reported += [set(f.subject.split(", ")) for f in swaps] == [full]
    assert n_reported >= 0.97 * len(drawn)


SHUFFLED = [*SWAPPED, "gatech", "opencap walk", "hamner run"]


@pytest.mark.parametrize("name", SHUFFLED)
def test_shuffled_labels_are_ignored(name, recordings):
    take = SETS[name](recordings).takes[0]
    order = np.random.default_rng(1).permutation(len(take.labels))
    match = recognise_marker_set(replace(take, points=take.points[:, order]))
    assert not match.trusted


@pytest.mark.parametrize("name", SHUFFLED)
def test_labels_moved_up_by_one_are_reported(name, recordings):
    """Most neighbours in a file are on one body, so most labels still agree."""
    take = SETS[name](recordings).takes[0]
    match = recognise_marker_set(replace(take, points=np.roll(take.points, 1, axis=1)))
    assert len(match.label_probability) >= 3
    assert any(finding.severity == "warning" for finding in match.findings)


# --- Vicon's own file -----------------------------------------------------------------


def test_a_vsk_is_a_marker_map(recordings):
    folder = recordings / "gatech_vsk"
    skeleton = marey.read_skeleton(folder / "Nick01.vsk")
    known = SETS["gatech"](recordings)
    bodies = segment(known.takes[0], template=skeleton)
    names = [bodies.names[body] for body in bodies.marker_body]
    assert names == known.strict
    edges = {frozenset(edge) for edge in read_template(skeleton).parent.items()}
    assert edges == set(known.edges)
    assert adjusted_rand(known.strict, bodies.marker_body) == 1.0
