"""Limits of joints that the options of a solve ask for."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from marey.anatomy.limits import (
    JointRange,
    LimitedSkeleton,
    limit_joints,
    parse_ranges,
    safe_ranges,
    widened_human_ranges,
)
from marey.anatomy.names import is_person
from marey.errors import OptionError
from marey.options import read_toml
from marey.report import Finding, mark_name
from marey.skeleton import Skeleton

LimitSource = str | PathLike[str] | Mapping[str, Mapping[str, Any]]
"""A word of `LIMIT_WORDS`, a TOML file, or a mapping of the same form."""

LIMIT_WORDS = ("safe", "none", "human")


def read_limits(source: LimitSource) -> Mapping[str, JointRange]:
    """Return the range of motion of each joint that a source names.

    Raises:
        OptionError: If it is neither a word, a TOML file nor a table of limits.
    """
    if source == "safe":
        return safe_ranges()
    if source == "human":
        return widened_human_ranges()
    if source == "none":
        return {}
    table = source if isinstance(source, Mapping) else read_toml("limits", source)
    return parse_ranges(table)


def limit_skeletons(
    skeletons: Sequence[Skeleton],
    source: LimitSource,
    unknown_rolls: Sequence[str] = (),
) -> tuple[tuple[Skeleton, ...], tuple[Finding, ...]]:
    """Return skeletons of one subject with limits, and what they could not get.

    Args:
        skeletons: The same joints, with markers of several takes.
        source: The limits. Words are for people, and leave other figures as they are.
        unknown_rolls: Joints whose roll about their bones at rest is a guess.
    """
    ranges = read_limits(source)
    if source in LIMIT_WORDS and not is_person(skeletons[0].names):
        ranges = {}
    limited = [limit_joints(one, ranges, unknown_rolls) for one in skeletons]
    findings = _left_out(limited[0])
    return tuple(one.skeleton for one in limited), findings


def check_named_joints(source: LimitSource, names: Sequence[str]) -> None:
    """Raise an OptionError if limits by hand name a joint that no skeleton has."""
    if source in LIMIT_WORDS:
        return
    unknown = [name for name in read_limits(source) if name not in names]
    if unknown:
        raise OptionError(
            "limits", found=", ".join(unknown), needed=f"joints of {', '.join(names)}"
        )


def _left_out(limited: LimitedSkeleton) -> tuple[Finding, ...]:
    """Return what limits were left out, and why."""
    messages = (
        (
            limited.rolled,
            "limits of {} are left out about axes that the take does not show: record "
            "knees and elbows bending, with right labels",
        ),
        (
            limited.posed_otherwise,
            "limits of {} are left out: their bones at rest are far from a T-pose",
        ),
    )
    return tuple(
        Finding(
            "limit-left-out",
            "pose",
            "info",
            message.format(", ".join(map(mark_name, joints))),
            value=float(len(joints)),
        )
        for joints, message in messages
        if joints
    )
