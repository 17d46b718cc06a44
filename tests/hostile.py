"""Damaged files: bytes changed, pieces put in, ends cut off."""

import numpy as np

import marey

PIECES = [b"", b"\0", b"\n", b"\t", b" ", b"-", b".", b"9" * 30, b"1e400", b"nan"]
PIECES += [b"1_0", b"0x1", b"#", b"[", b"]", b"<", b"/>", b"&amp;", b"&x;", b'"']
PIECES += [b"<!DOCTYPE a>", b"\xff\xff", b"\xff\xfe", b"\x00\x06", b"1e11", b"1e-300"]


def cases(request):
    """How many damaged files to try."""
    return 2000 if request.config.getoption("--slow") else 300


def survive(read, path, count):
    """Assert that damage gives a result or a typed error that prints."""
    rng = np.random.default_rng(77)
    data = path.read_bytes()
    for _ in range(count):
        path.write_bytes(damaged(data, rng))
        assert said(read, path).isprintable()


def said(read, path):
    """The typed error of reading a file, "" when there is none."""
    try:
        read(path)
    except marey.MareyError as error:
        return str(error)
    return ""


def damaged(data, rng):
    """One to three times: flip a bit, overwrite, cut out, repeat or put in bytes."""
    for _ in range(rng.integers(1, 4)):
        at = int(len(data) * rng.random() ** 1.5)
        part = data[at : at + int(rng.integers(1, 9))]
        piece = PIECES[rng.integers(len(PIECES))]
        flipped = bytes([part[0] ^ 1 << rng.integers(8)]) + part[1:] if part else b""
        put = [flipped, piece, b"", part + part, part + piece][rng.integers(5)]
        data = data[:at] + put + data[at + len(part) :]
    return data


def same(a, b):
    """Whether two takes hold the same values under the same names."""
    return (
        a.full_labels == b.full_labels
        and a.sensor_names == b.sensor_names
        and np.array_equal(a.points, b.points, equal_nan=True)
        and np.array_equal(a.T_world_sensor, b.T_world_sensor, equal_nan=True)
    )
