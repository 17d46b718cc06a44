"""Real walks: foot plants found by markers on shoes, and footskate removed."""

from dataclasses import replace

import numpy as np
import pytest

from marey.pose.contact.ground_contacts import add_contacts, find_ground_contacts

# Steps in each walk, of both feet, begun and cut ones included.
WALKS = {
    "cmu/02_01.c3d": 6,
    "cmu/07_01.c3d": 5,
    "cmu/07_12.c3d": 6,
    "addbio_uhlrich_s2/walking1.trc": 3,
    "btk_plugingait/PiG_Motion-FlatFoot-Full.c3d": 7,
}
FRAME = 0.01


def stance_intervals(contacts, side):
    """Intervals of frames in which any point of a foot stands."""
    spans = []
    for plant in contacts.plants:
        if not contacts.points.names[plant.point].startswith(side):
            continue
        if spans and plant.start - spans[-1][1] < 20.0:
            spans[-1][1] = max(spans[-1][1], plant.end)
        else:
            spans.append([plant.start, plant.end])
    return spans


@pytest.mark.parametrize("name", list(WALKS))
def test_every_step_is_found_and_held(solved, name):
    solution = solved(name)
    motion, take = solution.motion, solution.take
    contacts = find_ground_contacts(motion, take)
    assert {name[-4:] for name in contacts.points.names} == {"Foot"}
    steps = [
        span for side in ("Left", "Right") for span in stance_intervals(contacts, side)
    ]
    assert len(steps) == WALKS[name]
    done, findings = add_contacts(motion, take)
    reported = {finding.code: finding for finding in findings}
    assert reported["contact-skate"].value < 2e-3
    assert reported["contact-skate"].value < 0.1 * contacts.skate(motion)
    assert "contact-uneven" not in reported
    moved = (done.T_world_joint() - motion.T_world_joint())[..., :3, 3]
    assert np.linalg.norm(moved, axis=-1).max() < 0.03
    assert accelerations(done).max() < 1.05 * accelerations(motion).max()


def accelerations(motion):
    positions = motion.T_world_joint()[..., :3, 3]
    return np.linalg.norm(np.diff(positions, n=2, axis=0), axis=-1)


def test_plants_lie_between_foot_strike_and_foot_off(solved):
    """Markers on top of a foot come to rest after it strikes, and leave before it."""
    solution = solved("btk_plugingait/PiG_Motion-FlatFoot-Full.c3d")
    motion, take = solution.motion, solution.take
    contacts = find_ground_contacts(motion, take)
    for side in ("Left", "Right"):
        events = [event for event in take.events if event.context == side]
        strikes = [event.time for event in events if event.label == "Foot Strike"]
        offs = [event.time for event in events if event.label == "Foot Off"]
        spans = [
            [motion.start + frame / motion.rate for frame in span]
            for span in stance_intervals(contacts, side)
        ]
        for strike in sorted(strikes):
            if strike > motion.times[-1] - 0.1:
                continue
            off = min((time for time in offs if time > strike), default=np.inf)
            (span,) = [s for s in spans if strike - FRAME < s[0] < off]
            assert span[0] - strike < 0.15
            assert span[1] < off + FRAME


def test_the_ground_of_the_laboratory_has_the_same_slope_in_different_walks(solved):
    """Only the plants determine the slope; three walks of two people agree."""
    slopes = []
    for name in ("cmu/02_01.c3d", "cmu/07_01.c3d", "cmu/07_12.c3d"):
        solution = solved(name)
        ground = find_ground_contacts(solution.motion, solution.take).ground
        slopes.append(np.degrees(np.arctan(ground.slope[0])))
    assert np.ptp(slopes) < 0.3
    assert np.mean(slopes) == pytest.approx(1.05, abs=0.2)


def test_a_jump_off_a_box_has_plants_on_it_and_on_the_floor(solved):
    solution = solved("addbio_uhlrich_s2/DJ1.trc")
    done, findings = add_contacts(solution.motion, solution.take)
    reported = {finding.code: finding for finding in findings}
    assert reported["contact-uneven"].value == pytest.approx(0.305, abs=0.01)
    high = np.array([contact.anchor[2] > 0.3 for contact in done.contacts])
    early = np.array([contact.start < 1.0 for contact in done.contacts])
    np.testing.assert_array_equal(high, early)
    assert reported["contact-skate"].value < 2e-3


def test_plants_rotate_with_the_recording(solved):
    solution = solved("btk_plugingait/PiG_Motion-FlatFoot-Full.c3d")
    motion = solution.motion
    rotation = np.eye(4)
    rotation[:2, :2] = [[0.0, -1.0], [1.0, 0.0]]
    rotated = replace(motion, T_world_root=rotation @ motion.T_world_root)
    here, there = (find_ground_contacts(m, solution.take) for m in (motion, rotated))
    for a, b in zip(here.plants, there.plants, strict=True):
        assert (a.point, a.start, a.end) == (b.point, b.start, b.end)
        np.testing.assert_allclose(rotation[:3, :3] @ a.anchor, b.anchor, atol=1e-9)
