"""ASF/AMC: bones become joints, the pose is the naive one, everything comes back."""

import math
from dataclasses import replace

import numpy as np
import pytest
from damage import survive
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey.io.formats import amc

ASF = """# a comment
:version 1.10
:name test
:units
  mass 1.0
  length 0.45
  angle deg
:documentation
  free text, with begin and end
:root
  order TX TY TZ RX RY RZ
  axis XYZ
  position 0 0 0
  orientation 0 0 0
:bonedata
  begin
    id 1
    name hip
    direction 1 0 0
    length 2
    axis 0 0 0 XYZ
  end
  begin
    id 2
    name thigh
    direction 0 -1 0
    length 4.5
    axis 10 20 30 XYZ
    dof rx ry rz
    limits (-160.0 20.0)
           (-70.0 70.0)
           (-inf inf)
  end
  begin
    id 3
    name shin
    direction 0 -1 0
    length 3
    axis 0 0 20 XYZ
    dof rz rx
    limits (-10 170) (-5 5)
  end
  begin
    id 4
    name toe
    direction 0 0 1
    length 1
    axis 0 90 0 XYZ
    dof ry
    limits (0 90)
  end
:hierarchy
  begin
    root hip
    hip thigh
    thigh shin
    shin toe
  end
"""
AMC = """#!OML:ASF somewhere
:FULLY-SPECIFIED
:DEGREES
1
root 1 2 3 10 20 30
thigh 5 -6 7
shin 11 12
toe 45
2
root 1.5 2e0 3 -10 20 30
thigh 5.25 -6 7e-25
shin 11 12
toe 50
"""
INCH = 0.0254


@pytest.fixture
def pair(tmp_path):
    def save(motion=AMC, figure=ASF, name="take"):
        (tmp_path / f"{name}.asf").write_text(figure)
        path = tmp_path / f"{name}.amc"
        path.write_text(motion)
        return path

    return save


def codes(motion):
    return {finding.code for finding in motion.source.findings}


def turn(axis, degrees):
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def naive_positions(root, bones, row):
    """Bone starts and ends of one frame: bones are (parent, vector, axis, dof)."""
    position, R_root = np.array(row["root"][:3]), np.eye(3)
    for axis, value in zip("xyz", row["root"][3:], strict=True):
        R_root = turn("xyz".index(axis), value) @ R_root
    poses, ends = {"root": (R_root, position)}, {"root": position}
    for name, (parent, vector, angles, dof) in bones.items():
        C = turn(2, angles[2]) @ turn(1, angles[1]) @ turn(0, angles[0])
        M = np.eye(3)
        for channel, value in zip(dof, row.get(name, ()), strict=True):
            M = turn("xyz".index(channel[1]), value) @ M
        R = poses[parent][0] @ C @ M @ C.T
        poses[name] = (R, ends[parent])
        ends[name] = ends[parent] + R @ vector
    return {name: p for name, (_, p) in poses.items()}, ends


BONES = {
    "hip": ("root", [2, 0, 0], [0, 0, 0], ()),
    "thigh": ("hip", [0, -4.5, 0], [10, 20, 30], ("rx", "ry", "rz")),
    "shin": ("thigh", [0, -3, 0], [0, 0, 20], ("rz", "rx")),
    "toe": ("shin", [0, 0, 1], [0, 90, 0], ("ry",)),
}
ROW = {
    "root": [1, 2, 3, 10, 20, 30],
    "thigh": [5, -6, 7],
    "shin": [11, 12],
    "toe": [45],
}


def test_the_pose_is_that_of_the_naive_version(pair):
    motion = marey.read_motion(pair(), up="z")
    starts, ends = naive_positions("root", BONES, ROW)
    found = dict(zip(motion.skeleton.names, motion.T_world_joint()[0], strict=True))
    scale = INCH / 0.45
    for name, place in starts.items():
        np.testing.assert_allclose(found[name][:3, 3], scale * place, atol=1e-12)
    np.testing.assert_allclose(found["toe_end"][:3, 3], scale * ends["toe"], atol=1e-12)


def test_the_skeleton_has_kinds_axes_and_limits(pair):
    s = marey.read_motion(pair(), up="z").skeleton
    assert s.names == ("root", "hip", "thigh", "shin", "toe", "toe_end")
    assert s.kind == ("root", "fixed", "ball", "universal", "hinge", "fixed")
    # dof rz rx about fixed axes: about moving ones x comes first.
    C = turn(2, 20)
    np.testing.assert_allclose(s.axes[3], [C[:, 0], C[:, 2]], atol=1e-12)
    np.testing.assert_allclose(np.degrees(s.limits[3, :2]), [[-5, 5], [-10, 170]])
    # The bone lies along -y of its own frame turned by C: y twists, z and x swing.
    C = turn(2, 30) @ turn(1, 20) @ turn(0, 10)
    np.testing.assert_allclose(s.axes[2], [C[:, 2], C[:, 0]], atol=1e-12)
    limits = np.array([[np.nan] * 2, [-160, 20], [-70, 70]])
    np.testing.assert_allclose(np.degrees(s.limits[2]), limits)
    np.testing.assert_allclose(s.axes[4, 0], [0, 1, 0], atol=1e-12)


def test_the_source_says_what_was_found_and_how(pair):
    motion = marey.read_motion(pair())
    assert str(motion.source.unit).startswith("in (inferred: ASF length 0.45")
    assert codes(motion) == {"skeleton-found", "up-assumed", "rate-assumed"}
    assert motion.rate == 120.0
    assert motion.source.parameters["skeleton"].endswith("take.asf")
    other = marey.read_motion(pair(figure=ASF.replace("length 0.45", "length 1.0")))
    assert "unit-assumed" in codes(other)
    np.testing.assert_allclose(
        other.skeleton.offset / 0.45, motion.skeleton.offset, atol=1e-12
    )


@pytest.mark.parametrize(
    ("motion", "figure"),
    [
        (AMC.replace("\n1\n", "\n# note\n\n1\n"), ASF),
        (AMC.replace(" ", "\t  "), ASF.replace("  ", "\t")),
        (AMC, ASF.replace("(", " ").replace(")", ",")),
        (AMC.replace(":FULLY-SPECIFIED\n", ""), ASF),
        (AMC.replace("shin 11 12\ntoe 45", "toe 45\nshin 11 12"), ASF),
        (
            AMC,
            ASF.replace(
                "    root hip\n    hip thigh\n", "    hip thigh\n    root hip\n"
            ),
        ),
    ],
    ids=["comments", "tabs", "brackets", "no keyword", "bone order", "parent order"],
)
def test_every_layout_says_the_same(pair, motion, figure):
    want = marey.read_motion(pair()).T_world_joint()
    got = marey.read_motion(pair(motion, figure)).T_world_joint()
    np.testing.assert_array_equal(got, want)


def test_radians_are_radians(pair):
    want = marey.read_motion(pair()).T_world_joint()

    def to_radians(line):
        name, *cells = line.split()
        keep = cells[:3] if name == "root" else []
        turns = [repr(math.radians(float(c))) for c in cells[len(keep) :]]
        return " ".join([name, *keep, *turns]) if turns else line

    lines = [to_radians(line) for line in AMC.split("\n")[3:-1]]
    text = ":FULLY-SPECIFIED\n:RADIANS\n" + "\n".join(lines) + "\n"
    got = marey.read_motion(pair(text)).T_world_joint()
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_a_bone_left_out_rests_or_is_unknown(pair):
    motion = marey.read_motion(
        pair(AMC.replace("toe 45\n", "").replace("toe 50\n", ""))
    )
    np.testing.assert_array_equal(motion.wxyz[:, 4], [[1, 0, 0, 0]] * 2)
    assert "bone-missing" in codes(motion)
    motion = marey.read_motion(pair(AMC.replace("toe 45\n", "")))
    assert np.isnan(motion.wxyz[0, 4]).all()
    assert np.isfinite(motion.wxyz[1]).all()


@pytest.mark.parametrize("cut", ["toe 50\n", "shin 11 12\ntoe 50\n", "2\ntoe 50\n"])
def test_a_cut_last_frame_is_left_out_and_said(pair, cut):
    motion = marey.read_motion(pair(AMC[: AMC.rindex(cut.split("\n")[0])]))
    assert motion.n_frames == 1
    assert "frames-missing" in codes(motion)


@pytest.mark.parametrize(
    ("motion", "match"),
    [
        (AMC.replace("thigh 5 -6 7", "thigh 5 -6"), "line 6: expected one number per"),
        (AMC.replace("thigh 5 -6 7", "thigh 5 -6 7 8"), "line 6: expected one number"),
        (AMC.replace("toe 45", "tail 45"), "line 8: expected a bone of the ASF"),
        (AMC.replace("toe 45", "toe 4_5"), "line 8: expected a number, found 4_5"),
        (AMC.replace("toe 45", "toe nan"), "line 8: expected a number"),
        (AMC.replace("toe 45", "toe 1e99"), "within"),
        (AMC.replace("\n1\n", "\n"), "line 4: expected a frame number"),
        (AMC.split("1\n")[0], "at least one frame"),
    ],
)
def test_a_damaged_amc_is_refused_at_its_line(pair, motion, match):
    with pytest.raises(marey.FormatError, match=match):
        marey.read_motion(pair(motion))


@pytest.mark.parametrize(
    ("figure", "match"),
    [
        (ASF.replace("    shin toe\n", ""), "a path from every bone"),
        (ASF.replace("    shin toe\n", "    shin toe thigh\n"), "each with one parent"),
        (ASF.replace("root hip", "root tail"), "found tail"),
        (ASF.replace("root hip", "toe hip"), "a path from every bone to the root"),
        (ASF.replace("direction 1 0 0", "direction 1 0 x"), "line 19: .* found x"),
        (ASF.replace("axis 10 20 30 XYZ", "axis 10 20 30 XXZ"), "an order of axes"),
        (ASF.replace("dof rz rx", "dof rz rz"), "at most once"),
        (ASF.replace("name toe", "name shin"), "a new name"),
        (ASF.replace(":root\n", ":rot\n"), "a section :root"),
        (ASF[:-6], "expected end"),
        (ASF.replace("length 0.45", "length 0"), "above 0"),
    ],
)
def test_a_damaged_asf_is_refused_by_its_own_name(pair, figure, match):
    with pytest.raises(marey.FormatError, match=match) as caught:
        marey.read_motion(pair(figure=figure))
    assert caught.value.path.endswith(".asf")


def test_odd_limits_are_left_out_and_said(pair):
    motion = marey.read_motion(pair(figure=ASF.replace("limits (0 90)", "limits (0)")))
    assert "limits-ignored" in codes(motion)
    assert np.isnan(motion.skeleton.limits[4]).all()


def test_a_root_preset_moves_all_frames(pair):
    figure = ASF.replace("position 0 0 0", "position 0 9 0")
    got = marey.read_motion(pair(figure=figure), up="z").T_world_root
    want = marey.read_motion(pair(), up="z").T_world_root
    shift = got[:, :3, 3] - want[:, :3, 3]
    np.testing.assert_allclose(shift, [[0, 9 * INCH / 0.45, 0]] * 2, atol=1e-12)


def test_a_sliding_bone_stands_at_its_mean_place(pair):
    figure = ASF.replace("dof ry\n    limits (0 90)", "dof ry tx")
    motion = AMC.replace("toe 45", "toe 45 1").replace("toe 50", "toe 50 3")
    read = marey.read_motion(pair(motion, figure), up="z")
    plain = marey.read_motion(pair(), up="z").skeleton.offset
    # Its x axis, turned by 90 degrees about y, is -z.
    moved = (read.skeleton.offset - plain)[4] / (INCH / 0.45)
    np.testing.assert_allclose(moved, [0, 0, -2], atol=1e-9)
    (found,) = (f for f in read.source.findings if f.code == "joint-translates")
    assert found.value == pytest.approx(2 * INCH / 0.45)


def test_the_asf_is_looked_for_by_name_then_alone(tmp_path):
    def save(*names):
        for name in names:
            (tmp_path / name).write_text(ASF if name.endswith("asf") else AMC)

    def used():
        return marey.read_motion(tmp_path / "a_b_c.amc").source.parameters["skeleton"]

    save("a_b_c.amc", "only.asf")
    assert used().endswith("only.asf")
    save("a.asf")
    assert used().endswith("/a.asf")
    save("a_b.asf")
    assert used().endswith("/a_b.asf")
    save("a_b_c.ASF")
    (tmp_path / "a_b_c.ASF").write_text(ASF)
    assert used().endswith("/a_b_c.ASF")
    chosen = marey.read_motion(tmp_path / "a_b_c.amc", skeleton=tmp_path / "only.asf")
    assert chosen.source.parameters["skeleton"].endswith("only.asf")
    save("x.amc")
    with pytest.raises(marey.FormatError, match=r"skeleton= naming one, found 4 ASF"):
        marey.read_motion(tmp_path / "x.amc")
    with pytest.raises(marey.FormatError, match="read_skeleton reads it"):
        marey.read_motion(tmp_path / "a.asf")
    names = marey.read_skeleton(tmp_path / "a_b_c.amc").names
    assert names == marey.read_skeleton(tmp_path / "a.asf").names


@pytest.mark.slow
def test_a_chain_of_ten_thousand_bones_is_read(tmp_path):
    bones = "".join(
        f"begin\nname b{i}\ndirection 0 0 1\nlength 1\naxis 0 0 0 XYZ\nend\n"
        for i in range(10_000)
    )
    tree = "".join(f"b{i} b{i + 1}\n" for i in reversed(range(9_999)))
    text = f":root\n:bonedata\n{bones}:hierarchy\nbegin\n{tree}root b0\nend\n"
    (tmp_path / "x.asf").write_text(text)
    skeleton = marey.read_skeleton(tmp_path / "x.asf", unit="m", up="z")
    assert skeleton.rest()[-1, 2, 3] == 10_000.0


def test_many_frames_of_many_bones_are_bounded(pair):
    figure = ASF.replace(
        "  begin\n    id 4",
        "".join(
            f"begin\nname b{i}\ndirection 0 0 1\nlength 1\ndof rx\nend\n"
            for i in range(5000)
        )
        + "  begin\n    id 4",
    ).replace("root hip", "root hip " + " ".join(f"b{i}" for i in range(5000)))
    with pytest.raises(marey.FormatError, match="lines of"):
        marey.read_motion(pair(":DEGREES\n" + "1\n" * 500_000, figure))


def random_figure(rng, n_joints=9):
    """Joints of all kinds with gaps between bones, limits and ends."""
    parent = np.array([-1, *(int(rng.integers(i)) for i in range(1, n_joints))])
    kinds = rng.choice(["ball", "universal", "hinge", "fixed"], size=n_joints)
    kind = ("root", *kinds[1:].tolist())
    axes = np.full((n_joints, 2, 3), np.nan)
    limits = np.full((n_joints, 3, 2), np.nan)
    for i, name in enumerate(kind):
        Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        used = {"hinge": 1, "universal": 2, "ball": 2}.get(name, 0)
        if name != "ball" or rng.random() < 0.5:
            axes[i, :used] = Q[:used]
            rows = 3 if name == "ball" else used
            limits[i, :rows] = np.sort(rng.uniform(-3, 3, size=(rows, 2)), axis=-1)
    limits[rng.random(limits.shape) < 0.2] = np.nan
    offset = rng.normal(size=(n_joints, 3)) * (rng.random(n_joints) < 0.8)[:, None]
    names = ("Hips", *(f"joint{i}" for i in range(1, n_joints)))
    return marey.Skeleton(
        names=names, parent=parent, offset=offset, kind=kind, axes=axes, limits=limits
    )


def random_motion(rng, skeleton, n_frames=5):
    n = skeleton.n_joints
    wxyz = np.zeros((n_frames, n, 4))
    exp, times = marey.numerics.geometry.quat_exp, marey.numerics.geometry.quat_multiply
    for joint, kind in enumerate(skeleton.kind):
        a, b = skeleton.axes[joint]
        if kind in ("hinge", "universal"):
            wxyz[:, joint] = exp(rng.uniform(-3, 3, size=(n_frames, 1)) * a)
        if kind == "universal":
            second = exp(rng.uniform(-3, 3, size=(n_frames, 1)) * b)
            wxyz[:, joint] = times(wxyz[:, joint], second)
        if kind in ("ball", "root"):
            wxyz[:, joint] = exp(rng.normal(size=(n_frames, 3)))
        if kind == "fixed":
            wxyz[:, joint] = [1, 0, 0, 0]
    R = marey.geometry.matrix_from_quat(wxyz[:, 0])
    T = marey.geometry.transform(R, rng.normal(size=(n_frames, 3)))
    rate = float(rng.uniform(20, 300))
    return marey.Motion(skeleton=skeleton, T_world_root=T, wxyz=wxyz, rate=rate)


@given(seed=st.integers(0, 2**32), unit=st.sampled_from([None, "mm", "m"]))
@settings(deadline=None, max_examples=30)
def test_what_is_written_comes_back_with_kinds_axes_and_limits(
    seed, unit, tmp_path_factory
):
    rng = np.random.default_rng(seed)
    motion = random_motion(rng, random_figure(rng))
    path = tmp_path_factory.mktemp("amc") / "x.amc"
    marey.write(motion, path, unit=unit)
    again = marey.read_motion(path)
    a, b = again.skeleton, motion.skeleton
    assert (a.names, a.kind, again.rate) == (b.names, b.kind, motion.rate)
    np.testing.assert_allclose(a.offset, b.offset, atol=1e-7)
    np.testing.assert_allclose(a.limits, b.limits, atol=1e-9)
    np.testing.assert_allclose(a.axes, b.axes, atol=1e-9)
    np.testing.assert_allclose(
        again.T_world_joint(), motion.T_world_joint(), atol=amc.FORMAT.precision
    )
    second = path.with_name("y.amc")
    if unit is None:
        marey.write(again, second)
        for suffix in (".amc", ".asf"):
            old, new = path.with_suffix(suffix), second.with_suffix(suffix)
            assert old.read_bytes() == new.read_bytes()


def test_a_rotation_that_leaves_its_kind_is_kept_rather_than_the_kind(tmp_path, rng):
    motion = random_motion(rng, random_figure(rng))
    wxyz = marey.geometry.quat_exp(rng.normal(size=(*motion.wxyz.shape[:2], 3)))
    motion = replace(motion, wxyz=wxyz)
    marey.write(motion, tmp_path / "x.amc")
    again = marey.read_motion(tmp_path / "x.amc")
    assert set(again.skeleton.kind) == {"root", "ball"}
    np.testing.assert_allclose(again.T_world_joint(), motion.T_world_joint(), atol=1e-6)


def test_names_that_would_mislead_are_respelled(tmp_path):
    names = ("pel vis", "root", "3", ":x", "a_link", "a", "b#c d", "end")
    skeleton = marey.Skeleton(
        names=names, parent=np.arange(8) - 1, offset=np.arange(24.0).reshape(8, 3)
    )
    marey.write(skeleton, tmp_path / "x.asf")
    again = marey.read_skeleton(tmp_path / "x.asf")
    assert again.names == (
        "pel_vis", "_root", "_3", "_:x", "_a_link", "a", "b_c_d", "_end",
    )  # fmt: skip
    np.testing.assert_allclose(again.offset, skeleton.offset, atol=1e-7)


@pytest.mark.parametrize("suffix", [".amc", ".asf"])
def test_damage_to_either_file_gives_a_typed_error_or_a_result(suffix, pair, request):
    path = pair()
    target = path.with_suffix(suffix)

    def read(_):
        return marey.read_motion(path).T_world_joint()

    survive(read, target)
