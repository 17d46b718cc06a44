"""Real 6-DoF recordings: what cleaning finds in them, and what it leaves alone."""

from dataclasses import replace

import numpy as np
import pytest
from real.loaders import load_hinge

import marey
from marey.clean import find_outliers, find_slips


def test_a_smooth_instrument_has_nothing_to_clean(recordings):
    take = load_hinge(recordings / "mech_hinge")
    assert find_outliers(take) == ()
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
    assert find_slips(bodies, joints, marey.infer_tree(joints)) == ()
    lost = take.sensor_seen & ~marey.clean(take).sensor_seen
    assert lost.mean() < 0.01


def test_a_slip_put_into_a_real_recording_is_found(recordings):
    take = marey.read(recordings / "sixdof_xsens_mvnx" / "test_mocap.mvnx")
    joints = marey.fit_joints(marey.segment(take))
    tree = marey.infer_tree(joints)
    sensor, frame = len(take.sensor_names) // 2, take.n_frames // 2
    T = take.T_world_sensor.copy()
    T[frame:, sensor, :3, 3] += 0.02 * T[frame:, sensor, :3, 0]
    (slip,) = find_slips(marey.segment(replace(take, T_world_sensor=T)), joints, tree)
    assert slip.sensor == take.sensor_names[sensor]
    assert abs(slip.frame - frame) <= 1
    np.testing.assert_allclose(slip.size, 0.02, atol=0.003)
