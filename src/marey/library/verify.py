"""Whether a batch is what its records say: outputs, records and index."""

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from marey.errors import DataError
from marey.io.file import hash_file
from marey.library.index import make_index
from marey.library.records import PARTS, read_records


@dataclass(slots=True)
class Verification:
    """The files of a batch against its records."""

    whole: int = 0
    """Number of outputs that are as recorded."""

    missing: list[str] = field(default_factory=list)
    """Outputs, and files of the index, that are not there."""

    changed: list[str] = field(default_factory=list)
    """Those whose content is not the recorded one, and records that cannot be read."""

    unrecorded: list[str] = field(default_factory=list)
    """Files beside the outputs that no record lists."""

    failed: dict[str, str] = field(default_factory=dict)
    """Takes that have no output, and why."""

    @property
    def is_whole(self) -> bool:
        """Whether every recorded output, and the index, is there unchanged."""
        return not (self.missing or self.changed)


def verify_batch(out: str | PathLike[str]) -> Verification:
    """Compare every output of a batch with its recorded hash, and the index.

    Args:
        out: Folder of the batch.

    Raises:
        DataError: If it has no records.
    """
    folder, found = Path(out), Verification()
    known: set[Path] = set()
    for path, record in read_records(folder):
        known.add(path)
        if record is None:
            found.changed.append(path.relative_to(folder).as_posix())
            continue
        if record.state not in ("done", "gone") and record.kind == "take":
            found.failed[record.name] = record.error
        for name, facts in record.outputs.items():
            known.add(folder / name)
            _check(folder, name, facts["sha256"], found)
    if not known:
        raise DataError(
            "out", found=f"no records in {folder}", needed="a folder of `marey batch`"
        )
    _check_index(folder, found)
    found.unrecorded = [
        path.relative_to(folder).as_posix()
        for part in PARTS
        for path in sorted((folder / part).rglob("*"))
        if path.is_file() and path not in known and not path.name.startswith(".")
    ]
    return found


def _check(folder: Path, name: str, sha256: str, found: Verification) -> None:
    try:
        is_same = hash_file(folder / name) == sha256
    except OSError:
        found.missing.append(name)
        return
    if is_same:
        found.whole += 1
    else:
        found.changed.append(name)


def _check_index(folder: Path, found: Verification) -> None:
    """Compare the index with the one that the records give, but for times."""
    for path, content in make_index(folder).items():
        name = path.relative_to(folder).as_posix()
        if not path.is_file():
            found.missing.append(name)
        elif "timings" not in name and path.read_bytes() != content:
            found.changed.append(name)
