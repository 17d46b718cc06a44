"""OpenSim storage tables: files are written here, and by the writer itself."""

import numpy as np
import pytest
from damage import assert_every_cut_is_noticed, same, survive
from scipy.spatial.transform import Rotation

import marey

LABELS = ("LFHD", "Ann:RFHD", "C 7")


def table(names, cells, **fields):
    """The text of a table: `cells` is (frame, column) of strings."""
    head = {"nRows": len(cells), "nColumns": 1 + len(names), "DataRate": 50} | fields
    lines = [f"{key}={value}" for key, value in head.items() if value != ""]
    lines += ["endheader", "\t".join(["time", *names])]
    lines += ["\t".join([f"{i / 50:.6f}", *row]) for i, row in enumerate(cells)]
    return "".join(line + "\n" for line in lines)


def packed(values, nan="NaN"):
    """Cells x,y,z or w,x,y,z of an array (frame, item, component)."""
    return [
        [",".join(nan if v != v else repr(v) for v in item) for item in row]
        for row in values.tolist()
    ]


def vec3(points, **fields):
    names = LABELS[: points.shape[1]]
    return table(names, packed(points), **{"DataType": "Vec3", "Units": "m"} | fields)


def quaternions(wxyz, **fields):
    names = ("pelvis_imu", "femur_r_imu")[: wxyz.shape[1]]
    return table(names, packed(wxyz), **{"DataType": "Quaternion"} | fields)


def saved(folder, text, name="take.sto"):
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def codes(take):
    return [finding.code for finding in take.source.findings]


@pytest.fixture
def points(rng):
    """In the file's own axes."""
    values = rng.uniform(-1.0, 2.0, size=(5, 3, 3))
    values[2, 1] = np.nan
    return values


@pytest.fixture
def read(tmp_path):
    def reader(text, **options):
        return marey.read(saved(tmp_path, text), **options)

    return reader


def upright(points):
    """Points of a file with Y up in marey's world."""
    x, y, z = np.moveaxis(points, -1, 0)
    return np.stack([x, -z, y], axis=-1)


# --- markers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "metres"),
    [("m", 1.0), ("mm", 1e-3), ("meters", 1.0), ("Centimeters", 0.01)],
)
def test_packed_cells_are_markers(unit, metres, points, read):
    take = read(vec3(points / metres, Units=unit))
    np.testing.assert_allclose(take.points, upright(points), atol=1e-15)
    assert take.labels == ("LFHD", "RFHD", "C 7")
    assert take.subjects == ("", "Ann", "")
    assert take.rate == 50.0
    assert take.source.unit.how == "stated"
    assert str(take.source.up) == "y (inferred: OpenSim's own axes)"
    assert not codes(take)


@pytest.mark.parametrize(
    "ending",
    [("_tx", "_ty", "_tz"), ("_x", "_y", "_z"), (".x", ".y", ".z"), ("_X", "_Y", "_Z")],
)
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_three_columns_of_numbers_are_a_marker(ending, order, points, read):
    names = [f"{label}{ending[i]}" for label in LABELS for i in order]
    numbers = points[..., order].reshape(5, -1)
    cells = [["" if v != v else repr(v) for v in row] for row in numbers.tolist()]
    take = read(table(names, cells, Units="m"))
    assert same(take, read(vec3(points)))


def test_the_older_header_is_understood(points, read):
    text = (
        vec3(points).replace("nRows=", "datarows ").replace("nColumns=", "datacolumns ")
    )
    assert not codes(read("name some motion\n" + text))
    late = text.replace("datarows 5", "datarows 7")
    assert codes(read(late)) == ["frames-missing"]


def test_without_a_rate_or_unit_they_are_inferred_or_assumed(points, read):
    take = read(vec3(points, DataRate="", Units=""))
    assert str(take.source.rate) == "50 (inferred: mean step of the times)"
    assert codes(take) == ["unit-assumed"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"nRows": 9}, "frames-missing"),
        ({"nRows": 2}, "frames-extra"),
        ({"nColumns": 9}, "columns-mismatch"),
        ({"Units": "m/s^2"}, "unit-assumed"),
        ({"up": "sideways"}, "up-assumed"),
        ({"DataRate": 500}, "rate-mismatch"),
    ],
)
def test_what_does_not_fit_is_a_finding(fields, code, rng, read):
    points = rng.normal(size=(5, 3, 3))
    take = read(vec3(points, **fields))
    assert codes(take) == [code]
    np.testing.assert_array_equal(take.points, upright(points))


def test_a_last_line_that_was_cut_off_is_left_out(points, read):
    text = vec3(points)
    take = read(text[: text.rindex(",")])
    np.testing.assert_array_equal(take.points, upright(points)[:4])
    assert "line-unended" in codes(take)


# --- orientations --------------------------------------------------------------------


@pytest.mark.parametrize("up", ["z", "y"])
def test_orientations_are_sensors_in_the_origin(up, rng, read):
    R = Rotation.random(8, random_state=rng)
    wxyz = R.as_quat(scalar_first=True).reshape(4, 2, 4)
    wxyz[2, 1] = np.nan
    take = read(quaternions(wxyz), up=up)
    turn = {"z": np.eye(3), "y": upright(np.eye(3)).T}[up]
    wanted = turn @ R.as_matrix().reshape(4, 2, 3, 3)
    wanted[2, 1] = np.nan
    np.testing.assert_allclose(take.T_world_sensor[..., :3, :3], wanted, atol=1e-12)
    assert (take.T_world_sensor[take.sensor_seen][:, :3, 3] == 0.0).all()
    assert take.sensor_names == ("pelvis_imu", "femur_r_imu")
    assert codes(take) == ["positions-unknown"]


def test_the_up_axis_of_orientations_is_assumed_aloud(read):
    take = read(quaternions(np.tile([1.0, 0.0, 0.0, 0.0], (3, 2, 1))))
    assert (take.source.up.value, take.source.up.how) == ("z", "assumed")
    assert codes(take) == ["up-assumed", "positions-unknown"]


# --- writing -------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".sto", ".mot"])
def test_writing_states_unit_and_axis_so_that_reading_needs_no_word(
    suffix, points, tmp_path
):
    take = marey.Take(rate=119.88, points=points, labels=LABELS, start=0.25)
    for number, (unit, up) in enumerate([(None, None), ("mm", "z"), ("in", "-x")]):
        path = tmp_path / f"{number}{suffix}"
        marey.write(take, path, unit=unit, up=up)
        read = marey.read(path)
        np.testing.assert_allclose(read.points, points, atol=1e-9)
        assert (read.rate, read.start) == (119.88, 0.25)
        assert (read.source.unit.value, read.source.up.value) == (
            unit or "m",
            up or "y",
        )
        assert not codes(read)


def test_a_sensor_is_written_as_a_marker_at_its_origin(rng, tmp_path):
    position = rng.normal(size=(3, 1, 3))
    T = marey.geometry.transform(np.eye(3), position)
    take = marey.Take(rate=60.0, T_world_sensor=T, sensor_names=("hip",))
    lost = marey.write(take, tmp_path / "take.sto")
    assert [finding.subject for finding in lost] == ["sensors"]
    read = marey.read(tmp_path / "take.sto")
    np.testing.assert_allclose(read.points, position, atol=1e-9)
    assert read.labels == ("hip",)


# --- dialects and bad input ----------------------------------------------------------


@pytest.mark.parametrize(
    "twin",
    [
        lambda t: t.replace("\n", "\r\n").encode(),
        lambda t: t.replace("\n", "\r").encode(),
        lambda t: t.encode("utf-8-sig"),
        lambda t: t.encode("utf-16"),
        lambda t: t.rstrip("\n").encode(),
        lambda t: t.replace("\n", "\t\n").encode(),
        lambda t: t.replace("endheader", "OpenSimVersion=4.5\n EndHeader ").encode(),
        lambda t: t.replace(",", ", ").encode(),
        lambda t: t.replace("endheader\n", "endheader\n\n").encode(),
    ],
    ids=[
        *("CRLF", "CR", "BOM", "UTF-16", "no newline", "trailing tabs", "header"),
        *("blanks after commas", "blank line"),
    ],
)
def test_dialects_do_not_matter(twin, points, tmp_path):
    path = saved(tmp_path, vec3(points))
    whole = marey.read(path)
    path.write_bytes(twin(vec3(points)))
    assert same(marey.read(path), whole)


@pytest.mark.parametrize("name", ["take.mot", "take.txt", "take.csv", "noname"])
def test_content_alone_tells_the_format(name, points, tmp_path):
    path = saved(tmp_path, vec3(points), name)
    assert marey.io.recognise(path).name == "storage"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["pelvis_tilt", "pelvis_tx", "pelvis_ty", "pelvis_tz"], "joint coordinates"),
        (["ground_force_vx", "ground_force_vy", "ground_force_vz"], "forces"),
        (["hip_flexion_r", "knee_angle_r"], "markers they came from"),
        (["A_x", "A_y", "A_z", "A_tx", "A_ty", "B_tz"], "A_tx"),
    ],
)
def test_what_is_no_table_of_markers_is_refused_in_words(names, message, read):
    cells = [["1.0"] * len(names)] * 3
    with pytest.raises(marey.FormatError, match=message):
        read(table(names, cells, inDegrees="yes"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace("Vec3", "SpatialVec"), "DataType=spatialvec"),
        (lambda t: t.replace("time\t", "clock\t"), "begin with time"),
        (lambda t: t.replace("0.020000", "soon"), "a word in column 1"),
        (lambda t: t.replace("NaN,NaN,NaN", "NaN,NaN"), "3 cells of 3 numbers"),
        (lambda t: t.replace("NaN,NaN,NaN", ""), "3 cells of 3 numbers"),
        (lambda t: t.replace("NaN,NaN,NaN", "0,0,0,0"), "10 cells, found 11"),
        (lambda t: t[: t.index("0.000000")], "expected frames"),
        (lambda t: t.replace("\tLFHD\tAnn:RFHD\tC 7", ""), "times alone"),
    ],
)
def test_what_is_wrong_is_said(change, message, points, read):
    with pytest.raises(marey.FormatError, match=message):
        read(change(vec3(points)))


def test_every_truncation_is_an_error_or_a_finding(points, tmp_path, rng):
    wxyz = Rotation.random(2, random_state=rng).as_quat().reshape(2, 1, 4)
    for text in (vec3(points[:2, :2]), quaternions(wxyz)):
        assert_every_cut_is_noticed(saved(tmp_path, text))


def test_damaged_files_give_a_typed_error_or_a_take(points, rng, tmp_path, request):
    wxyz = Rotation.random(4, random_state=rng).as_quat().reshape(2, 2, 4)
    columns = [f"{label}_t{axis}" for label in LABELS for axis in "xyz"]
    numbers = [[repr(v) for v in row] for row in points.reshape(5, -1).tolist()]
    for text in (vec3(points), quaternions(wxyz), table(columns, numbers)):
        survive(marey.read, saved(tmp_path, text))
