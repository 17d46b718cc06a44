"""Tables: layouts told by a map, spelled out by names, or stacked as matrices."""

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import marey

POLHEMUS = "Time,w1,x1,y1,z1,w2,x2,y2,z2,loc1_x,loc1_y,loc1_z,loc2_x,loc2_y,loc2_z\n"


def written(path, text):
    path.write_text(text, encoding="utf-8", newline="")
    return path


def table(header, rows):
    return header + "".join(
        ",".join(f"{v!r}" for v in row) + "\n" for row in rows.tolist()
    )


def codes(take):
    return {finding.code for finding in take.source.findings}


@pytest.mark.parametrize(
    "names", ["A.x,A.y,A.z", "A_X,A_Y,A_Z", "A:x,A:y,A:z", "xA,yA,zA", "A x,A y,A z"]
)
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_three_columns_that_differ_in_one_letter_are_a_marker(
    names, order, tmp_path, rng
):
    values = rng.normal(size=(5, 3))
    names = [names.split(",")[i] for i in order]
    path = written(tmp_path / "t.csv", table(",".join(names) + "\n", values[:, order]))
    take = marey.read(path, unit="m", rate=100.0)
    assert take.labels == ("A",)
    np.testing.assert_array_equal(take.points[:, 0], values)


def test_sensors_of_a_magnetic_tracker_are_found_by_number(tmp_path, rng):
    q = rng.normal(size=(6, 2, 4))
    p = rng.normal(size=(6, 2, 3))
    values = np.concatenate(
        [np.arange(6)[:, None] / 50.0, q.reshape(6, 8), p.reshape(6, 6)], 1
    )
    take = marey.read(written(tmp_path / "p.csv", table(POLHEMUS, values)), unit="in")
    assert take.sensor_names == ("loc1", "loc2")
    assert take.rate == pytest.approx(50.0)
    unit = q / np.linalg.norm(q, axis=-1, keepdims=True)
    np.testing.assert_allclose(take.T_world_sensor[..., :3, 3], 0.0254 * p, atol=1e-12)
    np.testing.assert_allclose(
        take.T_world_sensor[..., :3, :3],
        marey.geometry.matrix_from_quat(unit),
        atol=1e-12,
    )


def test_a_map_rules_over_names(tmp_path, rng):
    values = rng.uniform(-1.0, 1.0, size=(4, 10))
    header = ",".join(f"c{i}" for i in range(10)) + "\n"
    path = written(tmp_path / "m.csv", table(header, values))
    columns = written(
        tmp_path / "map.toml",
        """
        unit = "cm"
        up = "y"
        rate = 25.0
        [markers]
        head = ["c0", "c1", "c2"]
        [sensors.hand]
        position = [3, 4, 5]
        euler = ["c6", "c7", "c8"]
        order = "XYZ"
        degrees = false
        """,
    )
    take = marey.read(path, columns=columns)
    assert (take.labels, take.sensor_names, take.rate) == (("head",), ("hand",), 25.0)
    x, y, z = values[:, :3].T / 100.0
    np.testing.assert_allclose(take.points[:, 0], np.stack([x, -z, y], axis=-1))
    R = marey.geometry.matrix_from_euler(values[:, 6:9], "XYZ")
    upright = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    np.testing.assert_allclose(
        take.T_world_sensor[:, 0, :3, :3], upright @ R, atol=1e-12
    )


@pytest.mark.parametrize("cells", [12, 16])
def test_matrices_may_stand_in_one_line(cells, tmp_path, rng):
    T = marey.geometry.transform_exp(rng.normal(size=(5, 6)))
    flat = T.reshape(5, 16)[:, :cells]
    path = written(
        tmp_path / "m.csv", table(",".join("abcdefghijklmnop"[:cells]) + "\n", flat)
    )
    columns = {
        "sensors": {"s": {"matrix": list("abcdefghijklmnop"[:cells])}},
        "unit": "m",
    }
    np.testing.assert_allclose(
        marey.read(path, columns=columns).T_world_sensor[:, 0], T, atol=1e-12
    )


def test_a_stack_of_four_by_four_matrices_is_one_sensor(tmp_path, rng):
    T = marey.geometry.transform_exp(rng.normal(size=(5, 6)))
    blocks = [
        "\n".join("  ".join(f"{v!r}" for v in row) for row in M.tolist()) for M in T
    ]
    take = marey.read(
        written(tmp_path / "wrist.traj", "\n\n".join(blocks) + "\n"), unit="m"
    )
    np.testing.assert_allclose(take.T_world_sensor[:, 0], T, atol=1e-12)
    assert {"up-assumed", "rate-assumed"} <= codes(take)


@pytest.mark.parametrize(
    "text",
    [
        "A.x;A.y;A.z\n1,5;2;3\n",
        "A.x\tA.y\tA.z\n1.5\t2\t3\n",
        "A.x A.y A.z\n1.5  2   3\n",
        '"A.x","A.y","A.z"\n"1.5","2","3"\n',
    ],
    ids=["semicolon and decimal comma", "tabs", "blanks", "quotes"],
)
def test_delimiters_are_found(text, tmp_path):
    take = marey.read(written(tmp_path / "d.csv", text), unit="m")
    np.testing.assert_array_equal(take.points, [[[1.5, 2.0, 3.0]]])


def test_a_blank_or_nan_in_one_component_hides_the_point(tmp_path):
    take = marey.read(
        written(tmp_path / "g.csv", "A.x,A.y,A.z\n1,2,3\n1,,3\n1,NaN,3\n"), unit="m"
    )
    assert take.seen[:, 0].tolist() == [True, False, False]
    assert np.isnan(take.points[1:]).all()


def test_a_table_without_names_is_markers_by_threes(tmp_path):
    take = marey.read(
        written(tmp_path / "n.txt", "0.00 1 2 3 4 5 6\n0.02 1 2 3 4 5 6\n")
    )
    assert take.labels == ("M000", "M001")
    assert take.rate == pytest.approx(50.0)
    assert "columns-inferred" in codes(take)


def test_uneven_times_and_repeated_rows_are_findings(tmp_path):
    rows = np.array([[0.0, 1, 2, 3], [0.01, 1, 2, 3], [0.1, 4, 5, 6], [0.11, 4, 5, 6]])
    take = marey.read(written(tmp_path / "u.csv", table("t,A.x,A.y,A.z\n", rows)))
    assert {"times-uneven", "rows-repeated", "unit-assumed"} <= codes(take)
    assert take.rate == pytest.approx(3 / 0.11)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("A.x,A.y,A.z\n1,2,3\n4,five,6\n", "line 3: expected a number"),
        ("A.x,A.y,A.z\n1,2,3\n4,1_0,6\n", "line 3: expected a number"),
        ("A.x,A.y,A.z\n1,2,3\n4,5,6,7\n", "line 3: expected 3 cells, found 4"),
        ("speed,power,heat\n1,2,3\n", "give columns="),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, complaint, tmp_path):
    with pytest.raises(marey.FormatError, match=complaint):
        marey.read(written(tmp_path / "w.csv", text))


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"markers": {"A": ["A.x", "A.y", "nope"]}}, "nope"),
        ({"markers": {"A": ["A.x", "A.y"]}}, "3 columns"),
        ({"sensors": {"A": {"quaternion": ["A.x"] * 4}}}, "position"),
        ({"colour": 1}, "colour"),
        (
            {
                "sensors": {
                    "A": {"position": [0, 1, 2], "euler": [0, 1, 2], "order": "XXZ"}
                }
            },
            "XXZ",
        ),
        ("gone.toml", "gone.toml"),
    ],
)
def test_a_wrong_map_is_refused(columns, complaint, tmp_path):
    path = written(tmp_path / "m.csv", "A.x,A.y,A.z\n1,2,3\n")
    with pytest.raises(marey.OptionError, match=complaint):
        marey.read(path, columns=columns)


def test_a_hundred_thousand_short_lines_do_not_fill_the_memory(tmp_path):
    header = ",".join(f"c{i}.{c}" for i in range(2000) for c in "xyz")
    path = written(tmp_path / "h.csv", header + "\n" + "1,2,3\n" + "1\n" * 100_000)
    with pytest.raises(marey.FormatError, match="cells"):
        marey.read(path)


# --- names that look like others -----------------------------------------------------


def test_a_marker_named_t_is_not_the_time(tmp_path, rng):
    values = np.column_stack([np.arange(4) / 25.0, rng.normal(size=(4, 3))])
    for name in ("T", "t", "Time", "sec"):
        header = ",".join(f"{name}.{c}" for c in "xyz")
        path = written(tmp_path / "a.csv", table(header + "\n", values[:, 1:]))
        take = marey.read(path)
        assert take.labels == (name,)
        np.testing.assert_array_equal(take.points[:, 0], values[:, 1:])
        path = written(tmp_path / "a.csv", table(f"time,{header}\n", values))
        assert marey.read(path).rate == pytest.approx(25.0)
        assert marey.read(path).labels == (name,)


@pytest.mark.parametrize(
    "title",
    [
        *("time", "Time", "t", "T", "timestamp", "Time Stamp", "time_stamp", "Seconds"),
        *("Time (s)", "Time(s)", "time_s", "time [s]", "Time (Seconds)", "t [sec]"),
    ],
)
def test_the_time_is_known_by_its_whole_name(title, tmp_path):
    rows = np.array([[0.0, 1, 2, 3], [0.04, 1, 2, 4], [0.08, 1, 2, 5]])
    path = written(tmp_path / "a.csv", table(f"{title},A.x,A.y,A.z\n", rows))
    assert marey.read(path).rate == pytest.approx(25.0)


@pytest.mark.parametrize("title", ["Time (ms)", "times", "step", "T10", "time.x", "tx"])
def test_what_is_no_time_in_seconds_gives_no_rate(title, tmp_path):
    rows = np.array([[0.0, 1, 2, 3], [40.0, 1, 2, 4], [80.0, 1, 2, 5]])
    take = marey.read(
        written(tmp_path / "a.csv", table(f"{title},A.x,A.y,A.z\n", rows))
    )
    assert {"rate-assumed", "columns-inferred"} <= codes(take)
    said = {f.code: f.message for f in take.source.findings}["columns-inferred"]
    assert f"left out 1: {title};" in said


POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")


def test_a_marker_with_the_number_of_a_sensor_stays_a_marker(tmp_path, rng):
    names = [f"T10.{c}" for c in "xyz"] + [f"S10.{c}" for c in POSE]
    values = rng.normal(size=(4, 10))
    take = marey.read(
        written(tmp_path / "a.csv", table(",".join(names) + "\n", values))
    )
    assert (take.labels, take.sensor_names) == (("T10",), ("S10",))
    np.testing.assert_array_equal(take.points[:, 0], values[:, :3])
    np.testing.assert_array_equal(take.T_world_sensor[:, 0, :3, 3], values[:, 3:6])


@pytest.mark.parametrize(
    "names",
    [
        "w1 x1 y1 z1 a1_x a1_y a1_z b1_x b1_y b1_z",
        "w1 x1 y1 z1 w2 x2 y2 z2 a1_x a1_y a1_z",
        "w1 x1 y1 z1 c1qw c1qx c1qy c1qz a1_x a1_y a1_z",
        "w1 x1 y1 z1 a2qw a2qx a2qy a2qz a2_x a2_y a2_z b1_x b1_y b1_z",
    ],
    ids=["two positions", "a quaternion without", "two quaternions", "equal names"],
)
def test_a_number_joins_only_what_it_joins_without_doubt(names, tmp_path, rng):
    values = rng.normal(size=(3, len(names.split())))
    path = written(tmp_path / "a.csv", table(names.replace(" ", ",") + "\n", values))
    take = marey.read(path)
    assert not any("1" in name for name in take.sensor_names)
    said = {f.code: f.message for f in take.source.findings}["columns-inferred"]
    assert "w1, x1, y1, z1" in said


def test_angles_are_not_places(tmp_path, rng):
    names = "A.x A.y A.z A.rotx A.roty A.rotz A.qx A.qy A.qz B.rotation[x] B.Rot_Y"
    values = rng.normal(size=(3, 11))
    path = written(tmp_path / "a.csv", table(names.replace(" ", ",") + "\n", values))
    take = marey.read(path)
    assert take.labels == ("A",)
    np.testing.assert_array_equal(take.points[:, 0], values[:, :3])


def test_repeated_names_lose_nothing(tmp_path, rng):
    names = [f"A.{c}" for c in "xyz"] * 2 + [f"S.{c}" for c in POSE] * 2
    names += [f"A_2_{c}" for c in "XYZ"] + ["xA", "yA", "zA"]
    values = rng.normal(size=(4, len(names)))
    values[:, [9, 16]] += 9.0
    take = marey.read(
        written(tmp_path / "a.csv", table(",".join(names) + "\n", values))
    )
    assert take.labels == ("A", "A_3", "A_2", "A_4")
    assert take.sensor_names == ("S", "S_2")
    positions = [values[:, at : at + 3] for at in (0, 3, 20, 23)]
    np.testing.assert_array_equal(take.points, np.stack(positions, axis=1))
    for k, at in enumerate((6, 13)):
        q = values[:, at + 3 : at + 7]
        q /= np.linalg.norm(q, axis=-1, keepdims=True)
        T = take.T_world_sensor[:, k]
        np.testing.assert_array_equal(T[:, :3, 3], values[:, at : at + 3])
        R = marey.geometry.matrix_from_quat(q)
        np.testing.assert_allclose(T[:, :3, :3], R, atol=1e-12)
    assert "labels-repeated" in codes(take)


# --- tables that marey wrote ---------------------------------------------------------

PRINTABLE = st.text(
    st.characters(codec="utf-8").filter(str.isprintable), max_size=5
) | st.sampled_from(
    [
        *("x", "T", "w1", "a.b", "q", "t", "time", "frame", "A", "A_2", "A.x", ".x"),
        *("T10", "S10", "", " ", "  A", "a:b", ":", "::", ",", '"', '"A', "#", "\\n"),
    ]
)


def take_of(markers, sensors, frames=3):
    rng = np.random.default_rng(len(markers))
    T = np.tile(np.eye(4), (frames, len(sensors), 1, 1))
    T[..., :3, 3] = rng.integers(-99, 99, (frames, len(sensors), 3)) / 8
    points = rng.integers(-99, 99, (frames, len(markers), 3)) / 8
    points[rng.random((frames, len(markers))) < 0.3] = np.nan
    return marey.Take(
        rate=50.0,
        points=points,
        subjects=tuple(subject for subject, _ in markers),
        labels=tuple(label for _, label in markers),
        T_world_sensor=T,
        sensor_names=tuple(sensors),
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@settings(max_examples=40, deadline=None)
@given(
    markers=st.lists(st.tuples(st.just("") | PRINTABLE, PRINTABLE), max_size=4),
    sensors=st.lists(PRINTABLE, max_size=3),
    frames=st.integers(0, 3),
)
@example(markers=[("", name) for name in "AAxTq"], sensors=["A", "A"], frames=2)
@example(markers=[("", "a:b"), ("a", "b"), ("J", "a:b")], sensors=["w1"], frames=1)
@example(markers=[], sensors=[], frames=2)
def test_any_printable_names_come_back(
    suffix, markers, sensors, frames, tmp_path_factory
):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    take = take_of(markers, sensors, frames)
    path = tmp_path_factory.getbasetemp() / f"names{suffix}"
    marey.write(take, path, overwrite=True)
    found = marey.read(path)
    assert found.labels == take.labels
    assert found.subjects == take.subjects
    assert found.sensor_names == take.sensor_names
    np.testing.assert_array_equal(found.points, take.points)
    np.testing.assert_array_equal(found.T_world_sensor, take.T_world_sensor)
    assert found.rate == take.rate
    assert not codes(found) - {"rows-repeated"}


def test_names_that_do_not_print_come_back_too(tmp_path):
    take = take_of([("a\nb", "c\rd"), ("", "\t\u2028\x85")], ["\x00", "e\x1b[31m"])
    marey.write(take, tmp_path / "a.csv")
    found = marey.read(tmp_path / "a.csv")
    assert (found.labels, found.subjects) == (take.labels, take.subjects)
    assert found.sensor_names == take.sensor_names
    header = (tmp_path / "a.csv").read_text(encoding="utf-8").split("\n")[1]
    assert header.isprintable()


def test_a_header_longer_than_a_look_at_the_file(tmp_path):
    take = take_of([("", f"{'marker' * 60}ä{i}") for i in range(1000)], [], frames=2)
    path = tmp_path / "a.csv"
    marey.write(take, path)
    assert len(path.read_bytes().split(b"\n")[1]) > 2**20
    assert marey.read(path).labels == take.labels


def test_other_programs_find_distinct_names_below_the_first_line(tmp_path):
    take = take_of([("Ann", "A"), ("", "B"), ("", "B")], ["S"])
    marey.write(take, tmp_path / "a.csv")
    first, header, *_ = (tmp_path / "a.csv").read_text().split("\n")
    assert json.loads(first.removeprefix("# marey table: "))["rate"] == 50.0
    names = "time,Ann:A.x,Ann:A.y,Ann:A.z,B.x,B.y,B.z,B.x_2,B.y_2,B.z_2"
    assert header == ",".join([names, *(f"S.{part}" for part in POSE)])


@pytest.mark.parametrize(
    "change",
    [
        (b'"markers": ["A", "B"]', b'"markers": ["A", "C"]'),
        (b'"markers": ["A", "B"]', b'"markers": ["A"]'),
        (b'"markers": ["A", "B"]', b'"markers": 2'),
        (b"A.x", b"D.x"),
        (b"# marey table", b"# barey table"),
        (b'{"unit"', b'["unit"'),
    ],
)
def test_a_first_line_that_does_not_fit_is_not_believed(change, tmp_path):
    take = take_of([("", "A"), ("", "B")], ["S"])
    path = tmp_path / "a.csv"
    marey.write(take, path)
    data = path.read_bytes()
    assert change[0] in data
    path.write_bytes(data.replace(*change, 1))
    found = marey.read(path)
    assert "columns-inferred" in codes(found)
    np.testing.assert_array_equal(found.points[:, -1], take.points[:, 1])


def test_a_name_beyond_reason_is_no_crash(tmp_path):
    text = "A" * 200_000 + ".x,A.y,A.z\n1,2,3\n"
    with pytest.raises(marey.FormatError, match="give columns="):
        marey.read(written(tmp_path / "a.csv", text), format="csv")
