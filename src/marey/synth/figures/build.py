"""Figures, built from tables of joints, surfaces and limbs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marey.skeleton import Kind, Skeleton
from marey.synth.figures.figure import Figure, FigureLimb
from marey.synth.figures.surfaces import Surface

X, Y, Z = np.eye(3)
Number = float | int
Span = tuple[Number, Number]
Point = tuple[Number, Number, Number]
MIRROR = np.array([1.0, -1.0, 1.0])


@dataclass(frozen=True, slots=True)
class JointSpec:
    """One joint of a table: parent, offset, kind, axes, limits. Angles in degrees."""

    name: str
    parent: str
    offset: Point
    kind: Kind = "fixed"
    axes: tuple[np.ndarray, np.ndarray] = (X, Y)
    limits: tuple[Span, ...] = ()
    neutral: Point = (0.0, 0.0, 0.0)


def mirror_row(row: JointSpec) -> JointSpec:
    """Return the right-hand joint that mirrors a left-hand joint.

    Offsets are mirrored in the sagittal plane. Axes are axial vectors, so they are
    mirrored with the opposite sign. Equal angles then mean equal movements.
    """
    x, y, z = row.offset
    return replace(
        row,
        name=row.name.replace("Left", "Right"),
        parent=row.parent.replace("Left", "Right"),
        offset=(x, -y, z),
        axes=(-MIRROR * row.axes[0], -MIRROR * row.axes[1]),
    )


def add_right_side(rows: Sequence[JointSpec]) -> list[JointSpec]:
    """Return the joints of the middle, then the left ones, then their mirror images."""
    left = [row for row in rows if row.name.startswith("Left")]
    middle = [row for row in rows if not row.name.startswith("Left")]
    return [*middle, *left, *map(mirror_row, left)]


def build_figure_skeleton(rows: Sequence[JointSpec], scale: float = 1.0) -> Skeleton:
    """Return the skeleton that a table of joints describes.

    Args:
        rows: Joints, parents before their children.
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


@dataclass(frozen=True, slots=True)
class SurfaceRow:
    """One surface of a table; `Surface` describes the fields."""

    name: str
    joint: str
    start: Point
    end: Point
    width: Span
    depth: Span
    side: np.ndarray
    front: np.ndarray
    end_exponent: Number = 4.0
    section_exponent: Number = 2.0


LimbRow = tuple[str, tuple[str, ...], float]
"""One limb of a table: side, names of upper, middle and end joint and of the joints
that touch the ground without their side, phase."""


def build_figure(
    name: str,
    rows: Sequence[JointSpec],
    surfaces: Sequence[SurfaceRow],
    motions: tuple[str, ...],
    *,
    scale: float = 1.0,
    legs: Sequence[LimbRow] = (),
    arms: Sequence[LimbRow] = (),
    **more: Any,
) -> Figure:
    """Return the figure that tables describe.

    Args:
        name: Name of the figure.
        rows: Joints, parents before their children.
        surfaces: Surfaces. Those of a left side are mirrored if the right side has no
            surfaces of its own.
        motions: Names of the motions it can perform.
        scale: Metres per unit of the tables.
        legs: Legs.
        arms: Arms.
        more: Other fields of `Figure`.
    """
    skeleton = build_figure_skeleton(rows, scale)
    has_right = any(row.joint.startswith("Right") for row in surfaces)
    built = []
    for row in surfaces:
        built.append(_surface(row, skeleton, scale, np.ones(3)))
        if row.joint.startswith("Left") and not has_right:
            mirrored = row.name.replace("L", "R", 1)
            joint = row.joint.replace("Left", "Right")
            right = replace(row, joint=joint, name=mirrored)
            built.append(_surface(right, skeleton, scale, MIRROR))
    return Figure(
        name=name,
        skeleton=skeleton,
        surfaces=tuple(built),
        neutral=np.asarray(np.radians([row.neutral for row in rows]), dtype=float),
        motions=motions,
        legs=tuple(_limb(skeleton, *limb) for limb in legs),
        arms=tuple(_limb(skeleton, *limb) for limb in arms),
        **more,
    )


def _limb(
    skeleton: Skeleton, side: str, parts: tuple[str, ...], phase: float
) -> FigureLimb:
    upper, middle, end, *tips = (skeleton.index(f"{side}{part}") for part in parts)
    sign = 1.0 if side == "Left" else -1.0
    return FigureLimb(upper, middle, end, tuple(tips), side=sign, phase=phase)


def _surface(
    row: SurfaceRow, skeleton: Skeleton, scale: float, flip: np.ndarray
) -> Surface:
    return Surface(
        name=row.name,
        joint=skeleton.index(row.joint),
        start=scale * flip * np.array(row.start, dtype=float),
        end=scale * flip * np.array(row.end, dtype=float),
        side=flip * row.side,
        front=flip * row.front,
        width=(scale * row.width[0], scale * row.width[1]),
        depth=(scale * row.depth[0], scale * row.depth[1]),
        end_exponent=row.end_exponent,
        section_exponent=row.section_exponent,
    )
