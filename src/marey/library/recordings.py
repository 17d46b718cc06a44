"""The recordings of a library: which files of a folder they are, and whose.

A recording is known by its path relative to the library, in the spelling of POSIX.
"""

import csv
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from marey.errors import DataError, FormatError, MareyError, OptionError, reason
from marey.io import read, recognise
from marey.io.contract import Format
from marey.io.formats import npz
from marey.io.registry import formats
from marey.io.text.encoding import decode_text, normalize_text
from marey.library.records import SUFFIX

READERS = ("read_take", "read_motion")

SHARED_SUFFIXES = frozenset(
    (".csv", ".txt", ".tsv", ".json", ".xml", ".npz", ".html", ".parquet", ".h5")
)
"""Suffixes of many kinds of files, which are recordings only by their content."""

NUMBERED = re.compile(r"(?P<subject>.+?)[ _-]*\d+")
"""File names such as "02_01" or "anna-walk-3": a name, and the number of a take."""


@dataclass(frozen=True, slots=True)
class LibraryTake:
    """A recording of a library."""

    name: str
    """Path relative to the library."""

    subject: str
    """Whose it is; takes of one subject share a skeleton."""


def find_recordings(
    library: Path, *, patterns: Sequence[str] = (), without: Path | None = None
) -> list[str]:
    """Return the recordings below a folder, by relative path, sorted.

    Hidden files and folders and results of other batches are left out, and so are
    motions (BVH, AMC) beside a recording of the same name: they are its solution by
    another program. Files that are one frame each are one recording, by the name of the
    first. Links to folders are followed, each folder once. What cannot be
    read is listed, so that it fails with its reason: files, links that lead nowhere,
    and folders, whose names end with a slash.

    Args:
        library: The folder.
        patterns: Take only files whose name or relative path matches one of these, such
            as `*.c3d`; empty takes all.
        without: A folder to leave out, such as the output.

    Raises:
        DataError: If there is no such folder, or no recording in it.
    """
    if not library.is_dir():
        raise DataError(
            "library", found=f"no folder {library}", needed="a folder of recordings"
        )
    suffixes = _suffixes(*READERS)
    closed: list[str] = []
    found = [
        path.relative_to(library).as_posix()
        for path in _walk(library, without.resolve() if without else None, closed)
        if path.name.lower().endswith(suffixes)
    ]
    chosen = [
        name
        for name in found
        if not patterns or any(_matches(name, pattern) for pattern in patterns)
    ]
    recordings = list(_without_later_frames(library, chosen))
    if not recordings and not closed:
        asked = f" like {', '.join(patterns)}" if patterns else ""
        raise DataError(
            "library",
            found=f"no recording{asked} below {library}",
            needed="files of a known format (`marey doctor` lists them)",
        )
    return sorted([*_without_solutions(recordings), *closed])


def _suffixes(*readers: str) -> tuple[str, ...]:
    """Return the suffixes of the formats that have one of these readers."""
    return tuple(
        suffix
        for known in formats()
        if any(getattr(known, reader) for reader in readers)
        for suffix in known.suffixes
    )


def _without_solutions(names: Sequence[str]) -> list[str]:
    """Return names without motions beside a recording of the same name."""
    motions = _suffixes("read_motion")
    solved = {name for name in names if name.lower().endswith(motions)}
    measured = {_stem(name) for name in set(names) - solved}
    return [n for n in names if n not in solved or _stem(n) not in measured]


def _stem(name: str) -> str:
    folder, slash, file = name.rpartition("/")
    return folder + slash + file.partition(".")[0]


def _walk(library: Path, without: Path | None, closed: list[str]) -> Iterator[Path]:
    """Yield the files below a folder; a circle of links ends where it closes.

    Args:
        library: The folder.
        without: A folder to leave out.
        closed: Gets the folders that cannot be listed, by relative path.
    """

    def note(error: OSError) -> None:
        closed.append(Path(error.filename).relative_to(library).as_posix() + "/")

    visited: set[Path] = set()
    for folder, folders, files in os.walk(library, onerror=note, followlinks=True):
        real = Path(folder).resolve()
        if real in visited or real == without or _has_results(real, folders):
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(folder) / name
            if not name.startswith(".") and _is_file(path):
                yield path


def _has_results(folder: Path, folders: Sequence[str]) -> bool:
    """Return whether a folder holds the results of a batch."""
    subjects = folder / "subjects"
    return subjects.name in folders and any(subjects.glob("*" + SUFFIX))


def _is_file(path: Path) -> bool:
    """Return whether a path is a file, or might be one: it cannot be looked at."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return True


def _matches(name: str, pattern: str) -> bool:
    """Return whether a relative path or its file name is a pattern, or matches it."""
    names = (name, name.rpartition("/")[2])
    return pattern in names or any(fnmatchcase(one, pattern) for one in names)


def _without_later_frames(library: Path, names: Sequence[str]) -> Iterator[str]:
    """Yield the names that may be recordings; of files that are a frame each the first.

    Files of a sequence are not opened when its first is known.
    """
    known_formats = [known for known in formats() if known.sequence]
    begun: set[tuple[str, ...]] = set()
    for name in names:
        sequences = {_sequence(name, known): known for known in known_formats}
        sequences.pop((), None)
        path = library / name
        if begun.isdisjoint(sequences) and _may_be_one(path):
            begun.update(
                s for s, known in sequences.items() if _has_format(path, known)
            )
            yield name


def _sequence(name: str, known: Format) -> tuple[str, ...]:
    """Return the sequence that a file belongs to by its name; () if none."""
    folder, _, file = name.rpartition("/")
    found = known.sequence.fullmatch(file) if known.sequence else None
    if found is None:
        return ()
    start, end = found.span("number")
    return known.name, folder, file[:start], file[end:]


def _has_format(path: Path, known: Format) -> bool:
    with suppress(FormatError):
        return recognise(path, READERS) is known
    return False


def _may_be_one(path: Path) -> bool:
    """Return whether to try a file: its suffix says so, or else its content."""
    if path.suffix.lower() not in SHARED_SUFFIXES or not os.access(path, os.R_OK):
        return True
    with suppress(FormatError):
        is_archive = recognise(path, READERS) is npz.FORMAT
        return not is_archive or npz.may_be_take(path)
    return False


# --- subjects -------------------------------------------------------------------------


FROM_FILE = "file"
"""The rule that asks the files themselves whose they are."""


def group_by_subject(
    names: Sequence[str],
    *,
    pattern: str = "",
    table: Path | None = None,
    library: Path = Path(),
) -> list[LibraryTake]:
    """Return the subject of every recording.

    Args:
        names: Relative paths of the recordings.
        pattern: Regular expression that is searched for in the path; its group
            "subject", or its first group, is the subject. "file": the subject that the
            file names, or else its folder.
        table: A CSV with the columns `take` and `subject`, or a TOML with
            `[subjects]` and lists of takes by subject. Takes are paths or patterns such
            as `S01/*`. It comes before the pattern.
        library: Folder of the recordings, if the files are asked.

    Without either, takes of one folder are of one subject, and those of the library's
    own folder go by their names without the number at the end: "02_01" is of "02".

    Raises:
        OptionError: If the pattern is no regular expression with a group, the table
            cannot be read, or neither says whose a recording is.
    """
    rows = read_subject_table(table) if table else []
    find = _subject_rule(pattern, library, is_last=not table)
    takes = [
        LibraryTake(name, _subject_in_rows(name, rows) or find(name)) for name in names
    ]
    unknown = [take.name for take in takes if not take.subject]
    if unknown:
        raise OptionError(
            "subjects" if table else "subject_from",
            found=f"no subject for {len(unknown)} recordings: {', '.join(unknown[:5])}",
            needed="a rule that names the subject of every recording, or a --pattern "
            "that leaves these out",
        )
    return takes


def _subject_rule(
    pattern: str, library: Path, *, is_last: bool
) -> Callable[[str], str]:
    """Return the function that finds a subject by a pattern, by the file or its path.

    Args:
        pattern: As `group_by_subject` takes it.
        library: Folder of the recordings.
        is_last: Whether no table says more, so that the path decides.
    """
    if pattern == FROM_FILE:
        return lambda name: _subject_in_file(library / name) or _subject_of_path(name)
    if pattern:
        search = _compile_pattern(pattern)
        return lambda name: _first_group(search.search(name))
    return _subject_of_path if is_last else lambda _: ""


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        found = f"{pattern!r}: {error}"
        needed = "a regular expression"
        raise OptionError("subject_from", found=found, needed=needed) from None
    if not compiled.groups:
        needed = "a group for the subject, such as (S[0-9]+)/"
        raise OptionError("subject_from", found=pattern, needed=needed)
    return compiled


def _subject_in_rows(name: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return the subject of a recording by the rows of a table; "" if none."""
    return next((who for pattern, who in rows if _matches(name, pattern)), "")


def _first_group(found: "re.Match[str] | None") -> str:
    if found is None:
        return ""
    named = found.groupdict().get("subject")
    return named or next((text for text in found.groups() if text), "")


def _subject_in_file(path: Path) -> str:
    """Return the only subject that the labels of a file name; "" if none or several."""
    try:
        names = {name for name in read(path).subjects if name}
    except MareyError:
        return ""
    return names.pop() if len(names) == 1 else ""


def _subject_of_path(name: str) -> str:
    folder, _, file = name.rpartition("/")
    if folder:
        return folder
    stem = file.partition(".")[0]
    numbered = NUMBERED.fullmatch(stem)
    return numbered["subject"] if numbered else stem


def read_subject_table(path: Path) -> list[tuple[str, str]]:
    """Return (pattern of takes, subject) of a CSV or TOML, in the order of the file.

    A CSV has commas, semicolons or tabs, in any encoding of spreadsheets.

    Raises:
        OptionError: If it is not such a table.
    """
    needed = "a CSV with the columns take, subject, or a TOML with [subjects]"
    try:
        text = decode_text(normalize_text(path.read_bytes()))
        is_toml = path.suffix.lower() == ".toml"
        rows = list(_toml_rows(text) if is_toml else _csv_rows(text))
    except OSError as error:
        found = f"{path}: {reason(error)}"
        raise OptionError("subjects", found=found, needed=needed) from None
    except ValueError as error:
        found = f"{path}: {error}"
        raise OptionError("subjects", found=found, needed=needed) from None
    return rows


def unused_rows(takes: Sequence[LibraryTake], table: Path) -> list[str]:
    """Return the patterns of a table of subjects that are of no recording.

    Raises:
        OptionError: If the table cannot be read.
    """
    patterns = [pattern for pattern, _ in read_subject_table(table)]
    names = [take.name for take in takes]
    return [p for p in patterns if not any(_matches(name, p) for name in names)]


def _csv_rows(text: str) -> Iterator[tuple[str, str]]:
    """Yield (pattern of takes, subject) of a CSV; empty rows are left out.

    Raises:
        ValueError: If it has no such columns, or one of them is empty in a row.
    """
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    table = csv.DictReader(text.splitlines(), delimiter=delimiter)
    columns = [name.strip().lower() for name in table.fieldnames or ()]
    if not {"take", "subject"} <= set(columns):
        raise ValueError(f"columns {', '.join(columns) or 'none'}")
    table.fieldnames = columns
    for row in table:
        take, subject = ((row[name] or "").strip() for name in ("take", "subject"))
        if take and subject:
            yield take, subject
        elif take or subject:
            raise ValueError(f"an empty cell in line {table.line_num}")


def _toml_rows(text: str) -> Iterator[tuple[str, str]]:
    """Yield (pattern of takes, subject) of a TOML.

    Raises:
        ValueError: If it has no table of lists.
    """
    table = tomllib.loads(text).get("subjects")
    if not isinstance(table, dict):
        raise ValueError("no [subjects]")
    for subject, takes in table.items():
        takes = [takes] if isinstance(takes, str) else takes
        if not isinstance(takes, list) or not all(
            t and isinstance(t, str) for t in takes
        ):
            raise ValueError(f"{subject} is no list of takes")
        yield from ((take, subject) for take in takes)
