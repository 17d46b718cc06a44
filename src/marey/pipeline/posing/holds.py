"""Holds that the options of a solve ask for: found in the motion, or from a file."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from marey.errors import OptionError
from marey.motion import Motion
from marey.numerics import Float, geometry
from marey.options import read_toml
from marey.pose.contact.holds import Hold, find_holds
from marey.report import Finding, mark_name

HoldRow = Hold | Mapping[str, Any]
"""A hold, or a row of a file: fields of `Hold`, of which `target` may be missing."""

HoldSource = str | PathLike[str] | Sequence[HoldRow]
"""`"none"`, `"auto"`, a TOML file with rows [[hold]], or a list of holds."""

HOLD_WORDS = ("none", "auto")

VECTORS = ("point", "target")


def read_holds(source: HoldSource) -> str | tuple[HoldRow, ...]:
    """Return the word "none" or "auto", or the holds of a file or list.

    Raises:
        OptionError: If a file cannot be read, or a row is no hold.
    """
    if isinstance(source, str) and source in HOLD_WORDS:
        return source
    if isinstance(source, str | PathLike):
        rows = read_toml("hold", source).get("hold", ())
    else:
        rows = source
    if not isinstance(rows, Sequence) or not len(rows):
        needed = "rows [[hold]] with a joint, and a target, start and end if known"
        raise OptionError("hold", found=source, needed=needed)
    for row in rows:
        if not isinstance(row, Hold):
            _make_hold(row, np.zeros(3))
    return tuple(rows)


def check_held_joints(
    holds: str | Sequence[HoldRow], names: Sequence[Sequence[str]]
) -> None:
    """Raise an OptionError if a hold names joints that no skeleton has.

    Args:
        holds: As `read_holds` returns them.
        names: Names of the joints of every subject.
    """
    if isinstance(holds, str):
        return
    for hold in holds:
        needed = _joints_of(hold)
        if not any(needed <= set(joints) for joints in names):
            known = ", ".join(name for joints in names for name in joints)
            found = " and ".join(sorted(needed))
            raise OptionError("hold", found=found, needed=f"joints of {known}")


def choose_holds(
    holds: str | Sequence[HoldRow], motion: Motion, props: Mapping[str, Motion]
) -> tuple[tuple[Hold, ...], tuple[Finding, ...]]:
    """Return the holds of one figure in one take, and the finding about them.

    Args:
        holds: As `read_holds` returns them.
        motion: The motion without holds.
        props: The other figures of the take, by name.
    """
    if isinstance(holds, str):
        chosen = find_holds(motion, props) if holds == "auto" else ()
    else:
        names = set(motion.skeleton.names)
        chosen = tuple(
            hold if isinstance(hold, Hold) else _place(hold, motion)
            for hold in holds
            if _joints_of(hold) <= names
        )
    return chosen, (_report(chosen),)


def _joints_of(hold: HoldRow) -> set[str]:
    """Return the joints that a hold names."""
    if isinstance(hold, Hold):
        named = (hold.joint, hold.target_joint)
    else:
        named = (hold["joint"], hold.get("target_joint", ""))
    return {name for name in named if name}


def _place(row: Mapping[str, Any], motion: Motion) -> Hold:
    """Return the hold of a row; without a target, where the point is in the median."""
    hold = _make_hold(row, np.zeros(3))
    if "target" in row:
        return hold
    T = motion.T_world_joint()
    is_held = (motion.times >= hold.start) & (motion.times <= hold.end)
    joint = motion.skeleton.index(hold.joint)
    points = geometry.apply(T[is_held, joint], hold.point)
    if hold.target_joint:
        other = motion.skeleton.index(hold.target_joint)
        points = geometry.apply(geometry.inverse(T[is_held, other]), points)
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        found = f"no frame from {hold.start:g} to {hold.end:g} s"
        raise OptionError(
            f"hold of {hold.joint}", found=found, needed="a time within the take"
        )
    return _make_hold(row, np.median(points, axis=0))


def _make_hold(row: Mapping[str, Any], target: Float[np.ndarray, " 3"]) -> Hold:
    """Return a row as a hold, with this target if it has none.

    Raises:
        OptionError: If a field is missing, unknown or of another form.
    """
    fields: dict[str, Any] = {"target": target}
    try:
        for name, value in row.items():
            fields[name] = np.array(value, float) if name in VECTORS else value
        hold = Hold(**fields)
        good = all(getattr(hold, name).shape == (3,) for name in VECTORS)
        good = good and isinstance(hold.joint, str) and hold.start < hold.end
    except (AttributeError, TypeError, ValueError) as error:
        if isinstance(error, OptionError):
            raise
        good = False
    if not good:
        raise OptionError(
            "hold",
            found=dict(row) if isinstance(row, Mapping) else row,
            needed="joint; point, target, target_joint, start, end, strength if any",
        )
    return hold


def _report(holds: Sequence[Hold]) -> Finding:
    """Return what is held, when, and by what."""
    if not holds:
        message = "no hand or foot is held by the world, a bone or a prop for a while"
        return Finding("hold-none", "pose", "info", message, value=0.0)
    parts = [
        f"{mark_name(hold.joint)}"
        + (f" on {mark_name(hold.target_joint)}" if hold.target_joint else "")
        + f" from {hold.start:.2f} to {hold.end:.2f} s"
        for hold in holds
    ]
    message = f"held {len(holds)} times: {', '.join(parts)}"
    return Finding("hold-kept", "pose", "info", message, value=float(len(holds)))
