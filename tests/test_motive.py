"""Motive CSV: files are written here from the layout that Motive exports have."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from damage import assert_every_cut_is_noticed, same, survive
from scipy.spatial.transform import Rotation

import marey

R_MOTIVE_MAREY = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
METRES = {"Millimeters": 1e-3, "Centimeters": 1e-2, "Meters": 1.0}
ORDERS = tuple("".join(axes) for axes in permutations("XYZ"))
QUALITY = {"Rigid Body": "Mean Marker Error", "Rigid Body Marker": "Marker Quality"}


@dataclass
class Item:
    """One entry of an export, in metres and Z up."""

    kind: str
    name: str
    position: np.ndarray
    R: np.ndarray | None = None
    parent: str = ""


def items(rng, n_frames=4):
    def position():
        return rng.uniform(-1.0, 2.0, size=(n_frames, 3))

    def turn():
        return Rotation.random(n_frames, random_state=rng).as_matrix()

    gap = position()
    gap[1] = np.nan
    return [
        Item("Rigid Body", "Bat", position(), turn()),
        Item("Rigid Body Marker", "Bat:Marker1", position()),
        Item("Bone", "Ann:Ann", position(), turn(), "Root"),
        Item("Bone", "Ann:Chest", position(), turn(), "Ann:Ann"),
        Item("Bone Marker", "Ann:LFHD", position(), parent="Ann:Chest"),
        Item("Marker", "Ann:LFHD", gap),
        Item("Marker", "Unlabeled:108", position()),
    ]


def cells(item, order, unit):
    """Columns of one entry: what they hold, their axes, their numbers."""
    titles: list[str] = []
    axes: Sequence[str] = ""
    columns: list[Any] = []
    if item.R is not None:
        R = Rotation.from_matrix(R_MOTIVE_MAREY @ item.R)
        if order == "Quaternion":
            columns, axes = list(-R.as_quat().T), "XYZW"
        else:
            angles = R.as_euler(order, degrees=True)
            columns, axes = [angles[:, order.index(a)] for a in "XYZ"], "XYZ"
        titles = ["Rotation"] * len(axes)
    columns += list((item.position @ R_MOTIVE_MAREY.T / METRES[unit]).T)
    titles, axes = titles + ["Position"] * 3, [*axes, *"XYZ"]
    if item.kind in QUALITY:
        columns.append(np.full(len(item.position), 0.5))
        titles, axes = [*titles, QUALITY[item.kind]], [*axes, ""]
    return titles, axes, columns


def export(
    items, *, order="Quaternion", unit="Meters", rate=120.0, titled=True, **head
):
    """The text of an export; `titled` writes the row titles that 1.21 leaves out."""
    n_frames = len(items[0].position) if items else 0
    fields = {
        "Format Version": "1.25" if titled else "1.21",
        "Take Name": "Take 1",
        "Capture Frame Rate": "240",
        "Export Frame Rate": f"{rate:.6f}",
        "Total Exported Frames": str(n_frames),
        "Rotation Type": order,
        "Length Units": unit,
        "Coordinate Space": "Global",
    } | {key.replace("_", " "): value for key, value in head.items()}
    pairs = [cell for key, value in fields.items() if value for cell in (key, value)]
    parts = [cells(item, order, unit) for item in items]
    rows = {"Type": "kind", "Name": "name", "ID": "name", "Parent": "parent"}
    lines = [",".join(pairs), ""]
    for title, field in list(rows.items())[: 4 if titled else 3]:
        repeated = [
            getattr(item, field)
            for item, (_, _, columns) in zip(items, parts, strict=True)
            for _ in columns
        ]
        lines.append(",".join(["", title if titled else "", *repeated]))
    lines.append(",".join(["", "", *(t for titles, _, _ in parts for t in titles)]))
    axes = [axis for _, axes, _ in parts for axis in axes]
    lines.append(",".join(["Frame", "Time (Seconds)" if titled else "Time", *axes]))
    values = np.array([column for _, _, columns in parts for column in columns]).T
    for frame in range(n_frames):
        numbers = ["" if v != v else repr(v) for v in values[frame].tolist()]
        lines.append(",".join([str(frame), f"{frame / rate:.6f}", *numbers]))
    return "\n".join(lines) + "\n"


def saved(folder, text, name="take.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def codes(take):
    return [finding.code for finding in take.source.findings]


@pytest.fixture
def world(rng):
    return items(rng)


@pytest.fixture
def read(tmp_path):
    """Reads text as a file; options are those of `marey.read`."""

    def reader(text, **options):
        return marey.read(saved(tmp_path, text), **options)

    return reader


# --- values --------------------------------------------------------------------------


@pytest.mark.parametrize("titled", [True, False], ids=["1.25", "1.21"])
@pytest.mark.parametrize("unit", METRES)
@pytest.mark.parametrize("order", ["Quaternion", *ORDERS])
def test_every_rotation_type_and_unit_gives_the_same_world(
    order, unit, titled, world, read
):
    take = read(export(world, order=order, unit=unit, titled=titled))
    bodies = [i for i in world if i.R is not None]
    markers = [i for i in world if i.kind == "Marker"]
    assert take.source.format == "motive"
    np.testing.assert_allclose(
        take.points, np.stack([m.position for m in markers], axis=1), atol=1e-12
    )
    T = marey.geometry.transform(
        np.stack([b.R for b in bodies], axis=1),
        np.stack([b.position for b in bodies], 1),
    )
    np.testing.assert_allclose(take.T_world_sensor, T, atol=1e-12)
    assert take.rate == 120.0
    assert codes(take) == ["computed-left-out"]


def test_the_facts_say_how_they_are_known(world, read):
    source = read(export(world, unit="Centimeters")).source
    assert str(source.unit) == "cm (stated: Length Units)"
    assert (source.up.value, source.up.how) == ("y", "inferred")
    assert str(source.rate) == "120 (stated: Export Frame Rate)"
    assert source.parameters["Take Name"] == "Take 1"
    assert source.parents == {"Chest": "Ann"}


def test_a_quaternion_of_zeros_is_a_gap_and_an_odd_length_a_finding(read):
    position = np.zeros((3, 3))
    R = np.stack([np.eye(3)] * 3)
    text = export([Item("Rigid Body", "Bat", position, R)])
    lines = text.split("\n")
    lines[-4] = "0,0,0,0,0,0,1,2,3,0"
    lines[-3] = "1,0.0083,0,0,0,2,1,2,3,0"
    take = read("\n".join(lines))
    assert take.sensor_seen[:, 0].tolist() == [False, True, True]
    np.testing.assert_allclose(
        take.T_world_sensor[1, 0, :3], [[1, 0, 0, 1], [0, 0, -1, -3], [0, 1, 0, 2]]
    )
    assert codes(take) == ["quaternions-scaled"]


# --- solved markers and names --------------------------------------------------------


def test_solved_markers_are_read_on_request_only(world, read):
    measured = read(export(world))
    every = read(export(world), computed=True)
    assert measured.full_labels == ("Ann:LFHD", "Unlabeled 108")
    assert every.full_labels == (
        *measured.full_labels,
        "Bat:Marker1",
        "Ann:LFHD_solved",
    )
    np.testing.assert_array_equal(every.points[:, :2], measured.points)
    np.testing.assert_allclose(every.points[:, 3], world[4].position, atol=1e-12)
    assert "computed-left-out" not in codes(every)


def test_solved_markers_alone_are_refused_with_the_way_out(world, read):
    text = export([world[1]])
    with pytest.raises(marey.FormatError, match="computed=True"):
        read(text)
    assert read(text, computed=True).labels == ("Marker1",)


def test_names_are_made_unique_and_never_empty(rng, read):
    position = rng.normal(size=(2, 3))
    names = ["A", "A", "", "Ann:", "Ann:B", "Bob:B", "Unlabeled:7", "Unlabeled 8"]
    take = read(export([Item("Marker", name, position) for name in names]))
    assert take.full_labels == (
        *("A", "A_2", "M3", "Ann:M4", "Ann:B", "Bob:B", "Unlabeled 7", "Unlabeled 8"),
    )
    assert sorted(codes(take)) == ["labels-missing", "labels-repeated"]


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["Ann:Hip", "Ann:Head", "Bat"], ("Hip", "Head", "Bat")),
        (["Ann:Hip", "Bob:Hip", "Bat"], ("Ann:Hip", "Bob:Hip", "Bat")),
        (["Hip", "Ann:Hip", "Bat"], ("Hip", "Hip_2", "Bat")),
    ],
)
def test_bones_lose_the_name_of_the_only_skeleton(names, wanted, rng, read):
    R, position = np.stack([np.eye(3)] * 2), rng.normal(size=(2, 3))
    take = read(export([Item("Bone", name, position, R) for name in names]))
    assert take.sensor_names == wanted


# --- dialects ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "twin",
    [
        lambda t: t.replace("\n", "\r\n").encode(),
        lambda t: t.replace("\n", "\r").encode(),
        lambda t: t.encode("utf-8-sig"),
        lambda t: t.encode("utf-16"),
        lambda t: t.rstrip("\n").encode(),
        lambda t: t.replace("\n\n", "\n,,,,,,,\n", 1).encode(),
        lambda t: t.replace("\n", ",,,\n", 1).encode(),
        lambda t: t.replace("Take 1", "A, B,and C").encode(),
        lambda t: t.replace("Take 1", '"A, B"').encode(),
        lambda t: t.replace("Ann:Chest", '"Ann:Chest"').encode(),
        lambda t: (t + ",,,,\n\n").encode(),
    ],
    ids=[
        *("CRLF", "CR", "BOM", "UTF-16", "no newline at the end", "commas for a blank"),
        *(
            "commas after the header",
            "commas in the name",
            "quoted take",
            "quoted bone",
        ),
        "blank rows at the end",
    ],
)
def test_dialects_do_not_matter(twin, world, tmp_path):
    path = saved(tmp_path, export(world))
    whole = marey.read(path)
    path.write_bytes(twin(export(world)))
    read = marey.read(path)
    assert same(read, whole)
    assert (read.rate, read.source.unit) == (whole.rate, whole.source.unit)
    assert set(codes(read)) <= {*codes(whole), "line-unended"}


@pytest.mark.parametrize("name", ["take.csv", "take.txt", "take.tsv", "noname"])
def test_content_alone_tells_the_format(name, world, tmp_path):
    for titled in (True, False):
        text = export(world, titled=titled).replace("\n\n", "\n,,,,\n", 1)
        assert marey.io.recognise(saved(tmp_path, text, name)).name == "motive"


def test_the_export_rate_counts_then_the_capture_rate_then_the_times(world, read):
    assert read(export(world, rate=60.0)).rate == 60.0
    take = read(export(world, rate=240.0, Export_Frame_Rate=""))
    assert str(take.source.rate) == "240 (stated: Capture Frame Rate)"
    take = read(export(world, Export_Frame_Rate="", Capture_Frame_Rate="fast"))
    assert take.source.rate.how == "inferred"
    assert take.rate == pytest.approx(120.0, rel=1e-3)


def test_times_that_contradict_the_rate_are_a_finding(rng, read):
    many = items(rng, 200)
    assert "rate-mismatch" in codes(read(export(many, Export_Frame_Rate="100")))
    text = export(many).split("\n")
    del text[100:150]
    found = codes(read("\n".join(text)))
    assert "frames-missing" in found
    assert "rate-mismatch" in found


def test_one_jump_of_the_times_is_a_finding(rng, read):
    text = export(items(rng, 1000)).split("\n")
    del text[100]
    assert "times-uneven" in codes(read("\n".join(text)))


@pytest.mark.parametrize(
    ("declared", "code"), [("9", "frames-missing"), ("3", "frames-extra")]
)
def test_another_count_of_frames_is_a_finding(declared, code, world, read):
    take = read(export(world, Total_Exported_Frames=declared))
    finding = next(f for f in take.source.findings if f.code == code)
    assert finding.message.startswith(f"frames declared {declared}, present 4: ")


def test_an_unknown_unit_is_assumed_aloud(world, read):
    for word in ("", "Furlongs"):
        take = read(export(world, unit="Meters", Length_Units=word))
        assert "unit-assumed" in codes(take)
        assert (take.source.unit.value, take.source.unit.how) == ("m", "assumed")


def test_local_bones_are_left_out_or_refused(world, read):
    take = read(export(world, Coordinate_Space="Local"))
    assert take.sensor_names == ("Bat",)
    assert "bones-local" in codes(take)
    with pytest.raises(marey.FormatError, match="global bones"):
        read(export(world[2:4], Coordinate_Space="Local"))


# --- bad input -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.replace("Frame,Time", "Row,Time"), "Frame, Time, X"),
        (lambda t: t.replace("Position", "Velocity"), "types, names and Position"),
        (lambda t: t.replace(",Name,", ",Title,"), "types, names and Position"),
        (lambda t: t.replace(",0.5\n", ",half\n"), "a word in column"),
        (lambda t: t.replace(",0.5\n", ",1_0\n"), "a word in column"),
        (lambda t: t.replace(",0.5\n", ",1e300\n"), "beyond 1e"),
        (lambda t: t.replace(",0.5\n", ",0.5,1,2\n"), "cells, found"),
        (lambda t: t[: t.index("\n0,") + 1], "expected frames"),
        (lambda t: t.replace("XYZ", "XYX", 1), "Rotation Type"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(change, said, rng, read):
    turned = Item(
        "Rigid Body", "Bat", rng.normal(size=(2, 3)), np.stack([np.eye(3)] * 2)
    )
    text = export([turned], order="XYZ")
    with pytest.raises(marey.FormatError, match=said) as caught:
        read(change(text))
    assert caught.value.counted == "line"
    assert caught.value.offset >= 1


def test_an_entry_that_lacks_an_axis_is_left_out(world, read):
    text = export(world)
    axes = text.index("Frame,")
    last = text.index("\n", axes) - 1
    take = read(text[:last] + "Q" + text[last + 1 :])
    assert take.full_labels == ("Ann:LFHD",)
    assert "entries-partial" in codes(take)


def test_every_truncation_is_an_error_or_a_finding(rng, tmp_path):
    few = [items(rng, 2)[i] for i in (0, 5)]
    assert_every_cut_is_noticed(saved(tmp_path, export(few, unit="Millimeters")))


def test_damaged_files_give_a_typed_error_or_a_take(world, tmp_path, request):
    path = saved(tmp_path, export(world, unit="Millimeters"))
    survive(marey.read, path)
