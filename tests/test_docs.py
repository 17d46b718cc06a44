"""What the documentation says is what the code does."""

import ast
import importlib
import re
import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import run_pages
from required import REQUIRED
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

import marey

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*/*.py"))
DRAWN = re.compile(r" = (marey\.plot\.|Figure\()")


@pytest.fixture
def reader(tmp_path, monkeypatch, unchecked):
    """A reader who works in an empty folder; figures are closed at the end."""
    monkeypatch.chdir(tmp_path)
    yield
    plt.close("all")


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs(path):
    runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_draws_and_its_notebook_shows_it(path):
    """A notebook shows the last value of a cell, so a cell that draws ends in it."""
    figures = 0
    for block in split_code_and_text_blocks(str(path))[1]:
        body = ast.parse(block.content).body if block.type == "code" else []
        lines = [ast.unparse(line) for line in body]
        drawn = [line for line in lines if DRAWN.search(line)]
        names = [line.partition(" = ")[0] for line in drawn]
        assert names in ([], lines[-1:])
        figures += len(names)
    assert figures > 0


NOT_RUN = {"live.md"}
"""Pages, below docs/, whose snippets wait for streams of other programs."""


def pages():
    """Pages with snippets of Python, as paths below docs/."""
    found = (
        path.relative_to(ROOT / "docs").as_posix()
        for path in (ROOT / "docs").rglob("*.md")
        if "```python" in path.read_text(encoding="utf-8")
    )
    return sorted(page for page in found if page not in NOT_RUN)


def draws_offscreen():
    """Whether MuJoCo can render without a display here."""
    code = "import mujoco; mujoco.GLContext(8, 8)"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


DRAWS = "tutorials/roboticist.md"
"""Page that renders with MuJoCo, which chooses a library when it is first imported."""


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("page", [page for page in pages() if page != DRAWS])
def test_every_snippet_runs_and_prints_what_its_page_shows(page):
    run_pages.run_page(ROOT / "docs" / page)


def test_the_page_that_renders_runs(tmp_path, monkeypatch):
    if sys.platform == "linux":
        monkeypatch.setenv("MUJOCO_GL", "egl")
    if not (REQUIRED or draws_offscreen()):
        pytest.skip("no OpenGL to draw with")
    done = subprocess.run(
        [sys.executable, "-W", "error", run_pages.__file__, ROOT / "docs" / DRAWS],
        cwd=tmp_path,
        check=False,
        timeout=600,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.usefixtures("reader")
def test_the_readme_example_runs():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    take = marey.synth.human(seed=0).record(motion="walk", seconds=2.0)
    marey.write(take, "walk.c3d")
    marey.write(take.truth.motions[0], "walk.bvh")
    assert "mm (stated: POINT:UNITS)" in run_pages.run_python(code, {})


def test_the_table_of_formats_is_complete():
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    rows = {
        cells[1]: cells
        for line in text.split("\n")
        if line.startswith("| `")
        and len(cells := [c.strip(" `") for c in line.split("|")]) > 5
    }
    assert list(rows) == [fmt.name for fmt in marey.formats()]
    for fmt in marey.formats():
        _, _, suffixes, reads, writes, loses, *_ = rows[fmt.name]
        assert suffixes == ", ".join(fmt.suffixes)
        assert reads == (held(fmt, "read") or "-")
        assert writes == (held(fmt, "write") or "-")
        assert loses == (", ".join(fmt.loses) or "-")


def held(fmt, verb):
    nouns = ("take", "motion", "skeleton", "solution")
    return ", ".join(n for n in nouns if getattr(fmt, f"{verb}_{n}", None))


def addresses():
    """Every address that the API page prints, members of modules included."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    directive = r"^\.\. auto(function|class|module):: (\S+)\n(?:   :members:(.*))?"
    for kind, name, members in re.findall(directive, text, re.MULTILINE):
        yield name
        if kind == "module":
            yield from (f"{name}.{m.strip()}" for m in members.split(",") if m.strip())


@pytest.mark.parametrize("address", sorted(set(addresses())))
def test_every_address_of_the_api_page_is_there(address):
    module, _, names = address.partition(".")
    found, path = importlib.import_module(module), module
    for name in names.split("."):
        path = f"{path}.{name}"
        if not hasattr(found, name):
            importlib.import_module(path)
        found = getattr(found, name)


def test_every_public_name_stands_in_the_api_page():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    hidden = {"io", "geometry", "synth", "metrics"}
    errors = {name for name in marey.__all__ if name.endswith("Error")}
    missing = [n for n in marey.__all__ if n not in hidden | errors and n not in text]
    assert missing == []


PAGE = re.compile(r"[\w/]+\.md\b")


def test_every_page_that_the_sources_name_is_there():
    written = {"tables.md"}  # by `marey papers`
    folders = (ROOT, ROOT / "docs")
    missing = {
        f"{path.relative_to(ROOT)}: {page}"
        for folder in ("src", "benchmarks", "tests", "interop", "examples")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not {"node_modules", "site-packages"} & set(path.parts)
        for page in PAGE.findall(path.read_text(encoding="utf-8"))
        if page not in written and not any((f / page).exists() for f in folders)
    }
    assert sorted(missing) == []
