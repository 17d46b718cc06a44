"""The contract of a file format: one file, one `FORMAT`, one line in the registry."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn, SupportsFloat

import numpy as np

from marey.errors import FormatError, OptionError, reason
from marey.io import units_axes
from marey.io.text.encoding import normalize_text
from marey.motion import Motion
from marey.numerics import Float, geometry
from marey.options import Options, number
from marey.report import Finding, Severity
from marey.skeleton import Skeleton
from marey.solution import Solution
from marey.take import Fact, Known, Source, Take

SNIFF_BYTES = 65536
"""Bytes of a file that a format inspects to recognise it."""

MAX_RATE_HZ = 1e6
"""Largest frame rate in hertz; larger rates are damage."""

SHOWN_BY = {
    "markers": "a scene such as glb, usda or fbx, which has markers as objects",
    "truth": "html: a page shows it",
    "measured": "html: a page shows it",
}
"""Options of writing that few formats show, and which do."""

PROVENANCE_WIDTH = 100
"""Characters of a line of provenance in a comment."""

FACT_NAMES = {"unit": "length unit", "up": "up axis", "rate": "frame rate"}

Stage = Literal["read", "write"]

Chunks = Iterable[bytes]
Output = Mapping[str, Chunks]
"""What a writer returns: the bytes of each file by suffix; "" is the path asked for."""


class Notes:
    """What keeps the findings of reading or writing a file."""

    __slots__ = ()
    stage: ClassVar[Stage]
    findings: list[Finding]

    def note(
        self,
        code: str,
        message: str,
        *,
        severity: Severity = "warning",
        subject: str = "",
        value: SupportsFloat = float("nan"),
    ) -> None:
        """Add a finding, which the caller gets: see `findings`."""
        number = float(value)
        self.findings.append(
            Finding(code, self.stage, severity, message, subject=subject, value=number)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldOptions(Options):
    """Unit and up axis of a file; None means that the file or the format decides."""

    unit: str | None = None
    """Length unit: "mm", "cm", "m", "in", "ft"."""

    up: str | None = None
    """Axis of the file that points up: "x", "y", "z", "-x", "-y", "-z"."""

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        if self.unit is not None:
            units_axes.metres_per_unit(self.unit)
        if self.up is not None:
            units_axes.rotation_to_z_up(self.up)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(WorldOptions):
    """Facts that the caller gives about a file, overriding what the file says."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions(WorldOptions, Notes):
    """How to write."""

    stage: ClassVar[Stage] = "write"

    truth: Sequence[Motion] = ()
    """True motions to compare with, for a page."""

    measured: Mapping[str, float] = field(default_factory=dict)
    """Bone lengths by tape measure, in metres by joint, for a page."""

    markers: bool = False
    """Also write the markers, for a scene (glTF, USD, FBX)."""

    provenance: Mapping[str, Any] = field(default_factory=dict)
    """From what the thing was made, as values of JSON."""

    suffix: str = ""
    """Suffix of the file in lower case, for a format that has several forms."""

    findings: list[Finding] = field(default_factory=list)
    """What the writer changed or could not hold; `marey.write` returns it."""

    def provenance_text(self) -> str:
        """Return the provenance as JSON in ASCII, "" if there is none."""
        return json.dumps(self.provenance, sort_keys=True) if self.provenance else ""

    def provenance_lines(self) -> list[str]:
        """Return the provenance as JSON in lines for comments; [] if there is none.

        Joined as they are, they are the JSON: they hold no blanks, which many formats
        strip, and programs read lines of this length whole.
        """
        if not self.provenance:
            return []
        text = json.dumps(self.provenance, sort_keys=True, separators=(",", ":"))
        text = text.replace(" ", "\\u0020")
        return [
            text[i : i + PROVENANCE_WIDTH]
            for i in range(0, len(text), PROVENANCE_WIDTH)
        ]

    def world(
        self, unit: str, up: str, source: Source | None = None, name: str = ""
    ) -> tuple[str, str]:
        """Return unit and up axis of the file to write.

        Args:
            unit: Unit of the format, when none was asked for.
            up: Up axis of the format, when none was asked for.
            source: Where the thing came from; unit and axis of a file are kept if it
                had the format of this name.
            name: Name of the format.
        """
        if source is not None and source.format == name:
            unit, up = source.unit.value or unit, source.up.value or up
        return self.unit or unit, self.up or up

    def check_world(self, unit: str, up: str) -> None:
        """Refuse another unit or up axis than the only one of a format.

        Raises:
            OptionError: If another was asked for.
        """
        if self.unit not in (None, unit) or self.up not in (None, up):
            raise OptionError(
                "unit, up",
                found=(self.unit, self.up),
                needed=f"{unit} and {up}: this format has no other",
            )

    def check_shown(self, format: "Format") -> None:
        """Refuse options that a format does not show.

        Raises:
            OptionError: If one of them is given.
        """
        for name, needed in SHOWN_BY.items():
            value = getattr(self, name)
            is_given = value if isinstance(value, bool) else len(value) > 0
            if is_given and name not in format.shows:
                raise OptionError(name, found=format.name, needed=needed)


@dataclass(frozen=True, slots=True, eq=False)
class QuantityTable:
    """Columns of numbers over time that are no recording, such as joint angles."""

    names: tuple[str, ...]
    """One name per column; the first is the time."""

    values: Float[np.ndarray, "frame column"]
    """NaN where a value is not known."""

    units: tuple[str, ...]
    """One unit per column: "s", "deg", "m"."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a file's numbers; every reader decides all three."""

    unit: Fact
    up: Fact
    rate: Fact

    @property
    def hertz(self) -> float:
        """Frames per second."""
        return float(self.rate.value)

    def points(
        self, points: Float[np.ndarray, "*batch 3"]
    ) -> Float[np.ndarray, "*batch 3"]:
        """Return points of the file in metres and +Z up; the array may be reused."""
        return units_axes.points_from_file(points, self.unit.value, self.up.value)

    def poses(
        self, T: Float[np.ndarray, "*batch 4 4"]
    ) -> Float[np.ndarray, "*batch 4 4"]:
        """Return poses of the file in marey's world."""
        return units_axes.poses_from_file(T, self.unit.value, self.up.value)


@dataclass(frozen=True, slots=True)
class File(Notes):
    """A file being read: its bytes, errors and findings."""

    stage: ClassVar[Stage] = "read"

    path: Path
    format: str
    options: ReadOptions = field(default_factory=ReadOptions)
    findings: list[Finding] = field(default_factory=list)
    """What was found; it ends in `take.source.findings`."""

    others: dict[str, str] = field(default_factory=dict)
    """Hash of each further file that is read, by its path: see `open_other`."""

    @property
    def size(self) -> int:
        """Length in bytes."""
        return self.path.stat().st_size

    def content(self) -> bytes:
        """Return the whole file."""
        return self.path.read_bytes()

    def open_other(self, path: Path) -> "File":
        """Return another file that belongs to this one, to read it, and keep its hash.

        Raises:
            FormatError: If it cannot be read.
        """
        try:
            self.others[str(path)] = hash_file(path)
        except OSError as error:
            self.fail(f"a readable file {path.name}", reason(error), cause=error)
        return File(path, self.format, self.options, self.findings)

    def text(self) -> bytes:
        r"""Return the whole file as UTF-8 bytes with \n line ends and no BOM."""
        return normalize_text(self.content())

    def fail(
        self,
        expected: str,
        found: object,
        *,
        line: int | None = None,
        byte: int | None = None,
        cause: BaseException | None = None,
    ) -> NoReturn:
        """Raise the error that names this file and a line, from 1, or a byte, from 0.

        Args:
            expected: What should stand there.
            found: What does.
            line: Number of the line, when it is known.
            byte: Offset of the byte, when it is known and no line is.
            cause: The error that showed it.
        """
        raise FormatError(
            self.path,
            byte if line is None else line,
            expected=expected,
            found=str(found),
            format=self.format,
            counted="byte" if line is None else "line",
        ) from cause

    def note_count(
        self, code: str, count: int, message: str, *, severity: Severity = "warning"
    ) -> None:
        """Add a finding about a number of things, unless there are none.

        Args:
            code: Code of the finding.
            count: How many there are; the value of the finding.
            message: The finding in words, with {} in place of the count.
            severity: Its severity.
        """
        if count:
            text = message.format(count)
            self.note(code, text, severity=severity, value=count)

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
            f"the file {statement} its {FACT_NAMES[what]}: {assumed} is assumed; "
            f"give {what}= if that is wrong",
            subject=what,
        )
        return Fact(assumed, "assumed", note)

    def source(self, facts: Facts, parameters: Mapping[str, Any] | None) -> Source:
        """Return the record of where a take came from."""
        return Source(
            path=str(self.path),
            format=self.format,
            sha256=hash_file(self.path),
            others=dict(self.others),
            unit=facts.unit,
            up=facts.up,
            rate=facts.rate,
            findings=tuple(self.findings),
            parameters=parameters or {},
        )

    def take(
        self,
        facts: Facts,
        *,
        points: Float[np.ndarray, "frame marker 3"] | None = None,
        T_world_sensor: Float[np.ndarray, "frame sensor 4 4"] | None = None,
        parameters: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Take:
        """Return a take of positions and poses in the unit and axes of the file.

        Args:
            facts: Unit, up axis and rate of the file.
            points: Positions of markers, if there are any.
            T_world_sensor: Poses of sensors, if there are any.
            parameters: What else the file says of itself.
            **fields: Other fields of the take.
        """
        if points is not None:
            fields["points"] = facts.points(points)
        if T_world_sensor is not None:
            fields["T_world_sensor"] = facts.poses(T_world_sensor)
        source = self.source(facts, parameters)
        return Take(rate=facts.hertz, source=source, **fields)

    def motion(
        self,
        facts: Facts,
        skeleton: Skeleton,
        root: Float[np.ndarray, "#frame 3"],
        wxyz: Float[np.ndarray, "frame joint 4"],
        *,
        start: float = 0.0,
        parameters: Mapping[str, Any] | None = None,
    ) -> Motion:
        """Return the motion of a skeleton, in marey's world already.

        Args:
            facts: Unit, up axis and rate of the file.
            skeleton: The bones.
            root: Positions of the root in metres.
            wxyz: Rotations of all joints.
            start: Time of the first frame in seconds.
            parameters: What else the file says of itself.
        """
        R = geometry.matrix_from_quat(wxyz[:, 0])
        return Motion(
            skeleton=skeleton,
            T_world_root=geometry.transform(R, root),
            wxyz=wxyz,
            rate=facts.hertz,
            start=start,
            source=self.source(facts, parameters),
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
    write_table: Callable[[QuantityTable, WriteOptions], Output] | None = None
    sequence: re.Pattern[str] | None = None
    """Names of files that are one frame each; those that differ only in its group
    "number" are one recording."""

    companions: tuple[str, ...] = ()
    """Suffixes of the files that a solution with markers gets beside the named one."""

    one_subject: bool = False
    """Whether `write_solution` holds one subject in one take and no more."""

    renames: bool = False
    """Whether the joints of a solution may have the names of another program."""

    shows: tuple[str, ...] = ()
    """Options of `SHOWN_BY` that a written file shows."""

    loses: tuple[str, ...] = ()
    """What the format cannot hold, by the keys of `losses.DESCRIPTIONS`."""

    precision: float = 0.0
    """Largest rounding of a written length, in metres."""

    import_packages: Callable[[], object] | None = None
    """Imports the optional packages that writing needs; raises `MissingExtraError`."""

    @property
    def reads(self) -> bool:
        """Whether files of this format can be read, and not only written."""
        return any((self.read_take, self.read_motion, self.read_skeleton))

    @property
    def writes(self) -> bool:
        """Whether files of this format can be written."""
        thing = self.write_motion or self.write_skeleton or self.write_solution
        return bool(self.write_take or thing)


def motion_as_take(
    motion: Motion, T_world_joint: Float[np.ndarray, "frame joint 4 4"] | None = None
) -> Take:
    """Return a motion's joints, without the bone ends, as 6-DoF sensors of a take.

    Args:
        motion: The motion.
        T_world_joint: Where its joints are, if that is not what the bones say.
    """
    T = motion.T_world_joint() if T_world_joint is None else T_world_joint
    keep = ~motion.skeleton.is_end
    return Take(
        rate=motion.rate,
        T_world_sensor=T if keep.all() else T[:, keep],
        sensor_names=tuple(np.array(motion.skeleton.names, dtype=object)[keep]),
        start=motion.start,
        source=motion.source,
    )


def _is_plausible(what: str, stated: str) -> bool:
    """Return whether a stated unit, up axis or rate can be right."""
    if what == "unit":
        return stated in units_axes.METRES_PER_UNIT
    if what == "up":
        return stated in geometry.R_Z_UP
    try:
        return 0.0 < float(stated) <= MAX_RATE_HZ
    except ValueError:
        return False


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
