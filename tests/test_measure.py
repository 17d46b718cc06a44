"""Quality of a motion: marker residuals, contacts, foot skate and penetration."""

from dataclasses import replace

import numpy as np
import posed
import pytest

import marey
from marey import synth
from marey.motion import Contact
from marey.pipeline import SolveOptions
from marey.pose.contact.ground_contacts import (
    enforce_contacts,
    find_ground_contacts,
    ground_contacts_of,
    mark_contacts,
    planted_spans,
)
from marey.pose.measure import marker_distances, measure_motion


@pytest.fixture(scope="module")
def walk():
    skeleton, take = posed.record(motion="walk", seconds=2.0, noise=1e-3)
    return take, marey.solve_pose(skeleton, take, method="gauss_newton")


def test_markers_are_as_far_off_as_they_were_moved(rng):
    skeleton, take = posed.record(motion="walk", seconds=0.2)
    motion = replace(take.truth.motion, skeleton=skeleton)
    points = take.points.copy()
    points[3, 7] += [0.0, 0.03, 0.04]
    points[5, 2] = np.nan
    filled = np.zeros(points.shape[:2], dtype=bool)
    points[6, 1] += 1.0
    filled[6, 1] = True
    found = measure_motion(motion, replace(take, points=points, filled=filled))
    assert found.worst == pytest.approx(0.05, rel=1e-9)
    frame, marker = np.unravel_index(np.nanargmax(found.distances), points.shape[:2])
    assert (found.labels[marker], frame) == (take.labels[7], 3)
    assert found.mean == pytest.approx(0.05 / (points.shape[0] * 53 - 2), rel=1e-6)


def test_contacts_give_back_the_footing_they_came_from(walk):
    take, motion = walk
    done, firm = enforce_contacts(motion, find_ground_contacts(motion, take))
    again = ground_contacts_of(done)
    assert len(again.plants) == len(firm.plants)
    assert again.skate(done) == pytest.approx(firm.skate(done), rel=1e-6, abs=1e-9)
    assert again.skate(motion) == pytest.approx(firm.skate(motion), rel=1e-6)
    found = measure_motion(done, take)
    assert found.plants == planted_spans(done.contacts)
    assert found.skate < 5e-4
    assert found.depth < 1e-3


def test_a_motion_without_contacts_says_nothing_of_them(walk):
    found = measure_motion(walk[1], walk[0])
    assert found.plants == {}
    assert np.isnan([found.skate, found.depth]).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_foot_is_planted_once_a_step(seed):
    """However many contacts its heel, ball and toes have."""
    take = synth.human(seed=seed).record(
        "walk", seconds=6.0, markers="set53", noise=1e-3, seed=seed
    )
    solution, truth = marey.solve(take), take.truth.motion
    rows = {row[0]: row[1] for row in solution.report.tables["plants"].rows}
    found = planted_spans(solution.motion.contacts)
    for side in ("Left", "Right"):
        foot, name = [], f"{side}Foot"
        for contact in truth.contacts:
            if contact.joint.startswith(side):
                foot.append(replace(contact, joint=name))
        for start, end in planted_spans(foot)[name]:
            whole = start > truth.times[0] and end < truth.times[-2]
            during = [a for a, b in found[name] if a < end and b > start]
            assert len(during) == 1 or (not during and not whole)
        assert rows[name] == len(found[name])


def test_contacts_that_follow_at_once_are_one_plant():
    def contact(start, end, joint="LeftFoot"):
        return Contact(joint, start, end, np.zeros(3))

    heel, toe, next_step = contact(0.0, 0.3), contact(0.4, 0.6), contact(1.1, 1.7)
    whole, other = contact(0.05, 0.2), contact(0.5, 1.0, "RightFoot")
    found = planted_spans((next_step, toe, heel, other, whole))
    assert found == {"LeftFoot": [(0.0, 0.6), (1.1, 1.7)], "RightFoot": [(0.5, 1.0)]}


def test_contacts_without_frames_are_left_out(walk):
    _, motion = walk
    late = Contact("LeftHeel", 100.0, 101.0, np.zeros(3))
    assert not ground_contacts_of(replace(motion, contacts=(late,))).plants


def test_a_take_without_markers_has_no_distances():
    take = synth.human().record("walk", seconds=0.2, sensors=True, markers="none")
    skeleton = take.true_skeleton
    motion = marey.solve_pose(skeleton, take, method="playback")
    away, labels = marker_distances(motion, take)
    assert (away.shape[1], labels) == (0, ())
    assert np.isnan(measure_motion(motion, take).mean)


def test_a_report_has_it(walk):
    take, _ = walk
    skeleton = take.true_skeleton
    options = SolveOptions(skeleton=skeleton, pose="physics", contacts=True)
    solution = marey.solve(take, options=options)
    table = solution.report.tables["pose"]
    ((_, number, mean, worst, plants, skate, deep),) = table.rows
    found = measure_motion(solution.motion, solution.take)
    assert number == 1
    assert (mean, worst) == (round(1e3 * found.mean, 2), round(1e3 * found.worst, 2))
    assert [skate, deep] == [round(float(value), 2) for value in (skate, deep)]
    assert plants == len(solution.motion.contacts) > 3
    assert skate < 0.5
    assert deep < 1.0
    findings = {finding.code: finding for finding in solution.report.findings}
    assert "neutral posture" in findings["pose-energy"].message
    assert findings["pose-energy"].value > 0.0


def test_measures_and_plants_do_not_depend_on_blocks_of_frames(walk, monkeypatch):
    take, motion = walk
    whole = mark_contacts(motion, take)
    monkeypatch.setattr("marey.pose.contact.points.FRAMES_PER_CHUNK", 37)
    cut = mark_contacts(motion, take)
    assert len(whole.contacts) > 4
    for one, other in zip(whole.contacts, cut.contacts, strict=True):
        assert (one.joint, one.start, one.end) == (other.joint, other.start, other.end)
        np.testing.assert_allclose(one.anchor, other.anchor, atol=1e-12)
    monkeypatch.undo()
    found = measure_motion(whole, take)
    monkeypatch.setattr("marey.pose.contact.points.FRAMES_PER_CHUNK", 37)
    again = measure_motion(whole, take)
    np.testing.assert_allclose(again.distances, found.distances, atol=1e-12)
    assert again.skate_of_joint == pytest.approx(found.skate_of_joint)
    assert (again.skate, again.depth) == pytest.approx((found.skate, found.depth))
