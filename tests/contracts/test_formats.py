"""What every format must keep: written once, run on all of `marey.formats()`."""

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
import samples
from damage import same

import marey
from marey.io import recognise

READERS = {
    "take": marey.read,
    "motion": marey.read_motion,
    "skeleton": marey.read_skeleton,
}
PAIRS = [
    pytest.param(fmt, noun, id=f"{fmt.name}-{noun}")
    for fmt in marey.formats()
    for noun in READERS
    if getattr(fmt, f"write_{noun}") and getattr(fmt, f"read_{noun}")
]
TAKES = [
    pytest.param(f, id=f.name) for f in marey.formats() if f.write_take and f.read_take
]
every_pair = pytest.mark.parametrize(("fmt", "noun"), PAIRS)
every_take = pytest.mark.parametrize("fmt", TAKES)

UNITS = ("mm", "cm", "m", "in", "ft")
UPS = ("x", "y", "z", "-x", "-y", "-z")
IN_METRES_ONLY = {"npz", "skel"}


def sample(fmt, noun):
    """A thing that this format can hold whole."""
    if noun == "take":
        return samples.take(
            sensors="sensors" not in fmt.loses, markers="markers" not in fmt.loses
        )
    return samples.SAMPLES[noun]()


def saved(fmt, noun, folder, name="sample", **options):
    path = folder / (name + fmt.suffixes[0])
    marey.write(sample(fmt, noun), path, **options)
    return path


def assert_same(found, wanted, fmt):
    """Assert that nothing changed but what the format says it loses."""
    step = max(fmt.precision, 1e-12)
    if isinstance(wanted, marey.Take):
        assert_same_take(found, wanted, fmt, step)
    elif isinstance(wanted, marey.Motion):
        assert_same_skeleton(found.skeleton, wanted.skeleton, fmt, step)
        assert found.rate == pytest.approx(wanted.rate, rel=1e-6)
        np.testing.assert_allclose(
            found.T_world_joint()[..., :3, 3],
            wanted.T_world_joint()[..., :3, 3],
            atol=20 * step,
        )
        np.testing.assert_allclose(
            found.T_world_joint(), wanted.T_world_joint(), atol=max(1e-6, 20 * step)
        )
    else:
        assert_same_skeleton(found, wanted, fmt, step)


def assert_same_take(found, wanted, fmt, step):
    np.testing.assert_allclose(found.points, wanted.points, atol=step)
    np.testing.assert_allclose(
        found.T_world_sensor, wanted.T_world_sensor, atol=max(step, 1e-6)
    )
    assert found.rate == pytest.approx(wanted.rate, rel=1e-6)
    assert found.sensor_names == wanted.sensor_names
    if "subjects" in fmt.loses:
        assert found.labels == wanted.labels
    else:
        assert found.full_labels == wanted.full_labels
    if "start" not in fmt.loses:
        assert found.start == pytest.approx(wanted.start, abs=1e-6)
    if "events" not in fmt.loses:
        assert [(e.label, e.context) for e in found.events] == [
            (e.label, e.context) for e in wanted.events
        ]
        assert [e.time for e in found.events] == pytest.approx(
            [e.time for e in wanted.events], abs=1e-6
        )


def assert_same_skeleton(found, wanted, fmt, step):
    assert found.names == wanted.names
    assert found.parent.tolist() == wanted.parent.tolist()
    np.testing.assert_allclose(found.offset[1:], wanted.offset[1:], atol=step)
    if "kinds" not in fmt.loses:
        assert found.kind == wanted.kind


def test_names_are_unique_and_suffixes_are_lower_case():
    names = [fmt.name for fmt in marey.formats()]
    assert len(set(names)) == len(names)
    assert all(
        s.startswith(".") and s == s.lower()
        for f in marey.formats()
        for s in f.suffixes
    )
    nouns = ("take", "motion", "skeleton")
    unread = [
        f.name
        for f in marey.formats()
        if not any(getattr(f, f"read_{n}") for n in nouns)
    ]
    writers = {"fbx", "gltf", "html", "mjcf", "osim", "urdf", "usd"}
    assert set(unread) == writers


@every_pair
def test_a_round_trip_keeps_all_but_the_declared_losses(fmt, noun, tmp_path):
    path = saved(fmt, noun, tmp_path)
    assert_same(READERS[noun](path), sample(fmt, noun), fmt)


@every_pair
def test_content_alone_tells_the_format(fmt, noun, tmp_path):
    path = saved(fmt, noun, tmp_path)
    bare = path.rename(tmp_path / "noname")
    assert recognise(bare).name == fmt.name


@every_pair
def test_the_same_thing_gives_the_same_bytes_again_and_again(fmt, noun, tmp_path):
    first = saved(fmt, noun, tmp_path, "first")
    second = saved(fmt, noun, tmp_path, "second")
    assert first.read_bytes() == second.read_bytes()
    third = tmp_path / ("third" + fmt.suffixes[0])
    again = READERS[noun](first)
    if isinstance(again, marey.Take | marey.Motion) and fmt.name in IN_METRES_ONLY:
        again = dataclasses.replace(again, source=marey.Source())
    marey.write(again, third)
    assert third.read_bytes() == first.read_bytes()


@every_pair
@pytest.mark.parametrize(
    ("unit", "up"), [(u, "z") for u in UNITS] + [("cm", up) for up in UPS]
)
def test_every_unit_and_axis_gives_the_same_world(fmt, noun, unit, up, tmp_path):
    if fmt.name in IN_METRES_ONLY:
        with pytest.raises(marey.OptionError, match="m and z"):
            saved(fmt, noun, tmp_path, unit="mm")
        return
    path = saved(fmt, noun, tmp_path, unit=unit, up=up)
    read = READERS[noun](path, unit=unit, up=up)
    loose = dataclasses.replace(fmt, precision=fmt.precision * 400)
    assert_same(read, sample(fmt, noun), loose)


@every_take
def test_an_override_is_recorded_as_given(fmt, tmp_path):
    take = marey.read(saved(fmt, "take", tmp_path), rate=50.0)
    if fmt.name not in IN_METRES_ONLY:
        assert take.rate == 50.0
        assert str(take.source.rate) == "50 (given)"


@every_take
def test_the_source_says_where_everything_came_from(fmt, tmp_path):
    path = saved(fmt, "take", tmp_path)
    source = marey.read(path).source
    if fmt.name in IN_METRES_ONLY:
        return
    assert (source.path, source.format) == (str(path), fmt.name)
    assert len(source.sha256) == 64
    for fact in (source.unit, source.up, source.rate):
        assert fact.value
        assumed = {f.code for f in source.findings}
        assert fact.how != "assumed" or f"{fact_name(source, fact)}-assumed" in assumed


def fact_name(source, fact):
    return next(n for n in ("unit", "up", "rate") if getattr(source, n) is fact)


TEXT = [
    p
    for p in PAIRS
    if p.values[0].name in {"trc", "bvh", "amc", "asf", "skel", "storage", "csv"}
]


@pytest.mark.parametrize(("fmt", "noun"), TEXT)
@pytest.mark.parametrize(
    "twin",
    [
        lambda d: d.replace(b"\n", b"\r\n"),
        lambda d: d.replace(b"\n", b"\r"),
        lambda d: b"\xef\xbb\xbf" + d,
        lambda d: d.rstrip(b"\n"),
        lambda d: d.decode().encode("utf-16"),
    ],
    ids=["CRLF", "CR", "BOM", "no newline at the end", "UTF-16"],
)
def test_line_ends_and_byte_order_marks_do_not_matter(fmt, noun, twin, tmp_path):
    path = saved(fmt, noun, tmp_path)
    whole = READERS[noun](path)
    path.write_bytes(twin(path.read_bytes()))
    assert same(READERS[noun](path), whole)


@every_pair
def test_a_path_may_hold_any_letters(fmt, noun, tmp_path):
    folder = tmp_path / "Ünïcode 動き"
    folder.mkdir()
    path = saved(fmt, noun, folder, "vidéo 'n° 1'")
    assert_same(READERS[noun](path), sample(fmt, noun), fmt)


@every_take
@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "../../etc", "a\x1b[31mb", "é☃"]
)
def test_odd_names_stay_data(fmt, name, tmp_path):
    take = sample(fmt, "take")
    path = tmp_path / ("odd" + fmt.suffixes[0])
    if take.labels:
        take = dataclasses.replace(take, labels=(name, *take.labels[1:]), subjects=())
    else:
        take = dataclasses.replace(take, sensor_names=(name, *take.sensor_names[1:]))
    marey.write(take, path)
    read = marey.read(path)
    first = read.labels[0] if take.labels else read.sensor_names[0]
    printable = "".join(c if c.isprintable() else "_" for c in name)
    assert first in (name, printable)
    assert list(tmp_path.iterdir()) == [path]


@every_pair
def test_an_existing_file_and_the_input_are_never_lost(fmt, noun, tmp_path):
    path = saved(fmt, noun, tmp_path)
    before = path.read_bytes()
    with pytest.raises(marey.OptionError, match="exists"):
        marey.write(sample(fmt, noun), path)
    read = READERS[noun](path)
    if not isinstance(read, marey.Skeleton) and fmt.name not in IN_METRES_ONLY:
        with pytest.raises(marey.OptionError, match="input"):
            marey.write(read, path, overwrite=True)
    assert path.read_bytes() == before
    marey.write(sample(fmt, noun), path, overwrite=True)


@every_pair
def test_a_missing_folder_is_refused(fmt, noun, tmp_path):
    with pytest.raises(marey.OutputError, match="does not exist"):
        saved(fmt, noun, tmp_path / "nowhere")


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 2048, b"hello, world\n", os.urandom(2048)]
)
def test_what_is_no_recording_is_refused_by_name(content, tmp_path):
    path = tmp_path / "thing.dat"
    path.write_bytes(content)
    with pytest.raises(marey.FormatError, match=r"thing\.dat"):
        marey.read(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(marey.FormatError, match="nothing at this path"):
        marey.read(tmp_path / "gone.c3d")
    with pytest.raises(marey.FormatError, match="folder"):
        marey.read(tmp_path)


@every_take
def test_frames_and_markers_can_be_chosen(fmt, tmp_path):
    path = saved(fmt, "take", tmp_path)
    whole = marey.read(path)
    part = marey.read(path, frames=(1, 4))
    np.testing.assert_array_equal(part.T_world_sensor, whole.T_world_sensor[1:4])
    np.testing.assert_array_equal(part.points, whole.points[1:4])
    if whole.labels:
        few = marey.read(path, markers=["?FHD"], drop=["R*"], rename={"LFHD": "head"})
        assert few.labels == ("head",)
        with pytest.raises(marey.DataError, match="at least one marker"):
            marey.read(path, markers=["nobody"])


def test_every_format_file_is_registered():
    folder = Path(marey.io.__file__).parent / "formats"
    names = {path.stem for path in folder.iterdir() if not path.stem.startswith("_")}
    assert names == set(marey.io.registry.FORMAT_SUFFIXES)
    for one in marey.formats():
        assert marey.io.registry.FORMAT_SUFFIXES[one.name] == one.suffixes
