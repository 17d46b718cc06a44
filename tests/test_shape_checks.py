"""Tests see wrong shapes and types: in the first calls, then in some, or in all."""

import ast
import subprocess
import sys
from collections.abc import Iterator

import jaxtyping
import numpy as np
import pytest
import shape_checks
from beartype import beartype
from jaxtyping import Float, TypeCheckError
from shape_checks import FIRST, THEN, Turn, check_some_calls

from marey.numerics import geometry

Array = Float[np.ndarray, "n m"]
GOOD, WRONG = np.zeros((2, 3)), np.zeros((3, 2))


@pytest.fixture
def add():
    def add(a: Array, b: "Array", note: "Gone" = "") -> Array:  # type: ignore[name-defined]
        total: Array = a + b.reshape(a.shape)
        return total

    return check_some_calls(add, typechecker=beartype)


def refusals(function, *arguments, calls):
    """Which of many calls are refused."""
    refused = []
    for call in range(1, calls + 1):
        try:
            function(*arguments)
        except TypeCheckError:
            refused.append(call)
    return refused


def test_the_package_is_checked():
    with pytest.raises(TypeCheckError):
        geometry.quat_multiply(np.zeros((2, 3)), np.zeros((2, 4)))


def test_first_calls_of_each_test_are_checked_and_then_some(add, monkeypatch):
    expected = [*range(1, FIRST + 1), THEN, 2 * THEN]
    assert refusals(add, GOOD, WRONG, calls=2 * THEN) == expected
    monkeypatch.setattr(Turn, "number", Turn.number + 1)
    assert refusals(add, GOOD, WRONG, calls=1) == [1]


def test_every_call_is_checked_when_asked_for(add, monkeypatch):
    monkeypatch.setattr(Turn, "every_call", True)
    assert len(refusals(add, GOOD, WRONG, calls=3 * FIRST)) == 3 * FIRST


def test_no_call_is_checked_as_users_call(add, unchecked):
    assert refusals(add, GOOD, WRONG, calls=3 * FIRST) == []


def test_axes_have_one_size_in_one_call_and_another_in_the_next(add):
    assert add(GOOD, GOOD).shape == GOOD.shape
    assert add(WRONG, WRONG, note="of another type").shape == WRONG.shape


def test_axes_of_a_call_inside_are_its_own(add):
    def add_transposed(a: Array) -> Array:
        total: Array = add(a.T, a.T).T
        return total

    outer = check_some_calls(add_transposed, typechecker=beartype)
    for _ in range(THEN):
        assert outer(GOOD).shape == GOOD.shape


def test_axes_of_a_generator_are_its_own(monkeypatch):
    monkeypatch.setattr(Turn, "every_call", True)

    def rows(a: Array) -> Iterator[Float[np.ndarray, " m"]]:
        yield from a

    rows = check_some_calls(rows, typechecker=beartype)

    def sums(a: Array, b: Array) -> Float[np.ndarray, " n"]:
        return np.array([*map(np.sum, rows(a.T)), *map(np.sum, rows(b[:1]))][: len(a)])

    sums = check_some_calls(sums, typechecker=beartype)
    assert sums(GOOD, GOOD).tolist() == [0.0, 0.0]
    with pytest.raises(jaxtyping.TypeCheckError):
        rows(GOOD[0])


def test_compiled_functions_are_left_alone():
    names = [
        ast.parse(text, mode="eval").body for text in ("njit(cache=True)", "cache")
    ]
    assert [shape_checks.is_compiler(name) for name in names] == [True, False]


TYPES_ALONE = """
import sys
import numpy as np
from marey.numerics import Array, Float, Int
assert "jaxtyping" not in sys.modules
points = Float[Array, "frame 3"]
assert isinstance(np.zeros((2, 3)), points)
assert isinstance(None, points | None)
assert not isinstance(np.zeros((2, 4)), points)
assert not isinstance(np.zeros((2, 3)), Int[Array, "frame 3"])
assert "jaxtyping" in sys.modules
import jaxtyping
assert points.__name__ == jaxtyping.Float[Array, "frame 3"].__name__
"""


def test_types_of_arrays_import_jaxtyping_when_they_check():
    run = subprocess.run(
        [sys.executable, "-c", TYPES_ALONE], capture_output=True, text=True
    )
    assert (run.stderr, run.returncode) == ("", 0)
