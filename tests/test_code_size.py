"""How the estimators read: tuned numbers that explain themselves, simple functions."""

import ast
import re
from pathlib import Path

import pytest

import marey
from benchmarks.tools import code_size

SOURCE = Path(marey.__file__).parent

ASSIGNED = ast.Assign | ast.AnnAssign

EFFECT = re.compile(
    r"\b(higher|lower|raised|raising|more|longer|wider|further|faster|half|decides)\b"
    r"|\bwith \d",
    re.IGNORECASE,
)
"""Words that say what a larger or smaller value would do."""


@pytest.fixture(scope="module")
def modules():
    """All modules but those that read, write, draw, generate or score."""
    return [
        code_size.read_module(path, SOURCE)
        for path in sorted(SOURCE.rglob("*.py"))
        if code_size.package_of(path.relative_to(SOURCE)) not in code_size.OUTSIDE
    ]


@pytest.fixture(scope="module")
def tuned(modules):
    """Tuned numbers, each with its module."""
    return [
        (number, module)
        for module in modules
        for number in code_size.constants_of(module)
        if number.status == "tuned"
    ]


def explanation(module, line):
    """The text under an assignment, or under those that follow it without a text."""
    nested = [n.body for n in ast.walk(module.tree) if isinstance(n, ast.ClassDef)]
    for body in (*nested, module.tree.body):
        for i, node in enumerate(body):
            if isinstance(node, ASSIGNED) and line in code_size.lines_of(node):
                rest = (n for n in body[i:] if not isinstance(n, ASSIGNED))
                text = next(rest, node)
                return (
                    text.value.value
                    if code_size.is_docstring(text)
                    else above(module, line)
                )
    return ""


def above(module, line):
    """The comment above a line of a kernel, which has no texts under its constants."""
    first = line - 1
    while first in module.prose:
        first -= 1
    return " ".join(module.prose[i] for i in range(first + 1, line))


def test_tuned_numbers_do_not_multiply(tuned):
    assert len(tuned) <= 250


def test_every_tuned_number_says_what_another_value_would_do(tuned):
    silent = {
        f"{number.path}: {number.name}"
        for number, module in tuned
        if number.place != "function"
        and not EFFECT.search(explanation(module, number.line))
    }
    assert sorted(silent) == []


def test_no_function_is_complex(modules):
    found = {
        function.name: sum(
            code_size.cognitive_complexity(part, 0) for part in function.node.body
        )
        for module in modules
        for function in code_size.functions_of(module.tree, module.path.as_posix())
        if not function.nested
    }
    assert len(found) > 1000
    assert {f: n for f, n in found.items() if n > code_size.COMPLEX} == {}
