"""3-D keypoints of DeepLabCut and Anipose, with confidences."""

import numpy as np
import pytest

import marey
from marey.errors import FormatError

DEEPLABCUT = """scorer,DLC,DLC,DLC,DLC,DLC,DLC,DLC,DLC
bodyparts,nose,nose,nose,nose,tail,tail,tail,tail
coords,x,y,z,likelihood,x,y,z,likelihood
0,1.0,2.0,3.0,0.9,4.0,5.0,6.0,0.8
1,1.5,2.5,3.5,0.95,,,,0.1
"""
ANIPOSE = """nose_x,nose_y,nose_z,nose_error,nose_score,nose_ncams,fnum
1.0,2.0,3.0,0.5,0.9,3,0
1.5,2.5,3.5,0.5,0.95,3,1
"""


def read(tmp_path, text, **options):
    path = tmp_path / "keypoints.csv"
    path.write_text(text)
    return marey.read(path, **options)


def test_deeplabcut_has_places_gaps_and_confidences(tmp_path):
    take = read(tmp_path, DEEPLABCUT, unit="m", rate=30.0)
    assert take.source.format == "keypoints"
    assert take.labels == ("nose", "tail")
    np.testing.assert_array_equal(take.points[:, 0], [[1, 2, 3], [1.5, 2.5, 3.5]])
    assert not take.seen[1, 1]
    np.testing.assert_array_equal(take.confidence, [[0.9, 0.8], [0.95, 0.1]])


def test_animals_of_deeplabcut_are_subjects(tmp_path):
    lines = DEEPLABCUT.splitlines()
    lines.insert(1, "individuals," + ",".join(["one"] * 4 + ["two"] * 4))
    take = read(tmp_path, "\n".join(lines) + "\n", unit="m", rate=30.0)
    assert take.full_labels == ("one:nose", "two:tail")


def test_anipose_has_scores_and_no_other_columns(tmp_path):
    take = read(tmp_path, ANIPOSE, unit="mm", rate=30.0)
    assert take.labels == ("nose",)
    np.testing.assert_allclose(take.points[1, 0], [0.0015, 0.0025, 0.0035])
    np.testing.assert_array_equal(take.confidence[:, 0], [0.9, 0.95])


def test_keypoints_in_a_picture_are_refused(tmp_path):
    flat = "scorer,D,D,D\nbodyparts,nose,nose,nose\ncoords,x,y,likelihood\n0,1,2,0.9\n"
    with pytest.raises(FormatError, match="x, y and z"):
        read(tmp_path, flat)


def test_unit_and_rate_are_assumed_with_findings(tmp_path):
    codes = {f.code for f in read(tmp_path, DEEPLABCUT).source.findings}
    assert {"unit-assumed", "rate-assumed"} <= codes


def test_confidences_go_with_their_markers_and_frames(tmp_path):
    take = read(tmp_path, DEEPLABCUT, unit="m", rate=30.0)
    np.testing.assert_array_equal(take.select([1]).confidence, [[0.8], [0.1]])
    np.testing.assert_array_equal(take.cut(1, 2).confidence, [[0.95, 0.1]])
    marey.write(take, tmp_path / "a.marey")
    kept = marey.read(tmp_path / "a.marey")
    np.testing.assert_array_equal(kept.confidence, take.confidence)
    lost = {f.subject for f in marey.write(take, tmp_path / "a.trc")}
    assert "confidence" in lost
