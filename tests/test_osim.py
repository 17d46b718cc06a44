"""OpenSim models: kinematics by the letter of the file, names and signs of people.

`make interop` has OpenSim itself read such files.
"""

import xml.etree.ElementTree as ET
from dataclasses import replace

import multibodies
import numpy as np
import pytest
import samples
import test_solution

import marey
from marey.cli import main
from marey.io.solution_files import write_solution
from marey.io.units_axes import rotation_to_z_up
from marey.numerics import geometry


def with_universal_knees():
    """A walk on knees, bent at rest, that rotate about two axes, in both orders."""
    motion = multibodies.person()
    skeleton, count = motion.skeleton, motion.n_frames
    bend = np.linspace(0.2, 1.0, count)[:, None] * [0.0, 1.0, 0.0]
    yaw = np.linspace(-0.2, 0.3, count)[:, None] * [0.0, 0.0, 1.0]
    kind, axes, offset = (
        list(skeleton.kind),
        skeleton.axes.copy(),
        skeleton.offset.copy(),
    )
    wxyz = motion.wxyz.copy()
    for side, turns in (("Left", (bend, yaw)), ("Right", (yaw, bend))):
        knee = skeleton.index(f"{side}LowerLeg")
        kind[knee] = "universal"
        axes[knee] = [vector[-1] / np.linalg.norm(vector[-1]) for vector in turns]
        wxyz[:, knee] = geometry.quat_multiply(*map(geometry.quat_exp, turns))
        offset[skeleton.index(f"{side}Foot"), 0] -= 0.05
    limits = np.full_like(skeleton.limits, np.nan)
    skeleton = replace(
        skeleton, kind=tuple(kind), axes=axes, offset=offset, limits=limits
    )
    return replace(motion, skeleton=skeleton, wxyz=wxyz)


MOTIONS = {
    "person": multibodies.person,
    "figure": multibodies.figure,
    "universal knees": with_universal_knees,
    "walker": multibodies.walker,
}


# --- a naive reader ------------------------------------------------------------------


def read_table(path):
    """Return the columns of a .mot by name: radians and metres."""
    head, _, body = path.read_text(encoding="utf-8").partition("endheader\n")
    assert "inDegrees=yes" in head
    names, *rows = (line.split("\t") for line in body.splitlines())
    values = np.array(rows, dtype=float)
    assert f"nRows={len(rows)}\nnColumns={len(names)}" in head
    columns = dict(zip(names, values.T, strict=True))
    lengths = {name for name in names if name.endswith(("_tx", "_ty", "_tz", "time"))}
    return {n: v if n in lengths else np.deg2rad(v) for n, v in columns.items()}


def numbers(element, tag):
    return np.array(element.findtext(tag).split(), dtype=float)


def offset_pose(frame):
    R = geometry.matrix_from_euler(numbers(frame, "orientation"), "XYZ")
    return geometry.transform(R, numbers(frame, "translation"))


def joint_poses(joint, columns):
    """Return the pose of the child frame in the parent frame at every row."""
    count = len(columns["time"])
    R, p = np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3))
    if joint.tag == "PinJoint":
        name = joint.find("coordinates/Coordinate").get("name")
        R = geometry.rotation_exp(columns[name][:, None] * np.eye(3)[2])
        return geometry.transform(R, p)
    for axis in joint.find("SpatialTransform"):
        name = axis.findtext("coordinates")
        angle = columns[name] if name else np.zeros(count)
        along = angle[:, None] * numbers(axis, "axis")
        if axis.get("name").startswith("rotation"):
            R = R @ geometry.rotation_exp(along)
        else:
            p = p + along
    return geometry.transform(R, p)


def play(folder, stem="a"):
    """Return poses of bodies and positions of markers, by name and with Z up."""
    model = ET.parse(folder / f"{stem}.osim").getroot().find("Model")
    columns = read_table(folder / f"{stem}.mot")
    poses = {"/ground": geometry.transform(np.eye(3), np.zeros((1, 3)))}
    for joint in model.find("JointSet/objects"):
        parent, child = joint.findall("frames/PhysicalOffsetFrame")
        T = poses[parent.findtext("socket_parent")] @ offset_pose(parent)
        T = T @ joint_poses(joint, columns) @ geometry.inverse(offset_pose(child))
        poses[child.findtext("socket_parent")] = T
    for body in model.find("BodySet/objects"):
        path = f"/bodyset/{body.get('name')}"
        for frame in body.findall("components/PhysicalOffsetFrame"):
            poses.setdefault(
                f"/bodyset/{frame.get('name')}", poses[path] @ offset_pose(frame)
            )
    up = rotation_to_z_up("y")
    joints = {name.split("/")[-1]: T[..., :3, 3] @ up.T for name, T in poses.items()}
    markers = {
        m.get("name"): geometry.apply(
            poses[m.findtext("socket_parent_frame")], numbers(m, "location")
        )
        @ up.T
        for m in model.find("MarkerSet/objects")
    }
    return joints, markers


@pytest.mark.parametrize("name", MOTIONS)
def test_the_table_moves_the_model_as_the_motion_does(name, tmp_path):
    motion = MOTIONS[name]()
    marey.write(motion, tmp_path / "a.osim")
    joints, markers = play(tmp_path)
    wanted = motion.T_world_joint()[..., :3, 3]
    for k, joint in enumerate(motion.skeleton.names):
        np.testing.assert_allclose(joints[joint], wanted[:, k], atol=1e-7)
    points = motion.marker_points()
    for k, found in enumerate(markers.values()):
        np.testing.assert_allclose(found, points[:, k], atol=1e-7)


# --- people --------------------------------------------------------------------------


def posed(*poses):
    """A person with hanging arms; in each frame one joint is rotated by a vector.

    The vector, in degrees, is in the axes of the world of a person that faces +x.
    """
    motion = multibodies.person()
    skeleton, count = motion.skeleton, len(poses)
    wxyz = np.tile([1.0, 0.0, 0.0, 0.0], (count, skeleton.n_joints, 1))
    for side, down in (("Left", -0.5 * np.pi), ("Right", 0.5 * np.pi)):
        arm = skeleton.index(f"{side}UpperArm")
        wxyz[:, arm] = geometry.quat_exp(down * FORWARD)
    for frame, (joint, degrees) in enumerate(poses):
        k = skeleton.index(joint)
        R = geometry.quat_exp(np.deg2rad(degrees))
        wxyz[frame, k] = geometry.quat_multiply(R, wxyz[frame, k])
    T = geometry.transform(
        geometry.matrix_from_quat(wxyz[:, 0]), np.tile(skeleton.offset[0], (count, 1))
    )
    return marey.Motion(skeleton=skeleton, T_world_root=T, wxyz=wxyz, rate=10.0)


FORWARD, LEFT, UP = np.eye(3)
"""Of a person that faces +x."""

SIGNS = {
    "pelvis_tilt": ("Hips", -20.0 * LEFT),
    "pelvis_list": ("Hips", 20.0 * FORWARD),
    "pelvis_rotation": ("Hips", 20.0 * UP),
    "lumbar_extension": ("Spine", -20.0 * LEFT),
    "lumbar_rotation": ("Spine", 20.0 * UP),
    "hip_flexion_r": ("RightUpperLeg", -20.0 * LEFT),
    "hip_flexion_l": ("LeftUpperLeg", -20.0 * LEFT),
    "hip_adduction_r": ("RightUpperLeg", 20.0 * FORWARD),
    "hip_adduction_l": ("LeftUpperLeg", -20.0 * FORWARD),
    "hip_rotation_r": ("RightUpperLeg", 20.0 * UP),
    "hip_rotation_l": ("LeftUpperLeg", -20.0 * UP),
    "knee_angle_r": ("RightLowerLeg", 20.0 * LEFT),
    "knee_angle_l": ("LeftLowerLeg", 20.0 * LEFT),
    "ankle_angle_r": ("RightFoot", -20.0 * LEFT),
    "subtalar_angle_l": ("LeftFoot", -20.0 * FORWARD),
    "arm_flex_r": ("RightUpperArm", -20.0 * LEFT),
    "arm_add_l": ("LeftUpperArm", -20.0 * FORWARD),
    "arm_rot_r": ("RightUpperArm", 20.0 * UP),
    "neck_rotation": ("Neck", 20.0 * UP),
}
"""A coordinate, and the rotation by 20 degrees that is all of it."""


def test_coordinates_have_the_names_and_signs_that_opensim_users_know(tmp_path):
    marey.write(posed(*SIGNS.values()), tmp_path / "a.osim")
    columns = read_table(tmp_path / "a.mot")
    for frame, coordinate in enumerate(SIGNS):
        degrees = {
            name: np.rad2deg(values[frame])
            for name, values in columns.items()
            if not name.endswith(("time", "_tx", "_ty", "_tz"))
        }
        found = degrees.pop(coordinate)
        assert found == pytest.approx(20.0, abs=1e-5), coordinate
        assert max(map(abs, degrees.values())) < 1e-5, coordinate


def test_elbows_and_knees_are_zero_when_straight(tmp_path):
    """Here the rest pose has bent knees."""
    motion = posed(("LeftLowerArm", -30.0 * UP))
    offset = motion.skeleton.offset.copy()
    offset[motion.skeleton.index("LeftFoot"), 0] -= 0.05
    motion = replace(motion, skeleton=replace(motion.skeleton, offset=offset))
    marey.write(motion, tmp_path / "a.osim")
    columns = read_table(tmp_path / "a.mot")
    T = motion.T_world_joint()[0, :, :3, 3]
    index = motion.skeleton.index

    def bend(*names):
        a, b, c = (T[index(name)] for name in names)
        u, v = (b - a) / np.linalg.norm(b - a), (c - b) / np.linalg.norm(c - b)
        return np.arccos(u @ v)

    elbow = bend("LeftUpperArm", "LeftLowerArm", "LeftHand")
    assert columns["elbow_flex_l"][0] == pytest.approx(elbow, abs=1e-3)
    knee = bend("LeftUpperLeg", "LeftLowerLeg", "LeftFoot")
    assert columns["knee_angle_l"][0] == pytest.approx(knee, abs=1e-3)


def test_a_hinge_takes_the_name_of_the_nearest_axis(tmp_path):
    motion = posed(("RightLowerLeg", 20.0 * LEFT))
    skeleton, knee = motion.skeleton, motion.skeleton.index("RightLowerLeg")
    axes = skeleton.axes.copy()
    axes[knee, 0] = -LEFT
    kind = list(skeleton.kind)
    kind[knee] = "hinge"
    limits = np.full_like(skeleton.limits, np.nan)
    hinged = replace(skeleton, axes=axes, kind=tuple(kind), limits=limits)
    marey.write(replace(motion, skeleton=hinged), tmp_path / "a.osim")
    columns = read_table(tmp_path / "a.mot")
    assert "knee_rotation_r" not in columns
    assert np.rad2deg(columns["knee_angle_r"][0]) == pytest.approx(20.0, abs=1e-5)
    model = ET.parse(tmp_path / "a.osim").getroot().find("Model")
    (pin,) = model.findall("JointSet/objects/PinJoint")
    assert pin.get("name") == "knee_r"


def test_the_mot_of_a_motion_has_its_model_beside_it(tmp_path):
    motion = samples.motion()
    marey.write(motion, tmp_path / "a.osim")
    marey.write(motion, tmp_path / "b.mot")
    for suffix in (".osim", ".mot"):
        one, other = (tmp_path / f"{name}{suffix}" for name in "ab")
        assert one.read_bytes() == other.read_bytes()
    marey.write(samples.take(sensors=False), tmp_path / "c.mot")
    assert "DataType=Vec3" in (tmp_path / "c.mot").read_text(encoding="utf-8")
    assert not (tmp_path / "c.osim").exists()


def test_names_that_opensim_cannot_spell_are_changed_and_reported(tmp_path):
    motion = multibodies.figure()
    names = ("ground", "a b", "a/b", "é☃", "a<b>", "Arm", "+")
    skeleton = replace(motion.skeleton, names=names, marker_labels=("x y", "x/y"))
    findings = marey.write(replace(motion, skeleton=skeleton), tmp_path / "a.osim")
    assert [f.value for f in findings if f.code == "names-changed"] == [4.0, 2.0]
    joints, markers = play(tmp_path)
    assert set(markers) == {"x_y", "x_y_2"}
    assert {"_ground", "a_b", "a_b_2", "é☃", "a<b>"} <= set(joints)


# --- solutions -----------------------------------------------------------------------


def solved(*subjects):
    """A solution whose take has noisy markers of the figure, in another order."""
    motion = multibodies.figure()
    rng = np.random.default_rng(3)
    points = motion.marker_points()[:, ::-1]
    points = points + 0.001 * rng.normal(size=points.shape)
    take = marey.Take(
        rate=motion.rate,
        points=np.concatenate([points, points[:, :1] + 1.0], axis=1),
        labels=(*motion.skeleton.marker_labels[::-1], "stick"),
        start=motion.start,
    )
    whole = test_solution.solution(subjects=subjects)
    people = (
        replace(s, skeleton=motion.skeleton, motions=(motion,)) for s in whole.subjects
    )
    return replace(whole, takes=(take,), subjects=tuple(people))


def test_a_solution_has_its_markers_in_a_trc_beside_the_model(tmp_path):
    """OpenSim's inverse kinematics finds the same names in both files."""
    solution = solved("Ann")
    marey.write(solution, tmp_path / "a.osim")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"a.osim", "a.mot", "a.trc"}
    _, markers = play(tmp_path)
    take = marey.read(tmp_path / "a.trc", up="y")
    assert list(take.labels) == list(markers)
    np.testing.assert_allclose(take.points, solution.take.points[:, [1, 0]], atol=1e-7)
    assert take.start == pytest.approx(solution.motion.start)


def test_several_subjects_are_several_files_or_an_error(tmp_path):
    both = solved("Ann", "Bob")
    with pytest.raises(marey.DataError, match="Ann, Bob"):
        marey.write(both, tmp_path / "a.osim")
    assert not list(tmp_path.iterdir())
    written, _ = write_solution(both, tmp_path / "a.osim", {}, overwrite=False)
    assert [path.name for path in written] == ["a_Ann_.osim", "a_Bob_.osim"]
    assert all(path.with_suffix(".mot").exists() for path in written)


@pytest.mark.parametrize(
    "fmt",
    [f for f in marey.formats() if f.writes and f.name != "html"],
    ids=lambda fmt: fmt.name,
)
def test_a_format_says_which_files_it_writes_beside_the_named_one(fmt, tmp_path):
    """So that `marey solve` refuses existing ones before the solve."""
    for suffix in fmt.suffixes:
        marey.write(solved("Ann"), tmp_path / f"a{suffix}", overwrite=True)
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {f"a{suffix}", *(f"a{other}" for other in fmt.companions)}
        for name in names:
            (tmp_path / name).unlink()


@pytest.mark.parametrize("beside", [".mot", ".trc"])
def test_an_existing_file_beside_the_model_is_refused_before_the_solve(
    beside, tmp_path, monkeypatch, capsys
):
    recorded = tmp_path / "walk.csv"
    marey.write(samples.take(), recorded)
    kept = tmp_path / f"a{beside}"
    kept.write_text("kept")
    monkeypatch.setattr("marey.editing.solve", lambda *_, **__: pytest.fail("solved"))
    with pytest.raises(SystemExit) as stop:
        main(["solve", str(recorded), "-o", str(tmp_path / "a.osim")])
    assert stop.value.code == 2
    assert f"a{beside}, which exists" in " ".join(capsys.readouterr().err.split())
    assert kept.read_text() == "kept"
