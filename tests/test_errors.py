import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import marey
from marey.errors import printable

ERRORS = [
    marey.MareyError("words"),
    marey.FormatError("walk.c3d", 12, expected="a real", found="a word", format="c3d"),
    marey.DataError("joints", found=1, needed=2),
    marey.OptionError("rate", found=-1.0, needed="above 0"),
    marey.OutputError("walk.bvh: not written, disk full"),
    marey.MissingExtraError("matplotlib", "plots"),
    marey.StreamError("natnet", 12, expected="a real", found="the end"),
]
KINDS = [type(error).__name__ for error in ERRORS]
NASTY = "\x1b[31mred\x1b[0m\0\r\n\u202egnp.exe\x7f\ud800<script>alert(1)</script>"


def nasty_errors():
    return [
        marey.MareyError(NASTY),
        marey.FormatError(NASTY, expected=NASTY, found=NASTY),
        marey.DataError(NASTY, found=NASTY, needed=NASTY),
        marey.OptionError("name", found=NASTY, needed=NASTY),
        marey.OutputError(f"{NASTY}: not written"),
        marey.StreamError(NASTY, expected=NASTY, found=NASTY),
    ]


@pytest.mark.parametrize("error", ERRORS, ids=KINDS)
def test_every_error_is_a_marey_error_and_prints_one_line(error):
    assert isinstance(error, marey.MareyError)
    assert str(error)
    assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (marey.DataError, ValueError),
        (marey.OptionError, ValueError),
        (marey.OutputError, OSError),
        (marey.MissingExtraError, ImportError),
    ],
)
def test_errors_are_also_what_python_calls_them(kind, builtin):
    assert issubclass(kind, builtin)


@pytest.mark.parametrize("error", ERRORS, ids=KINDS)
def test_errors_come_whole_out_of_another_process(error):
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


@pytest.mark.parametrize("error", nasty_errors(), ids=lambda e: type(e).__name__)
def test_names_from_files_stay_data_in_messages(error):
    assert str(error).isprintable()
    assert r"\x1b[31mred" in str(error)
    assert "<script>" in str(error)


def test_the_untouched_value_stays_in_the_error():
    error = marey.FormatError("walk\x1b.c3d", found=NASTY, expected="a name")
    assert (error.path, error.found) == ("walk\x1b.c3d", NASTY)
    assert marey.DataError("name", found=NASTY, needed=2).found == NASTY


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ERRORS[1], "walk.c3d (c3d), byte 12: expected a real, found a word"),
        (
            marey.FormatError(
                "a.bvh", 3, expected="JOINT", found="JOIN", counted="line"
            ),
            "a.bvh, line 3: expected JOINT, found JOIN",
        ),
        (
            marey.FormatError("a.bvh", expected="a file", found="nothing"),
            "a.bvh: expected a file, found nothing",
        ),
        (ERRORS[2], "joints: found 1, need 2"),
        (ERRORS[3], "rate: found -1.0, need above 0"),
        (marey.OptionError("up", found="w", needed="x"), "up: found 'w', need x"),
        (
            ERRORS[5],
            'this needs matplotlib, which is not installed: pip install "marey[plots]"',
        ),
    ],
)
def test_messages_say_what_found_and_needed(error, message):
    assert str(error) == message


def test_a_long_list_does_not_push_the_need_out_of_the_message():
    error = marey.DataError("names", found=["name"] * 10_000, needed="one name")
    assert str(error).endswith("…, need one name")
    assert len(str(error)) < 600


@given(text=st.text(), limit=st.integers(1, 50))
def test_printable_is_printable_and_never_longer_than_the_limit(text, limit):
    out = printable(text, limit)
    assert out.isprintable()
    assert len(out) <= limit
    assert printable(out, limit) == out
    if text.isprintable() and len(text) <= limit:
        assert out == text


def test_printable_shows_what_it_hides():
    assert printable("a\x1b[31m\0b") == r"a\x1b[31m\x00b"
    assert printable("x" * 600) == "x" * 499 + "…"
