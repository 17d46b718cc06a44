"""Edits applied to a recorded take, from the command line."""

import pytest

import marey
from marey.cli import main
from marey.edits import Edit, write_edits


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
