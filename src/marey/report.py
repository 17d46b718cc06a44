"""Findings, tables and timings that accompany a solution."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from marey.errors import LONGEST_MESSAGE, DataError, printable

Severity = Literal["info", "warning", "error"]

NAME_MARKS = "\ufdd0", "\ufdd1"
"""Characters around a name in a message until it becomes a finding: Unicode
non-characters, which no text contains."""


def mark_name(name: str) -> str:
    """Return the name of a body or joint, marked for the message of a finding.

    The finding removes the marks and keeps the position of the name, so that `rename`
    can replace it.
    """
    return name.join(NAME_MARKS)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth knowing about the data or the answer."""

    code: str
    """Stable identifier for programs, such as "frames-missing"."""

    stage: str
    """Where it was found: "read", "clean", "segment", "joints", ..."""

    severity: Severity
    """"info": nothing to do; "warning": the answer may suffer; "error": it does."""

    message: str
    """One sentence in plain words: what was found and what to do."""

    subject: str = ""
    """The marker, body, joint or file it is about."""

    frames: tuple[int, int] = (-1, -1)
    """First and last frame concerned, inclusive; (-1, -1) means no frames."""

    value: float = float("nan")
    """The number behind it, in SI units; NaN when there is none."""

    names: tuple[tuple[int, int], ...] = ()
    """Positions of the names of bodies and joints in the message: first character of
    each, and the one after its last."""

    def __post_init__(self) -> None:
        pieces = re.split(f"[{''.join(NAME_MARKS)}]", self.message)
        if len(pieces) > 1:
            ends = list(accumulate(map(len, pieces)))
            spans = tuple(zip(ends[:-1:2], ends[1::2], strict=False))
            object.__setattr__(self, "message", "".join(pieces))
            object.__setattr__(self, "names", spans)

    def rename(self, names: Mapping[str, str]) -> "Finding":
        """Return the finding with new names in its message; the subject is unchanged.

        Args:
            names: New name of each renamed body or joint, by its old name.
        """
        text, end = "", 0
        for first, last in self.names:
            name = self.message[first:last]
            text += self.message[end:first] + mark_name(names.get(name, name))
            end = last
        return replace(self, message=text + self.message[end:], names=())

    def __str__(self) -> str:
        subject = f" {printable(self.subject)}:" if self.subject else ""
        message = printable(self.message, limit=LONGEST_MESSAGE)
        return f"{self.severity}: [{self.stage}]{subject} {message}"


@dataclass(frozen=True, slots=True)
class Table:
    """A small table of results: one row per joint, bone or marker."""

    columns: tuple[str, ...]
    """Column titles with their units, the first one naming the rows."""

    rows: tuple[tuple[str | float | int, ...], ...]
    """The cells, each row as long as `columns`."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise DataError(
                    "table row", found=row, needed=f"{len(self.columns)} cells"
                )

    def __str__(self) -> str:
        cells = [
            [format_cell(c, digits=4) for c in row]
            for row in (self.columns, *self.rows)
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join(
            "  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True))
            for row in cells
        )


@dataclass(frozen=True, slots=True)
class Report:
    """Findings, residual tables and seconds of one solve."""

    findings: tuple[Finding, ...] = ()
    tables: Mapping[str, Table] = field(default_factory=dict)
    """Named tables of residuals, lengths and errors."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    """Wall time per stage, in the order the stages ran."""

    @property
    def worst(self) -> Severity:
        """The gravest severity among the findings; "info" when there are none."""
        order: tuple[Severity, ...] = ("error", "warning", "info")
        present = {finding.severity for finding in self.findings}
        return next((severity for severity in order if severity in present), "info")

    def __str__(self) -> str:
        blocks = ["\n".join(map(str, self.findings)) or "no findings"]
        blocks += [f"{name}\n{table}" for name, table in self.tables.items()]
        if self.seconds:
            blocks.append(
                "\n".join(
                    f"{stage:>12} {s:8.3f} s" for stage, s in self.seconds.items()
                )
            )
        return "\n\n".join(blocks)


def format_cell(value: str | float | int, digits: int) -> str:
    """Return a cell of a table as text; counts keep all their digits."""
    if isinstance(value, str):
        return printable(value)
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.{digits}g}"
