"""Edits as records: what they must tell, and the file that keeps them."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey.edits import (
    OPTIONAL_FIELDS,
    REQUIRED_FIELDS,
    Edit,
    parse_edit,
    parse_edits,
    read_edits,
    write_edits,
)

EACH = (
    Edit(do="reroot", body="Chest"),
    Edit(do="move-marker", marker="JOE:LTHI", to="LeftUpperLeg"),
    Edit(do="move-marker", marker="LTHI", to=""),
    Edit(do="merge", bodies=("Chest", "Neck"), name="Trunk"),
    Edit(do="merge", bodies=("Chest", "Neck")),
    Edit(do="split", body="Chest", markers=("C7", "CLAV"), name="Neck"),
    Edit(do="split", body="Chest", sensors=("S3",)),
    Edit(do="move-sensor", sensor="S3", to="Chest"),
    Edit(do="move-sensor", sensor="S3", to=""),
    Edit(do="cut", bodies=("LeftFoot", "RightFoot")),
    Edit(do="join", bodies=("LeftFoot", "LeftLowerLeg")),
    Edit(do="kind", joint="LeftLowerLeg", kind="hinge"),
    Edit(do="axis", joint="LeftLowerLeg", axis=(0.0, 1.0, 1 / 3)),
    Edit(do="rename", name="Hips", to='the "pelvis"\\\n\x7f\x1b[31m é'),
    Edit(do="place-marker", marker="LTHI", offset=(0.1, -1e-17, 1 / 3)),
    Edit(do="place-joint", joint="Head", offset=(0.0, 0.0, 0.25)),
    Edit(do="place-sensor", sensor="S3", offset=(0.0, 0.1, 1 / 3)),
    Edit(do="place-sensor", sensor="S3", rotation=(0.0, 0.1, 1 / 3), since=7, take=1),
    Edit(do="null-model", first=0, last=9, since=0),
    Edit(do="null-model", first=20, last=29, sensors=("S3", "S4"), take=1),
    Edit(do="bad", first=10, last=20, take=1, markers=("LTHI",)),
    Edit(do="bad", first=0, last=0),
    Edit(do="ground", normal=(0.0, 0.1, 1.0), height=-0.013),
)


def test_there_is_one_of_each_here():
    assert {edit.do for edit in EACH} == set(REQUIRED_FIELDS)


@pytest.mark.parametrize("edit", EACH, ids=str)
def test_a_record_is_plain_and_gives_the_edit_back(edit):
    record = json.loads(json.dumps(edit.record()))
    assert record == edit.record()
    assert parse_edit(record) == edit
    assert set(record) >= {"do", *REQUIRED_FIELDS[edit.do]}


def test_a_file_gives_the_edits_back(tmp_path):
    path = tmp_path / "walk.edits.toml"
    write_edits(EACH, path)
    assert read_edits(path) == EACH
    text = path.read_text(encoding="utf-8")
    assert "# LeftFoot cut from RightFoot\n[[edit]]\n" in text
    assert text.isascii() or "\x1b" not in text


def test_no_edits_are_a_file_too(tmp_path):
    write_edits((), tmp_path / "none.edits.toml")
    assert read_edits(tmp_path / "none.edits.toml") == ()


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda name: name.rpartition(":")[2].strip()
)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=30)
@given(names, names, st.tuples(numbers, numbers, numbers))
def test_any_names_and_numbers_come_back(tmp_path_factory, a, b, offset):
    edits = (
        Edit(do="rename", name=a, to=b),
        Edit(do="place-joint", joint=b, offset=offset),
    )
    path = tmp_path_factory.mktemp("edits") / "x.edits.toml"
    write_edits(edits, path)
    assert read_edits(path) == edits


def test_a_file_is_not_replaced_unasked(tmp_path):
    path = tmp_path / "walk.edits.toml"
    write_edits(EACH[:1], path)
    with pytest.raises(marey.OptionError, match="exists"):
        write_edits(EACH, path)
    write_edits(EACH, path, overwrite=True)
    assert read_edits(path) == EACH
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"body": "Hips"}, "no do"),
        ({"do": "dance"}, "dance"),
        ({"do": 3}, "do = reroot"),
        ({"do": "reroot"}, "no body"),
        ({"do": "reroot", "body": ""}, "a name"),
        ({"do": "reroot", "body": 7}, "a name"),
        ({"do": "reroot", "body": "Hips", "joint": "Hips"}, "only body"),
        ({"do": "reroot", "body": "Hips", "colour": "red"}, "colour"),
        ({"do": "rename", "name": "Hips", "to": " "}, "a name"),
        ({"do": "cut", "bodies": ["Hips", "Hips"]}, "two different"),
        ({"do": "cut", "bodies": ["Hips"]}, "two different"),
        ({"do": "cut", "bodies": "Hips"}, "a list of names"),
        ({"do": "kind", "joint": "Head", "kind": "root"}, "ball"),
        ({"do": "split", "body": "Hips", "markers": []}, "markers or sensors"),
        ({"do": "split", "body": "Hips"}, "markers or sensors"),
        ({"do": "place-sensor", "sensor": "S3"}, "offset or rotation"),
        ({"do": "place-sensor", "sensor": "", "rotation": [0, 0, 1]}, "a name"),
        (
            {"do": "place-sensor", "sensor": "S3", "rotation": [0, 0, 1], "since": -2},
            "the number of a frame",
        ),
        ({"do": "null-model", "first": 5, "last": 4}, "first <= last"),
        ({"do": "axis", "joint": "Head", "axis": [0, 0, 0]}, "not zero"),
        ({"do": "split", "body": "Hips", "markers": ["A", "A"]}, "each once"),
        ({"do": "place-joint", "joint": "Head", "offset": [0, 1]}, "three numbers"),
        (
            {"do": "place-joint", "joint": "Head", "offset": [0, 1, float("nan")]},
            "three numbers",
        ),
        ({"do": "bad", "first": 5, "last": 4}, "first <= last"),
        ({"do": "bad", "first": -1, "last": 4}, "first <= last"),
        ({"do": "bad", "first": 0.5, "last": 4}, "whole number"),
        ({"do": "bad", "first": 0, "last": 4, "take": -1}, "from 0"),
        ({"do": "ground", "normal": [0, 0, 0], "height": 0}, "direction"),
        ({"do": "ground", "normal": [0, 1, 0], "height": 0}, "+z up"),
        ({"do": "ground", "normal": [0, 0, 1], "height": "low"}, "metres"),
    ],
)
def test_an_odd_record_is_refused_in_words(record, words):
    with pytest.raises(marey.OptionError, match=re.escape(words)):
        parse_edit(record)
    with pytest.raises(marey.OptionError, match=r"edit 2: "):
        parse_edits([EACH[0], record])


def test_what_is_no_record_is_refused():
    with pytest.raises(marey.OptionError, match="such as"):
        parse_edit(["reroot"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[[edit]\n", "TOML"),
        ("version = 2\n", "version = 1"),
        ("edit = 3\n", "tables"),
        ("[tree]\na = 'b'\n", "tree"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, content, words):
    path = tmp_path / "walk.edits.toml"
    path.write_text(content)
    with pytest.raises(marey.FormatError, match=words):
        read_edits(path)


def test_a_file_that_is_not_there_or_far_too_large_is_refused(tmp_path):
    with pytest.raises(marey.FormatError, match="No such file"):
        read_edits(tmp_path / "none.toml")
    path = tmp_path / "large.toml"
    path.write_bytes(b"#" * (2**22 + 1))
    with pytest.raises(marey.FormatError, match="small file"):
        read_edits(path)


def test_words_are_safe_to_print():
    assert all(str(edit).isprintable() for edit in EACH)
    assert str(EACH[0]) == "rooted at Chest"
    many = Edit(do="split", body="Chest", markers=tuple("ABCDE"))
    assert str(many) == "A, B, C and 2 more split from Chest"


def test_the_page_on_edits_has_them_all():
    text = (Path(__file__).parent.parent / "docs" / "edits.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)` \| ([^|]+) \|", text, re.MULTILINE)
    told = {do: re.findall(r"`(\w+)`", cells) for do, cells in rows}
    assert told == {
        do: [*REQUIRED_FIELDS[do], *OPTIONAL_FIELDS.get(do, ())]
        for do in REQUIRED_FIELDS
    }


@pytest.mark.parametrize("size", [0.5, 1.0, 2.0, 1e3])
def test_the_ground_is_told_where_the_plane_is(size):
    """However long the normal is."""
    up = Edit(do="ground", normal=(0.0, 0.0, size), height=0.25 * size)
    assert str(up) == "ground set at 250 mm"
    slope = Edit(do="ground", normal=(0.6 * size, 0.0, 0.8 * size), height=-0.1 * size)
    assert str(slope) == "ground set at -100 mm"


@pytest.mark.parametrize("name", ["x:", "x: ", ":", "a:b:"])
@pytest.mark.parametrize(
    "record",
    [
        {"do": "rename", "name": "a", "to": ...},
        {"do": "merge", "bodies": ["a", "b"], "name": ...},
        {"do": "split", "body": "a", "markers": ["m"], "name": ...},
    ],
    ids=["rename", "merge", "split"],
)
def test_a_subject_alone_is_no_name(record, name):
    record = {key: name if value is ... else value for key, value in record.items()}
    with pytest.raises(marey.OptionError, match="need a name, not only a subject's"):
        parse_edit(record)


def test_a_table_is_no_list_of_names():
    with pytest.raises(marey.OptionError, match="a list of names"):
        parse_edit({"do": "merge", "bodies": {"a": 1, "b": 2}})
