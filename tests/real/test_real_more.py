"""TRB, HTR, MVNX and VSK recordings: stated facts, and limits of human bodies."""

import numpy as np
import pytest

import marey
from marey.io.file import File
from marey.io.formats import vsk

# Joint of the BVH for each segment of the MVNX.
BVH_JOINTS = {
    "Pelvis": "Hips",
    "L5": "Chest",
    "L3": "Chest2",
    "T12": "Chest3",
    "T8": "Chest4",
    "Neck": "Neck",
    "Head": "Head",
} | {
    f"{side}{segment}": f"{side}{joint}"
    for side in ("Right", "Left")
    for segment, joint in {
        "Shoulder": "Collar",
        "UpperArm": "Shoulder",
        "ForeArm": "Elbow",
        "Hand": "Wrist",
        "UpperLeg": "Hip",
        "LowerLeg": "Knee",
        "Foot": "Ankle",
        "Toe": "Toe",
    }.items()
}


def codes(findings):
    return [finding.code for finding in findings]


def distance_mean_sd(points, a, b):
    """Mean and standard deviation of a distance over time."""
    distance = np.linalg.norm(points[:, a] - points[:, b], axis=-1)
    return np.nanmean(distance), np.nanstd(distance)


@pytest.mark.parametrize(
    ("name", "frames", "seen"), [("HHMotion", 545, 262), ("HHStatic", 247, 247)]
)
def test_helen_hayes_markers(name, frames, seen, recordings):
    path = recordings / "formats_trc" / f"{name}.trb"
    take = marey.read(path, unit="mm", up="z")
    assert take.points.shape == (frames, 37, 3)
    assert (take.rate, take.start) == (100.0, 0.0)
    assert take.source.findings == ()
    assert take.labels[:3] == ("Top.Head", "Front.Head", "Rear.Head")
    assert {"R.ASIS", "L.ASIS", "V.Sacral", "R.Knee.Medial"} <= set(take.labels)
    # All markers are seen together or not at all, and every byte is accounted for.
    visible = np.isfinite(take.points[..., 0])
    assert (visible.any(axis=1) == visible.all(axis=1)).all()
    assert visible[:, 0].sum() == seen
    words = sum(3 + 6 * count for count in visible.sum(axis=1))
    assert path.stat().st_size == 2488 + 4 * words


@pytest.mark.parametrize("name", ["HHMotion", "HHStatic"])
def test_helen_hayes_markers_are_on_a_person(name, recordings):
    take = marey.read(recordings / "formats_trc" / f"{name}.trb")
    number = {label: i for i, label in enumerate(take.labels)}
    height = take.points[..., 2]
    assert 1.6 < np.nanmean(height[:, number["Top.Head"]]) < 1.8
    assert np.nanmin(height) > 0.0
    order = ["Top.Head", "C7", "V.Sacral", "R.Knee", "R.Ankle", "R.Heel"]
    heights = [np.nanmean(height[:, number[label]]) for label in order]
    assert heights == sorted(heights, reverse=True)
    for pair in [("Top.Head", "Front.Head"), ("R.ASIS", "L.ASIS")]:
        mean, sd = distance_mean_sd(take.points, *(number[label] for label in pair))
        assert 0.1 < mean < 0.3
        assert sd < 0.002
    # A step of one frame is short.
    steps = np.linalg.norm(np.diff(take.points, axis=0), axis=-1)
    assert np.nanmax(steps) < 0.06
    links = take.source.parameters["links"]
    assert len(links) == 85


def test_an_animated_skeleton(recordings):
    path = recordings / "formats_htr" / "egnaro_skel_anim.htr"
    take, motion = marey.read(path), marey.read_motion(path)
    assert take.T_world_sensor.shape == (81, 89, 4, 4)
    assert motion.skeleton.names == take.sensor_names
    assert (take.rate, codes(take.source.findings)) == (24.0, [])
    assert (take.source.unit.value, take.source.up.value) == ("mm", "y")
    assert codes(motion.source.findings) == []
    np.testing.assert_allclose(
        motion.T_world_joint()[..., :3, 3], take.T_world_sensor[..., :3, 3], atol=1e-12
    )


def test_the_animated_skeleton_is_symmetric_at_rest_and_stands_on_its_feet(recordings):
    motion = marey.read_motion(recordings / "formats_htr" / "egnaro_skel_anim.htr")
    names, rest = motion.skeleton.names, motion.skeleton.rest()[:, :3, 3]
    for joint, name in enumerate(names):
        if name.startswith("L_"):
            other = rest[names.index("R_" + name[2:])]
            np.testing.assert_allclose(rest[joint] * [-1, 1, 1], other, atol=1e-5)
    # The first frame is the base pose, and the toes stay where they are in it.
    T = motion.T_world_joint()
    np.testing.assert_allclose(T[0, :, :3, 3], rest, atol=1e-12)
    toes = [names.index("L_toe"), names.index("R_toe")]
    assert np.ptp(T[:, toes][..., :3, 3], axis=0).max() < 1e-3
    assert np.ptp(T[:, names.index("spine8"), :3, 3], axis=0).max() > 1e-3


@pytest.fixture(scope="module")
def xsens(recordings):
    return recordings / "sixdof_xsens_mvnx"


def test_a_body_of_inertial_sensors(xsens):
    take = marey.read(xsens / "test_mocap.mvnx")
    assert take.T_world_sensor.shape == (112, 23, 4, 4)
    assert take.rate == 60.0
    assert codes(take.source.findings) == ["frames-left-out"]
    assert take.source.findings[0].value == 3.0
    R = take.T_world_sensor[..., :3, :3]
    np.testing.assert_allclose(
        R @ R.swapaxes(-1, -2), np.broadcast_to(np.eye(3), R.shape), atol=1e-12
    )


def test_the_bones_of_inertial_sensors_are_joined(xsens):
    take, motion = (
        read(xsens / "test_mocap.mvnx") for read in (marey.read, marey.read_motion)
    )
    T = motion.T_world_joint()[:, :23]
    assert motion.skeleton.names[:23] == take.sensor_names
    np.testing.assert_allclose(
        T[..., :3, :3], take.T_world_sensor[..., :3, :3], atol=1e-9
    )
    # MVN itself lets the shoulder blades slide by 2 mm; all else fits to rounding.
    miss = np.linalg.norm(T[..., :3, 3] - take.T_world_sensor[..., :3, 3], axis=-1)
    arms = [any(w in n for w in ("Shoulder", "Arm", "Hand")) for n in take.sensor_names]
    assert miss[:, ~np.array(arms)].max() < 2e-5
    assert 1e-3 < miss[:, arms].max() < 2.2e-3
    (finding,) = motion.source.findings[1:]
    assert finding.code == "bones-not-rigid"
    assert finding.value == pytest.approx(miss.max(), rel=1e-6)


def test_legs_that_never_moved_are_as_long_as_the_program_has_them(xsens):
    """The segments begin in their joints, and the file states the same bones."""
    found = marey.solve(xsens / "test_mocap.mvnx").skeleton
    stated = marey.read_skeleton(xsens / "test_mocap.mvnx")
    for side in ("Left", "Right"):
        for part in ("LowerLeg", "Foot", "Toe"):
            bones = [one.lengths[one.index(side + part)] for one in (found, stated)]
            assert bones[0] == pytest.approx(bones[1], abs=1e-3), side + part
            assert not found.length_sd[found.index(side + part)] < 1.0


def test_mvnx_and_bvh_of_one_take_agree(xsens):
    mvnx = marey.read_motion(xsens / "test_mocap.mvnx")
    bvh = marey.read_motion(xsens / "test_mocap.bvh", unit="cm")
    assert bvh.n_frames == mvnx.n_frames == 112
    assert bvh.rate == pytest.approx(60.0, rel=1e-4)
    mvnx_joints = [mvnx.skeleton.index(name) for name in BVH_JOINTS]
    bvh_joints = [bvh.skeleton.index(name) for name in BVH_JOINTS.values()]
    # MVN faces along X in the one file and along Z, which becomes -Y, in the other.
    R = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(
        mvnx.skeleton.offset[mvnx_joints][1:] @ R.T,
        bvh.skeleton.offset[bvh_joints][1:],
        atol=2e-6,
    )
    # The BVH has a T-pose in place of the first frame.
    a, b = mvnx.T_world_joint()[1:, mvnx_joints], bvh.T_world_joint()[1:, bvh_joints]
    np.testing.assert_allclose(a[:, 0, :3, 3] @ R.T, b[:, 0, :3, 3], atol=2e-6)
    np.testing.assert_allclose(R @ a[..., :3, :3] @ R.T, b[..., :3, :3], atol=1e-4)
    np.testing.assert_allclose(a[..., :3, 3] @ R.T, b[..., :3, 3], atol=1e-4)


def test_a_vicon_subject(recordings):
    file = File(recordings / "gatech_vsk" / "Nick01.vsk", "vsk")
    skeleton = vsk.read_skeleton(file)
    assert (skeleton.n_joints, len(skeleton.marker_labels)) == (30, 53)
    assert codes(file.findings) == []
    assert skeleton.kind.count("hinge") == 6
    assert skeleton.kind.count("fixed") == 5
    assert skeleton.is_end.sum() == 5
    length = dict(zip(skeleton.names, skeleton.lengths, strict=True))
    assert length["LeftLeg"] == pytest.approx(0.429072)  # the parameter UpperLegLength
    assert length["LeftFoot"] == length["RightFoot"] == pytest.approx(0.388764)


def test_a_vicon_subject_stands_upright_with_its_markers_on_it(recordings):
    skeleton = marey.read_skeleton(recordings / "gatech_vsk" / "Nick01.vsk")
    rest = skeleton.rest()
    position = dict(zip(skeleton.names, rest[:, :3, 3], strict=True))
    assert position["Head_End"][2] > 0.7
    assert position["L_Toe_End"][2] < -0.8
    world = rest[skeleton.marker_joint, :3, 3] + skeleton.marker_offset
    for label, where in zip(skeleton.marker_labels, world, strict=True):
        if label[0] in "LR":
            assert (where[0] > 0.0) == (label[0] == "L"), label
    # No marker is farther from its joint than a bone is long.
    assert np.linalg.norm(skeleton.marker_offset, axis=-1).max() < 0.45
    knees = skeleton.axes[[skeleton.index("LeftLeg"), skeleton.index("RightLeg")], 0]
    np.testing.assert_allclose(knees, [[1.0, 0.0, 0.0]] * 2, atol=1e-12)


def test_the_markers_of_a_subject_are_those_of_its_take(recordings):
    folder = recordings / "gatech_vsk"
    skeleton = marey.read_skeleton(folder / "Nick01.vsk")
    take = marey.read(folder / "nick_freeform_001.c3d")
    assert set(take.labels) == set(skeleton.marker_labels)
    # Markers of one segment keep the distances that the subject file gives them.
    number = {label: i for i, label in enumerate(take.labels)}
    for a, b in [("LFHD", "RFHD"), ("LFWT", "LBWT"), ("LKNE", "LKNI"), ("C7", "T10")]:
        i, j = (skeleton.marker_labels.index(label) for label in (a, b))
        assert skeleton.marker_joint[i] == skeleton.marker_joint[j]
        wanted = np.linalg.norm(skeleton.marker_offset[i] - skeleton.marker_offset[j])
        mean, _ = distance_mean_sd(take.points, number[a], number[b])
        assert mean == pytest.approx(wanted, abs=0.03), (a, b)
