"""Tasks: one file each, with a docstring that says what is measured.

A task is a module of one of the folders with a function `measure(setting)` that yields
rows. It is found by its file alone, without an import, so that the list is there even
where a task cannot run.
"""

import ast
import fnmatch
import importlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

ROOT = Path(__file__).parents[1]
T = TypeVar("T")
LIMIT_S = 1800.0
"""Seconds after which a task is stopped, unless its file says otherwise."""

LIMIT_MIB = 12_000
"""MiB of address space of a task, unless its file says otherwise."""

FOLDERS = ("accuracy", "recordings", "speed", "scale", "peers")


class Spread(NamedTuple):
    """The median of repeated measurements, and their quartiles."""

    median: float
    low: float
    high: float


Figure = float | Spread
"""A figure of a row; its unit stands in brackets in its name."""


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one case, or the reason why there are none."""

    case: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    skipped: str = ""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Row":
        """Return the row that `to_json` made."""
        figures: dict[str, Figure] = {
            name: Spread(*map(read_number, one))
            if isinstance(one, list)
            else read_number(one)
            for name, one in value.get("figures", {}).items()
        }
        return cls(value["case"], figures, value.get("skipped", ""))

    def to_json(self) -> dict[str, Any]:
        """Return the row in the types of JSON."""
        figures = {name: round_figure(one) for name, one in self.figures.items()}
        row: dict[str, Any] = {"case": self.case, "figures": figures}
        return row | ({"skipped": self.skipped} if self.skipped else {})


def round_figure(value: Figure) -> float | list[float | None] | None:
    """Return a figure in the types of JSON, with five digits."""
    if isinstance(value, Spread):
        return [round_number(one) for one in value]
    return round_number(value)


def round_number(value: float) -> float | None:
    """Return a number with five digits; None for what JSON has no number for."""
    return float(f"{float(value):.5g}") if math.isfinite(value) else None


def read_number(value: float | None) -> float:
    """Return the number that `round_number` made."""
    return float("nan") if value is None else float(value)


def with_means(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows of people, and after those of a setting the means of their figures.

    Cases of one setting are equal up to the number of the person.
    """
    for setting, some in groupby(rows, lambda row: row.case.partition(", person")[0]):
        group = list(some)
        yield from group
        known = [row.figures for row in group if row.figures]
        if len(known) > 1:
            figures = {name: mean_of([one[name] for one in known]) for name in known[0]}
            yield Row(f"{setting}, mean", figures)


def mean_of(figures: Sequence[Figure]) -> float:
    """Return the mean of the finite figures, of medians where they have a spread."""
    plain = [one.median if isinstance(one, Spread) else one for one in figures]
    return fmean(list(filter(math.isfinite, plain)) or [math.nan])


@dataclass(frozen=True, slots=True)
class Setting:
    """How large a run is.

    Attributes:
        quick: Whether sizes and repeats are small: a look, not a result.
        only: Word that a case must have to be measured; empty for all.
    """

    quick: bool = False
    only: str = ""

    def choose(self, full: T, quick: T) -> T:
        """Return one of two sizes."""
        return quick if self.quick else full

    def wants(self, case: str) -> bool:
        """Whether a case is to be measured."""
        return self.only in case


@dataclass(frozen=True, slots=True)
class Task:
    """A benchmark, as its file describes it.

    Attributes:
        name: Folder and module, such as "speed.pose".
        title: First line of the docstring.
        text: The rest of it.
        limit_s: Seconds after which it is stopped: `LIMIT_S` of its file.
        headline: The figure whose history is kept: `HEADLINE` of its file, or none.
        key_cases: Patterns of the cases whose headline is kept: `KEY_CASES`, or all.
        plot: The columns of its picture, across and up: `PLOT` of its file, or none.
        limit_mib: MiB of address space that it may have: `LIMIT_MIB` of its file; 0 for
            any number.
    """

    name: str
    title: str
    text: str = ""
    limit_s: float = LIMIT_S
    headline: str = ""
    key_cases: tuple[str, ...] = ("*",)
    plot: tuple[str, ...] = ()
    limit_mib: int = LIMIT_MIB

    def is_key(self, case: str) -> bool:
        """Whether the history of a case is kept."""
        return any(fnmatch.fnmatch(case, pattern) for pattern in self.key_cases)

    def load(self) -> Callable[[Setting], Iterator[Row]]:
        """Return the function that measures."""
        module = importlib.import_module(
            f"{__package__.rpartition('.')[0]}.{self.name}"
        )
        measure: Callable[[Setting], Iterator[Row]] = module.measure
        return measure


def find_tasks(root: Path = ROOT) -> dict[str, Task]:
    """Return all tasks by name, in the order of the folders."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).glob("*.py")):
            task = read_task(path, f"{folder}.{path.stem}")
            if task is not None:
                found[task.name] = task
    return found


def read_task(path: Path, name: str) -> Task | None:
    """Return the task of a file; None if the file measures nothing."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if "measure" not in functions:
        return None
    title, _, text = (ast.get_docstring(tree) or "").partition("\n")
    constants = dict(constants_of(tree))
    return Task(
        name,
        title,
        text.strip(),
        float(constants.get("LIMIT_S", LIMIT_S)),
        constants.get("HEADLINE", ""),
        constants.get("KEY_CASES", ("*",)),
        constants.get("PLOT", ()),
        constants.get("LIMIT_MIB", LIMIT_MIB),
    )


def constants_of(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of constants that are literals."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                yield node.targets[0].id, ast.literal_eval(node.value)
            except ValueError:
                continue
