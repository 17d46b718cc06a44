"""Ranges of motion of the joints of people, from the literature or by hand.

Bodenheimer1997, Sec. 3.2: joint limits "have been measured and can be found in the
biomechanical literature". The numbers and their sources are in `limits.toml`.
"""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.limb_roll import MIN_COSINE
from marey.errors import DataError, OptionError
from marey.numerics import Array, Bool, Float, geometry
from marey.skeleton import Skeleton

LIMIT_SLACK_RAD = np.radians(20.0)
"""Angle added at both ends of every published range, in radians. Higher permits poses
that few people reach. About two standard deviations between people, plus the error of a
rest pose. Chosen by hand."""

SAME_RANGE_AS = {vrm.CHEST: vrm.SPINE, vrm.UPPER_CHEST: vrm.SPINE, vrm.HEAD: vrm.NECK}
"""Joints without a row of their own, and the joint whose row they use."""

ANGLES = ("swing_x", "swing_y", "twist")
"""Names of the three angles of a ball joint in a table of limits."""

AXES = ("x", "y")
"""Names of the two swing axes in a table of limits."""

MIRRORS = {"": np.ones(3), vrm.RIGHT: np.array([1.0, -1.0, 1.0])}
"""Factors of vectors of the left side that give those of a side."""

STRAIGHT_PARTS = (vrm.LOWER_ARM, vrm.LOWER_LEG)
"""Bodies whose first angle is zero where they are in line with their parents."""


@dataclass(frozen=True, slots=True, eq=False)
class JointRange:
    """Range of motion of one joint, in the terms of `Skeleton.limits`."""

    bone_direction: Float[Array, " 3"]
    """Direction of the joint's bone in a T-pose, of any length; NaN for any rest
    pose."""

    axes: Float[Array, "2 3"]
    """Axes of the two swings in a T-pose; the twist is about their cross product. NaN
    for those that the joint has."""

    limits: Float[Array, "3 2"]
    """Smallest and largest angle of both swings and of the twist, in radians, without
    slack; NaN = free."""

    source: str
    """The publication; empty for limits by hand."""


class LimitedSkeleton(NamedTuple):
    """A skeleton with limits, and the limits that it could not get."""

    skeleton: Skeleton
    posed_otherwise: tuple[str, ...]
    """Joints whose bones at rest are far from a T-pose."""

    rolled: tuple[str, ...]
    """Joints some of whose axes are unknown, because the roll of a bone is."""


def with_human_limits(
    skeleton: Skeleton, *, slack: float = LIMIT_SLACK_RAD
) -> Skeleton:
    """Return the skeleton of a person with limits on its joints.

    Joints are identified by the names of the VRM humanoid. A joint that has limits
    already keeps its limits and axes, and one whose bone is far from its direction in a
    T-pose gets none. A hinge gets the range of the axis that it turns about, if the
    table has that axis. Bones must be rolled as those of a person at rest, so that
    elbows bend forward and knees backward; this cannot be checked here.

    Args:
        skeleton: At rest in a T-pose that faces +x, as `marey.solve` makes it.
        slack: Angle added at both ends of every range, in radians, 0 or more.

    Raises:
        DataError: If no joint has a name of a person's.
        OptionError: If the slack is negative.
    """
    ranges = widened_human_ranges(slack)
    if not ranges.keys() & set(skeleton.names):
        raise DataError(
            "limits",
            found=", ".join(skeleton.names),
            needed=f"joints of a person, such as {', '.join(human_ranges())}",
        )
    return limit_joints(skeleton, ranges).skeleton


def limit_joints(
    skeleton: Skeleton,
    ranges: Mapping[str, JointRange],
    unknown_rolls: Collection[str] = (),
) -> LimitedSkeleton:
    """Return a skeleton with limits on its joints, where its rest pose permits.

    The swing axes of a joint are fixed in its parent, whose roll must be known; the
    zero of its twist depends on its own roll too. A joint that has limits already keeps
    them.

    Args:
        skeleton: At rest in a T-pose that faces +x, for ranges that need it.
        ranges: Range of motion by the name of the joint.
        unknown_rolls: Joints whose roll about their bones at rest is a guess.
    """
    axes, limits = skeleton.axes.copy(), skeleton.limits.copy()
    posed_otherwise, rolled = [], []
    for joint, name in enumerate(skeleton.names):
        wanted, kind = ranges.get(name), skeleton.kind[joint]
        has_limits = kind in ("root", "fixed") or np.isfinite(limits[joint]).any()
        if wanted is None or has_limits:
            continue
        if not _is_near(_longest_bone(skeleton, joint), wanted.bone_direction):
            posed_otherwise.append(name)
            continue
        parent = skeleton.names[skeleton.parent[joint]]
        known = _known_angles(parent not in unknown_rolls, name not in unknown_rolls)
        if np.isfinite(wanted.limits[~known]).any():
            rolled.append(name)
        allowed = np.where(known[:, None], wanted.limits, np.nan)
        if vrm.without_side(name) in STRAIGHT_PARTS:
            allowed[0] -= _rest_angle(skeleton, joint, wanted.axes[0])
        _set_joint(skeleton, joint, wanted.axes, allowed, axes, limits)
    limited = replace(skeleton, axes=axes, limits=limits)
    return LimitedSkeleton(limited, tuple(posed_otherwise), tuple(rolled))


# --- tables ---------------------------------------------------------------------------


@cache
def human_ranges() -> Mapping[str, JointRange]:
    """Return the published range of every joint by its name, for both sides."""
    return _for_both_sides(_published_rows())


@cache
def safe_ranges() -> Mapping[str, JointRange]:
    """Return the ranges that no healthy person leaves, of knees and elbows only."""
    rows = {n: row for n, row in _published_rows().items() if "safe" in row}
    kept = (*AXES, "bone", "source")
    return _for_both_sides(
        {n: {k: row[k] for k in kept} | row["safe"] for n, row in rows.items()}
    )


def widened_human_ranges(slack: float = LIMIT_SLACK_RAD) -> Mapping[str, JointRange]:
    """Return the published ranges of all joints of a person, widened at both ends.

    Args:
        slack: Angle in radians by which each end moves, 0 or more.

    Raises:
        OptionError: If the slack is negative.
    """
    if not slack >= 0.0:
        raise OptionError("slack", found=slack, needed="0 or more radians")
    table = human_ranges()
    rows = {**table, **{name: table[row] for name, row in SAME_RANGE_AS.items()}}
    widening = slack * np.array([-1.0, 1.0])
    return {n: replace(row, limits=row.limits + widening) for n, row in rows.items()}


def parse_ranges(table: Mapping[str, Mapping[str, Any]]) -> Mapping[str, JointRange]:
    """Return ranges of motion from a table by hand, such as a TOML file.

    A row has the name of a joint, or that of a limb without its side for both sides
    (the left one is given, the right one mirrored). It has any of "swing_x", "swing_y"
    and "twist", each the least and the greatest angle in degrees, infinite for none.
    Joints of people have the swing axes of the published table; "x" and "y" give
    others, two perpendicular vectors at rest.

    Raises:
        OptionError: If a row has other entries, or an entry has another form.
    """
    ranges: dict[str, JointRange] = {}
    for name, row in table.items():
        _check_row(name, row)
        left = vrm.LEFT + name
        if left in human_ranges():
            ranges[left] = _parse_by_hand(left, row, MIRRORS[""])
            ranges[vrm.RIGHT + name] = _parse_by_hand(
                vrm.RIGHT + name, row, MIRRORS[vrm.RIGHT]
            )
        else:
            ranges[name] = _parse_by_hand(name, row, MIRRORS[""])
    return ranges


def _published_rows() -> Mapping[str, dict[str, Any]]:
    text = (files("marey.anatomy") / "limits.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _for_both_sides(rows: Mapping[str, Mapping[str, Any]]) -> Mapping[str, JointRange]:
    ranges = {}
    for name, row in rows.items():
        ranges[name] = _parse_row(row, MIRRORS[""])
        if vrm.side_of(name) == vrm.LEFT:
            ranges[vrm.mirror_name(name)] = _parse_row(row, MIRRORS[vrm.RIGHT])
    return ranges


def _parse_row(row: Mapping[str, Any], mirror: Float[Array, " 3"]) -> JointRange:
    """Return a row of the table, mirrored.

    Directions are vectors, axes of rotation are pseudovectors: under a reflection they
    change by opposite signs.
    """
    axes = np.array([row[name] for name in AXES], dtype=float)
    return JointRange(
        mirror * np.array(row["bone"], dtype=float),
        np.prod(mirror) * mirror * axes,
        _limits_of(row),
        row["source"],
    )


def _limits_of(row: Mapping[str, Any]) -> Float[Array, "3 2"]:
    """Return the ranges of the three angles in radians; NaN = free."""
    degrees = np.array([row.get(name, (np.nan, np.nan)) for name in ANGLES], float)
    return np.radians(np.where(np.isinf(degrees), np.nan, degrees))


def _parse_by_hand(
    name: str, row: Mapping[str, Any], mirror: Float[Array, " 3"]
) -> JointRange:
    """Return a row by hand: the published axes, or its own for any rest pose."""
    published = widened_human_ranges().get(name)
    if AXES[0] in row:
        axes = np.array([row[axis] for axis in AXES], dtype=float)
        axes = axes / np.linalg.norm(axes, axis=1, keepdims=True)
        axes = np.prod(mirror) * mirror * axes
        return JointRange(np.full(3, np.nan), axes, _limits_of(row), "")
    if published is None:
        return JointRange(
            np.full(3, np.nan), np.full((2, 3), np.nan), _limits_of(row), ""
        )
    return replace(published, limits=_limits_of(row), source="")


def _check_row(name: str, row: Mapping[str, Any]) -> None:
    """Raise an OptionError if a row by hand has another form."""
    needed = f"{', '.join(ANGLES)} = [least, greatest] in degrees, and axes x, y if any"
    if not isinstance(row, Mapping) or not row or set(row) - {*ANGLES, *AXES}:
        raise OptionError(f"limits of {name}", found=row, needed=needed)
    for key, value in row.items():
        size = 2 if key in ANGLES else 3
        try:
            numbers = np.array(value, dtype=float)
        except (TypeError, ValueError):
            numbers = np.zeros(0)
        good = numbers.shape == (size,) and not np.isnan(numbers).any()
        good = good and (key in AXES or numbers[0] <= numbers[-1])
        if not good or (AXES[0] in row) != (AXES[1] in row):
            raise OptionError(f"limits of {name}", found={key: value}, needed=needed)


# --- one joint ------------------------------------------------------------------------


def _set_joint(
    skeleton: Skeleton,
    joint: int,
    published: Float[Array, "2 3"],
    allowed: Float[Array, "3 2"],
    axes: Float[Array, "joint 2 3"],
    limits: Float[Array, "joint 3 2"],
) -> None:
    """Write axes and limits of one joint; a hinge gets those of the nearest axis."""
    kind, has_axes = skeleton.kind[joint], bool(np.isfinite(published).all())
    if kind == "ball":
        if has_axes:
            axes[joint] = published
        if np.isfinite(axes[joint]).all():
            limits[joint] = allowed
        return
    for n in range(1 if kind == "hinge" else 2):
        own = axes[joint, n]
        limits[joint, n] = (
            _range_about(published, allowed, own) if has_axes else (allowed[n])
        )


def _known_angles(parent_known: bool, own_known: bool) -> Bool[Array, " 3"]:
    """Return which of both swings and the twist have known axes and zeros."""
    return np.array([parent_known, parent_known, parent_known and own_known])


def _longest_bone(skeleton: Skeleton, joint: int) -> Float[Array, " 3"]:
    """Return the longest bone that a joint moves; zero if it moves only an end.

    The end of a leaf is where its markers are, and shows nothing about its pose.
    """
    children = (skeleton.parent == joint) & ~skeleton.is_end
    offset = skeleton.offset[children]
    if not len(offset):
        return np.zeros(3)
    return np.asarray(offset[geometry.lengths(offset).argmax()])


def _is_near(bone: Float[Array, " 3"], goal: Float[Array, " 3"]) -> bool:
    """Return whether a bone is not known to be far from its direction in a T-pose."""
    lengths = float(np.linalg.norm(bone) * np.linalg.norm(goal))
    return not bone @ goal < MIN_COSINE * lengths


def _rest_angle(skeleton: Skeleton, joint: int, axis: Float[Array, " 3"]) -> float:
    """Return the angle between a joint's bone and its parent's about an axis at rest.

    In radians; 0 if one of them has no length, or the axis is not known.
    """
    before, after = skeleton.offset[joint], _longest_bone(skeleton, joint)
    sine, cosine = axis @ geometry.cross(before, after), before @ after
    return 0.0 if np.isnan(sine) else float(np.arctan2(sine, cosine))


def _range_about(
    axes: Float[Array, "2 3"], limits: Float[Array, "3 2"], axis: Float[Array, " 3"]
) -> Float[Array, " 2"]:
    """Return the range about a joint's axis that is nearest to another, in radians.

    NaN if none is near.
    """
    candidates = np.concatenate([axes, geometry.cross(axes[0], axes[1])[None]])
    cosines = candidates @ axis
    nearest = int(np.argmax(np.abs(cosines)))
    if not abs(cosines[nearest]) > MIN_COSINE:
        return np.full(2, np.nan)
    low, high = limits[nearest]
    return np.array([low, high] if cosines[nearest] > 0.0 else [-high, -low])
