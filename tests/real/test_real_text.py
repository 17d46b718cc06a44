"""Real TRC, BVH and ASF/AMC files: what is known of each, and truth where it is."""

import json

import numpy as np
import pytest

import marey
from marey.io.formats import trc

TRC = {
    # frames, markers, rate, unit, missing share, first time
    "addbio_arnold_s01_synthetic/walk2.trc": (223, 64, 200, "m", 0.0, 3.38),
    "addbio_hamner_s01/Static_FJC.trc": (397, 64, 100, "mm", 0.0, 0.0),
    "addbio_hamner_s01/run500.trc": (186, 42, 100, "mm", 0.0, 0.55),
    "addbio_uhlrich_s2/DJ1.trc": (284, 51, 100, "mm", 0.0, 0.0),
    "addbio_uhlrich_s2/squats1.trc": (801, 51, 100, "mm", 0.0, 0.0),
    "addbio_uhlrich_s2/static1.trc": (800, 55, 100, "mm", 0.0, 0.0),
    "addbio_uhlrich_s2/walking1.trc": (158, 51, 100, "mm", 0.0, 0.0),
    "formats_trc/10002-20130626160334-Unnamed.trc": (882, 10, 400, "mm", 0.757, 0.0),
    "formats_trc/T.trc": (89, 41, 30, "mm", 0.0, 0.0),
    "formats_trc/ballet_reduced.trc": (100, 41, 30, "mm", 0.0, 0.0),
    "formats_trc/dataWithBlanksForMissingMarkers.trc": (464, 40, 250, "mm", 0.808, 0),
    "formats_trc/dataWithEformat.trc": (5, 14, 119.88012, "m", 0.0, 0.008342),
    "formats_trc/dataWithNaNsOfDifferentCases.trc": (5, 14, 250, "mm", 0.071, 0.0),
    "formats_trc/exampleFormat.trc": (5, 3, 100, "m", 0.133, 0.01),
    "mech_pendulum/pendulum_01.trc": (3201, 22, 400, "mm", 0.032, 0.0),
    "mech_pendulum/pendulum_03.trc": (3201, 22, 400, "mm", 0.0, 0.0),
}
BVH = {
    # frames, joints, rate
    "cmu/07_01.bvh": (317, 31, 120),
    "cmu/07_12.bvh": (264, 31, 120),
    "cmu/16_07.bvh": (423, 31, 120),
    "cmu/60_14.bvh": (1950, 31, 120),
    "cmu/61_14.bvh": (1950, 31, 120),
    "sixdof_xsens_mvnx/test_mocap.bvh": (112, 23, 60),
}
AMC = {
    # frames, bones, skeleton
    "cmu/01_01.amc": (2751, 30, "01.asf"),
    "cmu/02_01.amc": (343, 30, "02.asf"),
    "cmu/02_05.amc": (1854, 30, "02.asf"),
    "cmu/35_01.amc": (358, 30, "35.asf"),
    "hdm05/HDM_dg_06-03_03_120.amc": (202, 30, "HDM_dg.asf"),
}
REFERENCE = {
    "root": ("root", "Hips"),
    "spine_lower": ("upperback", "Spine"),
    "spine_upper": ("thorax", "Spine1"),
    "neck_base": ("lowerneck", ""),
    "neck_mid": ("upperneck", ""),
    "head_base": ("head", ""),
    "head_top": ("head_end", ""),
    "l_hip": ("lfemur", "LeftUpLeg"),
    "l_knee": ("ltibia", "LeftLeg"),
    "l_ankle": ("lfoot", "LeftFoot"),
    "l_toebase": ("ltoes", "LeftToeBase"),
    "l_toeend": ("ltoes_end", ""),
    "l_shoulder": ("lhumerus", ""),
    "l_elbow": ("lradius", ""),
    "l_wrist": ("lwrist", ""),
    "r_hip": ("rfemur", "RightUpLeg"),
    "r_knee": ("rtibia", "RightLeg"),
    "r_ankle": ("rfoot", "RightFoot"),
    "r_toebase": ("rtoes", "RightToeBase"),
    "r_shoulder": ("rhumerus", ""),
    "r_elbow": ("rradius", ""),
    "r_wrist": ("rwrist", ""),
}
"""Joint of the reference: joint of the ASF, joint of the BVH made from it."""

# The laboratory's C3D has x y z where the ASF has z x y; here Y up became Z up.
R_LAB_MAREY = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
INCH_BY_LENGTH = 0.0254 / 0.45


def places(motion, names):
    joints = [motion.skeleton.names.index(name) for name in names]
    return motion.T_world_joint()[:, joints][..., :3, 3] @ R_LAB_MAREY.T


def reference(path, names):
    with np.load(path) as data:
        joints = data["joint"].tolist()
        return data["pos_mm"][:, [joints.index(name) for name in names]] / 1000.0


def test_the_tables_name_files_that_are_there(recordings):
    known = {*TRC, *BVH, *AMC, "formats_trc/Empty.trc", "formats_trc/Truncated.trc"}
    found = {
        path.relative_to(recordings).as_posix()
        for suffix in ("trc", "bvh", "amc")
        for path in recordings.glob(f"*/*.{suffix}")
    }
    assert known <= found


@pytest.mark.parametrize("name", TRC)
def test_a_trc_has_the_frames_markers_and_gaps_known_of_it(recordings, name):
    frames, markers, rate, unit, missing, start = TRC[name]
    take = marey.read(recordings / name)
    assert take.points.shape == (frames, markers, 3)
    assert take.rate == pytest.approx(rate)
    assert str(take.source.unit) == f"{unit} (stated: Units)"
    assert 1.0 - take.seen.mean() == pytest.approx(missing, abs=6e-4)
    assert take.start == pytest.approx(start)
    assert np.nanmax(np.abs(take.points)) < 20.0


def test_the_manifest_agrees(recordings):
    rows = json.loads((recordings / "manifest.json").read_text())
    facts = {row["file"]: row for row in rows}
    for name in TRC:
        row = facts.get(name, {})
        if "missing" in row:
            assert (row["frames"], row["points"]) == TRC[name][:2]
            assert row["missing"] == pytest.approx(TRC[name][4], abs=6e-4)
    for name, (frames, _, _) in BVH.items():
        assert facts[name]["frames"] == frames


@pytest.mark.parametrize("name", TRC)
def test_a_trc_is_read_as_a_plain_loop_reads_it(recordings, name):
    raw = trc.load(recordings / name)
    lines = (recordings / name).read_text(encoding="latin-1").splitlines()[5:]
    rows = [line.split("\t") for line in lines if line.strip()]
    for k in (0, len(rows) // 2, -1):
        cells = [cell.strip() for cell in rows[k][2:]]
        values = [float(c) if c else np.nan for c in cells]
        found = raw.points[k].ravel()
        values = (values + [np.nan] * len(found))[: len(found)]
        np.testing.assert_array_equal(found, values)


def test_no_recording_uses_zeros_for_missing(recordings):
    for name in TRC:
        assert not (trc.load(recordings / name).points == 0.0).all(axis=-1).any()


def test_unnamed_markers_are_read_with_neutral_names(recordings):
    take = marey.read(recordings / "formats_trc/10002-20130626160334-Unnamed.trc")
    assert take.labels == tuple(f"M{i + 1}" for i in range(10))
    assert {"markers-mismatch", "labels-missing"} <= {
        finding.code for finding in take.source.findings
    }


@pytest.mark.parametrize("name", ["Empty.trc", "Truncated.trc"])
def test_what_holds_nothing_is_refused(recordings, name):
    with pytest.raises(marey.FormatError, match=name):
        marey.read(recordings / "formats_trc" / name)


@pytest.mark.parametrize("name", BVH)
def test_a_bvh_has_the_frames_and_joints_known_of_it(recordings, name):
    frames, joints, rate = BVH[name]
    motion = marey.read_motion(recordings / name)
    assert (motion.n_frames, motion.rate) == (frames, rate)
    assert int((~motion.skeleton.is_end).sum()) == joints
    take = marey.read(recordings / name)
    assert take.T_world_sensor.shape == (frames, joints, 4, 4)


@pytest.mark.parametrize("name", AMC)
def test_an_amc_has_the_frames_bones_and_skeleton_known_of_it(recordings, name):
    frames, bones, figure = AMC[name]
    motion = marey.read_motion(recordings / name)
    assert motion.n_frames == frames
    assert int((~motion.skeleton.is_end).sum()) == bones + 1
    assert motion.source.parameters["skeleton"].endswith(f"/{figure}")
    assert str(motion.source.unit).startswith("in (inferred: ASF length 0.45")
    with pytest.raises(marey.FormatError, match="read_skeleton"):
        marey.read_motion((recordings / name).with_name(figure))
    skeleton = marey.read_skeleton((recordings / name).with_name(figure))
    np.testing.assert_array_equal(skeleton.offset, motion.skeleton.offset)


@pytest.mark.parametrize("name", [n for n in AMC if "35_01" not in n])
def test_forward_kinematics_of_an_amc_is_the_reference(recordings, name):
    path = recordings / name
    found = places(marey.read_motion(path), [bone for bone, _ in REFERENCE.values()])
    wanted = reference(path.with_name(f"{path.stem}_ref_joints.npz"), REFERENCE)
    # The reference is stored in single precision.
    np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("take", "tolerance"), [("07_01", 1e-6), ("07_12", 1e-6), ("16_07", 2e-4)]
)
def test_a_bvh_is_the_reference_one_frame_later(recordings, take, tolerance):
    """The BVH has an extra first frame; 16_07's reference is measured, not computed."""
    motion = marey.read_motion(recordings / f"cmu/{take}.bvh", unit="m")
    legs = [k for k, (_, joint) in REFERENCE.items() if joint and "toe" not in k]
    found = places(motion, [REFERENCE[k][1] for k in legs]) * INCH_BY_LENGTH
    wanted = reference(recordings / f"cmu/{take}_ref_joints.npz", legs)
    np.testing.assert_allclose(found[1:], wanted, atol=tolerance)


def test_a_skeleton_of_the_database_has_its_kinds_and_limits(recordings):
    skeleton = marey.read_skeleton(recordings / "cmu/01.asf")
    kind = dict(zip(skeleton.names, skeleton.kind, strict=True))
    assert kind["lfemur"] == "ball"
    assert kind["ltibia"] == "hinge"
    assert kind["lfoot"] == "universal"
    assert kind["lhipjoint"] == "fixed"
    knee = skeleton.index("ltibia")
    np.testing.assert_allclose(np.degrees(skeleton.limits[knee, 0]), [-10, 170])
    # Thigh length, 7.1578 units of 1/0.45 inch.
    assert skeleton.lengths[knee] == pytest.approx(7.1578 * INCH_BY_LENGTH, rel=1e-5)


@pytest.mark.parametrize("name", ["cmu/07_01.bvh", "cmu/02_01.amc"])
def test_a_real_motion_survives_being_written(recordings, name, tmp_path):
    motion = marey.read_motion(recordings / name)
    for suffix in (".bvh", ".amc"):
        marey.write(motion, tmp_path / f"x{suffix}")
        again = marey.read_motion(tmp_path / f"x{suffix}")
        assert again.skeleton.names == motion.skeleton.names
        np.testing.assert_allclose(
            again.T_world_joint(), motion.T_world_joint(), atol=1e-6
        )
