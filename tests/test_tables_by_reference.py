"""Tables that kernels hand to each other by reference."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import sys
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.errors import LoweringError, TypingError

from marey.numerics.arrays.reference_kernel import TableType, by_reference, refer
from marey.numerics.jit import NO_ALLOCATION, njit

lean = njit(cache=False, **NO_ALLOCATION)


@by_reference
class Rows(NamedTuple):
    """A table with an array of another kind and a number."""

    number: np.ndarray
    matrix: np.ndarray
    factor: float


class Pair(NamedTuple):
    """A table that a kernel makes."""

    first: np.ndarray
    second: np.ndarray


@lean
def _sum_row(rows, i):
    return rows.factor * (rows.number[i] + rows.matrix[i].sum())


@njit(cache=False)
def sum_rows(problem, out):
    """Write the sum of every row."""
    rows, offset = problem
    for i in range(len(rows.number)):
        out[i] = _sum_row(rows, i) + offset[0]
    return rows.number


@lean
def _write_difference(a, b, out):
    pair = refer(Pair(a, b))
    for i in range(len(out)):
        out[i] = pair.first[i] - pair.second[i]


@njit(cache=False)
def write_difference(a, b, out):
    """Write a - b."""
    _write_difference(a, b, out)


@pytest.fixture
def rows(rng):
    """Three rows."""
    return Rows(rng.normal(size=3), rng.normal(size=(3, 2)), 2.0)


def test_fields_are_those_that_python_hands_over(rows):
    out, offset = np.empty(3), np.array([0.5])
    assert sum_rows((rows, offset), out) is rows.number
    np.testing.assert_allclose(out, 2 * (rows.number + rows.matrix.sum(axis=1)) + 0.5)
    (signature,) = sum_rows.signatures
    assert isinstance(signature[0][0], TableType)


def test_a_table_is_one_argument_of_a_kernel(rows):
    sum_rows((rows, np.zeros(1)), np.empty(3))
    (compiled,) = _sum_row.overloads.values()
    function = compiled.library.get_function(compiled.fndesc.mangled_name)
    _, _, table, number = function.arguments  # the first two are result and error
    assert str(table.type) == "ptr"
    assert b"noalias" in table.attributes
    assert str(number.type) == "i64"


def test_no_reference_to_an_array_is_left(rows):
    sum_rows((rows, np.zeros(1)), np.empty(3))
    before = [sys.getrefcount(rows.number), sys.getrefcount(rows.matrix)]
    for _ in range(10):
        sum_rows((rows, np.zeros(1)), np.empty(3))
    assert [sys.getrefcount(rows.number), sys.getrefcount(rows.matrix)] == before


def test_tables_of_other_types_are_compiled_apart(rows):
    out = np.empty(3)
    whole = Rows(np.array([1, 2, 3]), np.zeros((3, 2)), 1.0)
    sum_rows((whole, np.zeros(1)), out)
    np.testing.assert_array_equal(out, [1.0, 2.0, 3.0])


def test_a_field_that_is_no_number_and_one_that_is_not_there_are_refused(rows):
    with pytest.raises(TypingError):
        sum_rows((rows._replace(factor="2"), np.zeros(1)), np.empty(3))
    missing = njit(cache=False)(lambda rows: rows.missing)
    with pytest.raises(TypingError, match="missing"):
        missing(rows)


def test_a_kernel_makes_a_table_of_its_own(rng):
    a, b, out = rng.normal(size=(3, 4))
    write_difference(a, b, out)
    np.testing.assert_array_equal(out, a - b)


def test_a_kernel_that_counts_references_makes_none():
    counts = njit(cache=False)(lambda a: refer(Pair(a, a)).first[0])
    with pytest.raises(LoweringError, match="cannot make a table"):
        counts(np.zeros(2))
