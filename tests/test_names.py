"""Names given by users appear on joints, contacts and findings, and nowhere else."""

import re

import numpy as np
import pytest
import scenes

import marey
from marey import synth
from marey.editing import EditSession
from marey.editing.kinds.rename import rename_findings
from marey.io.formats.html import encode_scene
from marey.report import Finding, mark_name
from marey.take import Take


@pytest.fixture(scope="module")
def walk():
    """Sensors of a person, with feet that stand on the ends of their bones."""
    take = synth.human(seed=1).record(
        "walk", markers="none", sensors=True, seconds=3.0, rate=60.0
    )
    return take, EditSession(take, options=marey.SolveOptions(contacts=True))


@pytest.fixture(scope="module")
def doubtful():
    """A walk of sensors, too short and noisy for a certain tree."""
    return synth.human(seed=1).record(
        "walk", markers="none", sensors=True, seconds=1.0, rate=50.0, noise=3e-3
    )


def feet(solution):
    return {contact.joint for contact in solution.motion.contacts}


@pytest.mark.parametrize("side", ["Left", "Right"])
def test_contacts_are_renamed_with_their_bone(walk, side):
    _, session = walk
    assert f"{side}Foot_end" in feet(session.solution)
    trial = session.attempt({"do": "rename", "name": f"{side}Foot", "to": "Shoe"})
    renamed = {
        name.replace(f"{side}Foot", "Shoe") for name in sorted(feet(session.solution))
    }
    assert feet(trial.solution) == renamed
    assert renamed <= set(trial.solution.skeleton.names)
    for before, after in zip(
        session.solution.motion.contacts, trial.solution.motion.contacts, strict=True
    ):
        np.testing.assert_array_equal(before.anchor, after.anchor)


def numbered(take):
    """The same sensors, called by numbers."""
    names = tuple(str(i + 1) for i in range(len(take.sensor_names)))
    return Take(rate=take.rate, T_world_sensor=take.T_world_sensor, sensor_names=names)


def text_around_names(finding):
    """The message of a finding without the names in it."""
    text, end = [], 0
    for first, last in finding.names:
        text.append(finding.message[end:first])
        end = last
    return (*text, finding.message[end:])


def test_numbers_in_findings_are_not_mistaken_for_bodies(doubtful):
    solution = marey.solve(numbered(doubtful))
    names = {name: f"Part {chr(64 + int(name))}" for name in solution.bodies[0].names}
    findings = solution.report.findings
    codes = {finding.code for finding in findings if finding.names}
    assert codes >= {"tree-unsure", "loop"}
    renamed = rename_findings(findings, names, solution.bodies[0].names)
    assert [text_around_names(finding) for finding in renamed] == [
        *map(text_around_names, findings)
    ]
    for before, after in zip(findings, renamed, strict=True):
        old = [before.message[a:b] for a, b in before.names]
        new = [after.message[a:b] for a, b in after.names]
        assert new == [names[name] for name in old]
    back = {new: old for old, new in names.items()}
    assert rename_findings(renamed, back, tuple(names.values())) == findings


def test_the_height_of_the_ground_is_not_renamed(walk):
    """z = -1 mm, when the body called 1 becomes Pelvis."""
    take, _ = walk
    session = EditSession(numbered(take))
    trial = session.attempt({"do": "rename", "name": "1", "to": "Pelvis"})
    before, after = (
        [f.message for f in solution.report.findings if f.code == "ground"]
        for solution in (session.solution, trial.solution)
    )
    assert "z = -1 mm" in before[0]
    assert after == before


def test_the_subject_of_a_finding_is_renamed_as_a_whole():
    findings = [
        Finding("a", "joints", "info", "m", subject)
        for subject in ("1", "1-2", "take 1", "11", "2, 1", "x-1", "1_end", "3-1")
    ]
    found = [
        f.subject for f in rename_findings(findings, {"1": "Pelvis"}, ("1", "2", "3-1"))
    ]
    assert found == [
        *("Pelvis", "Pelvis-2", "take 1", "11", "2, Pelvis", "x-1", "Pelvis_end"),
        "3-1",
    ]


def test_a_file_name_equal_to_a_body_is_not_renamed():
    one = Finding("a", "read", "info", f"of {mark_name('b')}, from a 1 to 2", "a.c3d")
    (other,) = rename_findings([one], {"a": "x", "b": "y", "1": "z"}, ("a", "b", "1"))
    assert (other.message, other.subject) == ("of y, from a 1 to 2", "a.c3d")


def test_every_body_name_in_a_finding_is_marked(doubtful):
    """Recordings too short and noisy for a certain tree."""
    bars = synth.linkage().record(markers=4, seconds=0.6, rate=50.0, noise=3e-3)
    codes = set()
    for take in (doubtful, bars):
        solution = marey.solve(take, options=marey.SolveOptions(contacts=True))
        names = "|".join(map(re.escape, solution.skeleton.names))
        for finding in solution.report.findings:
            for match in re.finditer(rf"\b({names})\b", finding.message):
                assert match.span() in finding.names, finding.message
                codes.add(finding.code)
    assert codes >= {"tree-unsure", "loop", "contact-plants", "joint-open"}


def test_only_one_of_two_people_is_renamed():
    """Their bodies have the subjects' names in front, and keep them."""
    take = synth.scene(
        "clasp", seconds=4.0, rate=30.0, markers="none", sensors=True, noise=1e-3
    )
    session = EditSession(take)
    before = session.solution.bodies[0].names
    after = session.attempt({"do": "rename", "name": "A:Hips", "to": "A:Boss"}).solution
    assert {"A:Hips", "B:Hips"} <= set(before)
    renamed = ("A:Boss" if name == "A:Hips" else name for name in before)
    assert after.bodies[0].names == tuple(renamed)
    subjects = scenes.header(encode_scene(after))["subjects"]
    joints = [joint for subject in subjects for joint in subject["joints"]]
    bodies = {joint["body"] for joint in joints if joint["observed"]}
    assert bodies >= set(range(len(after.bodies[0].names)))
