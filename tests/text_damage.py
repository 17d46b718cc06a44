"""Seeded damage to text files: what disks, editors and strangers do to them."""

import numpy as np

PIECES = [b"", b"\0", b"\n", b"\t", b" ", b"-", b"9" * 30, b"1e400", b"nan", b"{", b"}"]
PIECES += [
    b"begin",
    b"end",
    b"\xff\xfe",
    b":",
    b"#",
    b"0x1",
    b"1_0",
    b"JOINT a\n{",
    b"(",
]


def damaged(data, rng):
    """Return data with one to three pieces cut out, repeated, moved or put in."""
    for _ in range(rng.integers(1, 4)):
        start = int(rng.integers(len(data) + 1))
        stop = start + int(rng.integers(1, 12))
        part = data[start:stop]
        piece = PIECES[rng.integers(len(PIECES))]
        put = [piece, part + part, part[::-1], part + piece][rng.integers(4)]
        data = data[:start] + put + data[stop:]
    return data


def survives(read, error, path, data, rng, count):
    """Assert that damage gives a result or a typed, printable error, never a crash."""
    for _ in range(count):
        path.write_bytes(damaged(data, rng))
        said = ""
        try:
            read(path)
        except error as refused:
            said = str(refused)
        assert said.isprintable()


def cases(request):
    """How many damaged files to try."""
    return 2000 if request.config.getoption("--slow") else 300


def rng():
    return np.random.default_rng(414)
