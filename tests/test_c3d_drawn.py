"""C3D: poses that a file holds as points, and what only looks like one."""

import dataclasses
from itertools import permutations, product

import numpy as np
import pytest
from c3d_oracles import c3d_bytes, mutated

from marey.errors import FormatError
from marey.io.file import File
from marey.io.formats.c3d import FORMAT
from marey.io.options import ReadOptions, WriteOptions
from marey.numerics import geometry
from marey.take import Take

AXIS_LENGTH = 20.0
"""Millimetres from an origin to its axis points."""

STEP = 0.0625
"""Millimetres per integer step."""


def read(path, **options):
    return FORMAT.read_take(File(path, "c3d", ReadOptions(**options)))


def codes(take):
    return {finding.code for finding in take.source.findings}


def value(take, code):
    return {finding.code: finding.value for finding in take.source.findings}[code]


def poses(rng, frames=30, segments=3):
    """Poses in millimetres that turn all the way round."""
    R = geometry.rotation_exp(rng.uniform(-3.0, 3.0, (frames, segments, 3)))
    return geometry.transform(R, rng.uniform(-800.0, 800.0, (frames, segments, 3)))


def right_angled(rng):
    """The 24 rotations that take axes to axes, at positions the file holds exactly."""
    signed = [
        np.array(s)[:, None] * np.eye(3)[list(p)]
        for p, s in product(permutations(range(3)), product((1, -1), repeat=3))
    ]
    R = np.array([M for M in signed if np.linalg.det(M) > 0])[:, None]
    return geometry.transform(R, STEP * rng.integers(-9000, 9000, (24, 1, 3)))


def axis_points(T, axes="YZ", axis_length=AXIS_LENGTH):
    """Origin and axis points of each segment (frame, segment, corner, 3)."""
    ends = [axis_length * T[..., :3, "XYZ".index(axis)] for axis in axes]
    origin = T[..., :3, 3]
    return np.stack([origin, *(origin + end for end in ends)], axis=2)


def write_points(path, xyz, axes="YZ", *, seen=True, floats=True, subject="", more=()):
    """Write axis points (frame, segment, point, 3) in mm, then markers."""
    n_frames, n_segments = xyz.shape[:2]
    labels = [f"{subject}S{i}{end}" for i in range(n_segments) for end in ("", *axes)]
    points = xyz.reshape(n_frames, -1, 3)
    points = np.concatenate(
        [points, *(positions[:, None] for _, positions in more)], axis=1
    )
    counts = points / STEP
    if not floats:
        counts = (np.round(counts).astype(int) + 32768) % 65536 - 32768
    words = np.zeros(points.shape[:2], int)
    words[:, : xyz.shape[1] * xyz.shape[2]] -= ~np.broadcast_to(
        seen, xyz.shape[:3]
    ).reshape(n_frames, -1)
    labels += [name for name, _ in more]
    path.write_bytes(
        c3d_bytes(counts, words, floats=floats, scale=STEP, point={"LABELS": labels})
    )
    return path


def in_metres(T):
    return geometry.transform(T[..., :3, :3], 1e-3 * T[..., :3, 3])


def angle(A, B):
    R = A[..., :3, :3].swapaxes(-1, -2) @ B[..., :3, :3]
    return np.linalg.norm(geometry.rotation_log(R), axis=-1)


every_axes = pytest.mark.parametrize("axes", ["YZ", "XY", "XZ", "XYZ"])
both_numbers = pytest.mark.parametrize("floats", [True, False])


@every_axes
@both_numbers
def test_points_that_the_file_holds_exactly_give_the_exact_pose(
    axes, floats, rng, tmp_path
):
    T = right_angled(rng)
    take = read(
        write_points(tmp_path / "a.c3d", axis_points(T, axes), axes, floats=floats)
    )
    assert (take.sensor_names, take.labels) == (("S0",), ())
    np.testing.assert_allclose(take.T_world_sensor, in_metres(T), rtol=0, atol=1e-12)
    assert codes(take) == {"poses-from-points"}
    assert value(take, "poses-from-points") == 1


@every_axes
@both_numbers
def test_rounding_turns_a_pose_by_no_more_than_its_share_of_the_arm(
    axes, floats, rng, tmp_path
):
    T = poses(rng)
    take = read(
        write_points(tmp_path / "a.c3d", axis_points(T, axes), axes, floats=floats)
    )
    R = take.T_world_sensor[..., :3, :3]
    np.testing.assert_allclose(R @ R.swapaxes(-1, -2), np.eye(3) + 0 * R, atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(R), 1.0, atol=1e-12)
    # Each of two ends may be off by half a step in three coordinates.
    step = 2.0**-14 if floats else STEP
    assert angle(take.T_world_sensor, T).max() < 2 * np.sqrt(3) * step / AXIS_LENGTH
    off = take.T_world_sensor[..., :3, 3] - 1e-3 * T[..., :3, 3]
    assert np.abs(off).max() <= 1e-3 * step / 2 * (1 + 1e-9)


@pytest.mark.parametrize("still", [True, False])
def test_integers_may_be_coarse(still, rng, tmp_path):
    T = poses(rng, segments=9)
    T = np.broadcast_to(T[:1], T.shape) if still else T
    axis_length = 25 * STEP
    take = read(
        write_points(
            tmp_path / "a.c3d", axis_points(T, axis_length=axis_length), floats=False
        )
    )
    assert take.sensor_names == tuple(f"S{i}" for i in range(9))
    assert take.sensor_seen.all()
    assert angle(take.T_world_sensor, T).max() < 2 * np.sqrt(3) * STEP / axis_length


def test_the_pose_does_not_depend_on_the_arm_or_its_unit(rng, tmp_path):
    T = poses(rng)
    short = read(write_points(tmp_path / "a.c3d", axis_points(T)))
    long = read(
        write_points(tmp_path / "b.c3d", axis_points(T, axis_length=300.0)), unit="cm"
    )
    assert angle(short.T_world_sensor, long.T_world_sensor).max() < 1e-4
    np.testing.assert_allclose(
        long.T_world_sensor[..., :3, 3], 10.0 * short.T_world_sensor[..., :3, 3]
    )


def test_noise_on_the_points_stays_as_small_in_the_pose(rng, tmp_path):
    T = poses(rng, frames=500)
    sd = 0.1
    xyz = axis_points(T) + rng.normal(scale=sd, size=(500, 3, 3, 3))
    take = read(write_points(tmp_path / "a.c3d", xyz))
    assert take.sensor_names == ("S0", "S1", "S2")
    assert take.sensor_seen.all()
    R = take.T_world_sensor[..., :3, :3]
    np.testing.assert_allclose(R @ R.swapaxes(-1, -2), np.eye(3) + 0 * R, atol=1e-12)
    # Two arms of noise sqrt(2) sd share the turn about the third axis.
    assert np.sqrt((angle(take.T_world_sensor, T) ** 2).mean()) < 2.5 * sd / AXIS_LENGTH


def tilted(T, degrees, axis_length=AXIS_LENGTH):
    xyz = axis_points(T, axis_length=axis_length)
    y, z = T[..., :3, 1], T[..., :3, 2]
    a = np.radians(degrees)
    xyz[:, :, 2] = xyz[:, :, 0] + axis_length * (np.cos(a) * y + np.sin(a) * z)
    return xyz


def with_longer_axis(T, factor):
    xyz = axis_points(T)
    xyz[:, :, 2] += (factor - 1.0) * (xyz[:, :, 2] - xyz[:, :, 0])
    return xyz


def swapped(T):
    """Axis points of other segments."""
    xyz = axis_points(T)
    xyz[:, :, 1:] = np.roll(xyz[:, :, 1:], 1, axis=1)
    return xyz


def with_changing_length(T, share):
    """Arms whose length is right on average only."""
    return axis_points(
        T,
        axis_length=AXIS_LENGTH
        * (1 + share * np.sin(np.arange(len(T))))[:, None, None],
    )


@both_numbers
@pytest.mark.parametrize(
    "deceive",
    [
        lambda T: tilted(T, 88.0),
        lambda T: tilted(T, 60.0),
        lambda T: with_longer_axis(T, 1.05),
        lambda T: with_longer_axis(T, 3.0),
        lambda T: with_changing_length(T, 0.2),
        lambda T: axis_points(T)[:, :, [1, 0, 2]],
        lambda T: axis_points(T, axis_length=0.0),
        lambda T: tilted(T, 80.0, axis_length=10 * STEP),
        swapped,
    ],
    ids=[
        *(
            "88 degrees",
            "60 degrees",
            "5 % with_longer_axis",
            "3 times",
            "with_changing_length",
            "shuffled",
        ),
        *("one place", "10 steps", "swapped"),
    ],
)
def test_names_alone_do_not_make_a_pose(deceive, floats, rng, tmp_path):
    xyz = deceive(poses(rng))
    take = read(write_points(tmp_path / "a.c3d", xyz, floats=floats))
    assert len(take.labels) == 9
    assert take.sensor_names == ()
    assert codes(take) == set()


def test_data_alone_does_not_make_a_pose(rng, tmp_path):
    xyz = axis_points(poses(rng, segments=1))
    positions = [xyz[:, 0, k] for k in range(3)]
    for names in (("A", "AY", "BZ"), ("A", "B", "C"), ("P:A", "Q:AY", "Q:AZ")):
        more = [*zip(names, positions, strict=True)]
        take = read(write_points(tmp_path / "a.c3d", xyz[:, :0], more=more))
        assert len(take.labels) == 3
        assert take.sensor_names == ()


def test_a_left_handed_frame_stays_markers(rng, tmp_path):
    T = poses(rng)
    xyz = axis_points(T, "XYZ")
    xyz[:, 1, 1] = 2 * xyz[:, 1, 0] - xyz[:, 1, 1]
    take = read(write_points(tmp_path / "a.c3d", xyz, "XYZ"))
    assert take.sensor_names == ("S0", "S2")
    assert take.labels == ("S1", "S1X", "S1Y", "S1Z")


@both_numbers
def test_a_pose_is_missing_where_a_corner_is(floats, rng, tmp_path):
    T = poses(rng)
    seen = rng.random((30, 3, 3)) < 0.8
    seen[:5, 0] = False
    take = read(
        write_points(tmp_path / "a.c3d", axis_points(T), seen=seen, floats=floats)
    )
    np.testing.assert_array_equal(take.sensor_seen, seen.all(axis=-1))
    assert np.isnan(take.T_world_sensor[~seen.all(axis=-1)]).all()
    assert angle(take.T_world_sensor, T)[seen.all(axis=-1)].max() < 0.02
    partial = seen[..., 0] & ~seen.all(axis=-1)
    assert value(take, "poses-partial") == partial.sum()


def test_a_point_out_of_place_in_few_frames_costs_only_these(rng, tmp_path):
    T = poses(rng, frames=100)
    xyz = axis_points(T)
    xyz[[3, 50, 51], 1, 2] += 7.0
    take = read(write_points(tmp_path / "a.c3d", xyz))
    assert np.argwhere(~take.sensor_seen).tolist() == [[3, 1], [50, 1], [51, 1]]
    assert value(take, "poses-partial") == 3
    xyz[:10, 1, 2] += 7.0
    assert read(write_points(tmp_path / "a.c3d", xyz)).sensor_names == ("S0", "S2")


def test_a_segment_never_seen_whole_stays_markers(rng, tmp_path):
    seen = np.ones((30, 3, 3), bool)
    seen[:, 1, 2] = False
    take = read(write_points(tmp_path / "a.c3d", axis_points(poses(rng)), seen=seen))
    assert take.sensor_names == ("S0", "S2")
    assert take.labels == ("S1", "S1Y", "S1Z")


def test_integers_that_overflow_are_taken_on_the_side_of_the_origin(rng, tmp_path):
    T = poses(rng)
    highest = 32767 * STEP
    T[..., :3, 3] = [0.0, 0.0, highest - 1.0]
    take = read(write_points(tmp_path / "a.c3d", axis_points(T), floats=False))
    assert angle(take.T_world_sensor, T).max() < 2 * np.sqrt(3) * STEP / AXIS_LENGTH
    over = (axis_points(T)[..., 2] > highest + STEP / 2).any(axis=2)
    assert over.any()
    assert value(take, "integers-overflowed") == over.sum()


def test_other_markers_stay_and_the_points_stay_on_request(rng, tmp_path):
    T = poses(rng)
    more = [("LKNE", rng.normal(size=(30, 3))), ("S9Y", rng.normal(size=(30, 3)))]
    path = write_points(tmp_path / "a.c3d", axis_points(T), more=more)
    take, whole = read(path), read(path, computed=True)
    assert take.labels == ("LKNE", "S9Y")
    ends = ("", "Y", "Z")
    assert whole.labels == (*(f"S{i}{e}" for i in range(3) for e in ends), *take.labels)
    np.testing.assert_array_equal(whole.T_world_sensor, take.T_world_sensor)
    np.testing.assert_array_equal(whole.points[:, 9:], take.points)
    np.testing.assert_allclose(
        whole.points[:, :9], 1e-3 * axis_points(T).reshape(30, 9, 3), atol=1e-7
    )


def test_several_subjects_stand_before_the_names_of_their_segments(rng, tmp_path):
    xyz = axis_points(poses(rng))
    one = read(write_points(tmp_path / "a.c3d", xyz, subject="Ann:"))
    assert one.sensor_names == ("S0", "S1", "S2")
    other = [("Bob:" + e, xyz[:, 0, k]) for k, e in enumerate(("S0", "S0Y", "S0Z"))]
    two = read(write_points(tmp_path / "a.c3d", xyz, subject="Ann:", more=other))
    assert two.sensor_names == ("Ann:S0", "Ann:S1", "Ann:S2", "Bob:S0")
    np.testing.assert_array_equal(
        two.T_world_sensor[:, 3], np.asarray(two.T_world_sensor[:, 0])
    )


def test_axes_of_plug_in_gait_are_left_out_not_read_as_poses(rng, tmp_path):
    T = poses(rng, segments=1)
    ends = axis_points(T, "XYZ")[:, 0]
    more = [(f"LFE{e}", ends[:, k]) for k, e in enumerate("OALP")]
    take = read(write_points(tmp_path / "a.c3d", axis_points(T)[:, :0], more=more))
    assert (take.labels, take.sensor_names) == ((), ())
    assert codes(take) == {"computed-left-out"}


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("subject", ["", "Ann:"])
def test_what_was_read_comes_back_when_written(computed, subject, rng, tmp_path):
    T = poses(rng)
    seen = rng.random((30, 3, 3)) < 0.9
    more = [("Bob:LKNE", rng.normal(size=(30, 3)))]
    path = write_points(
        tmp_path / "a.c3d", axis_points(T), seen=seen, subject=subject, more=more
    )
    take = read(path, computed=computed)
    data = b"".join(FORMAT.write_take(take, WriteOptions())[""])
    (tmp_path / "b.c3d").write_bytes(data)
    again = read(tmp_path / "b.c3d", computed=computed)
    assert again.sensor_names == take.sensor_names
    assert again.full_labels == take.full_labels
    np.testing.assert_allclose(
        again.T_world_sensor, take.T_world_sensor, rtol=6e-8, atol=1e-12
    )
    np.testing.assert_allclose(again.points, take.points, rtol=6e-8)
    assert b"".join(FORMAT.write_take(again, WriteOptions())[""]) == data
    # Without computed= the points that were kept leave, the poses stay as they are.
    plain = read(tmp_path / "b.c3d")
    assert plain.full_labels == ("Bob:LKNE",)
    assert plain.sensor_names == take.sensor_names


def test_of_several_poses_per_frame_the_first_is_read_with_a_finding(rng, tmp_path):
    T = in_metres(poses(rng, frames=12))
    take = Take(rate=50.0, T_world_sensor=T, sensor_names=("a", "b", "c"))
    markers = np.ones((12, 1, 3))
    take = dataclasses.replace(
        take, points=markers, labels=("M",), subjects=(), filled=markers[..., 0] < 0
    )
    data = bytearray(b"".join(FORMAT.write_take(take, WriteOptions())[""]))
    ratio = data.index(b"RATIO") + len(b"RATIO") + 4
    assert data[ratio] == 1
    data[ratio] = 2
    (tmp_path / "a.c3d").write_bytes(data + bytes(12 * 3 * 17 * 4))
    found = read(tmp_path / "a.c3d")
    np.testing.assert_allclose(found.T_world_sensor[:6], T[::2], atol=1e-6)
    assert value(found, "poses-left-out") == 2


@pytest.mark.usefixtures("unchecked")
def test_damaged_files_end_in_a_take_or_a_typed_error(rng, tmp_path, slow):
    path = tmp_path / "a.c3d"
    seeds = [
        write_points(
            path, axis_points(poses(rng), axes), axes, floats=floats
        ).read_bytes()
        for axes, floats in (("YZ", True), ("XYZ", False))
    ]
    for i in range(2000 if slow else 100):
        data = seeds[i % 2]
        path.write_bytes(mutated(data, rng, len(data) if i % 4 else 1024))
        try:
            take = read(path)
        except FormatError:
            continue
        R = take.T_world_sensor[take.sensor_seen][:, :3, :3]
        np.testing.assert_allclose(R @ R.swapaxes(-1, -2), np.eye(3) + 0 * R, atol=1e-9)
