"""FBX: joints, skin and takes as ufbx reads them, in any unit, of several figures."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import marey
from marey import synth
from marey.errors import DataError, OptionError
from marey.io.formats import fbx
from marey.io.formats.fbx import records
from marey.io.options import WriteOptions
from marey.io.scene import build_scene
from marey.io.units_axes import points_from_file
from marey.report import Report
from marey.solution import Solution, Subject

READER = Path(__file__).parent / "fbx_reader.py"
TOLERANCE_M = 1e-5
"""A hundredth of a millimetre."""


def read_with_ufbx(path):
    out = path.with_suffix(".npz")
    subprocess.run([sys.executable, READER, path, out], check=True, timeout=60)
    with np.load(out) as content:
        return dict(content)


def joints_in_file(found, names, take=0, unit="cm", up="y"):
    """Positions of joints as the file has them, in marey's world."""
    order = [found["names"].tolist().index(name) for name in names]
    points = found[f"T{take}"][:, order][..., :3, 3].copy()
    return points_from_file(points, unit, up)


@pytest.fixture(scope="module")
def motion():
    """An exercise: every joint turns, the root as well."""
    take = synth.human(seed=1).record(
        "exercise", seconds=1.0, rate=30.0, markers="none", sensors=True
    )
    return take.truth.motion


@pytest.fixture(scope="module")
def written(motion, tmp_path_factory):
    path = tmp_path_factory.mktemp("fbx") / "exercise.fbx"
    marey.write(motion, path)
    return path


@pytest.fixture(scope="module")
def found(written):
    return read_with_ufbx(written)


def test_joints_are_where_they_were(found, motion):
    points = joints_in_file(found, motion.skeleton.names)
    wanted = motion.T_world_joint()[..., :3, 3]
    np.testing.assert_allclose(points, wanted, atol=TOLERANCE_M)


def test_the_skin_follows_as_in_the_scene(found, motion):
    mesh = build_scene(motion).figures[0].mesh
    wanted = mesh.skin(motion.skeleton, motion.T_world_joint())
    points = points_from_file(found["vertices"].copy(), "cm", "y")
    np.testing.assert_allclose(points, wanted, atol=TOLERANCE_M)


def test_a_file_says_its_unit_axes_and_rate(found):
    assert (found["unit"], found["up"], found["rate"]) == (0.01, "POSITIVE_Y", 30.0)
    assert found["warnings"].size == 0


def test_the_hierarchy_is_kept(found, motion):
    parents = dict(zip(found["names"].tolist(), found["parents"].tolist(), strict=True))
    skeleton = motion.skeleton
    for joint, parent in enumerate(skeleton.parent.tolist()):
        above = skeleton.names[parent] if parent >= 0 else ""
        assert parents[skeleton.names[joint]] == above


@pytest.mark.parametrize(("unit", "up"), [("m", "z"), ("mm", "y")])
def test_other_units_and_axes_are_stated(motion, tmp_path, unit, up):
    path = tmp_path / "a.fbx"
    marey.write(motion.cut(0, 4), path, unit=unit, up=up)
    found = read_with_ufbx(path)
    points = joints_in_file(found, motion.skeleton.names, unit=unit, up=up)
    wanted = motion.T_world_joint()[:4, :, :3, 3]
    np.testing.assert_allclose(points, wanted, atol=TOLERANCE_M)
    assert found["unit"] == pytest.approx({"m": 1.0, "mm": 1e-3}[unit])
    assert found["up"] == f"POSITIVE_{up.upper()}"


def test_an_axis_that_no_program_takes_is_refused(motion, tmp_path):
    with pytest.raises(OptionError, match="y or z"):
        marey.write(motion, tmp_path / "a.fbx", up="x")


def test_curves_have_no_jumps(motion):
    """A body that turns on and on gets angles that grow, not angles that wrap."""
    turns = np.linspace(0.0, 6.0 * np.pi, 60)
    wxyz = np.zeros((60, motion.skeleton.n_joints, 4))
    wxyz[..., 0] = 1.0
    wxyz[:, 0] = np.stack(
        [np.cos(turns / 2), 0 * turns, 0 * turns, np.sin(turns / 2)], axis=-1
    )
    T = np.tile(np.eye(4), (60, 1, 1))
    T[:, 0, 0], T[:, 0, 1] = np.cos(turns), -np.sin(turns)
    T[:, 1, 0], T[:, 1, 1] = np.sin(turns), np.cos(turns)
    spinning = marey.Motion(
        skeleton=motion.skeleton, T_world_root=T, wxyz=wxyz, rate=30.0
    )
    angles = fbx.continuous_angles(spinning, "y")
    assert np.abs(np.diff(angles, axis=0)).max() < 20.0
    assert np.ptp(angles[:, 0, 1]) == pytest.approx(1080.0)


def two_people_in_two_takes(motion):
    other = replace(motion, T_world_root=motion.T_world_root.copy())
    other.T_world_root[:, 0, 3] += 2.0
    short, long = motion.cut(0, 3), motion.cut(3, 8)
    takes = [
        marey.Take(rate=30.0, points=np.zeros((n, 0, 3)), labels=()) for n in (3, 5)
    ]
    subjects = (
        Subject("Ada", motion.skeleton, (short, long)),
        Subject("Bob", motion.skeleton, (other.cut(0, 3), other.cut(3, 8))),
    )
    linkage = synth.linkage().record(markers=4, seconds=2.0, rate=50.0)
    solved = marey.solve(linkage, calibrate=False)
    return replace(solved, takes=tuple(takes), subjects=subjects, report=Report())


def test_several_figures_and_takes_are_one_scene(motion, tmp_path):
    solution = two_people_in_two_takes(motion)
    assert isinstance(solution, Solution)
    path = tmp_path / "duet.fbx"
    marey.write(solution, path)
    found = read_with_ufbx(path)
    assert len(found["stacks"]) == 2
    for subject in solution.subjects:
        names = [f"{subject.name}:{name}" for name in motion.skeleton.names]
        for number, one in enumerate(subject.motions):
            points = joints_in_file(found, names, take=number)
            wanted = one.T_world_joint()[..., :3, 3]
            np.testing.assert_allclose(points, wanted, atol=TOLERANCE_M)


def test_a_skeleton_alone_is_at_rest(motion, tmp_path):
    path = tmp_path / "rest.fbx"
    marey.write(motion.skeleton, path)
    found = read_with_ufbx(path)
    assert found["stacks"].size == 0
    assert set(motion.skeleton.names) < set(found["names"].tolist())


def test_the_same_motion_gives_the_same_bytes(motion, written, tmp_path):
    marey.write(motion, tmp_path / "again.fbx")
    assert (tmp_path / "again.fbx").read_bytes() == written.read_bytes()


def test_markers_are_nodes_that_move(motion, tmp_path):
    on_hips = replace(
        motion.skeleton,
        marker_labels=("LASI", "RASI"),
        marker_joint=np.zeros(2, dtype=np.int64),
        marker_offset=np.array([[0.1, 0.1, 0.0], [0.1, -0.1, 0.0]]),
    )
    marked = replace(motion.cut(0, 5), skeleton=on_hips)
    marey.write(marked, tmp_path / "marked.fbx", markers=True)
    found = read_with_ufbx(tmp_path / "marked.fbx")
    points = joints_in_file(found, on_hips.marker_labels)
    np.testing.assert_allclose(points, marked.marker_points(), atol=TOLERANCE_M)


def test_gaps_hold_the_last_pose(motion, tmp_path):
    T = motion.T_world_root[:5].copy()
    wxyz = motion.wxyz[:5].copy()
    T[2:4], wxyz[2:4] = np.nan, np.nan
    gap = replace(motion.cut(0, 5), T_world_root=T, wxyz=wxyz)
    marey.write(gap, tmp_path / "gap.fbx")
    found = read_with_ufbx(tmp_path / "gap.fbx")
    points = joints_in_file(found, motion.skeleton.names)
    np.testing.assert_allclose(points[3], points[1], atol=TOLERANCE_M)


def test_more_than_the_offsets_can_count_is_refused(motion, monkeypatch):
    monkeypatch.setattr(records, "MAX_BYTES", 10_000)
    with pytest.raises(DataError, match="fewer frames"):
        fbx.write_scene(motion, WriteOptions())
