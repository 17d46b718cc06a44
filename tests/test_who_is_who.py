"""Several subjects in one take are kept apart: people, props, other people."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import marey
from marey import synth
from marey.segmentation.labels.words import name_of_thing
from marey.segmentation.methods.sensors import recognise_program, sensor_trees

SCENE: dict[str, Any] = {
    "seconds": 4.0,
    "rate": 30.0,
    "markers": "set53",
    "noise": 5e-4,
    "seed": 1,
}
SHORT: dict[str, Any] = {"seconds": 4.0, "rate": 30.0, "noise": 5e-4, "seed": 1}


def numbered(take):
    """The same take with numbers in place of labels; subjects stay."""
    return replace(take, labels=tuple(f"M{i}" for i in range(len(take.labels))))


def owners(skeleton):
    return {label.partition(":")[0] for label in skeleton.marker_labels}


@pytest.mark.parametrize(
    ("scene", "names"),
    [("clasp", {"A", "B"}), ("handover", {"A", "B", "PROP"})],
)
def test_stated_subjects_are_kept_apart_whatever_their_markers_are_called(scene, names):
    bare = marey.SolveOptions(whole=False)
    solution = marey.solve(numbered(synth.scene(scene, **SCENE)), options=bare)
    assert all(len(owners(one.skeleton)) == 1 for one in solution.subjects)
    assert set().union(*(owners(one.skeleton) for one in solution.subjects)) == names


@pytest.fixture(scope="module")
def handover():
    return synth.scene("handover", **SCENE)


def links_in_time(solution):
    """The links of a solution: bodies, first and last second."""
    names, pair = solution.bodies[0].names, solution.joints.pair
    return {
        frozenset(names[body] for body in pair[link.pair]): (link.first, link.last)
        for link in solution.tree.loops
    }


@pytest.mark.parametrize("scene", ["clasp", "handover", "together"])
def test_grips_of_hands_with_markers_are_links_in_time(scene):
    """Hands with few markers: their distances show what their rotations do not."""
    take = synth.scene(scene, **SCENE | {"seed": 3})
    found = links_in_time(marey.solve(take, calibrate=False, whole=False))
    hands = [{"A:RightHand", "B:RightHand"}]
    if scene != "clasp":
        hands = [{f"{who}:RightHand", "PROP"} for who in "AB"]
    true = {
        frozenset(hand): (link.start, link.end)
        for hand, link in zip(hands, take.truth.links, strict=False)
    }
    assert found.keys() == true.keys()
    for pair, (start, end) in found.items():
        edges = np.clip((start, end), 0.0, SCENE["seconds"])
        np.testing.assert_allclose(edges, true[pair], atol=0.12)


def test_a_prop_with_the_prefix_of_its_holder_is_a_tree_of_its_own(handover):
    mine = [i for i, owner in enumerate(handover.subjects) if owner in ("A", "PROP")]
    take = handover.select(mine)
    labels = [
        f"Stick{i}" if owner == "PROP" else label
        for i, (owner, label) in enumerate(zip(take.subjects, take.labels, strict=True))
    ]
    take = replace(take, labels=tuple(labels), subjects=("JOE",) * len(labels))
    solution = marey.solve(take)
    person, prop = solution.subjects
    assert (person.name, prop.name) == ("JOE", "Stick")
    assert all("Stick" in label for label in prop.skeleton.marker_labels)
    assert not any("Stick" in label for label in person.skeleton.marker_labels)


@pytest.mark.parametrize(
    ("label", "thing"),
    [("Stick1", "Stick"), ("racket_top", "Racket"), ("LTHI", ""), ("Batman", "")],
)
def test_a_thing_is_known_by_its_word(label, thing):
    assert name_of_thing(label) == thing


def test_a_program_is_recognised_behind_any_prefix():
    """Each subject has the tree of its program; tools beside them have none."""
    tree = sensor_trees()["ART-Human"]
    bare = tuple(name.upper() for name in tree)
    people = ("Human1", "Human2")
    names = tuple(f"{who}:{name}" for who in people for name in bare)
    program, parents = recognise_program((*names, "Tools:TOOL1"))
    assert program == "ART-Human"
    for who in people:
        for child, parent in tree.items():
            above = parents.get(f"{who}:{child.upper()}", f"{who}:")
            assert above == f"{who}:{parent.upper()}"
    assert "Tools:TOOL1" not in parents


def test_two_people_given_as_one_are_an_error_bone_by_bone():
    options = {"seconds": 3.0, "rate": 30.0, "markers": "set53", "noise": 1e-3}
    tall, small = synth.human(seed=4), synth.human(height=1.6, seed=4)
    one = tall.record("exercise", seed=1, **options)
    solution = marey.solve([one, small.record("exercise", seed=2, **options)])
    (finding,) = (f for f in solution.report.findings if f.severity == "error")
    assert (finding.code, finding.subject) == ("subjects-differ", "take 2")
    lengths = [1e3 * figure.skeleton.lengths for figure in (small, tall)]
    joint = tall.skeleton.index("LeftLowerLeg")
    found, given = (float(length[joint]) for length in lengths)
    words = finding.message.partition("LeftUpperLeg-LeftLowerLeg ")[2].split()
    assert float(words[0]) == pytest.approx(found, abs=5.0)
    assert float(words[3]) == pytest.approx(given, abs=5.0)


@pytest.mark.parametrize("seed", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_person_who_stands_is_the_one_who_moves(seed):
    """Bones of a take in which nothing moves are those of usual people."""
    options = {"rate": 50.0, "markers": "set53", "noise": 1e-3}
    person = synth.human(seed=seed)
    moving = person.record("exercise", seconds=4.0, seed=1, **options)
    standing = person.record("still", seconds=2.0, seed=2, **options)
    findings = marey.solve([moving, standing]).report.findings
    assert "subjects-differ" not in {finding.code for finding in findings}


def test_takes_of_one_session_share_their_markers():
    options = {"seconds": 3.0, "rate": 40.0, "markers": "set53", "noise": 1e-3}
    whole = synth.human(seed=4).record("exercise", seed=1, **options)
    middle = whole.n_frames // 2
    halves = whole.cut(0, middle), whole.cut(middle, whole.n_frames)
    together = marey.solve(halves, sessions=("monday", "monday"))
    (subject,) = together.subjects
    one, two = (motion.skeleton.marker_offset for motion in subject.motions)
    np.testing.assert_array_equal(one, two)
    with pytest.raises(marey.OptionError, match="sessions"):
        marey.solve(halves, sessions=("monday",))


def test_markers_that_nobody_labelled_may_be_anybodys():
    take = synth.human(seed=1).record("exercise", markers="set53", **SHORT)
    partly = ("",) * 5 + ("Joe",) * (len(take.labels) - 5)
    plain, named = (
        marey.segment(replace(take, subjects=subjects), method="overlap")
        for subjects in (("",) * len(take.labels), partly)
    )
    np.testing.assert_array_equal(named.marker_body, plain.marker_body)


def test_a_prop_has_no_joints_to_report(handover):
    """Its pairs with the bodies of people are no joints that are missing."""
    findings = marey.solve(handover).report.findings
    assert not [f for f in findings if "PROP" in f.subject and f.stage == "joints"]
    assert "not-calibrated" not in {f.code for f in findings}


def test_a_prop_that_one_take_does_not_show_has_no_motion_there(handover, tmp_path):
    """Everybody else is solved as ever, and files hold what is known."""
    owners = ("A", "PROP")
    shown = handover.select(
        [i for i, one in enumerate(handover.subjects) if one in owners]
    )
    points = shown.points.copy()
    points[:, np.array(shown.subjects) == "PROP"] = np.nan
    solution = marey.solve([shown, replace(shown, points=points)], whole=False)
    person, prop = sorted(solution.subjects, key=lambda one: -one.skeleton.n_joints)
    assert np.isfinite(prop.motions[0].wxyz).all()
    assert np.isnan(prop.motions[1].T_world_root).all()
    assert all(np.isfinite(motion.wxyz).all() for motion in person.motions)
    assert "subject-unseen" in {f.code for f in solution.report.findings}
    marey.write(solution, tmp_path / "both.html")
    marey.write(solution, tmp_path / "both.glb")
