"""Papers: the table of what became of them is true, and the command rebuilds them."""

import io
import json
import re
import sys
import tokenize
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import marey
from marey import papers
from marey.cli import main
from marey.papers import Effort, Experiment, plots
from marey.papers.obrien2000 import linkage
from marey.report import Table

ROOT = Path(__file__).parent.parent
SOURCE = Path(marey.__file__).parent
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")

LIST = (
    r"\d+(?:\.\d+)*(?:-\d+(?:\.\d+)*)?(?:(?:, | and )\d+(?:\.\d+)*(?:-\d+(?:\.\d+)*)?)*"
)


# --- the table ----------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    paper: str
    place: str
    functions: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def equations(self):
        return numbered("Eq", self.place)

    @property
    def stages(self):
        """The parts of marey that its functions are in: "marey.joints", ..."""
        return {stage_of(home_of(function)) for function in self.functions}


def numbered(word, text):
    """Every number after "Eq." or "Eqs." and the like, ranges written out."""
    found = set()
    for numbers in re.findall(rf"\b{word}s?\. ({LIST})", text):
        for part in re.split(r", | and ", numbers):
            first, _, last = part.partition("-")
            found.add(first)
            if last and "." not in first:
                found |= {str(n) for n in range(int(first), int(last) + 1)}
            elif last:
                found.add(last)
    return found


def quoted(cell):
    return tuple(re.findall(r"`([^`]+)`", cell))


def rows():
    paper = ""
    for line in PAGE.split("\n"):
        if line.startswith("## "):
            paper = line.removeprefix("## ").strip()
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and cells[0] not in ("in the paper", "---"):
            place, _, functions, tests = cells
            yield Row(paper, place, quoted(functions), quoted(tests))


ROWS = tuple(rows())


def resolved(dotted):
    """The module and the thing of a dotted name."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            module = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        thing = module
        for name in parts[count:]:
            thing = getattr(thing, name)
        return module, thing
    raise ModuleNotFoundError(dotted)


def home_of(function):
    module, thing = resolved(function)
    return getattr(thing, "__module__", module.__name__)


def stage_of(module):
    return ".".join(module.split(".")[:2])


def read_modules():
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(("marey", *path.relative_to(SOURCE).with_suffix("").parts))
        yield name.removesuffix(".__init__"), path.read_text(encoding="utf-8")


def comments(text):
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and "Eq" in token.string:
            yield token.string


MODULES = dict(read_modules())
COMMENTS = {
    module: tuple(comments(text)) if "# " in text and "Eq" in text else ()
    for module, text in MODULES.items()
}
TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
}
KEYS = sorted({row.paper for row in ROWS})


def test_there_is_a_section_for_every_paper_that_is_rebuilt():
    sections = {
        line[3:].strip().lower() for line in PAGE.split("\n") if line[:3] == "## "
    }
    assert set(papers.REGISTRY) <= sections


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.paper} {row.place}")
def test_what_the_table_names_exists(row):
    for function in row.functions:
        assert resolved(function)
    assert [test for test in row.tests if test.rpartition("::")[2] not in TESTS] == []


def test_every_equation_of_obrien2000_is_in_the_table():
    listed = set().union(*(row.equations for row in ROWS if row.paper == "OBrien2000"))
    assert listed == {str(number) for number in range(1, 14)}


def papers_of(module, remark):
    """The papers a remark may be about: the one it names, or those of its module."""
    text = MODULES[module]
    for where in (remark, " ".join(re.findall(r"Implements \w+", text)), text):
        named = set(re.findall(r"\b[A-Z][A-Za-z]+(?:19|20)\d\d\b", where))
        if named:
            return named
    return set(KEYS)


def test_every_equation_in_the_source_is_in_the_table():
    """Of the papers that have a section; a new section brings its own."""
    missing = []
    for module, remarks in COMMENTS.items():
        for remark in remarks:
            named = papers_of(module, remark)
            if named <= set(KEYS):
                mine = [r for r in ROWS if r.paper in named]
                near = [r for r in mine if stage_of(module) in r.stages]
                lost = numbered("Eq", remark) - set().union(
                    *(r.equations for r in near)
                )
                missing += [(module, remark, number) for number in lost]
    assert missing == []


@pytest.mark.parametrize("key", KEYS)
def test_whatever_the_source_implements_is_in_the_table(key):
    mine = [row for row in ROWS if row.paper == key]
    places = " | ".join(row.place for row in mine)
    missing = []
    for module, text in MODULES.items():
        for said in re.findall(rf"Implements {key}, ([^:;()]+?)[.:;,(][\s\n]", text):
            for word in ("Eq", "Sec"):
                lost = numbered(word, said) - numbered(word, places)
                missing += [(module, word, number) for number in lost]
    assert missing == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.paper} {row.place}")
def test_every_equation_of_the_table_is_in_the_source(row):
    if not row.functions:
        return
    said = set()
    for module, text in MODULES.items():
        if stage_of(module) in row.stages:
            for remark in COMMENTS[module]:
                said |= numbered("Eq", remark)
            for words in re.findall(rf"{row.paper}, (Eqs?\. {LIST})", text):
                said |= numbered("Eq", words)
    assert row.equations - said == set()


# --- running experiments ------------------------------------------------------------


def test_experiments_are_known_by_paper_and_say_what_they_are():
    for paper in papers.REGISTRY:
        for function in papers.experiments(paper).values():
            assert function.__doc__.split("\n")[0].endswith(".")


def test_unknown_papers_and_experiments_are_refused_before_any_work():
    with pytest.raises(marey.OptionError, match="obrien2000"):
        papers.experiments("newton1687")
    with pytest.raises(marey.OptionError, match="linkage"):
        papers.run("obrien2000", only=("linkages",))
    with pytest.raises(marey.OptionError, match="seed"):
        Effort(seed=-1)


def draw(figure):
    figure.subplots().plot([0, 1], [1, 0])


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A paper of two small experiments; the folder to write to."""

    def first(effort):
        """Say the seed."""
        effort.report("counting")
        table = Table(("number", "paper", "ours"), (("seed", "3", float(effort.seed)),))
        return Experiment(
            title="First", tables={"Seeds": table}, figures={"line": draw}
        )

    def second(effort):
        """Know nothing."""
        table = Table(("what", "value | unit"), (("lost", float("nan")),))
        return Experiment(title="Second", tables={"Lost": table}, note="Nothing known.")

    module = SimpleNamespace(EXPERIMENTS={"first": first, "second": second})
    monkeypatch.setitem(sys.modules, "small1900", module)
    monkeypatch.setattr(papers, "REGISTRY", {"small1900": "small1900"})
    monkeypatch.setattr("marey.cli.paper_output.REGISTRY", papers.REGISTRY)
    return module.EXPERIMENTS, tmp_path / "out"


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(["papers", *map(str, arguments)])
    return stop.value.code, capsys.readouterr()


@pytest.mark.usefixtures("small")
def test_experiments_run_one_by_one_as_they_are_asked_for():
    begun = []
    effort = Effort(seed=5, progress=begun.append)
    going = papers.run("small1900", effort)
    assert begun == []
    name, experiment = next(going)
    assert (name, begun) == ("first", ["first", "counting"])
    assert experiment.tables["Seeds"].rows == (("seed", "3", 5),)
    assert [name for name, _ in going] == ["second"]
    assert [name for name, _ in papers.run("small1900", only=("second",))] == ["second"]


@pytest.mark.usefixtures("small")
def test_without_a_paper_the_command_lists_what_there_is(capsys):
    code, printed = run(capsys)
    assert code == 0
    for words in ("small1900", "first", "Say the seed", "second"):
        assert words in printed.out
    listed = json.loads(run(capsys, "--json")[1].out)
    assert listed == {"small1900": ["first", "second"]}


def test_all_runs_are_made_only_when_asked_for(small, capsys):
    experiments, folder = small
    seen = []

    def noted(effort):
        """Note the effort."""
        seen.append((effort.full, effort.runs(200)))
        return experiments["first"](effort)

    experiments["second"] = noted
    for flags in ([], ["--full"]):
        run(capsys, "small1900", "--only", "second", "--out", folder, *flags)
    assert seen == [(False, 20), (True, 200)]


def test_the_command_prints_and_writes_tables_and_figures(small, capsys):
    _, folder = small
    code, printed = run(capsys, "small1900", "--seed", "7", "--out", folder)
    assert code == 0
    for words in ("First", "Seeds", "seed", "7", "Nothing known."):
        assert words in printed.out
    assert sorted(p.name for p in folder.iterdir()) == [
        "line.png",
        "tables.json",
        "tables.md",
    ]
    assert (folder / "line.png").read_bytes().startswith(b"\x89PNG")
    kept = json.loads((folder / "tables.json").read_text())
    assert kept["first"]["tables"]["Seeds"]["rows"] == [["seed", "3", 7]]
    assert kept["second"]["tables"]["Lost"]["rows"] == [["lost", None]]
    page = (folder / "tables.md").read_text()
    assert "| seed | 3 | 7 |" in page
    assert "![line](line.png)" in page
    assert r"| what | value \| unit |" in page


POINTS = {
    "paper": [(5.0, 2.0), (10.0, 1.0)],
    "bound": [(5.0, 0.2), (10.0, 0.1)],
}
LABELS = ("range of motion, °", "error, mm")
STYLES = {"paper": {"color": "red"}, "bound": {"color": "black"}}
NORM = np.abs(np.sin(np.arange(60.0))) / 100.0
CURVE = plots.Curve(np.arange(60.0), NORM, {"color": "red", "label": "ours"})
DRAWINGS = {
    "lines": plots.line_drawing(
        "Errors", {"1 mm": POINTS, "2 mm": POINTS}, LABELS, STYLES
    ),
    "lines with a legend below": plots.line_drawing(
        "Rates", {"walk": POINTS}, LABELS, STYLES, scale="linear", legend_columns=2
    ),
    "curves": plots.curves_drawing("Distance", {"white": [CURVE]}, LABELS),
    "residual": plots.residual_drawing(NORM, 60.0, "A shoulder"),
    "lengths": linkage.lengths_drawing({"white noise": np.zeros((5, 6))}),
    "dots": plots.dots_drawing(
        "People",
        {k: {"5 mm": [0.9, 1.2]} for k in ("Table 2", "Table 3")},
        LABELS,
        published={"Table 2": 1.0, "Table 3": 1.1},
    ),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_drawing_has_words_and_units_on_its_axes(name):
    figure = pytest.importorskip("matplotlib.figure").Figure(layout="constrained")
    DRAWINGS[name](figure)
    figure.savefig(io.BytesIO(), format="png")
    labelled = [
        axes for axes in figure.axes if axes.get_ylabel()
    ] or figure.get_supylabel()
    assert labelled
    assert all(axes.lines or axes.patches for axes in figure.axes)
    assert figure.get_suptitle()


@pytest.mark.parametrize("kind", ["lines", "dots"])
def test_panels_share_an_axis_that_holds_all_of_them(kind):
    """Whichever panel comes first."""
    figure = pytest.importorskip("matplotlib.figure").Figure(layout="constrained")
    high = {name: [(x, 50.0 * y) for x, y in line] for name, line in POINTS.items()}
    if kind == "lines":
        panels = {"1 mm": POINTS, "2 mm": high}
        plots.line_drawing("Errors", panels, LABELS, STYLES)(figure)
    else:
        groups = {"Table 2": {"5 mm": [0.9]}, "Table 3": {"5 mm": [90.0]}}
        plots.dots_drawing("People", groups, LABELS)(figure)
    figure.savefig(io.BytesIO(), format="png")
    for axes in figure.axes:
        low, top = axes.get_ylim()
        drawn = np.concatenate([line.get_ydata() for line in axes.lines])
        assert low <= drawn.min()
        assert drawn.max() <= top


def test_the_command_speaks_json_and_runs_what_is_chosen(small, capsys):
    _, folder = small
    code, printed = run(
        capsys, "small1900", "--only", "second", "--json", "--out", folder
    )
    assert code == 0
    assert list(json.loads(printed.out)) == ["second"]
    assert run(capsys, "small1900", "--only", "third", "--out", folder)[0] == 2
    assert run(capsys, "large1900", "--out", folder)[0] == 2


def test_without_matplotlib_tables_are_made_and_the_extra_is_named(
    small, capsys, monkeypatch
):
    _, folder = small
    monkeypatch.setattr("marey.cli.paper_output.can_draw", lambda: False)
    code, printed = run(capsys, "small1900", "--out", folder)
    assert code == 0
    assert "Seeds" in printed.out
    assert "pip install 'marey[plots]'" in " ".join(printed.err.split())
    assert not (folder / "line.png").exists()
    code, printed = run(capsys, "small1900", "--figures", "--out", folder)
    assert code == 2
    assert 'pip install "marey[plots]"' in " ".join(printed.err.split())
    code, printed = run(capsys, "small1900", "--no-figures", "--out", folder)
    assert (code, printed.err) == (0, "")


def test_interrupting_keeps_what_is_written(small, capsys):
    experiments, folder = small

    def stopped(effort):
        """Be stopped."""
        raise KeyboardInterrupt

    experiments["second"] = stopped
    code, _ = run(capsys, "small1900", "--out", folder)
    assert code == 130
    assert list(json.loads((folder / "tables.json").read_text())) == ["first"]
    assert sorted(p.name for p in folder.iterdir()) == [
        "line.png",
        "tables.json",
        "tables.md",
    ]


@pytest.mark.usefixtures("small")
def test_a_folder_that_cannot_be_made_is_named(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    code, printed = run(capsys, "small1900", "--out", tmp_path / "file" / "in")
    assert code == 2
    assert "cannot be made" in " ".join(printed.err.split())
