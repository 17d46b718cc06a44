"""Writing BVH: the hierarchy as text, then one line of channels per frame."""

from collections.abc import Iterator

import numpy as np

from marey.io.contract import Output, WriteOptions
from marey.io.text.names import make_unique, printable_name
from marey.io.text.numbers import decimals_for, round_values
from marey.io.text.rotations import (
    ANGLE_DECIMALS,
    change_axes,
    euler_degrees,
    hold_last_pose,
)
from marey.io.text.timing import check_even_rate
from marey.io.units_axes import points_to_file, rotation_to_z_up
from marey.motion import Motion
from marey.skeleton import Skeleton

EULER_ORDER = "ZXY"
ROTATION_CHANNELS = " ".join(f"{axis}rotation" for axis in EULER_ORDER)
PRECISION_M = 1e-8
"""Metres to which offsets and root positions are written."""

MAX_INDENT = 32
"""Levels that are indented; deeper levels would hold more white space than data."""


def write_motion(motion: Motion, options: WriteOptions) -> Output:
    """Return the BVH of a motion: cm and Y up by default.

    The root has six channels, every other joint continuous rotations Z X Y. A fixed
    leaf called "<parent>_end" is written as an End Site, any other fixed leaf as a
    joint without channels. Gaps hold the last known pose.

    Raises:
        DataError: If the frames are not evenly spaced.
    """
    rate = check_even_rate(motion)
    unit, up = options.unit or "cm", options.up or "y"
    skeleton = motion.skeleton
    position, wxyz = hold_last_pose(motion)
    decimals = decimals_for(unit, PRECISION_M)
    order = _depth_first(skeleton)
    offset = round_values(points_to_file(skeleton.offset, unit, up), decimals)
    head = "\n".join(_hierarchy(skeleton, order, offset, decimals))
    is_end = skeleton.is_end
    moving = [j for j in order if not is_end[j]]
    angles = euler_degrees(
        change_axes(wxyz[:, moving], rotation_to_z_up(up).T), EULER_ORDER
    )
    position = round_values(points_to_file(position, unit, up), decimals)
    values = np.concatenate([position, angles.reshape(len(angles), -1)], axis=1)
    head += f"\nMOTION\nFrames: {motion.n_frames}\nFrame Time: {1.0 / rate:.12g}\n"
    return {"": _lines(head, values, decimals)}


def _depth_first(skeleton: Skeleton) -> list[int]:
    """Return the joints in the order of a BVH: every subtree in one piece."""
    children: list[list[int]] = [[] for _ in skeleton.names]
    for joint, parent in enumerate(skeleton.parent[1:].tolist(), start=1):
        children[parent].append(joint)
    order, stack = [], [0]
    while stack:
        joint = stack.pop()
        order.append(joint)
        stack.extend(reversed(children[joint]))
    return order


def _hierarchy(
    skeleton: Skeleton, order: list[int], offset: np.ndarray, decimals: int
) -> Iterator[str]:
    names = make_unique([printable_name(name, "{}") for name in skeleton.names])
    parent = skeleton.parent.tolist()
    is_end = skeleton.is_end
    has_children = np.zeros(len(names), dtype=bool)
    has_children[skeleton.parent[1:]] = True
    yield "HIERARCHY"
    open_joints: list[int] = []
    for joint in order:
        while open_joints and open_joints[-1] != parent[joint]:
            open_joints.pop()
            yield _indent(len(open_joints)) + "}"
        depth = _indent(len(open_joints))
        site = bool(is_end[joint]) and names[joint] == f"{names[parent[joint]]}_end"
        kind = "ROOT" if joint == 0 else "JOINT"
        yield depth + ("End Site" if site else f"{kind} {names[joint]}")
        yield depth + "{"
        yield f"{depth}\tOFFSET " + " ".join(f"{v:.{decimals}f}" for v in offset[joint])
        if not site:
            yield f"{depth}\t{_channels(joint, fixed=bool(is_end[joint]))}"
        if not site and not has_children[joint]:
            yield f"{depth}\tEnd Site"
            yield f"{depth}\t{{"
            yield f"{depth}\t\tOFFSET 0 0 0"
            yield f"{depth}\t}}"
        open_joints.append(joint)
    while open_joints:
        open_joints.pop()
        yield _indent(len(open_joints)) + "}"


def _indent(depth: int) -> str:
    return "\t" * min(depth, MAX_INDENT)


def _channels(joint: int, *, fixed: bool) -> str:
    if joint == 0:
        return f"CHANNELS 6 Xposition Yposition Zposition {ROTATION_CHANNELS}"
    return "CHANNELS 0" if fixed else f"CHANNELS 3 {ROTATION_CHANNELS}"


def _lines(head: str, values: np.ndarray, decimals: int) -> Iterator[bytes]:
    yield head.encode()
    angles = [f"%.{ANGLE_DECIMALS}f"] * (values.shape[1] - 3)
    line = " ".join([*[f"%.{decimals}f"] * 3, *angles]) + "\n"
    for row in values:
        yield (line % tuple(row.tolist())).encode()
