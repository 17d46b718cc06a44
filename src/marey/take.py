"""A recording: markers and sensors over time, and where they came from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from marey.errors import DataError
from marey.report import Finding

Known = Literal["stated", "given", "inferred", "assumed"]


@dataclass(frozen=True, slots=True)
class Fact:
    """Something known about a recording, and how it is known."""

    value: str
    """The fact itself: "mm", "y", "120"."""

    how: Known
    """"stated" by the file, "given" by the caller, "inferred" from the data, or
    "assumed" because nothing says it."""

    note: str = ""
    """Where it stands or why it was assumed: "POINT:UNITS"."""

    def __str__(self) -> str:
        return f"{self.value} ({self.how}{': ' + self.note if self.note else ''})"


UNKNOWN = Fact("", "assumed")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a recording came from, and what was found in the file."""

    path: str = ""
    """The file as it was given; "" for data made in memory."""

    format: str = ""
    """Name of the format, one of `marey.formats()`."""

    sha256: str = ""
    """Hash of the file's bytes, hexadecimal."""

    unit: Fact = UNKNOWN
    """Length unit of the file."""

    up: Fact = UNKNOWN
    """The file's axis that points up: "x", "y", "z", "-x", "-y" or "-z"."""

    rate: Fact = UNKNOWN
    """Frame rate in hertz."""

    findings: tuple[Finding, ...] = ()
    """What reading met: frames missing, labels repeated, points left out."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    """What else the file says of itself, in the words of its format."""


@dataclass(frozen=True, slots=True)
class Event:
    """A named moment of a recording, such as a foot strike."""

    label: str
    context: str
    """The side or subject it belongs to: "Left", "Right", "General" or ""."""

    time: float
    """Seconds on the clock of the take (see `Take.start`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Analog:
    """Channels recorded beside the motion: force plates, EMG."""

    values: Float[np.ndarray, "sample channel"] = field(
        default_factory=lambda: np.zeros((0, 0))
    )
    labels: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    rate: float = 0.0
    """Samples per second."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Take:
    """One recording in metres, seconds and a right-handed world with +Z up.

    Optical markers stand in `points`, 6-DoF sensors in `T_world_sensor`; a take may
    hold either or both. Missing is NaN in all components, never zero.
    """

    rate: float
    """Frames per second."""

    points: Float[np.ndarray, "frame marker 3"] = field(
        default_factory=lambda: np.zeros((0, 0, 3))
    )
    """Marker positions in the world, in metres. NaN where a marker was not seen."""

    labels: tuple[str, ...] = ()
    """One label per marker, without the subject's name."""

    subjects: tuple[str, ...] = ()
    """One subject per marker: "JOE" of "JOE:RTHI", "" where the file names none."""

    filled: Bool[np.ndarray, "frame marker"] = field(
        default_factory=lambda: np.zeros((0, 0), dtype=bool)
    )
    """Which values were put in by cleaning rather than measured."""

    T_world_sensor: Float[np.ndarray, "frame sensor 4 4"] = field(
        default_factory=lambda: np.zeros((0, 0, 4, 4))
    )
    """Pose of each 6-DoF sensor, in metres. NaN where it was not seen."""

    sensor_names: tuple[str, ...] = ()
    start: float = 0.0
    """Time of the first frame in seconds, on the clock of the events."""

    events: tuple[Event, ...] = ()
    analog: Analog = field(default_factory=Analog)
    """Analog channels; empty unless asked for."""

    source: Source = field(default_factory=Source)
    history: tuple[str, ...] = ()
    """What was done to the recording since it was read, oldest first."""

    def __post_init__(self) -> None:
        n_frames = max(len(self.points), len(self.T_world_sensor))
        _fill_empty(self, "points", (n_frames, 0, 3), float)
        _fill_empty(self, "T_world_sensor", (n_frames, 0, 4, 4), float)
        _fill_empty(self, "filled", self.points.shape[:2], bool)
        if not self.subjects:
            object.__setattr__(self, "subjects", ("",) * len(self.labels))
        self._check()

    def _check(self) -> None:
        sizes = {
            "points": (len(self.points), len(self.labels)),
            "filled": (len(self.points), len(self.labels)),
            "T_world_sensor": (len(self.points), len(self.sensor_names)),
        }
        for name, size in sizes.items():
            found = getattr(self, name).shape[:2]
            if found != size:
                raise DataError(f"take.{name}", found=found, needed=size)
        if len(self.subjects) != len(self.labels):
            raise DataError(
                "take.subjects", found=len(self.subjects), needed=len(self.labels)
            )
        if not (np.isfinite(self.rate) and self.rate > 0.0):
            raise DataError(
                "take.rate", found=self.rate, needed="a positive number, Hz"
            )

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return len(self.points)

    @property
    def times(self) -> Float[np.ndarray, " frame"]:
        """Time of each frame in seconds, beginning at `start`."""
        return self.start + np.arange(self.n_frames) / self.rate

    @property
    def duration(self) -> float:
        """Seconds between the first and the last frame."""
        return max(self.n_frames - 1, 0) / self.rate

    @property
    def seen(self) -> Bool[np.ndarray, "frame marker"]:
        """Whether each marker has a position in each frame."""
        return np.asarray(np.isfinite(self.points).all(axis=-1))

    @property
    def sensor_seen(self) -> Bool[np.ndarray, "frame sensor"]:
        """Whether each sensor has a pose in each frame."""
        return np.asarray(np.isfinite(self.T_world_sensor).all(axis=(-1, -2)))

    @property
    def full_labels(self) -> tuple[str, ...]:
        """Labels with their subjects, "JOE:RTHI", as files write them."""
        return tuple(
            f"{subject}:{label}" if subject else label
            for subject, label in zip(self.subjects, self.labels, strict=True)
        )

    def cut(self, start: int, stop: int) -> "Take":
        """Return frames `start` up to but not including `stop`, on the same clock."""
        if not 0 <= start < stop <= self.n_frames:
            raise DataError(
                f"frames {start}:{stop}",
                found=f"a take of {self.n_frames} frames",
                needed=f"0 <= start < stop <= {self.n_frames}",
            )
        return replace(
            self,
            points=self.points[start:stop],
            filled=self.filled[start:stop],
            T_world_sensor=self.T_world_sensor[start:stop],
            start=self.start + start / self.rate,
            analog=self._cut_analog(start, stop),
            history=(*self.history, f"cut to frames {start}:{stop}"),
        )

    def _cut_analog(self, start: int, stop: int) -> Analog:
        samples = self.analog.rate / self.rate
        keep = slice(round(start * samples), round(stop * samples))
        return replace(self.analog, values=self.analog.values[keep])

    def select(self, markers: Sequence[int]) -> "Take":
        """Return the take with only these markers, by index and in this order."""
        index = list(markers)
        return replace(
            self,
            points=self.points[:, index],
            filled=self.filled[:, index],
            labels=tuple(self.labels[i] for i in index),
            subjects=tuple(self.subjects[i] for i in index),
            history=(*self.history, f"kept {len(index)} of {len(self.labels)} markers"),
        )


def _fill_empty(take: Take, name: str, shape: tuple[int, ...], dtype: type) -> None:
    """Give an empty field the frame count of the others."""
    if getattr(take, name).size == 0:
        object.__setattr__(take, name, np.zeros(shape, dtype=dtype))
