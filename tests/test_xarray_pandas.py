"""Recordings and motions as datasets of xarray and tables of pandas."""

import sys

import numpy as np
import pytest
import samples

import marey
from marey import synth
from marey.errors import MissingExtraError

xarray = pytest.importorskip("xarray")
pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def walk():
    return synth.human(seed=3).record("walk", seconds=0.2, rate=50.0).truth.motion


def test_every_marker_is_found_by_its_name_and_subject():
    take = samples.take()
    data = take.to_xarray()
    assert data.position.dims == ("time", "space", "keypoint", "individual")
    assert data.attrs["fps"] == take.rate
    for k, (label, subject) in enumerate(zip(take.labels, take.subjects, strict=True)):
        found = data.position.sel(keypoint=label, individual=subject or "Ann")
        np.testing.assert_array_equal(found, take.points[:, k])
    np.testing.assert_array_equal(data.time, take.times)


def test_sensors_have_rotations_and_markers_have_none():
    data = samples.take().to_xarray()
    assert np.isfinite(data.rotation.sel(keypoint="pelvis", individual="Ann")).all()
    assert np.isnan(data.rotation.sel(keypoint="C7")).all()


def test_joints_of_a_motion_keep_places_and_tree(walk):
    data = walk.to_xarray("Ann")
    T = walk.T_world_joint()
    knee = walk.skeleton.index("LeftLowerLeg")
    found = data.position.sel(keypoint="LeftLowerLeg", individual="Ann")
    np.testing.assert_array_equal(found, T[:, knee, :3, 3])
    assert data.parent.sel(keypoint="LeftLowerLeg") == "LeftUpperLeg"


def test_a_dataset_survives_netcdf(tmp_path):
    pytest.importorskip("h5netcdf")
    data = samples.take().to_xarray()
    data.to_netcdf(tmp_path / "take.nc", engine="h5netcdf")
    with xarray.open_dataset(tmp_path / "take.nc", engine="h5netcdf") as found:
        xarray.testing.assert_identical(found.load(), data)


def test_a_solution_is_one_table_of_takes_subjects_and_joints(walk):
    take = walk_as_take(walk)
    solution = marey.solve([take, take])
    table = solution.to_pandas()
    assert len(table) == 2 * walk.n_frames
    motion = solution.subjects[0].motions[1]
    for joint, name in enumerate(motion.skeleton.names):
        found = table[solution.subjects[0].name, name].loc[1][["x", "y", "z"]]
        np.testing.assert_array_equal(found, motion.T_world_joint()[:, joint, :3, 3])


def walk_as_take(walk):
    keep = [walk.skeleton.index(name) for name in ("Hips", "LeftUpperLeg")]
    return marey.Take(
        rate=walk.rate,
        T_world_sensor=walk.T_world_joint()[:, keep],
        sensor_names=("pelvis", "thigh"),
    )


def test_angles_are_a_table_over_time(walk):
    angles = marey.angles(walk)
    table = angles.to_pandas()
    assert list(table.columns) == list(angles.names)
    knee = table["left_knee_flexion"]
    np.testing.assert_array_equal(knee, angles["left_knee_flexion"])
    assert table.attrs["unit"] == "deg"


def test_without_the_package_the_error_has_the_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(MissingExtraError, match="tables"):
        samples.take().to_xarray()
