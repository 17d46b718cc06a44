"""Edits applied to recorded takes."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey.cli import main
from marey.edits import Edit, write_edits
from marey.numerics import geometry


def test_a_recorded_walk_is_corrected_and_written(recordings, tmp_path):
    """A thigh marker is moved to the hips and back: the skeleton is the same."""
    walk = recordings / "cmu" / "07_01.c3d"
    wrong = Edit(do="move-marker", marker="LTHI", to="Hips")
    right = Edit(do="move-marker", marker="LTHI", to="LeftUpperLeg")
    edits = tmp_path / "walk.edits.toml"
    write_edits([wrong, right, Edit(do="rename", name="Hips", to="pelvis")], edits)
    out = tmp_path / "walk.bvh"
    with pytest.raises(SystemExit) as stop:
        main(["solve", str(walk), "--edits", str(edits), "-o", str(out), "--quiet"])
    assert stop.value.code == 0
    session = marey.EditSession(walk)
    corrected, found = marey.read_skeleton(out), session.solution.skeleton
    lengths = dict(zip(corrected.names, corrected.lengths, strict=True))
    assert corrected.names[0] == "pelvis"
    for name, length in zip(found.names[1:], found.lengths[1:], strict=True):
        assert lengths[name] == pytest.approx(length, abs=1e-5)
    trial = session.attempt(wrong)
    assert trial.after.marker_rms > 1.2 * trial.before.marker_rms


def test_a_knocked_foot_of_a_recorded_suit_is_calibrated_again(recordings):
    """The foot is 21 degrees off from where it was knocked, and 0.3 once calibrated."""
    take = marey.read(recordings / "sixdof_xsens_mvnx" / "test_mocap.mvnx")
    knock = geometry.transform(
        geometry.rotation_exp(np.array([0.3, 0.0, 0.2])), np.array([0.02, 0.01, 0.0])
    )
    T, frame, foot = take.T_world_sensor.copy(), 56, "LeftFoot"
    T[frame:, take.sensor_names.index(foot)] @= knock
    knocked = replace(take, T_world_sensor=T)
    rest = Edit(do="null-model", first=frame, last=frame, sensors=(foot,))

    def foot_rotations(recording, *edits):
        motion = marey.solve(recording, edits=edits).motion
        return motion.T_world_joint()[frame:, motion.skeleton.index(foot), :3, :3]

    true = foot_rotations(take)
    for edits, least, most in (((), 10.0, 30.0), ((rest,), 0.0, 1.0)):
        R = true.swapaxes(1, 2) @ foot_rotations(knocked, *edits)
        error = np.degrees(np.linalg.norm(geometry.rotation_log(R), axis=1))
        assert least <= np.median(error) < most
