"""Segments of a body as a tree of joints: their order, rest pose and rotations."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from marey.io.file import File
from marey.io.text.names import make_unique
from marey.numerics import Float, Int, geometry
from marey.skeleton import Kind, Skeleton

KINDS: tuple[Kind, ...] = ("fixed", "hinge", "universal", "ball")
"""Kinds of joints by their number of rotations."""

ADDED_ROOT = "root"
MAX_STILL_TRANSLATION_M = 1e-6
"""Largest motion of a joint in its parent without a finding, in metres.

Higher accepts more translating joints silently. Chosen by hand.
"""

POSES_PER_BLOCK = 2**16
MAX_BONE_MISFIT_M = 1e-3
"""Largest misfit of rigid bones to recorded positions without a finding, in metres.

Higher accepts more stretching bones silently. Chosen by hand.
"""


@dataclass(frozen=True, slots=True, eq=False)
class SegmentTree:
    """Joints with every parent before its children, and one root."""

    names: tuple[str, ...]
    parent: Int[np.ndarray, " joint"]
    """Parent joint; -1 for the root, which is joint 0."""

    segment: Int[np.ndarray, " joint"]
    """The file's segment of each joint; -1 for a root that was added."""


def build_segment_tree(
    file: File, parents: Mapping[str, str], top: str = ""
) -> SegmentTree:
    """Return the tree of segments; several roots get one more above them.

    Args:
        file: Named in errors; collects the finding of several roots.
        parents: Name of each segment's parent by segment name.
        top: Name that marks the parent of a root.

    Raises:
        FormatError: If a parent is not there, or segments form a loop.
    """
    number = {name: i for i, name in enumerate(parents)}
    parent = [_segment_index(file, number, up, top) for up in parents.values()]
    order = _order_parents_first(parent)
    names = list(parents)
    if len(order) < len(names):
        looped = names[min(set(range(len(names))) - set(order))]
        file.fail("a tree of segments", f"a loop through {looped!r}")
    joint_of = {segment: joint for joint, segment in enumerate(order)}
    up = np.array([joint_of.get(parent[s], -1) for s in order], dtype=np.int64)
    roots = np.flatnonzero(up < 0)
    if len(roots) == 1:
        return SegmentTree(
            tuple(names[s] for s in order), up, np.array(order, dtype=np.int64)
        )
    added = make_unique([*names, ADDED_ROOT])[-1]
    file.note(
        "roots-several",
        f"{len(roots)} segments have no parent: their parent is an added joint "
        f"{added!r}, which moves with the first of them",
        value=len(roots),
    )
    return SegmentTree(
        (added, *(names[s] for s in order)),
        np.concatenate([[-1], np.where(up < 0, 0, up + 1)]).astype(np.int64),
        np.array([-1, *order], dtype=np.int64),
    )


def _segment_index(file: File, number: Mapping[str, int], name: str, top: str) -> int:
    if name == top:
        return -1
    if name not in number:
        file.fail("a segment as parent", repr(name))
    return number[name]


def _order_parents_first(parent: Sequence[int]) -> list[int]:
    """Return the file's order, changed only where a child comes before its parent."""
    children: dict[int, list[int]] = {}
    for child, up in enumerate(parent):
        children.setdefault(up, []).append(child)
    ready = list(children.get(-1, []))
    order = []
    while ready:
        segment = heapq.heappop(ready)
        order.append(segment)
        for child in children.get(segment, []):
            heapq.heappush(ready, child)
    return order


def frame_blocks(frames: int, joints: int) -> Iterator[slice]:
    """Yield blocks of frames that bound the memory of intermediate arrays."""
    step = max(POSES_PER_BLOCK // joints, 1)
    return (slice(first, first + step) for first in range(0, frames, step))


def compose_world_poses(
    parent: Int[np.ndarray, " joint"], T_local: Float[np.ndarray, "frame joint 4 4"]
) -> Float[np.ndarray, "frame joint 4 4"]:
    """Return T_world_joint from T_parent_joint, in the given array and its unit."""
    for joint, up in enumerate(parent):
        if up >= 0:
            T_local[:, joint] = T_local[:, up] @ T_local[:, joint]
    return T_local


def joint_rotations(
    parent: Int[np.ndarray, " joint"],
    R_world_segment: Float[np.ndarray, "frame joint 3 3"],
    R_rest: Float[np.ndarray, "#joint 3 3"],
) -> Float[np.ndarray, "frame joint 4"]:
    """Return R_parent_joint as quaternions, joints aligned with the world at rest.

    Args:
        parent: Parent joint, -1 for the root.
        R_world_segment: Orientation of the file's own segment frames.
        R_rest: The same in the rest pose.
    """
    wxyz = np.empty((*R_world_segment.shape[:2], 4))
    for block in frame_blocks(*R_world_segment.shape[:2]):
        R_world = R_world_segment[block] @ np.swapaxes(R_rest, -1, -2)
        R_parent = np.where((parent < 0)[:, None, None], np.eye(3), R_world[:, parent])
        R = np.swapaxes(R_parent, -1, -2) @ R_world
        wxyz[block] = geometry.quat_from_matrix(R)
    return wxyz


def note_translation(file: File, joint: str, range_m: float, message: str) -> None:
    """Add a finding when a joint moves in its parent, which a motion cannot hold."""
    if range_m > MAX_STILL_TRANSLATION_M:
        file.note("joint-translates", message, subject=joint, value=range_m)


def note_bone_misfit(
    file: File,
    recorded: Float[np.ndarray, "frame recorded 3"],
    skeleton: Skeleton,
    wxyz: Float[np.ndarray, "frame joint 4"],
) -> None:
    """Add a finding when bones of constant length miss the recorded positions.

    Args:
        file: Keeps the finding.
        recorded: Recorded positions of the first joints, in metres.
        skeleton: The bones.
        wxyz: Rotations of all joints.
    """
    worst = 0.0
    for block in frame_blocks(*wxyz.shape[:2]):
        R_root = geometry.matrix_from_quat(wxyz[block, 0])
        T_root = geometry.transform(R_root, recorded[block, 0])
        T = skeleton.forward(T_root, wxyz[block])
        modelled = T[:, : recorded.shape[1], :3, 3]
        miss = np.linalg.norm(recorded[block] - modelled, axis=-1)
        worst = float(np.max(miss, initial=worst, where=np.isfinite(miss)))
    if worst > MAX_BONE_MISFIT_M:
        file.note(
            "bones-not-rigid",
            f"bones of constant length miss the recorded positions by up to "
            f"{1e3 * worst:.1f} mm; read the file as a take for those",
            value=worst,
        )
