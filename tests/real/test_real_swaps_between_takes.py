"""Label swaps between real takes of one subject."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import marey
from marey.calibration import CalibrateOptions, calibrate
from marey.cleaning import clean, find_swaps_between_takes, undo_swaps_between_takes
from marey.topology import tree_from_parents

# Takes of one subject and session each, or of several sessions.
SESSIONS = {
    "cmu02": ("cmu/02_01.c3d", "cmu/02_05.c3d"),
    "cmu07": ("cmu/07_01.c3d", "cmu/07_12.c3d"),
    "uhlrich": tuple(
        f"addbio_uhlrich_s2/{name}.trc"
        for name in ("static1", "squats1", "walking1", "DJ1")
    ),
    "hamner": ("addbio_hamner_s01/Static_FJC.trc", "addbio_hamner_s01/run500.trc"),
    "btk": tuple(
        f"btk_plugingait/PiG_{name}-FlatFoot-Full.c3d"
        for name in ("Calibration", "Motion")
    ),
    "wheelchair": tuple(
        f"ktk/kinematics_racing_{name}.c3d"
        for name in ("static", "propulsion", "probing_acromion_R")
    ),
}

PEOPLE = (
    "cmu/01_01.c3d",
    "cmu/02_01.c3d",
    "cmu/07_01.c3d",
    "cmu/16_07.c3d",
    "hdm05/HDM_dg_06-03_03_120.c3d",
    "btk_plugingait/PiG_Motion-FlatFoot-Full.c3d",
)


@pytest.fixture(scope="module")
def leg(recordings):
    folder = recordings / "biobuddy_functional"
    return [clean(marey.read(folder / f"right_{x}.c3d")) for x in ("hip", "knee")]


@pytest.fixture(scope="module")
def swaps(leg):
    return find_swaps_between_takes(leg)


def test_both_elbows_and_a_knee_are_swapped_between_two_takes(leg, swaps):
    """The knee was swapped within the first take, so its frames count against it."""
    found = {swap.labels: swap for swap in swaps}
    takes = {labels: swap.take for labels, swap in found.items()}
    assert takes == {("RLFE", "RMFE"): 0, ("LLHE", "LMHE"): 1, ("RLHE", "RMHE"): 1}
    for swap in found.values():
        assert not swap.certain
        assert swap.misfit_after < 0.05 * swap.misfit_before
    right = undo_swaps_between_takes(leg, swaps)
    assert find_swaps_between_takes(right) == ()
    for take, before in zip(right, leg, strict=True):
        moved = [
            x for k, x in enumerate(take.labels) if _differs(take.points, before, k)
        ]
        assert set(moved) == {
            label
            for swap in found.values()
            if leg[swap.take] is before
            for label in swap.labels
        }


def test_takes_share_one_marker_set_after_swaps_are_undone(leg, swaps):
    """The rms residual of shared markers is 17.6 mm as labelled, 4.8 mm repaired."""
    as_labelled, right = (
        _calibration_rms(x) for x in (leg, undo_swaps_between_takes(leg, swaps))
    )
    assert as_labelled > 0.015
    assert right < 0.006


def _calibration_rms(takes):
    bodies = marey.segment(takes)
    joints = marey.fit_joints(bodies)
    tree = tree_from_parents(bodies[0].parents, bodies[0].names, joints)
    start = marey.build_skeleton(bodies[0], joints, tree)
    options = CalibrateOptions(sessions=(0, 0))
    return calibrate(start, [one.take for one in bodies], options=options).rms


def _differs(points, take, column):
    return not np.array_equal(points[:, column], take.points[:, column], equal_nan=True)


@pytest.mark.parametrize("name", SESSIONS)
def test_other_sessions_have_no_swaps_between_takes(recordings, name):
    takes = [clean(marey.read(recordings / path)) for path in SESSIONS[name]]
    assert find_swaps_between_takes(takes) == ()


def test_different_people_have_no_swaps_between_takes(recordings):
    takes = [marey.read(recordings / path) for path in PEOPLE]
    takes = [replace(take, subjects=("",) * len(take.labels)) for take in takes]
    for pair in combinations(takes, 2):
        assert find_swaps_between_takes(pair) == ()
