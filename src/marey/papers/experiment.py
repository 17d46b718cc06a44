"""What a rebuilt experiment returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from marey.errors import OptionError
from marey.report import Table

Drawing = Callable[[Any], None]
"""Draws on an empty matplotlib figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One published experiment, rebuilt: its numbers beside ours."""

    title: str
    """What it is, with its place in the paper: "Table 1: wooden linkage"."""

    tables: Mapping[str, Table]
    """Tables by caption, the paper's numbers in columns of their own."""

    note: str = ""
    """How to read it: what was rebuilt, what differs, and why."""

    figures: Mapping[str, Drawing] = field(default_factory=dict)
    """Drawings by file name without suffix, such as "figure-6"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much work an experiment may be."""

    quick: bool = False
    """Few runs, for a first look; the published counts otherwise."""

    seed: int = 0

    progress: Callable[[str], None] | None = None
    """Called with a short line as parts begin."""

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise OptionError("seed", found=self.seed, needed="0 or more")

    def runs(self, full: int) -> int:
        """Return how many runs to make: all, or about a tenth."""
        return max(full // 10, 1) if self.quick else full

    def say(self, line: str) -> None:
        """Tell what begins now."""
        if self.progress is not None:
            self.progress(line)
