"""Which points of a C3D file were computed by the capture software, not measured."""

import numpy as np
from jaxtyping import Float

from marey.io.formats.c3d.parameters import Parameters

LISTS = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS", "REACTIONS")
"""POINT parameters that list computed points; TYPE_GROUPS may name more."""

CENTRES = ("CentreOfMass", "CentreOfMassFloor")
"""Points that Plug-in Gait adds and puts in no list."""

_AXES = "OALP"
_MOST_COSINE = 0.02


def computed_lists(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the POINT parameters that list computed points."""
    members = parameters.groups.get("POINT", {})
    named = parameters.texts("POINT", "TYPE_GROUPS")
    return tuple(
        name
        for name, parameter in members.items()
        if parameter.kind == "char"
        and name not in ("UNITS", "LABELS")
        and (name in LISTS or name in named or name.startswith("MODELED"))
    )


def computed_names(parameters: Parameters) -> set[str]:
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
    """Return the points that draw the axes of Plug-in Gait segments.

    For a segment named LFE these are LFEO, the origin, and LFEA, LFEL, LFEP at the ends
    of three axes. Names alone may deceive, so the axes must be at right angles too.

    Args:
        subjects: The subject of each point.
        labels: Its label.
        points: A few frames.

    Returns:
        The points, and how many more segments have all but one of their four.
    """
    place = {key: i for i, key in enumerate(zip(subjects, labels, strict=True))}
    segments = {(s, label[:-1]) for s, label in place if label[-1:] in _AXES}
    found: set[int] = set()
    partial = 0
    for subject, segment in segments:
        corners = [place.get((subject, f"{segment}{letter}")) for letter in _AXES]
        known = [corner for corner in corners if corner is not None]
        partial += len(known) == len(_AXES) - 1
        if len(known) == len(_AXES) and _is_frame(points[:, known]):
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
    return bool(np.median(worst) < _MOST_COSINE)
