"""TRB: files are written here word by word from the layout of Motion Analysis."""

import struct
import tracemalloc

import numpy as np
import pytest
from damage import survive

import marey

LABELS = ("Top.Head", "C7", "R.Knee.Medial", "é☃")


def item(tag, body):
    """A header item: tag, length in words, content padded with blanks."""
    body += b" " * (-len(body) % 4)
    return struct.pack("<HH", tag, len(body) // 4) + body


def header(labels, rate=100.0, links=(), numbers=None):
    numbers = numbers or range(1, len(labels) + 1)
    items = [item(0x0101, b"\1\1\1\1"), item(0x0103, struct.pack("<f", rate))]
    items += [
        item(0x010C, struct.pack("<HH", n, 7) + label.encode() + b"\0")
        for n, label in zip(numbers, labels, strict=True)
    ]
    items += [
        item(0x010D, struct.pack("<HHHH", i, a, b, 7) + b"Link\0")
        for i, (a, b) in enumerate(links)
    ]
    end = 12 + sum(map(len, items))
    return struct.pack("<IIHH", 0, 2**32 - 1, end // 4 >> 16, end // 4 & 0xFFFF) + (
        b"".join(items)
    )


def frame(number, seen):
    """A frame record: number and positions of the markers seen."""
    records = b"".join(
        struct.pack("<HH3fff", n, 0, *position, 0.5, 0.0) for n, position in seen
    )
    words = 3 + len(records) // 4
    return struct.pack("<IHHHH", 0, 0x0600, number % 65536, words, 0) + records


def frames(points, first=1, numbers=None):
    numbers = numbers or range(1, points.shape[1] + 1)
    for i, row in enumerate(points):
        seen = [(n, p) for n, p in zip(numbers, row, strict=True) if p[0] == p[0]]
        yield frame(first + i, seen)


def saved(folder, *parts):
    path = folder / "take.trb"
    path.write_bytes(b"".join(parts))
    return path


@pytest.fixture
def points(rng):
    points = rng.normal(scale=500.0, size=(5, len(LABELS), 3)).astype(np.float32)
    points[1, 2] = points[3] = np.nan
    return points.astype(float)


def codes(thing):
    return [finding.code for finding in thing.findings]


def read(path):
    """The take in the unit and axes of the file."""
    return marey.read(path, unit="m", up="z")


def test_everything_is_kept_to_the_bit(points, tmp_path):
    path = saved(tmp_path, header(LABELS, 120.0, [(1, 2), (4, 3)]), *frames(points, 11))
    take = read(path)
    np.testing.assert_array_equal(take.points, points)
    assert take.labels == LABELS
    links = ("Link: Top.Head - C7", "Link: é☃ - R.Knee.Medial")
    assert take.source.parameters["links"] == links
    assert (take.rate, take.start) == (120.0, 10 / 120.0)
    assert codes(take.source) == []


@pytest.mark.parametrize("up", ["x", "y", "z", "-x", "-y", "-z"])
@pytest.mark.parametrize(("unit", "metres"), [("mm", 1e-3), ("in", 0.0254)])
def test_a_take_is_in_metres_and_upright(points, unit, metres, up, tmp_path):
    path = saved(tmp_path, header(LABELS), *frames(points, 51))
    take = marey.read(path, unit=unit, up=up)
    R = marey.io.units_axes.rotation_to_z_up(up)
    np.testing.assert_allclose(take.points, metres * points @ R.T, atol=1e-12)
    assert (take.rate, take.start) == (100.0, 0.5)
    assert str(take.source.rate) == "100 (stated: item 0x0103)"


def test_what_the_file_does_not_state_is_assumed_and_said(points, tmp_path):
    take = marey.read(saved(tmp_path, header(LABELS, np.nan), *frames(points)))
    assert codes(take.source) == ["unit-assumed", "up-assumed", "rate-assumed"]
    facts = [take.source.unit, take.source.up, take.source.rate]
    assert [(f.value, f.how) for f in facts] == [
        ("mm", "assumed"),
        ("z", "assumed"),
        ("100", "assumed"),
    ]


def test_order_in_the_file_does_not_matter(points, tmp_path, rng):
    whole = read(saved(tmp_path, header(LABELS), *frames(points)))
    numbers = [9, 2, 700, 65535]
    shuffled = [
        frame(i + 1, [(numbers[k], row[k]) for k in rng.permutation(4)])
        for i, row in enumerate(np.nan_to_num(points, nan=np.inf))
    ]
    other = read(saved(tmp_path, header(LABELS, numbers=numbers), *shuffled))
    np.testing.assert_array_equal(other.points, whole.points)
    assert other.labels == whole.labels


def test_frames_that_are_not_there_are_gaps(points, tmp_path):
    records = list(frames(points))
    take = read(saved(tmp_path, header(LABELS), *records[:2], *records[4:]))
    points[2:4] = np.nan
    np.testing.assert_array_equal(take.points, points)
    (finding,) = take.source.findings
    assert finding.code == "frames-missing"
    assert finding.message.startswith("frames declared 5 by their numbers, present 3")


def test_frame_numbers_go_on_after_sixteen_bits(points, tmp_path):
    take = read(saved(tmp_path, header(LABELS), *frames(points, 65534)))
    np.testing.assert_array_equal(take.points, points)
    assert take.start == pytest.approx(655.33)


def test_markers_without_a_name_are_left_out_and_counted(points, tmp_path):
    take = read(saved(tmp_path, header(LABELS[:3]), *frames(points)))
    np.testing.assert_array_equal(take.points, points[:, :3])
    (finding,) = take.source.findings
    assert (finding.code, finding.value) == ("points-unnamed", 4.0)


def test_repeated_names_are_told_apart(points, tmp_path):
    take = read(saved(tmp_path, header(("A", "A", "B", "A")), *frames(points)))
    assert take.labels == ("A", "A_2", "B", "A_3")
    assert codes(take.source) == ["labels-repeated"]


def test_every_cut_is_noticed_unless_it_falls_between_frames(points, tmp_path):
    head, records = header(LABELS), list(frames(points))
    path = saved(tmp_path, head, *records)
    data = path.read_bytes()
    ends = len(head) + np.cumsum([len(record) for record in records])
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        whole = int((ends <= cut).sum())
        if whole == 0:
            with pytest.raises(marey.FormatError):
                read(path)
            continue
        take = read(path)
        np.testing.assert_array_equal(take.points, points[:whole])
        assert codes(take.source) == ([] if cut in ends else ["frames-missing"])


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda d: d[:10], "a header"),
        (lambda d: d[:8] + b"\0\0\0\0" + d[12:], "where the frames begin"),
        (lambda d: d[:8] + b"\xff\xff\xff\xff" + d[12:], "where the frames begin"),
        (lambda d: d.replace(b"\x0c\1", b"\x0d\1"), "names of markers"),
        (lambda d: d[:14] + b"\xff\xff" + d[16:], "an item that ends"),
        (lambda d: d.replace(b"\0\6", b"\0\7", 1), "tag 0x0700"),
        (lambda d: d.replace(b"\0\6\2\0", b"\0\6\1\0"), "a frame after 1"),
    ],
)
def test_a_broken_file_is_refused_by_what_is_wrong(damage, says, points, tmp_path):
    data = header(LABELS) + b"".join(frames(points))
    with pytest.raises(marey.FormatError, match=says):
        read(saved(tmp_path, damage(data)))


def test_a_small_file_cannot_ask_for_much_memory(tmp_path):
    head = header([str(n) for n in range(1, 2001)])
    empty = [frame(n, []) for n in range(10_000)]
    path = saved(tmp_path, head, *empty)
    tracemalloc.start()
    with pytest.raises(marey.FormatError, match="frames that fill the file"):
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 * 2**20


def test_a_jump_of_numbers_cannot_ask_for_much_memory(points, tmp_path):
    labels = [str(n) for n in range(1, 65)]
    jump = [frame(1, []), frame(65535, [])]
    with pytest.raises(marey.FormatError, match="65535 frames of 64 markers"):
        read(saved(tmp_path, header(labels), *jump))


def test_damaged_files_give_a_typed_error_or_a_take(points, tmp_path, request):
    path = saved(tmp_path, header(LABELS), *frames(points))
    survive(marey.read, path)
