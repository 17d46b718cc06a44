"""Records: what was made of each take and each subject, and from what.

The records are the truth about a batch: a take is done when its record says so, the
record fits what would be made now, and its outputs are there whole. A record is written
after the outputs, in one step, so a killed run leaves no record of what is not there.

    OUT/takes/S01/walk.bvh                 an output
    OUT/takes/S01/walk.c3d.record.json     the record of the take
    OUT/subjects/S01.skel.json             the skeleton of a subject
    OUT/subjects/S01.record.json           the record of its fit
"""

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import numpy as np

from marey.errors import OptionError, reason
from marey.io.atomic import write_atomic, writing
from marey.io.file import hash_file
from marey.io.formats.html import replace_surrogates, to_json
from marey.options import replace_options
from marey.pipeline import SolveOptions

SUFFIX = ".record.json"
PARTS = ("subjects", "takes")
"""Folders of a batch with outputs and their records."""

RESULTS = (
    *PARTS,
    *("index.html", "index.parquet", "bones.parquet", "findings.parquet"),
    *("timings.parquet", "timings.jsonl"),
)
"""What a batch writes into its folder."""

LOCKS = ".locks"
LIBRARIES = ("marey", "numpy", "scipy", "numba")
MAX_NAME_BYTES = 200
"""Longest part of a path, in bytes, before it is shortened. File systems allow 255, of
which suffixes and temporary names take some."""

State = Literal[
    "planned", "done", "failed", "unwritten", "large", "late", "lost", "gone"
]

LASTING_STATES = ("done", "failed")
"""States that another try with the same inputs and options would only repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What was made of a take or a subject."""

    kind: Literal["take", "subject"]
    name: str
    """Relative path of the take, or name of the subject."""

    subject: str
    state: State
    """"planned": work to do; "done"; "failed": there is a reason in the data. What else
    may go wrong is tried again by the next run: "unwritten": the disk was full, or so;
    "large" and "late": more memory or time than the limit; "lost": its workers died.
    "gone": the recording is no longer in the library; its outputs stay."""

    key: str
    """Hash of everything that the outputs depend on."""

    error: str = ""
    """Why there is no output."""

    inputs: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each input, by relative path."""

    skeletons: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each skeleton of the subject with which a take was solved, by path
    relative to the folder of the batch."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """All options of the solve, those that nobody chose too: see `describe_options`."""

    versions: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Bytes and SHA-256 of each output, by path relative to the folder of the batch."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """Numbers for the index, and the findings."""

    def provenance(self) -> dict[str, Any]:
        """Return from what the outputs are made, as values of JSON."""
        names = ("name", "subject", "inputs", "skeletons", "options", "versions")
        whole = to_json({name: getattr(self, name) for name in names})
        text = replace_surrogates(json.dumps(whole, ensure_ascii=False))
        return dict(json.loads(text))


def plan_record(
    kind: Literal["take", "subject"],
    name: str,
    subject: str,
    inputs: Mapping[str, str],
    options: Mapping[str, Any],
    *,
    skeletons: Mapping[str, str] | None = None,
    **others: Any,
) -> Record:
    """Return the record of work to do; its key has all that the work depends on.

    Args:
        kind: What the work is on.
        name: Relative path of the take, or name of the subject.
        subject: Whose it is.
        inputs: SHA-256 of each input, by relative path.
        options: Options as values of JSON.
        skeletons: SHA-256 of each skeleton of the subject, by path.
        **others: What else the outputs depend on.
    """
    parts: dict[str, Any] = {"inputs": inputs, "options": options, "subject": subject}
    parts |= {"versions": library_versions(), "skeletons": skeletons or {}}
    text = json.dumps(to_json(parts | others), sort_keys=True)
    return Record(
        kind=kind,
        name=name,
        subject=subject,
        state="planned",
        key=hashlib.sha256(text.encode()).hexdigest(),
        inputs=inputs,
        skeletons=skeletons or {},
        options=options,
        versions=library_versions(),
    )


def finish_record(
    planned: Record,
    out: Path,
    state: State,
    *,
    error: str = "",
    outputs: Sequence[Path] = (),
    facts: Mapping[str, Any] | None = None,
) -> Record:
    """Return the record of work that is over, after writing it.

    Args:
        planned: The record of the work before.
        out: Folder of the batch.
        state: How it ended.
        error: Why there is no output.
        outputs: Files that were written.
        facts: Numbers for the index.

    Raises:
        OutputError: If the record cannot be written.
    """
    described = describe_outputs(outputs, out)
    record = replace(
        planned, state=state, error=error, outputs=described, facts=facts or {}
    )
    write_record(record_path(out, record.kind, record.name), record)
    return record


def record_path(out: Path, kind: str, name: str) -> Path:
    """Return the file of the record of a take or a subject."""
    if kind == "take":
        return out / "takes" / (short_path(name) + SUFFIX)
    return out / "subjects" / (file_name(name) + SUFFIX)


def skeleton_path(out: Path, subject: str, part: str = "") -> Path:
    """Return the file of a subject's skeleton, or of one part where it has several."""
    parts = filter(None, (file_name(subject), file_name(part)))
    return out / "subjects" / (".".join(parts) + ".skel.json")


def lock_path(out: Path, subject: str) -> Path:
    """Return the file of the lock on a subject."""
    return out / LOCKS / (file_name(subject) + ".lock")


def is_batch(out: Path) -> bool:
    """Return whether a folder has the locks of a batch, or records."""
    return (out / LOCKS).is_dir() or next(read_records(out), None) is not None


def file_name(name: str) -> str:
    """Return a safe file name of any name."""
    return short_path(quote(os.fsencode(name), safe=" ()"))


def short_path(path: str) -> str:
    """Return a relative path whose parts leave room for suffixes.

    A part that is too long ends in a hash of it.
    """
    return "/".join(map(_short_part, path.split("/")))


def _short_part(part: str) -> str:
    whole = os.fsencode(part)
    if len(whole) <= MAX_NAME_BYTES:
        return part
    digest = hashlib.sha256(whole).hexdigest()[:16]
    start = whole[: MAX_NAME_BYTES - len(digest) - 1].decode(errors="ignore")
    return f"{start}-{digest}"


def write_record(path: Path, record: Record) -> None:
    """Write a record in one step; the same record gives the same bytes.

    Raises:
        OutputError: If it cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(to_json(asdict(record)), indent=1, sort_keys=True)
    write_atomic({path: [text.encode()]})


def read_record(path: Path) -> Record | None:
    """Return a record; None if there is none that can be read."""
    try:
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def read_records(out: Path) -> Iterator[tuple[Path, Record | None]]:
    """Yield all records of a batch by their paths, sorted; None for an unreadable."""
    for part in PARTS:
        for path in sorted((out / part).rglob("*" + SUFFIX)):
            yield path, read_record(path)


def mark_gone_takes(out: Path, library: Path) -> None:
    """Mark the records of takes that are no longer in the library.

    Raises:
        OutputError: If a record cannot be written.
    """
    for path, record in read_records(out):
        if record is None or record.kind != "take" or record.state == "gone":
            continue
        if _is_gone(library, record.name):
            write_record(path, replace(record, state="gone"))


def _is_gone(library: Path, take: str) -> bool:
    """Return whether a take is no longer in a library, or a folder can be listed."""
    path = library / take
    is_open = take.endswith("/") and os.access(path, os.R_OK | os.X_OK)
    return is_open or not os.path.lexists(path)


def current_record(planned: Record, out: Path, *, retry: bool) -> Record | None:
    """Return the record of work that need not be done again; None if it must be.

    A take that was gone and is in the library again has its record as it was.

    Args:
        planned: The record of the work before.
        out: Folder of the batch.
        retry: Whether what failed is tried again.

    Raises:
        OutputError: If a record cannot be written.
    """
    record = read_record(record_path(out, planned.kind, planned.name))
    if record is None or record.key != planned.key:
        return None
    is_back = record.state == "gone" and bool(record.outputs)
    if is_back:
        record = replace(record, state="done")
    if record.state not in LASTING_STATES or (retry and record.state == "failed"):
        return None
    outputs = [(out / name, facts) for name, facts in record.outputs.items()]
    if not all(_is_whole(path, facts) for path, facts in outputs):
        return None
    if is_back:
        write_record(record_path(out, record.kind, record.name), record)
    return record


def _is_whole(path: Path, facts: Mapping[str, Any]) -> bool:
    """Return whether an output is there with the recorded bytes and hash."""
    try:
        if path.stat().st_size != facts["bytes"]:
            return False
        return bool(hash_file(path) == facts["sha256"])
    except OSError:
        return False


def describe_outputs(paths: Sequence[Path], out: Path) -> dict[str, dict[str, Any]]:
    """Return bytes and SHA-256 of files, by their path relative to a folder."""
    return {
        path.relative_to(out).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": hash_file(path),
        }
        for path in sorted(paths)
    }


def describe_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every option of `marey.solve` for records and keys.

    Raises:
        OptionError: As `describe_option`.
    """
    options = replace_options(SolveOptions(), given)
    names = SolveOptions.__dataclass_fields__
    return {name: describe_option(name, getattr(options, name)) for name in names}


def describe_option(name: str, value: Any) -> Any:
    """Return the value of an option for records and keys: of a file its content.

    Raises:
        OptionError: If it is a value that only this process has, or a file is missing.
    """
    if isinstance(value, Path):
        try:
            return {"file": value.name, "sha256": hash_file(value)}
        except OSError as error:
            found = f"{value}: {reason(error)}"
            raise OptionError(name, found=found, needed="a readable file") from None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"shape": list(value.shape), "sha256": digest}
    if isinstance(value, tuple | list):
        return [describe_option(name, item) for item in value]
    if isinstance(value, Mapping):
        return {str(k): describe_option(name, item) for k, item in value.items()}
    if is_dataclass(value):
        items = ((f.name, getattr(value, f.name)) for f in fields(value))
        return {key: describe_option(name, item) for key, item in items}
    needed = "numbers, text, arrays or a file: workers and later runs must read it"
    raise OptionError(name, found=type(value).__name__, needed=needed)


@cache
def library_versions() -> dict[str, str]:
    """Return the versions that the numbers depend on."""
    versions = {name: version(name) for name in LIBRARIES}
    return versions | {"python": platform.python_version()}
