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
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from marey.io.atomic import write_atomic
from marey.io.formats.html import to_json

SUFFIX = ".record.json"
LIBRARIES = ("marey", "numpy", "scipy", "numba")
CHUNK_BYTES = 2**20

State = Literal["done", "failed", "late", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What was made of a take or a subject."""

    kind: Literal["take", "subject"]
    name: str
    """Relative path of the take, or name of the subject."""

    subject: str
    state: State
    """"done"; "failed": there is a reason in the data; "late" and "lost": it took too
    long or killed its workers, which is tried again by the next run."""

    key: str
    """Hash of everything that the outputs depend on."""

    error: str = ""
    """Why there is no output."""

    inputs: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each input, by relative path."""

    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Bytes and SHA-256 of each output, by path relative to the folder of the batch."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """Numbers for the index, and the findings."""


def take_record_path(out: Path, take: str) -> Path:
    """Return the file of the record of a take."""
    return out / "takes" / (take + SUFFIX)


def subject_record_path(out: Path, subject: str) -> Path:
    """Return the file of the record of a subject; any name makes a safe file name."""
    return out / "subjects" / (quote(subject, safe=" ()") + SUFFIX)


def skeleton_path(out: Path, subject: str) -> Path:
    """Return the file of a subject's skeleton."""
    name = subject_record_path(out, subject).name.removesuffix(SUFFIX)
    return out / "subjects" / f"{name}.skel.json"


def lock_path(out: Path, subject: str) -> Path:
    """Return the file of the lock on a subject."""
    name = subject_record_path(out, subject).name.removesuffix(SUFFIX)
    return out / ".locks" / f"{name}.lock"


def write_record(path: Path, record: Record) -> None:
    """Write a record in one step; the same record gives the same bytes.

    Raises:
        OutputError: If it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(to_json(asdict(record)), indent=1, sort_keys=True)
    write_atomic({path: [text.encode()]})


def read_record(path: Path) -> Record | None:
    """Return a record; None if there is none that can be read."""
    try:
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def read_records(out: Path) -> Iterator[Record]:
    """Yield all records of a batch, sorted by their paths."""
    for path in sorted(out.rglob("*" + SUFFIX)):
        record = read_record(path)
        if record is not None:
            yield record


def is_current(record: Record | None, key: str, out: Path, *, retry: bool) -> bool:
    """Return whether what a record describes need not be made again.

    Args:
        record: The record, if there is one.
        key: Hash of everything that would be made from now.
        out: Folder of the batch.
        retry: Whether what failed is tried again.
    """
    if record is None or record.key != key or record.state in ("late", "lost"):
        return False
    if record.state == "failed":
        return not retry
    return all(
        _size(out / name) == facts["bytes"] for name, facts in record.outputs.items()
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def describe_outputs(paths: Sequence[Path], out: Path) -> dict[str, dict[str, Any]]:
    """Return bytes and SHA-256 of files, by their path relative to a folder."""
    return {
        path.relative_to(out).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": hash_file(path),
        }
        for path in sorted(paths)
    }


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        OSError: If it cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def make_key(**parts: Any) -> str:
    """Return the SHA-256 of values, independent of the order of names."""
    text = json.dumps(to_json(parts), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def library_versions() -> dict[str, str]:
    """Return the versions that the numbers depend on."""
    versions = {name: version(name) for name in LIBRARIES}
    return versions | {"python": platform.python_version()}
