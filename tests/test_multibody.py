"""Rigid bodies for simulators: what MuJoCo and yourdfpy read is what was written."""

from dataclasses import replace

import mujoco
import multibodies
import numpy as np
import pytest
import samples

import marey
from marey.io.multibody.coordinates import RotationSequence, widest_rotation
from marey.numerics import geometry

SUFFIXES = (".mjcf", ".urdf", ".osim")
MOTIONS = {
    "person": multibodies.person,
    "figure": multibodies.figure,
    "walker": multibodies.walker,
}


@pytest.fixture(params=MOTIONS, scope="module")
def motion(request):
    return MOTIONS[request.param]()


def read_poses(folder):
    with np.load(folder / "a.qpos.npz") as archive:
        return dict(archive)


def codes(findings):
    return {finding.code for finding in findings}


# --- what readers see ----------------------------------------------------------------


def test_mujoco_has_all_joints_and_markers_at_all_frames(motion, tmp_path):
    path = tmp_path / "a.mjcf"
    marey.write(motion, path)
    model = multibodies.mujoco_model(path)
    poses = read_poses(tmp_path)
    skeleton = motion.skeleton
    names = (*skeleton.names, *skeleton.marker_labels)
    found = multibodies.mujoco_positions(model, poses["qpos"], names)
    wanted = np.concatenate(
        [motion.T_world_joint()[..., :3, 3], motion.marker_points()], axis=1
    )
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    np.testing.assert_allclose(model.key("first").qpos, poses["qpos"][0], atol=1e-9)
    np.testing.assert_allclose(
        poses["time"], motion.start + np.arange(motion.n_frames) / motion.rate
    )
    columns, rows = multibodies.read_rows(tmp_path / "a.qpos.csv")
    assert columns == ["time", *poses["columns"]]
    np.testing.assert_allclose(rows[:, 1:], poses["qpos"], atol=1e-9)


@pytest.mark.parametrize(
    "read", [multibodies.mujoco_urdf_positions, multibodies.yourdfpy_positions]
)
def test_readers_of_urdf_have_all_joints_at_all_frames(motion, read, tmp_path):
    path = tmp_path / "a.urdf"
    marey.write(motion, path)
    found = read(path, motion.skeleton.names)
    np.testing.assert_allclose(found, motion.T_world_joint()[..., :3, 3], atol=1e-9)


def test_both_models_of_a_person_have_the_same_mass_and_moments(tmp_path):
    """The links between the axes of a ball have a millionth of its mass."""
    motion = multibodies.person()
    marey.write(motion, tmp_path / "a.mjcf")
    marey.write(motion, tmp_path / "a.urdf")
    one, other = (
        multibodies.mujoco_model(tmp_path / f"a.{s}") for s in ("mjcf", "urdf")
    )
    assert one.body_mass.sum() == pytest.approx(other.body_mass.sum(), rel=1e-5)
    for name in ("LeftUpperLeg", "Hips", "RightHand"):
        a, b = one.body(name), other.body(name)
        np.testing.assert_allclose(a.mass, b.mass, rtol=1e-9)
        np.testing.assert_allclose(np.sort(a.inertia), np.sort(b.inertia), rtol=1e-6)
        np.testing.assert_allclose(a.ipos, b.ipos, atol=1e-9)


def test_a_person_weighs_the_same_whatever_program_named_the_joints(tmp_path):
    motion = multibodies.person()
    marey.write(motion, tmp_path / "a.mjcf")
    words = {"Spine": "Spine", "UpperLeg": "UpLeg", "LowerLeg": "Leg"}
    words |= {"UpperArm": "Arm", "LowerArm": "ForeArm", "Chest": "Spine1"}
    names = []
    for name in motion.skeleton.names:
        side = next((s for s in ("Left", "Right") if name.startswith(s)), "")
        part = name.removeprefix(side)
        names.append(f"mixamorig:{side}{words.get(part, part)}")
    skeleton = replace(motion.skeleton, names=tuple(names))
    marey.write(replace(motion, skeleton=skeleton), tmp_path / "b.mjcf")
    one, other = (multibodies.mujoco_model(tmp_path / f"{n}.mjcf") for n in "ab")
    np.testing.assert_allclose(other.body_mass, one.body_mass)
    assert 40.0 < one.body_mass.sum() < 110.0


def test_a_sensor_is_a_site_with_its_orientation(tmp_path):
    motion = multibodies.figure()
    marey.write(motion, tmp_path / "a.mjcf")
    model = multibodies.mujoco_model(tmp_path / "a.mjcf")
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_kinematics(model, data)
    T = motion.T_world_joint()[0, 1] @ motion.skeleton.T_joint_sensor[0]
    np.testing.assert_allclose(
        data.site("thigh").xmat.reshape(3, 3), T[:3, :3], atol=1e-9
    )
    np.testing.assert_allclose(data.site("thigh").xpos, T[:3, 3], atol=1e-9)


def test_the_light_goes_along_with_a_figure_that_walks_away(tmp_path):
    marey.write(multibodies.figure(), tmp_path / "a.mjcf")
    model = multibodies.mujoco_model(tmp_path / "a.mjcf")
    data = mujoco.MjData(model)
    above = []
    for x in (0.0, 100.0):
        data.qpos[0] = x
        mujoco.mj_forward(model, data)
        above.append(data.light_xpos - data.subtree_com[1])
    assert model.nlight == 1
    np.testing.assert_allclose(above[1], above[0], atol=1e-9)
    np.testing.assert_allclose(data.light_xdir, [[0.0, 0.0, -1.0]], atol=1e-9)


def test_limits_of_hinges_are_kept(tmp_path):
    motion = multibodies.figure()
    marey.write(motion, tmp_path / "a.mjcf")
    marey.write(motion, tmp_path / "a.urdf")
    limits = motion.skeleton.limits
    for suffix, (first, second) in {"mjcf": ("1", "2"), "urdf": ("x", "y")}.items():
        model = multibodies.mujoco_model(tmp_path / f"a.{suffix}")
        np.testing.assert_allclose(model.joint("LowerLeg").range, limits[2, 0])
        np.testing.assert_allclose(model.joint(f"Foot_{first}").range, limits[3, 0])
        np.testing.assert_allclose(model.joint(f"Foot_{second}").range, limits[3, 1])
        free = [j for j in range(model.njnt) if not model.jnt_limited[j]]
        assert len(free) == model.njnt - 3


def test_a_person_stands_on_the_ground_in_a_simulation(tmp_path):
    """Half a second of falling with limp joints stays finite and above the ground."""
    marey.write(multibodies.person(), tmp_path / "a.mjcf")
    model = multibodies.mujoco_model(tmp_path / "a.mjcf")
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, nstep=250)
    assert np.isfinite(data.qpos).all()
    assert data.xpos[1:, 2].min() > -0.05


# --- angles about axes ---------------------------------------------------------------


def random_axes(rng, handed):
    axes = geometry.rotation_exp(rng.normal(size=3))
    axes[2] *= handed
    return axes


@pytest.mark.parametrize("handed", [1.0, -1.0])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_angles_give_the_rotations_back(rng, count, handed):
    zero = geometry.rotation_exp(rng.normal(size=3))
    sequence = RotationSequence(random_axes(rng, handed)[:count], zero)
    steps = 0.4 * rng.normal(size=(200, count))
    wanted = np.cumsum(steps, axis=0) * [1.0, 0.1, 1.0][:count]
    R = np.eye(3)
    for k, axis in enumerate(sequence.axes):
        R = R @ geometry.rotation_exp(wanted[:, k, None] * axis)
    wxyz = geometry.quat_from_matrix(R @ zero)
    angles = sequence.angles(wxyz * np.where(np.arange(200) % 2, 1.0, -1.0)[:, None])
    np.testing.assert_allclose(angles, wanted, atol=1e-9)


def limited_ball(rng):
    """A skeleton of two joints whose ball has limits about axes of its own."""
    x, y, _ = geometry.rotation_exp(rng.normal(size=3))
    low, high = -rng.uniform(0.1, 0.7, size=3), rng.uniform(0.1, 0.7, size=3)
    return marey.Skeleton(
        names=("root", "ball"),
        parent=np.array([-1, 0]),
        offset=np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -0.4]]),
        axes=np.array([np.full((2, 3), np.nan), [x, y]]),
        limits=np.array([np.full((3, 2), np.nan), np.stack([low, high], axis=1)]),
    )


def allowed_rotations(rng, skeleton, count=3000):
    (x, y), limits = skeleton.axes[1], skeleton.limits[1]
    a, b, t = rng.uniform(*limits.T, size=(count, 3)).T[..., None]
    swing = geometry.quat_exp(a * x + b * y)
    return geometry.quat_multiply(swing, geometry.quat_exp(t * np.cross(x, y)))


def test_ranges_contain_what_the_limits_allow_and_little_more(rng):
    skeleton = limited_ball(rng)
    x, y = skeleton.axes[1]
    sequence = RotationSequence(np.stack([x, y, np.cross(x, y)]), np.eye(3))
    ranges = sequence.ranges(skeleton, 1)
    wxyz = allowed_rotations(rng, skeleton)
    angles = np.concatenate([sequence.angles(q[None]) for q in wxyz[:100]])
    assert (angles > ranges[:, 0] - 1e-3).all()
    assert (angles < ranges[:, 1] + 1e-3).all()
    assert np.abs(ranges - skeleton.limits[1]).max() < 0.35


def test_the_widest_rotation_bounds_all_that_the_limits_allow(rng):
    skeleton = limited_ball(rng)
    symmetric = np.abs(skeleton.limits).max(axis=2, keepdims=True) * [-1.0, 1.0]
    skeleton = replace(skeleton, limits=symmetric)
    widest = widest_rotation(skeleton, 1)
    wxyz = allowed_rotations(rng, skeleton)
    found = 2.0 * np.arccos(np.clip(np.abs(wxyz[:, 0]), 0.0, 1.0))
    assert 0.8 * widest < found.max() <= widest


def test_one_limit_leaves_the_other_side_and_the_other_angles_free(rng):
    skeleton = limited_ball(rng)
    skeleton.limits[1] = [[-0.2, np.nan], [np.nan, np.nan], [-0.5, 0.5]]
    x, y = skeleton.axes[1]
    sequence = RotationSequence(np.stack([x, y, np.cross(x, y)]), np.eye(3))
    ranges = sequence.ranges(skeleton, 1)
    np.testing.assert_allclose(ranges[0], [-0.2, np.pi])
    assert np.isnan(ranges[1]).all()
    np.testing.assert_allclose(ranges[2], [-0.5, 0.5])


# --- doubtful input ------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_are_written_again_byte_by_byte(suffix, motion, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    for folder in ("one", "two"):
        marey.write(motion, tmp_path / folder / f"a{suffix}")
    first, second = (sorted((tmp_path / f).iterdir()) for f in ("one", "two"))
    assert [path.name for path in first] == [path.name for path in second]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_skeleton_alone_is_written_without_a_motion(suffix, tmp_path):
    marey.write(samples.skeleton(), tmp_path / f"a{suffix}")
    assert [path.suffix for path in tmp_path.iterdir()] == [suffix]


def test_an_xml_is_a_model_of_mujoco_if_asked_for(tmp_path):
    with pytest.raises(marey.OptionError, match="suffix"):
        marey.write(samples.motion(), tmp_path / "a.xml")
    marey.write(samples.motion(), tmp_path / "a.xml", format="mjcf")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"a.xml", "a.qpos.npz", "a.qpos.csv"}
    assert multibodies.mujoco_model(tmp_path / "a.xml").nq == 7 + 4 + 1 + 2 + 4


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_another_unit_or_axis_is_refused(suffix, tmp_path):
    with pytest.raises(marey.OptionError, match="no other"):
        marey.write(samples.motion(), tmp_path / f"a{suffix}", unit="mm")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_frames_at_uneven_times_are_refused(suffix, tmp_path):
    uneven = samples.motion().at(np.array([0.0, 0.01, 0.05]))
    with pytest.raises(marey.DataError, match="resample"):
        marey.write(uneven, tmp_path / f"a{suffix}")


@pytest.mark.parametrize("suffix", [".mjcf", ".urdf"])
def test_odd_names_and_bones_without_length_still_load(suffix, tmp_path):
    motion = samples.motion()
    names = ("world", "a b", "a_b", "é☃", 'a"<b>', "LowerLeg_x", "ground")
    offset = motion.skeleton.offset.copy()
    offset[[2, 4]] = 0.0
    motion = replace(
        motion, skeleton=replace(motion.skeleton, names=names, offset=offset)
    )
    findings = marey.write(motion, tmp_path / f"a{suffix}")
    assert "names-changed" in codes(findings)
    model = multibodies.mujoco_model(tmp_path / f"a{suffix}")
    assert model.nbody > 5


def test_gaps_hold_the_last_pose_and_are_reported(tmp_path):
    whole = samples.motion()
    T, wxyz = whole.T_world_root.copy(), whole.wxyz.copy()
    T[2:4] = np.nan
    wxyz[2:4, 0] = np.nan
    findings = marey.write(
        replace(whole, T_world_root=T, wxyz=wxyz), tmp_path / "a.mjcf"
    )
    assert [f.subject for f in findings if f.code == "lost"] == ["gaps"]
    qpos = read_poses(tmp_path)["qpos"]
    np.testing.assert_array_equal(qpos[2:4, :7], qpos[[1, 1], :7])
    findings = marey.write(
        replace(whole, T_world_root=T, wxyz=wxyz), tmp_path / "a.mot"
    )
    assert [f.subject for f in findings if f.code == "lost"] == ["gaps"]


def test_a_joint_that_leaves_its_kind_is_written_as_a_ball(tmp_path):
    motion = samples.motion()
    wxyz = motion.wxyz.copy()
    wxyz[:, 2] = motion.wxyz[:, 1]
    motion = replace(motion, wxyz=wxyz)
    findings = marey.write(motion, tmp_path / "a.mjcf")
    assert "kinds-lost" in codes(findings)
    model = multibodies.mujoco_model(tmp_path / "a.mjcf")
    qpos = read_poses(tmp_path)["qpos"]
    found = multibodies.mujoco_positions(model, qpos, motion.skeleton.names)
    np.testing.assert_allclose(found, motion.T_world_joint()[..., :3, 3], atol=1e-9)


def test_limits_that_the_motion_leaves_are_widened_and_reported(tmp_path):
    motion = multibodies.figure()
    motion.skeleton.limits[2, 0] = [0.0, 0.3]
    findings = marey.write(motion, tmp_path / "a.urdf")
    (found,) = [f for f in findings if f.code == "limits-widened"]
    assert found.subject == "LowerLeg"
    model = multibodies.mujoco_model(tmp_path / "a.urdf")
    columns, rows = multibodies.read_rows(tmp_path / "a.trajectory.csv")
    angle = rows[:, columns.index("LowerLeg")]
    np.testing.assert_allclose(model.joint("LowerLeg").range, [0.0, angle.max()])
    assert found.value == pytest.approx(angle.max() - 0.3)
