"""The frame of all experiments: effort, tables of results and the experiment itself."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import getdoc
from typing import Any

from marey.options import Options, number
from marey.report import Table

Drawing = Callable[[Any], None]
"""Function that draws on an empty matplotlib figure."""

Cells = tuple[str | float | int, ...]
"""One row of a table; an empty string where there is nothing to report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One published experiment, rebuilt: the paper's numbers beside ours."""

    title: str = ""
    """Title with the table or section of the paper: "Wooden linkage (Table 1)"."""

    tables: Mapping[str, Table]
    """Tables by caption; the paper's numbers have columns or rows of their own."""

    note: str = ""
    """Explanation: what was rebuilt, what differs from the paper, and why."""

    facts: Mapping[str, object] = field(default_factory=dict)
    """Values of the placeholders in the note, such as the number of frames."""

    figures: Mapping[str, Drawing] = field(default_factory=dict)
    """Drawings by file name without suffix, such as "figure-6"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort(Options):
    """Number of runs, random seed and progress report of an experiment."""

    full: bool = False
    """Whether to make all runs. Otherwise about a tenth of them, and shorter takes, so
    that all experiments of a paper take less than a minute of one core."""

    seed: int = number(0, low=0)

    progress: Callable[[str], None] | None = None
    """Function that is called with a short line when a part begins."""

    def runs(self, every: int) -> int:
        """Return the number of runs of `every`: all if full, else about a tenth."""
        return every if self.full else max(every // 10, 1)

    def report(self, line: str) -> None:
        """Report that a part begins."""
        if self.progress is not None:
            self.progress(line)


Run = Callable[[Effort], Experiment]
"""Function that runs an experiment."""


def experiment(title: str) -> Callable[[Run], Run]:
    """Return a decorator that gives an experiment its title and its note.

    The note is the docstring of the function without its first line, which is the
    summary that `marey papers` lists. `Experiment.facts` fill its placeholders.
    """

    def decorate(run: Run) -> Run:
        @wraps(run)
        def titled(effort: Effort) -> Experiment:
            result = run(effort)
            _, _, explanation = (getdoc(run) or "").partition("\n")
            note = " ".join(explanation.split()).format(**result.facts)
            return replace(result, title=title, note=note)

        return titled

    return decorate


def table(header: str, rows: Iterable[Cells]) -> Table:
    """Return a table.

    Args:
        header: Titles of the columns, with " | " between them.
        rows: The cells, row by row.
    """
    return Table(tuple(header.split(" | ")), tuple(rows))
