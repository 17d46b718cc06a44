"""Whether the outputs of a batch are what its records say."""

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from marey.errors import DataError
from marey.library.records import hash_file, read_records


@dataclass(slots=True)
class Verification:
    """The outputs of a batch against its records."""

    whole: int = 0
    """Number of outputs that are as recorded."""

    missing: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    """Outputs whose content is not the recorded one."""

    failed: dict[str, str] = field(default_factory=dict)
    """Takes that have no output, and why."""

    @property
    def is_whole(self) -> bool:
        """Whether every recorded output is there unchanged."""
        return not (self.missing or self.changed)


def verify_batch(out: str | PathLike[str]) -> Verification:
    """Compare every output of a batch with its recorded hash.

    Args:
        out: Folder of the batch.

    Raises:
        DataError: If it has no records.
    """
    folder, found = Path(out), Verification()
    records = list(read_records(folder))
    if not records:
        raise DataError(
            "out", found=f"no records in {folder}", needed="a folder of `marey batch`"
        )
    for record in records:
        if record.state != "done":
            found.failed[record.name] = record.error
        for name, facts in record.outputs.items():
            _check(folder / name, name, facts["sha256"], found)
    return found


def _check(path: Path, name: str, sha256: str, found: Verification) -> None:
    try:
        is_same = hash_file(path) == sha256
    except OSError:
        found.missing.append(name)
        return
    if is_same:
        found.whole += 1
    else:
        found.changed.append(name)
