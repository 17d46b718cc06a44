"""Poses that a C3D file holds as points: an origin and the ends of its axes.

Software that tracks 6-DoF targets writes PELV, the origin, with PELVY and PELVZ at the
same distance along two of its axes. Names alone may deceive, so the points must also
keep that distance and the right angle.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from marey.io.contract import File
from marey.io.formats.c3d.data import read_markers
from marey.io.formats.c3d.layout import Layout
from marey.numerics import geometry

NONE = -1
_MOST_BIAS = 0.01
"""How far lengths (ratio) and right angles (cosine) may be off in the median frame."""

_MOST_SCATTER = 0.05
"""How far in a frame that still gives a pose."""

_LEAST_SHARE = 0.95
"""Share of the frames with all corners that must give one."""

_LEAST_STEPS = 20.0
"""Integer steps per arm below which the arm has no direction to speak of."""

_INTEGERS = 65536.0

Corners = tuple[int, ...]
"""The points of a segment: its origin, then the ends of its axes."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Segments whose poses are drawn by points, in the unit and axes of the file."""

    corners: tuple[Corners, ...]
    """In the order of their origins."""

    T_world_segment: Float[np.ndarray, "frame segment 4 4"]
    """NaN where a corner is unseen or out of place."""

    length: Float[np.ndarray, " segment"]
    """Distance of the axis points from their origin."""

    partial: int = 0
    """Poses that are missing though their origin was seen."""

    overflowed: int = 0
    """Poses restored from coordinates that the file's integers could not hold."""

    @property
    def points(self) -> set[int]:
        """All the points that draw them."""
        return {point for corners in self.corners for point in corners}


def find_drawn(
    path: Path,
    layout: Layout,
    subjects: Sequence[str],
    labels: Sequence[str],
    leave_out: Collection[int],
) -> Drawn:
    """Return the segments that points draw.

    Args:
        path: The file.
        layout: Where its numbers stand.
        subjects: The subject of each point.
        labels: Its label.
        leave_out: Points that are known to be something else.
    """
    named = _named(subjects, labels, leave_out) if layout.frames else []
    if not named:
        return Drawn((), np.zeros((layout.frames, 0, 4, 4)), np.zeros(0))
    origin, arms, overflowed = _arms(path, layout, named)
    length = _median(np.linalg.norm(arms, axis=-1)).mean(axis=-1)
    good = _sound(arms, length, 0.0 if layout.is_real else layout.scale)
    some = good.any(axis=0)
    poses = geometry.transform(_rotations(arms[good]), origin[good])
    T = np.full((layout.frames, int(some.sum()), 4, 4), np.nan)
    T[good[:, some]] = poses
    return Drawn(
        corners=tuple(
            tuple(point for point in named[i] if point != NONE)
            for i in np.flatnonzero(some)
        ),
        T_world_segment=T,
        length=length[some],
        partial=int((np.isfinite(origin).all(axis=-1) & ~good)[:, some].sum()),
        overflowed=int(overflowed[good].sum()),
    )


def note_drawn(file: File, drawn: Drawn, labels: Sequence[str], unit: str) -> None:
    """Keep findings that say which points were taken as poses and why."""
    if not drawn.corners:
        return
    seen = np.isfinite(drawn.T_world_segment[..., 0, 0]).mean()
    length = np.median(drawn.length)
    example = ", ".join(labels[point] for point in drawn.corners[0])
    file.note(
        "poses-from-points",
        f"took {len(drawn.points)} points as the poses of {len(drawn.corners)} "
        f"segments, such as {example}: so named, their axes {length:.4g} {unit} long "
        f"and at right angles in {seen:.0%} of the frames; "
        "computed=True keeps the points as markers too",
        severity="info",
        value=float(len(drawn.corners)),
    )
    if drawn.partial:
        file.note(
            "poses-partial",
            f"{drawn.partial} poses are missing though their origin was seen: an axis "
            "point is unseen or out of place; computed=True keeps the points",
            value=float(drawn.partial),
        )
    if drawn.overflowed:
        file.note(
            "integers-overflowed",
            f"in {drawn.overflowed} poses an axis point lies beyond what the integers "
            "of the file can hold: taken on the side of its origin",
            value=float(drawn.overflowed),
        )


def _named(
    subjects: Sequence[str], labels: Sequence[str], leave_out: Collection[int]
) -> list[Corners]:
    """Return what by its names could be a segment: origin and X, Y, Z or NONE."""
    place = {
        key: i
        for i, key in enumerate(zip(subjects, labels, strict=True))
        if i not in leave_out
    }
    every = [
        (origin, *(place.get((subject, f"{label}{axis}"), NONE) for axis in "XYZ"))
        for (subject, label), origin in place.items()
    ]
    return [corners for corners in every if corners.count(NONE) <= 1]


def _arms(
    path: Path, layout: Layout, named: list[Corners]
) -> tuple[
    Float[np.ndarray, "frame segment 3"],
    Float[np.ndarray, "frame segment 3 3"],
    Bool[np.ndarray, "frame segment"],
]:
    """Return origins, the arms to X, Y and Z, and where integers overflowed.

    A third axis that is not drawn is the cross product of the others, as long as they.
    """
    columns = sorted({point for corners in named for point in corners} - {NONE})
    xyz = read_markers(path, layout, columns, lambda points: points)
    place = np.searchsorted(columns, np.array(named))
    origin = xyz[:, place[:, 0]]
    arms = xyz[:, place[:, 1:]] - origin[:, :, None]
    missing = np.array(named)[:, 1:] == NONE
    arms[:, missing] = 0.0
    overflowed = np.zeros(origin.shape[:2], dtype=bool)
    if not layout.is_real:
        turn = _INTEGERS * layout.scale
        turns = np.round(arms / turn)
        overflowed = (turns != 0.0).any(axis=(2, 3))
        arms -= turn * turns
    for axis in range(3):
        bare = np.flatnonzero(missing[:, axis])
        one, two = (arms[:, bare, (axis + k) % 3] for k in (1, 2))
        length = np.linalg.norm(one, axis=-1, keepdims=True)
        arms[:, bare, axis] = np.cross(one, two) / np.where(length > 0, length, np.nan)
    return origin, arms, overflowed


def _sound(
    arms: Float[np.ndarray, "frame segment 3 3"],
    length: Float[np.ndarray, " segment"],
    step: float,
) -> Bool[np.ndarray, "frame segment"]:
    """Return which frames give a pose: none of a segment that is not one.

    Args:
        arms: From the origin to the axis points; NaN where unseen.
        length: Of the arms in the median frame.
        step: To which the file rounds coordinates.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = arms / length[:, None, None]
        # The identity when all arms are of this length and at right angles.
        off = unit @ unit.swapaxes(-1, -2)
        off[..., range(3), range(3)] = np.linalg.norm(unit, axis=-1)
        off -= np.eye(3)
        coarse = 2.0 * step / length
        bias = np.abs(_median(off)).max(axis=(-1, -2))
        good = np.abs(off).max(axis=(-1, -2)) < _MOST_SCATTER + 2.0 * coarse
        good &= np.linalg.det(unit) > 0.0
    whole = np.isfinite(arms).all(axis=(2, 3)).sum(axis=0)
    is_segment = (
        (length > _LEAST_STEPS * step)
        & (bias < _MOST_BIAS + coarse)
        & (good.sum(axis=0) >= _LEAST_SHARE * np.maximum(whole, 1))
    )
    return np.asarray(good & is_segment)


def _median(values: Float[np.ndarray, "frame *item"]) -> Float[np.ndarray, "*item"]:
    """Return the median over the frames that are not NaN, the lower of two."""
    last = np.isfinite(values).sum(axis=0, keepdims=True) - 1
    middle = np.maximum(last, 0) // 2
    ordered = np.sort(values, axis=0)
    return np.asarray(np.take_along_axis(ordered, middle, axis=0)[0])


def _rotations(
    arms: Float[np.ndarray, "pose arm 3"],
) -> Float[np.ndarray, "pose 3 3"]:
    """Return the rotations whose columns are nearest to the directions of the arms."""
    R = (arms / np.linalg.norm(arms, axis=-1, keepdims=True)).swapaxes(1, 2)
    # Doubles the right digits each time, from one to all sixteen.
    for _ in range(6):
        R = R @ (1.5 * np.eye(3) - 0.5 * (R.swapaxes(1, 2) @ R))
    return np.asarray(R)
