"""The page of a batch: all takes with small pictures, those to look at first."""

import base64
import hashlib
import html
import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from marey.library.records import Record
from marey.numerics.thresholds import SKIN_MOTION_M
from marey.plot.style import LEFT_COLOUR, RIGHT_COLOUR

PAGE = "index_page.html"

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
    failed = row["state"] == "done"
    return failed, -row["errors"], -(row["residual_mm"] or 0.0), row["take"]


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
    links = " ".join(_link(name) for name in sorted(record.outputs))
    cells = [
        (0, _picture(record.facts.get("picture") or {})),
        (row["take"], f"<b>{html.escape(row['take'])}</b><span>{links}</span>"),
        (row["subject"], html.escape(row["subject"])),
        (row["state"], _state_cell(record)),
        _numeric(row["seconds"], 1, "s"),
        _numeric(row["residual_mm"], 2, "mm", bar=1e3 * SKIN_MOTION_M),
        (row["worst_bone"] or "", html.escape(row["worst_bone"] or "")),
        _gaps(row["seen"]),
        (row["errors"] * 1000 + row["warnings"], _finding_cell(record)),
    ]
    tag = f'<tr class="{record.state}">'
    return tag + "".join(f'<td data-v="{_attribute(v)}">{c}</td>' for v, c in cells)


def _attribute(value: Any) -> str:
    return html.escape(str(value), quote=True)


def _link(name: str) -> str:
    suffix = name.rpartition(".")[2]
    return f'<a href="{quote(os.fsencode(name))}">{html.escape(suffix)}</a>'


def _state_cell(record: Record) -> str:
    word = html.escape(STATE_WORDS[record.state])
    reason = html.escape(record.error.removeprefix(record.name).lstrip(":, "))
    return f"{word}<span>{reason}</span>" if reason else word


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
    """Return the codes of findings; the messages of errors and warnings unfold."""
    grave = [
        f"<li class={severity}><b>{html.escape(about)}</b> {html.escape(message)}</li>"
        for severity, _, _, about, message in record.facts.get("findings", [])
        if severity != "info"
    ]
    if not grave:
        return ""
    counted = "1 finding" if len(grave) == 1 else f"{len(grave)} findings"
    return f"<details><summary>{counted}</summary><ul>{''.join(grave)}</ul></details>"


def _picture(paths: Mapping[str, str]) -> str:
    strokes = "".join(
        f'<path class="{name}" d="{html.escape(path)}"/>'
        for name, path in sorted(paths.items())
    )
    return f'<svg viewBox="0 0 100 100" aria-hidden="true">{strokes}</svg>'


def _hash_between(text: str, first: str, last: str) -> str:
    """Return the hash of a script or style for the page's security policy."""
    inner = text.partition(first)[2].partition(last)[0]
    digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
    return f"'sha256-{digest}'"
