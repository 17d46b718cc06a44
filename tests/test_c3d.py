"""C3D: every encoding, every count, every kind of damage."""

import dataclasses
import tracemalloc
from itertools import product

import numpy as np
import pytest
from c3d_oracles import BLOCK, c3d_bytes, mutated, parameter, real, record, section
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey.errors import DataError, FormatError
from marey.io.contract import SNIFF_BYTES
from marey.io.file import File
from marey.io.formats.c3d import FORMAT, load, sniff
from marey.io.formats.c3d.encoding import C3dEncoding
from marey.io.formats.c3d.parameters import C3dParameters, parse_parameters
from marey.io.options import ReadOptions, WriteOptions
from marey.take import Analog, Event, Source, Take


def read(path, **options):
    return FORMAT.read_take(File(path, "c3d", ReadOptions(**options)))


def written(take, **options):
    return b"".join(FORMAT.write_take(take, WriteOptions(**options))[""])


def reread(take, tmp_path, analog=True, **options):
    path = tmp_path / "written.c3d"
    path.write_bytes(written(take, **options))
    return read(path, analog=analog)


def codes(found):
    findings = found.source.findings if isinstance(found, Take) else found.findings
    return {finding.code for finding in findings}


def figure(rng, frames=12, markers=5, **more):
    points = rng.uniform(-5.0, 5.0, (frames, markers, 3))
    points[rng.random((frames, markers)) < 0.2] = np.nan
    labels = tuple(f"M{i}" for i in range(markers))
    return Take(**{"rate": 100.0, "points": points, "labels": labels, **more})


def steps(rng, frames=20, points=4):
    """Integer coordinates and residual words, a third of them unseen."""
    counts = rng.integers(-30_000, 30_000, (frames, points, 3))
    words = rng.integers(0, 0x7FFF, (frames, points))
    words[rng.random((frames, points)) < 0.3] = -1
    return counts, words


def assert_points(found, wanted, atol=FORMAT.precision):
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=atol)


# Encodings


@pytest.mark.parametrize(
    ("processor", "floats"), [*product(("intel", "dec", "mips"), (True, False))]
)
def test_every_encoding_of_the_same_points_reads_the_same(
    processor, floats, rng, tmp_path
):
    counts, words = steps(rng)
    analog = rng.integers(-2000, 2000, (20, 6))
    groups = {"TRIAL": {"CAMERA_RATE": 50.0}}
    data = c3d_bytes(
        counts,
        words,
        processor=processor,
        floats=floats,
        analog=analog,
        samples=2,
        groups=groups,
    )
    path = tmp_path / "a.c3d"
    path.write_bytes(data)
    found = load(path)
    seen = words >= 0
    np.testing.assert_array_equal(found.points[seen], 0.25 * counts[seen])
    assert np.isnan(found.points[~seen]).all()
    np.testing.assert_array_equal(
        found.residuals, np.where(seen, 0.25 * (words & 0xFF), -1)
    )
    np.testing.assert_array_equal(found.cameras, np.where(seen, words >> 8, 0))
    np.testing.assert_array_equal(found.analog, analog.reshape(40, 3))
    assert (found.processor, found.rate, found.analog_rate) == (processor, 50.0, 100.0)
    assert codes(found) == {"analog-scale-missing"}
    assert sniff(data[:SNIFF_BYTES])


@given(st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False))
def test_vax_numbers_are_read_as_they_were_meant(value):
    found = C3dEncoding("dec").real(real(value, "dec"), 0)
    assert found == (value if abs(value) > 1e-37 else pytest.approx(value, abs=1e-37))


def test_unsigned_analog_numbers_and_their_scales(rng, tmp_path):
    counts, words = steps(rng, frames=2)
    path = tmp_path / "a.c3d"
    analog = np.array([[65_000, 10], [0, 70]])
    data = c3d_bytes(
        counts,
        words,
        floats=False,
        analog=analog,
        groups={
            "ANALOG": {
                "USED": 2,
                "FORMAT": "UNSIGNED",
                "GEN_SCALE": 0.5,
                "OFFSET": [60_000, 10],
                "LABELS": ["Fx", "Fy"],
                "UNITS": ["N", "N"],
            }
        },
    )
    path.write_bytes(data)
    analog = read(path, analog=True).analog
    np.testing.assert_array_equal(analog.values, [[2500.0, 0.0], [-30_000.0, 30.0]])
    assert (analog.labels, analog.units) == (("Fx", "Fy"), ("N", "N"))
    assert read(path).analog.labels == ()


# Round trips


@pytest.mark.parametrize(
    ("unit", "up"),
    [*product(("mm", "cm", "m", "in", "ft"), ("x", "y", "z", "-x", "-y", "-z"))],
)
def test_units_and_axes_come_back(unit, up, rng, tmp_path):
    T = np.tile(np.eye(4), (12, 2, 1, 1))
    T[..., :3, 3] = rng.normal(size=(12, 2, 3))
    T[3, 1] = np.nan
    take = figure(rng, T_world_sensor=T, sensor_names=("pelvis", "head"))
    found = reread(take, tmp_path, unit=unit, up=up)
    assert_points(found.points, take.points)
    assert_points(found.T_world_sensor, T)
    assert found.sensor_names == take.sensor_names
    assert (found.source.unit.value, found.source.unit.how) == (unit, "stated")
    assert (found.source.up.value, found.source.up.how) == (up, "stated")
    assert codes(found) <= {"up-doubtful"}


def test_all_a_take_holds_comes_back_and_writes_the_same_bytes(rng, tmp_path):
    take = figure(
        rng,
        rate=59.94,
        start=1.23456789,
        subjects=("JOE", "JOE", "ANN:B", "", ""),
        labels=("RTHI", "a:b", "RTHI", "*5", "Füße"),
        events=(Event("Foot Strike", "Left", 1.5), Event("Foot Off", "", 250.25)),
        analog=Analog(rng.normal(size=(24, 3)), ("Fx", "Fy", "Fz"), ("N",) * 3, 119.88),
    )
    found = reread(take, tmp_path)
    assert_points(found.points, take.points)
    assert found.rate == take.rate
    assert found.start == take.start
    assert found.labels == take.labels
    assert found.subjects == take.subjects
    assert found.events == take.events
    np.testing.assert_allclose(found.analog.values, take.analog.values, rtol=6e-8)
    assert found.analog.labels == take.analog.labels
    assert found.analog.units == take.analog.units
    assert found.analog.rate == take.analog.rate
    assert codes(found) == set()
    assert written(found) == (tmp_path / "written.c3d").read_bytes() == written(take)


@settings(max_examples=25, deadline=None)
@given(
    n_frames=st.integers(0, 4),
    n_markers=st.integers(0, 300),
    n_sensors=st.integers(0, 2),
    first=st.integers(1, 70_000),
)
def test_counts_come_back(n_frames, n_markers, n_sensors, first, tmp_path_factory):
    rng = np.random.default_rng(n_markers)
    take = Take(
        rate=50.0,
        points=rng.normal(size=(n_frames, n_markers, 3)),
        labels=tuple(f"marker {i}" for i in range(n_markers)),
        T_world_sensor=np.tile(np.eye(4), (n_frames, n_sensors, 1, 1)),
        sensor_names=tuple(f"s{i}" for i in range(n_sensors)),
        start=(first - 1) / 50.0,
    )
    found = reread(take, tmp_path_factory.mktemp("c3d"))
    if n_frames and (n_markers or n_sensors):
        assert_points(found.points, take.points)
        assert_points(found.T_world_sensor, take.T_world_sensor)
    assert found.labels == take.labels
    assert found.start == take.start
    assert codes(found) == set()


def test_over_65535_frames(rng, tmp_path):
    take = figure(rng, frames=70_000, markers=1, start=123.0)
    found = reread(take, tmp_path)
    assert_points(found.points, take.points)
    assert found.start == 123.0
    assert codes(found) == set()
    raw = load(tmp_path / "written.c3d")
    assert (raw.first_frame, raw.last_frame) == (12_301, 82_300)


def test_a_marker_at_the_origin_is_still_seen(tmp_path):
    take = Take(rate=10.0, points=np.zeros((2, 1, 3)), labels=("A",))
    assert_points(reread(take, tmp_path).points, take.points)


def test_zero_coordinates_in_a_file_mean_unseen(rng, tmp_path):
    counts, words = steps(rng)
    words[:] = 0
    counts[4, 2] = 0
    (tmp_path / "a.c3d").write_bytes(c3d_bytes(counts, words))
    unseen = np.isnan(load(tmp_path / "a.c3d").points).all(axis=-1)
    assert np.argwhere(unseen).tolist() == [[4, 2]]


def test_writing_refuses_what_c3d_cannot_hold(rng):
    analog = Analog(rng.normal(size=(30, 1)), ("Fx",), ("N",), 250.0)
    with pytest.raises(DataError, match="whole number of samples"):
        written(figure(rng, analog=analog))
    with pytest.raises(DataError, match="at most 251"):
        written(figure(rng, markers=1, labels=("x" * 252,)))
    labels = tuple(f"{i:0>200}" for i in range(700))
    with pytest.raises(DataError, match="255 blocks"):
        written(figure(rng, markers=700, labels=labels))


# What the file says of itself


def test_the_sources_parameters_are_written_again_where_they_still_hold(rng, tmp_path):
    counts, words = steps(rng)
    point = {"ANGLES": ["M2"], "DESCRIPTIONS": ["a", "b", "c", "d"], "MOVIE": "x.avi"}
    groups = {"SUBJECT": {"NAME": "Joe", "NUMBER": 7, "WEIGHT": 70.5}}
    (tmp_path / "a.c3d").write_bytes(
        c3d_bytes(counts, words, point=point, groups=groups)
    )
    take = read(tmp_path / "a.c3d")
    assert take.labels == ("M0", "M1", "M3")
    reread(take, tmp_path)
    found = load(tmp_path / "written.c3d").parameters
    assert found["SUBJECT"] == {"NAME": "Joe", "NUMBER": 7, "WEIGHT": 70.5}
    assert found["POINT"]["MOVIE"] == "x.avi"
    assert found["POINT"]["DESCRIPTIONS"] == ("a", "b", "d")
    assert "ANGLES" not in found["POINT"]
    both = reread(read(tmp_path / "a.c3d", computed=True), tmp_path)
    assert both.labels == ("M0", "M1", "M3")


def test_parameters_that_no_longer_fit_into_the_file_are_left_out(rng):
    texts = [f"{i:0>250}" for i in range(255)]
    entry = {"kind": "char", "shape": [250, 255], "values": texts, "description": ""}
    crowd = {f"G{i}": {"TEXT": entry} for i in range(3)}
    take = figure(rng)
    source = Source(format="c3d", parameters=crowd)
    alone = Source(format="c3d")
    assert written(dataclasses.replace(take, source=source)) == written(
        dataclasses.replace(take, source=alone)
    )


def test_names_are_made_unique_and_split_by_subject(rng, tmp_path):
    counts, words = steps(rng, points=9)
    names = ["JOE:A", "JOE::B", "A", "A", "A_2", " ", "*8", "JOE:A"]
    (tmp_path / "a.c3d").write_bytes(
        c3d_bytes(counts, words, point={"LABELS": names}, groups={})
    )
    take = read(tmp_path / "a.c3d")
    assert take.full_labels == (
        *("JOE:A", "JOE:B", "A", "A_3", "A_2", "*6", "*8", "JOE:A_2", "*9"),
    )
    assert codes(take) == {"labels-missing", "labels-repeated"}
    assert load(tmp_path / "a.c3d").labels[:4] == ("JOE:A", "JOE::B", "A", "A")


def test_computed_points_are_left_out_unless_asked_for(rng, tmp_path):
    counts, words = steps(rng, points=7)
    words[:] = 0
    origin = counts[:, 1]
    counts[:, 2:5] = origin[:, None] + 100 * np.eye(3, dtype=int)
    labels = ["LKNE", "LFEO", "LFEA", "LFEL", "LFEP", "LKneeAngles", "LFOO"]
    point = {"LABELS": labels, "ANGLES": ["LKneeAngles"]}
    (tmp_path / "a.c3d").write_bytes(c3d_bytes(counts, words, point=point))
    take = read(tmp_path / "a.c3d")
    assert take.labels == ("LKNE", "LFOO")
    assert codes(take) == {"computed-left-out"}
    assert list(read(tmp_path / "a.c3d", computed=True).labels) == labels
    counts[:, 2] = counts[:, 3]
    (tmp_path / "a.c3d").write_bytes(c3d_bytes(counts, words, point=point))
    assert len(read(tmp_path / "a.c3d").labels) == 6, "not at right angles: markers"


def test_copies_of_computed_points_are_computed_too(rng, tmp_path):
    """Programs that add points write the others again, under the same labels."""
    counts, words = steps(rng, points=10)
    words[:] = 0
    axes = counts[:, [1]] + 100 * np.array([[0, 0, 0], *np.eye(3, dtype=int)])
    counts[:, 1:5] = counts[:, 5:9] = axes
    segment = ["LFEO", "LFEA", "LFEL", "LFEP"]
    labels = ["LKNE", *segment, *segment[:3], "LKneeAngles", "LKneeAngles"]
    point = {"LABELS": labels, "ANGLES": ["LKneeAngles", "LHipAngles"]}
    (tmp_path / "a.c3d").write_bytes(c3d_bytes(counts, words, point=point))
    take = read(tmp_path / "a.c3d")
    assert take.labels == ("LKNE",)
    text = [f.message for f in take.source.findings if f.code == "computed-unknown"]
    assert text == [
        "listed as computed, but not among the labels: 1, such as LHipAngles"
    ]


def test_angles_that_the_file_stores_stay_beside_the_markers(rng, tmp_path):
    counts, words = steps(rng, points=3)
    words[:] = 0
    point = {
        "LABELS": ["LKNE", "LKneeAngles", "LKneePower"],
        "ANGLES": ["LKneeAngles"],
        "POWERS": ["LKneePower"],
        "ANGLE_UNITS": "deg",
        "POWER_UNITS": "W/kg",
    }
    (tmp_path / "a.c3d").write_bytes(c3d_bytes(counts, words, point=point))
    take = read(tmp_path / "a.c3d")
    assert take.computed.names == ("LKneeAngles", "LKneePower")
    assert take.computed.kinds == ("angle", "power")
    assert take.computed.units == ("deg", "W/kg")
    raw = load(tmp_path / "a.c3d").points
    np.testing.assert_array_equal(take.computed["LKneeAngles"], raw[:, 1])
    np.testing.assert_array_equal(take.cut(1, 3).computed["LKneePower"], raw[1:3, 2])
    marey.write(take, tmp_path / "a.marey")
    kept = marey.read(tmp_path / "a.marey").computed
    np.testing.assert_array_equal(kept.values, take.computed.values)
    lost = marey.write(take, tmp_path / "a.csv")
    assert "computed" in {finding.subject for finding in lost}


def test_what_is_not_stated_is_assumed_with_a_finding(rng, tmp_path):
    counts, words = steps(rng)
    point = {"UNITS": None, "Y_SCREEN": None}
    (tmp_path / "a.c3d").write_bytes(c3d_bytes(counts, words, point=point))
    take = read(tmp_path / "a.c3d")
    assert codes(take) == {"unit-assumed", "up-assumed"}
    assert (take.source.unit.value, take.source.up.value) == ("mm", "z")
    given = read(tmp_path / "a.c3d", unit="cm", up="y", rate=200.0)
    assert codes(given) == set()
    x, y, z = np.moveaxis(take.points, -1, 0)
    assert_points(given.points, 10.0 * np.stack([x, -z, y], axis=-1), atol=1e-12)
    assert given.rate == 200.0


def test_events_of_the_header(rng, tmp_path):
    counts, words = steps(rng)
    data = bytearray(c3d_bytes(counts, words))
    data[298:302] = np.array([12345, 2], "<u2").tobytes()
    data[304:312] = np.array([0.5, 1.25], "<f4").tobytes()
    data[396:404] = b"RHS LTO "
    (tmp_path / "a.c3d").write_bytes(data)
    events = read(tmp_path / "a.c3d").events
    assert events == (Event("RHS", "", 0.5), Event("LTO", "", 1.25))


@pytest.mark.parametrize("times", [[0.5, 61.25], [[0.0, 0.5], [1.0, 1.25]]])
def test_events_of_groups_with_another_name(rng, tmp_path, times):
    """Robot exoskeletons write EVENTS, in seconds or in minutes and seconds."""
    counts, words = steps(rng)
    groups = {"EVENTS": {"USED": 2, "LABELS": ["GO", "HIT"], "TIMES": np.array(times)}}
    (tmp_path / "a.c3d").write_bytes(c3d_bytes(counts, words, groups=groups))
    take = read(tmp_path / "a.c3d")
    assert take.events == (Event("GO", "", 0.5), Event("HIT", "", 61.25))
    assert codes(take) == set()
    assert reread(take, tmp_path).events == take.events


def test_a_position_at_the_origin_is_unseen_and_reported(rng, tmp_path):
    counts, words = steps(rng)
    words[:] = 0
    words[5, 1] = -1
    counts[3:5, 1] = 0
    (tmp_path / "a.c3d").write_bytes(c3d_bytes(counts, words))
    take = read(tmp_path / "a.c3d")
    assert np.flatnonzero(~take.seen[:, 1]).tolist() == [3, 4, 5]
    (finding,) = take.source.findings
    assert (finding.code, finding.value) == ("points-zero", 2.0)


def test_events_without_a_time_are_reported(rng, tmp_path):
    counts, words = steps(rng)
    groups = {"EVENTS": {"LABELS": ["GO", "HIT", "END"], "TIMES": np.array([0.0, 0.5])}}
    (tmp_path / "a.c3d").write_bytes(c3d_bytes(counts, words, groups=groups))
    take = read(tmp_path / "a.c3d")
    assert take.events == (Event("GO", "", 0.5),)
    assert codes(take) == {"events-unread"}


def test_a_path_with_letters_of_every_kind(rng, tmp_path):
    path = tmp_path / "Läufer – 走る.c3d"
    path.write_bytes(written(figure(rng)))
    assert read(path).source.path == str(path)
    assert load(path).path == str(path)


# Damage


unchecked = pytest.mark.usefixtures("unchecked")
FRAMES, POINTS = 21, 3


def small_file(rng):
    counts, words = steps(rng, frames=FRAMES, points=POINTS)
    words[words < 0] = 0
    fields = {"ACTUAL_START_FIELD": [1, 0], "ACTUAL_END_FIELD": [FRAMES, 0]}
    return c3d_bytes(counts, words, groups={"TRIAL": fields})


def outcome(data, path, reader=load):
    """The file as read, or None when it was refused with a typed error."""
    path.write_bytes(data)
    try:
        return reader(path)
    except FormatError:
        return None


@unchecked
def test_every_truncation_is_an_error_or_a_finding(rng, tmp_path):
    data = small_file(rng)
    assert 1900 < len(data) < 2200
    row = 16 * POINTS
    start = len(data) - FRAMES * row
    for length in range(len(data)):
        found = outcome(data[:length], tmp_path / "a.c3d", read if length % 8 else load)
        if length < start + row:
            assert found is None
        else:
            assert "frames-missing" in codes(found)
            assert len(found.points) == (length - start) // row


def with_poses(rng):
    T = np.tile(np.eye(4), (12, 2, 1, 1))
    return figure(rng, T_world_sensor=T, sensor_names=("a", "b"))


def test_cut_poses_are_reported(rng, tmp_path):
    data = written(with_poses(rng))
    found = outcome(data[:-1], tmp_path / "a.c3d", read)
    assert "frames-missing" in codes(found)
    assert found.sensor_seen.sum(axis=0).tolist() == [11, 11]


@unchecked
def test_a_changed_byte_before_the_frames_seldom_passes_in_silence(rng, tmp_path, slow):
    data = small_file(rng)
    path = tmp_path / "a.c3d"
    reference = outcome(data, path)
    assert codes(reference) == set()
    start = len(data) - FRAMES * POINTS * 16
    changes = (1, 2, 4, 8, 16, 0x7F, 0x80, 0xFF)
    cases = [
        (offset, change)
        for i, (offset, change) in enumerate(product(range(start), changes))
        if slow or i % 5 == 0  # with 5, every change meets every place in a word
    ]
    silent = 0
    for offset, change in cases:
        broken = bytearray(data)
        broken[offset] ^= change
        found = outcome(broken, path)
        same = found is None or np.array_equal(found.points, reference.points)
        silent += not same and not codes(found)
    assert silent / len(cases) < 0.002


@unchecked
def test_mutations_end_in_a_result_or_a_typed_error(rng, tmp_path, slow):
    seeds = [small_file(rng), written(with_poses(rng))]
    for i in range(4000 if slow else 200):
        data = seeds[i % 2]
        broken = mutated(data, rng, len(data) if i % 10 == 0 else 1600)
        outcome(broken, tmp_path / "a.c3d", load if i % 4 < 2 else read)


@unchecked
def test_mutations_do_not_make_memory(rng, tmp_path):
    data = written(with_poses(rng))
    tracemalloc.start()
    for _ in range(50):
        outcome(mutated(data, rng, 1600), tmp_path / "a.c3d", read)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20


@settings(max_examples=200, deadline=None)
@given(tail=st.binary(max_size=1500))
def test_any_bytes_after_a_magic_number(tail, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any.c3d"
    outcome(b"\2\x50" + tail, path, read)


@settings(max_examples=200, deadline=None)
@given(tail=st.binary(max_size=600))
def test_any_bytes_as_parameters(tail):
    found = parse_parameters(
        b"\1\x50\2\x54" + tail, 0, 2000, C3dEncoding(), lambda _: None
    )
    assert isinstance(found, C3dParameters)
    assert sum(len(p.values) for p in found) <= len(tail)


def test_declared_counts_do_not_make_memory(rng, tmp_path):
    data = bytearray(small_file(rng))
    data[2:10] = np.array([65_535, 65_535, 1, 65_535], "<u2").tobytes()
    data[18:20] = b"\xff\xff"
    tracemalloc.start()
    outcome(data, tmp_path / "a.c3d", read)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20


def parsed(chain):
    doubts = []
    data = b"\1\x50\2\x54" + chain.ljust(2 * BLOCK, b"\0")
    return parse_parameters(data, 0, len(data), C3dEncoding(), doubts.append), doubts


def good_chain():
    return section({"POINT": {"A": 1, "B": "mm", "C": 2.5}}, "intel")[4:].rstrip(b"\0")


def test_a_sound_chain_raises_no_doubt():
    found, doubts = parsed(good_chain())
    contents = {p.name: p.content for p in found}
    assert contents == {"A": 1, "B": "mm", "C": 2.5}
    assert doubts == []


def test_a_wrong_offset_is_outweighed_by_the_records_length():
    chain = bytearray(good_chain())
    first = len(record("POINT", -1, b"\0", "intel"))
    for offset in (0, 3, 40, 65_535):
        chain[first + 3 : first + 5] = offset.to_bytes(2, "little")
        found, doubts = parsed(bytes(chain))
        assert [p.name for p in found] == ["A", "B", "C"]
        assert len(doubts) == 1


def test_a_record_without_its_description_byte_is_followed_by_its_offset():
    group = record("POINT", -1, b"\0", "intel")
    bare = record("A", 1, bytes([2, 0, 7, 0]), "intel")
    found, doubts = parsed(group + bare + parameter("B", 1, 8, "intel"))
    assert {p.name: p.content for p in found} == {"A": 7, "B": 8}
    assert len(doubts) == 1


def test_sniffing_refuses_text_and_other_files():
    assert not sniff(b"")
    assert not sniff(b"UPPER CASE TEXT " * 20)
    assert not sniff(b"PK\3\4")
    assert not sniff(b"HIERARCHY")
