"""Clinical angles of a real walk beside those that Plug-in Gait stored in its file."""

import ezc3d
import numpy as np
import pytest

import marey

WALK = "btk_plugingait/PiG_Motion-FlatFoot-Full.c3d"


@pytest.fixture(scope="module")
def walk(recordings):
    """Our angles, and a function for those of the file: frames by three angles."""
    path = str(recordings / WALK)
    angles = marey.angles(marey.solve(path).motion, "plug-in-gait")
    content = ezc3d.c3d(path)
    labels = content["parameters"]["POINT"]["LABELS"]["value"]

    def stored(label):
        values = content["data"]["points"][:3, labels.index(label)].T.copy()
        values[(values == 0.0).all(axis=1)] = np.nan
        return values

    return angles, stored


def test_feet_strike_and_leave_when_the_operator_says(recordings):
    """Within 80 ms: the ankle stands in for the heel, which is ahead a little later."""
    solution = marey.solve(str(recordings / WALK))
    plants = marey.gait(solution.motion).plants
    events = [(e.context, e.label, e.time) for e in solution.take.events]
    for plant in plants:
        if plant.whole:
            for time, label in ((plant.start, "Foot Strike"), (plant.end, "Foot Off")):
                stated = [
                    t for c, name, t in events if (c, name) == (plant.side, label)
                ]
                assert np.abs(np.array(stated) - time).min() < 0.08
    assert sum(plant.whole for plant in plants) >= 4


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("joint", ["hip", "knee"])
def test_flexion_runs_as_plug_in_gait_has_it(walk, side, joint):
    """Apart from the zero, which depends on the joint centres."""
    angles, stored = walk
    ours = angles[f"{side}_{joint}_flexion"]
    theirs = stored(f"{side[0].upper()}{joint.title()}Angles")[:, 0]
    known = np.isfinite(ours + theirs)
    assert known.mean() > 0.9
    assert np.corrcoef(ours[known], theirs[known])[0, 1] > 0.98
    assert (ours - theirs)[known].std() < 2.0


def test_the_pelvis_tilts_as_plug_in_gait_has_it(walk):
    angles, stored = walk
    ours = angles["pelvis_anterior_tilt"]
    theirs = stored("LPelvisAngles")[:, 0]
    known = np.isfinite(ours + theirs)
    assert np.abs((ours - theirs)[known]).max() < 3.0
