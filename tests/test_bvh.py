"""BVH: any channels, any layout, the pose a naive loop gives, no depth too deep."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from damage import survive
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey.io.formats import bvh

PLAIN = """HIERARCHY
ROOT Hips
{
  OFFSET 1 2 3
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Left Arm:upper
  {
    OFFSET 10 0 0
    CHANNELS 3 Yrotation Zrotation Xrotation
    JOINT Hand
    {
      OFFSET 0 20 0
      CHANNELS 1 Xrotation
      End Site
      {
        OFFSET 0 0 5
      }
    }
  }
  JOINT Head
  {
    OFFSET 0 30 0
    CHANNELS 2 Zrotation Yrotation
    End Site
    {
      OFFSET 0 0 0
    }
  }
}
MOTION
Frames: 2
Frame Time: .0083333
0 100 0 0 0 0 0 0 0 0 0 0
5 90 -4 10 20 30 40 50 60 70 80 90
"""


@pytest.fixture
def saved(tmp_path):
    def save(content):
        path = tmp_path / "x.bvh"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return save


def codes(thing):
    return {finding.code for finding in thing.source.findings}


def axis_turn(axis, degrees):
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    R = np.eye(4)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def naive_poses(joints, row):
    """T_file_joint of one frame: joints are (parent, offset, channels)."""
    poses, column = [], 0
    for parent, offset, channels in joints:
        place, R = np.array(offset, dtype=float), np.eye(4)
        for channel in channels:
            value = row[column]
            column += 1
            axis = "XYZ".index(channel[0])
            if channel.endswith("position"):
                place[axis] = value
            else:
                R = R @ axis_turn(axis, value)
        T = np.eye(4)
        T[:3, 3] = place
        T = T @ R
        poses.append(poses[parent] @ T if parent >= 0 else T)
    return poses


def spell(joints, rows):
    """The BVH of joints in depth-first order, without End Sites."""
    lines, stack = ["HIERARCHY"], []
    for i, (parent, offset, channels) in enumerate(joints):
        while stack and stack[-1] != parent:
            stack.pop()
            lines.append("}")
        lines += [f"{'JOINT' if i else 'ROOT'} j{i}", "{"]
        lines.append("OFFSET " + " ".join(map(repr, map(float, offset))))
        lines.append(f"CHANNELS {len(channels)} {' '.join(channels)}")
        stack.append(i)
    lines += ["}"] * len(stack)
    lines += ["MOTION", f"Frames: {len(rows)}", "Frame Time: 0.01"]
    lines += [" ".join(map(repr, map(float, row))) for row in rows]
    return "\n".join(lines) + "\n"


@given(data=st.data(), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=30)
def test_any_channels_in_any_order_give_the_naive_pose(data, seed, tmp_path_factory):
    rng = np.random.default_rng(seed)
    turns = [f"{a}rotation" for a in "XYZ"]
    moves = [f"{a}position" for a in "XYZ"]
    joints, last = [], [0]
    for i in range(data.draw(st.integers(1, 5))):
        parent = int(rng.choice(last)) if i else -1
        last = [*last[: last.index(parent) + 1], i] if i else [0]
        channels = data.draw(st.permutations(turns + moves))
        channels = channels[: data.draw(st.integers(0 if i else 1, 6))]
        joints.append((parent, rng.normal(size=3), list(channels)))
    width = sum(len(channels) for _, _, channels in joints)
    rows = rng.uniform(-200, 200, size=(3, width))
    path = tmp_path_factory.mktemp("bvh") / "x.bvh"
    path.write_text(spell(joints, rows))
    take = marey.read(path, unit="m", up="z")
    wanted = np.array([naive_poses(joints, row) for row in rows])
    names = [f"j{i}" for i in range(len(joints))]
    kept = [names.index(name) for name in take.sensor_names]
    np.testing.assert_allclose(take.T_world_sensor, wanted[:, kept], atol=1e-9)
    motion = marey.read_motion(path, unit="m", up="z")
    if "joint-translates" not in codes(motion):
        np.testing.assert_allclose(motion.T_world_joint(), wanted, atol=1e-9)


def test_the_skeleton_says_what_the_hierarchy_says(saved):
    motion = marey.read_motion(saved(PLAIN))
    s = motion.skeleton
    assert s.names == ("Hips", "Left Arm:upper", "Hand", "Hand_end", "Head")
    assert s.kind == ("root", "ball", "hinge", "fixed", "universal")
    assert s.parent.tolist() == [-1, 0, 1, 2, 0]
    # Y up: file (x, y, z) cm is (x, -z, y) here.
    np.testing.assert_allclose(s.offset[[0, 2]], [[0.01, -0.03, 0.02], [0, 0, 0.2]])
    np.testing.assert_allclose(s.axes[2, 0], [1, 0, 0])
    np.testing.assert_allclose(s.axes[4], [[0, -1, 0], [0, 0, 1]])
    assert motion.rate == 120.0
    np.testing.assert_allclose(motion.T_world_root[0, :3, 3], [0, 0, 1])
    assert codes(motion) == {"unit-assumed", "up-assumed"}
    assert marey.read(saved(PLAIN)).sensor_names == ("Hips", *s.names[1:3], "Head")


@pytest.mark.parametrize(
    "twin",
    [
        PLAIN.replace("  ", "\t").replace(" 30 40", "\t30   40"),
        PLAIN.replace("\n{", " {"),
        PLAIN.replace("\n  ", " ")
        .replace("Arm:upper", "Arm:upper {", 1)
        .replace("{ {", "{"),
        PLAIN.replace("100 0", "1e2 0.0E+0"),
        PLAIN.replace("10 20 30", "10 20\n30"),
        PLAIN.lower(),
        PLAIN.replace("End Site", "End Site tip"),
        PLAIN.replace("rotation", "ROTATION").replace("Frames: 2", "Frames:2"),
    ],
    ids=["tabs", "braces", "few lines", "e", "wrapped", "lower", "named", "upper"],
)
def test_every_layout_says_the_same(saved, twin):
    want = marey.read_motion(saved(PLAIN)).T_world_joint()
    np.testing.assert_array_equal(marey.read_motion(saved(twin)).T_world_joint(), want)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (PLAIN.replace("Frames: 2", "Frames: 9"), "frames-missing"),
        (PLAIN.replace("Frames: 2", "Frames: 1"), "frames-extra"),
        (PLAIN.replace("Frames: 2", "Frames: many"), "frames-extra"),
        (PLAIN[:-9], "frames-missing"),
        (PLAIN[:-1], "line-unended"),
        (PLAIN.replace("OFFSET 10 0 0", "OFFSET 10 0 0 90 0 0"), "offsets-longer"),
        (PLAIN.replace("JOINT Head", "JOINT Hand"), "labels-repeated"),
        (PLAIN.replace("JOINT Head", "JOINT"), "labels-missing"),
        (PLAIN.replace(".0083333", "0"), "rate-assumed"),
    ],
)
def test_a_doubt_is_a_finding(saved, content, code):
    motion = marey.read_motion(saved(content))
    assert code in codes(motion)
    assert len(set(motion.skeleton.names)) == 5


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (PLAIN.split("MOTION")[0], "expected MOTION"),
        (PLAIN.replace("}\nMOTION", "MOTION"), "1 more }"),
        (PLAIN.replace("OFFSET 10 0 0", ""), "line 19: expected an OFFSET"),
        (PLAIN.replace("OFFSET 10 0 0", "OFFSET 10 0"), "line 9: expected a number"),
        (PLAIN.replace("3 Yrotation", "3 Wrotation"), "line 9: .* Zrotation"),
        (PLAIN.replace("CHANNELS 6", "CHANNELS 999999999"), "0 to 64"),
        (PLAIN.replace("100", "1_00"), "line 33: .* found a word"),
        (PLAIN.replace("100", "nan"), "line 33: .* found a word"),
        (PLAIN.replace("100", "1e99"), "line 33: .* within"),
        (PLAIN.replace("0 100", "0 100 7"), "line 33: expected 12 numbers"),
        (PLAIN.replace("JOINT Head", "ROOT Head"), "one ROOT"),
        (PLAIN.split("0 100")[0], "line 33|expected a line of channels"),
        (PLAIN.replace("\n0 100", "\nx 100"), "a word"),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_line(saved, content, match):
    with pytest.raises(marey.FormatError, match=match):
        marey.read_motion(saved(content))


def nested(levels, end=True):
    head = ["HIERARCHY", "ROOT a {", "OFFSET 0 0 0", "CHANNELS 3"]
    head += ["Xposition Yposition Zposition"]
    for level in range(levels):
        head += [f"JOINT b{level} {{", "OFFSET 0 0 1", "CHANNELS 0"]
    close = ["}"] * (levels + 1) if end else []
    return "\n".join(
        [*head, *close, "MOTION", "Frames: 1", "Frame Time: 1", "0 0 0", ""]
    )


@pytest.mark.slow
def test_ten_thousand_levels_are_read_and_written(saved, tmp_path):
    motion = marey.read_motion(saved(nested(10_000)), unit="m", up="z")
    assert motion.T_world_joint()[0, -1, 2, 3] == 10_000.0
    marey.write(motion, tmp_path / "y.bvh")
    again = marey.read_motion(tmp_path / "y.bvh")
    assert again.skeleton.names == motion.skeleton.names
    with pytest.raises(marey.FormatError, match="20000 joints"):
        marey.read_motion(saved(nested(30_000)))


def test_many_joints_times_many_frames_is_bounded(saved):
    content = nested(5_000) + "0 0 0\n" * 100_000
    with pytest.raises(marey.FormatError, match="frames that fill the file"):
        marey.read_motion(saved(content))


def test_one_endless_line_is_bounded(saved):
    with pytest.raises(marey.FormatError, match="expected 12 numbers"):
        marey.read_motion(
            saved(PLAIN.replace("\n5 90", "\n" + "1 " * 3_000_000 + "90"))
        )


def test_a_joint_that_moves_against_its_parent_is_exact_in_the_take(saved):
    content = spell(
        [(-1, [0, 0, 0], ["Xposition"]), (0, [9, 9, 9], ["Yposition"])],
        [[1, 2], [1, 4]],
    )
    take = marey.read(saved(content), unit="m", up="z")
    assert take.T_world_sensor[:, 0, 0, 3].tolist() == [1.0, 1.0]
    motion = marey.read_motion(saved(content), unit="m", up="z")
    assert motion.skeleton.offset[1].tolist() == [9.0, 3.0, 9.0]
    (found,) = (f for f in motion.source.findings if f.code == "joint-translates")
    assert (found.value, found.subject) == (2.0, "j1")


@given(seed=st.integers(0, 2**32), unit=st.sampled_from(["cm", "m", "in"]))
@settings(deadline=None, max_examples=20)
def test_what_is_written_comes_back_to_the_stated_precision(
    seed, unit, tmp_path_factory
):
    motion = random_motion(np.random.default_rng(seed))
    path = tmp_path_factory.mktemp("bvh") / "x.bvh"
    marey.write(motion, path, unit=unit)
    again = marey.read_motion(path, unit=unit)
    order = [again.skeleton.names.index(name) for name in motion.skeleton.names]
    found, wanted = again.T_world_joint()[:, order], motion.T_world_joint()
    np.testing.assert_allclose(found, wanted, atol=bvh.FORMAT.precision)
    assert again.rate == pytest.approx(motion.rate, rel=1e-9)
    assert (again.skeleton.is_end[order] == motion.skeleton.is_end).all()


def random_motion(rng, n_joints=8, n_frames=5):
    parent = np.array([-1, *(int(rng.integers(i)) for i in range(1, n_joints))])
    leaf = ~np.isin(np.arange(n_joints), parent)
    names = ["Hips", *(f"joint {i}" for i in range(1, n_joints))]
    kind: list[Any] = ["root", *["ball"] * (n_joints - 1)]
    for i in np.flatnonzero(leaf & (rng.random(n_joints) < 0.6)):
        if i:
            kind[i] = "fixed"
            names[i] = f"{names[parent[i]]}_end" if rng.random() < 0.5 else names[i]
    wxyz = rng.normal(size=(n_frames, n_joints, 4))
    wxyz[:, [k == "fixed" for k in kind]] = [1, 0, 0, 0]
    wxyz /= np.linalg.norm(wxyz, axis=-1, keepdims=True)
    T = marey.geometry.transform(
        marey.geometry.matrix_from_quat(wxyz[:, 0]),
        rng.normal(size=(n_frames, 3)),
    )
    names = [f"{n}{i}" if n in names[:i] else n for i, n in enumerate(names)]
    skeleton = marey.Skeleton(
        names=tuple(names),
        parent=parent,
        offset=rng.normal(size=(n_joints, 3)),
        kind=tuple(kind),
    )
    return marey.Motion(
        skeleton=skeleton, T_world_root=T, wxyz=wxyz, rate=float(rng.uniform(20, 300))
    )


def test_a_gap_holds_the_last_known_pose(tmp_path, rng):
    motion = random_motion(rng)
    wxyz, T = motion.wxyz.copy(), motion.T_world_root.copy()
    wxyz[[0, 3], 1] = np.nan
    T[2] = np.nan
    gappy = replace(motion, wxyz=wxyz, T_world_root=T)
    lost = marey.write(gappy, tmp_path / "x.bvh")
    assert any("missing" in finding.message for finding in lost)
    read = marey.read_motion(tmp_path / "x.bvh")
    order = [read.skeleton.names.index(name) for name in motion.skeleton.names]
    again, whole = read.T_world_joint()[:, order], motion.T_world_joint()
    np.testing.assert_allclose(again[[1, 4]], whole[[1, 4]], atol=1e-6)
    np.testing.assert_allclose(again[2, 0], again[1, 0], atol=1e-12)


def test_names_that_the_format_cannot_hold_are_respelled(tmp_path):
    skeleton = marey.Skeleton(
        names=("a{b}", "c\nd", "e f:g"), parent=np.array([-1, 0, 1]), offset=np.eye(3)
    )
    motion = marey.Motion(
        skeleton=skeleton,
        T_world_root=np.eye(4)[None],
        wxyz=np.tile([1.0, 0, 0, 0], (1, 3, 1)),
        rate=1.0,
    )
    marey.write(motion, tmp_path / "x.bvh")
    read = marey.read_motion(tmp_path / "x.bvh")
    assert read.skeleton.names == ("a_b_", "c_d", "e f:g")
    uneven = motion.at(np.zeros(1))
    with pytest.raises(marey.DataError, match="resample"):
        marey.write(uneven, tmp_path / "y.bvh")


@pytest.mark.parametrize("read", [marey.read, marey.read_motion])
def test_damage_gives_a_typed_error_or_a_result(read, tmp_path, request):
    path = tmp_path / "x.bvh"
    path.write_bytes(PLAIN.encode())
    survive(read, path)
