"""BVH, the motion file of Biovision: a tree of joints and their angles.

Position channels replace a joint's OFFSET, at the root as elsewhere. Neither the length
unit nor the up axis is stated; centimetres and Y are usual. An End Site becomes a
fixed joint named after its parent, "Head_end"; one of length zero only says that the
joint is the last of its chain, and is left out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from marey.io import segment_tree
from marey.io.contract import Format, Output, motion_as_take
from marey.io.file import Facts, File
from marey.io.formats.bvh.hierarchy import BvhJoint, parse_hierarchy
from marey.io.losses import LOST_BY_MOTIONS
from marey.io.options import MAX_RATE_HZ, WriteOptions
from marey.io.text import numbers, rotations
from marey.io.text.encoding import decode_text, normalize_text
from marey.io.text.names import (
    make_unique,
    printable_name,
    spell_names,
    unique_names,
)
from marey.io.text.rotations import rotations_from_channels
from marey.io.text.timing import check_even_rate
from marey.io.units_axes import rotation_to_z_up
from marey.motion import Motion
from marey.numerics import Float, Int, geometry
from marey.skeleton import Skeleton
from marey.take import Fact, Take
from marey.tree import depth_first_order

MOTION_HEADER = re.compile(
    rb"\bMOTION\s+Frames\s*:\s*(\S+)\s+Frame\s+Time\s*:\s*(\S+)", re.IGNORECASE
)
MAX_RATE_ROUNDING = 2e-3
"""Largest relative change of a frame time to that of a whole rate.

Higher takes more odd frame times for rounded ones. Chosen by hand.
"""

EULER_ORDER = "ZXY"
ROTATION_CHANNELS = " ".join(f"{axis}rotation" for axis in EULER_ORDER)
PRECISION_M = 1e-8
"""Metres to which offsets and root positions are written."""

MAX_INDENT = 32
"""Levels that are indented; deeper levels would hold more white space than data."""


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
    return motion_as_take(motion, _world_poses(motion, moving) if moving else None)


def _read(file: File) -> tuple[Motion, Mapping[int, np.ndarray]]:
    """Return the motion, and the positions of joints that move in their parents."""
    data = file.text()
    head = MOTION_HEADER.search(data)
    if head is None:
        end = 1 + data.count(b"\n")
        file.fail("MOTION, Frames: and Frame Time:", "the end of the file", line=end)
    tree = _build_tree(file, parse_hierarchy(file, decode_text(data[: head.start()])))
    first_line = 1 + data.count(b"\n", 0, head.end())
    values = _read_channels(
        file, data[head.end() :], tree, decode_text(head[1]), first_line
    )
    numbers.check_motion_size(file, len(values), len(tree.names), len(data))
    numbers.note_missing_line_end(file, data)
    facts = Facts(
        file.decide_fact("unit", assumed="cm", note="BVH does not state it"),
        file.decide_fact("up", assumed="y", note="BVH does not state it"),
        _rate(file, decode_text(head[2])),
    )
    moving = {
        joint: facts.points(_positions(tree, values, joint))
        for joint, channels in enumerate(tree.translations)
        if channels
    }
    R = rotation_to_z_up(facts.up.value)
    skeleton = _skeleton(file, tree, moving, facts.points(tree.offset.copy()), R)
    R_joint_file = np.broadcast_to(R, (len(tree.names), 3, 3)).copy()
    wxyz = rotations_from_channels(values, tree.rotations, R_joint_file)
    motion = file.motion(facts, skeleton, moving.pop(0, skeleton.offset[:1]), wxyz)
    return motion, {
        j: p for j, p in moving.items() if len(p) and np.ptp(p, axis=0).any()
    }


# --- hierarchy -----------------------------------------------------------------------


def _build_tree(file: File, joints: Sequence[BvhJoint]) -> BvhTree:
    """Return offsets, names and channels of all joints, parents first."""
    first = np.cumsum([0, *(len(joint.channels) for joint in joints)])
    used = [
        i
        for i, joint in enumerate(joints)
        if not joint.is_end or any(joint.offset or ())
    ]
    new_index = {old: new for new, old in enumerate(used)}
    codes = [list(enumerate(joints[i].channels, int(first[i]))) for i in used]
    return BvhTree(
        names=_names(file, [joints[i] for i in used], joints),
        parent=np.array([new_index.get(joints[i].parent, -1) for i in used]),
        offset=np.array([joints[i].offset for i in used], dtype=float),
        rotations=[[(c, code) for c, code in part if code < 3] for part in codes],
        translations=[
            [(c, code - 3) for c, code in part if code >= 3] for part in codes
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
    file: File,
    tree: BvhTree,
    moving: Mapping[int, np.ndarray],
    offset: Float[np.ndarray, "joint 3"],
    R: Float[np.ndarray, "3 3"],
) -> Skeleton:
    """Return the skeleton, joints that move against their parents in the middle."""
    for joint, positions in moving.items():
        if joint > 0 and len(positions):
            offset[joint] = positions[0] + (positions - positions[0]).mean(axis=0)
            range_m = float(np.ptp(positions, axis=0).max())
            segment_tree.note_translation(
                file,
                tree.names[joint],
                range_m,
                f"moves {range_m:.4g} m against its parent: its mean position is used",
            )
    turns = [[axis for _, axis in rotations] for rotations in tree.rotations]
    kind = [segment_tree.KINDS[min(len(axes), 3)] for axes in turns]
    kind[0] = "root"
    axes = np.full((len(kind), 2, 3), np.nan)
    for joint, turned in enumerate(turns):
        if kind[joint] in ("hinge", "universal"):
            axes[joint, : len(turned)] = R.T[turned]
    return Skeleton(
        names=tree.names, parent=tree.parent, offset=offset, kind=tuple(kind), axes=axes
    )


# --- motion --------------------------------------------------------------------------


def _read_channels(
    file: File, body: bytes, tree: BvhTree, declared: str, first_line: int
) -> Float[np.ndarray, "frame channel"]:
    """Return the channels of every whole frame."""
    count = numbers.parse_number(declared)
    within = count is not None and 0 <= count < numbers.MAX_NUMBER
    frames = int(count) if count is not None and within else None
    if tree.n_channels == 0:
        file.fail("at least one channel", "none", line=1)
    table = numbers.parse_table(
        file, body, columns=tree.n_channels, delimiter=" ", first_line=first_line
    )
    values = _whole_rows(file, table, body, frames)
    if frames != len(values):
        lost = len(values) < (frames or 0)
        file.note(
            "frames-missing" if lost else "frames-extra",
            f"frames declared {declared.strip()}, present {len(values)}: "
            + ("export it again if some are missing" if lost else "all are read"),
            value=len(values) - (frames or 0),
        )
    if len(values) == 0 and frames != 0:
        file.fail("a line of channels", "the end of the file", line=first_line)
    if max(values.max(initial=0.0), -values.min(initial=0.0)) > numbers.MAX_NUMBER:
        row = int(np.abs(values).max(axis=1).argmax())
        file.fail(
            f"numbers within {numbers.MAX_NUMBER:g}",
            f"{np.abs(values).max():g}",
            line=int(table.line[min(row, len(table.line) - 1)]),
        )
    return values


def _whole_rows(
    file: File, table: numbers.NumberTable, body: bytes, frames: int | None
) -> Float[np.ndarray, "frame channel"]:
    """Return the frames; the last line may be cut off, and lines may be wrapped."""
    channels = table.values.shape[1]
    if (table.status == numbers.NUMBER).all() and (table.cells == channels).all():
        return table.values
    if frames is not None and table.cells.sum() == frames * channels:
        stream = numbers.parse_stream(body)
        if stream is not None:
            file.note("lines-wrapped", "frames run over several lines", severity="info")
            return stream.reshape(frames, channels)
    good = (table.cells == channels) & (table.status == numbers.NUMBER).all(axis=1)
    bad = int(np.argmin(good))
    short = table.cells[bad] < channels or not body.endswith(b"\n")
    if bad < len(good) - 1 or not short:
        file.fail(
            f"{channels} numbers, one per channel",
            f"{table.cells[bad]} cells" if table.cells[bad] != channels else "a word",
            line=int(table.line[bad]),
        )
    return table.values[:-1]


def _rate(file: File, frame_time: str) -> Fact:
    """Return the rate (Hz) that the frame time states, or the assumed one."""
    seconds = numbers.parse_number(frame_time)
    stated = None
    if seconds is not None and 1.0 / MAX_RATE_HZ < seconds < numbers.MAX_NUMBER:
        stated = repr(_round_rate(seconds, frame_time))
    return file.decide_fact(
        "rate", stated=stated, assumed="30", note=f"Frame Time {frame_time}"
    )


def _round_rate(seconds: float, text: str) -> float:
    """Return the rate a rounded frame time means: 0.0083333 is 120 Hz."""
    digits = text.lower().partition("e")[0].partition(".")[2]
    rate = float(round(1.0 / seconds))
    last = 10.0 ** -len(digits)
    tolerance = min(last, MAX_RATE_ROUNDING * seconds)
    rounded = rate > 0.0 and abs(1.0 / rate - seconds) <= tolerance
    return rate if rounded else 1.0 / seconds


def _positions(
    tree: BvhTree, values: np.ndarray, joint: int
) -> Float[np.ndarray, "frame 3"]:
    """Return a joint in its parent, in the unit of the file."""
    positions = np.repeat(tree.offset[None, joint], len(values), axis=0)
    for channel, axis in tree.translations[joint]:
        positions[:, axis] = values[:, channel]
    return positions


def _world_poses(
    motion: Motion, moving: Mapping[int, np.ndarray]
) -> Float[np.ndarray, "frame joint 4 4"]:
    """Return T_world_joint, in metres, where some joints move against their parents."""
    T = np.empty((*motion.wxyz.shape[:2], 4, 4))
    T[:, 0] = motion.T_world_root
    R = geometry.matrix_from_quat(motion.wxyz)
    for joint, parent in enumerate(motion.skeleton.parent[1:], start=1):
        offset = moving.get(joint, motion.skeleton.offset[joint])
        T[:, joint] = T[:, parent] @ geometry.transform(R[:, joint], offset)
    return T


# --- writing -------------------------------------------------------------------------


def write_motion(motion: Motion, options: WriteOptions) -> Output:
    """Return the BVH of a motion: cm and Y up by default.

    The root has six channels, every other joint continuous rotations Z X Y. A fixed
    leaf called "<parent>_end" is written as an End Site, any other fixed leaf as a
    joint without channels. Gaps hold the last known pose.

    Raises:
        DataError: If the frames are not evenly spaced.
    """
    rate = check_even_rate(motion)
    world = options.world("cm", "y")
    skeleton = motion.skeleton
    position, wxyz = rotations.hold_last_pose(motion)
    decimals = numbers.decimals_for(world.unit, PRECISION_M)
    order = depth_first_order(skeleton.parent)
    offset = numbers.round_values(world.points(skeleton.offset), decimals)
    names = spell_names(skeleton.names, lambda n: printable_name(n, "{}"), options)
    named = replace(skeleton, names=names)
    head = "\n".join(_hierarchy(named, order, offset, decimals))
    head += f"\nMOTION\nFrames: {motion.n_frames}\nFrame Time: {1.0 / rate:.12g}\n"
    moving = [j for j in order if not skeleton.is_end[j]]
    turned = world.rotations(wxyz[:, moving])
    angles = rotations.euler_degrees(turned, EULER_ORDER).reshape(len(turned), -1)
    position = numbers.round_values(world.points(position), decimals)
    row = [*[f"%.{decimals}f"] * 3, *[rotations.ANGLE_FORMAT] * angles.shape[1]]
    values = np.concatenate([position, angles], axis=1)
    return {"": numbers.format_lines(head, " ".join(row) + "\n", values)}


def _hierarchy(
    skeleton: Skeleton, order: Sequence[int], offset: np.ndarray, decimals: int
) -> Iterator[str]:
    names = skeleton.names
    parent, is_end = skeleton.parent.tolist(), skeleton.is_end.tolist()
    parents = set(parent)
    yield "HIERARCHY"
    open_joints: list[int] = []
    for joint in order:
        while open_joints and open_joints[-1] != parent[joint]:
            open_joints.pop()
            yield _indent(len(open_joints)) + "}"
        depth = _indent(len(open_joints))
        site = is_end[joint] and names[joint] == f"{names[parent[joint]]}_end"
        kind = "JOINT" if joint else "ROOT"
        yield depth + ("End Site" if site else f"{kind} {names[joint]}")
        yield depth + "{"
        yield f"{depth}\tOFFSET " + " ".join(f"{v:.{decimals}f}" for v in offset[joint])
        if not site:
            yield f"{depth}\t{_channels(joint, fixed=is_end[joint])}"
        if not site and joint not in parents:
            ending = ("End Site", "{", "\tOFFSET 0 0 0", "}")
            yield from (f"{depth}\t{line}" for line in ending)
        open_joints.append(joint)
    for level in reversed(range(len(open_joints))):
        yield _indent(level) + "}"


def _indent(depth: int) -> str:
    return "\t" * min(depth, MAX_INDENT)


def _channels(joint: int, *, fixed: bool) -> str:
    if joint == 0:
        return f"CHANNELS 6 Xposition Yposition Zposition {ROTATION_CHANNELS}"
    return "CHANNELS 0" if fixed else f"CHANNELS 3 {ROTATION_CHANNELS}"


FORMAT = Format(
    name="bvh",
    title="BVH (Biovision hierarchy)",
    suffixes=(".bvh",),
    sniff=sniff,
    read_take=read_take,
    read_motion=read_motion,
    write_motion=write_motion,
    loses=("limits", "kinds", *LOST_BY_MOTIONS),
    precision=1e-6,
)
