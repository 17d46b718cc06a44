"""A skeleton in pieces: joints that are inserted and dissolved while it moves."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Optional

import numpy as np

from marey.motion import Motion
from marey.numerics import Array, Float, Int, geometry
from marey.skeleton import OPTIONAL, Skeleton


@dataclass(slots=True, eq=False)
class JointRow:
    """One joint: its name, parent and offset, and its rotations in every motion."""

    name: str
    parent: Optional["JointRow"]
    offset: Float[Array, " 3"]
    """Position in the parent's frame, in metres."""

    wxyz: list[Array]
    """R_parent_joint in every motion, (frame, 4) each."""

    old: int = -1
    """Index in the old skeleton; -1 = an inserted joint."""

    absorbed: dict[int, Float[Array, "4 4"]] = field(default_factory=dict)
    """T_joint_old of dissolved joints, by their index in the old skeleton."""


def split_rows(skeleton: Skeleton, motions: Sequence[Motion]) -> list[JointRow]:
    """Return the joints of a skeleton in motion, one by one."""
    rows: list[JointRow] = []
    for joint, parent in enumerate(skeleton.parent.tolist()):
        rows.append(
            JointRow(
                skeleton.names[joint],
                rows[parent] if parent >= 0 else None,
                skeleton.offset[joint].copy(),
                [motion.wxyz[:, joint] for motion in motions],
                joint,
            )
        )
    return rows


def insert_row(
    rows: list[JointRow], parent: JointRow, children: Sequence[JointRow]
) -> JointRow:
    """Insert a joint that does not rotate, and return it.

    It is halfway along the children's mean offset. Nothing moves: their offsets are
    divided.

    Args:
        rows: The joints.
        parent: The joint that it is inserted after.
        children: Children of that joint that become its own.
    """
    offset = 0.5 * np.mean([child.offset for child in children], axis=0)
    still = [np.tile([1.0, 0.0, 0.0, 0.0], (len(q), 1)) for q in parent.wxyz]
    inserted = JointRow("", parent, offset, still)
    for child in children:
        child.parent, child.offset = inserted, child.offset - offset
    rows.append(inserted)
    return inserted


def dissolved_offsets(
    rows: Sequence[JointRow], row: JointRow
) -> dict[int, list[Array]]:
    """Return where a joint's children are in its parent's frame, by their identity."""
    return {
        id(child): [
            row.offset + geometry.quat_rotate(q, child.offset) for q in row.wxyz
        ]
        for child in rows
        if child.parent is row
    }


def dissolve_error(rows: Sequence[JointRow], row: JointRow) -> float:
    """Return how far joints move if this one is dissolved, in metres.

    The largest distance of a child from its mean position in the parent's frame.
    """
    worst = 0.0
    for positions in dissolved_offsets(rows, row).values():
        every = np.concatenate([np.zeros((0, 3)), *positions])
        known = every[np.isfinite(every).all(axis=1)]
        if len(known):
            away = np.linalg.norm(known - known.mean(axis=0), axis=1)
            worst = max(worst, float(away.max()))
    return worst


def dissolve_row(rows: list[JointRow], row: JointRow) -> None:
    """Remove a joint: its children get its rotations, and their mean positions.

    Markers and sensors on it go to its parent, at their mean poses.
    """
    positions = dissolved_offsets(rows, row)
    for child in rows:
        if child.parent is not row:
            continue
        every = np.concatenate([np.zeros((0, 3)), *positions[id(child)]])
        known = every[np.isfinite(every).all(axis=1)]
        rest = row.offset + child.offset
        child.offset = known.mean(axis=0) if len(known) else rest
        child.parent = row.parent
        child.wxyz = [
            geometry.quat_multiply(outer, inner)
            for outer, inner in zip(row.wxyz, child.wxyz, strict=True)
        ]
    rows.remove(row)
    if row.parent is not None:
        T = geometry.transform(_mean_rotation(row.wxyz), row.offset)
        row.parent.absorbed[row.old] = T
        for old, T_row_old in row.absorbed.items():
            row.parent.absorbed[old] = T @ T_row_old


def _mean_rotation(wxyz: Sequence[Array]) -> Float[Array, "3 3"]:
    """Return the rotation nearest to the mean of all that are known; else none."""
    every = np.concatenate([np.zeros((0, 4)), *wxyz])
    known = every[np.isfinite(every).all(axis=1)]
    if not len(known):
        return np.eye(3)
    mean = geometry.matrix_from_quat(known).mean(axis=0)
    return np.asarray(geometry.nearest_rotation(mean))


def join_rows(
    rows: Sequence[JointRow], skeleton: Skeleton, motions: Sequence[Motion]
) -> tuple[Skeleton, tuple[Motion, ...]]:
    """Return the skeleton and the motions of the joints, parents first."""
    ordered = _parents_first(rows)
    number = {id(row): i for i, row in enumerate(ordered)}
    old = np.array([row.old for row in ordered])
    kept = old >= 0
    carrier, T_new_old = _carriers(ordered, skeleton.n_joints)
    on = T_new_old[skeleton.marker_joint]
    renamed = Skeleton(
        names=tuple(row.name for row in ordered),
        parent=np.array([number.get(id(row.parent), -1) for row in ordered]),
        offset=np.array([row.offset for row in ordered]),
        kind=tuple(skeleton.kind[i] if i >= 0 else "fixed" for i in old),
        observed=kept & skeleton.observed[old],
        marker_labels=skeleton.marker_labels,
        marker_joint=carrier[skeleton.marker_joint],
        marker_offset=geometry.apply(on, skeleton.marker_offset),
        sensor_names=skeleton.sensor_names,
        sensor_joint=carrier[skeleton.sensor_joint],
        T_joint_sensor=T_new_old[skeleton.sensor_joint] @ skeleton.T_joint_sensor,
        **{name: _taken(getattr(skeleton, name), old) for name in OPTIONAL},
    )
    moved = [
        replace(
            motion,
            skeleton=renamed,
            wxyz=np.stack([row.wxyz[i] for row in ordered], axis=1),
            angle_sd=np.where(kept[:, None], motion.angle_sd[:, old], 0.0),
        )
        for i, motion in enumerate(motions)
    ]
    return renamed, tuple(moved)


def _carriers(
    rows: Sequence[JointRow], n_old: int
) -> tuple[Int[Array, " old"], Float[Array, "old 4 4"]]:
    """Return the new joint that carries what was on each old one, and T_new_old."""
    carrier, T_new_old = np.zeros(n_old, dtype=int), np.tile(np.eye(4), (n_old, 1, 1))
    for i, row in enumerate(rows):
        if row.old >= 0:
            carrier[row.old] = i
        for old, T in row.absorbed.items():
            carrier[old], T_new_old[old] = i, T
    return carrier, T_new_old


def _taken(values: Array, old: Array) -> Array:
    """Return one row of values for each new joint: that of its old one, or NaN."""
    shape = (-1, *[1] * (values.ndim - 1))
    return np.where((old >= 0).reshape(shape), values[old], np.nan)


def _parents_first(rows: Sequence[JointRow]) -> list[JointRow]:
    ordered = [row for row in rows if row.parent is None]
    for row in ordered:
        ordered += [child for child in rows if child.parent is row]
    return ordered
