"""The glossary: one word for one idea in every public name."""

import ast
import re
from pathlib import Path

import pytest

import marey

SOURCE = Path(marey.__file__).parent
GLOSSARY = SOURCE.parents[1] / "docs" / "glossary.md"
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def table():
    """Word and words not used for it, of every row."""
    rows = re.findall(r"^\| (.+?) \| .+? \| ?(.*?) ?\|$", GLOSSARY.read_text(), re.M)
    return [
        (word, {w.strip() for w in unused.split(",") if w.strip()})
        for word, unused in rows
        if word not in ("word", "---")
    ]


OPTIONS = {
    *("turn_noise", "soft_tissue_turn", "slip_turn", "knee_shift", "settle"),
    *("turn_rate", "CIRCLE_TURN_RATE", "hanging_arm_angles"),
}
"""Options that users write, and words of gait: a walker turns, an arm hangs."""

UNUSED = {word for _, unused in table() for word in unused if word != "not"}


ORDINARY = {
    *("company", "doubt", "doubts", "exchange", "hang", "hanging", "odd", "receiver"),
    *("rests", "settle", "shift", "somebody", "spot", "turn", "turns", "way"),
}
"""Words that are none of ours in names but ordinary English in a sentence."""


def public_names(path):
    """Modules, functions, classes, methods, fields and constants without underscore."""
    yield path.parent.name if path.stem == "__init__" else path.stem
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.Module | ast.ClassDef):
            for one in node.body:
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                    yield one.target.id
                elif isinstance(one, ast.Assign):
                    yield from (t.id for t in one.targets if isinstance(t, ast.Name))


def words(name):
    return {word.lower() for word in WORD.findall(name)}


def test_the_glossary_has_rows():
    assert len(table()) > 40
    assert {"told", "mate", "wild", "settled"} <= UNUSED


@pytest.mark.parametrize(
    ("name", "found"), [("find_mates", {"mates"}), ("swap", set())]
)
def test_words_of_names(name, found):
    assert words(name) & UNUSED == found


def test_no_word_is_used_and_unused():
    used = {w.strip() for word, _ in table() for w in word.split(",")}
    assert not used & UNUSED


def test_codes_are_words_of_the_field():
    """Codes of findings, and whatever else is written with hyphens."""
    found = {
        f"{path.relative_to(SOURCE)}: {node.value}"
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"[a-z]+(-[a-z]+)+", node.value)
        and words(node.value) & (UNUSED | {"exchanged"})
    }
    assert sorted(found) == []


def test_sentences_have_words_of_the_field():
    """In the sources, kernels aside, and in the pages, their examples aside."""
    unused = re.compile(rf"\b({'|'.join(sorted(UNUSED - ORDINARY))})\b(?!\()")
    pages = (p for p in GLOSSARY.parents[1].glob("*.md"))
    texts = {
        path: CODE.sub("", path.read_text(encoding="utf-8"))
        for path in (*pages, *GLOSSARY.parent.rglob("*.md"), *SOURCE.rglob("*.py"))
        if path != GLOSSARY and not path.stem.endswith("_kernel")
    }
    found = {
        f"{path.name}: {word}" for path in texts for word in unused.findall(texts[path])
    }
    assert sorted(found) == []


def test_public_names_are_words_of_the_field():
    found = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        for name in public_names(path)
        if not name.startswith("_") and name not in OPTIONS and words(name) & UNUSED
    }
    assert sorted(found) == []
