"""Where the numbers of a C3D file stand: header and parameters weighed together.

Both say how many points, frames and channels there are, and the length of the file
says it a third time. Where they differ, what fits the length is believed and the
difference becomes a finding, so that a damaged byte seldom passes in silence.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import isclose, isfinite

from marey.io.contract import File
from marey.io.formats.c3d.encoding import Encoding
from marey.io.formats.c3d.header import Header
from marey.io.formats.c3d.parameters import BLOCK, Parameters

FULL = 0xFFFF
"""What a 16-bit count of frames says when there are more."""

POSE_WORDS = 17
"""Numbers per pose of the ROTATION group: a 4 x 4 matrix and its residual."""


@dataclass(frozen=True, slots=True)
class Poses:
    """The settled shape of the ROTATION group: 6-DoF segments."""

    segments: int = 0
    data: int = 0
    """Byte where the poses begin."""

    ratio: int = 1
    """Poses per frame and segment."""

    frames: int = 0
    """Frames that have poses in the file."""

    @property
    def frame_bytes(self) -> int:
        """Length of a frame's poses in the file."""
        return 4 * POSE_WORDS * self.segments * self.ratio


@dataclass(frozen=True, slots=True)
class Layout:
    """The settled shape of the frames of a file."""

    encoding: Encoding
    is_real: bool
    """Whether numbers are 32-bit reals rather than 16-bit integers."""

    scale: float
    """Units per integer step, > 0."""

    points: int
    channels: int
    samples: int
    """Analog samples per frame."""

    words: int
    """Numbers per frame: four per point, then the analog ones."""

    first_frame: int
    frames: int
    """Frames present in the file."""

    data: int
    """Byte where the frames begin."""

    rate: float
    """Hertz; 0 when the file does not say."""

    poses: Poses

    @property
    def frame_bytes(self) -> int:
        """Length of a frame in the file."""
        return self.words * (4 if self.is_real else 2)


@dataclass(frozen=True, slots=True)
class _Shape:
    points: int
    analog: int
    is_real: bool
    data: int

    @property
    def frame_bytes(self) -> int:
        return (4 * self.points + self.analog) * (4 if self.is_real else 2)


def settle(
    file: File,
    header: Header,
    parameters: Parameters,
    encoding: Encoding,
    section_end: int,
) -> Layout:
    """Return where the numbers stand, with a finding for every contradiction.

    Args:
        file: The file; takes the findings and gives the length.
        header: Its first block.
        parameters: Its parameter section.
        encoding: How it writes numbers.
        section_end: First byte after the parameter section.
    """
    rate = _rate(file, header, parameters)
    poses = _poses(file, parameters, min(section_end, header.data))
    end = min(poses.data, file.size) if poses.segments else file.size
    votes = _frame_votes(header, parameters)
    shape = _shape(file, header, parameters, rate, votes, section_end, end)
    frames = _frames(file, shape, votes, end)
    declared = frames if shape.frame_bytes else max(votes.values(), default=0)
    poses = _present(file, poses, declared)
    if not shape.frame_bytes and not poses.segments and end - shape.data > BLOCK:
        file.note("bytes-left", f"{end - shape.data} bytes hold nothing that is known")
    frames = frames if shape.frame_bytes else poses.frames
    analog = shape.analog if frames else 0
    channels, samples = _channels(file, analog, header, parameters)
    return Layout(
        encoding=encoding,
        is_real=shape.is_real,
        scale=_scale(file, header, parameters, is_real=shape.is_real),
        points=shape.points,
        channels=channels,
        samples=samples,
        words=4 * shape.points + shape.analog,
        first_frame=_first_frame(file, header, parameters),
        frames=frames,
        data=shape.data,
        rate=rate,
        poses=poses,
    )


def note_missing(file: File, declared: int, present: int, what: str = "frames") -> None:
    """Keep the finding that a file holds less than it declares."""
    file.note(
        "frames-missing",
        f"{what} declared {declared}, present {present}: the file is cut short",
        value=float(declared - present),
    )


def _differ(file: File, what: str, said: Mapping[str, object], taken: object) -> None:
    """Keep the finding that header and parameters contradict each other."""
    words = ", ".join(f"{place} says {value}" for place, value in said.items())
    message = f"the file contradicts itself on the {what}: {words}; took {taken}"
    file.note(f"{what.replace(' ', '-')}-differ", message)


def _ranked(*values: int | None) -> list[int]:
    """Return the distinct values, those said most often first."""
    said = [value for value in values if value is not None]
    return sorted(dict.fromkeys(said), key=lambda value: -said.count(value))


def _shape(
    file: File,
    header: Header,
    parameters: Parameters,
    rate: float,
    votes: Mapping[str, int],
    section_end: int,
    end: int,
) -> _Shape:
    """Return the shape that fits the length of the file, else the one said most."""
    used = parameters.count("POINT", "USED")
    start = parameters.count("POINT", "DATA_START")
    stated = (start - 1) * BLOCK if start else start
    scale = parameters.number("POINT", "SCALE")
    signs = [s < 0 for s in (scale, header.scale) if s is not None and isfinite(s)]
    shapes = [
        _Shape(*choice)
        for choice in product(
            _ranked(used, header.points),
            _ranked(*_analog_words(header, parameters, rate)),
            dict.fromkeys(signs or [True]),
            _ranked(header.data, stated, section_end),
        )
    ]
    inside = [shape for shape in shapes if 0 < shape.data <= end]
    fitting = [s for s in inside if _fits(s, votes.values(), end)]
    if not inside:
        raise file.error(
            header.data,
            expected="frames that begin inside the file",
            found=f"a file of {file.size} bytes",
        )
    chosen = (fitting or inside)[0]
    points = {"the header": header.points, "POINT:USED": used}
    data = {"the header": header.data, "POINT:DATA_START": stated}
    _check_said(file, "points", points, chosen.points)
    _check_said(file, "data start", data, chosen.data)
    _check_said(file, "analog", {"the header": header.analog}, chosen.analog)
    return chosen


def _check_said(
    file: File, what: str, said: Mapping[str, int | None], taken: int
) -> None:
    stated = {place: value for place, value in said.items() if value is not None}
    if any(value != taken for value in stated.values()):
        _differ(file, what, stated, taken)


def _analog_words(
    header: Header, parameters: Parameters, rate: float
) -> tuple[int | None, ...]:
    used = parameters.count("ANALOG", "USED")
    analog_rate = parameters.number("ANALOG", "RATE") or 0.0
    if used is None:
        return (header.analog,)
    ratio = analog_rate / rate if rate and isfinite(analog_rate) else 0.0
    by_rate = used * round(ratio) if 0.5 < ratio < FULL else None
    return (header.analog, used * header.samples, by_rate)


def _fits(shape: _Shape, counts: Iterable[int], end: int) -> bool:
    """Whether some declared count of frames ends where the file does, less padding."""
    room = end - shape.data
    return any(0 <= room - n * shape.frame_bytes <= BLOCK for n in counts)


def _channels(
    file: File, analog: int, header: Header, parameters: Parameters
) -> tuple[int, int]:
    """Return channels and samples per frame of the analog numbers."""
    if analog == 0:
        return 0, 0
    used = parameters.count("ANALOG", "USED") or 0
    if used and analog % used == 0:
        channels = used
    elif header.samples and analog % header.samples == 0:
        channels = analog // header.samples
    else:
        channels = analog
    samples = analog // channels
    said = {"the header": header.samples, "ANALOG:USED": analog // max(used, 1)}
    _check_said(file, "analog samples", said, samples)
    return channels, samples


def _frame_votes(header: Header, parameters: Parameters) -> dict[str, int]:
    """Return what each place says of the number of frames; saturated ones are mute."""
    votes: dict[str, int] = {}
    long = parameters.number("POINT", "LONG_FRAMES")
    if long is not None and isfinite(long) and long >= 0:
        votes["POINT:LONG_FRAMES"] = int(long)
    start, end = (_field(parameters, name) for name in ("START", "END"))
    if start is not None and end is not None and end + 1 >= start:
        votes["TRIAL:ACTUAL_END_FIELD"] = end - start + 1
    if header.last + 1 >= header.first and header.last != FULL:
        votes["the header"] = header.last - header.first + 1
    frames = parameters.count("POINT", "FRAMES")
    if frames is not None and frames >= 0 and frames != FULL:
        votes["POINT:FRAMES"] = frames
    return votes


def _field(parameters: Parameters, name: str) -> int | None:
    """Return a frame number kept in two 16-bit words."""
    words = parameters.numbers("TRIAL", f"ACTUAL_{name}_FIELD")
    if not words or not all(isfinite(word) for word in words[:2]):
        return None
    low, high = (int(word) & FULL for word in (*words[:2], 0.0)[:2])
    return low + (high << 16)


def _frames(file: File, shape: _Shape, votes: Mapping[str, int], end: int) -> int:
    """Return how many frames the file holds."""
    if shape.frame_bytes == 0:
        return 0
    room = max(end - shape.data, 0)
    capacity = room // shape.frame_bytes
    counts = list(votes.values())
    if not counts:
        file.note("frames-assumed", f"the file's length gives {capacity} frames")
        return capacity
    ranked = sorted(counts, key=lambda n: -counts.count(n))
    fitting = [n for n in ranked if _fits(shape, [n], end)]
    declared = (fitting or ranked)[0]
    others = {k: v for k, v in votes.items() if not _same_count(k, v, declared)}
    if others:
        _differ(file, "frames", others, declared)
    if declared > capacity:
        if capacity == 0:
            raise file.error(
                shape.data,
                expected=f"{declared} frames of {shape.frame_bytes} bytes",
                found=f"{room} bytes, not one whole frame",
            )
        note_missing(file, declared, capacity)
    elif not fitting:
        spare = room - declared * shape.frame_bytes
        file.note("bytes-left", f"{spare} bytes after the last frame are not read")
    return min(declared, capacity)


def _same_count(place: str, count: int, taken: int) -> bool:
    """Whether a count agrees; two of the places keep only its lower 16 bits."""
    if place in ("the header", "POINT:FRAMES"):
        return count % (FULL + 1) == taken % (FULL + 1)
    return count == taken


def _first_frame(file: File, header: Header, parameters: Parameters) -> int:
    start = _field(parameters, "START")
    if start is None or start == header.first:
        return header.first
    if header.first in (FULL, start & FULL):
        return start
    said = {"the header": header.first, "TRIAL:ACTUAL_START_FIELD": start}
    _differ(file, "first frame", said, header.first)
    return header.first


def _rate(file: File, header: Header, parameters: Parameters) -> float:
    """Return frames per second: POINT:RATE unless others outvote it; 0 if unknown."""
    stated = parameters.number("POINT", "RATE")
    analog_rate = parameters.number("ANALOG", "RATE") or 0.0
    witnesses = [
        parameters.number("TRIAL", "CAMERA_RATE"),
        analog_rate / header.samples if header.samples else None,
    ]
    said = [r for r in (stated, header.rate) if r is not None and 0.0 < r < 1e5]
    if not said:
        return 0.0
    taken = max(said, key=lambda rate: sum(_same(rate, w) for w in witnesses))
    known = {"POINT:RATE": stated, "the header": header.rate}
    if any(rate is not None and not _same(rate, taken) for rate in known.values()):
        _differ(file, "rate", known, f"{taken:g} Hz")
    exact = parameters.exact("RATE")
    rounded = exact is not None and isclose(exact, taken, rel_tol=1e-7)
    return exact if exact is not None and rounded else taken


def _same(a: float, b: float | None) -> bool:
    return b is not None and isclose(a, b, rel_tol=1e-4)


def _scale(
    file: File, header: Header, parameters: Parameters, *, is_real: bool
) -> float:
    """Return units per integer step; of real numbers it scales the residuals only."""
    stated = parameters.number("POINT", "SCALE")
    said = [stated, header.scale]
    sizes = [abs(s) for s in said if s is not None and 1e-7 < abs(s) < 1e4]
    known = [s for s in said if s is not None]
    taken = sizes[0] if sizes else 1.0
    agree = all(abs(s) == taken and (s < 0) == is_real for s in known)
    if not agree:
        places = {"POINT:SCALE": stated, "the header": header.scale}
        _differ(file, "scale", places, f"{-taken if is_real else taken:g}")
    return taken


def _poses(file: File, parameters: Parameters, first: int) -> Poses:
    """Return the poses that the ROTATION group declares at or after a byte."""
    segments = parameters.count("ROTATION", "USED") or 0
    data = ((parameters.count("ROTATION", "DATA_START") or 0) - 1) * BLOCK
    sound = data >= max(first, BLOCK)
    if segments and not sound:
        text = f"{segments} segments declared at byte {data}, where they cannot be"
        file.note("poses-missing", text)
    if not segments or not sound:
        return Poses()
    ratio = parameters.count("ROTATION", "RATIO") or 1
    return Poses(segments, data, max(ratio, 1))


def _present(file: File, poses: Poses, declared: int) -> Poses:
    """Return the poses with the number of frames that the file holds of them."""
    if not poses.segments:
        return poses
    held = max(file.size - poses.data, 0)
    present = min(held // poses.frame_bytes, declared)
    if present < declared:
        note_missing(file, declared, present, "poses")
    # Unseen poses take memory too: more of them than of seen ones is damage.
    wanted = declared * poses.frame_bytes
    if present == 0 or (declared > present and wanted > 8 * held):
        return Poses()
    if poses.ratio > 1:
        file.note(
            "poses-left-out",
            f"ROTATION:RATIO is {poses.ratio}: of the {poses.ratio} poses per frame of "
            "each segment the first is read, the others are left out",
            value=float(poses.ratio),
        )
    return replace(poses, frames=present)
