"""The motion of a known skeleton in a recording.

Every method takes the same skeleton and take and returns a `Motion` and what was found
about it; what can be chosen are the fields of its options. A new method is one file in
this folder with a function `solve`, and one line below.
"""

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from jaxtyping import Bool

from marey.errors import DataError, OptionError
from marey.motion import Motion
from marey.pose.contact.footing import Floor, with_contacts
from marey.report import Finding
from marey.skeleton import Skeleton, marker_columns
from marey.take import Take, match_labels

REGISTRY = {
    "gauss_newton": "marey.pose.gauss_newton.fit",
    "bfgs": "marey.pose.bfgs.fit",
    "physics": "marey.pose.physics.fit",
    "playback": "marey.pose.playback",
}


def solve_pose(
    skeleton: Skeleton,
    take: Take,
    *,
    method: str = "playback",
    ignore: Bool[np.ndarray, "frame joint"] | None = None,
    contacts: bool = False,
    **options: Any,
) -> Motion:
    """Return the motion of a skeleton that a recording shows.

    Args:
        skeleton: A skeleton that knows where the recording's markers or sensors sit on
            it.
        take: The recording.
        method: "gauss_newton": the motion that brings all markers and sensors nearest
            to where they were seen, within the joints' limits; "bfgs"
            (Bodenheimer1997, Sec. 3.2): the same in plain squares, limits by a
            penalty; "physics" (Zordan2003): where a figure hung on springs from its
            markers comes to rest; "playback" (OBrien2000, Sec. 3.4): the sensors'
            rotations, played through the skeleton.
        ignore: Frames and joints whose markers and sensors are left out, such as those
            that `marey.rig.lengths.wild_joints` tags.
        contacts: Whether feet, and all else that stands on something, are found and
            held where they stand; `Motion.contacts` then has the plants. See
            `marey.pose.contact.footing`.
        **options: Fields of the method's options.

    Raises:
        OptionError: If the method or an option is not known.
        DataError: If the recording holds none of the skeleton's markers or sensors, or
            `ignore` is not of its size.
    """
    return fit_pose(
        skeleton, take, method=method, ignore=ignore, contacts=contacts, **options
    )[0]


def fit_pose(
    skeleton: Skeleton,
    take: Take,
    *,
    method: str = "playback",
    ignore: Bool[np.ndarray, "frame joint"] | None = None,
    contacts: bool = False,
    floor: Floor | None = None,
    **options: Any,
) -> tuple[Motion, tuple[Finding, ...]]:
    """Return the motion as `solve_pose` does, and what was found about it.

    Findings name frames in which nothing was seen, joints out of sight, and markers
    that do not keep their place; with `contacts`, plants, skate and penetration too,
    on the floor if it is known.
    """
    if method not in REGISTRY:
        raise OptionError(
            "method", found=method, needed=f"one of {', '.join(REGISTRY)}"
        )
    seen = take.measured
    seen = seen if ignore is None else without(skeleton, seen, ignore)
    found: tuple[Motion, tuple[Finding, ...]] = import_module(REGISTRY[method]).solve(
        skeleton, seen, **options
    )
    if not contacts:
        return found
    motion, told = with_contacts(found[0], seen, floor)
    return motion, (*found[1], *told)


def without(
    skeleton: Skeleton, take: Take, ignore: Bool[np.ndarray, "frame joint"]
) -> Take:
    """Return the take with what some joints carry unseen in some frames."""
    needed = (take.n_frames, skeleton.n_joints)
    if ignore.shape != needed:
        raise DataError("ignore", found=ignore.shape, needed=needed)
    points, T_world_sensor = take.points.copy(), take.T_world_sensor.copy()
    worn = marker_columns(skeleton, take)
    for column, joint in zip(worn, skeleton.marker_joint, strict=True):
        if column >= 0:
            points[ignore[:, joint], column] = np.nan
    worn = match_labels(skeleton.sensor_names, take.sensor_names)
    for column, joint in zip(worn, skeleton.sensor_joint, strict=True):
        if column >= 0:
            T_world_sensor[ignore[:, joint], column] = np.nan
    return replace(take, points=points, T_world_sensor=T_world_sensor)
