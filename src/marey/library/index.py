"""The index of a batch: tables of takes, bones, findings and times, and one page.

It is made from the records alone, so that several runs and shards make the same one.
"""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from marey.io.atomic import write_atomic
from marey.io.formats.html import replace_surrogates
from marey.io.formats.parquet import import_pyarrow
from marey.library.page import index_page, page_row
from marey.library.records import Record, read_records

Rows = Sequence[Mapping[str, Any]]

TAKE_COLUMNS: Mapping[str, str] = {
    "take": "string",
    "subject": "string",
    "state": "string",
    "error": "string",
    "frames": "int64",
    "rate": "double",
    "seconds": "double",
    "markers": "int64",
    "sensors": "int64",
    "seen": "double",
    "joints": "int64",
    "residual_mm": "double",
    "worst_bone": "string",
    "errors": "int64",
    "warnings": "int64",
    "findings": "string",
    "sha256": "string",
    "outputs": "string",
    "versions": "string",
}
BONE_COLUMNS: Mapping[str, str] = {
    "subject": "string",
    "take": "string",
    "bone": "string",
    "parent": "string",
    "length_mm": "double",
    "sd_mm": "double",
}
FINDING_COLUMNS: Mapping[str, str] = dict.fromkeys(
    ("take", "severity", "stage", "code", "about", "message"), "string"
)
TIMING_COLUMNS: Mapping[str, str] = {
    "step": "string",
    "name": "string",
    "seconds": "double",
}


def write_index(out: Path) -> None:
    """Write index, bones, findings and timings as Parquet, and the page.

    Args:
        out: Folder of the batch.

    Raises:
        MissingExtraError: If pyarrow is not installed.
        OutputError: If a file cannot be written.
    """
    write_atomic({path: [content] for path, content in make_index(out).items()})


def make_index(out: Path) -> dict[Path, bytes]:
    """Return the content of each file of the index, made from the records."""
    rows: list[dict[str, Any]] = []
    bones: list[dict[str, Any]] = []
    findings: list[dict[str, Any]] = []
    lines: list[str] = []
    for _, record in read_records(out):
        if record is None or record.kind != "take" or record.state == "gone":
            continue
        rows.append(take_row(record))
        bones += _bone_rows(record)
        findings += _finding_rows(record)
        lines.append(page_row(record, rows[-1]))
    tables: dict[str, tuple[Mapping[str, str], Rows]] = {
        "index": (TAKE_COLUMNS, rows),
        "bones": (BONE_COLUMNS, bones),
        "findings": (FINDING_COLUMNS, findings),
        "timings": (TIMING_COLUMNS, _timing_rows(out / "timings.jsonl")),
    }
    files = {
        out / f"{name}.parquet": _parquet(columns, rows)
        for name, (columns, rows) in tables.items()
    }
    page = replace_surrogates(index_page(lines, rows))
    files[out / "index.html"] = page.encode()
    return files


def take_row(record: Record) -> dict[str, Any]:
    """Return the row of a take in the index."""
    facts = record.facts
    findings = facts.get("findings", [])
    frames, rate = facts.get("n_frames"), facts.get("rate")
    return {
        "take": record.name,
        "subject": record.subject,
        "state": record.state,
        "error": record.error,
        "frames": frames,
        "rate": rate,
        "seconds": frames / rate if frames and rate else None,
        "markers": facts.get("n_markers"),
        "sensors": facts.get("n_sensors"),
        "seen": facts.get("seen"),
        "joints": facts.get("n_joints"),
        "residual_mm": facts.get("residual_mm"),
        "worst_bone": facts.get("worst_bone", ""),
        "errors": sum(severity == "error" for severity, *_ in findings),
        "warnings": sum(severity == "warning" for severity, *_ in findings),
        "findings": json.dumps(facts.get("codes", {})),
        "sha256": record.inputs.get(record.name, ""),
        "outputs": json.dumps(sorted(record.outputs)),
        "versions": json.dumps(dict(record.versions)),
    }


def _bone_rows(record: Record) -> Iterable[dict[str, Any]]:
    for bone, parent, length, sd, subject in record.facts.get("bones", []):
        numbers = {"length_mm": _number(length), "sd_mm": _number(sd)}
        names = {"subject": subject, "take": record.name, "bone": bone}
        yield {**names, "parent": parent, **numbers}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _finding_rows(record: Record) -> Iterable[dict[str, Any]]:
    columns = ("severity", "stage", "code", "about", "message")
    for finding in record.facts.get("findings", []):
        yield {"take": record.name, **dict(zip(columns, finding, strict=True))}


def _timing_rows(path: Path) -> list[dict[str, Any]]:
    """Return the last time of each step; a line that was cut short is left out."""
    last: dict[tuple[str, str], dict[str, Any]] = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for line in lines:
        try:
            row = json.loads(line)
            last[row["step"], row["name"]] = row
        except (ValueError, KeyError, TypeError):
            continue
    return [last[key] for key in sorted(last)]


def _parquet(columns: Mapping[str, str], rows: Rows) -> bytes:
    """Return a table as the bytes of a Parquet file.

    Raises:
        MissingExtraError: If pyarrow is not installed.
    """
    pa = import_pyarrow()
    schema = pa.schema([(name, _type(pa, kind)) for name, kind in columns.items()])
    values = [{name: _as_text(value) for name, value in row.items()} for row in rows]
    table = pa.Table.from_pylist(values, schema=schema)
    file = io.BytesIO()
    pa.parquet.write_table(table, file)
    return file.getvalue()


def _as_text(value: Any) -> Any:
    """Return a value, of text only what UTF-8 can hold: file names may be any bytes."""
    return replace_surrogates(value) if isinstance(value, str) else value


def _type(pa: Any, kind: str) -> Any:
    kinds = {"string": pa.string(), "int64": pa.int64(), "double": pa.float64()}
    return kinds[kind]
