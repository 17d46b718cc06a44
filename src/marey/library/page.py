"""The page of a batch: all takes with small pictures, those to look at first."""

import html
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from marey.io.formats.html.page import policy_hash
from marey.library.records import Record
from marey.numerics.thresholds import SKIN_MOTION_M
from marey.plot.style import LEFT_COLOUR, RIGHT_COLOUR
from marey.report import count_noun

PAGE = "index_page.html"

GRAVE = ("error", "warning")
"""Severities of findings that the page shows, the gravest first."""

WORD_ENDS = re.compile(r"([_/.-])(?=\w)")
"""Where a file name may be divided between two lines."""

STATE_WORDS = {
    "done": "done",
    "failed": "failed",
    "unwritten": "not written",
    "large": "stopped: too much memory",
    "late": "stopped: too long",
    "lost": "stopped: killed its worker",
}


def index_page(lines: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the page, whole in one file, which loads nothing from elsewhere.

    Args:
        lines: Line of each take in the table, as `page_row` makes it.
        rows: Their rows in the index, in the same order.
    """
    order = sorted(range(len(rows)), key=lambda i: _worst_first(rows[i]))
    template = (files("marey.library") / PAGE).read_text(encoding="utf-8")
    template = template.replace("@LEFT@", LEFT_COLOUR).replace("@RIGHT@", RIGHT_COLOUR)
    values = {
        "@SUMMARY@": html.escape(_summary(rows)),
        "@SCRIPT_HASH@": _hash_between(template, "<script>", "</script>"),
        "@STYLE_HASH@": _hash_between(template, "<style>", "</style>"),
        "@ROWS@": "\n".join(lines[i] for i in order),
    }
    for name, value in values.items():
        template = template.replace(name, value)
    return template


def _worst_first(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the key that puts failures first, then errors, then large residuals."""
    is_done = row["state"] == "done"
    return is_done, -row["errors"], -(row["residual_mm"] or 0.0), row["take"]


def _summary(rows: Sequence[Mapping[str, Any]]) -> str:
    done = [row for row in rows if row["state"] == "done"]
    seconds = sum(row["seconds"] or 0.0 for row in done)
    failed = f"{len(rows) - len(done)} failed, " if len(done) < len(rows) else ""
    n_subjects = len({row["subject"] for row in rows})
    return (
        f"{len(rows)} takes of {n_subjects} subjects, {failed}"
        f"{seconds / 60.0:.1f} minutes of motion"
    )


def page_row(record: Record, row: Mapping[str, Any]) -> str:
    """Return the line of a take in the table."""
    cells = [
        (0, _picture(record.facts.get("picture") or {})),
        (row["take"], f"{_title(record)}<span>{_links(record.outputs)}</span>"),
        (row["subject"], _name(row["subject"])),
        (row["state"], html.escape(STATE_WORDS[record.state])),
        _numeric(row["seconds"], 1, "s"),
        _numeric(row["residual_mm"], 2, "mm", bar=1e3 * SKIN_MOTION_M),
        (row["worst_bone"] or "", html.escape(row["worst_bone"] or "")),
        _gaps(row["seen"]),
        (_gravity(row), _reason(record) or _finding_cell(record)),
    ]
    tag = f'<tr class="{record.state}">'
    return tag + "".join(f'<td data-v="{_attribute(v)}">{c}</td>' for v, c in cells)


def _attribute(value: Any) -> str:
    return html.escape(str(value), quote=True)


def _title(record: Record) -> str:
    """Return the name of a take, which leads to its page if it has one."""
    page = next((name for name in record.outputs if name.endswith(".html")), "")
    name = _name(record.name)
    return f'<b><a href="{_address(page)}">{name}</a></b>' if page else f"<b>{name}</b>"


def _address(output: str) -> str:
    return quote(os.fsencode(output))


def _name(name: str) -> str:
    """Return a name of a file or subject whose lines break where its words do."""
    return WORD_ENDS.sub(r"\1<wbr>", html.escape(name))


def _links(names: Iterable[str]) -> str:
    """Return links to the outputs of a take, by suffix; of several subjects by name."""
    of_suffix: dict[str, list[str]] = {}
    for name in sorted(names):
        of_suffix.setdefault(name.rpartition(".")[2], []).append(name)
    links = [
        f'<a href="{_address(name)}">{html.escape(part + suffix)}</a>'
        for suffix, paths in of_suffix.items()
        for name, part in zip(paths, _differing_parts(paths), strict=True)
    ]
    return " ".join(links)


def _differing_parts(paths: Sequence[str]) -> list[str]:
    """Return the words of file names, divided by "_", that are not in all of them."""
    words = [path.rpartition("/")[2].rpartition(".")[0].split("_") for path in paths]
    shared = set(words[0]).intersection(*words)
    return ["".join(w + " " for w in name if w not in shared) for name in words]


def _gravity(row: Mapping[str, Any]) -> int:
    """Return the value to sort by: takes without output, then errors, then warnings."""
    is_failed = bool(row["state"] != "done")
    return 10**6 * is_failed + 10**3 * int(row["errors"]) + int(row["warnings"])


def _reason(record: Record) -> str:
    """Return why a take has no output; "" if it has."""
    reason = record.error.removeprefix(record.name).lstrip(":, ")
    return f"<span>{html.escape(reason)}</span>" if reason else ""


def _numeric(
    value: float | None, digits: int, unit: str, bar: float = 0.0
) -> tuple[float, str]:
    """Return the value to sort by, and the cell: a number, with a bar up to `bar`."""
    if value is None:
        return -1.0, ""
    width = f'<i style="--w:{min(value / bar, 1.0):.2f}"></i>' if bar else ""
    return value, f"{value:.{digits}f}&nbsp;{unit}{width}"


def _gaps(seen: float | None) -> tuple[float, str]:
    if seen is None:
        return -1.0, ""
    gap = 100.0 * (1.0 - seen)
    return gap, f'{gap:.1f}&nbsp;%<i style="--w:{gap / 100.0:.2f}"></i>'


def _finding_cell(record: Record) -> str:
    """Return how many errors and warnings there are; their messages unfold."""
    grave = [f for f in record.facts.get("findings", []) if f[0] in GRAVE]
    if not grave:
        return ""
    counts = Counter(severity for severity, *_ in grave)
    counted = ", ".join(
        count_noun(counts[kind], kind) for kind in GRAVE if counts[kind]
    )
    codes = sorted({code for severity, _, code, *_ in grave if severity == GRAVE[0]})
    items = "".join(
        f"<li class={severity}><b>{html.escape(about)}</b> {html.escape(message)}</li>"
        for severity, _, _, about, message in grave
    )
    named = f"<span>{html.escape(', '.join(codes))}</span>" if codes else ""
    summary = f"<summary>{counted}{named}</summary>"
    return f"<details>{summary}<ul>{items}</ul></details>"


def _picture(paths: Mapping[str, str]) -> str:
    if not paths:
        return ""
    strokes = "".join(
        f'<path class="{name}" d="{html.escape(path)}"/>'
        for name, path in sorted(paths.items())
    )
    return f'<svg viewBox="0 0 100 100" aria-hidden="true">{strokes}</svg>'


def _hash_between(text: str, first: str, last: str) -> str:
    """Return the hash of a script or style for the page's security policy."""
    return policy_hash(text.partition(first)[2].partition(last)[0])
