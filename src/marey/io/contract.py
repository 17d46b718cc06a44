"""The contract of a file format: one file, one `FORMAT`, one line in the registry."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

from marey.errors import FormatError, OptionError
from marey.io.units_axes import (
    METRES_PER_UNIT,
    R_MAREY_FILE,
    metres_per_unit,
    rotation_to_z_up,
)
from marey.motion import Motion
from marey.options import Options, number
from marey.report import Finding, Severity
from marey.skeleton import Skeleton
from marey.solution import Solution
from marey.take import Fact, Known, Source, Take

SNIFF_BYTES = 65536
"""Bytes of a file that a format inspects to recognise it."""

MAX_RATE_HZ = 1e6
"""Largest frame rate in hertz; larger rates are damage."""

BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")
"""First bytes of UTF-16 (little and big endian) and UTF-8 text."""

FACT_NAMES = {"unit": "length unit", "up": "up axis", "rate": "frame rate"}

Chunks = Iterable[bytes]
Output = Mapping[str, Chunks]
"""What a writer returns: the bytes of each file by suffix; "" is the path asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(Options):
    """Facts that the caller gives about a file; None means that the file decides."""

    unit: str | None = None
    """Length unit, overriding what the file says: "mm", "cm", "m", "in", "ft"."""

    up: str | None = None
    """Axis of the file that points up: "x", "y", "z", "-x", "-y", "-z"."""

    rate: float | None = number(None, above=0.0, high=MAX_RATE_HZ)
    """Frames per second, > 0."""

    columns: str | Path | Mapping[str, Any] | None = None
    """Column map of a table (see docs/formats.md): a TOML file or its content."""

    skeleton: str | Path | None = None
    """The ASF file of an AMC."""

    analog: bool = False
    """Also keep analog channels, in `Take.analog`."""

    computed: bool = False
    """Also keep points the capture software computed, as if they were markers."""

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        if self.unit is not None:
            metres_per_unit(self.unit)
        if self.up is not None:
            rotation_to_z_up(self.up)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How to write; None means the default of the format."""

    unit: str | None = None
    """Length unit of the file."""

    up: str | None = None
    """Axis of the file that points up."""

    truth: Sequence[Motion] = ()
    """True motions to compare with, for a page."""

    measured: Mapping[str, float] = field(default_factory=dict)
    """Bone lengths by tape measure, in metres by joint, for a page."""

    def __post_init__(self) -> None:
        if self.unit is not None:
            metres_per_unit(self.unit)
        if self.up is not None:
            rotation_to_z_up(self.up)

    def check_metres_z_up(self) -> None:
        """Refuse another unit or up axis than the only one of a format.

        Raises:
            OptionError: If the unit is not the metre or the up axis is not z.
        """
        if self.unit not in (None, "m") or self.up not in (None, "z"):
            raise OptionError(
                "unit, up",
                found=(self.unit, self.up),
                needed="m and z: this format has no other",
            )

    def check_page_options(self, format: str) -> None:
        """Refuse options that only a page can show.

        Raises:
            OptionError: If the format is no page.
        """
        given = [n for n in ("truth", "measured") if len(getattr(self, n))]
        if given and format != "html":
            raise OptionError(given[0], found=format, needed="html: a page shows it")


@dataclass(frozen=True, slots=True)
class File:
    """A file being read: its bytes, errors and findings."""

    path: Path
    format: str
    options: ReadOptions = field(default_factory=ReadOptions)
    findings: list[Finding] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Length in bytes."""
        return self.path.stat().st_size

    def content(self) -> bytes:
        """Return the whole file."""
        return self.path.read_bytes()

    def text(self) -> bytes:
        r"""Return the whole file as UTF-8 bytes with \n line ends and no BOM."""
        return normalize_text(self.content())

    def error(
        self,
        offset: int | None,
        *,
        expected: str,
        found: str,
        counted: Literal["byte", "line"] = "byte",
    ) -> FormatError:
        """Return the error that names this file and offset, to be raised."""
        return FormatError(
            self.path,
            offset,
            expected=expected,
            found=found,
            format=self.format,
            counted=counted,
        )

    def fail_at_line(self, line: int, *, expected: str, found: str) -> NoReturn:
        """Raise the error that names this file and line, counted from 1."""
        raise self.error(line, expected=expected, found=found, counted="line")

    def note(
        self,
        code: str,
        message: str,
        *,
        severity: Severity = "warning",
        subject: str = "",
        value: float = float("nan"),
    ) -> None:
        """Add a finding; it ends in `take.source.findings`."""
        self.findings.append(
            Finding(code, "read", severity, message, subject=subject, value=value)
        )

    def decide_fact(
        self,
        what: Literal["unit", "up", "rate"],
        *,
        stated: str | None = None,
        assumed: str,
        note: str = "",
        how: Known = "stated",
    ) -> Fact:
        """Return a fact: from the caller, else from the file, else the assumed value.

        Args:
            what: Which of the three facts.
            stated: What the file says, None when it says nothing usable.
            assumed: What to take otherwise; added as a finding.
            note: Where the file says it, or why nothing is known.
            how: "inferred" when `stated` was worked out from the data.
        """
        given = getattr(self.options, what)
        if given is not None:
            return Fact(f"{given:g}" if what == "rate" else given, "given")
        if stated is not None and _is_plausible(what, stated):
            return Fact(stated, how, note)
        statement = "does not say" if stated is None else f"says {stated!r} for"
        self.note(
            f"{what}-assumed",
            f"the file {statement} its {FACT_NAMES[what]}: took {assumed}; "
            f"give {what}= if that is wrong",
            subject=what,
        )
        return Fact(assumed, "assumed", note)

    def source(
        self,
        *,
        unit: Fact,
        up: Fact,
        rate: Fact,
        parameters: Mapping[str, Any] | None = None,
    ) -> Source:
        """Return the record of where a take came from."""
        return Source(
            path=str(self.path),
            format=self.format,
            sha256=hash_file(self.path),
            unit=unit,
            up=up,
            rate=rate,
            findings=tuple(self.findings),
            parameters=parameters or {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A file format: how to recognise, read and write it.

    Readers and writers are plain functions; a format leaves out what it cannot hold. A
    format with `read_motion` alone still gives takes: its joints as 6-DoF sensors.
    """

    name: str
    title: str
    """What people call it, with the software it comes from."""

    suffixes: tuple[str, ...]
    """Lower-case, with the dot; the first one is the usual."""

    sniff: Callable[[bytes], bool]
    """Whether the first `SNIFF_BYTES` bytes of a file are this format."""

    read_take: Callable[[File], Take] | None = None
    read_motion: Callable[[File], Motion] | None = None
    read_skeleton: Callable[[File], Skeleton] | None = None
    write_take: Callable[[Take, WriteOptions], Output] | None = None
    write_motion: Callable[[Motion, WriteOptions], Output] | None = None
    write_skeleton: Callable[[Skeleton, WriteOptions], Output] | None = None
    write_solution: Callable[[Solution, WriteOptions], Output] | None = None
    loses: tuple[str, ...] = ()
    """What the format cannot hold, by the keys of `losses.DESCRIPTIONS`."""

    precision: float = 0.0
    """Largest rounding of a written length, in metres."""

    @property
    def reads(self) -> bool:
        """Whether files of this format can be read, and not only written."""
        return any((self.read_take, self.read_motion, self.read_skeleton))


def _is_plausible(what: str, stated: str) -> bool:
    if what == "unit":
        return stated in METRES_PER_UNIT
    if what == "up":
        return stated in R_MAREY_FILE
    try:
        return 0.0 < float(stated) < MAX_RATE_HZ
    except ValueError:
        return False


def normalize_text(data: bytes) -> bytes:
    r"""Return text as UTF-8 bytes with \n line ends and no byte order mark."""
    if data.startswith(BYTE_ORDER_MARKS[:2]):
        data = data.decode("utf-16", "replace").encode()
    data = data.removeprefix(BYTE_ORDER_MARKS[2])
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data


def decode_text(data: bytes) -> str:
    """Return a name or header line as text: UTF-8, else Latin-1."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
