"""What the caller asks of reading and writing a file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from marey.errors import OptionError
from marey.io import units_axes
from marey.io.notes import Notes, Stage
from marey.io.units_axes import FileWorld
from marey.motion import Motion
from marey.options import Options, number
from marey.report import Finding
from marey.take import Source

MAX_RATE_HZ = 1e6
"""Largest frame rate in hertz; larger rates are damage."""

PROVENANCE_WIDTH = 100
"""Characters of a line of provenance in a comment."""


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
    ) -> FileWorld:
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
        return FileWorld(self.unit or unit, self.up or up)

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
