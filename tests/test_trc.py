"""TRC: every dialect read as it stands, doubts said, hostile files refused."""

import numpy as np
import pytest
from damage import survive
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey.io.formats import trc

NAMES = (
    "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate"
    "\tOrigDataStartFrame\tOrigNumFrames"
)


def text(
    rows,
    labels="A\t\t\tB",
    *,
    rate=100,
    frames=None,
    markers=2,
    units="m",
    axes="\t\tX1\tY1\tZ1\tX2\tY2\tZ2\n",
    names=NAMES,
):
    frames = len(rows) if frames is None else frames
    values = f"{rate}\t{rate}\t{frames}\t{markers}\t{units}\t{rate}\t1\t{frames}"
    head = (
        f"PathFileType\t4\t(X/Y/Z)\tx.trc\n{names}\n{values}\nFrame#\tTime\t{labels}\n"
    )
    return head + axes + "".join(f"{row}\n" for row in rows)


ROWS = ["1\t0.00\t1\t2\t3\t4\t5\t6", "2\t0.01\t\t\t\t-4.5\t5e-1\t.5"]


@pytest.fixture
def take_of(tmp_path):
    def read(content, **options):
        path = tmp_path / "take.trc"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return marey.read(path, **{"up": "z", **options})

    return read


def codes(take):
    return {finding.code for finding in take.source.findings}


def test_the_plain_dialect(take_of):
    take = take_of(text(ROWS))
    nan = np.nan
    wanted = [[[1, 2, 3], [4, 5, 6]], [[nan] * 3, [-4.5, 0.5, 0.5]]]
    np.testing.assert_array_equal(take.points, wanted)
    assert (take.labels, take.rate, take.start) == (("A", "B"), 100.0, 0.0)
    assert codes(take) == set()


@pytest.mark.parametrize(
    "twin",
    [
        text(ROWS, axes="\t\tX1\tY1\tZ1\tX2\tY2\tZ2\n\n"),
        text(ROWS, axes=""),
        text(ROWS, labels="A\tB"),
        text(ROWS, labels="A\t\t\tB\t\t\t\t"),
        text([row + "\t\t\t" for row in ROWS]),
        text([ROWS[0], ROWS[1].replace("\t\t\t", "\tNaN\tnan\tNAN")]),
        text(ROWS).replace("\tNumFrames", "\t NumFrames ").replace("\tm", "\t  m "),
        text(ROWS).replace("PathFileType\t4\t(X/Y/Z)\t", "PathFileType  4\t(X/Y/Z) "),
        text(ROWS).replace(NAMES, NAMES.replace("\t", " ")),
        "\n" + text(ROWS),
        text(ROWS, units="Meters"),
    ],
    ids=[
        "blank-line",
        "no-axes",
        "tight-labels",
        "long-labels",
        "trailing-tabs",
        "nan",
        "padded",
        "spaced-path",
        "spaced-header",
        "leading-line",
        "meters",
    ],
)
def test_every_dialect_says_the_same(take_of, twin):
    want = take_of(text(ROWS))
    take = take_of(twin)
    np.testing.assert_array_equal(take.points, want.points)
    assert (take.labels, take.rate, codes(take)) == (want.labels, want.rate, set())


def test_blank_separated_numbers_are_read(take_of):
    rows = ["1 0.00 1 2 3 4 5 6", "2 0.01  7 8 9 10 11 12"]
    assert take_of(text(rows)).points[1].tolist() == [[7, 8, 9], [10, 11, 12]]


def test_the_file_itself_keeps_its_unit_order_and_words(tmp_path):
    path = tmp_path / "x.trc"
    rows = [row.replace("\t0.0", "\t7.5") for row in ROWS]
    path.write_text(text([rows[0], rows[1].replace("2", "18", 1)], units="mm"))
    raw = trc.load(path)
    assert raw.points[0].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert (raw.units, raw.rate, raw.first_frame, raw.last_frame) == ("mm", 100, 1, 18)
    assert raw.times.tolist() == [7.50, 7.51]
    assert raw.header["OrigDataStartFrame"] == "1"
    assert marey.read(path).start == 7.5


@pytest.mark.parametrize(
    ("content", "code", "value"),
    [
        (text(ROWS, frames=5), "frames-missing", -3),
        (text(ROWS, frames=1), "frames-extra", 1),
        (text(ROWS, markers=7), "markers-mismatch", 2),
        (text(ROWS, labels="A"), "markers-mismatch", 2),
        (text(ROWS, labels="A\t\t\tA"), "labels-repeated", 1),
        (text(ROWS, rate=250), "rate-mismatch", 100),
        (text([*ROWS, "3\t0.02\t1\t\t3"]), "points-partial", 1),
        (text([*ROWS, "3\t0.02\t0\t0.0\t0"]), "points-zero", 1),
        (text([*ROWS, "9\t0.08\t0\t0.0\t1", "10\t0.09"]), "times-uneven", 1),
        (text(ROWS)[:-1], "line-unended", np.nan),
    ],
)
def test_a_doubt_is_a_finding_with_its_number(take_of, content, code, value):
    found = [f for f in take_of(content).source.findings if f.code == code]
    assert len(found) == 1
    np.testing.assert_equal(found[0].value, value)


@pytest.mark.parametrize(
    ("steps", "rate"),
    [
        ([0.04] * 8, 25.0),
        ([0.041, 0.040, 0.041, 0.040] * 2, 8 / 0.324),
        ([0.01] * 7 + [9.0], 250.0),
        ([4.0] * 8, 250.0),
    ],
)
def test_even_times_count_more_than_a_header_that_contradicts_them(
    take_of, steps, rate
):
    """Programs that leave frames out keep the header; counters prove nothing."""
    times = np.concatenate([[0.0], np.cumsum(steps)])
    rows = [f"{i + 1}\t{t:.3f}\t1\t2\t3\t4\t5\t6" for i, t in enumerate(times)]
    take = take_of(text(rows, rate=250))
    assert take.rate == pytest.approx(rate)
    assert "rate-mismatch" in codes(take)


def test_markers_without_names_get_neutral_ones(take_of):
    take = take_of(text(ROWS, labels="", markers=0, axes="\t\t\n"))
    assert take.labels == ("M1", "M2")
    assert codes(take) == {"markers-mismatch", "labels-missing"}


def test_without_a_rate_the_times_tell_it(take_of):
    take = take_of(text(ROWS, rate="?"))
    assert take.rate == pytest.approx(100.0)
    assert str(take.source.rate).endswith("(inferred: Time column)")


def test_subjects_are_split_off(take_of):
    take = take_of(text(ROWS, labels="JOE:RTHI\t\t\t:B"))
    assert take.labels == ("RTHI", ":B")
    assert take.subjects == ("JOE", "")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "empty file"),
        (text(ROWS)[:60], "line 2: expected five header lines"),
        (text([], frames=3), "line 6: expected at least one frame, .* 3 frames"),
        (text([ROWS[0].replace("5", "1_0")]), "line 6: .* a word in column 7"),
        (text([ROWS[0].replace("5", "inf")]), "line 6: .* a word in column 7"),
        (text(ROWS).replace("Frame#", "?"), "line 4: expected Frame#"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_at_its_line(take_of, content, match):
    with pytest.raises(marey.FormatError, match=match):
        take_of(content, format="auto" if not content else "trc")


def test_one_endless_line_is_bounded(take_of):
    with pytest.raises(marey.FormatError, match="at most 100000 markers"):
        take_of(text(["1\t0\t" + "1\t" * 3_000_000]))
    with pytest.raises(marey.FormatError, match="lines of 30002 cells"):
        take_of(text(["1\t0"] * 99 + ["1\t0\t" + "1\t" * 30_000]))
    with pytest.raises(marey.FormatError, match="lines of"):
        take_of(text(["1\t0"] * 99, labels="A\t\t\t" * 90_000))


@given(data=st.data())
@settings(deadline=None, max_examples=40)
def test_what_is_written_comes_back_to_the_stated_precision(data, tmp_path_factory):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n_frames, n_markers = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5))
    points = rng.normal(
        scale=10.0 ** rng.integers(-3, 3), size=(n_frames, n_markers, 3)
    )
    points[rng.random((n_frames, n_markers)) < 0.3] = np.nan
    start, rate = float(rng.uniform(0, 1e3)), float(rng.uniform(1, 1e3))
    labels = tuple(f"M {i}é" for i in range(n_markers))
    take = marey.Take(rate=rate, points=points, labels=labels, start=start)
    path = tmp_path_factory.mktemp("trc") / "x.trc"
    unit = data.draw(st.sampled_from([None, "mm", "cm", "m", "in", "ft"]))
    marey.write(take, path, unit=unit)
    again = marey.read(path)
    np.testing.assert_allclose(again.points, points, atol=trc.FORMAT.precision)
    assert (again.labels, again.rate) == (labels, rate)
    assert again.start == pytest.approx(start, abs=1e-9)


def test_sensors_stand_as_markers_at_their_origins(tmp_path):
    T = np.tile(np.eye(4), (2, 1, 1, 1))
    T[1, 0, :3, 3] = [1.0, 2.0, 3.0]
    take = marey.Take(rate=10.0, T_world_sensor=T, sensor_names=("pelvis",))
    (lost,) = marey.write(take, tmp_path / "x.trc")
    again = marey.read(tmp_path / "x.trc")
    assert lost.subject == "sensors" or "sensors" in lost.message
    assert again.labels == ("pelvis",)
    np.testing.assert_allclose(again.points[:, 0], T[:, 0, :3, 3], atol=1e-8)


def test_a_trc_keeps_its_unit_and_axis_when_rewritten(take_of, tmp_path):
    take = take_of(text(ROWS, units="in"), up="x")
    marey.write(take, tmp_path / "y.trc")
    raw = trc.load(tmp_path / "y.trc")
    assert raw.units == "in"
    np.testing.assert_allclose(raw.points[0], [[1, 2, 3], [4, 5, 6]], atol=1e-6)


@pytest.mark.parametrize("rows", [ROWS, ROWS * 3])
def test_damage_gives_a_typed_error_or_a_take(rows, tmp_path, request):
    path = tmp_path / "x.trc"
    path.write_bytes(text(rows).encode())
    survive(marey.read, path)


def test_no_line_ends_in_a_blank_which_opensim_would_drop(tmp_path):
    """A last marker that was not seen is "nan"; all others are blanks."""
    points = np.arange(18.0).reshape(3, 2, 3)
    points[0, 1] = points[1, 0] = points[2] = np.nan
    marey.write(
        marey.Take(rate=10.0, points=points, labels=("A", "B")), tmp_path / "a.trc"
    )
    rows = (tmp_path / "a.trc").read_text(encoding="utf-8").splitlines()[6:]
    cells = [row.split("\t")[2:] for row in rows]
    assert cells[0][3:] == ["nan"] * 3
    assert cells[1][:3] == [""] * 3
    assert cells[2] == [""] * 3 + ["nan"] * 3
    np.testing.assert_array_equal(marey.read(tmp_path / "a.trc").points, points)


def test_commas_of_a_spreadsheet_separate_cells(take_of):
    tabs = take_of(text(ROWS))
    commas = take_of(text(ROWS).replace("\t", ","))
    assert commas.labels == tabs.labels
    assert commas.rate == tabs.rate
    assert commas.source.unit == tabs.source.unit
    np.testing.assert_array_equal(commas.points, tabs.points)
