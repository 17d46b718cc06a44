"""The whole content of a C3D file, in the order, unit and axes of the file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from marey.errors import FormatError
from marey.io.file import File
from marey.io.formats.c3d.data import read_analog, read_points, read_poses
from marey.io.formats.c3d.encoding import PROCESSORS, C3dEncoding, Processor
from marey.io.formats.c3d.header import C3dHeader
from marey.io.formats.c3d.layout import C3dLayout, decide_layout
from marey.io.formats.c3d.parameters import (
    BLOCK,
    MAX_BLOCKS,
    C3dParameters,
    parse_parameters,
)
from marey.io.text.encoding import decode_text
from marey.numerics import Float, UInt8
from marey.report import Finding
from marey.take import Event

C3D_KEY = 0x50
_EVENT_KEY = 12345
_MAX_HEADER_EVENTS = 18


@dataclass(frozen=True, slots=True, eq=False)
class C3DFile:
    """A C3D file as it is: nothing renamed, converted or left out."""

    path: str
    processor: str
    """Who wrote its numbers: "intel", "dec" or "mips"."""

    points: Float[np.ndarray, "frame point 3"]
    """In `units`; NaN where a point was not seen."""

    residuals: Float[np.ndarray, "frame point"]
    """Mean distance of the camera rays, in `units`; -1 where not seen."""

    cameras: UInt8[np.ndarray, "frame point"]
    """Which of seven cameras saw the point, one bit each."""

    labels: tuple[str, ...]
    """One per point, "" where the file gives none; may repeat."""

    rate: float
    """Frames per second; 0 when the file does not say."""

    first_frame: int
    last_frame: int
    units: str
    """POINT:UNITS as written."""

    analog: Float[np.ndarray, "sample channel"]
    analog_labels: tuple[str, ...]
    analog_units: tuple[str, ...]
    analog_rate: float
    events: tuple[Event, ...]
    poses: Float[np.ndarray, "frame sensor 4 4"]
    """Poses of the ROTATION group; NaN where not seen."""

    pose_labels: tuple[str, ...]
    parameters: Mapping[str, Mapping[str, Any]]
    """Values by group and name."""

    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class C3dContents:
    """All of a file except its frames."""

    header: bytes
    parameters: C3dParameters
    layout: C3dLayout

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per point, "" where the file gives none."""
        labels = self.parameters.texts("POINT", "LABELS")
        return _pad_texts(labels, self.layout.points)

    @property
    def pose_labels(self) -> tuple[str, ...]:
        """One label per segment of the ROTATION group."""
        labels = self.parameters.texts("ROTATION", "LABELS")
        return _pad_texts(labels, self.layout.poses.segments)

    def channel_texts(self, name: str) -> tuple[str, ...]:
        """Return a list of the ANALOG group with one string per channel."""
        texts = self.parameters.texts("ANALOG", name)
        return _pad_texts(texts, self.layout.channels)


def load(path: str | PathLike[str]) -> C3DFile:
    """Return everything a C3D file holds, in file order and file units.

    For a recording in metres with only the markers, use `marey.read`.

    Raises:
        FormatError: If the file is not a C3D or damaged beyond reading.
    """
    file = File(Path(path), "c3d")
    try:
        contents = open_c3d(file)
    except OSError as error:
        raise FormatError(
            path, expected="a readable file", found=str(error), format="c3d"
        ) from error
    layout, parameters = contents.layout, contents.parameters
    xyz, residuals, cameras = read_points(file.path, layout)
    return C3DFile(
        path=str(file.path),
        processor=layout.encoding.processor,
        points=xyz,
        residuals=residuals,
        cameras=cameras,
        labels=contents.labels,
        rate=layout.rate,
        first_frame=layout.first_frame,
        last_frame=layout.first_frame + layout.frames - 1,
        units=parameters.text("POINT", "UNITS"),
        analog=read_scaled_analog(file, contents),
        analog_labels=contents.channel_texts("LABELS"),
        analog_units=contents.channel_texts("UNITS"),
        analog_rate=layout.rate * layout.samples,
        events=read_events(file, contents),
        poses=read_poses(file.path, layout),
        pose_labels=contents.pose_labels,
        parameters={
            group: {name: parameter.content for name, parameter in members.items()}
            for group, members in parameters.groups.items()
        },
        findings=tuple(file.findings),
    )


def open_c3d(file: File) -> C3dContents:
    """Return header, parameters and layout of a file, its contradictions noted.

    Raises:
        FormatError: If there is no header, or not one frame of those declared.
    """
    with file.path.open("rb") as handle:
        data = handle.read(2 * MAX_BLOCKS * BLOCK)
    if len(data) < BLOCK or data[1] != C3D_KEY:
        file.fail(
            "a header block of 512 bytes with 0x50 as its second",
            f"{len(data)} bytes" if len(data) < BLOCK else f"0x{data[1]:02x}",
            byte=0 if len(data) >= BLOCK else len(data),
        )
    start = _section_start(file, data)
    encoding = _encoding(file, data, start)
    header = C3dHeader.read(data, encoding)
    section_end = start + data[start + 2] * BLOCK
    stop = max(section_end, min(header.data, start + MAX_BLOCKS * BLOCK))
    problems: list[str] = []
    parameters = parse_parameters(data, start, stop, encoding, problems.append)
    if "POINT" not in parameters.groups:
        text = "there is no POINT group: the header alone describes the points"
        problems.append(text)
    layout = decide_layout(file, header, parameters, encoding, section_end)
    parameters = _drop_overlapping(parameters, layout.data, problems)
    if problems:
        text = f"{problems[0]}; {len(problems)} faults of this kind in the parameters"
        file.note("parameters-damaged", text, value=len(problems))
    return C3dContents(data[:BLOCK], parameters, layout)


def _section_start(file: File, data: bytes) -> int:
    """Return where the parameter section begins: block 2 if the header is wrong."""
    stated = (data[0] - 1) * BLOCK
    usual = BLOCK
    if stated > 0 and stated + 4 <= len(data) and data[stated + 3] in PROCESSORS:
        return stated
    if usual + 4 > len(data):
        file.fail("a parameter section", "the end of the file", byte=len(data))
    if stated != usual:
        file.note(
            "parameter-start-differ",
            f"the header puts the parameters at byte {stated}; {usual} is used",
        )
    return usual


def _encoding(file: File, data: bytes, start: int) -> C3dEncoding:
    """Return the stated encoding, or another one if only that makes sense."""
    stated = PROCESSORS.get(data[start + 3])

    def plausibility(processor: Processor) -> float:
        sense = C3dHeader.read(data, C3dEncoding(processor)).plausibility(file.size)
        # One damaged field of the header must not overrule the processor byte.
        return sense + (1.5 if processor == stated else 0.0)

    best = max(PROCESSORS.values(), key=plausibility)
    if best != stated:
        text = f"the processor byte {data[start + 3]} makes no sense; {best} is used"
        file.note("processor-differ", text)
    return C3dEncoding(best)


def _drop_overlapping(
    parameters: C3dParameters, data: int, problems: list[str]
) -> C3dParameters:
    """Return the parameters without those that overlap the frames."""
    overlapping = [parameter for parameter in parameters if parameter.end > data]
    if overlapping:
        first = overlapping[0]
        problems.append(f"{first.group}:{first.name} reaches into the frames")
    groups = {
        group: {n: p for n, p in members.items() if p.end <= data}
        for group, members in parameters.groups.items()
    }
    return C3dParameters(groups)


def read_events(file: File, contents: C3dContents) -> tuple[Event, ...]:
    """Return the events of EVENT and groups like it, else those of the header.

    Groups of other names, such as EVENTS of robot exoskeletons, are read if each of
    their labels has a time, in seconds or in minutes and seconds.
    """
    parameters = contents.parameters
    others = [name for name in parameters.groups if "EVENT" in name and name != "EVENT"]
    found = [
        event
        for group in ("EVENT", *others)
        for event in _group_events(file, parameters, group)
        if isfinite(event.time)
    ]
    return tuple(dict.fromkeys(found)) or _header_events(contents)


def _group_events(file: File, parameters: C3dParameters, group: str) -> Iterator[Event]:
    labels = parameters.texts(group, "LABELS")
    times = parameters.numbers(group, "TIMES")
    used = parameters.count(group, "USED")
    seconds = [60.0 * m + s for m, s in zip(times[::2], times[1::2], strict=False)]
    if group != "EVENT" and len(times) == len(labels):
        seconds = list(times)
    if len(times) and len(seconds) < len(labels):
        text = f"{group} has {len(labels)} labels and {len(seconds)} times"
        file.note("events-unread", f"{text}: events without a time are left out")
    contexts = _pad_texts(parameters.texts(group, "CONTEXTS"), len(labels))
    for label, context, second in zip(labels[:used], contexts, seconds, strict=False):
        yield Event(label, context, second)


def _header_events(contents: C3dContents) -> tuple[Event, ...]:
    data, encoding = contents.header, contents.layout.encoding
    if encoding.unsigned(data, 298) != _EVENT_KEY:
        return ()
    count = min(encoding.unsigned(data, 300), _MAX_HEADER_EVENTS)
    times = encoding.reals(data[304 : 304 + 4 * count]).tolist()
    labels = [decode_text(data[396 + 4 * i : 400 + 4 * i]) for i in range(count)]
    return tuple(
        Event(label.rstrip("\0 "), "", time)
        for label, time in zip(labels, times, strict=True)
        if isfinite(time)
    )


def read_scaled_analog(
    file: File, contents: C3dContents
) -> Float[np.ndarray, "sample channel"]:
    """Return the analog channels in the units the file states for them."""
    layout, parameters = contents.layout, contents.parameters
    if not layout.channels:
        return np.zeros((0, 0))
    words = parameters.texts("ANALOG", "FORMAT")
    unsigned = bool(words) and words[0].strip().upper().startswith("UNSIGNED")
    general = parameters.number("ANALOG", "GEN_SCALE")
    scale = _per_channel(file, contents, "SCALE", 1.0)
    offset = _per_channel(file, contents, "OFFSET", 0.0)
    if unsigned:
        offset %= 65536.0
    values = read_analog(file.path, layout, unsigned=unsigned)
    with np.errstate(invalid="ignore", over="ignore"):
        values -= offset
        values *= scale * (1.0 if general is None else general)
    return values


def _per_channel(
    file: File, contents: C3dContents, name: str, missing: float
) -> Float[np.ndarray, " channel"]:
    """Return an ANALOG parameter of every channel; `missing` where not stated."""
    stated = contents.parameters.numbers("ANALOG", name)[: contents.layout.channels]
    out = np.full(contents.layout.channels, missing)
    out[: len(stated)] = stated
    if len(stated) < len(out):
        file.note(
            "analog-scale-missing",
            f"ANALOG:{name} has {len(stated)} numbers for {len(out)} channels; "
            f"took {missing:g} for the rest",
        )
    return out


def _pad_texts(texts: tuple[str, ...], count: int) -> tuple[str, ...]:
    return (*texts[:count], *[""] * (count - len(texts)))
