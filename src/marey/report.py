"""Findings, tables and timings that accompany a solution."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import accumulate
from typing import Literal

from marey.errors import LONGEST_MESSAGE, DataError, printable

Severity = Literal["info", "warning", "error"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""All severities, the gravest first."""

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


SENTENCES = {
    "body-loose": (
        "{count} bodies fit no other body, with residuals up to {mm} mm ({subjects}): "
        "check the order of quaternions or angles, the axes and the unit"
    ),
    "body-separate": (
        "{count} bodies have no joint with another body ({subjects}): if they are no "
        "props, markers between are missing"
    ),
    "body-still": (
        "{count} bodies never move ({subjects}): check that they are attached to the "
        "subject"
    ),
    "joint-free": (
        "{count} joints rotated about one axis only ({subjects}), so their position "
        "along it is uncertain: bend and twist them"
    ),
    "joint-held": (
        "{count} joints are kept from their markers by limits ({subjects}): check the"
        " signs of their axes, or widen the limits"
    ),
    "joint-lost": (
        "{count} joints leave most of their markers for a while, by more than 50 mm "
        "({subjects}): look for swapped labels"
    ),
    "joint-open": (
        "{count} joint centres are uncertain, by ±{mm} mm at worst ({subjects}): bend"
        " and twist these joints more, about two axes"
    ),
    "joint-still": (
        "{count} joints never moved ({subjects}): bend them in a recording, or merge "
        "their bodies"
    ),
    "joint-unseen": (
        "too few markers or sensors show {subjects} in {events} spans of time, "
        "{seconds} s in all: rotations there are guesses; fill or cut these frames"
    ),
    "joint-weak": (
        "{count} joint centres are uncertain, by ±{mm} mm at worst ({subjects}): "
        "rotate these joints more, about two axes"
    ),
    "label-doubtful": (
        "{count} markers move with no other marker of their body ({subjects}): check "
        "their labels"
    ),
    "label-wrong": (
        "{count} markers move with no other marker of their body and are left out "
        "({subjects}): check their labels"
    ),
    "labels-swapped": (
        "labels were swapped {events} times ({subjects}) and are swapped back: check "
        "these frames"
    ),
    "lost": (
        "not kept in what was written: {all_subjects}; write npz beside it if you need "
        "them"
    ),
    "marker-far": (
        "{count} markers are up to {mm} mm off in some frames ({subjects}): look for "
        "spikes and swapped labels there"
    ),
    "marker-slipped": (
        "{events} slips of markers, by up to {mm} mm ({subjects}), are undone: fasten "
        "these markers better"
    ),
    "marker-spike": (
        "{count} markers jump away and back, by up to {mm} mm ({subjects}): these "
        "frames are masked; check their labels"
    ),
    "marker-outliers": (
        "{count} markers are outliers in up to {percent} % of their frames "
        "({subjects}): look for slips and swapped labels"
    ),
    "marker-noisy": (
        "{count} markers are noisier than others, by up to {mm} mm ({subjects}): look"
        " for slips, loose clothing and wrong labels"
    ),
    "pair-unseen": (
        "{count} pairs of bodies are never seen in the same frame ({subjects}), so "
        "they have no joint: record them together"
    ),
    "parent-unseen": (
        "{count} bodies are never seen in the same frame as their neighbours "
        "({subjects}), so they are figures of their own: record them together"
    ),
    "part-missing": (
        "{count} limbs end early ({subjects}): the next part has no markers, or never"
        " moved; move it in a recording"
    ),
    "points-zero": (
        "{count} markers are exactly zero for a while ({subjects}): these frames are "
        "masked; export unseen markers as empty"
    ),
    "pose-lost": (
        "most markers do not fit the skeleton in {n_frames} frames ({frames}): look "
        "for swapped labels, or a skeleton of someone else"
    ),
    "pose-unseen": (
        "nothing is seen in {n_frames} frames ({frames}): poses there are guesses, or"
        " missing; cut these frames"
    ),
    "sensor-flip": (
        "{count} sensors flip over and back ({subjects}): these frames are masked; "
        "check the connection and the order of angles"
    ),
    "sensor-frozen": (
        "{count} sensors repeat their last value ({subjects}): these frames are "
        "masked; check the connection"
    ),
    "sensor-gap": (
        "{count} sensors leave their joints for a while, by up to {mm} mm "
        "({subjects}): these frames are masked"
    ),
    "sensor-jump": (
        "{count} sensors jump away and back, by up to {mm} mm ({subjects}): these "
        "frames are masked; check the signal"
    ),
    "sensor-slipped": (
        "{events} slips of sensors, by up to {mm} mm ({subjects}), are undone: fasten "
        "these sensors better, or record again"
    ),
    "tree-loose": (
        "{count} bodies have loose joints ({subjects}): a body between two of them "
        "may have no markers"
    ),
    "tree-unsure": (
        "the parents of {count} bodies are uncertain ({subjects}): check the tree, or"
        " give it"
    ),
}
"""Sentence about several findings of one code; `Cause.message` fills the braces."""

SMALL_IS_WORSE = {"tree-unsure"}
"""Codes whose findings are the worse, the smaller their value is."""

MAX_LISTED_EXAMPLES = 3
"""Largest number of subjects or frames that the sentence of a cause names."""


@dataclass(frozen=True, slots=True)
class Cause:
    """All findings of one cause, in one sentence."""

    findings: tuple[Finding, ...]
    """The findings, at least one, all of one code and stage."""

    @property
    def code(self) -> str:
        """Code of the findings."""
        return self.findings[0].code

    @property
    def stage(self) -> str:
        """Stage of the findings."""
        return self.findings[0].stage

    @property
    def severity(self) -> Severity:
        """The gravest severity of the findings."""
        return _gravest(self.findings)

    @property
    def message(self) -> str:
        """What was found, where, how much, and what to do; with examples, worst first.

        It is the message of the finding if there is only one.
        """
        first, count = self.findings[0], len(self.findings)
        if count == 1:
            return (
                f"{first.subject}: {first.message}" if first.subject else first.message
            )
        sentence = SENTENCES.get(self.code, "")
        n_subjects = len({f.subject for f in self.findings if f.subject})
        if not sentence or ("{subjects}" in sentence and not n_subjects):
            named = f": {self._subjects()}" if first.subject else ""
            return f"{first.message} ({count} such{named})"
        if "{count}" in sentence and n_subjects == 1:
            worst = self._worst_first()[0]
            return f"{worst.subject}: {worst.message} ({count} such)"
        values = [f.value for f in self.findings if math.isfinite(f.value)]
        largest = max(values, default=0.0)
        runs = [f.frames for f in self.findings if f.frames[0] >= 0]
        return sentence.format(
            count=n_subjects,
            events=count,
            subjects=self._subjects(),
            all_subjects=", ".join(dict.fromkeys(f.subject for f in self.findings)),
            mm=f"{1e3 * largest:.0f}",
            percent=f"{1e2 * largest:.0f}",
            seconds=f"{sum(values):.2g}",
            n_frames=_count_frames(runs),
            frames=list_examples([_spell_frames(run) for run in runs]),
        )

    def _subjects(self) -> str:
        """Return the subjects of the findings, the worst first."""
        order = self._worst_first()
        return list_examples(list(dict.fromkeys(f.subject for f in order)))

    def _worst_first(self) -> list[Finding]:
        """Return the findings, those of the largest values first."""
        sign = 1.0 if self.code in SMALL_IS_WORSE else -1.0
        return sorted(
            self.findings, key=lambda f: sign * f.value if math.isfinite(f.value) else 0
        )

    def __str__(self) -> str:
        message = printable(self.message, limit=LONGEST_MESSAGE)
        return f"{self.severity}: [{self.stage}] {message}"


def group_findings(findings: Sequence[Finding]) -> tuple[Cause, ...]:
    """Return findings by cause, the gravest first, else in their order."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.stage, finding.code), []).append(finding)
    causes = (Cause(tuple(group)) for group in groups.values())
    return tuple(sorted(causes, key=lambda cause: SEVERITIES.index(cause.severity)))


def _gravest(findings: Sequence[Finding]) -> Severity:
    """Return the gravest severity among findings; "info" when there are none."""
    present = {finding.severity for finding in findings}
    return next((severity for severity in SEVERITIES if severity in present), "info")


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun: "1 take", "2 takes"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def list_examples(items: Sequence[str]) -> str:
    """Return the first few of several items, and how many more there are."""
    more = len(items) - MAX_LISTED_EXAMPLES
    listed = ", ".join(items[:MAX_LISTED_EXAMPLES])
    return f"{listed} and {more} more" if more > 0 else listed


def spell_frames(first: int, last: int) -> str:
    """Return a span of frames, both inclusive, in words: "frame 6", "frames 6 to 9"."""
    return f"frame {first}" if first == last else f"frames {first} to {last}"


def _count_frames(runs: Sequence[tuple[int, int]]) -> int:
    """Return the number of frames in runs, which of several subjects may overlap."""
    count, end = 0, -1
    for first, last in sorted(runs):
        count += max(last - max(first, end + 1) + 1, 0)
        end = max(end, last)
    return count


def _spell_frames(frames: tuple[int, int]) -> str:
    first, last = frames
    return f"{first}" if first == last else f"{first} to {last}"


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
        cells = self._texts()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join(
            "  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True))
            for row in cells
        )

    def _texts(self) -> list[list[str]]:
        """Return titles and cells as text, row by row."""
        rows = (self.columns, *self.rows)
        return [[format_cell(cell, digits=4) for cell in row] for row in rows]

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        titles, *rows = (map(escape, row) for row in self._texts())
        head = "".join(f"<th>{title}</th>" for title in titles)
        body = "".join(
            f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True, slots=True, repr=False)
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
        return _gravest(self.findings)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The findings by cause, one sentence each, the gravest first."""
        return group_findings(self.findings)

    def __str__(self) -> str:
        blocks = ["\n".join(map(str, self.causes)) or "no findings"]
        blocks += [f"{name}\n{table}" for name, table in self.tables.items()]
        if self.seconds:
            blocks.append(
                "\n".join(
                    f"{stage:>12} {s:8.3f} s" for stage, s in self.seconds.items()
                )
            )
        return "\n\n".join(blocks)

    def __repr__(self) -> str:
        counts = Counter(finding.severity for finding in self.findings)
        listed = ", ".join(f"{counts[s]} {s}" for s in SEVERITIES if counts[s])
        return f"Report({listed or 'no findings'})"

    def _repr_html_(self) -> str:
        """Return causes and tables for a notebook; each table unfolds."""
        return list_causes_html(self.findings) + fold_tables_html(self.tables)


def list_causes_html(findings: Sequence[Finding]) -> str:
    """Return findings by cause as a list of a notebook; "" if there are none."""
    causes = group_findings(findings)
    items = "".join(f"<li>{escape(str(cause))}</li>" for cause in causes)
    return f"<ul>{items}</ul>" if items else ""


def fold_tables_html(tables: Mapping[str, Table]) -> str:
    """Return the tables that have rows for a notebook, each under its name."""
    return "".join(
        f"<details><summary>{escape(name)}</summary>{table._repr_html_()}</details>"
        for name, table in tables.items()
        if table.rows
    )


def format_cell(value: str | float | int, digits: int) -> str:
    """Return a cell of a table as text; numbers keep all digits before the point."""
    if isinstance(value, str):
        return printable(value)
    is_whole = float(value).is_integer() or abs(value) >= 10**digits
    return f"{value:.0f}" if is_whole else f"{value:.{digits}g}"
