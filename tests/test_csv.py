"""Tables: layouts told by a map, spelled out by names, or stacked as matrices."""

import numpy as np
import pytest

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
