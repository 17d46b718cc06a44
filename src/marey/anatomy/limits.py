"""Ranges of motion of the joints of people, from the literature.

Bodenheimer1997, Sec. 3.2: joint limits "have been measured and can be found in the
biomechanical literature". The numbers and their sources are in `limits.toml`.
"""

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from jaxtyping import Float

from marey.anatomy import names as vrm
from marey.errors import DataError, OptionError
from marey.skeleton import Skeleton

Array = np.ndarray

LIMIT_SLACK_RAD = np.radians(20.0)
"""Angle added at both ends of every published range, in radians. Higher permits poses
that few people reach. About two standard deviations between people, plus the error of a
rest pose. Chosen by hand."""

MIN_COSINE = np.sqrt(0.5)
"""Smallest cosine between a bone and its direction in a T-pose, and between a hinge and
the axis of the table whose range it gets: 45 degrees, nearer to that direction than to
any perpendicular one."""

SAME_RANGE_AS = {vrm.CHEST: vrm.SPINE, vrm.UPPER_CHEST: vrm.SPINE, vrm.HEAD: vrm.NECK}
"""Joints without a row of their own, and the joint whose row they use."""


@dataclass(frozen=True, slots=True, eq=False)
class JointRange:
    """Range of motion of one joint, in the terms of `Skeleton.limits`."""

    bone_direction: Float[Array, " 3"]
    """Direction of the joint's bone in a T-pose, of any length."""

    axes: Float[Array, "2 3"]
    """Axes of the two swings in a T-pose; the twist is about their cross product."""

    limits: Float[Array, "3 2"]
    """Smallest and largest angle of both swings and of the twist, in radians, without
    slack."""

    source: str
    """The publication."""


def with_human_limits(
    skeleton: Skeleton, *, slack: float = LIMIT_SLACK_RAD
) -> Skeleton:
    """Return the skeleton of a person with limits on its joints.

    Joints are identified by the names of the VRM humanoid. A joint that has limits
    already keeps its limits and axes. A hinge gets the range of the axis that it turns
    about, if the table has that axis. Bones must be twisted as those of a person at
    rest, so that elbows bend forward and knees backward; this cannot be checked here.

    Args:
        skeleton: At rest in a T-pose that faces +x, as `build_skeleton` makes it.
        slack: Angle added at both ends of every range, in radians, 0 or more.

    Raises:
        DataError: If no joint has a name of a person's, or the rest pose is no T-pose.
        OptionError: If the slack is negative.
    """
    if not slack >= 0.0:
        raise OptionError("slack", found=slack, needed="0 or more radians")
    table = human_ranges()
    ranges = {
        joint: table[_row_name(name)]
        for joint, name in enumerate(skeleton.names)
        if _row_name(name) in table
    }
    if not ranges:
        raise DataError(
            "limits",
            found=", ".join(skeleton.names),
            needed=f"joints of a person, such as {', '.join(table)}",
        )
    axes, limits = skeleton.axes.copy(), skeleton.limits.copy()
    for joint, published in ranges.items():
        kind = skeleton.kind[joint]
        if kind in ("root", "fixed") or np.isfinite(limits[joint]).any():
            continue
        _check_rest_pose(skeleton, joint, published)
        widened = published.limits + slack * np.array([-1.0, 1.0])
        if kind == "ball":
            axes[joint], limits[joint] = published.axes, widened
            continue
        for n in range(1 if kind == "hinge" else 2):
            limits[joint, n] = _range_about(published.axes, widened, axes[joint, n])
    return replace(skeleton, axes=axes, limits=limits)


@cache
def human_ranges() -> dict[str, JointRange]:
    """Return the published range of every joint by its name, for both sides."""
    text = (files("marey.anatomy") / "limits.toml").read_text(encoding="utf-8")
    ranges = {}
    for name, row in tomllib.loads(text).items():
        ranges[name] = _parse_row(row, np.ones(3))
        if vrm.side_of(name) == vrm.LEFT:
            ranges[vrm.mirror_name(name)] = _parse_row(row, np.array([1.0, -1.0, 1.0]))
    return ranges


def _parse_row(row: dict[str, Any], mirror: Float[Array, " 3"]) -> JointRange:
    """Return a row of the table, mirrored.

    Directions are vectors, axes of rotation are pseudovectors: under a reflection they
    change by opposite signs.
    """
    axes = np.array([row["x"], row["y"]], dtype=float)
    degrees = [row["swing_x"], row["swing_y"], row["twist"]]
    return JointRange(
        mirror * np.array(row["bone"], dtype=float),
        np.prod(mirror) * mirror * axes,
        np.radians(np.array(degrees, dtype=float)),
        row["source"],
    )


def _row_name(joint: str) -> str:
    return SAME_RANGE_AS.get(joint, joint)


def _check_rest_pose(skeleton: Skeleton, joint: int, published: JointRange) -> None:
    """Raise a DataError if the longest bone of a joint is far from its T-pose."""
    offset = skeleton.offset[skeleton.parent == joint]
    lengths = np.linalg.norm(offset, axis=-1)
    if not lengths.max(initial=0.0) > 0.0:
        return
    bone = offset[lengths.argmax()] / lengths.max()
    cosine = bone @ published.bone_direction / np.linalg.norm(published.bone_direction)
    if cosine < MIN_COSINE:
        angle = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
        raise DataError(
            f"rest pose of {skeleton.names[joint]}",
            found=f"a bone {angle:.0f}° from its direction in a T-pose",
            needed="a T-pose that faces +x, for limits from the literature",
        )


def _range_about(
    axes: Float[Array, "2 3"], limits: Float[Array, "3 2"], axis: Float[Array, " 3"]
) -> Float[Array, " 2"]:
    """Return the range of the nearest axis of a joint; NaN if none is near."""
    candidates = np.concatenate([axes, np.cross(axes[0], axes[1])[None]])
    cosines = candidates @ axis
    nearest = int(np.argmax(np.abs(cosines)))
    if not abs(cosines[nearest]) > MIN_COSINE:
        return np.full(2, np.nan)
    low, high = limits[nearest]
    return np.array([low, high] if cosines[nearest] > 0.0 else [-high, -low])
