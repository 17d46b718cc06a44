"""Poses that a C3D file holds as points: an origin and the ends of its axes.

Software that tracks 6-DoF targets writes PELV, the origin, with PELVY and PELVZ at the
same distance along two of its axes. A name alone is no proof, so the points must also
keep that distance and the right angle.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from marey.io.contract import File
from marey.io.formats.c3d.data import read_markers
from marey.io.formats.c3d.layout import C3dLayout
from marey.numerics import geometry

NO_POINT = -1
_MAX_BIAS = 0.01
"""Largest error of lengths (ratio) and right angles (cosine) in the median frame.

Higher accepts more distorted axes. Chosen by hand.
"""

_MAX_SCATTER = 0.05
"""Largest such error in a frame that gives a pose.

Higher accepts noisier frames. Chosen by hand.
"""

_MIN_SHARE = 0.95
"""Least share of the frames with all axis points that must give a pose.

Higher rejects more segments. Chosen by hand.
"""

_MIN_STEPS = 20.0
"""Least length of an axis in integer steps; shorter axes have no usable direction.

Higher rejects more coarse files. Chosen by hand.
"""

_INTEGER_RANGE = 65536.0

AxisPoints = tuple[int, ...]
"""The points of a segment: its origin, then the ends of its axes."""


@dataclass(frozen=True, slots=True, eq=False)
class PosesAsPoints:
    """Segments whose poses are given as points, in the unit and axes of the file."""

    axis_points: tuple[AxisPoints, ...]
    """In the order of their origins."""

    T_world_segment: Float[np.ndarray, "frame segment 4 4"]
    """NaN where a corner is unseen or off its axis."""

    length: Float[np.ndarray, " segment"]
    """Distance of the axis points from their origin."""

    partial: int = 0
    """Poses that are missing though their origin was seen."""

    overflowed: int = 0
    """Poses restored from coordinates that the file's integers could not hold."""

    @property
    def points(self) -> set[int]:
        """All origins and axis points."""
        return {point for axis_points in self.axis_points for point in axis_points}


def find_poses_as_points(
    path: Path,
    layout: C3dLayout,
    subjects: Sequence[str],
    labels: Sequence[str],
    leave_out: Collection[int],
) -> PosesAsPoints:
    """Return the segments whose poses are given as points.

    Args:
        path: The file.
        layout: Byte offsets and counts.
        subjects: The subject of each point.
        labels: Its label.
        leave_out: Points with another meaning.
    """
    named = _candidates_by_name(subjects, labels, leave_out) if layout.frames else []
    if not named:
        return PosesAsPoints((), np.zeros((layout.frames, 0, 4, 4)), np.zeros(0))
    origin, axes, overflowed = _axis_vectors(path, layout, named)
    length = _median(np.linalg.norm(axes, axis=-1)).mean(axis=-1)
    good = _valid_poses(axes, length, 0.0 if layout.is_real else layout.scale)
    some = good.any(axis=0)
    poses = geometry.transform(_nearest_rotations(axes[good]), origin[good])
    T = np.full((layout.frames, int(some.sum()), 4, 4), np.nan)
    T[good[:, some]] = poses
    return PosesAsPoints(
        axis_points=tuple(
            tuple(point for point in named[i] if point != NO_POINT)
            for i in np.flatnonzero(some)
        ),
        T_world_segment=T,
        length=length[some],
        partial=int((np.isfinite(origin).all(axis=-1) & ~good)[:, some].sum()),
        overflowed=int(overflowed[good].sum()),
    )


def note_poses_as_points(
    file: File, poses: PosesAsPoints, labels: Sequence[str], unit: str
) -> None:
    """Keep findings about the points that were read as poses."""
    if not poses.axis_points:
        return
    seen = np.isfinite(poses.T_world_segment[..., 0, 0]).mean()
    length = np.median(poses.length)
    example = ", ".join(labels[point] for point in poses.axis_points[0])
    file.note(
        "poses-from-points",
        f"took {len(poses.points)} points as the poses of {len(poses.axis_points)} "
        f"segments, such as {example}: so named, their axes {length:.4g} {unit} long "
        f"and at right angles in {seen:.0%} of the frames; "
        "computed=True keeps the points as markers too",
        severity="info",
        value=float(len(poses.axis_points)),
    )
    if poses.partial:
        file.note(
            "poses-partial",
            f"{poses.partial} poses are missing though their origin was seen: an axis "
            "point is unseen or off its axis; computed=True keeps the points",
            value=float(poses.partial),
        )
    if poses.overflowed:
        file.note(
            "integers-overflowed",
            f"in {poses.overflowed} poses an axis point lies beyond what the integers "
            "of the file can hold: taken on the side of its origin",
            value=float(poses.overflowed),
        )


def _candidates_by_name(
    subjects: Sequence[str], labels: Sequence[str], leave_out: Collection[int]
) -> list[AxisPoints]:
    """Return what by its names could be a segment: origin and X, Y, Z or NO_POINT."""
    point_index = {
        key: i
        for i, key in enumerate(zip(subjects, labels, strict=True))
        if i not in leave_out
    }
    candidates = [
        (
            origin,
            *(point_index.get((subject, f"{label}{axis}"), NO_POINT) for axis in "XYZ"),
        )
        for (subject, label), origin in point_index.items()
    ]
    return [
        axis_points for axis_points in candidates if axis_points.count(NO_POINT) <= 1
    ]


def _axis_vectors(
    path: Path, layout: C3dLayout, named: list[AxisPoints]
) -> tuple[
    Float[np.ndarray, "frame segment 3"],
    Float[np.ndarray, "frame segment 3 3"],
    Bool[np.ndarray, "frame segment"],
]:
    """Return origins, the axes to X, Y and Z, and where integers overflowed.

    A third axis that is not poses is the cross product of the others, as long as they.
    """
    columns = sorted(
        {point for axis_points in named for point in axis_points} - {NO_POINT}
    )
    xyz = read_markers(path, layout, columns, lambda points: points)
    column = np.searchsorted(columns, np.array(named))
    origin = xyz[:, column[:, 0]]
    axes = xyz[:, column[:, 1:]] - origin[:, :, None]
    missing = np.array(named)[:, 1:] == NO_POINT
    axes[:, missing] = 0.0
    overflowed = np.zeros(origin.shape[:2], dtype=bool)
    if not layout.is_real:
        range_length = _INTEGER_RANGE * layout.scale
        n_overflows = np.round(axes / range_length)
        overflowed = (n_overflows != 0.0).any(axis=(2, 3))
        axes -= range_length * n_overflows
    for axis in range(3):
        unwritten = np.flatnonzero(missing[:, axis])
        first, second = (axes[:, unwritten, (axis + k) % 3] for k in (1, 2))
        length = np.linalg.norm(first, axis=-1, keepdims=True)
        axes[:, unwritten, axis] = np.cross(first, second) / np.where(
            length > 0, length, np.nan
        )
    return origin, axes, overflowed


def _valid_poses(
    axes: Float[np.ndarray, "frame segment 3 3"],
    length: Float[np.ndarray, " segment"],
    step: float,
) -> Bool[np.ndarray, "frame segment"]:
    """Return the frames that give a pose; none for points that are no segment.

    Args:
        axes: From the origin to the axis points; NaN where unseen.
        length: Of the axes in the median frame.
        step: To which the file rounds coordinates.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = axes / length[:, None, None]
        # The identity when all axes are of this length and at right angles.
        deviation = unit @ unit.swapaxes(-1, -2)
        deviation[..., range(3), range(3)] = np.linalg.norm(unit, axis=-1)
        deviation -= np.eye(3)
        coarse = 2.0 * step / length
        bias = np.abs(_median(deviation)).max(axis=(-1, -2))
        good = np.abs(deviation).max(axis=(-1, -2)) < _MAX_SCATTER + 2.0 * coarse
        good &= np.linalg.det(unit) > 0.0
    whole = np.isfinite(axes).all(axis=(2, 3)).sum(axis=0)
    is_segment = (
        (length > _MIN_STEPS * step)
        & (bias < _MAX_BIAS + coarse)
        & (good.sum(axis=0) >= _MIN_SHARE * np.maximum(whole, 1))
    )
    return np.asarray(good & is_segment)


def _median(values: Float[np.ndarray, "frame *item"]) -> Float[np.ndarray, "*item"]:
    """Return the median over the frames that are not NaN, the lower of two."""
    last = np.isfinite(values).sum(axis=0, keepdims=True) - 1
    middle = np.maximum(last, 0) // 2
    ordered = np.sort(values, axis=0)
    return np.asarray(np.take_along_axis(ordered, middle, axis=0)[0])


def _nearest_rotations(
    axes: Float[np.ndarray, "pose arm 3"],
) -> Float[np.ndarray, "pose 3 3"]:
    """Return the rotations whose columns are nearest to the directions of the axes."""
    R = (axes / np.linalg.norm(axes, axis=-1, keepdims=True)).swapaxes(1, 2)
    # Newton-Schulz iteration: each step doubles the correct digits, up to sixteen.
    for _ in range(6):
        R = R @ (1.5 * np.eye(3) - 0.5 * (R.swapaxes(1, 2) @ R))
    return np.asarray(R)
