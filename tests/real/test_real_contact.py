"""Feet of real walks: plants found by markers on shoes, and held."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey.pose.contact.footing import find_footing, with_contacts

# Steps in each walk, of both feet, begun and cut ones included.
WALKS = {
    "cmu/02_01.c3d": 6,
    "cmu/07_01.c3d": 5,
    "cmu/07_12.c3d": 6,
    "addbio_uhlrich_s2/walking1.trc": 3,
    "btk_plugingait/PiG_Motion-FlatFoot-Full.c3d": 7,
}
FRAME = 0.01


@pytest.fixture(scope="module")
def solved(recordings):
    """Solutions by file, without contacts."""
    found = {}

    def solve(name):
        if name not in found:
            found[name] = marey.solve(str(recordings / name))
        return found[name]

    return solve


def stands(footing, side):
    """Times of each step of a foot: first and last moment at which any of it stands."""
    spans = []
    for plant in footing.plants:
        if not footing.spots.names[plant.spot].startswith(side):
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
    footing = find_footing(motion, take)
    assert {name[-4:] for name in footing.spots.names} == {"Foot"}
    steps = [span for side in ("Left", "Right") for span in stands(footing, side)]
    assert len(steps) == WALKS[name]
    done, findings = with_contacts(motion, take)
    told = {finding.code: finding for finding in findings}
    assert told["contact-skate"].value < 2e-3
    assert told["contact-skate"].value < 0.1 * footing.skate(motion)
    assert "contact-uneven" not in told
    moved = (done.T_world_joint() - motion.T_world_joint())[..., :3, 3]
    assert np.linalg.norm(moved, axis=-1).max() < 0.03
    assert bends(done).max() < 1.05 * bends(motion).max()


def bends(motion):
    place = motion.T_world_joint()[..., :3, 3]
    return np.linalg.norm(np.diff(place, n=2, axis=0), axis=-1)


def test_plants_lie_between_foot_strike_and_foot_off(solved):
    """Markers on top of a foot come to rest after it strikes, and leave before it."""
    solution = solved("btk_plugingait/PiG_Motion-FlatFoot-Full.c3d")
    motion, take = solution.motion, solution.take
    footing = find_footing(motion, take)
    for side in ("Left", "Right"):
        mine = [event for event in take.events if event.context == side]
        strikes = [event.time for event in mine if event.label == "Foot Strike"]
        offs = [event.time for event in mine if event.label == "Foot Off"]
        spans = [
            [motion.start + frame / motion.rate for frame in span]
            for span in stands(footing, side)
        ]
        for strike in sorted(strikes):
            if strike > motion.times[-1] - 0.1:
                continue
            off = min((time for time in offs if time > strike), default=np.inf)
            (span,) = [s for s in spans if strike - FRAME < s[0] < off]
            assert span[0] - strike < 0.15
            assert span[1] < off + FRAME


def test_the_floor_of_the_laboratory_leans_alike_in_different_walks(solved):
    """Nothing but the plants tells; three walks of two people agree."""
    slopes = []
    for name in ("cmu/02_01.c3d", "cmu/07_01.c3d", "cmu/07_12.c3d"):
        solution = solved(name)
        ground = find_footing(solution.motion, solution.take).ground
        slopes.append(np.degrees(np.arctan(ground.slope[0])))
    assert np.ptp(slopes) < 0.3
    assert np.mean(slopes) == pytest.approx(1.05, abs=0.2)


def test_a_jump_off_a_box_has_plants_on_it_and_on_the_floor(solved):
    solution = solved("addbio_uhlrich_s2/DJ1.trc")
    done, findings = with_contacts(solution.motion, solution.take)
    told = {finding.code: finding for finding in findings}
    assert told["contact-uneven"].value == pytest.approx(0.305, abs=0.01)
    high = np.array([contact.anchor[2] > 0.3 for contact in done.contacts])
    early = np.array([contact.start < 1.0 for contact in done.contacts])
    np.testing.assert_array_equal(high, early)
    assert told["contact-skate"].value < 2e-3


def test_a_turned_recording_has_its_plants_turned(solved):
    solution = solved("btk_plugingait/PiG_Motion-FlatFoot-Full.c3d")
    motion = solution.motion
    shift = np.eye(4)
    shift[:2, :2] = [[0.0, -1.0], [1.0, 0.0]]
    turned = replace(motion, T_world_root=shift @ motion.T_world_root)
    here, there = (find_footing(m, solution.take) for m in (motion, turned))
    for a, b in zip(here.plants, there.plants, strict=True):
        assert (a.spot, a.start, a.end) == (b.spot, b.start, b.end)
        np.testing.assert_allclose(shift[:3, :3] @ a.anchor, b.anchor, atol=1e-9)
