"""Which points of a C3D file were computed by the capture software, not measured."""

import numpy as np
from jaxtyping import Float

from marey.io.formats.c3d.parameters import C3dParameters

COMPUTED_LISTS = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS", "REACTIONS")
"""POINT parameters that list computed points; TYPE_GROUPS may name more."""

CENTRES_OF_MASS = ("CentreOfMass", "CentreOfMassFloor")
"""Points that Plug-in Gait adds and puts in no list."""

_AXIS_LETTERS = "OALP"
_MAX_COSINE = 0.02


def computed_lists(parameters: C3dParameters) -> tuple[str, ...]:
    """Return the names of the POINT parameters that list computed points."""
    members = parameters.groups.get("POINT", {})
    named = parameters.texts("POINT", "TYPE_GROUPS")
    return tuple(
        name
        for name, parameter in members.items()
        if parameter.kind == "char"
        and name not in ("UNITS", "LABELS")
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


def segment_axes(
    subjects: tuple[str, ...],
    labels: tuple[str, ...],
    points: Float[np.ndarray, "frame point 3"],
) -> tuple[set[int], int]:
    """Return the points at the axes of Plug-in Gait segments.

    For a segment named LFE these are LFEO, the origin, and LFEA, LFEL, LFEP at the ends
    of three axes. A name alone is no proof, so the axes must also be at right angles.

    Args:
        subjects: The subject of each point.
        labels: Its label.
        points: A few frames.

    Returns:
        The points, and the number of segments that lack one of the four points.
    """
    point_index = {key: i for i, key in enumerate(zip(subjects, labels, strict=True))}
    segments = {
        (s, label[:-1]) for s, label in point_index if label[-1:] in _AXIS_LETTERS
    }
    found: set[int] = set()
    partial = 0
    for subject, segment in segments:
        corners = [
            point_index.get((subject, f"{segment}{letter}")) for letter in _AXIS_LETTERS
        ]
        known = [corner for corner in corners if corner is not None]
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
