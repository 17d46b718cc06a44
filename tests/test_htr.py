"""HTR: written here from poses, read back against loops over the same poses."""

from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
import pytest
from damage import error_message, same, survive
from scipy.spatial.transform import Rotation

import marey
from marey.io.units_axes import rotation_to_z_up

ORDERS = ["".join(axes) for axes in permutations("XYZ")]
METRES = {"mm": 1e-3, "cm": 1e-2, "m": 1.0, "in": 0.0254}


@dataclass
class Figure:
    """A body in the words of the file: degrees and millimetres."""

    parents: dict
    base: np.ndarray
    moved: np.ndarray
    order: str = "ZYX"

    def text(self, *, htr2=False, changes=None, first=1, scale=1.0):
        head = {
            "FileType": "htr",
            "DataType": "HTRS",
            "FileVersion": "2" if htr2 else "1",
            "NumSegments": len(self.parents),
            "NumFrames": len(self.moved),
            "DataFrameRate": "60",
            "EulerRotationOrder": self.order,
            "CalibrationUnits": "mm",
            "RotationUnits": "Degrees",
            "GlobalAxisofGravity": "Y",
            "BoneLengthAxis": "Y",
            "ScaleFactor": "1.00",
        } | (changes or {})
        lines = ["# made for a test", "[Header]  # keywords"]
        lines += [f"{key} {value}" for key, value in head.items() if value is not None]
        lines += ["[SegmentNames&Hierarchy]", "#CHILD\tPARENT"]
        lines += [f"{child}\t{parent}" for child, parent in self.parents.items()]
        lines += ["[BasePosition]", "# Tx Ty Tz Rx Ry Rz BoneLength"]
        names = list(self.parents)
        lines += [
            row(name, values, 10.0)
            for name, values in zip(names, self.base, strict=True)
        ]
        if htr2:
            for frame, poses in enumerate(self.moved, first):
                lines.append(f"Frame {frame}:")
                lines += map(row, names, poses, [scale] * len(names))
        else:
            for k, name in enumerate(names):
                lines += [f"[{name}]", "# Fr Tx Ty Tz Rx Ry Rz SF"]
                lines += [
                    row(frame, values, scale)
                    for frame, values in enumerate(self.moved[:, k], first)
                ]
        return "\n".join([*lines, "[EndOfFile]", ""])

    def truth(self):
        """T_world_segment of each frame in metres and Z up, by plain loops."""
        return np.array([self.pose(frame) for frame in self.moved])

    def pose(self, frame):
        names, world = list(self.parents), {}
        while len(world) < len(names):
            for k, name in enumerate(names):
                parent = self.parents[name]
                if parent == "GLOBAL" or parent in world:
                    R = turn(self.base[k, 3:], self.order) @ turn(
                        frame[k, 3:], self.order
                    )
                    local = np.eye(4)
                    local[:3, :3] = R
                    local[:3, 3] = self.base[k, :3] + frame[k, :3]
                    world[name] = world.get(parent, np.eye(4)) @ local
        T = np.array([world[name] for name in names])
        T[:, :3, 3] *= 1e-3
        T[:, :3] = rotation_to_z_up("y") @ T[:, :3]
        return T


def turn(degrees, order):
    """The rotation of angles about x, y, z, multiplied in this order."""
    R = np.eye(3)
    for axis in order:
        k = "XYZ".index(axis)
        R = R @ Rotation.from_rotvec(np.radians(degrees[k]) * np.eye(3)[k]).as_matrix()
    return R


def row(name, values, last):
    return "\t".join([str(name), *(repr(float(v)) for v in values), repr(float(last))])


@pytest.fixture
def figure(rng):
    """Hips with a leg of two bones and a spine; only the hips translate."""
    parents = {"Hips": "GLOBAL", "Thigh L": "Hips", "Shin": "Thigh L", "Spine": "Hips"}
    base = rng.uniform(-180.0, 180.0, size=(4, 6))
    moved = rng.uniform(-80.0, 80.0, size=(5, 4, 6))
    moved[:, 1:, :3] = 0.0
    return Figure(parents, base, moved)


def saved(folder, text):
    path = folder / "take.htr"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def codes(thing):
    return [finding.code for finding in thing.source.findings]


@pytest.mark.parametrize("order", ORDERS)
def test_a_take_holds_the_segments_exactly(figure, order, tmp_path):
    figure = replace(figure, order=order)
    take = marey.read(saved(tmp_path, figure.text()))
    assert take.sensor_names == tuple(figure.parents)
    stated = {child: p for child, p in figure.parents.items() if p != "GLOBAL"}
    assert take.source.parents == stated
    np.testing.assert_allclose(take.T_world_sensor, figure.truth(), atol=1e-12)
    assert (take.rate, codes(take)) == (60.0, [])
    assert str(take.source.unit) == "mm (stated: CalibrationUnits)"
    assert str(take.source.up) == "y (stated: GlobalAxisofGravity)"


@pytest.mark.parametrize("order", ORDERS)
def test_a_motion_goes_where_the_segments_go(figure, order, tmp_path):
    figure = replace(figure, order=order)
    motion = marey.read_motion(saved(tmp_path, figure.text()))
    truth = figure.truth()
    T = motion.T_world_joint()
    np.testing.assert_allclose(T[..., :3, 3], truth[..., :3, 3], atol=1e-12)
    # Joints turn with their segments, from a rest pose in which all are world-aligned.
    rest = figure.pose(np.zeros((4, 6)))
    np.testing.assert_allclose(
        T[..., :3, :3] @ rest[:, :3, :3], truth[..., :3, :3], atol=1e-12
    )
    np.testing.assert_allclose(
        motion.skeleton.rest()[:, :3, 3], rest[:, :3, 3], atol=1e-12
    )
    assert motion.skeleton.kind == ("root", "ball", "ball", "ball")
    assert codes(motion) == []


def test_in_the_base_pose_nothing_is_turned(figure, tmp_path):
    figure.moved[:] = 0.0
    motion = marey.read_motion(saved(tmp_path, figure.text()))
    np.testing.assert_allclose(
        motion.wxyz, np.broadcast_to([1.0, 0.0, 0.0, 0.0], (5, 4, 4)), atol=1e-12
    )


@pytest.mark.parametrize(("unit", "metres"), METRES.items())
@pytest.mark.parametrize("up", ["x", "y", "z", "-z"])
def test_unit_and_axis_come_from_the_header(figure, unit, metres, up, tmp_path):
    text = figure.text(changes={"CalibrationUnits": unit, "GlobalAxisofGravity": up})
    take = marey.read(saved(tmp_path, text))
    T = figure.truth()
    T[..., :3, 3] *= metres / 1e-3
    T[..., :3, :] = rotation_to_z_up(up) @ rotation_to_z_up("y").T @ T[..., :3, :]
    np.testing.assert_allclose(take.T_world_sensor, T, atol=1e-9)


def test_angles_may_be_radians_and_lengths_scaled(figure, tmp_path):
    whole = marey.read(saved(tmp_path, figure.text()))
    figure.base[:, 3:], figure.moved[..., 3:] = (
        np.radians(figure.base[:, 3:]),
        np.radians(figure.moved[..., 3:]),
    )
    figure.base[:, :3] /= 4.0
    figure.moved[..., :3] /= 4.0
    changes = {"RotationUnits": "Radians", "ScaleFactor": "4"}
    take = marey.read(saved(tmp_path, figure.text(changes=changes)))
    np.testing.assert_allclose(take.T_world_sensor, whole.T_world_sensor, atol=1e-12)
    assert codes(take) == ["lengths-scaled"]


@pytest.mark.parametrize(
    "twin",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text.replace("\n", "\n\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("[Header]", "[HEADER]").replace("Num", "num"),
        lambda text: text.replace("\n", "   # note\n"),
        lambda text: text.replace("[EndOfFile]\n", ""),
    ],
    ids=["CRLF", "CR", "blank lines", "BOM", "case", "comments", "no end"],
)
def test_spelling_does_not_matter(figure, twin, tmp_path):
    whole = marey.read(saved(tmp_path, figure.text()))
    assert same(marey.read(saved(tmp_path, twin(figure.text()))), whole)


def test_frame_by_frame_is_the_same_as_segment_by_segment(figure, tmp_path):
    whole = marey.read(saved(tmp_path, figure.text()))
    path = tmp_path / "take.htr2"
    path.write_text(figure.text(htr2=True), encoding="utf-8")
    take = marey.read(path)
    assert same(take, whole)
    assert codes(take) == []


def test_children_may_come_before_their_parents(figure, tmp_path):
    motion = marey.read_motion(saved(tmp_path, figure.text()))
    order = [2, 0, 3, 1]
    names = [list(figure.parents)[i] for i in order]
    shuffled = Figure(
        {name: figure.parents[name] for name in names},
        figure.base[order],
        figure.moved[:, order],
    )
    other = marey.read_motion(saved(tmp_path, shuffled.text()))
    positions = [other.skeleton.index(name) for name in motion.skeleton.names]
    np.testing.assert_allclose(
        other.T_world_joint()[:, positions], motion.T_world_joint(), atol=1e-12
    )
    assert (other.skeleton.parent < np.arange(4)).all()


def test_a_bone_that_stretches_is_kept_by_the_take_and_told_by_the_motion(
    figure, tmp_path
):
    figure.moved[:, 2, 0] = [0.0, 0.0, 0.0, 0.0, 25.0]
    path = saved(tmp_path, figure.text())
    np.testing.assert_allclose(
        marey.read(path).T_world_sensor, figure.truth(), atol=1e-12
    )
    motion = marey.read_motion(path)
    (finding,) = motion.source.findings
    assert finding.code == "bones-not-rigid"
    assert finding.value == pytest.approx(0.025)
    missed = motion.T_world_joint()[..., :3, 3] - figure.truth()[..., :3, 3]
    np.testing.assert_allclose(missed[:4], 0.0, atol=1e-12)


def test_several_roots_hang_on_one(figure, rng, tmp_path):
    figure.parents |= {"Ball": "GLOBAL", "Tip": "Ball"}
    figure.base = np.vstack([figure.base, rng.uniform(-90.0, 90.0, size=(2, 6))])
    figure.moved = np.concatenate(
        [figure.moved, rng.uniform(-40.0, 40.0, size=(5, 2, 6))], axis=1
    )
    # The ball keeps its position near the hips, the tip its position on the ball.
    figure.moved[:, 4, :3] = figure.moved[:, 0, :3] + [100.0, 0.0, 0.0]
    figure.moved[:, 5, :3] = 0.0
    path = saved(tmp_path, figure.text())
    take, motion = marey.read(path), marey.read_motion(path)
    assert take.sensor_names == tuple(figure.parents)
    np.testing.assert_allclose(take.T_world_sensor, figure.truth(), atol=1e-12)
    assert motion.skeleton.names == ("root", *figure.parents)
    np.testing.assert_allclose(
        motion.T_world_joint()[:, 1:, :3, 3], figure.truth()[..., :3, 3], atol=1e-12
    )
    assert codes(motion) == ["roots-several"]


def test_missing_frames_and_segments_are_gaps(figure, tmp_path):
    text = figure.text()
    first = text.index("[Shin]")
    last = text.index("\n3\t", first)
    after = text.index("[Spine]")
    take = marey.read(saved(tmp_path, text[:last] + "\n" + text[after:]))
    truth = figure.truth()
    truth[2:, 2] = np.nan
    np.testing.assert_allclose(take.T_world_sensor, truth, atol=1e-12)
    assert codes(take) == ["frames-missing"]
    message = take.source.findings[0].message
    assert message.startswith("frames declared 5, present 2: ")


def test_a_scale_other_than_one_is_told(figure, tmp_path):
    take = marey.read(saved(tmp_path, figure.text(scale=1.25)))
    (finding,) = take.source.findings
    assert (finding.code, finding.value) == ("scale-ignored", pytest.approx(0.25))
    assert codes(marey.read(saved(tmp_path, figure.text(scale=1.000001)))) == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"NumSegments": 7}, "segments-mismatch"),
        ({"NumFrames": 9}, "frames-missing"),
        ({"NumFrames": 2}, "frames-extra"),
        ({"RotationUnits": "turns"}, "angles-assumed"),
        ({"CalibrationUnits": "cubits"}, "unit-assumed"),
        ({"GlobalAxisofGravity": None}, "up-assumed"),
        ({"DataFrameRate": "fast"}, "rate-assumed"),
    ],
)
def test_a_doubtful_header_is_a_finding(figure, changes, code, tmp_path):
    take = marey.read(saved(tmp_path, figure.text(changes=changes)))
    assert codes(take) == [code]


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda t: t.replace("Hips\tGLOBAL", "Hips\tShin"), "loop through 'Hips'"),
        (lambda t: t.replace("Hips\tGLOBAL", "Hips\tHips"), "loop through 'Hips'"),
        (lambda t: t.replace("Shin\tThigh L", "Shin\tNobody"), "'Nobody'"),
        (lambda t: t.replace("Spine\tHips", "Shin\tHips"), "a new segment"),
        (lambda t: t.replace("[Spine]", "[Shin]"), "another segment"),
        (lambda t: t.replace("[Spine]", "[Tail]"), "another segment"),
        (lambda t: t.replace("[BasePosition]", "[Base]"), r"\[baseposition\]"),
        (lambda t: t.replace("ZYX", "ZYZ"), "EulerRotationOrder"),
        (lambda t: t.replace("ScaleFactor 1.00", "ScaleFactor 0"), "ScaleFactor"),
        (lambda t: t.replace("\n2\t", "\n1\t"), "numbered upwards"),
        (lambda t: t.replace("\n2\t", "\n2.5\t"), "numbered upwards"),
        (lambda t: t.replace("\n2\t", "\n\t"), "eight numbers"),
        (lambda t: t.replace("\n2\t", "\ntwo\t"), "a word in column 1"),
        (lambda t: t.replace("\n2\t", "\n1_0\t"), "a word in column 1"),
        (lambda t: t.replace("\n5\t", "\n5e13\t"), "beyond 1e.12"),
        (lambda t: t.replace("\n5\t", "\n500000\t"), "frames that fill the file"),
    ],
)
def test_a_broken_file_is_refused_by_what_is_wrong(figure, harm, says, tmp_path):
    with pytest.raises(marey.FormatError, match=says):
        marey.read(saved(tmp_path, harm(figure.text())))


def test_a_base_pose_must_not_be_missing(figure, tmp_path):
    text = figure.text()
    at = text.index("Spine", text.index("[BasePosition]"))
    broken = text[:at] + text[text.index("\n", at) + 1 :]
    with pytest.raises(marey.FormatError, match="a base pose of 'Spine'"):
        marey.read(saved(tmp_path, broken))


@pytest.mark.parametrize("htr2", [False, True])
def test_every_cut_is_noticed(figure, htr2, tmp_path, slow):
    figure.base, figure.moved = np.round(figure.base), np.round(figure.moved[:2])
    path = saved(tmp_path, figure.text(htr2=htr2))
    data, whole = path.read_bytes(), marey.read(path)
    for cut in range(0, len(data), 1 if slow else 5):
        path.write_bytes(data[:cut])
        if error_message(marey.read, path):
            continue
        take = marey.read(path)
        assert codes(take) or same(take, whole), f"cut at byte {cut}"


@pytest.mark.parametrize("read", [marey.read, marey.read_motion])
@pytest.mark.parametrize("htr2", [False, True])
def test_damaged_files_give_a_typed_error_or_a_result(
    figure, read, htr2, tmp_path, request
):
    survive(read, saved(tmp_path, figure.text(htr2=htr2)))
