"""A recording: markers and sensors over time, and where they came from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from marey.errors import DataError
from marey.numerics import Bool, Float, Int, empty_array, geometry
from marey.numerics.procrustes import points_seen, poses_seen
from marey.report import Finding

if TYPE_CHECKING:
    import xarray as xr

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

MAX_COORDINATE_M = 1e9
"""Largest coordinate of a position, in metres; larger ones are no measurements and
count as missing. Far beyond any recording; squares of it do not overflow. Higher
keeps more absurd values. Chosen by hand."""

TIME_ROUNDING = 1e-3
"""Rounding of the times of events, in frames: times written with a few digits may round
to just before their frame. Higher moves more events to the next frame. Chosen by
hand."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a recording came from, and what was found in the file."""

    path: str = ""
    """The file as it was given; "" for data made in memory."""

    format: str = ""
    """Name of the format, one of `marey.formats()`."""

    sha256: str = ""
    """Hash of the file's bytes, hexadecimal."""

    others: Mapping[str, str] = field(default_factory=dict)
    """Hash of each further file that was read with it, by its path: the ASF of an AMC,
    the other frames of a sequence."""

    unit: Fact = UNKNOWN
    """Length unit of the file."""

    up: Fact = UNKNOWN
    """The file's axis that points up: "x", "y", "z", "-x", "-y" or "-z"."""

    rate: Fact = UNKNOWN
    """Frame rate in hertz."""

    findings: tuple[Finding, ...] = ()
    """What reading met, and cleaning after it: frames missing, labels repeated, points
    left out, sensors in error."""

    parents: Mapping[str, str] = field(default_factory=dict)
    """Parent of each sensor in the hierarchy that the file states, by their names."""

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

    values: Float[np.ndarray, "sample channel"] = empty_array(0, 0)
    labels: tuple[str, ...] = ()
    """One label per channel."""

    units: tuple[str, ...] = ()
    """One unit per channel, as the file writes it; "" where it writes none."""

    rate: float = 0.0
    """Samples per second; 0 without channels."""

    def __post_init__(self) -> None:
        if not self.units:
            object.__setattr__(self, "units", ("",) * len(self.labels))
        channels = self.values.shape[1]
        for name in ("labels", "units"):
            _check_count(f"analog.{name}", getattr(self, name), channels)
        if channels:
            _check_rate("analog.rate", self.rate)


@dataclass(frozen=True, slots=True, eq=False)
class Computed:
    """Quantities that the capture software computed: joint angles, moments, powers."""

    values: Float[np.ndarray, "frame quantity 3"] = empty_array(0, 0, 3)
    """Three components of each quantity, as the file has them; NaN where unknown."""

    names: tuple[str, ...] = ()
    """One name per quantity, such as "LKneeAngles"."""

    kinds: tuple[str, ...] = ()
    """What each is: "angle", "force", "moment", "power" or "scalar"."""

    units: tuple[str, ...] = ()
    """One unit per quantity, as the file writes it; "" where it writes none."""

    def __post_init__(self) -> None:
        for name in ("names", "kinds", "units"):
            _check_count(f"computed.{name}", getattr(self, name), self.values.shape[1])

    def __getitem__(self, name: str) -> Float[np.ndarray, "frame 3"]:
        """Return the three components of one quantity over time, in its own unit.

        Raises:
            DataError: If there is none of this name.
        """
        if name not in self.names:
            known = ", ".join(self.names) or "none was stored"
            raise DataError("computed quantity", found=repr(name), needed=known)
        return self.values[:, self.names.index(name)]


class EvenlySampled:
    """Times of frames that follow each other at a constant rate."""

    __slots__ = ()
    rate: float
    start: float

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        raise NotImplementedError

    @property
    def times(self) -> Float[np.ndarray, " frame"]:
        """Time of each frame in seconds, from `start`; NaN where `rate` is."""
        return self.start + np.arange(self.n_frames) / self.rate

    @property
    def duration(self) -> float:
        """Seconds between the first and the last frame."""
        return max(self.n_frames - 1, 0) / self.rate


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Take(EvenlySampled):
    """One recording in metres, seconds and a right-handed world with +Z up.

    Optical markers stand in `points`, 6-DoF sensors in `T_world_sensor`; a take may
    hold either or both. Missing is NaN in all components, never zero: a position or
    pose of which any component is not finite, or beyond `MAX_COORDINATE_M`, counts as
    missing. Arrays of other numbers than 64-bit floats are converted.
    """

    rate: float
    """Frames per second."""

    points: Float[np.ndarray, "frame marker 3"] = empty_array(0, 0, 3)
    """Marker positions in the world, in metres. NaN where a marker was not seen."""

    labels: tuple[str, ...] = ()
    """One label per marker, without the subject's name."""

    subjects: tuple[str, ...] = ()
    """One subject per marker: "JOE" of "JOE:RTHI", "" where the file names none."""

    filled: Bool[np.ndarray, "frame marker"] = empty_array(0, 0, dtype=bool)
    """Which values were put in by cleaning rather than measured."""

    confidence: Float[np.ndarray, "_ _"] = empty_array(0, 0)
    """How sure a tracker of keypoints was of each position, by frame and marker, from
    0 to 1; NaN where nothing says it."""

    T_world_sensor: Float[np.ndarray, "frame sensor 4 4"] = empty_array(0, 0, 4, 4)
    """Pose of each 6-DoF sensor, in metres. NaN where it was not seen."""

    sensor_names: tuple[str, ...] = ()
    start: float = 0.0
    """Time of the first frame in seconds, on the clock of the events."""

    events: tuple[Event, ...] = ()
    analog: Analog = field(default_factory=Analog)
    """Analog channels; empty unless asked for."""

    computed: Computed = field(default_factory=Computed)
    """Angles, moments and powers that the file stores beside the markers."""

    source: Source = field(default_factory=Source)
    history: tuple[str, ...] = ()
    """What was done to the recording since it was read, oldest first."""

    def __post_init__(self) -> None:
        for name in ("points", "T_world_sensor"):
            object.__setattr__(self, name, _as_floats(name, getattr(self, name)))
        n_frames = max(len(self.points), len(self.T_world_sensor))
        if self.points.shape[1] == 0:
            object.__setattr__(self, "points", np.zeros((n_frames, 0, 3)))
        if self.T_world_sensor.shape[1] == 0:
            object.__setattr__(self, "T_world_sensor", np.zeros((n_frames, 0, 4, 4)))
        if self.filled.size == 0:
            filled = np.zeros(self.points.shape[:2], dtype=bool)
            object.__setattr__(self, "filled", filled)
        if not self.subjects:
            object.__setattr__(self, "subjects", ("",) * len(self.labels))
        if np.isnan(self.confidence).all():
            unknown = np.full(self.points.shape[:2], np.nan)
            object.__setattr__(self, "confidence", unknown)
        self._check()
        _mask_missing(self, "points")
        _mask_missing(self, "T_world_sensor")

    def _check(self) -> None:
        """Raise an error if arrays differ in size, or rate or start are no numbers."""
        markers = (len(self.points), len(self.labels))
        sensors = (len(self.points), len(self.sensor_names))
        sizes = {"points": markers, "filled": markers, "T_world_sensor": sensors}
        sizes |= {"confidence": markers}
        for name, size in sizes.items():
            found = getattr(self, name).shape[:2]
            if found != size:
                raise DataError(
                    f"take.{name}", found=_shape(found), needed=_shape(size)
                )
        _check_count("take.subjects", self.subjects, len(self.labels))
        _check_rate("take.rate", self.rate)
        if not np.isfinite(self.start):
            raise DataError("take.start", found=self.start, needed="seconds")

    def __repr__(self) -> str:
        kind, name = type(self).__name__, self.source.path or "no file"
        counts = f"{len(self.labels)} markers, {len(self.sensor_names)} sensors"
        return f"{kind}({name}: {counts}, {self.n_frames} frames at {self.rate:g} Hz)"

    def _repr_html_(self) -> str:
        """Return facts and tables for a notebook."""
        from marey.tables.notebooks import take_to_html

        return take_to_html(self)

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return len(self.points)

    @property
    def seen(self) -> Bool[np.ndarray, "frame marker"]:
        """Whether each marker has a position in each frame."""
        return points_seen(self.points)

    @property
    def sensor_seen(self) -> Bool[np.ndarray, "frame sensor"]:
        """Whether each sensor has a pose in each frame."""
        return poses_seen(self.T_world_sensor)

    @property
    def positions(self) -> Float[np.ndarray, "frame point 3"]:
        """Positions of the markers, then of the sensors, in metres."""
        if not self.sensor_names:
            return self.points
        return np.concatenate([self.points, self.T_world_sensor[..., :3, 3]], axis=1)

    @property
    def measured(self) -> "Take":
        """The take without the values that cleaning filled in."""
        if not self.filled.any():
            return self
        points = np.where(self.filled[..., None], np.nan, self.points)
        return replace(self, points=points, filled=np.zeros_like(self.filled))

    @property
    def full_labels(self) -> tuple[str, ...]:
        """Labels with their subjects, "JOE:RTHI", as files write them."""
        return tuple(
            f"{subject}:{label}" if subject else label
            for subject, label in zip(self.subjects, self.labels, strict=True)
        )

    def to_xarray(self) -> "xr.Dataset":
        """Return a dataset with the dimensions of `movement`.

        `position` (time, space, keypoint, individual) in metres, `rotation` of sensors
        as quaternions w x y z; individuals are the subjects.

        Raises:
            MissingExtraError: If xarray is not installed.
        """
        from marey.tables import take_to_xarray  # xarray is slow to import

        return take_to_xarray(self)

    def with_findings(self, *findings: Finding) -> "Take":
        """Return the take with more findings at its source."""
        found = (*self.source.findings, *findings)
        return replace(self, source=replace(self.source, findings=found))

    def cut(self, start: int, stop: int) -> "Take":
        """Return frames `start` up to but not including `stop`, on the same clock.

        An event goes with the frame at or before it.
        """
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
            confidence=self.confidence[start:stop],
            T_world_sensor=self.T_world_sensor[start:stop],
            start=self.start + start / self.rate,
            events=self._cut_events(start, stop),
            analog=self._cut_analog(start, stop),
            computed=replace(self.computed, values=self.computed.values[start:stop]),
            history=(*self.history, f"cut to frames {start}:{stop}"),
        )

    def _cut_events(self, start: int, stop: int) -> tuple[Event, ...]:
        times = np.array([event.time for event in self.events])
        frame = np.floor((times - self.start) * self.rate + TIME_ROUNDING)
        frame = frame.clip(0, self.n_frames - 1)
        inside = (start <= frame) & (frame < stop)
        return tuple(e for e, keep in zip(self.events, inside, strict=True) if keep)

    def _cut_analog(self, start: int, stop: int) -> Analog:
        samples = self.analog.rate / self.rate
        keep = slice(round(start * samples), round(stop * samples))
        return replace(self.analog, values=self.analog.values[keep])

    def select(self, markers: Sequence[int] | Int[np.ndarray, " kept"]) -> "Take":
        """Return the take with only these markers, by index and in this order."""
        index = [int(i) for i in markers]
        for i in index:
            if not 0 <= i < len(self.labels):
                raise DataError(
                    f"marker {i}",
                    found=f"a take of {len(self.labels)} markers",
                    needed=f"0 <= index < {len(self.labels)}",
                )
        return replace(
            self,
            points=self.points[:, index],
            filled=self.filled[:, index],
            confidence=self.confidence[:, index],
            labels=tuple(self.labels[i] for i in index),
            subjects=tuple(self.subjects[i] for i in index),
            history=(*self.history, f"kept {len(index)} of {len(self.labels)} markers"),
        )


def rotate_take(take: Take, R: Float[np.ndarray, "3 3"]) -> Take:
    """Return the take with its world rotated."""
    T = geometry.transform(R, np.zeros(3)) @ take.T_world_sensor
    return replace(take, points=take.points @ R.T, T_world_sensor=T)


def match_labels(
    wanted: Sequence[str], full_labels: Sequence[str], labels: Sequence[str] = ()
) -> Int[np.ndarray, " wanted"]:
    """Return the index in a recording of each of a skeleton's markers or sensors.

    The whole label is matched first, "JOE:RTHI". If only one of the two names a
    subject, the rest of the label decides: "RTHI" of the skeleton matches the only
    "RTHI" of the take, whatever its subject, and "JOE:RTHI" matches "RTHI" of a take
    without a subject JOE. If both name a subject, the subjects must be equal.

    Args:
        wanted: Labels of the skeleton's markers, or the names of its sensors.
        full_labels: Those of the recording, with subjects.
        labels: The same without subjects; sensors have no others.

    Returns:
        Indices into the recording; -1 where it has no such marker.

    Raises:
        DataError: If a label matches several markers, or several labels match one.
    """
    whole, bare = _positions(full_labels), _positions(labels)
    column = np.full(len(wanted), -1, dtype=np.int64)
    taken: dict[int, str] = {}
    for i, label in enumerate(wanted):
        owner, _, rest = label.rpartition(":")
        unknown = owner and not any(x.startswith(f"{owner}:") for x in full_labels)
        found = whole.get(label) or bare.get(label)
        found = found or (whole.get(rest) if unknown else None) or []
        if len(found) > 1:
            several = ", ".join(full_labels[k] for k in found)
            needed = "one; name the subject in the skeleton's labels, or choose one"
            raise DataError(f"marker {label}", found=several, needed=needed)
        for k in found:
            if k in taken:
                both = f"{taken[k]} and {label}"
                needed = "one marker of the skeleton for each of the take"
                raise DataError(f"marker {full_labels[k]}", found=both, needed=needed)
            column[i], taken[k] = k, label
    return column


def _positions(names: Sequence[str]) -> dict[str, list[int]]:
    """Return the indices at which each name occurs."""
    positions: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        positions.setdefault(name, []).append(i)
    return positions


def _as_floats(name: str, values: np.ndarray) -> Float[np.ndarray, "..."]:
    """Return numbers of any kind as 64-bit floats in the byte order of the machine."""
    if values.dtype == np.float64 and values.dtype.isnative:
        return values
    if values.dtype.kind not in "fiu":
        raise DataError(f"take.{name}", found=f"{values.dtype}", needed="real numbers")
    return np.asarray(values, dtype=np.float64)


def _mask_missing(take: Take, name: str) -> None:
    """Set values of which a component is missing to NaN in all components.

    Infinite and absurd coordinates are reported.
    """
    values = getattr(take, name)
    components = tuple(range(2, values.ndim))
    is_sound = np.abs(values) <= MAX_COORDINATE_M
    if is_sound.all():
        return
    seen = is_sound.all(axis=components)
    if not (seen | np.isnan(values).all(axis=components)).all():
        absurd = ~seen & ~np.isnan(values).any(axis=components)
        if absurd.any():
            findings = (*take.source.findings, _absurd_finding(int(absurd.sum()), name))
            source = replace(take.source, findings=findings)
            object.__setattr__(take, "source", source)
        masked = values.copy()
        masked[~seen] = np.nan
        object.__setattr__(take, name, masked)


def _absurd_finding(count: int, name: str) -> Finding:
    """Return the finding that values are infinite or too large for a measurement."""
    what = "positions" if name == "points" else "poses"
    message = (
        f"{count} {what} are infinite or beyond {MAX_COORDINATE_M / 1e3:.0g} km and "
        "taken as missing: check the export"
    )
    return Finding("coordinates-absurd", "read", "error", message, value=float(count))


def _shape(size: tuple[int, int]) -> str:
    return f"{size[0]} frames x {size[1]}"


def _check_count(name: str, items: tuple[str, ...], needed: int) -> None:
    if len(items) != needed:
        raise DataError(name, found=len(items), needed=needed)


def _check_rate(name: str, rate: float) -> None:
    if not 0.0 < rate < np.inf:
        raise DataError(name, found=rate, needed="a positive number of hertz")
