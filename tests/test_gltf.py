"""glTF: what other programs read from it is what was written."""

import base64
import json
import struct
from dataclasses import replace

import numpy as np
import pytest
import staged

import marey
from marey.io.formats.gltf import write_scene
from marey.io.formats.gltf.document import MAX_FRAMES, build_document
from marey.io.options import WriteOptions
from marey.io.scene import MarkerTracks, Scene, SceneTake, build_body_mesh
from marey.io.units_axes import points_to_file

HUNDREDTH_MM = 1e-5
DTYPES = {5121: "<u1", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
WIDTHS = {"SCALAR": 1, "VEC3": 3, "VEC4": 4, "MAT4": 16}


def written(thing, **options):
    """Document and buffer of the GLB of a thing."""
    data = b"".join(write_scene(thing, WriteOptions(suffix=".glb", **options))[""])
    magic, version, size, length, kind = struct.unpack("<4sIII4s", data[:20])
    assert (magic, version, size, kind) == (b"glTF", 2, len(data), b"JSON")
    buffer = data[20 + length :]
    size, kind = struct.unpack("<I4s", buffer[:8])
    assert (size, kind) == (len(buffer) - 8, b"BIN\0")
    return json.loads(data[20 : 20 + length]), buffer[8:]


def values(document, buffer, number):
    """The array of an accessor."""
    about = document["accessors"][number]
    view = document["bufferViews"][about["bufferView"]]
    dtype = np.dtype(DTYPES[about["componentType"]])
    count = about["count"] * WIDTHS[about["type"]]
    assert view["byteLength"] == count * dtype.itemsize
    flat = np.frombuffer(buffer, dtype, count, view["byteOffset"])
    return flat.reshape(about["count"], -1)


def curves(document, buffer, path):
    """Values over time by the name of the node, of the first animation."""
    animation = document["animations"][0]
    return {
        document["nodes"][channel["target"]["node"]]["name"]: values(
            document, buffer, animation["samplers"][channel["sampler"]]["output"]
        )
        for channel in animation["channels"]
        if channel["target"]["path"] == path
    }


@staged.needs_node
def test_the_validator_of_khronos_finds_nothing(tmp_path):
    things = {
        "walk.glb": staged.walk(),
        "walk.gltf": staged.walk(),
        "rest.glb": staged.walk().skeleton,
        "both.glb": staged.handover(),
    }
    for name, thing in things.items():
        marey.write(thing, tmp_path / name, markers=name == "both.glb")
    paths = [tmp_path / name for name in things]
    for report in json.loads(staged.run_node("validate_gltf.mjs", *paths)):
        assert report["messages"] == []


@staged.needs_node
@pytest.mark.parametrize("take", [0, 1])
def test_three_shows_all_subjects_where_they_are(take, tmp_path):
    solution = staged.handover()
    marey.write(solution, tmp_path / "both.glb")
    motions = staged.motions_of(solution, take)
    frames = solution.takes[take].n_frames
    shown = staged.run_node("read_three.mjs", tmp_path / "both.glb", 25, frames, take)
    seen = json.loads(shown)
    assert seen["animation"] == ["give", "take"]
    for one, motion in zip(seen["skinned"], motions.values(), strict=True):
        T = motion.T_world_joint()
        skin = build_body_mesh(motion.skeleton).skin(motion.skeleton, T)
        for found, wanted in (
            (one["joints"], T[..., :3, 3]),
            (one["vertices"], skin),
        ):
            wanted = points_to_file(wanted, "m", "y")
            np.testing.assert_allclose(found, wanted, atol=HUNDREDTH_MM)


@staged.needs_node
def test_three_shows_markers_where_they_were_seen_and_not_elsewhere(tmp_path):
    solution = staged.handover()
    marey.write(solution, tmp_path / "both.glb", markers=True)
    nodes = json.loads(
        staged.run_node("read_three.mjs", tmp_path / "both.glb", 25, 4, 1)
    )["nodes"]
    take = solution.takes[1]
    assert len(nodes) == len(take.labels)
    points = points_to_file(take.points, "m", "y")
    for column, one in enumerate(nodes.values()):
        seen = take.seen[:, column]
        assert one["size"] == seen.astype(float).tolist()
        found = np.array(one["position"])[seen]
        np.testing.assert_allclose(found, points[seen, column], atol=HUNDREDTH_MM)


def test_rotations_never_change_sign_and_every_joint_that_moves_has_them():
    motion = staged.walk()
    turning = motion.wxyz.copy()  # about the vertical, three times around
    angle = np.linspace(0.0, 6.0 * np.pi, motion.n_frames)[:, None]
    turning[:, 0] = marey.geometry.quat_exp(angle * [0.0, 0.0, 1.0])
    T = motion.T_world_root.copy()
    T[:, :3, :3] = marey.geometry.matrix_from_quat(turning[:, 0])
    moved = replace(motion, wxyz=turning, T_world_root=T)
    rotations = curves(*written(moved), "rotation")
    names = np.array(motion.skeleton.names)[~motion.skeleton.is_end]
    assert sorted(rotations) == sorted(names)
    for xyzw in rotations.values():
        assert (np.einsum("ij,ij->i", xyzw[1:], xyzw[:-1]) > 0.0).all()
        np.testing.assert_allclose(np.linalg.norm(xyzw, axis=1), 1.0, atol=1e-6)


def test_both_files_hold_the_same_and_are_equal_when_written_again():
    document, buffer = written(staged.walk())
    text = b"".join(write_scene(staged.walk(), WriteOptions(suffix=".gltf"))[""])
    whole = json.loads(text)
    uri = whole["buffers"][0].pop("uri")
    inside = base64.b64decode(uri.partition(",")[2])
    assert whole == document
    assert inside == buffer[: len(inside)]
    assert set(buffer[len(inside) :]) <= {0}
    assert written(staged.walk()) == (document, buffer)


def test_a_skeleton_is_at_rest_and_so_is_a_motion_without_frames():
    skeleton = staged.walk().skeleton
    document, buffer = written(skeleton)
    assert "animations" not in document
    bind = values(document, buffer, document["skins"][0]["inverseBindMatrices"])
    rest = points_to_file(skeleton.rest()[:, :3, 3], "m", "y")
    np.testing.assert_allclose(bind[:, 12:15], -rest, atol=1e-6)
    empty = replace(
        staged.walk(),
        wxyz=np.zeros((0, skeleton.n_joints, 4)),
        T_world_root=np.zeros((0, 4, 4)),
        angle_sd=np.zeros((0, skeleton.n_joints, 3)),
    )
    assert written(empty)[0] == document


def test_many_joints_and_odd_names_are_kept():
    names = ('"<script>"', "é☃", *(f"j{i}" for i in range(300)))
    skeleton = marey.Skeleton(
        names=names,
        parent=np.arange(len(names)) - 1,
        offset=np.tile([0.0, 0.0, 0.1], (len(names), 1)),
    )
    document, buffer = written(skeleton)
    assert [node["name"] for node in document["nodes"][: len(names)]] == list(names)
    part = document["meshes"][0]["primitives"][0]["attributes"]
    assert values(document, buffer, part["JOINTS_0"]).max() == len(names) - 1


def test_hours_that_single_precision_cannot_time_are_refused():
    nothing = MarkerTracks((), np.zeros((0, 0, 3)))
    day = SceneTake("day", 240.0, 24 * 3600 * 240, nothing)
    with pytest.raises(marey.DataError, match="resample"):
        build_document(Scene((), (day,)))
    times = np.arange(MAX_FRAMES - 1000, MAX_FRAMES) / 119.88
    assert (np.diff(times.astype(np.float32)) > 0.0).all()


def test_other_units_axes_and_formats_are_refused(tmp_path):
    with pytest.raises(marey.OptionError, match="m and y"):
        marey.write(staged.walk(), tmp_path / "walk.glb", unit="cm")
    with pytest.raises(marey.OptionError, match="a scene such as glb"):
        marey.write(staged.walk(), tmp_path / "walk.bvh", markers=True)
    with pytest.raises(marey.DataError, match="evenly"):
        marey.write(staged.walk().at(np.array([0.0, 0.05])), tmp_path / "at.glb")
    assert list(tmp_path.iterdir()) == []
    marey.write(staged.walk(), tmp_path / "walk.glb")
    with pytest.raises(marey.FormatError, match="glTF scene, which does not"):
        marey.read(tmp_path / "walk.glb")
