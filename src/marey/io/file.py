"""A file that is read: its bytes, its facts, its errors and its findings."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np

from marey.anatomy.names import split_subjects
from marey.errors import FormatError, reason
from marey.io import units_axes
from marey.io.notes import Notes, Stage
from marey.io.options import MAX_RATE_HZ, ReadOptions
from marey.io.text.encoding import normalize_text
from marey.motion import Motion
from marey.numerics import Float, geometry
from marey.report import Finding, Severity
from marey.skeleton import Skeleton
from marey.take import Fact, Known, Source, Take

FACT_NAMES = {"unit": "length unit", "up": "up axis", "rate": "frame rate"}


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

    def source(
        self,
        facts: Facts,
        parameters: Mapping[str, Any] | None,
        parents: Mapping[str, str] | None = None,
    ) -> Source:
        """Return the record of where a take came from.

        Args:
            facts: Unit, up axis and rate of the file.
            parameters: What else the file says of itself.
            parents: Parent of each sensor, if the file states a hierarchy.
        """
        return Source(
            path=str(self.path),
            format=self.format,
            sha256=hash_file(self.path),
            others=dict(self.others),
            unit=facts.unit,
            up=facts.up,
            rate=facts.rate,
            findings=tuple(self.findings),
            parents=parents or {},
            parameters=parameters or {},
        )

    def take(
        self,
        facts: Facts,
        *,
        points: Float[np.ndarray, "frame marker 3"] | None = None,
        markers: Sequence[str] = (),
        T_world_sensor: Float[np.ndarray, "frame sensor 4 4"] | None = None,
        parameters: Mapping[str, Any] | None = None,
        parents: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Take:
        """Return a take of positions and poses in the unit and axes of the file.

        Args:
            facts: Unit, up axis and rate of the file.
            points: Positions of markers, if there are any.
            markers: Their names, which may begin with their subject: "JOE:RTHI".
            T_world_sensor: Poses of sensors, if there are any.
            parameters: What else the file says of itself.
            parents: Parent of each sensor, if the file states a hierarchy.
            **fields: Other fields of the take.
        """
        if points is not None:
            fields["points"] = facts.points(points)
        if markers:
            fields["labels"], fields["subjects"] = split_subjects(markers)
        if T_world_sensor is not None:
            fields["T_world_sensor"] = facts.poses(T_world_sensor)
        source = self.source(facts, parameters, parents)
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
