"""Every C3D file of the recordings, against their manifest and two other libraries."""

import numpy as np
import pytest
from c3d_oracles import facts, read_elsewhere

from marey.errors import FormatError
from marey.io.file import File
from marey.io.formats.c3d import FORMAT, load
from marey.io.options import ReadOptions, WriteOptions
from marey.numerics import geometry

# Where we differ from the manifest, which took its facts from ezc3d and py-c3d:
# points, frames, rate, share of points unseen, and why.
DIFFERENT = {
    "formats_c3d/badParameterOffset.c3d": (41, 111, 250.0, 2 / 41, "both refuse it"),
    "formats_c3d/bad_parameter_section.c3d": (
        *(45, 332, 120.0, 6044 / 14_940),
        "both refuse it: its parameters run into the frames",
    ),
    "formats_c3d/mocap36.c3d": (36, 1380, 100.0, 8244 / 49_680, "both refuse it"),
    "formats_c3d/phasespace_sample.c3d": (
        *(40, 701, 30.0, 1281 / 28_040),
        "ezc3d finds no points without parameters; the header has them",
    ),
    "formats_c3d/dynamic.C3D": (
        *(34, 296, 100.0, 3572 / 10_064),
        "ezc3d takes the analog numbers for points, as ANALOG:RATE is missing",
    ),
}
UNREADABLE = {"formats_c3d/Empty.c3d"}

# Sound files in which reading must find nothing to doubt but what they do not state.
HARMLESS = {
    *("unit-assumed", "up-assumed", "up-misstated", "computed-left-out"),
    *("labels-repeated", "labels-missing", "poses-from-points", "points-zero"),
}
BROKEN = {
    *("Dance.c3d", "Dance1.c3d", "MotionMonitorC3D.c3d", "badParameterOffset.c3d"),
    *("bad_parameter_section.c3d", "mocap36.c3d", "phasespace_sample.c3d"),
    *("PiG_Calibration-FlatFoot-Full.c3d", "ART-Human_tools_integer_6dofLimbs.c3d"),
    *("static.c3d", "static_rotated.c3d"),
}


def read(path):
    return FORMAT.read_take(File(path, "c3d"))


def test_every_file_has_the_shape_and_gaps_its_manifest_states(recordings):
    known = facts(recordings)
    assert len(known) == len([*recordings.glob("*/*.[cC]3[dD]")])
    for name, fact in known.items():
        if name in UNREADABLE:
            with pytest.raises(FormatError):
                load(recordings / name)
            continue
        stated = tuple(fact.get(key) for key in ("points", "frames", "rate", "missing"))
        wanted = DIFFERENT.get(name, stated)
        found = load(recordings / name)
        unseen = np.isnan(found.points).all(axis=-1)
        n_frames, n_points = unseen.shape
        missing = unseen.mean() if unseen.size else 0.0
        assert (n_points, n_frames) == wanted[:2], name
        assert found.rate == pytest.approx(wanted[2], rel=1e-12), name
        assert missing == pytest.approx(wanted[3] or 0.0, abs=1e-12), name
        np.testing.assert_array_equal(np.isnan(found.points).any(-1), unseen)
        np.testing.assert_array_equal(found.residuals == -1, unseen)


def test_only_broken_files_raise_doubts(recordings):
    for name in facts(recordings).keys() - UNREADABLE:
        take = read(recordings / name)
        doubts = {f.code for f in take.source.findings} - HARMLESS
        assert bool(doubts) == (name.split("/")[1] in BROKEN), (name, doubts)
        assert len(set(take.full_labels)) == len(take.labels) > 0 or take.sensor_names


def test_six_encodings_and_four_block_orders_of_one_trial_are_equal(recordings):
    names = [f"Eb015{encoding}" for encoding in ("pi", "vi", "vr", "si", "sr")]
    names += [f"TEST{letter}PI" for letter in "ABCD"]
    reference = load(recordings / "formats_c3d" / "Eb015pr.c3d")
    for name in names:
        found = load(recordings / "formats_c3d" / f"{name}.c3d")
        np.testing.assert_allclose(found.points, reference.points, rtol=2e-7)
        np.testing.assert_allclose(found.residuals, reference.residuals, rtol=1e-6)
        np.testing.assert_array_equal(found.cameras, reference.cameras)
        np.testing.assert_allclose(found.analog, reference.analog, rtol=1e-6)
        assert found.labels == reference.labels
        assert found.events == reference.events
        assert (found.rate, found.first_frame) == (50.0, 1)


def test_agreement_with_ezc3d_and_c3d_where_these_agree(recordings, tmp_path):
    names = list(facts(recordings).keys() - UNREADABLE)
    paths = [recordings / name for name in names]
    by_ezc3d = read_elsewhere("ezc3d", paths, tmp_path / "ezc3d")
    by_c3d = read_elsewhere("c3d", paths, tmp_path / "c3d")
    compared = 0
    for name, path, one, other in zip(names, paths, by_ezc3d, by_c3d, strict=True):
        if one is None or other is None or not same_points(one[0], other[0]):
            continue
        found = load(path)
        assert same_points(found.points, one[0]), name
        assert found.rate == one[1] == pytest.approx(other[1], rel=1e-6)
        compared += 1
    assert compared >= 28


def same_points(a, b):
    """Whether points agree; one at the origin counts as unseen."""
    if a.shape != b.shape:
        return False
    a, b = (np.where((p == 0).all(axis=-1, keepdims=True), np.nan, p) for p in (a, b))
    # py-c3d scales integers in 32 bits.
    return np.allclose(a, b, rtol=1e-7, atol=2e-4, equal_nan=True)


def test_computed_points_of_plug_in_gait_are_left_out(recordings):
    folder = recordings / "btk_plugingait"
    take = read(folder / "PiG_Motion-FlatFoot-Full.c3d")
    assert len(take.labels) == 35
    assert {"LFHD", "RTOE", "LKNE"} <= set(take.labels)
    raw = load(folder / "PiG_Motion-FlatFoot-Full.c3d")
    first, last = raw.first_frame - 1, raw.last_frame - 1
    assert (take.start, take.times[-1]) == pytest.approx((first / 100, last / 100))
    assert len(take.events) == 12
    assert all(take.start <= event.time <= take.times[-1] for event in take.events)


def test_subjects_are_split_from_labels(recordings):
    take = read(recordings / "props_hockey" / "wrist_shot_009.c3d")
    assert set(take.subjects) == {"Reed", "Stick", "Puck"}
    assert not any(":" in label for label in take.labels)
    assert len(read(recordings / "cmu" / "16_07.c3d").labels) == 330


def test_heads_are_above_feet(recordings):
    for name, head, foot in (
        ("biobuddy_functional/right_hip.c3d", "HV", "LCAL"),
        ("cmu/01_01.c3d", "LFHD", "LTOE"),
    ):
        take = read(recordings / name)
        z = np.nanmedian(take.points[..., 2], axis=0)
        height = z[take.labels.index(head)] - z[take.labels.index(foot)]
        assert 1.2 < height < 1.9, name


def test_the_poses_of_a_rotation_group(recordings):
    folder = recordings / "sixdof_theia_rotations"
    take = read(folder / "C3DRotationExample.c3d")
    assert take.sensor_names[:3] == ("worldbody", "pelvis", "l_thigh")
    assert len(take.sensor_names) == 21
    T = take.T_world_sensor[take.sensor_seen]
    R = T[:, :3, :3]
    np.testing.assert_allclose(R @ R.swapaxes(1, 2) - np.eye(3), 0.0, atol=1e-6)
    np.testing.assert_array_equal(T[:, 3], np.tile([0, 0, 0, 1.0], (len(T), 1)))
    thigh = take.T_world_sensor[:, take.sensor_names.index("l_thigh"), :3, 3]
    shank = take.T_world_sensor[:, take.sensor_names.index("l_shank"), :3, 3]
    length = np.linalg.norm(thigh - shank, axis=-1)
    assert 0.3 < np.nanmedian(length) < 0.5
    assert np.nanstd(length) < 0.01


ART_BONES = (
    *("PELV LLSP", "LLSP ULSP", "ULSP LTSP", "LTSP UTSP", "UTSP NECK", "NECK HEAD"),
    *("UTSP LSHO", "LSHO LUAR", "LUAR LLAR", "LLAR LHAN"),
    *("UTSP RSHO", "RSHO RUAR", "RUAR RLAR", "RLAR RHAN"),
    *("PELV LULE", "LULE LLLE", "LLLE LFOO", "PELV RULE", "RULE RLLE", "RLLE RFOO"),
)


def test_segments_drawn_by_three_points_are_poses_of_a_skeleton(recordings):
    path = recordings / "sixdof_art_human" / "ART-Human_real.c3d"
    take = read(path)
    T = take.T_world_sensor
    assert T.shape == (966, 21, 4, 4)
    assert take.labels == ()
    assert set(take.sensor_names) == set(" ".join(ART_BONES).split())
    assert take.sensor_seen.all()
    assert_rotations(T[..., :3, :3])
    place = {name: i for i, name in enumerate(take.sensor_names)}
    height = T[:, place["HEAD"], 2, 3] - T[:, place["LFOO"], 2, 3]
    assert 1.2 < np.median(height) < 1.9
    # The software solved a skeleton: each joint rests in the segment it hangs on. The
    # file rounds to 6e-8 of a metre, which the axes of 20 mm pass on enlarged.
    for bone in ART_BONES:
        parent, child = (T[:, place[name]] for name in bone.split())
        joint_parent = geometry.apply(geometry.inverse(parent), child[:, :3, 3])
        length = np.linalg.norm(joint_parent, axis=-1)
        assert joint_parent.std(axis=0).max() < 6e-7, bone
        assert length.std() < 6e-8, bone
        assert 0.05 < length.mean() < 0.45, bone


def test_segments_with_and_without_axes_in_a_file_of_integers(recordings):
    path = recordings / "sixdof_art_human" / "ART-Human_tools_integer_6dofLimbs.c3d"
    take = read(path)
    limbs = ("HEAD", "LHAN", "RHAN", "LFOO", "RFOO")
    tools = ("Tools:TOOL1", "Tools:TOOL2")
    assert take.sensor_names == (*(f"Human3:{limb}" for limb in limbs), *tools)
    assert len(take.labels) == 37 - 3 * 7
    assert set(take.subjects) == {"Human3"}
    assert take.sensor_seen.all()
    R = take.T_world_sensor[..., :3, :3]
    assert_rotations(R)
    # For a second the head's Z point rises above 1.57 m, where 16 bits end.
    values = {f.code: f.value for f in take.source.findings}
    assert values["integers-overflowed"] == 62
    turns = geometry.rotation_log(R[:-1].swapaxes(-1, -2) @ R[1:])
    assert np.linalg.norm(turns, axis=-1)[:, 0].max() < 0.1
    kept = FORMAT.read_take(File(path, "c3d", ReadOptions(computed=True)))
    assert len(kept.labels) == 37
    np.testing.assert_array_equal(kept.T_world_sensor, take.T_world_sensor)


def assert_rotations(R):
    np.testing.assert_allclose(R @ R.swapaxes(-1, -2), np.eye(3) + 0 * R, atol=1e-9)
    np.testing.assert_allclose(np.linalg.det(R), 1.0, atol=1e-9)


def test_no_ordinary_marker_is_taken_for_an_axis(recordings):
    drawn = set()
    for name in facts(recordings).keys() - UNREADABLE:
        codes = {finding.code for finding in read(recordings / name).source.findings}
        drawn |= {name} if "poses-from-points" in codes else set()
    assert {name.split("/")[0] for name in drawn} == {"sixdof_art_human"}
    assert len(drawn) == 2


def test_what_was_read_is_written_and_read_again(recordings, tmp_path):
    for name in facts(recordings).keys() - UNREADABLE:
        take = read(recordings / name)
        path = tmp_path / "again.c3d"
        data = b"".join(FORMAT.write_take(take, WriteOptions())[""])
        path.write_bytes(data)
        again = read(path)
        np.testing.assert_allclose(again.points, take.points, rtol=6e-8)
        np.testing.assert_allclose(again.T_world_sensor, take.T_world_sensor, rtol=1e-6)
        assert again.full_labels == take.full_labels
        assert (again.rate, again.start) == (take.rate, take.start)
        assert again.source.up.value == take.source.up.value
        assert b"".join(FORMAT.write_take(again, WriteOptions())[""]) == data, name
