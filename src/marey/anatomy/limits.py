"""How far the joints of people turn, from the literature, for skeletons with names."""

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from jaxtyping import Float

from marey.errors import DataError, OptionError
from marey.skeleton import Skeleton

Array = np.ndarray

SLACK = np.radians(20.0)
"""What is added to the mean range of people on both sides: about two standard
deviations between them, and what a rest pose is off."""

# A bone further than this from where it points in a T-pose is in some other pose.
ASTRAY = np.radians(45.0)

# A hinge turns about one of the axes of the table if it is this near to it.
NEAR = np.radians(30.0)

ALIASES = {"Chest": "Spine", "UpperChest": "Spine", "Head": "Neck"}
"""Joints that may turn as far as others of the table."""


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """How far one joint turns, in the terms of `Skeleton.limits`."""

    points: Float[Array, " 3"]
    """Where its bone points in a T-pose."""

    axes: Float[Array, "2 3"]
    limits: Float[Array, "3 2"]
    """In radians, without slack."""

    source: str


def with_human_limits(skeleton: Skeleton, *, slack: float = SLACK) -> Skeleton:
    """Return the skeleton of a person with limits on its joints.

    Joint limits "have been measured and can be found in the biomechanical literature"
    (Bodenheimer1997, Sec. 3.2); the figures and their sources stand in `limits.toml`.
    Joints are known by the names of the VRM humanoid. Limits and axes that a joint has
    already stay. A hinge gets the range of the axis it turns about, if that is one of
    the joint's. Bones must be twisted as a person's are at rest, elbows to bend forward
    and knees back; that cannot be checked here.

    Args:
        skeleton: At rest in a T-pose that faces +x, as `build_skeleton` makes it.
        slack: Added on both sides of every range, in radians, 0 or more.

    Raises:
        DataError: If no joint has a name of a person's, or the rest pose is no T-pose.
        OptionError: If the slack is negative.
    """
    if not slack >= 0.0:
        raise OptionError("slack", found=slack, needed="0 or more radians")
    known = human_ranges()
    mine = [joint for joint, name in enumerate(skeleton.names) if _row(name) in known]
    if not mine:
        raise DataError(
            "limits",
            found=", ".join(skeleton.names),
            needed=f"joints of a person, such as {', '.join(known)}",
        )
    axes, limits = skeleton.axes.copy(), skeleton.limits.copy()
    for joint in mine:
        kind, row = skeleton.kind[joint], known[_row(skeleton.names[joint])]
        if kind in ("root", "fixed") or np.isfinite(limits[joint]).any():
            continue
        _check_rest(skeleton, joint, row)
        wide = row.limits + slack * np.array([-1.0, 1.0])
        if kind == "ball":
            axes[joint], limits[joint] = row.axes, wide
        else:
            for turn in range(1 if kind == "hinge" else 2):
                limits[joint, turn] = _about(row.axes, wide, axes[joint, turn])
    return replace(skeleton, axes=axes, limits=limits)


@cache
def human_ranges() -> dict[str, Range]:
    """Return the range of every joint by name, both sides, as published."""
    text = (files("marey.anatomy") / "limits.toml").read_text(encoding="utf-8")
    ranges = {}
    for name, row in tomllib.loads(text).items():
        ranges[name] = _range(row, np.ones(3))
        if name.startswith("Left"):
            twin = name.replace("Left", "Right")
            ranges[twin] = _range(row, np.array([1.0, -1.0, 1.0]))
    return ranges


def _range(row: dict[str, Any], mirror: Float[Array, " 3"]) -> Range:
    """Return a row of the table; axes mirror with the other sign than points."""
    axes = np.array([row["x"], row["y"]], dtype=float)
    sign = np.prod(mirror)
    spans = [row["swing_x"], row["swing_y"], row["twist"]]
    return Range(
        mirror * np.array(row["points"], dtype=float),
        sign * mirror * axes,
        np.radians(np.array(spans, dtype=float)),
        row["source"],
    )


def _row(name: str) -> str:
    return ALIASES.get(name, name)


def _check_rest(skeleton: Skeleton, joint: int, row: Range) -> None:
    """Refuse a bone that does not point as in a T-pose."""
    offset = skeleton.offset[skeleton.parent == joint]
    lengths = np.linalg.norm(offset, axis=-1)
    if not lengths.max(initial=0.0) > 0.0:
        return
    bone = offset[lengths.argmax()] / lengths.max()
    cosine = bone @ row.points / np.linalg.norm(row.points)
    if cosine < np.cos(ASTRAY):
        raise DataError(
            f"rest pose of {skeleton.names[joint]}",
            found=f"a bone {np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))):.0f}° "
            "from where it points in a T-pose",
            needed="a T-pose that faces +x, for limits from the literature",
        )


def _about(
    axes: Float[Array, "2 3"], limits: Float[Array, "3 2"], axis: Float[Array, " 3"]
) -> Float[Array, " 2"]:
    """Return the range about one axis; NaN if it is none of the joint's."""
    known = np.concatenate([axes, np.cross(axes[0], axes[1])[None]])
    along = known @ axis
    best = int(np.argmax(np.abs(along)))
    if not abs(along[best]) > np.cos(NEAR):
        return np.full(2, np.nan)
    low, high = limits[best]
    return np.array([low, high] if along[best] > 0.0 else [-high, -low])
