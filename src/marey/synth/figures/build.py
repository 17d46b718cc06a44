"""Building figures from a short table of joints."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marey.skeleton import Kind, Skeleton
from marey.synth.figures.surfaces import Shape

X, Y, Z = np.eye(3)
Number = float | int
Span = tuple[Number, Number]
Point = tuple[Number, Number, Number]
MIRROR = np.array([1.0, -1.0, 1.0])


@dataclass(frozen=True, slots=True)
class Row:
    """One joint: where it hangs, how it turns, how far. Angles in degrees."""

    name: str
    parent: str
    offset: Point
    kind: Kind = "fixed"
    axes: tuple[np.ndarray, np.ndarray] = (X, Y)
    limits: tuple[Span, ...] = ()
    neutral: Point = (0.0, 0.0, 0.0)


def mirrored(row: Row) -> Row:
    """Return the right-hand twin of a left-hand row.

    Offsets mirror across the middle; axes, being axial vectors, mirror with the other
    sign, so equal angles mean equal movements on both sides.
    """
    x, y, z = row.offset
    return Row(
        row.name.replace("Left", "Right"),
        row.parent.replace("Left", "Right"),
        (x, -y, z),
        row.kind,
        (-MIRROR * row.axes[0], -MIRROR * row.axes[1]),
        row.limits,
        row.neutral,
    )


def both_sides(rows: Sequence[Row]) -> list[Row]:
    """Return the rows, each chain of left-hand rows followed by its twin."""
    left = [row for row in rows if row.name.startswith("Left")]
    middle = [row for row in rows if not row.name.startswith("Left")]
    return [*middle, *left, *map(mirrored, left)]


def skeleton_of(rows: Sequence[Row], scale: float = 1.0) -> Skeleton:
    """Return the skeleton of a table.

    Args:
        rows: Joints, parents first.
        scale: Metres per unit of the offsets.
    """
    names = tuple(row.name for row in rows)
    limits = np.full((len(rows), 3, 2), np.nan)
    axes = np.full((len(rows), 2, 3), np.nan)
    for joint, row in enumerate(rows):
        if row.kind in ("ball", "universal", "hinge"):
            axes[joint] = row.axes
        for i, span in enumerate(row.limits):
            limits[joint, i] = np.radians(span)
    axes[[row.kind == "hinge" for row in rows], 1] = np.nan
    return Skeleton(
        names=names,
        parent=np.array([names.index(r.parent) if r.parent else -1 for r in rows]),
        offset=scale * np.array([row.offset for row in rows], dtype=float),
        kind=tuple(row.kind for row in rows),
        axes=axes,
        limits=limits,
    )


def neutral_of(rows: Sequence[Row]) -> np.ndarray:
    """Return the joint angles of standing at ease, in radians."""
    return np.asarray(np.radians([row.neutral for row in rows]), dtype=float)


@dataclass(frozen=True, slots=True)
class Flesh:
    """One solid of a table, in the units of the table."""

    name: str
    joint: str
    start: Point
    end: Point
    width: Span
    depth: Span
    side: np.ndarray
    front: np.ndarray
    blunt: Number = 4.0
    square: Number = 2.0


def shapes_of(
    flesh: Sequence[Flesh],
    skeleton: Skeleton,
    scale: float = 1.0,
    *,
    twins: bool = True,
) -> tuple[Shape, ...]:
    """Return the solids of a table; with twins, those of the left on both sides."""
    shapes = []
    for f in flesh:
        shapes.append(_shape(f, skeleton, scale, f.joint, f.name, np.ones(3)))
        if twins and f.joint.startswith("Left"):
            joint, name = f.joint.replace("Left", "Right"), f.name.replace("L", "R", 1)
            shapes.append(_shape(f, skeleton, scale, joint, name, MIRROR))
    return tuple(shapes)


def _shape(
    f: Flesh, skeleton: Skeleton, scale: float, joint: str, name: str, flip: np.ndarray
) -> Shape:
    return Shape(
        name=name,
        joint=skeleton.index(joint),
        start=scale * flip * np.array(f.start, dtype=float),
        end=scale * flip * np.array(f.end, dtype=float),
        side=flip * f.side,
        front=flip * f.front,
        width=(scale * f.width[0], scale * f.width[1]),
        depth=(scale * f.depth[0], scale * f.depth[1]),
        blunt=f.blunt,
        square=f.square,
    )
