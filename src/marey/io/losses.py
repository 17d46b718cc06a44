"""What a format cannot hold of the thing it is asked to hold."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from marey.io.contract import Format
from marey.motion import Motion
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.solution import Solution
from marey.take import Take

TAKE: Mapping[str, Callable[[Take], bool]] = {
    "markers": lambda take: bool(take.labels),
    "sensors": lambda take: bool(take.sensor_names),
    "gaps": lambda take: not (take.seen.all() and take.sensor_seen.all()),
    "filled": lambda take: bool(take.filled.any()),
    "events": lambda take: bool(take.events),
    "analog": lambda take: bool(take.analog.labels),
    "subjects": lambda take: any(take.subjects),
    "start": lambda take: take.start != 0.0,
}
SKELETON: Mapping[str, Callable[[Skeleton], bool]] = {
    "limits": lambda s: bool(np.isfinite(s.limits).any()),
    "kinds": lambda s: bool({"hinge", "universal"} & set(s.kind)),
    "markers on bones": lambda s: bool(s.marker_labels or s.sensor_names),
    "uncertainty": lambda s: bool(
        np.isfinite(s.covariance).any() or np.isfinite(s.length_sd).any()
    ),
}
MOTION: Mapping[str, Callable[[Motion], bool]] = {
    "gaps": lambda m: not np.isfinite(m.wxyz).all(),
    "contacts": lambda m: bool(m.contacts),
    "start": lambda m: m.start != 0.0,
}
MOTION_AS_TAKE: Mapping[str, Callable[[Motion], bool]] = {
    "sensors": lambda m: True,
    "gaps": MOTION["gaps"],
    "start": MOTION["start"],
}
WORDS = {
    "markers": "the markers",
    "sensors": "the sensors' orientations: their origins stand as markers",
    "gaps": "which values are missing: they stand as the last known value",
    "filled": "which values were filled in",
    "events": "the events",
    "analog": "the analog channels",
    "subjects": "the subjects' names",
    "start": "the time of the first frame",
    "limits": "the joint limits",
    "kinds": "the kinds of joints: all stand as ball joints",
    "markers on bones": "where markers and sensors sit on the bones",
    "uncertainty": "the uncertainty of the bones",
    "contacts": "the contacts",
    "skeleton": "the skeleton: its joints stand as sensors",
}


def losses(
    thing: Take | Motion | Skeleton | Solution, target: Format
) -> tuple[Finding, ...]:
    """Return one finding for everything in `thing` that the target cannot hold."""
    if isinstance(thing, Take):
        lost = _lost(thing, TAKE, target)
    elif isinstance(thing, Skeleton):
        lost = _lost(thing, SKELETON, target)
    elif isinstance(thing, Solution):
        lost = []
    elif target.write_motion is None:
        contacts = ["contacts"] if thing.contacts else []
        lost = ["skeleton", *_lost(thing, MOTION_AS_TAKE, target), *contacts]
    else:
        lost = _lost(thing.skeleton, SKELETON, target) + _lost(thing, MOTION, target)
    return tuple(
        Finding(
            "lost", "write", "info", f"{target.name} does not keep {WORDS[what]}", what
        )
        for what in lost
    )


def _lost(
    thing: Any, checks: Mapping[str, Callable[[Any], bool]], target: Format
) -> list[str]:
    return [what for what, has in checks.items() if what in target.loses and has(thing)]
