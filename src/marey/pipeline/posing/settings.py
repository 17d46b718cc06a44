"""Options of a solve as options of the method that estimates its poses."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import numpy as np

from marey.errors import OptionError
from marey.io import read_motion
from marey.motion import GroundPlane, Motion
from marey.numerics.thresholds import FEW, GRAVITY
from marey.pose.contact.holds import Hold
from marey.pose.options import ANGLE_SD, PhysicsOptions
from marey.skeleton import Skeleton

if TYPE_CHECKING:
    from marey.pipeline.options import SolveOptions

METHODS_WITH = {
    "limits": ("gauss_newton", "bfgs", "physics"),
    "reference": ("gauss_newton", "bfgs", "physics"),
    "outlier": ("gauss_newton", "physics"),
    "hold": ("physics",),
    "friction": ("physics",),
}
"""Pose methods that can take each option; "auto" chooses the first of them."""

STRICT_LIMIT_SD_RAD = FEW * ANGLE_SD
"""Standard deviation of the penalty of BFGS for angles beyond their limits, in radians:
a tenth of what the markers of a limb measure, so that limits count more."""


def asked_for(options: "SolveOptions") -> tuple[str, ...]:
    """Return the options of `METHODS_WITH` that the user set.

    Safe limits are no request: they are kept where a method can.
    """
    is_set = {
        "limits": options.limits not in ("safe", "none"),
        "reference": options.reference is not None,
        "outlier": options.outlier is not None,
        "hold": options.hold != "none",
        "friction": options.friction is not None,
    }
    return tuple(name for name, given in is_set.items() if given)


def choose_method(options: "SolveOptions", *, has_markers: bool) -> str:
    """Return the pose method of a subject.

    "auto" is playback for sensors and Gauss-Newton for markers, unless an option needs
    another one.
    """
    if options.pose != "auto":
        return options.pose
    able = [METHODS_WITH[name] for name in asked_for(options)]
    if not able:
        return "gauss_newton" if has_markers else "playback"
    return next(method for method in able[0] if all(method in one for one in able))


def check_pose_options(options: "SolveOptions") -> None:
    """Raise an OptionError if the pose method cannot take what else was asked for."""
    for name in asked_for(options):
        methods = METHODS_WITH[name]
        if options.pose not in ("auto", *methods):
            found = f"{_shown(options, name)} with pose={options.pose}"
            raise OptionError(name, found=found, needed=f"pose={' or '.join(methods)}")
    needs = "contacts" if options.contacts else "friction"
    if options.ground == "none" and (options.contacts or options.friction is not None):
        found = f"none, with {needs}"
        raise OptionError("ground", found=found, needed="auto, or a height in metres")


def _shown(options: "SolveOptions", name: str) -> str:
    value = getattr(options, name)
    return f"{value}" if isinstance(value, str | float | int) else "one"


def read_reference(source: Motion | str | PathLike[str]) -> Motion:
    """Return a reference motion, read from its file if it is a path."""
    return source if isinstance(source, Motion) else read_motion(fspath(source))


def check_ground(ground: str | float) -> None:
    """Raise an OptionError if a ground is neither auto, none nor a finite height."""
    if ground in ("auto", "none"):
        return
    is_number = isinstance(ground, int | float) and not isinstance(ground, bool)
    if not is_number or not np.isfinite(ground):
        needed = "auto, none, or a height in metres"
        raise OptionError("ground", found=ground, needed=needed)


def known_ground(options: "SolveOptions") -> GroundPlane | None:
    """Return the level ground at the height that was given, if any."""
    if isinstance(options.ground, str):
        return None
    return GroundPlane(height=float(options.ground))


def uses_ground(options: "SolveOptions") -> bool:
    """Return whether poses may depend on the ground."""
    return options.contacts or physics_has_ground(options)


def physics_has_ground(options: "SolveOptions") -> bool:
    """Return whether physics pushes soles up: with friction, or on a known ground."""
    return options.friction is not None or known_ground(options) is not None


def pose_settings(
    options: "SolveOptions",
    method: str,
    floor: GroundPlane | None,
    holds: tuple[Hold, ...] = (),
) -> Mapping[str, Any]:
    """Return the options of a pose method that a solve asks for.

    Args:
        options: Of the solve.
        method: The pose method.
        floor: The ground, if it is known.
        holds: Holds of this subject in this take.
    """
    settings: dict[str, Any] = {"holds": holds} if holds else {}
    if options.reference is not None:
        settings["reference"] = options.reference
    if options.outlier is not None and method == "gauss_newton":
        settings["outlier"] = options.outlier
    if method == "bfgs":
        settings["limit_sd"] = STRICT_LIMIT_SD_RAD
    if method != "physics":
        return settings
    if options.outlier is not None:
        length = options.outlier * PhysicsOptions().marker_sd
        settings["cutoff"] = length or np.inf
    if physics_has_ground(options):
        settings["ground"] = floor or "found"
    if options.friction is not None:
        settings["friction"] = options.friction
        is_static = options.friction in (0.0, np.inf)
        settings["settle"] = "direct" if is_static else "simulation"
        # Friction is a share of what presses a sole down: the weight of the figure.
        settings["gravity"] = 0.0 if is_static else GRAVITY
    return settings


def record_options(options: "SolveOptions") -> dict[str, Any]:
    """Return the options of a solve for its solution; a reference by its file."""
    reference = options.reference
    recorded: Any = reference
    if isinstance(reference, Motion):
        recorded = reference.source.path or asdict(reference)
    return {**asdict(replace(options, reference=None)), "reference": recorded}


def parse_reference(recorded: Any) -> Any:
    """Return a reference as `record_options` recorded it."""
    if not isinstance(recorded, Mapping):
        return recorded
    return Motion(
        skeleton=Skeleton(**recorded["skeleton"]),
        **{n: recorded[n] for n in ("T_world_root", "wxyz", "rate", "start")},
    )
