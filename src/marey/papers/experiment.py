"""A rebuilt experiment and the effort it may take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from marey.options import Options, number
from marey.report import Table

Drawing = Callable[[Any], None]
"""Function that draws on an empty matplotlib figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One published experiment, rebuilt: the paper's numbers beside ours."""

    title: str
    """Title with the table or section of the paper: "Wooden linkage (Table 1)"."""

    tables: Mapping[str, Table]
    """Tables by caption; the paper's numbers have columns or rows of their own."""

    note: str = ""
    """Explanation: what was rebuilt, what differs from the paper, and why."""

    figures: Mapping[str, Drawing] = field(default_factory=dict)
    """Drawings by file name without suffix, such as "figure-6"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort(Options):
    """Number of runs, random seed and progress report of an experiment."""

    quick: bool = False
    """Whether to make about a tenth of the runs."""

    seed: int = number(0, low=0)

    progress: Callable[[str], None] | None = None
    """Function that is called with a short line when a part begins."""

    def runs(self, full: int) -> int:
        """Return the number of runs: `full`, or about a tenth of it if quick."""
        return max(full // 10, 1) if self.quick else full

    def report(self, line: str) -> None:
        """Report that a part begins."""
        if self.progress is not None:
            self.progress(line)
