"""3-D keypoints of DeepLabCut and Anipose, with confidences."""

import json
import os
import sys

import foreign
import h5py
import numpy as np
import pytest

import marey
from marey.errors import FormatError, MissingExtraError
from marey.io.formats import hdf5

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


def write_sequence(folder, numbers, parts=("pose",)):
    """Files of OpenPose, one per frame: x is the number of the frame."""
    for number in numbers:
        person = {f"{part}_keypoints_3d": [number, 2, 3, 0.5] * 25 for part in parts}
        path = folder / f"walk_{number:012d}_keypoints.json"
        path.write_text(json.dumps({"version": 1.3, "people": [person]}))
    return path


def test_any_file_of_a_sequence_stands_for_all(tmp_path):
    write_sequence(tmp_path, [7, 8, 10])
    (tmp_path / "other_000000000009_keypoints.json").write_text("{}")
    takes = [marey.read(path, up="z") for path in sorted(tmp_path.glob("walk*"))]
    for take in takes:
        assert take.source.format == "openpose"
        assert take.labels[:3] == ("Nose", "Neck", "RShoulder")
        np.testing.assert_array_equal(take.points[:, 0, 0], [7.0, 8.0, np.nan, 10.0])
        np.testing.assert_array_equal(take.confidence[:, 4], [0.5, 0.5, np.nan, 0.5])


def test_numbers_that_count_no_frames_are_refused(tmp_path):
    path = write_sequence(tmp_path, [1, 10**9 + 7, 10**11])
    with pytest.raises(FormatError, match="numbered by their frames"):
        marey.read(path)


def test_what_openpose_did_not_find_is_a_gap(tmp_path):
    path = tmp_path / "all.json"
    path.write_bytes(foreign.FILES["openpose"])
    take = marey.read(path)
    assert take.rate == 30.0
    assert not take.seen[1, 1]
    assert take.confidence[1, 1] == 0.0
    assert take.points[0, 0, 2] == pytest.approx(1.6), "y points down"


def test_people_and_hands_have_names_of_their_own(tmp_path):
    people = [
        {"person_id": [k], "hand_left_keypoints_3d": [k, 2, 3, 1]} for k in (0, 4)
    ]
    path = tmp_path / "hands.json"
    path.write_text(json.dumps([{"people": people}]))
    assert marey.read(path).full_labels == (
        "person0:hand_left_0",
        "person4:hand_left_0",
    )


def test_flat_json_is_refused(tmp_path):
    path = tmp_path / "flat.json"
    path.write_text('{"people": [{"pose_keypoints_2d": [1, 2, 0.5]}]}')
    with pytest.raises(FormatError, match="x, y and z"):
        marey.read(path)


def test_a_markerless_trial_has_the_origins_of_its_segments(tmp_path):
    path = tmp_path / "walk-3d-data.json"
    path.write_bytes(foreign.FILES["markerless"])
    take = marey.read(path)
    assert (take.labels, take.rate) == (("Pelvis", "RHip"), 85.0)
    np.testing.assert_allclose(take.points[0], [[0.1, 0.2, 0.95], [0.1, 0.3, 0.9]])
    assert not take.seen[1, 1]
    assert "rotations-left-out" in {f.code for f in take.source.findings}


def test_segments_computed_from_markers_are_left_out_unless_wanted(tmp_path):
    content = json.loads(foreign.FILES["markerless"])
    content["labels"] = [{"name": "Chest"}]
    for frame in content["frames"]:
        frame["markers"] = [[1.0, 2.0, 3.0]]
    path = tmp_path / "swing-3d-data.json"
    path.write_text(json.dumps(content))
    assert marey.read(path).labels == ("Chest",)
    assert marey.read(path, computed=True).labels == ("Pelvis", "RHip", "Chest")
    content["frames"][1]["markers"] *= 2
    path.write_text(json.dumps(content))
    with pytest.raises(FormatError, match="2 markers of 1"):
        marey.read(path)


def test_sleap_has_animals_gaps_and_scores(tmp_path):
    path = tmp_path / "a.analysis.h5"
    path.write_bytes(foreign.FILES["hdf5"])
    take = marey.read(path, unit="m", rate=50.0)
    with h5py.File(path) as file:
        tracks, scores = file["tracks"][()], file["point_scores"][()]
    assert take.full_labels[:4] == ("ann:nose", "ann:neck", "ann:tail", "bob:nose")
    np.testing.assert_allclose(take.points[:, 4], tracks[1, :, 1].T)
    np.testing.assert_array_equal(take.confidence[:, 4], scores[1, 1])
    assert not take.seen[2, 3]


def test_frames_first_as_sleap_anipose_writes_them(tmp_path):
    tracks = np.random.default_rng(0).normal(size=(7, 1, 4, 3))
    with h5py.File(tmp_path / "points3d.h5", "w") as file:
        file["tracks"] = tracks
    take = marey.read(tmp_path / "points3d.h5", unit="m")
    np.testing.assert_allclose(take.points, tracks[:, 0])
    assert take.labels == ("M1", "M2", "M3", "M4")


@pytest.mark.parametrize("shape", [(1, 2, 4, 7), (3, 4), (7, 1, 4, 2)])
def test_flat_tracks_are_refused(shape, tmp_path):
    with h5py.File(tmp_path / "flat.h5", "w") as file:
        file["tracks"] = np.zeros(shape)
    with pytest.raises(FormatError, match=r"x, y and z|4 dimensions"):
        marey.read(tmp_path / "flat.h5")


def test_our_dataset_comes_back_from_netcdf(tmp_path):
    take = read(tmp_path, DEEPLABCUT, unit="m", rate=30.0)
    take.to_xarray().to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    again = marey.read(tmp_path / "a.nc")
    assert (again.rate, again.labels) == (30.0, take.labels)
    np.testing.assert_array_equal(again.points, take.points)
    np.testing.assert_array_equal(again.confidence, take.confidence)
    assert not again.source.findings


def test_axes_of_movement_are_found_by_name(tmp_path):
    take = read(tmp_path, DEEPLABCUT, unit="m", rate=30.0)
    dataset = take.to_xarray().transpose("time", "individual", "keypoint", "space")
    dataset = dataset.rename(individual="individuals", keypoint="keypoints")
    del dataset.attrs["fps"]
    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    again = marey.read(tmp_path / "a.nc")
    assert again.rate == pytest.approx(30.0)
    np.testing.assert_array_equal(again.points, take.points)


def test_a_library_that_never_returns_is_ended(tmp_path, monkeypatch):
    (tmp_path / "endless.py").write_text("def read(path):\n    while True: pass")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(hdf5, "READER", "endless:read")
    monkeypatch.setattr(hdf5, "SECONDS", 0.2)
    path = tmp_path / "a.h5"
    path.write_bytes(foreign.FILES["hdf5"])
    with pytest.raises(FormatError, match="does not read in"):
        marey.read(path)


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    path.write_bytes(foreign.FILES["hdf5"])
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match="tables"):
        marey.read(path)
