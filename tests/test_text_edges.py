"""AMC, BVH and VSK files at the edges: presets, still joints, odd layouts."""

import naive
import numpy as np
import pytest

import marey

ASF = """:version 1.10
:units
  length 1.0
  angle deg
:root
  order TX TY TZ RX RY RZ
  axis XYZ
  position 0 0 0
  orientation 0 0 0
:bonedata
  begin
    id 1
    name thigh
    direction 0 -1 0
    length 4
    axis 0 0 0 XYZ
    dof rx tx
  end
:hierarchy
  begin
    root thigh
  end
"""
AMC = """:FULLY-SPECIFIED
:DEGREES
1
root 1 2 3 10 20 30
thigh 5 2
2
root 1 2 3 -10 20 30
thigh 15 2
"""
BVH = """HIERARCHY
ROOT Hips
{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Leg
  {
    OFFSET 0 -40 0
    CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
    End Site
    {
      OFFSET 0 -40 0
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.01
0 90 0 0 0 0 1 -40 2 10 0 0
5 90 0 0 0 0 1 -40 2 20 0 0
"""


def saved(folder, *, asf=ASF, amc=AMC):
    (folder / "take.asf").write_text(asf)
    path = folder / "take.amc"
    path.write_text(amc)
    return path


def codes(motion):
    return {finding.code for finding in motion.source.findings}


# --- ASF and AMC ---------------------------------------------------------------------


@pytest.mark.parametrize("axis", range(3))
def test_a_preset_orientation_turns_the_root_before_its_motion(axis, tmp_path):
    angles = [0, 0, 0]
    angles[axis] = 40
    turned = f"orientation {angles[0]} {angles[1]} {angles[2]}"
    want = marey.read_motion(saved(tmp_path), up="z")
    figure = ASF.replace("orientation 0 0 0", turned)
    got = marey.read_motion(saved(tmp_path, asf=figure), up="z")
    preset = naive.axis_rotation("XYZ"[axis], np.radians(40))
    np.testing.assert_allclose(
        got.T_world_root[:, :3, :3], want.T_world_root[:, :3, :3] @ preset, atol=1e-12
    )
    np.testing.assert_allclose(got.wxyz[:, 1:], want.wxyz[:, 1:], atol=1e-12)


def test_a_bone_that_slides_to_one_place_only_raises_no_doubt(tmp_path):
    still = marey.read_motion(saved(tmp_path), up="z")
    assert "joint-translates" not in codes(still)
    inch = 0.0254
    np.testing.assert_allclose(still.skeleton.offset[1], [2 * inch, 0, 0], atol=1e-12)
    moving = AMC.replace("thigh 15 2", "thigh 15 3")
    moved = marey.read_motion(saved(tmp_path, amc=moving), up="z")
    assert "joint-translates" in codes(moved)


def test_lines_may_be_indented(tmp_path):
    want = marey.read_motion(saved(tmp_path)).T_world_joint()
    indented = "".join(f" \t{line}  \n" for line in AMC.splitlines())
    got = marey.read_motion(saved(tmp_path, amc=indented)).T_world_joint()
    np.testing.assert_array_equal(got, want)


# --- BVH -----------------------------------------------------------------------------


def bvh(folder, text):
    path = folder / "take.bvh"
    path.write_text(text)
    return path


def test_a_joint_that_is_moved_to_one_place_only_raises_no_doubt(tmp_path):
    still = marey.read_motion(bvh(tmp_path, BVH), unit="cm", up="z")
    assert "joint-translates" not in codes(still)
    np.testing.assert_allclose(still.skeleton.offset[1], [0.01, -0.4, 0.02], atol=1e-12)
    moving = bvh(tmp_path, BVH.replace("1 -40 2 20", "2 -40 2 20"))
    assert "joint-translates" in codes(marey.read_motion(moving))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("OFFSET 0 -40 0\n    }", "OFFSET 0 -40 0\n JOINT Toe\n {", "} of the End"),
        ("  JOINT Leg", "  ROOT Leg", "one ROOT, and JOINTs inside its braces"),
    ],
)
def test_a_tree_that_is_none_is_refused_in_words(old, new, message, tmp_path):
    with pytest.raises(marey.FormatError, match=message):
        marey.read_motion(bvh(tmp_path, BVH.replace(old, new)))


def test_a_figure_that_nothing_moves_is_refused(tmp_path):
    lines = [line for line in BVH.splitlines() if "CHANNELS" not in line]
    with pytest.raises(marey.FormatError, match="at least one channel"):
        marey.read_motion(bvh(tmp_path, "\n".join(lines)))


# --- VSK -----------------------------------------------------------------------------

VSK = """<?xml version="1.0"?>
<KinematicModel><Parameters/>
<Skeleton>
<Segment NAME="Pelvis" POSITION="0 0 0" ORIENTATION="0 0 0"><JointFree/>
<Segment NAME="Leg" POSITION="{}" ORIENTATION="0 0 0"><JointBall/></Segment>
</Segment>
</Skeleton>
<MarkerSet><Markers/></MarkerSet></KinematicModel>
"""


@pytest.mark.parametrize("place", ["0 0 0", "300 300 300"])
def test_bones_without_a_way_say_nothing_of_what_is_up(place, tmp_path):
    path = tmp_path / "subject.vsk"
    path.write_text(VSK.format(place))
    found = marey.read_skeleton(path).offset[1]
    given = marey.read_skeleton(path, up="z").offset[1]
    np.testing.assert_array_equal(found, given)
    np.testing.assert_allclose(given * 1e3, [float(v) for v in place.split()])
