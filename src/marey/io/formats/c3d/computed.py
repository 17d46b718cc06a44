"""Which points of a C3D file are no markers: computed ones, and poses given as points.

Plug-in Gait adds angles, forces and the axes of its segments. Software that tracks
6-DoF targets writes PELV, the origin, with PELVY and PELVZ at the same distance along
two of its axes. A name alone is no proof, so the points must also keep that distance
and the right angle.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from marey.io.file import File
from marey.io.formats.c3d.data import read_markers
from marey.io.formats.c3d.layout import C3dLayout
from marey.io.formats.c3d.parameters import C3dParameters
from marey.numerics import Bool, Float, geometry
from marey.take import Computed

COMPUTED_LISTS = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS", "REACTIONS")
"""POINT parameters that list computed points; TYPE_GROUPS may name more."""

QUANTITIES = {"ANGLES": "angle", "FORCES": "force", "MOMENTS": "moment"} | {
    "POWERS": "power",
    "SCALARS": "scalar",
}
"""Lists of points that are quantities and no positions, and what they are."""

CENTRES_OF_MASS = ("CentreOfMass", "CentreOfMassFloor")
"""Points that Plug-in Gait adds and puts in no list."""

_AXIS_LETTERS = "OALP"
_MAX_COSINE = 0.02
"""Largest cosine between two axes of a Plug-in Gait segment in the median frame.

Higher takes more points for axes. Chosen by hand.
"""

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
NEWTON_ITERATIONS = 6

PointName = tuple[str, str]
"""Subject and label of a point."""

AxisPoints = tuple[int, ...]
"""The points of a segment: its origin, then the ends of its axes."""


def computed_lists(parameters: C3dParameters) -> tuple[str, ...]:
    """Return the names of the POINT parameters that list computed points."""
    members = parameters.groups.get("POINT", {})
    named = parameters.texts("POINT", "TYPE_GROUPS")
    return tuple(
        name
        for name, parameter in members.items()
        if parameter.kind == "char"
        and name != "LABELS"
        and not name.endswith("UNITS")
        and (name in COMPUTED_LISTS or name in named or name.startswith("MODELED"))
    )


def computed_names(parameters: C3dParameters) -> set[str]:
    """Return the labels that the file itself lists as computed."""
    return {
        label
        for name in computed_lists(parameters)
        for label in parameters.texts("POINT", name)
        if label
    }


def read_quantities(
    path: Path,
    layout: C3dLayout,
    parameters: C3dParameters,
    names: Sequence[PointName],
) -> Computed:
    """Return the angles, forces, moments, powers and scalars of a file, as stored.

    Args:
        path: The file.
        layout: Byte offsets and counts.
        parameters: Its parameters, which list the quantities and have their units.
        names: The name of each point.
    """
    kinds = {
        label: kind
        for group, kind in QUANTITIES.items()
        for label in parameters.texts("POINT", group)
    }
    found = [
        (i, kinds.get(n[1]) or kinds.get(":".join(n))) for i, n in enumerate(names)
    ]
    chosen = [(i, kind) for i, kind in found if kind is not None]
    if not chosen:
        return Computed()
    units = {k: parameters.text("POINT", f"{k.upper()}_UNITS") for _, k in chosen}
    columns = [i for i, _ in chosen]
    values, _ = read_markers(path, layout, columns, lambda points: points)
    return Computed(
        values=values,
        names=tuple(names[i][1] for i in columns),
        kinds=tuple(kind for _, kind in chosen),
        units=tuple(units[kind].strip() for _, kind in chosen),
    )


def segment_axes(
    names: Sequence[PointName], points: Float[np.ndarray, "frame point 3"]
) -> tuple[set[int], int]:
    """Return the points at the axes of Plug-in Gait segments.

    For a segment named LFE these are LFEO, the origin, and LFEA, LFEL, LFEP at the ends
    of three axes. A name alone is no proof, so the axes must also be at right angles.

    Args:
        names: The name of each point.
        points: A few frames.

    Returns:
        The points, and the number of segments that lack one of the four points.
    """
    index = {name: i for i, name in enumerate(names)}
    segments = {(s, label[:-1]) for s, label in index if label[-1:] in _AXIS_LETTERS}
    found: set[int] = set()
    partial = 0
    for subject, segment in segments:
        corners = [(subject, f"{segment}{letter}") for letter in _AXIS_LETTERS]
        known = [index[corner] for corner in corners if corner in index]
        partial += len(known) == len(_AXIS_LETTERS) - 1
        if len(known) == len(_AXIS_LETTERS) and _is_frame(points[:, known]):
            found.update(known)
    return found, partial


def _is_frame(points: Float[np.ndarray, "frame 4 3"]) -> bool:
    axes = points[:, 1:] - points[:, :1]
    axes = axes[np.isfinite(axes).all(axis=(1, 2))]
    length = np.linalg.norm(axes, axis=-1, keepdims=True)
    if len(axes) == 0 or (length == 0.0).any():
        return False
    unit = axes / length
    cosines = np.einsum("fai,fbi->fab", unit, unit) - np.eye(3)
    worst = np.abs(cosines).max(axis=(1, 2))
    return bool(np.median(worst) < _MAX_COSINE)


# --- poses given as points -----------------------------------------------------------


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
    names: Sequence[PointName],
    leave_out: Collection[int],
) -> PosesAsPoints:
    """Return the segments whose poses are given as points.

    Args:
        path: The file.
        layout: Byte offsets and counts.
        names: The name of each point.
        leave_out: Points with another meaning.
    """
    named = _candidates_by_name(names, leave_out) if layout.frames else []
    if not named:
        return PosesAsPoints((), np.zeros((layout.frames, 0, 4, 4)), np.zeros(0))
    origin, axes, overflowed = _axis_vectors(path, layout, named)
    length = _median(np.linalg.norm(axes, axis=-1)).mean(axis=-1)
    good = _valid_poses(axes, length, 0.0 if layout.is_real else layout.scale)
    some = good.any(axis=0)
    poses = geometry.transform(_nearest_rotations(axes[good]), origin[good])
    T = np.full((layout.frames, int(some.sum()), 4, 4), np.nan)
    T[good[:, some]] = poses
    found = [[p for p in named[i] if p != NO_POINT] for i in np.flatnonzero(some)]
    return PosesAsPoints(
        axis_points=tuple(map(tuple, found)),
        T_world_segment=T,
        length=length[some],
        partial=int((np.isfinite(origin).all(axis=-1) & ~good)[:, some].sum()),
        overflowed=int(overflowed[good].sum()),
    )


def note_poses_as_points(
    file: File, poses: PosesAsPoints, names: Sequence[PointName], unit: str
) -> None:
    """Keep findings about the points that were read as poses."""
    if not poses.axis_points:
        return
    length = np.median(poses.length)
    example = ", ".join(names[point][1] for point in poses.axis_points[0])
    file.note(
        "poses-from-points",
        f"took {len(poses.points)} points for the poses of {len(poses.axis_points)} "
        f"segments, such as {example}, by names and axes of {length:.4g} {unit}; "
        "computed=True keeps them as markers",
        severity="info",
        value=len(poses.axis_points),
    )
    file.note_count(
        "poses-partial",
        poses.partial,
        "{} poses are missing though their origin was seen: an axis point is "
        "unseen or off its axis; computed=True keeps the points",
    )
    file.note_count(
        "integers-overflowed",
        poses.overflowed,
        "in {} poses an axis point lies beyond what the integers of the file "
        "can hold: taken on the side of its origin",
    )


def _candidates_by_name(
    names: Sequence[PointName], leave_out: Collection[int]
) -> list[AxisPoints]:
    """Return what by its names could be a segment: origin and X, Y, Z or NO_POINT."""
    index = {name: i for i, name in enumerate(names) if i not in leave_out}
    candidates = [
        (i, *(index.get((subject, f"{label}{axis}"), NO_POINT) for axis in "XYZ"))
        for (subject, label), i in index.items()
    ]
    return [points for points in candidates if points.count(NO_POINT) <= 1]


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
    columns = sorted({point for points in named for point in points} - {NO_POINT})
    xyz, _ = read_markers(path, layout, columns, lambda points: points)
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
        length[length == 0.0] = np.nan
        axes[:, unwritten, axis] = np.cross(first, second) / length
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
    R = geometry.unit_vectors(axes).swapaxes(1, 2)
    # Newton-Schulz iteration: each step doubles the correct digits, up to sixteen.
    for _ in range(NEWTON_ITERATIONS):
        R = R @ (1.5 * np.eye(3) - 0.5 * (R.swapaxes(1, 2) @ R))
    return np.asarray(R)
