"""Writing a recording as C3D: Intel byte order, real numbers, the same bytes always."""

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from marey.errors import DataError
from marey.io.contract import Output
from marey.io.formats.c3d.computed import computed_lists
from marey.io.formats.c3d.data import CHUNK_BYTES
from marey.io.formats.c3d.layout import MAX_UINT16, POSE_WORDS
from marey.io.formats.c3d.parameters import (
    BLOCK,
    MAX_DIMENSION,
    C3dParameter,
    C3dParameters,
    build_section,
    split_list,
)
from marey.io.formats.c3d.take import POSE_SUFFIX
from marey.io.options import WriteOptions
from marey.io.units_axes import FileWorld
from marey.numerics import Float, Float32
from marey.take import Take

_REAL_SCALE = -1.0
"""Negative: the file holds real numbers."""

_REBUILT_GROUPS = {
    "ANALOG",
    "EVENT",
    "MANUFACTURER",
    "ROTATION",
    "DATA_BLOCKS",
    "MAREY",
}
_POINT_LISTS = re.compile(r"(LABELS|DESCRIPTIONS|ORIGINAL_LAST_FRAME|LONG_FRAMES)\d*")

RATE_ROUNDING = 1e-6
"""Relative rounding with which a number of samples per frame is still whole."""

_NEAR_ORIGIN = 1e-30
"""Replaces x of a point at the origin, which C3D readers take for not seen."""


@dataclass(frozen=True, slots=True, eq=False)
class _WritePlan:
    """What will be written: all facts that the first byte depends on."""

    take: Take
    world: FileWorld
    first: int
    """Number of the first frame, from 1."""

    samples: int
    """Analog samples per frame."""

    provenance: tuple[str, ...]
    """From what it was made, in lines."""

    @property
    def analog_words(self) -> int:
        return self.samples * len(self.take.analog.labels)

    @property
    def frame_bytes(self) -> int:
        return 4 * (4 * len(self.take.labels) + self.analog_words)


def write_take(take: Take, options: WriteOptions) -> Output:
    """Return the bytes of a C3D file.

    Unit and up axis are those of the source when it was a C3D, else millimetres and +Z.
    So are the parameters that still fit: those of markers, channels and subjects that
    are gone are left out.

    Raises:
        DataError: If C3D cannot hold it: over 65,535 markers, labels over 255 bytes, or
            analog samples that do not divide evenly among the frames.
    """
    world = options.world("mm", "z", take.source, "c3d")
    first = max(round(take.start * take.rate), 0) + 1
    lines = tuple(options.provenance_lines())
    if len(lines) > MAX_DIMENSION:
        lines = ()
        options.note("provenance-lost", "the provenance is too long for a C3D")
    plan = _WritePlan(take, world, first, _samples(take), lines)
    _check_limits(plan)
    section = _section(plan)
    head = _header(plan, 1 + len(section) // BLOCK) + section
    return {"": _chunks(head, plan)}


def _chunks(head: bytes, plan: _WritePlan) -> Iterator[bytes]:
    """Yield the file, its frames made as they are asked for."""
    yield head
    yield from _frames(plan)
    if plan.take.sensor_names:
        yield bytes(-plan.take.n_frames * plan.frame_bytes % BLOCK)
        yield from _poses(plan)


def _samples(take: Take) -> int:
    if not take.analog.labels:
        return 0
    ratio = take.analog.rate / take.rate
    samples = max(round(ratio), 1)
    if abs(ratio - samples) > RATE_ROUNDING * samples:
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
    """Return the parameter section, of the take alone if it would be too long.

    Else it also has what came from the source, and from what the take was made.
    """
    written = _take_parameters(plan, 0, 0)
    others = _passthrough_parameters(plan.take, written)
    if plan.provenance:
        others += _group("MAREY", PROVENANCE=plan.provenance)
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
    unit, up = plan.world.unit, plan.world.up.upper()
    right = "+Y" if up.endswith("X") else "+X"
    up = up if up.startswith("-") else f"+{up}"
    names = list(dict.fromkeys(filter(None, take.subjects)))[:MAX_DIMENSION]
    return [
        *_group("POINT", USED=len(take.labels), FRAMES=min(n, MAX_UINT16)),
        *_group("POINT", DATA_START=data, SCALE=_REAL_SCALE, RATE=float(take.rate)),
        *_group("POINT", UNITS=unit, X_SCREEN=right, Y_SCREEN=up),
        *_group("POINT", LABELS=take.full_labels),
        *(_group("POINT", LONG_FRAMES=float(n)) if n >= MAX_UINT16 else []),
        _integer_pair("ACTUAL_START_FIELD", plan.first),
        _integer_pair("ACTUAL_END_FIELD", plan.first + n - 1),
        *_group("TRIAL", CAMERA_RATE=float(take.rate)),
        *_analog(plan),
        *_group("SUBJECTS", USED=len(names), USES_PREFIXES=int(bool(names))),
        *_group("SUBJECTS", NAMES=names, LABEL_PREFIXES=[f"{n}:" for n in names]),
        *_events(take),
        *_group("MANUFACTURER", COMPANY="marey", SOFTWARE="marey"),
        *_exact_parameters(plan),
        *(_rotation(take, pose_data) if take.sensor_names else []),
    ]


def _exact_parameters(plan: _WritePlan) -> list[C3dParameter]:
    """Return rate and start as text where the 32-bit numbers of C3D round them."""
    take = plan.take
    exact = {}
    if float(np.float32(take.rate)) != take.rate:
        exact["RATE"] = repr(take.rate)
    if (plan.first - 1) / take.rate != take.start:
        exact["START"] = repr(take.start)
    return _group("MAREY", **exact)


def _analog(plan: _WritePlan) -> list[C3dParameter]:
    analog = plan.take.analog
    count = len(analog.labels)
    found = _group("ANALOG", USED=count, GEN_SCALE=1.0)
    if count:
        found += [
            *_group("ANALOG", RATE=float(plan.samples * plan.take.rate)),
            *split_list("ANALOG", "SCALE", "real", (1.0,) * count),
            *split_list("ANALOG", "OFFSET", "integer", (0,) * count),
            *_group("ANALOG", LABELS=analog.labels, UNITS=analog.units),
        ]
    return [*found, *_group("FORCE_PLATFORM", USED=0)]


def _events(take: Take) -> list[C3dParameter]:
    found = _group("EVENT", USED=len(take.events))
    if take.events:
        times = [part for event in take.events for part in divmod(event.time, 60.0)]
        found += _group("EVENT", LABELS=[event.label for event in take.events])
        found += _group("EVENT", CONTEXTS=[event.context for event in take.events])
        found += split_list("EVENT", "TIMES", "real", times, rows=2)
    return found


def _rotation(take: Take, block: int) -> list[C3dParameter]:
    labels = [f"{name}{POSE_SUFFIX}" for name in take.sensor_names]
    # Beyond 32 MB of points the block number needs more than 16 bits.
    start = float(block) if block > MAX_UINT16 else block
    return [
        *_group("ROTATION", USED=len(labels), RATE=float(take.rate), RATIO=1),
        *_group("ROTATION", DATA_START=start, LABELS=labels),
        *_group("DATA_BLOCKS", ROTATION="4x4 ROTATION"),
    ]


def _group(
    group: str, **values: int | float | str | Sequence[str]
) -> list[C3dParameter]:
    """Return parameters of a group, by name: numbers, strings and lists of strings."""
    found: list[C3dParameter] = []
    for name, value in values.items():
        if isinstance(value, str):
            width = len(value.encode())
            found.append(C3dParameter(group, name, "char", (width,), (value,)))
        elif isinstance(value, int):
            number = _as_int16(value)
            found.append(C3dParameter(group, name, "integer", (), (number,)))
        elif isinstance(value, float):
            found.append(C3dParameter(group, name, "real", (), (value,)))
        else:
            found += split_list(group, name, "char", value)
    return found


def _integer_pair(name: str, value: int) -> C3dParameter:
    low, high = _as_int16(value & MAX_UINT16), _as_int16(value >> 16 & MAX_UINT16)
    return C3dParameter("TRIAL", name, "integer", (2,), (low, high))


def _as_int16(value: int) -> int:
    """Return an unsigned 16-bit number as the signed one with the same bits."""
    return value - (MAX_UINT16 + 1) if value > 0x7FFF else value


def _frames(plan: _WritePlan) -> Iterator[bytes]:
    take = plan.take
    if not plan.frame_bytes:
        return
    step = max(CHUNK_BYTES // plan.frame_bytes, 1)
    for start in range(0, take.n_frames, step):
        stop = min(start + step, take.n_frames)
        quads = _quads(plan.world.points(take.points[start:stop]))
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
        part = plan.world.poses(T[start : start + step])
        rows = np.zeros((*part.shape[:2], POSE_WORDS), "<f4")
        rows[..., :16] = part.swapaxes(-1, -2).reshape(*part.shape[:2], 16)
        rows[~np.isfinite(part).all(axis=(-1, -2)), 16] = -1.0
        yield rows.tobytes()


# --- parameters of the source ---------------------------------------------------------


def _passthrough_parameters(
    take: Take, take_parameters: Sequence[C3dParameter]
) -> list[C3dParameter]:
    """Return the source's parameters to write in addition to those of the take.

    Args:
        take: The take; a take of another format has none.
        take_parameters: Parameters of the take, which replace those of the source.
    """
    if take.source.format != "c3d":
        return []
    source = C3dParameters.from_plain(take.source.parameters)
    written = {(parameter.group, parameter.name) for parameter in take_parameters}
    names = tuple(dict.fromkeys(filter(None, take.subjects)))[:MAX_DIMENSION]
    outdated = set(_REBUILT_GROUPS)
    if source.texts("SUBJECTS", "NAMES") != names:
        outdated.add("SUBJECTS")
    if source.texts("ANALOG", "LABELS") != take.analog.labels:
        outdated.add("FORCE_PLATFORM")
    found = []
    for parameter in source:
        group = parameter.group
        if group in outdated or (group, parameter.name) in written:
            continue
        if group != "POINT":
            found.append(_widen_strings(parameter))
        elif not _POINT_LISTS.fullmatch(parameter.name):
            found += _without_missing_points(parameter, source, take)
    found += _descriptions(source, take)
    # In an order that does not depend on the source: written twice, the same bytes.
    return sorted(found, key=lambda parameter: (parameter.group, parameter.name))


def _without_missing_points(
    parameter: C3dParameter, source: C3dParameters, take: Take
) -> list[C3dParameter]:
    """Return a POINT parameter, lists of computed points without those now gone."""
    if parameter.name not in computed_lists(source):
        return [_widen_strings(parameter)]
    present = {*take.labels, *take.full_labels}
    left = tuple(label for label in parameter.values if label in present)
    if not left:
        return []
    shape = (parameter.shape[0], len(left))
    return [_widen_strings(replace(parameter, shape=shape, values=left))]


def _descriptions(source: C3dParameters, take: Take) -> list[C3dParameter]:
    """Return the descriptions of the markers that are left, found by their labels."""
    labels = source.texts("POINT", "LABELS")
    texts = source.texts("POINT", "DESCRIPTIONS")
    by_label = dict(zip(labels, texts, strict=False))
    wanted = [by_label.get(label, "") for label in take.full_labels]
    if not any(wanted):
        return []
    return split_list("POINT", "DESCRIPTIONS", "char", wanted)


def _widen_strings(parameter: C3dParameter) -> C3dParameter:
    """Return strings with room for their UTF-8 bytes, which may be more than before."""
    if parameter.kind != "char" or not parameter.shape or not parameter.values:
        return parameter
    width = max(len(text.encode()) for text in parameter.values)
    first = min(max(width, parameter.shape[0]), MAX_DIMENSION)
    return replace(parameter, shape=(first, *parameter.shape[1:]))
