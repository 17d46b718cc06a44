"""C3D at the edges: damaged exact numbers, degenerate segments, too many points."""

from dataclasses import replace

import numpy as np
import pytest
import samples

import marey

RATE, START = 59.94, 0.123456789


def written(folder, take):
    path = folder / "take.c3d"
    marey.write(take, path, overwrite=True)
    return path


def test_exact_numbers_are_taken_only_while_they_make_sense(tmp_path):
    take = replace(samples.take(), rate=RATE, start=START)
    path = written(tmp_path, take)
    whole = marey.read(path)
    assert (whole.rate, whole.start) == (RATE, START)
    data = path.read_bytes()
    for text in (repr(RATE), repr(START)):
        assert data.count(text.encode()) == 1
        data = data.replace(text.encode(), text.replace(".", "?").encode())
    path.write_bytes(data)
    rounded = marey.read(path)
    # Without them stand the file's own: 32 bits of rate, and whole frames.
    assert rounded.rate == float(np.float32(RATE))
    assert rounded.start == pytest.approx(START, abs=1 / RATE)
    np.testing.assert_array_equal(rounded.points, whole.points)


def test_four_points_in_one_place_are_no_axes_of_a_segment(tmp_path):
    rng = np.random.default_rng(3)
    labels = ("PELO", "PELA", "PELL", "PELP")
    corners = rng.normal(size=(5, 1, 3)) + 0.1 * np.eye(4, 3, k=-1)
    axes = marey.Take(rate=100.0, points=corners, labels=labels)
    heap = replace(axes, points=np.repeat(corners[:, :1], 4, axis=1))
    assert marey.read(written(tmp_path, axes), computed=True).labels == labels
    assert not set(labels) & set(marey.read(tmp_path / "take.c3d").labels)
    assert marey.read(written(tmp_path, heap)).labels == labels


def test_more_points_than_the_header_counts_are_refused(tmp_path):
    count = 2**16
    take = marey.Take(
        rate=100.0,
        points=np.zeros((1, count, 3)),
        labels=tuple(f"M{i}" for i in range(count)),
    )
    with pytest.raises(marey.DataError, match="at most 65535"):
        written(tmp_path, take)
    assert list(tmp_path.iterdir()) == []
