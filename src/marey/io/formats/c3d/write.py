"""Writing a recording as C3D: Intel byte order, real numbers, the same bytes always."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32

from marey.errors import DataError
from marey.io.contract import Output, WriteOptions
from marey.io.formats.c3d.data import CHUNK_BYTES
from marey.io.formats.c3d.layout import MAX_UINT16, POSE_WORDS
from marey.io.formats.c3d.parameters import (
    BLOCK,
    MAX_DIMENSION,
    C3dParameter,
    build_section,
    split_list,
)
from marey.io.formats.c3d.passthrough import passthrough_parameters
from marey.io.formats.c3d.take import POSE_SUFFIX
from marey.io.units_axes import points_to_file, poses_to_file
from marey.take import Take

_REAL_SCALE = -1.0
"""Negative: the file holds real numbers."""

_NEAR_ORIGIN = 1e-30
"""Replaces x of a point at the origin, which C3D readers take for not seen."""


@dataclass(frozen=True, slots=True, eq=False)
class _WritePlan:
    """What will be written: all facts that the first byte depends on."""

    take: Take
    unit: str
    up: str
    first: int
    """Number of the first frame, from 1."""

    samples: int
    """Analog samples per frame."""

    @property
    def analog_words(self) -> int:
        return self.samples * len(self.take.analog.labels)

    @property
    def frame_bytes(self) -> int:
        return 4 * (4 * len(self.take.labels) + self.analog_words)


@dataclass(frozen=True, slots=True, eq=False)
class _C3dBytes:
    """The bytes of the file, produced in chunks during writing."""

    head: bytes
    plan: _WritePlan

    def __iter__(self) -> Iterator[bytes]:
        yield self.head
        yield from _frames(self.plan)
        if self.plan.take.sensor_names:
            written = self.plan.take.n_frames * self.plan.frame_bytes
            yield bytes(-written % BLOCK)
            yield from _poses(self.plan)


def write_take(take: Take, options: WriteOptions) -> Output:
    """Return the bytes of a C3D file.

    Unit and up axis are those of the source when it was a C3D, else millimetres and +Z.
    So are the parameters that still fit: those of markers, channels and subjects that
    are gone are left out.

    Raises:
        DataError: If C3D cannot hold it: over 65,535 markers, labels over 255 bytes, or
            analog samples that do not divide evenly among the frames.
    """
    from_c3d = take.source.format == "c3d"
    plan = _WritePlan(
        take=take,
        unit=options.unit or (from_c3d and take.source.unit.value) or "mm",
        up=options.up or (from_c3d and take.source.up.value) or "z",
        first=max(round(take.start * take.rate), 0) + 1,
        samples=_samples(take),
    )
    _check_limits(plan)
    section = _section(plan)
    head = _header(plan, 1 + len(section) // BLOCK) + section
    return {"": _C3dBytes(head, plan)}


def _samples(take: Take) -> int:
    if not take.analog.labels:
        return 0
    ratio = take.analog.rate / take.rate
    samples = max(round(ratio), 1)
    if abs(ratio - samples) > 1e-6 * samples:
        raise DataError(
            "analog rate",
            found=f"{take.analog.rate:g} Hz with {take.rate:g} frames per second",
            needed="a whole number of samples per frame in C3D",
        )
    return samples


def _check_limits(plan: _WritePlan) -> None:
    take = plan.take
    names = [*take.full_labels, *take.sensor_names, *take.analog.labels]
    longest = max((len(name.encode()) for name in names), default=0)
    if longest > MAX_DIMENSION - len(POSE_SUFFIX):
        raise DataError(
            "label",
            found=f"one of {longest} bytes",
            needed=f"at most {MAX_DIMENSION - len(POSE_SUFFIX)} in C3D",
        )
    largest = max(len(take.labels), len(take.sensor_names), plan.analog_words)
    if largest > MAX_UINT16:
        raise DataError(
            "take", found=f"{largest} items", needed=f"at most {MAX_UINT16}"
        )


def _header(plan: _WritePlan, data_block: int) -> bytes:
    take = plan.take
    last = plan.first + take.n_frames - 1
    fields = struct.pack(
        "<BBHHHHHfHHf",
        2,
        0x50,
        len(take.labels),
        plan.analog_words,
        min(plan.first, MAX_UINT16),
        min(last, MAX_UINT16),
        0,
        _REAL_SCALE,
        data_block + 1,
        plan.samples,
        take.rate,
    )
    # The key at byte 298 says that event labels would have four letters.
    return (fields.ljust(298, b"\0") + struct.pack("<H", 12345)).ljust(BLOCK, b"\0")


def _section(plan: _WritePlan) -> bytes:
    """Return the parameter section, without what came from the source if too long."""
    written = _take_parameters(plan, 0, 0)
    others = passthrough_parameters(plan.take, written)
    try:
        size = len(build_section([*written, *others]))
    except DataError:
        others = []
        size = len(build_section(written))
    data = 1 + size // BLOCK
    frames = -(-plan.take.n_frames * plan.frame_bytes // BLOCK)
    return build_section(
        [*_take_parameters(plan, data + 1, data + 1 + frames), *others]
    )


def _take_parameters(plan: _WritePlan, data: int, pose_data: int) -> list[C3dParameter]:
    """Return the parameters that describe the take; blocks count from 1."""
    take = plan.take
    n = take.n_frames
    right = "+Y" if plan.up.endswith("x") else "+X"
    up = plan.up.upper() if plan.up.startswith("-") else f"+{plan.up.upper()}"
    found = [
        _integer("POINT", "USED", len(take.labels)),
        _integer("POINT", "FRAMES", min(n, MAX_UINT16)),
        _integer("POINT", "DATA_START", data),
        _real("POINT", "SCALE", _REAL_SCALE),
        _real("POINT", "RATE", take.rate),
        _text("POINT", "UNITS", plan.unit),
        _text("POINT", "X_SCREEN", right),
        _text("POINT", "Y_SCREEN", up),
        *_texts("POINT", "LABELS", take.full_labels),
    ]
    if n >= MAX_UINT16:
        found.append(_real("POINT", "LONG_FRAMES", float(n)))
    found += [
        _integer_pair("TRIAL", "ACTUAL_START_FIELD", plan.first),
        _integer_pair("TRIAL", "ACTUAL_END_FIELD", plan.first + n - 1),
        _real("TRIAL", "CAMERA_RATE", take.rate),
        *_analog(plan),
        *_subjects(take),
        *_events(take),
        _text("MANUFACTURER", "COMPANY", "marey"),
        _text("MANUFACTURER", "SOFTWARE", "marey"),
        *_exact_parameters(plan),
    ]
    return found + (_rotation(take, pose_data) if take.sensor_names else [])


def _exact_parameters(plan: _WritePlan) -> list[C3dParameter]:
    """Return rate and start as text where the 32-bit numbers of C3D round them."""
    take = plan.take
    found = []
    if float(np.float32(take.rate)) != take.rate:
        found.append(_text("MAREY", "RATE", repr(take.rate)))
    if (plan.first - 1) / take.rate != take.start:
        found.append(_text("MAREY", "START", repr(take.start)))
    return found


def _analog(plan: _WritePlan) -> list[C3dParameter]:
    analog = plan.take.analog
    count = len(analog.labels)
    found = [_integer("ANALOG", "USED", count), _real("ANALOG", "GEN_SCALE", 1.0)]
    if count:
        found += [
            _real("ANALOG", "RATE", plan.samples * plan.take.rate),
            *split_list("ANALOG", "SCALE", "real", (1.0,) * count),
            *split_list("ANALOG", "OFFSET", "integer", (0,) * count),
            *_texts("ANALOG", "LABELS", analog.labels),
            *_texts("ANALOG", "UNITS", analog.units),
        ]
    return [*found, _integer("FORCE_PLATFORM", "USED", 0)]


def _subjects(take: Take) -> list[C3dParameter]:
    names = list(dict.fromkeys(filter(None, take.subjects)))[:MAX_DIMENSION]
    return [
        _integer("SUBJECTS", "USED", len(names)),
        _integer("SUBJECTS", "USES_PREFIXES", int(bool(names))),
        *_texts("SUBJECTS", "NAMES", names),
        *_texts("SUBJECTS", "LABEL_PREFIXES", [f"{name}:" for name in names]),
    ]


def _events(take: Take) -> list[C3dParameter]:
    times = [part for event in take.events for part in divmod(event.time, 60.0)]
    found = [_integer("EVENT", "USED", len(take.events))]
    if take.events:
        found += [
            *_texts("EVENT", "LABELS", [event.label for event in take.events]),
            *_texts("EVENT", "CONTEXTS", [event.context for event in take.events]),
            *split_list("EVENT", "TIMES", "real", times, rows=2),
        ]
    return found


def _rotation(take: Take, block: int) -> list[C3dParameter]:
    labels = [f"{name}{POSE_SUFFIX}" for name in take.sensor_names]
    # Beyond 32 MB of points the block number needs more than 16 bits.
    start = _real if block > MAX_UINT16 else _integer
    return [
        _integer("ROTATION", "USED", len(labels)),
        _real("ROTATION", "RATE", take.rate),
        _integer("ROTATION", "RATIO", 1),
        start("ROTATION", "DATA_START", block),
        *_texts("ROTATION", "LABELS", labels),
        _text("DATA_BLOCKS", "ROTATION", "4x4 ROTATION"),
    ]


def _integer(group: str, name: str, value: int) -> C3dParameter:
    return C3dParameter(group, name, "integer", (), (_as_int16(value),))


def _real(group: str, name: str, value: float) -> C3dParameter:
    return C3dParameter(group, name, "real", (), (value,))


def _integer_pair(group: str, name: str, value: int) -> C3dParameter:
    low, high = _as_int16(value & MAX_UINT16), _as_int16(value >> 16 & MAX_UINT16)
    return C3dParameter(group, name, "integer", (2,), (low, high))


def _as_int16(value: int) -> int:
    """Return an unsigned 16-bit number as the signed one with the same bits."""
    return value - (MAX_UINT16 + 1) if value > 0x7FFF else value


def _text(group: str, name: str, value: str) -> C3dParameter:
    return C3dParameter(group, name, "char", (len(value.encode()),), (value,))


def _texts(group: str, name: str, values: Sequence[str]) -> list[C3dParameter]:
    """Return a list of strings, in several parameters if it is over 255 long."""
    return split_list(group, name, "char", values)


def _frames(plan: _WritePlan) -> Iterator[bytes]:
    take = plan.take
    if not plan.frame_bytes:
        return
    step = max(CHUNK_BYTES // plan.frame_bytes, 1)
    for start in range(0, take.n_frames, step):
        stop = min(start + step, take.n_frames)
        quads = _quads(points_to_file(take.points[start:stop], plan.unit, plan.up))
        block = np.zeros((stop - start, plan.frame_bytes // 4), "<f4")
        block[:, : 4 * len(take.labels)] = quads.reshape(stop - start, -1)
        if plan.samples:
            samples = take.analog.values[start * plan.samples : stop * plan.samples]
            rows = block[:, 4 * len(take.labels) :].reshape(-1, len(take.analog.labels))
            rows[:] = np.nan
            rows[: len(samples)] = samples
            block[:, 4 * len(take.labels) :] = rows.reshape(stop - start, -1)
        yield block.tobytes()


def _quads(
    xyz: Float[np.ndarray, "frame marker 3"],
) -> Float32[np.ndarray, "frame marker 4"]:
    """Return x, y, z and the residual: 0 where seen, -1 where not."""
    quads = np.zeros((*xyz.shape[:2], 4), np.float32)
    seen = np.isfinite(xyz).all(axis=-1)
    quads[..., :3] = np.where(seen[..., None], xyz, 0.0)
    at_origin = seen & (quads[..., :3] == 0.0).all(axis=-1)
    quads[at_origin, 0] = _NEAR_ORIGIN
    quads[~seen, 3] = -1.0
    return quads


def _poses(plan: _WritePlan) -> Iterator[bytes]:
    """Yield matrices column after column, each with its residual."""
    T = plan.take.T_world_sensor
    step = max(CHUNK_BYTES // (4 * POSE_WORDS * T.shape[1]), 1)
    for start in range(0, len(T), step):
        part = poses_to_file(T[start : start + step], plan.unit, plan.up)
        rows = np.zeros((*part.shape[:2], POSE_WORDS), "<f4")
        rows[..., :16] = part.swapaxes(-1, -2).reshape(*part.shape[:2], 16)
        rows[~np.isfinite(part).all(axis=(-1, -2)), 16] = -1.0
        yield rows.tobytes()
