"""Reading and writing at the edges: what is asked for does not fit what is there."""

import html
import json
import re
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import foreign
import numpy as np
import pytest
import samples

import marey
from marey.io import motion_as_take
from marey.io.formats import c3d
from marey.report import Table

READERS = {
    "take": marey.read,
    "motion": marey.read_motion,
    "skeleton": marey.read_skeleton,
}
HOLDINGS = [
    pytest.param(fmt, noun, id=f"{fmt.name}-{noun}")
    for fmt in marey.formats()
    for noun in READERS
    if getattr(fmt, f"read_{noun}")
]


def saved(thing, path):
    marey.write(thing, path)
    return path


# --- the format that was named -------------------------------------------------------


@pytest.mark.parametrize(("fmt", "noun"), HOLDINGS)
@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"hello, world\n", b"\0" * 4096, b"<a><b/></a>", b"[1, 2]\n", b"PAR1"],
    ids=["nothing", "a line", "words", "zeros", "XML", "JSON", "a beginning"],
)
def test_what_is_not_the_named_format_is_refused_in_its_name(
    fmt, noun, content, tmp_path
):
    path = tmp_path / "thing"
    path.write_bytes(content)
    with pytest.raises(marey.FormatError, match="thing") as error:
        READERS[noun](path, format=fmt.name)
    assert error.value.format == fmt.name


@pytest.mark.parametrize("noun", READERS)
def test_a_named_format_must_exist_and_hold_what_is_asked_for(noun, tmp_path):
    path = saved(samples.take(), tmp_path / "walk.c3d")
    with pytest.raises(marey.OptionError, match=r"'xls', need one of c3d, npz"):
        READERS[noun](path, format="xls")
    without = {"take": "vsk", "motion": "c3d", "skeleton": "trc"}[noun]
    with pytest.raises(marey.OptionError, match=f"one that holds a {noun}"):
        READERS[noun](path, format=without)
    with pytest.raises(marey.FormatError, match="nothing at this path"):
        READERS[noun](tmp_path / "gone", format="npz")


def test_a_recognised_format_must_hold_what_is_asked_for(tmp_path):
    path = saved(samples.take(), tmp_path / "walk.c3d")
    with pytest.raises(marey.FormatError, match="read_take reads it") as error:
        marey.read_motion(path)
    assert error.value.format == "c3d"


def test_a_format_to_write_must_exist_and_hold_the_thing(tmp_path):
    with pytest.raises(marey.OptionError, match="need one of c3d"):
        marey.write(samples.take(), tmp_path / "a.dat", format="xls")
    for thing, name in [("skeleton", "c3d"), ("take", "asf"), ("motion", "skel")]:
        with pytest.raises(marey.OptionError, match="need a format that holds a"):
            marey.write(samples.SAMPLES[thing](), tmp_path / "a.dat", format=name)
    assert list(tmp_path.iterdir()) == []


def test_a_named_format_needs_no_suffix(tmp_path):
    path = tmp_path / "walk"
    marey.write(samples.take(sensors=False), path, format="trc")
    assert marey.read(path).source.format == "trc"


def test_a_file_that_may_not_be_opened_is_refused(tmp_path, monkeypatch):
    path = saved(samples.take(), tmp_path / "walk.c3d")

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(marey.FormatError, match="Permission denied"):
        marey.read(path)


def test_a_missing_c3d_is_refused_by_its_own_loader(tmp_path):
    with pytest.raises(marey.FormatError, match="expected a readable file"):
        c3d.load(tmp_path / "gone.c3d")


# --- options -------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.0, -1.0, 2e6, float("nan")])
def test_a_rate_that_is_none_is_refused(rate, tmp_path):
    path = saved(samples.take(), tmp_path / "walk.c3d")
    with pytest.raises(marey.OptionError, match="rate: found"):
        marey.read(path, rate=rate)


def test_only_labels_that_are_there_can_be_renamed(tmp_path):
    path = saved(samples.take(), tmp_path / "walk.c3d")
    with pytest.raises(marey.OptionError, match=r"rename: found 'nobody', need labels"):
        marey.read(path, rename={"nobody": "somebody", "C7": "neck"})


# --- one thing for another -----------------------------------------------------------


@pytest.mark.parametrize("suffix", [".bvh", ".amc", ".npz"])
def test_a_motion_is_also_a_take_of_its_joints_and_a_skeleton(suffix, tmp_path):
    path = saved(samples.motion(), tmp_path / f"walk{suffix}")
    motion, take = marey.read_motion(path), marey.read(path)
    wanted = motion_as_take(motion)
    assert take.sensor_names == wanted.sensor_names
    np.testing.assert_allclose(take.T_world_sensor, wanted.T_world_sensor, atol=1e-12)
    skeleton = marey.read_skeleton(path)
    assert skeleton.names == motion.skeleton.names
    np.testing.assert_array_equal(skeleton.offset, motion.skeleton.offset)


def test_the_skeleton_of_an_amc_can_be_named_and_must_be_there(tmp_path):
    path = saved(samples.motion(), tmp_path / "walk.amc")
    wanted = marey.read_motion(path).T_world_joint()
    figure = (tmp_path / "walk.asf").rename(tmp_path / "ann.skeleton")
    found = marey.read_motion(path, skeleton=figure).T_world_joint()
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(marey.FormatError, match=r"the ASF file skeleton=.*bob\.asf"):
        marey.read_motion(path, skeleton=tmp_path / "bob.asf")


def solution(path=""):
    take, motion = samples.take(), samples.motion()
    empty = {
        name: np.zeros((0, *shape))
        for shape, names in {
            (3,): ("center_a", "center_b", "axis_a", "axis_b"),
            (): ("residual", "noise", "distance", "mediated"),
            (6,): ("spread",),
            (6, 6): ("covariance",),
        }.items()
        for name in names
    }
    table = Table(("bone", "length / m"), (("shin", 0.43), ("hips", 1.0)))
    return marey.Solution(
        takes=(replace(take, source=marey.Source(path=str(path))),),
        bodies=(),
        joints=marey.JointFits(pair=np.zeros((0, 2), np.int64), kind=(), **empty),
        tree=marey.Tree(
            parent=np.array([-1]), edge=np.array([-1]), margin=np.array([np.inf])
        ),
        subjects=(marey.Subject("Ann", motion.skeleton, (motion,)),),
        report=marey.Report(tables={"bones": table}),
    )


def test_a_solution_is_written_as_what_the_format_holds(tmp_path):
    answer = solution()
    marey.write(answer, tmp_path / "walk.marey")
    marey.write(answer, tmp_path / "walk.bvh")
    marey.write(answer, tmp_path / "walk.c3d")
    again = marey.load(tmp_path / "walk.marey")
    assert again.report.tables == answer.report.tables
    for path in ("walk.marey", "walk.bvh"):
        np.testing.assert_allclose(
            marey.read_motion(tmp_path / path).T_world_joint(),
            answer.motion.T_world_joint(),
            atol=1e-5,
        )
    for path in ("walk.marey", "walk.c3d"):
        np.testing.assert_allclose(
            marey.read(tmp_path / path).points, answer.take.points, rtol=1e-7
        )
    assert marey.read_skeleton(tmp_path / "walk.marey").names == answer.skeleton.names


def test_the_recording_of_a_solution_is_never_replaced(tmp_path):
    path = saved(samples.take(), tmp_path / "walk.c3d")
    before = path.read_bytes()
    with pytest.raises(marey.OptionError, match="input"):
        marey.write(solution(path), path, overwrite=True)
    assert path.read_bytes() == before


# --- archives ------------------------------------------------------------------------


def archive(path, entries):
    with zipfile.ZipFile(path, "w") as zipped:
        for name, data in entries.items():
            zipped.writestr(name, data)
    return path


def test_only_what_marey_wrote_can_be_loaded(tmp_path):
    with pytest.raises(marey.FormatError, match=r"expected a \.marey file"):
        marey.load(saved(samples.take(), tmp_path / "walk.c3d"))
    path = tmp_path / "numpy.npz"
    np.savez(path, points=np.zeros((2, 1, 3)))
    for load in (marey.load, marey.read_motion, marey.read_skeleton):
        with pytest.raises(marey.FormatError, match=r"expected marey\.json"):
            load(path)


@pytest.mark.parametrize(
    ("arrays", "found"),
    [
        ({"places": np.zeros((2, 1, 3))}, r"places \(2, 1, 3\)"),
        ({"points": np.zeros((2, 3))}, r"points \(2, 3\)"),
        ({"points": np.zeros((2, 1, 2))}, r"points \(2, 1, 2\)"),
        ({"points": np.zeros((2, 1, 3), int)}, r"points \(2, 1, 3\)"),
    ],
)
def test_an_archive_without_points_says_what_it_has(arrays, found, tmp_path):
    np.savez(tmp_path / "numpy.npz", **arrays)
    with pytest.raises(marey.FormatError, match=f"marker, 3\\), found {found}"):
        marey.read(tmp_path / "numpy.npz")


def test_labels_that_do_not_fit_the_points_are_replaced_and_said(tmp_path):
    points = np.zeros((2, 2, 3))
    for labels in ({}, {"labels": ["a", "b", "c"]}, {"labels": [["a", "b"]]}):
        np.savez(tmp_path / "numpy.npz", points=points, unit=["m", "m"], **labels)
        take = marey.read(tmp_path / "numpy.npz")
        assert take.labels == ("M000", "M001")
        codes = [finding.code for finding in take.source.findings]
        assert codes == ["unit-assumed", "up-assumed", "rate-assumed", "labels-missing"]


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("{", r"JSON in marey\.json"),
        ("[]", "version 1"),
        ('{"marey": 2, "content": {}}', "version 1"),
    ],
)
def test_a_description_that_is_none_is_refused(description, message, tmp_path):
    path = archive(tmp_path / "a.marey", {"marey.json": description})
    with pytest.raises(marey.FormatError, match=message):
        marey.load(path)


@pytest.mark.parametrize(
    ("noun", "change", "message"),
    [
        ("skeleton", {"names": "Hips"}, r"Skeleton\.names: found str 'Hips'"),
        ("skeleton", {"parent": {"array": "offset"}}, "float64 array of shape"),
        ("motion", {"rate": True}, r"Motion\.rate: found bool"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(noun, change, message, tmp_path):
    path = saved(samples.SAMPLES[noun](), tmp_path / "a.marey")
    with zipfile.ZipFile(path) as zipped:
        entries = {name: zipped.read(name) for name in zipped.namelist()}
    description = json.loads(entries["marey.json"])
    description["content"]["fields"] |= change
    entries["marey.json"] = json.dumps(description).encode()
    with pytest.raises(marey.FormatError, match=message):
        marey.load(archive(path, entries))


def test_an_entry_that_claims_more_bytes_than_the_file_has_is_refused(tmp_path):
    path = saved(samples.skeleton(), tmp_path / "a.marey")
    data = bytearray(path.read_bytes())
    # The central directory holds the packed size 20 bytes after its signature.
    at = data.rindex(b"PK\x01\x02") + 20
    data[at : at + 4] = (2**31 - 1).to_bytes(4, "little")
    path.write_bytes(data)
    tracemalloc.start()
    with pytest.raises(marey.FormatError, match=f"within the {len(data)} bytes"):
        marey.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**24


# --- tables and texts ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["motive", "qualisys"])
def test_a_header_of_endless_columns_is_refused(name, tmp_path):
    path = tmp_path / "wide"
    mark = {"motive": (b"Frame,Time", b","), "qualisys": (b"Frame\tTime", b"\t")}[name]
    titles, delimiter = mark
    wide = titles + delimiter * 100_001
    path.write_bytes(foreign.FILES[name].replace(titles, wide))
    with pytest.raises(marey.FormatError, match="at most 100000 columns"):
        marey.read(path)


def test_a_motive_cell_beyond_reason_is_refused(tmp_path):
    path = tmp_path / "long.csv"
    path.write_bytes(foreign.FILES["motive"].replace(b"Bat", b"B" * 200_000, 1))
    with pytest.raises(marey.FormatError, match="line 3: expected cells between"):
        marey.read(path)


def test_rigid_bodies_stand_in_the_world_whatever_the_bones_do(tmp_path):
    path = tmp_path / "local.csv"
    path.write_bytes(foreign.FILES["motive"])
    wanted = marey.read(path)
    path.write_bytes(foreign.FILES["motive"].replace(b"Space,Global", b"Space,Local"))
    found = marey.read(path)
    np.testing.assert_array_equal(found.T_world_sensor, wanted.T_world_sensor)
    assert found.source.findings == wanted.source.findings


def test_a_qualisys_table_of_times_alone_is_refused(tmp_path):
    path = tmp_path / "empty.tsv"
    path.write_text("NO_OF_FRAMES\t2\nNO_OF_MARKERS\t0\nFrame\tTime\n1\t0.0\n2\t0.1\n")
    with pytest.raises(marey.FormatError, match="at least one marker or body"):
        marey.read(path)


@pytest.mark.parametrize(
    ("suffix", "limit", "message"),
    [
        (
            ".bvh",
            "marey.io.formats.bvh.hierarchy.MAX_JOINTS",
            "at most 3 joints, found more",
        ),
        (".asf", "marey.io.formats.asf.read.MAX_BONES", "at most 3 bones, found more"),
    ],
)
def test_a_figure_of_endless_joints_is_refused(
    suffix, limit, message, tmp_path, monkeypatch
):
    noun = "skeleton" if suffix == ".asf" else "motion"
    path = saved(samples.SAMPLES[noun](), tmp_path / f"big{suffix}")
    monkeypatch.setattr(limit, 3)
    with pytest.raises(marey.FormatError, match=message):
        READERS[noun](path)


def test_a_large_xml_is_refused_unread(tmp_path, monkeypatch):
    path = tmp_path / "big.mvnx"
    path.write_bytes(foreign.FILES["mvnx"])
    monkeypatch.setattr("marey.io.text.xml.MAX_FILE_BYTES", 100)
    with pytest.raises(marey.FormatError, match="at most 100 bytes"):
        marey.read(path)


@pytest.mark.parametrize("suffix", [".bvh", ".asf", ".skel.json", ".npz", ".html"])
def test_a_bone_that_is_no_number_is_not_written(suffix, tmp_path):
    motion = samples.SAMPLES["motion"]()
    offset = motion.skeleton.offset.copy()
    offset[-1] = np.nan
    broken = replace(motion, skeleton=replace(motion.skeleton, offset=offset))
    path = tmp_path / f"broken{suffix}"
    name = motion.skeleton.names[-1]
    with pytest.raises(marey.DataError, match=f"found no position of {name}, need"):
        marey.write(broken.skeleton if suffix == ".skel.json" else broken, path)
    assert not path.exists()


def _of_gltf(path):
    return json.loads(path.read_text())["asset"]["extras"]["provenance"]


def _of_glb(path):
    content = path.read_bytes()
    length = int.from_bytes(content[12:16], "little")
    return json.loads(content[20 : 20 + length])["asset"]["extras"]["provenance"]


def _of_usda(path):
    sdf = pytest.importorskip("pxr.Sdf")
    layer = sdf.Layer.FindOrOpen(str(path))
    return json.loads(layer.customLayerData["provenance"])


def _of_parquet(path):
    schema = pytest.importorskip("pyarrow.parquet").read_schema(path)
    return json.loads(schema.metadata[b"provenance"])


def _of_html(path):
    meta = re.search('<meta name="provenance" content="([^"]*)">', path.read_text())
    return json.loads(html.unescape(meta[1]))


def _of_json(path):
    return json.loads(path.read_text())["provenance"]


def _of_archive(path):
    return json.loads(zipfile.ZipFile(path).read("marey.json"))["provenance"]


def _of_comments(path):
    lines = re.findall("^# provenance (.*)$", path.read_text(), re.MULTILINE)
    assert max(map(len, lines)) <= 100
    return json.loads("".join(lines))


def _of_c3d(path):
    source = marey.read(path).source
    return json.loads("".join(source.parameters["MAREY"]["PROVENANCE"]["values"]))


def _of_fbx(path):
    content = path.read_bytes()
    start = content.index(b"Comment") + len("CommentS")
    length = int.from_bytes(content[start : start + 4], "little")
    return json.loads(content[start + 4 : start + 4 + length])


def _of_xml(find):
    return lambda path: json.loads(find(ElementTree.parse(path).getroot()))


def _of_urdf(path):
    found = re.search("<!-- provenance (.*) -->", path.read_text())
    ElementTree.parse(path)
    return json.loads(found[1])


@pytest.mark.parametrize(
    ("suffix", "read_provenance"),
    [
        ("gltf", _of_gltf),
        ("glb", _of_glb),
        ("usda", _of_usda),
        ("parquet", _of_parquet),
        ("html", _of_html),
        ("skel.json", _of_json),
        ("marey", _of_archive),
        ("asf", _of_comments),
        ("amc", _of_comments),
        ("c3d", _of_c3d),
        ("fbx", _of_fbx),
        ("mjcf", _of_xml(lambda root: root.find("custom/text").get("data"))),
        ("osim", _of_xml(lambda root: root.find("Model/credits").text)),
        ("urdf", _of_urdf),
    ],
)
def test_files_keep_from_what_they_were_made(tmp_path, suffix, read_provenance):
    """Names of files may have any characters; what was made is the same without it."""
    motion, path = samples.motion(), tmp_path / f"a.{suffix}"
    if suffix == "usda":
        pytest.importorskip("pxr")
    inputs = {"a 'b' \"<c>&日本 --%d\".c3d": "12" * 40}
    given = {"inputs": inputs, "options": {"x": [1.5, None]}}
    thing = motion.skeleton if suffix in ("skel.json", "asf") else motion
    marey.write(thing, path, provenance=given)
    assert read_provenance(path) == given
    marey.write(thing, tmp_path / f"b.{suffix}")
    assert b"provenance" not in (tmp_path / f"b.{suffix}").read_bytes()


def test_provenance_that_is_too_long_for_a_c3d_is_left_out(tmp_path):
    """Its parameters have room for a list of 255 lines."""
    take = samples.take()
    inputs = {f"frame_{number:06d}.json": "0" * 64 for number in range(400)}
    found = marey.write(take, tmp_path / "a.c3d", provenance={"inputs": inputs})
    assert "provenance-lost" in {finding.code for finding in found}
    assert "MAREY" not in marey.read(tmp_path / "a.c3d").source.parameters


def test_a_format_without_a_place_for_provenance_is_written_as_ever(tmp_path):
    motion = samples.motion()
    marey.write(motion, tmp_path / "a.bvh", provenance={"inputs": {}})
    marey.write(motion, tmp_path / "b.bvh")
    assert (tmp_path / "a.bvh").read_bytes() == (tmp_path / "b.bvh").read_bytes()
