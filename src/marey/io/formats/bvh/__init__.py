"""BVH, the motion file of Biovision: a tree of joints and their angles.

Position channels replace a joint's OFFSET, at the root as elsewhere. Neither the length
unit nor the up axis is stated; centimetres and Y are the habit. An End Site becomes a
fixed joint named after its parent, "Head_end"; one of length zero only says that the
joint is the last of its chain, and is left out.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.io.contract import File, Format, decoded, plain_text
from marey.io.formats.bvh.hierarchy import Joint, parse_hierarchy
from marey.io.formats.bvh.write import write_motion
from marey.io.text.lines import FASTEST, LARGEST, distinct, unique_names
from marey.io.text.numbers import (
    NUMBER,
    Numbers,
    check_motion,
    note_unended,
    parse_number,
    parse_stream,
    parse_table,
)
from marey.io.units_axes import points_in, turn_upright
from marey.motion import Motion
from marey.numerics import geometry
from marey.skeleton import Kind, Skeleton
from marey.take import Fact, Take

MOTION = re.compile(
    rb"\bMOTION\s+Frames\s*:\s*(\S+)\s+Frame\s+Time\s*:\s*(\S+)", re.IGNORECASE
)
KINDS: tuple[Kind, ...] = ("fixed", "hinge", "universal", "ball")
STILL = 1e-6
"""Metres a joint may move against its parent before it is a finding."""


@dataclass(frozen=True, slots=True, eq=False)
class _Figure:
    """The hierarchy in the file's own unit and axes."""

    names: tuple[str, ...]
    parent: Int[np.ndarray, " joint"]
    offset: Float[np.ndarray, "joint 3"]
    turns: Sequence[Sequence[tuple[int, int]]]
    """(channel, axis) of each joint's turns, in file order."""

    moves: Sequence[Sequence[tuple[int, int]]]
    """(channel, axis) of each joint's position channels."""

    n_channels: int


def sniff(head: bytes) -> bool:
    """Whether a file begins like a BVH."""
    return plain_text(head).lstrip()[:9].upper() == b"HIERARCHY"


def read_motion(file: File) -> Motion:
    """Return the motion of a BVH.

    A joint that moves against its parent, which a motion cannot hold, stands at its
    mean place; `read_take` has it exactly.
    """
    return _read(file)[0]


def read_take(file: File) -> Take:
    """Return the joints of a BVH, End Sites left out, as sensors of a take."""
    motion, place = _read(file)
    skeleton = motion.skeleton
    T = _forward(motion, place) if place else motion.T_world_joint()
    keep = ~skeleton.is_end
    return Take(
        rate=motion.rate,
        T_world_sensor=T if keep.all() else T[:, keep],
        sensor_names=tuple(np.array(skeleton.names, dtype=object)[keep]),
        source=motion.source,
    )


def _read(file: File) -> tuple[Motion, Mapping[int, np.ndarray]]:
    """Return the motion, and the places in their parents of joints that move there."""
    data = file.text()
    head = MOTION.search(data)
    if head is None:
        raise file.error(
            1 + data.count(b"\n"),
            expected="MOTION, Frames: and Frame Time:",
            found="the end of the file",
            counted="line",
        )
    figure = _figure(file, parse_hierarchy(file, decoded(data[: head.start()])))
    first_line = 1 + data.count(b"\n", 0, head.end())
    values = _values(file, data[head.end() :], figure, decoded(head[1]), first_line)
    check_motion(file, len(values), len(figure.names), len(data))
    note_unended(file, data)
    unit = file.settle("unit", assumed="cm", note="BVH does not state it")
    up = file.settle("up", assumed="y", note="BVH does not state it")
    rate = _rate(file, decoded(head[2]))
    place = {
        joint: points_in(_places(figure, values, joint), unit.value, up.value)
        for joint in range(len(figure.names))
        if figure.moves[joint]
    }
    skeleton = _skeleton(file, figure, place, unit, up)
    wxyz = _rotations(figure, values, up.value)
    root = place.pop(0, skeleton.offset[:1])
    motion = Motion(
        skeleton=skeleton,
        T_world_root=geometry.transform(geometry.matrix_from_quat(wxyz[:, 0]), root),
        wxyz=wxyz,
        rate=float(rate.value),
        source=file.source(unit=unit, up=up, rate=rate),
    )
    return motion, {
        j: p for j, p in place.items() if len(p) and np.ptp(p, axis=0).any()
    }


# --- hierarchy -----------------------------------------------------------------------


def _figure(file: File, joints: Sequence[Joint]) -> _Figure:
    first = np.cumsum([0, *(len(joint.channels) for joint in joints)])
    kept = [
        i
        for i, joint in enumerate(joints)
        if not (joint.is_end and not any(joint.offset or ()))
    ]
    place = {old: new for new, old in enumerate(kept)}
    codes = [
        [(int(first[i]) + k, code) for k, code in enumerate(joints[i].channels)]
        for i in kept
    ]
    return _Figure(
        names=_names(file, [joints[i] for i in kept], joints),
        parent=np.array([place.get(joints[i].parent, -1) for i in kept]),
        offset=np.array([joints[i].offset for i in kept], dtype=float),
        turns=[[(c, code) for c, code in own if code < 3] for own in codes],
        moves=[[(c, code - 3) for c, code in own if code >= 3] for own in codes],
        n_channels=int(first[-1]),
    )


def _names(
    file: File, kept: Sequence[Joint], joints: Sequence[Joint]
) -> tuple[str, ...]:
    """Return unique names; an End Site is called after its parent."""
    bodies = [joint for joint in kept if not joint.is_end]
    unnamed = sum(not joint.name for joint in bodies)
    if unnamed:
        file.note("labels-missing", f"{unnamed} joints have no name: called joint")
    unique = unique_names(file, [joint.name or "joint" for joint in bodies], "joint")
    name = {id(joint): text for joint, text in zip(bodies, unique, strict=True)}
    return distinct(
        [
            f"{name[id(joints[joint.parent])]}_end" if joint.is_end else name[id(joint)]
            for joint in kept
        ]
    )


def _skeleton(
    file: File, figure: _Figure, place: Mapping[int, np.ndarray], unit: Fact, up: Fact
) -> Skeleton:
    offset = points_in(figure.offset.copy(), unit.value, up.value)
    for joint, places in place.items():
        if joint == 0 or not len(places):
            continue
        offset[joint] = places[0] + (places - places[0]).mean(axis=0)
        reach = float(np.ptp(places, axis=0).max())
        if reach > STILL:
            file.note(
                "joint-translates",
                f"moves {reach:.4g} m against its parent: stands at its mean place",
                subject=figure.names[joint],
                value=reach,
            )
    kind = [KINDS[min(len(turns), 3)] for turns in figure.turns]
    kind[0] = "root"
    axes = np.full((len(kind), 2, 3), np.nan)
    R = turn_upright(up.value)
    for joint, turns in enumerate(figure.turns):
        if kind[joint] in ("hinge", "universal"):
            axes[joint, : len(turns)] = R.T[[axis for _, axis in turns]]
    return Skeleton(
        names=figure.names,
        parent=figure.parent,
        offset=offset,
        kind=tuple(kind),
        axes=axes,
    )


# --- motion --------------------------------------------------------------------------


def _values(
    file: File, body: bytes, figure: _Figure, declared: str, first_line: int
) -> Float[np.ndarray, "frame channel"]:
    """Return the channels of every whole frame."""
    count = parse_number(declared)
    frames = int(count) if count is not None and 0 <= count < LARGEST else None
    if figure.n_channels == 0:
        file.fail_at_line(1, expected="at least one channel", found="none")
    table = parse_table(
        file, body, columns=figure.n_channels, delimiter=" ", first_line=first_line
    )
    values = _whole_rows(file, table, body, frames)
    if frames != len(values):
        file.note(
            "frames-missing" if len(values) < (frames or 0) else "frames-extra",
            f"frames declared {declared!r}, present {len(values)}",
            value=float(len(values) - (frames or 0)),
        )
    if len(values) == 0 and frames != 0:
        file.fail_at_line(
            first_line, expected="a line of channels", found="the end of the file"
        )
    _check_size(file, table, values)
    return values


def _check_size(file: File, table: Numbers, values: np.ndarray) -> None:
    if max(values.max(initial=0.0), -values.min(initial=0.0)) > LARGEST:
        row = int(np.abs(values).max(axis=1).argmax())
        file.fail_at_line(
            int(table.line[min(row, len(table.line) - 1)]),
            expected=f"numbers within {LARGEST:g}",
            found=f"{np.abs(values).max():g}",
        )


def _whole_rows(
    file: File, table: Numbers, body: bytes, frames: int | None
) -> Float[np.ndarray, "frame channel"]:
    """Return the frames; the last line may be cut off, and lines may be wrapped."""
    channels = table.values.shape[1]
    if (table.status == NUMBER).all() and (table.cells == channels).all():
        return table.values
    if frames is not None and table.cells.sum() == frames * channels:
        stream = parse_stream(body)
        if stream is not None:
            file.note("lines-wrapped", "frames run over several lines", severity="info")
            return stream.reshape(frames, channels)
    good = (table.cells == channels) & (table.status == NUMBER).all(axis=1)
    bad = int(np.argmin(good))
    short = table.cells[bad] < channels or not body.endswith(b"\n")
    if bad < len(good) - 1 or not short:
        file.fail_at_line(
            int(table.line[bad]),
            expected=f"{channels} numbers, one per channel",
            found=f"{table.cells[bad]} cells"
            if table.cells[bad] != channels
            else "a word",
        )
    return table.values[:-1]


def _rate(file: File, frame_time: str) -> Fact:
    seconds = parse_number(frame_time)
    stated = None
    if seconds is not None and 1.0 / FASTEST < seconds < LARGEST:
        stated = repr(_even_rate(seconds, frame_time))
    return file.settle(
        "rate", stated=stated, assumed="30", note=f"Frame Time {frame_time}"
    )


def _even_rate(seconds: float, text: str) -> float:
    """Return the rate a rounded frame time stands for: 0.0083333 is 120 Hz."""
    digits = text.lower().partition("e")[0].partition(".")[2]
    rate = float(round(1.0 / seconds))
    last = 10.0 ** -len(digits)
    if rate > 0.0 and abs(1.0 / rate - seconds) <= min(last, 2e-3 * seconds):
        return rate
    return 1.0 / seconds


def _places(
    figure: _Figure, values: np.ndarray, joint: int
) -> Float[np.ndarray, "frame 3"]:
    places = np.repeat(figure.offset[None, joint], len(values), axis=0)
    for channel, axis in figure.moves[joint]:
        places[:, axis] = values[:, channel]
    return places


def _rotations(
    figure: _Figure, values: np.ndarray, up: str
) -> Float[np.ndarray, "frame joint 4"]:
    from marey.io.text.channel_kernel import compose  # numba is slow to import

    count = len(figure.names)
    turns = np.array(
        [turn for own in figure.turns for turn in own], dtype=np.int64
    ).reshape(-1, 2)
    first = np.cumsum([0, *(len(own) for own in figure.turns)])
    R = np.broadcast_to(turn_upright(up), (count, 3, 3)).copy()
    wxyz = np.empty((len(values), count, 4))
    compose(values, first, turns[:, 0].copy(), turns[:, 1].copy(), R, wxyz)
    return wxyz


def _forward(
    motion: Motion, place: Mapping[int, np.ndarray]
) -> Float[np.ndarray, "frame joint 4 4"]:
    """Return T_world_joint where some joints move against their parents."""
    T = np.empty((*motion.wxyz.shape[:2], 4, 4))
    T[:, 0] = motion.T_world_root
    R = geometry.matrix_from_quat(motion.wxyz)
    for joint, parent in enumerate(motion.skeleton.parent[1:], start=1):
        offset = place.get(joint, motion.skeleton.offset[joint])
        T[:, joint] = T[:, parent] @ geometry.transform(R[:, joint], offset)
    return T


FORMAT = Format(
    name="bvh",
    title="BVH (Biovision hierarchy)",
    suffixes=(".bvh",),
    sniff=sniff,
    read_take=read_take,
    read_motion=read_motion,
    write_motion=write_motion,
    loses=(
        "gaps",
        "start",
        "limits",
        "kinds",
        "markers on bones",
        "uncertainty",
        "contacts",
    ),
    precision=1e-6,
)
