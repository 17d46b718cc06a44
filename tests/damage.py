"""Damaged files: what disks, editors and strangers do to them, seeded."""

import numpy as np

import marey

PIECES = [b"", b"\0", b"\n", b"\t", b" ", b",", b";", b"-", b".", b":", b"#", b"="]
PIECES += [b"9" * 30, b"1e400", b"1e11", b"1e-300", b"nan", b"1_0", b"0x1", b"\xff\xff"]
PIECES += [b"[", b"]", b"{", b"}", b"(", b"<", b"/>", b"&x;", b'"', b"<!DOCTYPE a>"]
PIECES += [b"begin", b"end", b"JOINT a\n{", b"\xff\xfe", b"\x00\x06", b"\x7f", b"\x01"]


def damaged(data, rng):
    """Flip a bit, overwrite, cut out, repeat or put in bytes, one to three times."""
    for _ in range(rng.integers(1, 4)):
        at = int(len(data) * rng.random() ** 1.5)
        part = data[at : at + int(rng.integers(1, 9))]
        piece = PIECES[rng.integers(len(PIECES))]
        flipped = bytes([part[0] ^ 1 << rng.integers(8)]) + part[1:] if part else b""
        put = [flipped, piece, b"", part + part, part[::-1], part + piece]
        data = data[:at] + put[rng.integers(6)] + data[at + len(part) :]
    return data


def error_message(read, path):
    """The typed error of reading a file, "" when there is none."""
    try:
        read(path)
    except marey.MareyError as error:
        return str(error)
    return ""


def survive(read, path, count=100, seed=77):
    """Assert that damage gives a result or a typed error that prints."""
    rng = np.random.default_rng(seed)
    data = path.read_bytes()
    for _ in range(count):
        path.write_bytes(damaged(data, rng))
        assert error_message(read, path).isprintable()


def same(a, b):
    """Whether two takes, motions or skeletons hold the same under the same names."""
    if isinstance(a, marey.Skeleton):
        return a.names == b.names and np.array_equal(a.offset, b.offset)
    if isinstance(a, marey.Motion):
        return same(a.skeleton, b.skeleton) and np.array_equal(
            a.T_world_joint(), b.T_world_joint(), equal_nan=True
        )
    return (
        a.full_labels == b.full_labels
        and a.sensor_names == b.sensor_names
        and np.array_equal(a.points, b.points, equal_nan=True)
        and np.array_equal(a.T_world_sensor, b.T_world_sensor, equal_nan=True)
    )


def findings(thing):
    """What reading met; a skeleton keeps none."""
    return () if isinstance(thing, marey.Skeleton) else thing.source.findings


def assert_every_cut_is_noticed(path, read=marey.read, step=1):
    """Cut a file at every byte: an error, another finding, or nothing lost."""
    data, whole = path.read_bytes(), read(path)
    for cut in range(0, len(data), step):
        path.write_bytes(data[:cut])
        try:
            part = read(path)
        except marey.MareyError:
            continue
        noticed = findings(part) != findings(whole)
        assert noticed or same(part, whole), f"cut at byte {cut}"
