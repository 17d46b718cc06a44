"""What was found, how sure it is, what was repaired: doubts travel with the answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["info", "warning", "error"]


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

    def __str__(self) -> str:
        subject = f" {self.subject}:" if self.subject else ""
        return f"{self.severity}: [{self.stage}]{subject} {self.message}"


@dataclass(frozen=True, slots=True)
class Table:
    """A small table of results: one row per joint, bone or marker."""

    columns: tuple[str, ...]
    """Column titles with their units, the first one naming the rows."""

    rows: tuple[tuple[str | float, ...], ...]
    """The cells, each row as long as `columns`."""


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
        lines = [str(finding) for finding in self.findings]
        for name, table in self.tables.items():
            lines += ["", name, *_aligned(table)]
        if self.seconds:
            lines += [
                "",
                *(f"{stage:>12} {s:8.3f} s" for stage, s in self.seconds.items()),
            ]
        return "\n".join(lines)


def _aligned(table: Table) -> list[str]:
    cells = [table.columns, *([_cell(c) for c in row] for row in table.rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(table.columns))]
    return [
        "  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells
    ]


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
