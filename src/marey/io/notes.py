"""Findings of reading and writing."""

from typing import ClassVar, Literal, SupportsFloat

from marey.report import Finding, Severity

Stage = Literal["read", "write"]


class Notes:
    """What keeps the findings of reading or writing a file."""

    __slots__ = ()
    stage: ClassVar[Stage]
    findings: list[Finding]

    def note(
        self,
        code: str,
        message: str,
        *,
        severity: Severity = "warning",
        subject: str = "",
        value: SupportsFloat = float("nan"),
    ) -> None:
        """Add a finding, which the caller gets: see `findings`."""
        number = float(value)
        self.findings.append(
            Finding(code, self.stage, severity, message, subject=subject, value=number)
        )
