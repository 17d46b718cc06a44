"""What other programs expect: rest pose, place, rate, frames, content of tables."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import synth
from marey.anatomy.name_schemes import recognise_joints
from marey.errors import DataError, OptionError
from marey.io.conventions import Conventions, apply_conventions
from marey.motion import Contact

SCHEMES = ("vrm", "humanik", "mixamo", "unreal", "cmu", "smpl", "opensim")


@pytest.fixture(scope="module")
def recording():
    return synth.human(seed=3).record("walk", seconds=0.5, rate=50.0)


@pytest.fixture(scope="module")
def walk(recording):
    return recording.truth.motion


def changed(motion, **conventions):
    return apply_conventions(motion, Conventions(**conventions))[0]


def places(motion):
    return motion.T_world_joint()[..., :3, 3]


@pytest.mark.parametrize("rest", ["t", "a", "n", "first"])
def test_another_rest_pose_moves_no_joint_and_no_marker(walk, rest):
    found = changed(walk, rest=rest)
    np.testing.assert_allclose(places(found), places(walk), atol=1e-9)
    np.testing.assert_allclose(found.marker_points(), walk.marker_points(), atol=1e-9)


@pytest.mark.parametrize(("rest", "drop"), [("t", 0.0), ("a", 45.0), ("n", 90.0)])
def test_arms_at_rest_are_where_the_pose_has_them(walk, rest, drop):
    skeleton = changed(walk, rest=rest).skeleton
    place = skeleton.rest()[:, :3, 3]
    for side, sign in (("Left", 1.0), ("Right", -1.0)):
        for bone in (("UpperArm", "LowerArm"), ("LowerArm", "Hand")):
            start, end = (place[skeleton.index(side + part)] for part in bone)
            direction = (end - start) / np.linalg.norm(end - start)
            radians = np.deg2rad(drop)
            wanted = [0.0, sign * np.cos(radians), -np.sin(radians)]
            np.testing.assert_allclose(direction, wanted, atol=1e-9)


def test_the_first_frame_is_the_rest_pose_and_has_no_rotation(walk):
    found = changed(walk, rest="first")
    np.testing.assert_allclose(np.abs(found.wxyz[0, :, 0]), 1.0, atol=1e-12)


def test_there_and_back_is_the_same_rest_pose(walk):
    back = changed(changed(walk, rest="n"), rest="t")
    wanted = changed(walk, rest="t")
    np.testing.assert_allclose(back.skeleton.offset, wanted.skeleton.offset, atol=1e-9)
    np.testing.assert_allclose(back.T_world_joint(), wanted.T_world_joint(), atol=1e-9)


def test_limits_that_a_rest_pose_bends_are_reported(walk):
    limits = np.full((walk.skeleton.n_joints, 3, 2), np.nan)
    limits[walk.skeleton.index("LeftUpperArm")] = [-1.0, 1.0]
    limited = replace(walk, skeleton=replace(walk.skeleton, limits=limits))
    found, findings = apply_conventions(limited, Conventions(rest="n"))
    assert [finding.code for finding in findings] == ["rest-limits-lost"]
    assert not np.isfinite(found.skeleton.limits).any()


def test_a_motion_on_the_ground_starts_at_the_origin(walk):
    anchor = np.array([0.3, 0.2, 0.1])
    contact = Contact("LeftFoot", 0.0, 0.1, anchor)
    moved = changed(replace(walk, contacts=(contact,)), root_on_ground=True)
    assert places(moved)[..., 2].min() == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(places(moved)[0, 0, :2], 0.0, atol=1e-12)
    shift = places(moved)[0, 0] - places(walk)[0, 0]
    np.testing.assert_allclose(moved.contacts[0].anchor, anchor + shift, atol=1e-12)


@pytest.mark.parametrize("rate", [25.0, 50.0, 120.0])
def test_a_recording_at_another_rate_passes_through_its_frames(recording, rate):
    take = marey.Take(
        rate=recording.rate, points=recording.points, labels=recording.labels
    )
    found = changed(take, rate=rate)
    assert found.rate == rate
    assert found.duration == pytest.approx(take.duration, abs=1.0 / rate)
    same = np.flatnonzero(np.isin(np.round(found.times, 9), np.round(take.times, 9)))
    frames = np.round(found.times[same] * take.rate).astype(int)
    assert len(same) > 1
    np.testing.assert_array_equal(found.points[same], take.points[frames])


def test_frames_and_rate_of_a_file(walk, tmp_path):
    path = tmp_path / "walk.bvh"
    marey.write(walk, path, frames=(5, 15), rate=100.0)
    found = marey.read_motion(path)
    assert (found.rate, found.n_frames) == (pytest.approx(100.0), 19)
    order = [walk.skeleton.index(name) for name in found.skeleton.names]
    wanted = places(walk)[5:15, order]
    np.testing.assert_allclose(places(found)[::2], wanted, atol=2e-6)


@pytest.mark.parametrize("bad", [{"rest": "x"}, {"rate": 0.0}])
def test_what_is_no_convention_is_refused(bad):
    with pytest.raises(OptionError):
        Conventions(**bad)


def test_frames_beyond_the_end_and_poses_of_a_dog_are_refused(walk, tmp_path):
    with pytest.raises(DataError):
        marey.write(walk, tmp_path / "a.bvh", frames=(0, 10_000))
    dog = synth.quadruped().record("walk", seconds=0.1).truth.motion
    with pytest.raises(OptionError, match="person"):
        marey.write(dog, tmp_path / "a.bvh", rest="t")
    marey.write(dog, tmp_path / "a.bvh", rest="first")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_joints_of_both_schemes_stay_through_names_of_another_program(
    walk, scheme, tmp_path
):
    """Written with the names of a program, read, and written with marey's again."""
    marey.write(walk, there := tmp_path / "there.marey", names=scheme)
    back = tmp_path / "back.marey"
    marey.write(marey.load(there), back, names="vrm")
    found = marey.load(back)
    known = {name: i for i, name in recognise_joints(found.skeleton.names).items()}
    limbs = [n for n in walk.skeleton.names if n.startswith(("Left", "Right", "Hips"))]
    both = [n for n in limbs if n in known and "Shoulder" not in n]
    assert len(both) >= 15
    ours = places(walk)[:, [walk.skeleton.index(n) for n in both]]
    theirs = places(found)[:, [known[n] for n in both]]
    np.testing.assert_allclose(theirs, ours, atol=1e-6)


def test_contacts_have_the_new_names_of_their_joints(walk, tmp_path):
    contact = Contact("LeftFoot", 0.0, 0.1, np.zeros(3))
    planted = replace(walk, contacts=(contact,))
    marey.write(planted, path := tmp_path / "a.marey", names="unreal")
    found = marey.load(path)
    assert [contact.joint for contact in found.contacts] == ["foot_l"]
    marey.write(planted, tmp_path / "a.csv", names="unreal", content="angles")


# --- content of tables ----------------------------------------------------------------


def columns(path):
    with path.open() as file:
        names = file.readline().strip().split(",")
    return names, np.genfromtxt(path, delimiter=",", skip_header=1)


def test_a_table_of_angles_has_the_clinical_angles(walk, tmp_path):
    marey.write(walk, path := tmp_path / "walk.csv", content="angles")
    names, values = columns(path)
    angles = marey.angles(walk)
    assert names == ["time", *angles.names]
    np.testing.assert_allclose(values[:, 0], walk.times, atol=1e-9)
    np.testing.assert_allclose(values[:, 1:], angles.degrees, atol=1e-8)


def test_angles_do_not_depend_on_rest_pose_and_names(walk, tmp_path):
    marey.write(walk, tmp_path / "a.csv", content="angles")
    path = tmp_path / "b.csv"
    marey.write(walk, path, content="angles", rest="first", names="mixamo")
    assert (tmp_path / "a.csv").read_bytes() == path.read_bytes()


def test_parquet_has_the_same_table_with_units(walk, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    marey.write(walk, path := tmp_path / "walk.parquet", content="angles")
    table = parquet.read_table(path)
    angles = marey.angles(walk)
    assert table.column_names == ["time", *angles.names]
    units = {table.schema.field(n).metadata[b"unit"] for n in angles.names}
    assert units == {b"deg"}
    knee = table["left_knee_flexion"].to_numpy()
    np.testing.assert_array_equal(knee, angles["left_knee_flexion"])


def test_coordinates_of_a_table_are_those_of_the_model(walk, tmp_path):
    marey.write(walk, path := tmp_path / "walk.csv", content="coordinates")
    marey.write(walk, tmp_path / "walk.mot")
    names, values = columns(path)
    lines = (tmp_path / "walk.mot").read_text().split("endheader\n")[1].splitlines()
    assert names == lines[0].split("\t")
    numbers = np.array([line.split("\t") for line in lines[1:]], dtype=float)
    np.testing.assert_allclose(values, numbers, atol=1e-6)


def test_a_table_of_a_motion_has_its_joints_unless_asked_otherwise(walk, tmp_path):
    marey.write(walk, tmp_path / "joints.csv")
    assert marey.read(tmp_path / "joints.csv").sensor_names
    marey.write(walk, tmp_path / "markers.csv", content="markers")
    take = marey.read(tmp_path / "markers.csv")
    np.testing.assert_allclose(take.points, walk.marker_points(), atol=1e-8)


@pytest.mark.parametrize(
    ("name", "content"), [("a.bvh", "angles"), ("a.bvh", "joints"), ("a.csv", "x")]
)
def test_content_that_a_format_cannot_hold_is_refused(walk, tmp_path, name, content):
    with pytest.raises(OptionError, match="content"):
        marey.write(walk, tmp_path / name, content=content)
    assert not list(tmp_path.iterdir())
