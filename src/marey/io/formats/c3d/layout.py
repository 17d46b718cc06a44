"""The layout of a C3D file: byte offsets and counts from header and parameters.

Both state the number of points, frames and channels, and the length of the file
implies it. Where they differ, the value that fits the length is used and a finding
reports the difference, so that a damaged byte seldom remains unnoticed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import isclose, isfinite
from operator import eq
from typing import Any

from marey.io.file import File
from marey.io.formats.c3d.encoding import C3dEncoding
from marey.io.formats.c3d.header import MAX_RATE_HZ, MAX_SCALE, MIN_SCALE, C3dHeader
from marey.io.formats.c3d.parameters import BLOCK, C3dParameters

MAX_UINT16 = 0xFFFF
"""Largest 16-bit count; it also means "more frames than that"."""

POSE_WORDS = 17
"""Numbers per pose of the ROTATION group: a 4 x 4 matrix and its residual."""


Number = float | int

EQUAL_RATES = 1e-4
"""Largest relative difference of two statements of one rate.

Higher takes more contradictory rates for one. Chosen by hand.
"""

ROUNDED_RATE = 1e-7
"""Relative rounding of a rate to 32 bits."""

MAX_UNSEEN = 8
"""How many times the poses that a file holds it may declare."""


@dataclass(frozen=True, slots=True)
class PoseLayout:
    """The shape of the ROTATION group: 6-DoF segments."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameShape:
    """The shape of the frames: counts, number type and first byte."""

    points: int
    analog: int
    """Analog numbers per frame."""

    is_real: bool
    """Whether numbers are 32-bit reals rather than 16-bit integers."""

    data: int
    """Byte where the frames begin."""

    @property
    def words(self) -> int:
        """Numbers per frame: four per point, then the analog ones."""
        return 4 * self.points + self.analog

    @property
    def frame_bytes(self) -> int:
        """Length of a frame in the file."""
        return self.words * (4 if self.is_real else 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class C3dLayout(FrameShape):
    """The frames of a file."""

    encoding: C3dEncoding
    scale: float
    """Units per integer step, > 0."""

    channels: int
    samples: int
    """Analog samples per frame."""

    first_frame: int
    frames: int
    """Frames present in the file."""

    rate: float
    """Hertz; 0 when the file does not say."""

    poses: PoseLayout


@dataclass(frozen=True, slots=True)
class _Statements:
    """What header and parameters of a file state; contradictions are noted."""

    file: File
    header: C3dHeader
    parameters: C3dParameters

    def check(
        self,
        what: str,
        statements: Mapping[str, Number | None],
        chosen: Number,
        *,
        same: Callable[[Any, Any], bool] = eq,
        unit: str = "",
    ) -> None:
        """Keep a finding when header and parameters contradict each other.

        Args:
            what: What they state.
            statements: What they say of it; None when they say nothing.
            chosen: What was taken.
            same: Whether two values agree.
            unit: Added to what was taken.
        """
        stated = {k: value for k, value in statements.items() if value is not None}
        if not all(same(value, chosen) for value in stated.values()):
            words = [f"{source} says {value}" for source, value in stated.items()]
            taken = f"{chosen:g}" if isinstance(chosen, float) else chosen
            self.file.note(
                f"{what.replace(' ', '-')}-differ",
                f"the file contradicts itself on the {what}: {', '.join(words)}; "
                f"{taken}{unit} is used",
            )


def decide_layout(
    file: File,
    header: C3dHeader,
    parameters: C3dParameters,
    encoding: C3dEncoding,
    section_end: int,
) -> C3dLayout:
    """Return the layout, with a finding for every contradiction.

    Args:
        file: The file; takes the findings and gives the length.
        header: Its first block.
        parameters: Its parameter section.
        encoding: How it writes numbers.
        section_end: First byte after the parameter section.
    """
    stated = _Statements(file, header, parameters)
    rate = _decide_rate(stated)
    poses = _declared_poses(file, parameters, min(section_end, header.data))
    end = min(poses.data, file.size) if poses.segments else file.size
    counts = _stated_frame_counts(stated)
    shape = _decide_shape(stated, counts, rate, section_end, end)
    frames = _decide_frame_count(stated, shape, counts, end)
    declared = frames if shape.frame_bytes else max(counts.values(), default=0)
    poses = _present_poses(file, poses, declared)
    if not shape.frame_bytes and not poses.segments and end - shape.data > BLOCK:
        file.note("bytes-unread", f"{end - shape.data} bytes hold no known content")
    frames = frames if shape.frame_bytes else poses.frames
    channels, samples = _channels(stated, shape.analog if frames else 0)
    return C3dLayout(
        points=shape.points,
        analog=shape.analog,
        is_real=shape.is_real,
        data=shape.data,
        encoding=encoding,
        scale=_decide_scale(stated, is_real=shape.is_real),
        channels=channels,
        samples=samples,
        first_frame=_decide_first_frame(stated),
        frames=frames,
        rate=rate,
        poses=poses,
    )


def note_missing_frames(
    file: File, declared: int, present: int, what: str = "frames"
) -> None:
    """Keep the finding that a file holds less than it declares."""
    file.note(
        "frames-missing",
        f"{what} declared {declared}, present {present}: the file is cut short",
        value=declared - present,
    )


def _rank_by_count(*values: int | None) -> list[int]:
    """Return the distinct values, the most frequent first."""
    statements = [value for value in values if value is not None]
    return sorted(dict.fromkeys(statements), key=lambda value: -statements.count(value))


def _decide_shape(
    stated: _Statements,
    counts: Mapping[str, int],
    rate: float,
    section_end: int,
    end: int,
) -> FrameShape:
    """Return the shape that fits the length of the file, else the most frequent one."""
    header, parameters = stated.header, stated.parameters
    used = parameters.count("POINT", "USED")
    block = parameters.count("POINT", "DATA_START")
    start = (block - 1) * BLOCK if block else block
    scale = parameters.number("POINT", "SCALE")
    signs = [s < 0 for s in (scale, header.scale) if s is not None and isfinite(s)]
    shapes = [
        FrameShape(points=points, analog=analog, is_real=is_real, data=data)
        for points, analog, is_real, data in product(
            _rank_by_count(used, header.points),
            _rank_by_count(*_analog_words(stated, rate)),
            dict.fromkeys(signs or [True]),
            _rank_by_count(header.data, start, section_end),
        )
    ]
    inside = [shape for shape in shapes if 0 < shape.data <= end]
    fitting = [s for s in inside if _fits_file_length(s, counts.values(), end)]
    if not inside:
        stated.file.fail(
            "frames that begin inside the file",
            f"a file of {stated.file.size} bytes",
            byte=header.data,
        )
    chosen = (fitting or inside)[0]
    points = {"the header": header.points, "POINT:USED": used}
    data = {"the header": header.data, "POINT:DATA_START": start}
    stated.check("points", points, chosen.points)
    stated.check("data start", data, chosen.data)
    stated.check("analog", {"the header": header.analog}, chosen.analog)
    return chosen


def _analog_words(stated: _Statements, rate: float) -> tuple[int | None, ...]:
    header, parameters = stated.header, stated.parameters
    used = parameters.count("ANALOG", "USED")
    analog_rate = parameters.number("ANALOG", "RATE") or 0.0
    if used is None:
        return (header.analog,)
    ratio = analog_rate / rate if rate and isfinite(analog_rate) else 0.0
    by_rate = used * round(ratio) if 0.5 < ratio < MAX_UINT16 else None
    return (header.analog, used * header.samples, by_rate)


def _fits_file_length(shape: FrameShape, counts: Iterable[int], end: int) -> bool:
    """Whether some declared count of frames ends where the file does, less padding."""
    room = end - shape.data
    return any(0 <= room - n * shape.frame_bytes <= BLOCK for n in counts)


def _channels(stated: _Statements, analog: int) -> tuple[int, int]:
    """Return channels and samples per frame of the analog numbers."""
    header = stated.header
    if analog == 0:
        return 0, 0
    used = stated.parameters.count("ANALOG", "USED") or 0
    if used and analog % used == 0:
        channels = used
    elif header.samples and analog % header.samples == 0:
        channels = analog // header.samples
    else:
        channels = analog
    samples = analog // channels
    statements = {"the header": header.samples, "ANALOG:USED": analog // max(used, 1)}
    stated.check("analog samples", statements, samples)
    return channels, samples


def _stated_frame_counts(stated: _Statements) -> dict[str, int]:
    """Return the number of frames by source; saturated counts are left out."""
    header, parameters = stated.header, stated.parameters
    counts: dict[str, int] = {}
    long = parameters.number("POINT", "LONG_FRAMES")
    if long is not None and isfinite(long) and long >= 0:
        counts["POINT:LONG_FRAMES"] = int(long)
    start, end = (_trial_field(parameters, name) for name in ("START", "END"))
    if start is not None and end is not None and end + 1 >= start:
        counts["TRIAL:ACTUAL_END_FIELD"] = end - start + 1
    if header.last + 1 >= header.first and header.last != MAX_UINT16:
        counts["the header"] = header.last - header.first + 1
    frames = parameters.count("POINT", "FRAMES")
    if frames is not None and frames >= 0 and frames != MAX_UINT16:
        counts["POINT:FRAMES"] = frames
    return counts


def _trial_field(parameters: C3dParameters, name: str) -> int | None:
    """Return a frame number stored in two 16-bit words."""
    words = parameters.numbers("TRIAL", f"ACTUAL_{name}_FIELD")
    if not words or not all(isfinite(word) for word in words[:2]):
        return None
    low, high = (int(word) & MAX_UINT16 for word in (*words[:2], 0.0)[:2])
    return low + (high << 16)


def _decide_frame_count(
    stated: _Statements, shape: FrameShape, counts: Mapping[str, int], end: int
) -> int:
    """Return how many frames the file holds."""
    file = stated.file
    if shape.frame_bytes == 0:
        return 0
    room = max(end - shape.data, 0)
    capacity = room // shape.frame_bytes
    if not counts:
        file.note("frames-assumed", f"the file's length gives {capacity} frames")
        return capacity
    every = list(counts.values())
    ranked = sorted(every, key=lambda n: -every.count(n))
    fitting = [n for n in ranked if _fits_file_length(shape, [n], end)]
    declared = (fitting or ranked)[0]
    others = {k: n for k, n in counts.items() if not _is_same_count(k, n, declared)}
    stated.check("frames", others, declared)
    if declared > capacity:
        if capacity == 0:
            file.fail(
                f"{declared} frames of {shape.frame_bytes} bytes",
                f"{room} bytes, not one whole frame",
                byte=shape.data,
            )
        note_missing_frames(file, declared, capacity)
    elif not fitting:
        spare = room - declared * shape.frame_bytes
        file.note("bytes-unread", f"{spare} bytes after the last frame are not read")
    return min(declared, capacity)


def _is_same_count(source: str, count: int, chosen: int) -> bool:
    """Whether a count agrees; two sources hold only the lower 16 bits."""
    if source in ("the header", "POINT:FRAMES"):
        return count % (MAX_UINT16 + 1) == chosen % (MAX_UINT16 + 1)
    return count == chosen


def _decide_first_frame(stated: _Statements) -> int:
    header, start = stated.header, _trial_field(stated.parameters, "START")
    if start is not None and header.first in (MAX_UINT16, start & MAX_UINT16):
        return start
    statements = {"the header": header.first, "TRIAL:ACTUAL_START_FIELD": start}
    stated.check("first frame", statements, header.first)
    return header.first


def _decide_rate(stated: _Statements) -> float:
    """Return the frame rate: POINT:RATE unless others contradict it; 0 if unknown."""
    header, parameters = stated.header, stated.parameters
    known = {
        "POINT:RATE": parameters.number("POINT", "RATE"),
        "the header": header.rate,
    }
    analog_rate = parameters.number("ANALOG", "RATE") or 0.0
    other_rates = [
        parameters.number("TRIAL", "CAMERA_RATE"),
        analog_rate / header.samples if header.samples else None,
    ]
    statements = [r for r in known.values() if r is not None and 0.0 < r < MAX_RATE_HZ]
    if not statements:
        return 0.0
    chosen = max(
        statements, key=lambda rate: sum(_is_same_rate(rate, w) for w in other_rates)
    )
    stated.check("rate", known, chosen, same=_is_same_rate, unit=" Hz")
    exact = parameters.exact("RATE")
    rounded = exact is not None and isclose(exact, chosen, rel_tol=ROUNDED_RATE)
    return exact if exact is not None and rounded else chosen


def _is_same_rate(a: float, b: float | None) -> bool:
    return b is not None and isclose(a, b, rel_tol=EQUAL_RATES)


def _decide_scale(stated: _Statements, *, is_real: bool) -> float:
    """Return units per integer step; of real numbers it scales the residuals only."""
    known = {
        "POINT:SCALE": stated.parameters.number("POINT", "SCALE"),
        "the header": stated.header.scale,
    }
    sizes = [abs(scale) for scale in known.values() if scale is not None]
    chosen = next((size for size in sizes if MIN_SCALE < size < MAX_SCALE), 1.0)
    stated.check("scale", known, -chosen if is_real else chosen)
    return chosen


def _declared_poses(file: File, parameters: C3dParameters, first: int) -> PoseLayout:
    """Return the poses that the ROTATION group declares at or after a byte."""
    segments = parameters.count("ROTATION", "USED") or 0
    data = ((parameters.count("ROTATION", "DATA_START") or 0) - 1) * BLOCK
    sound = data >= max(first, BLOCK)
    if segments and not sound:
        text = f"{segments} segments declared at byte {data}, where they cannot be"
        file.note("poses-missing", text)
    if not segments or not sound:
        return PoseLayout()
    ratio = parameters.count("ROTATION", "RATIO") or 1
    return PoseLayout(segments, data, max(ratio, 1))


def _present_poses(file: File, poses: PoseLayout, declared: int) -> PoseLayout:
    """Return the poses with the number of frames that the file holds of them."""
    if not poses.segments:
        return poses
    available = max(file.size - poses.data, 0)
    present = min(available // poses.frame_bytes, declared)
    if present < declared:
        note_missing_frames(file, declared, present, "poses")
    # Unseen poses take memory too: more of them than of seen ones is damage.
    wanted = declared * poses.frame_bytes
    if present == 0 or (declared > present and wanted > MAX_UNSEEN * available):
        return PoseLayout()
    if poses.ratio > 1:
        file.note(
            "poses-left-out",
            f"ROTATION:RATIO is {poses.ratio}: of the {poses.ratio} poses per frame of "
            "each segment the first is read, the others are left out",
            value=poses.ratio,
        )
    return replace(poses, frames=present)
