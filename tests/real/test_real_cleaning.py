"""Real recordings: what cleaning finds in them, and what it leaves alone."""

from dataclasses import replace

import numpy as np
import pytest
from real.loaders import load_hinge

import marey
from marey.cleaning import (
    find_marker_slips,
    find_sensor_outliers,
    find_sensor_slips,
    find_spikes,
    find_swaps,
)


def test_a_recording_without_errors_has_no_findings(recordings):
    take = load_hinge(recordings / "mech_hinge")
    assert find_sensor_outliers(take) == ()
    solution = marey.solve(take)
    assert not any(f.stage == "clean" for f in solution.report.findings)


SOLVED = [
    "sixdof_xsens_mvnx/*.mvnx",
    "sixdof_theia_rotations/*.c3d",
    "sixdof_motive_csv/*1.25*.csv",
]


@pytest.mark.parametrize("pattern", SOLVED)
def test_solved_skeletons_have_no_slips(recordings, pattern):
    take = marey.read(min(recordings.glob(pattern)))
    assert len(take.sensor_names) > 2
    bodies = marey.segment(take)
    joints = marey.fit_joints(bodies)
    assert find_sensor_slips(bodies, joints, marey.infer_tree(joints)) == ()
    masked = take.sensor_seen & ~marey.clean(take).sensor_seen
    assert masked.mean() < 0.01


def test_a_slip_added_to_a_real_recording_is_found(recordings):
    take = marey.read(recordings / "sixdof_xsens_mvnx" / "test_mocap.mvnx")
    joints = marey.fit_joints(marey.segment(take))
    tree = marey.infer_tree(joints)
    sensor, frame = len(take.sensor_names) // 2, take.n_frames // 2
    T = take.T_world_sensor.copy()
    T[frame:, sensor, :3, 3] += 0.02 * T[frame:, sensor, :3, 0]
    (slip,) = find_sensor_slips(
        marey.segment(replace(take, T_world_sensor=T)), joints, tree
    )
    assert slip.sensor == take.sensor_names[sensor]
    assert abs(slip.frame - frame) <= 1
    np.testing.assert_allclose(slip.size, 0.02, atol=0.003)


# --- markers --------------------------------------------------------------------------

WITHOUT_ERRORS = [
    "cmu/02_01.c3d",
    "cmu/02_05.c3d",
    "addbio_uhlrich_s2/DJ1.trc",
    "addbio_uhlrich_s2/squats1.trc",
    "addbio_hamner_s01/run500.trc",
    "btk_plugingait/PiG_Motion-FlatFoot-Full.c3d",
    "hdm05/HDM_dg_06-03_03_120.c3d",
    "mech_pendulum/pendulum_01.trc",
    "hand_dfki/recording.tsv",
    "props_hockey/wrist_shot_009.c3d",
    "biobuddy_functional/right_knee.c3d",
]


@pytest.mark.parametrize("name", WITHOUT_ERRORS)
def test_strikes_jumps_and_runs_are_no_errors(recordings, name):
    take = marey.read(recordings / name)
    assert find_swaps(take) == ()
    assert find_spikes(take) == ()


@pytest.mark.parametrize("name", WITHOUT_ERRORS[:6])
def test_markers_of_real_people_did_not_slip(recordings, name):
    assert find_marker_slips(marey.segment(marey.read(recordings / name))) == ()


def test_two_labels_of_a_knee_are_swapped_until_frame_731(recordings):
    take = marey.read(recordings / "biobuddy_functional" / "right_hip.c3d")
    (swap,) = find_swaps(take)
    assert (set(swap.labels), swap.first, swap.last) == ({"RLFE", "RMFE"}, 0, 731)
    assert swap.misfit_after < 0.2 * swap.misfit_before


def test_labels_of_a_wrist_and_a_toe_are_swapped_to_the_end(recordings):
    take = marey.read(recordings / "gatech_vsk" / "nick_freeform_001.c3d")
    (swap,) = find_swaps(take)
    assert set(swap.labels) == {"Nick01:RIWR", "Nick01:RTOE"}
    assert (swap.first, swap.last) == (975, take.n_frames - 1)
    assert swap.misfit_after < 0.01 < 0.5 < swap.misfit_before


def test_swaps_added_to_a_real_walk_are_undone_without_rounding(recordings):
    take = marey.read(recordings / "cmu" / "02_01.c3d")
    points = take.points.copy()
    names = [label.rpartition(":")[2] for label in take.labels]
    spans = [
        ("LKNE", "RKNE", 60, 99),
        ("LFHD", "RFHD", 150, 180),
        ("RTOE", "RMT5", 300, 342),
    ]
    for one, other, first, last in spans:
        pair = [names.index(one), names.index(other)]
        points[first : last + 1, pair] = take.points[first : last + 1, pair[::-1]]
    clean = marey.clean(replace(take, points=points))
    np.testing.assert_array_equal(clean.points, take.points)


@pytest.mark.parametrize("name", ["Gait7", "Squat2", "StairUp3"])
def test_zeros_that_software_wrote_for_gaps_become_gaps(recordings, name):
    folder = recordings / "nimble_kuleuven_weirdtrc"
    take = marey.read(folder / f"markers_{name}.trc")
    zero = (take.points == 0.0).all(axis=-1)
    assert 0.002 < zero.mean() < 0.006
    cleaned = marey.clean(take)
    assert np.isnan(cleaned.points[zero]).all()
    assert any(f.code == "points-zero" for f in cleaned.source.findings[1:])
