"""What a format cannot hold of a take, motion or skeleton."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from marey.io.contract import Format
from marey.motion import Motion
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.solution import Solution
from marey.take import Take

TAKE_CHECKS: Mapping[str, Callable[[Take], bool]] = {
    "markers": lambda take: bool(take.labels),
    "sensors": lambda take: bool(take.sensor_names),
    "gaps": lambda take: not (take.seen.all() and take.sensor_seen.all()),
    "filled": lambda take: bool(take.filled.any()),
    "confidence": lambda take: bool(np.isfinite(take.confidence).any()),
    "events": lambda take: bool(take.events),
    "analog": lambda take: bool(take.analog.labels),
    "computed": lambda take: bool(take.computed.names),
    "subjects": lambda take: any(take.subjects),
    "start": lambda take: take.start != 0.0,
}
SKELETON_CHECKS: Mapping[str, Callable[[Skeleton], bool]] = {
    "limits": lambda s: bool(np.isfinite(s.limits).any()),
    "kinds": lambda s: bool({"hinge", "universal"} & set(s.kind)),
    "markers on bones": lambda s: bool(s.marker_labels or s.sensor_names),
    "uncertainty": lambda s: bool(
        np.isfinite(s.covariance).any() or np.isfinite(s.length_sd).any()
    ),
}
MOTION_CHECKS: Mapping[str, Callable[[Motion], bool]] = {
    "gaps": lambda m: not np.isfinite(m.wxyz).all(),
    "contacts": lambda m: bool(m.contacts),
    "start": lambda m: m.start != 0.0,
}
MOTION_AS_TAKE_CHECKS: Mapping[str, Callable[[Motion], bool]] = {
    "sensors": lambda m: True,
    "gaps": MOTION_CHECKS["gaps"],
    "start": MOTION_CHECKS["start"],
}
LOST_BY_MOTIONS = ("gaps", "start", "markers on bones", "uncertainty", "contacts")
"""What no file of joint angles holds."""

DESCRIPTIONS = {
    "markers": "the markers",
    "sensors": "the sensors' orientations: their origins become markers",
    "gaps": "which values are missing: gaps hold the last known value",
    "filled": "which values were filled in",
    "confidence": "the confidences of keypoints",
    "events": "the events",
    "analog": "the analog channels",
    "computed": "the angles, moments and powers that the capture software computed",
    "subjects": "the subjects' names",
    "start": "the time of the first frame",
    "limits": "the joint limits",
    "kinds": "the kinds of joints: all become ball joints",
    "markers on bones": "the positions of markers and sensors on the bones",
    "uncertainty": "the uncertainty of the bones",
    "contacts": "the contacts",
    "skeleton": "the skeleton: its joints become sensors",
}


def find_losses(
    thing: Take | Motion | Skeleton | Solution, target: Format
) -> tuple[Finding, ...]:
    """Return one finding for everything in `thing` that the target cannot hold."""
    lost: list[str] = []
    if isinstance(thing, Take):
        lost = _failed_checks(thing, TAKE_CHECKS, target)
    elif isinstance(thing, Skeleton):
        lost = _failed_checks(thing, SKELETON_CHECKS, target)
    elif isinstance(thing, Motion) and target.write_motion is None:
        lost = ["skeleton", *_failed_checks(thing, MOTION_AS_TAKE_CHECKS, target)]
        lost += ["contacts"] if thing.contacts else []
    elif isinstance(thing, Motion):
        lost = _failed_checks(thing.skeleton, SKELETON_CHECKS, target)
        lost += _failed_checks(thing, MOTION_CHECKS, target)
    keeps_no = f"{target.name} does not keep"
    return tuple(
        Finding("lost", "write", "info", f"{keeps_no} {DESCRIPTIONS[what]}", what)
        for what in lost
    )


def _failed_checks(
    thing: Any, checks: Mapping[str, Callable[[Any], bool]], target: Format
) -> list[str]:
    return [what for what, has in checks.items() if what in target.loses and has(thing)]
