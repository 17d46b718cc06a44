"""Clinical angles of a real walk beside those that Plug-in Gait stored in its file."""

import numpy as np
import pytest

import marey

WALK = "btk_plugingait/PiG_Motion-FlatFoot-Full.c3d"
OTHER = "formats_c3d/gait-pig-nz.c3d"


def angles_beside(solution):
    """Our angles, and a function for those of the file: frames by three angles."""
    angles = marey.angles(solution.motion, "plug-in-gait")

    def stored(label):
        values = solution.take.computed[label].copy()
        values[(values == 0.0).all(axis=1)] = np.nan
        return values

    return angles, stored


def test_feet_strike_and_leave_when_the_operator_says(solved):
    """Within 80 ms: the ankle stands in for the heel, which is ahead a little later."""
    solution = solved(WALK)
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


FLEXIONS = {"hip": "flexion", "knee": "flexion", "ankle": "dorsiflexion"}


@pytest.mark.parametrize("path", [WALK, OTHER])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("joint", FLEXIONS)
def test_flexion_is_that_of_plug_in_gait(solved, path, side, joint):
    """Without its measurements of the subject, and without its static trial."""
    angles, stored = angles_beside(solved(path))
    ours = angles[f"{side}_{joint}_{FLEXIONS[joint]}"]
    theirs = stored(f"{side[0].upper()}{joint.title()}Angles")[:, 0]
    known = np.isfinite(ours + theirs)
    assert known.mean() > 0.9
    assert np.corrcoef(ours[known], theirs[known])[0, 1] > 0.98
    assert np.sqrt(np.mean((ours - theirs)[known] ** 2)) < 5.0
    assert (ours - theirs)[known].std() < 2.0


def test_the_pelvis_tilts_as_plug_in_gait_has_it(solved):
    angles, stored = angles_beside(solved(WALK))
    ours = angles["pelvis_anterior_tilt"]
    theirs = stored("LPelvisAngles")[:, 0]
    known = np.isfinite(ours + theirs)
    assert np.abs((ours - theirs)[known]).max() < 3.0
