"""Text to numbers: bit for bit what Python's float gives, and nothing it should not."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey.io.file import File
from marey.io.text.numbers import (
    BLANK,
    NAN,
    NUMBER,
    WORD,
    parse_number,
    parse_stream,
    parse_table,
)

FILE = File(Path("table.txt"), "table")
DECIMAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
quick = settings(deadline=None, max_examples=300)

digits = st.text("0123456789", min_size=0, max_size=25)
decimals = st.builds(
    lambda sign, whole, point, part, e, power: (
        f"{sign}{whole}{point}{part if point else ''}{f'{e}{power}' if e else ''}"
    ),
    st.sampled_from(["", "-", "+"]),
    digits,
    st.sampled_from(["", "."]),
    digits,
    st.sampled_from(["", "e", "E", "e-", "e+"]),
    st.integers(0, 330),
)
anything = st.text(
    st.characters(codec="ascii", exclude_characters="\n\t"), max_size=8
) | st.sampled_from(
    [
        "1 2",
        "\x00",
        "\x1f",
        "nan",
        "NaN",
        "NAN",
        "-nan",
        "inf",
        "-Infinity",
        "1_0",
        "0x1p3",
        "0x10",
        "1e",
        ".",
        "1.5.2",
        "--1",
        "1-",
        "e5",
        "1d5",
        "1,5",
        "٣",
        "1e999",
        "-0",
    ]
)


def naive_cell(cell):
    """Status and value of one cell, by regular expression and float."""
    text = cell.strip(b" \t\r\v\f")
    if not text:
        return BLANK, np.nan
    if DECIMAL.fullmatch(text) and np.isfinite(float(text)):
        return NUMBER, float(text)
    return (NAN if text.lower() == b"nan" else WORD), np.nan


def naive_table(data, columns, delimiter):
    rows, cells = [], []
    for line in data.split(b"\n"):
        if not line.strip(b" \t\r\v\f"):
            continue
        parts = line.split() if delimiter == " " else line.split(delimiter.encode())
        row = [naive_cell(part) for part in parts]
        filled = [i for i, (status, _) in enumerate(row) if status != BLANK]
        cells.append(filled[-1] + 1 if filled else 0)
        row += [(BLANK, np.nan)] * columns
        rows.append(row[:columns])
    return rows, cells


def assert_as_naive(data, columns, delimiter):
    table = parse_table(FILE, data, columns=columns, delimiter=delimiter)
    rows, cells = naive_table(data, columns, delimiter)
    assert table.cells.tolist() == cells
    assert table.status.tolist() == [[status for status, _ in row] for row in rows]
    found, wanted = table.values, np.array([[v for _, v in row] for row in rows])
    wanted = wanted.reshape(found.shape)
    np.testing.assert_array_equal(found.view(np.int64), wanted.view(np.int64))


@given(st.lists(decimals, min_size=1, max_size=20))
@quick
def test_every_decimal_is_the_float_of_python_to_the_last_bit(words):
    assert_as_naive("\t".join(words).encode(), len(words), "\t")


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
@quick
def test_every_float_survives_its_own_spelling(values):
    data = " ".join(map(repr, values)).encode()
    table = parse_table(FILE, data, columns=len(values), delimiter=" ")
    assert table.values[0].tolist() == values
    assert parse_stream(data).tolist() == values


@given(st.lists(st.lists(anything, max_size=6), max_size=5))
@pytest.mark.parametrize("delimiter", ["\t", " ", ","])
@quick
def test_any_table_is_read_as_the_naive_version_reads_it(delimiter, rows):
    data = "\n".join(delimiter.join(row) for row in rows).encode()
    assert_as_naive(data, 4, delimiter)


@pytest.mark.parametrize("seed", range(5))
def test_long_mantissas_round_as_python_rounds(seed):
    """Seventeen and more digits, where a wrong last bit would hide."""
    rng = np.random.default_rng(seed)
    mantissas = rng.integers(2**53, 10**18, size=4000)
    positions = rng.integers(0, 19, size=4000)
    words = [
        f"{str(m)[:-p]}.{str(m)[-p:]}" if p else str(m)
        for m, p in zip(mantissas, positions, strict=True)
    ]
    halfway = [f"{2**53 + 2 * k + 1}e{p}" for k in range(50) for p in (0, 1, -1, 5)]
    assert_as_naive(" ".join(words + halfway).encode(), len(words) + 200, " ")


@pytest.mark.parametrize(
    "word", ["1_0", "0x1p3", "inf", "nan", "", "1e", "1 2", "1e999"]
)
def test_a_word_is_no_number(word):
    assert parse_number(word) is None
    assert word in ("", "1 2") or parse_stream(word.encode()) is None


def test_a_row_knows_its_line():
    table = parse_table(
        FILE, b"1 2\n\n \n3 x\n4", columns=2, delimiter=" ", first_line=7
    )
    assert table.line.tolist() == [7, 10, 11]
    assert np.argwhere(table.status == WORD)[0].tolist() == [1, 1]
    assert np.argwhere(table.status == BLANK)[0].tolist() == [2, 1]


def test_a_stream_runs_over_the_line_ends():
    assert parse_stream(b"1 2\n\t3e0 12345678901234567890\n").tolist() == [
        1.0, 2.0, 3.0, 12345678901234567890.0,
    ]  # fmt: skip


def test_a_table_that_would_outgrow_its_text_is_refused():
    with pytest.raises(marey.FormatError, match=r"lines of 1000000 cells"):
        parse_table(FILE, b"1\n" * 100, columns=1_000_000, delimiter="\t")
