"""BVH, the motion file of Biovision: a tree of joints and their angles.

Position channels replace a joint's OFFSET, at the root as elsewhere. Neither the length
unit nor the up axis is stated; centimetres and Y are usual. An End Site becomes a
fixed joint named after its parent, "Head_end"; one of length zero only says that the
joint is the last of its chain, and is left out.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.io.contract import MAX_RATE_HZ, File, Format, decode_text, normalize_text
from marey.io.formats.bvh.hierarchy import BvhJoint, parse_hierarchy
from marey.io.formats.bvh.write import write_motion
from marey.io.segment_tree import MAX_STILL_TRANSLATION_M
from marey.io.text.names import make_unique, unique_names
from marey.io.text.numbers import (
    MAX_NUMBER,
    NUMBER,
    NumberTable,
    check_motion_size,
    note_missing_line_end,
    parse_number,
    parse_stream,
    parse_table,
)
from marey.io.units_axes import points_from_file, rotation_to_z_up
from marey.motion import Motion
from marey.numerics import geometry
from marey.skeleton import Kind, Skeleton
from marey.take import Fact, Take

MOTION_HEADER = re.compile(
    rb"\bMOTION\s+Frames\s*:\s*(\S+)\s+Frame\s+Time\s*:\s*(\S+)", re.IGNORECASE
)
KINDS: tuple[Kind, ...] = ("fixed", "hinge", "universal", "ball")


@dataclass(frozen=True, slots=True, eq=False)
class BvhTree:
    """The hierarchy in the file's own unit and axes."""

    names: tuple[str, ...]
    parent: Int[np.ndarray, " joint"]
    offset: Float[np.ndarray, "joint 3"]
    rotations: Sequence[Sequence[tuple[int, int]]]
    """(channel, axis) of each joint's rotations, in file order."""

    translations: Sequence[Sequence[tuple[int, int]]]
    """(channel, axis) of each joint's position channels."""

    n_channels: int


def sniff(head: bytes) -> bool:
    """Whether a file begins like a BVH."""
    return normalize_text(head).lstrip()[:9].upper() == b"HIERARCHY"


def read_motion(file: File) -> Motion:
    """Return the motion of a BVH.

    A joint that moves against its parent, which a motion cannot hold, gets its
    mean position; `read_take` has it exactly.
    """
    return _read(file)[0]


def read_take(file: File) -> Take:
    """Return the joints of a BVH, End Sites left out, as sensors of a take."""
    motion, moving = _read(file)
    skeleton = motion.skeleton
    T = _world_poses(motion, moving) if moving else motion.T_world_joint()
    keep = ~skeleton.is_end
    return Take(
        rate=motion.rate,
        T_world_sensor=T if keep.all() else T[:, keep],
        sensor_names=tuple(np.array(skeleton.names, dtype=object)[keep]),
        source=motion.source,
    )


def _read(file: File) -> tuple[Motion, Mapping[int, np.ndarray]]:
    """Return the motion, and the positions of joints that move in their parents."""
    data = file.text()
    head = MOTION_HEADER.search(data)
    if head is None:
        file.fail_at_line(
            1 + data.count(b"\n"),
            expected="MOTION, Frames: and Frame Time:",
            found="the end of the file",
        )
    tree = _build_tree(file, parse_hierarchy(file, decode_text(data[: head.start()])))
    first_line = 1 + data.count(b"\n", 0, head.end())
    values = _read_channels(
        file, data[head.end() :], tree, decode_text(head[1]), first_line
    )
    check_motion_size(file, len(values), len(tree.names), len(data))
    note_missing_line_end(file, data)
    unit = file.decide_fact("unit", assumed="cm", note="BVH does not state it")
    up = file.decide_fact("up", assumed="y", note="BVH does not state it")
    rate = _rate(file, decode_text(head[2]))
    moving = {
        joint: points_from_file(_positions(tree, values, joint), unit.value, up.value)
        for joint in range(len(tree.names))
        if tree.translations[joint]
    }
    skeleton = _skeleton(file, tree, moving, unit, up)
    wxyz = _rotations(tree, values, up.value)
    root = moving.pop(0, skeleton.offset[:1])
    motion = Motion(
        skeleton=skeleton,
        T_world_root=geometry.transform(geometry.matrix_from_quat(wxyz[:, 0]), root),
        wxyz=wxyz,
        rate=float(rate.value),
        source=file.source(unit=unit, up=up, rate=rate),
    )
    return motion, {
        j: p for j, p in moving.items() if len(p) and np.ptp(p, axis=0).any()
    }


# --- hierarchy -----------------------------------------------------------------------


def _build_tree(file: File, joints: Sequence[BvhJoint]) -> BvhTree:
    first = np.cumsum([0, *(len(joint.channels) for joint in joints)])
    used = [
        i
        for i, joint in enumerate(joints)
        if not (joint.is_end and not any(joint.offset or ()))
    ]
    new_index = {old: new for new, old in enumerate(used)}
    codes = [
        [(int(first[i]) + k, code) for k, code in enumerate(joints[i].channels)]
        for i in used
    ]
    return BvhTree(
        names=_names(file, [joints[i] for i in used], joints),
        parent=np.array([new_index.get(joints[i].parent, -1) for i in used]),
        offset=np.array([joints[i].offset for i in used], dtype=float),
        rotations=[
            [(c, code) for c, code in channels if code < 3] for channels in codes
        ],
        translations=[
            [(c, code - 3) for c, code in channels if code >= 3] for channels in codes
        ],
        n_channels=int(first[-1]),
    )


def _names(
    file: File, used: Sequence[BvhJoint], joints: Sequence[BvhJoint]
) -> tuple[str, ...]:
    """Return unique names; an End Site is called after its parent."""
    bodies = [joint for joint in used if not joint.is_end]
    unnamed = sum(not joint.name for joint in bodies)
    if unnamed:
        file.note("labels-missing", f"{unnamed} joints have no name: called joint")
    unique = unique_names(file, [joint.name or "joint" for joint in bodies], "joint")
    name = {id(joint): text for joint, text in zip(bodies, unique, strict=True)}
    return make_unique(
        [
            f"{name[id(joints[joint.parent])]}_end" if joint.is_end else name[id(joint)]
            for joint in used
        ]
    )


def _skeleton(
    file: File, tree: BvhTree, moving: Mapping[int, np.ndarray], unit: Fact, up: Fact
) -> Skeleton:
    offset = points_from_file(tree.offset.copy(), unit.value, up.value)
    for joint, positions in moving.items():
        if joint == 0 or not len(positions):
            continue
        offset[joint] = positions[0] + (positions - positions[0]).mean(axis=0)
        range_m = float(np.ptp(positions, axis=0).max())
        if range_m > MAX_STILL_TRANSLATION_M:
            file.note(
                "joint-translates",
                f"moves {range_m:.4g} m against its parent: its mean position is used",
                subject=tree.names[joint],
                value=range_m,
            )
    kind = [KINDS[min(len(rotations), 3)] for rotations in tree.rotations]
    kind[0] = "root"
    axes = np.full((len(kind), 2, 3), np.nan)
    R = rotation_to_z_up(up.value)
    for joint, rotations in enumerate(tree.rotations):
        if kind[joint] in ("hinge", "universal"):
            axes[joint, : len(rotations)] = R.T[[axis for _, axis in rotations]]
    return Skeleton(
        names=tree.names,
        parent=tree.parent,
        offset=offset,
        kind=tuple(kind),
        axes=axes,
    )


# --- motion --------------------------------------------------------------------------


def _read_channels(
    file: File, body: bytes, tree: BvhTree, declared: str, first_line: int
) -> Float[np.ndarray, "frame channel"]:
    """Return the channels of every whole frame."""
    count = parse_number(declared)
    frames = int(count) if count is not None and 0 <= count < MAX_NUMBER else None
    if tree.n_channels == 0:
        file.fail_at_line(1, expected="at least one channel", found="none")
    table = parse_table(
        file, body, columns=tree.n_channels, delimiter=" ", first_line=first_line
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
    _check_values(file, table, values)
    return values


def _check_values(file: File, table: NumberTable, values: np.ndarray) -> None:
    if max(values.max(initial=0.0), -values.min(initial=0.0)) > MAX_NUMBER:
        row = int(np.abs(values).max(axis=1).argmax())
        file.fail_at_line(
            int(table.line[min(row, len(table.line) - 1)]),
            expected=f"numbers within {MAX_NUMBER:g}",
            found=f"{np.abs(values).max():g}",
        )


def _whole_rows(
    file: File, table: NumberTable, body: bytes, frames: int | None
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
    if seconds is not None and 1.0 / MAX_RATE_HZ < seconds < MAX_NUMBER:
        stated = repr(_round_rate(seconds, frame_time))
    return file.decide_fact(
        "rate", stated=stated, assumed="30", note=f"Frame Time {frame_time}"
    )


def _round_rate(seconds: float, text: str) -> float:
    """Return the rate a rounded frame time means: 0.0083333 is 120 Hz."""
    digits = text.lower().partition("e")[0].partition(".")[2]
    rate = float(round(1.0 / seconds))
    last = 10.0 ** -len(digits)
    if rate > 0.0 and abs(1.0 / rate - seconds) <= min(last, 2e-3 * seconds):
        return rate
    return 1.0 / seconds


def _positions(
    tree: BvhTree, values: np.ndarray, joint: int
) -> Float[np.ndarray, "frame 3"]:
    positions = np.repeat(tree.offset[None, joint], len(values), axis=0)
    for channel, axis in tree.translations[joint]:
        positions[:, axis] = values[:, channel]
    return positions


def _rotations(
    tree: BvhTree, values: np.ndarray, up: str
) -> Float[np.ndarray, "frame joint 4"]:
    from marey.io.text.channel_kernel import (
        compose_rotations,  # numba is slow to import
    )

    count = len(tree.names)
    rotations = np.array(
        [pair for pairs in tree.rotations for pair in pairs], dtype=np.int64
    ).reshape(-1, 2)
    first = np.cumsum([0, *(len(pairs) for pairs in tree.rotations)])
    R = np.broadcast_to(rotation_to_z_up(up), (count, 3, 3)).copy()
    wxyz = np.empty((len(values), count, 4))
    compose_rotations(
        values, first, rotations[:, 0].copy(), rotations[:, 1].copy(), R, wxyz
    )
    return wxyz


def _world_poses(
    motion: Motion, moving: Mapping[int, np.ndarray]
) -> Float[np.ndarray, "frame joint 4 4"]:
    """Return T_world_joint where some joints move against their parents."""
    T = np.empty((*motion.wxyz.shape[:2], 4, 4))
    T[:, 0] = motion.T_world_root
    R = geometry.matrix_from_quat(motion.wxyz)
    for joint, parent in enumerate(motion.skeleton.parent[1:], start=1):
        offset = moving.get(joint, motion.skeleton.offset[joint])
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
