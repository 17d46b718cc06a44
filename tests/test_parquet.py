"""Parquet: exact columns out and in, tables of other origin, files to be refused."""

import json
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import samples
from damage import error_message, same, survive

import marey
from marey.io.formats import parquet

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def written(folder, columns, meta=None, **options):
    """A table somebody else wrote."""
    path = folder / "table.parquet"
    table = pa.table(columns, metadata=meta)
    pq.write_table(table, path, **options)
    return path


def saved(folder, take):
    path = folder / "take.parquet"
    marey.write(take, path, overwrite=True)
    return path


def codes(take):
    return [finding.code for finding in take.source.findings]


def test_positions_times_and_names_are_kept_to_the_bit(tmp_path):
    take = samples.take()
    read = marey.read(saved(tmp_path, take))
    np.testing.assert_array_equal(read.points, take.points)
    np.testing.assert_array_equal(
        read.T_world_sensor[..., :3, 3], take.T_world_sensor[..., :3, 3]
    )
    np.testing.assert_allclose(read.T_world_sensor, take.T_world_sensor, atol=4e-12)
    assert (read.rate, read.start) == (take.rate, take.start)
    assert read.full_labels == take.full_labels
    assert str(read.source.rate) == "120.0 (stated: with the table)"
    assert codes(read) == []


def test_other_programs_find_plain_columns(tmp_path):
    take = samples.take()
    table = pq.read_table(saved(tmp_path, take))
    assert table.column_names[:4] == ["time", "Ann:LFHD.x", "Ann:LFHD.y", "Ann:LFHD.z"]
    assert table.column_names[-7:] == [
        f"thigh.{part}" for part in ("x", "y", "z", "qw", "qx", "qy", "qz")
    ]
    assert {str(column.type) for column in table.columns} == {"double"}
    np.testing.assert_array_equal(table["time"], take.times)
    np.testing.assert_array_equal(table["T10.z"], take.points[:, 3, 2])
    meta = json.loads(table.schema.metadata[b"marey"])
    assert (meta["unit"], meta["up"], meta["rate"]) == ("m", "z", 120.0)


def test_what_was_read_and_written_again_is_the_same_file(rng, tmp_path):
    q = rng.normal(size=(400, 5, 4))
    q /= np.linalg.norm(q, axis=-1, keepdims=True)
    take = marey.Take(
        rate=100.0,
        T_world_sensor=marey.geometry.transform(
            marey.geometry.matrix_from_quat(q), rng.normal(size=(400, 5, 3))
        ),
        sensor_names=tuple("abcde"),
    )
    first = saved(tmp_path, take).read_bytes()
    again = replace(marey.read(tmp_path / "take.parquet"), source=marey.Source())
    assert saved(tmp_path, again).read_bytes() == first


@pytest.mark.parametrize(
    ("labels", "sensors"),
    [
        (("A", "A", "B", "A"), ("A", "B")),
        (("time", "t", "x", "T10"), ("S10", "frame")),
        (("", ".x", "A.x", "A"), ("q", "w")),
    ],
)
def test_names_that_look_like_others_stay_apart(labels, sensors, tmp_path):
    take = replace(samples.take(), labels=labels, subjects=(), sensor_names=sensors)
    read = marey.read(saved(tmp_path, take))
    assert (read.labels, read.sensor_names) == (labels, sensors)
    np.testing.assert_array_equal(read.points, take.points)


def test_a_foreign_table_is_read_by_the_names_of_its_columns(rng, tmp_path):
    xyz = rng.integers(-9, 9, size=(3, 4)).astype(float)
    columns = {
        "Time": pa.array([0.0, 0.5, 1.0, 1.5]),
        "note": pa.array(["a", "b", "c", "d"]),
        "Knee_X": pa.array(xyz[0].astype(np.int32)),
        "Knee_Y": pa.array(xyz[1].astype(np.float32)),
        "Knee_Z": pa.array([None, *xyz[2, 1:]], pa.float64()),
        "stamp": pa.array([1, 2, 3, 4], pa.timestamp("ms")),
    }
    take = marey.read(written(tmp_path, columns), unit="m")
    points = xyz.T.copy()
    points[0] = np.nan
    np.testing.assert_array_equal(take.points[:, 0], points)
    assert (take.labels, take.rate) == (("Knee",), 2.0)
    assert codes(take) == ["columns-inferred", "up-assumed"]


def test_a_column_map_rules_over_names(rng, tmp_path):
    columns = {name: pa.array(rng.normal(size=5)) for name in ("u", "v", "w", "A.x")}
    take = marey.read(
        written(tmp_path, columns),
        columns={
            "markers": {"M": ["w", "v", "u"]},
            "unit": "cm",
            "rate": 50,
            "up": "z",
        },
    )
    want = np.stack([columns[name].to_numpy() for name in "wvu"], axis=-1)
    np.testing.assert_allclose(take.points[:, 0], 1e-2 * want, atol=1e-15)
    assert (take.labels, take.rate, codes(take)) == (("M",), 50.0, [])


@pytest.mark.parametrize(
    "meta", [b"{", b"[1]", b'{"markers": 3}', b'{"markers": ["A"]}']
)
def test_metadata_that_does_not_fit_is_not_believed(meta, rng, tmp_path):
    columns = {f"A.{c}": pa.array(rng.normal(size=5)) for c in "xyz"}
    path = written(tmp_path, columns, {b"marey": meta})
    if meta == b"{":
        assert "a whole Parquet file" in error_message(marey.read, path)
    else:
        assert "columns-inferred" in codes(marey.read(path))


def test_infinite_is_a_gap_and_absurd_is_refused(tmp_path):
    columns = {f"A.{c}": pa.array([1.0, 2.0]) for c in "yz"}
    path = written(tmp_path, columns | {"A.x": pa.array([np.inf, 2.0])})
    assert marey.read(path).seen.tolist() == [[False], [True]]
    for wild in (1e13, 1e300):
        path = written(tmp_path, columns | {"A.x": pa.array([wild, 2.0])})
        assert "numbers within" in error_message(marey.read, path)


@pytest.mark.parametrize("columns", [{"note": ["a"]}, {"a": [1.0], "b": [2.0]}])
def test_a_table_without_markers_is_refused(columns, tmp_path):
    path = written(tmp_path, {k: pa.array(v) for k, v in columns.items()})
    with pytest.raises(marey.FormatError, match="columns named like"):
        marey.read(path)


def test_a_small_file_cannot_ask_for_much_memory(tmp_path):
    still = pa.array(np.zeros(3_000_000))
    path = written(tmp_path, {f"A.{c}": still for c in "xyz"}, compression="zstd")
    assert path.stat().st_size < 100_000
    with pytest.raises(marey.FormatError, match="3000000 rows of 3 columns"):
        marey.read(path)


def test_a_take_that_packs_too_well_is_written_so_that_it_can_be_read(tmp_path):
    points = np.full((30_000, 75, 3), np.nan)
    points[0] = 1.0
    take = marey.Take(
        rate=100.0, points=points, labels=tuple(f"M{i}" for i in range(75))
    )
    path = saved(tmp_path, take)
    assert path.stat().st_size > take.points.nbytes
    assert same(marey.read(path), take)


def test_every_cut_is_refused(tmp_path):
    path = saved(tmp_path, samples.take(3, markers=False))
    data = path.read_bytes()
    cuts = {*range(0, len(data), 7), *range(len(data) - 64, len(data))}
    for cut in sorted(cuts):
        path.write_bytes(data[:cut])
        assert error_message(marey.read, path), f"cut at byte {cut}"


def test_damaged_files_give_a_typed_error_or_a_take(tmp_path, request):
    survive(marey.read, saved(tmp_path, samples.take()))


def test_a_changed_number_is_noticed(tmp_path):
    path = saved(tmp_path, samples.take())
    column = pq.ParquetFile(path).metadata.row_group(0).column(1)
    data = bytearray(path.read_bytes())
    data[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    path.write_bytes(bytes(data))
    assert "CRC" in error_message(marey.read, path)


def test_without_pyarrow_the_message_holds_the_pip_line(tmp_path, monkeypatch):
    path = saved(tmp_path, samples.take())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        marey.MissingExtraError, match=r'pip install "marey\[parquet\]"'
    ):
        marey.read(path)
    with pytest.raises(marey.MissingExtraError, match="pyarrow"):
        parquet.FORMAT.write_take(samples.take(), marey.io.options.WriteOptions())


def test_the_format_is_known_without_importing_pyarrow():
    code = "import marey.io.formats.parquet, sys; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_thousands_of_columns_take_bounded_time(tmp_path):
    """The time grew with the square of the columns: two minutes for these."""
    T = np.tile(np.eye(4), (2, 2000, 1, 1))
    names = tuple(f"s{i}" for i in range(2000))
    take = marey.Take(rate=100.0, T_world_sensor=T, sensor_names=names)
    path = saved(tmp_path, take)
    start = time.process_time()
    assert same(marey.read(path), take)
    assert time.process_time() - start < 30.0
