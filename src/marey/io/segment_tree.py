"""Segments of a body as a tree of joints: their order, rest pose and rotations."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.io.contract import File
from marey.io.text.lines import distinct
from marey.numerics import geometry
from marey.skeleton import Skeleton

ROOT = "root"
POSES_AT_ONCE = 2**16
FALSE_STEP = 1e-3
"""Metres by which bones of constant length may miss what was recorded."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Joints with every parent before its children, and one root."""

    names: tuple[str, ...]
    parent: Int[np.ndarray, " joint"]
    """Parent joint; -1 for the root, which is joint 0."""

    segment: Int[np.ndarray, " joint"]
    """The file's segment of each joint; -1 for a root that was added."""


def arrange(file: File, parents: Mapping[str, str], top: str = "") -> Tree:
    """Return the tree of segments; several roots get one more above them.

    Args:
        file: Named in errors; keeps the finding of several roots.
        parents: Name of each segment's parent by the segment's own.
        top: What stands as the parent of a root.

    Raises:
        FormatError: If a parent is not there, or segments hang in a loop.
    """
    number = {name: i for i, name in enumerate(parents)}
    parent = [_number(file, number, up, top) for up in parents.values()]
    order = _parents_first(parent)
    names = list(parents)
    if len(order) < len(names):
        looped = names[min(set(range(len(names))) - set(order))]
        raise file.error(
            None, expected="a tree of segments", found=f"a loop through {looped!r}"
        )
    place = {segment: joint for joint, segment in enumerate(order)}
    up = np.array([place.get(parent[s], -1) for s in order], dtype=np.int64)
    roots = np.flatnonzero(up < 0)
    if len(roots) == 1:
        return Tree(tuple(names[s] for s in order), up, np.array(order, dtype=np.int64))
    added = distinct([*names, ROOT])[-1]
    file.note(
        "roots-several",
        f"{len(roots)} segments have no parent: they hang on an added joint "
        f"{added!r}, which goes with the first of them",
        value=float(len(roots)),
    )
    return Tree(
        (added, *(names[s] for s in order)),
        np.concatenate([[-1], np.where(up < 0, 0, up + 1)]).astype(np.int64),
        np.array([-1, *order], dtype=np.int64),
    )


def _number(file: File, number: Mapping[str, int], name: str, top: str) -> int:
    if name == top:
        return -1
    if name not in number:
        raise file.error(None, expected="a segment as parent", found=repr(name))
    return number[name]


def _parents_first(parent: Sequence[int]) -> list[int]:
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


def blocks(frames: int, joints: int) -> Iterator[slice]:
    """Return the frames in blocks, so that what is made on the way stays small."""
    step = max(POSES_AT_ONCE // joints, 1)
    return (slice(first, first + step) for first in range(0, frames, step))


def chained(
    parent: Int[np.ndarray, " joint"], T_local: Float[np.ndarray, "frame joint 4 4"]
) -> Float[np.ndarray, "frame joint 4 4"]:
    """Return poses in the world from poses in the parent, in the given array."""
    for joint, up in enumerate(parent):
        if up >= 0:
            T_local[:, joint] = T_local[:, up] @ T_local[:, joint]
    return T_local


def rotations(
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
    for block in blocks(*R_world_segment.shape[:2]):
        R_world = R_world_segment[block] @ np.swapaxes(R_rest, -1, -2)
        R_parent = np.where((parent < 0)[:, None, None], np.eye(3), R_world[:, parent])
        R = np.swapaxes(R_parent, -1, -2) @ R_world
        wxyz[block] = geometry.quat_from_matrix(R)
    return wxyz


def note_misfit(
    file: File,
    recorded: Float[np.ndarray, "frame recorded 3"],
    skeleton: Skeleton,
    T_world_root: Float[np.ndarray, "frame 4 4"],
    wxyz: Float[np.ndarray, "frame joint 4"],
) -> None:
    """Keep a finding when bones of constant length miss the recorded places.

    Args:
        file: Keeps the finding.
        recorded: Places of the first joints as the file has them.
        skeleton: The bones.
        T_world_root: Pose of the root.
        wxyz: Rotations of all joints.
    """
    worst = 0.0
    for block in blocks(*wxyz.shape[:2]):
        T = skeleton.forward(T_world_root[block], wxyz[block])
        kept = T[:, : recorded.shape[1], :3, 3]
        miss = np.linalg.norm(recorded[block] - kept, axis=-1)
        known = np.isfinite(miss)
        worst = float(np.max(miss, initial=worst, where=known))
    if worst > FALSE_STEP:
        file.note(
            "bones-not-rigid",
            f"bones of constant length miss the recorded places by up to "
            f"{1e3 * worst:.1f} mm; read the file as a take for those",
            value=worst,
        )
