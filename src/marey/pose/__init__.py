"""Pose solvers: the motion of a known skeleton in a recording.

Every method takes a skeleton and a take and returns a `Motion` and findings about it;
the fields of its options are its keyword arguments. A new method is one file or folder
here with a function `solve`, and one line in `REGISTRY`.
"""

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from marey.errors import DataError, OptionError
from marey.kernels import one_blas_thread
from marey.motion import GroundPlane, Motion
from marey.numerics import Bool
from marey.pose.bfgs.fit import fit_bfgs as fit_bfgs
from marey.pose.contact.ground import GroundContacts as GroundContacts
from marey.pose.contact.ground_contacts import add_contacts
from marey.pose.contact.ground_contacts import enforce_contacts as enforce_contacts
from marey.pose.contact.ground_contacts import (
    find_ground_contacts as find_ground_contacts,
)
from marey.pose.contact.ground_contacts import ground_contacts_of as ground_contacts_of
from marey.pose.contact.ground_contacts import mark_contacts as mark_contacts
from marey.pose.findings import unseen_joints
from marey.pose.physics.fit import fit_physics as fit_physics
from marey.pose.reference import compare_joint_use as compare_joint_use
from marey.pose.uncertainty import angle_sd_of_playback, angle_sd_of_targets
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
    method: str = "auto",
    ignore: Bool[np.ndarray, "frame joint"] | None = None,
    contacts: bool = False,
    **options: Any,
) -> Motion:
    """Return the motion of a skeleton in a recording.

    Args:
        skeleton: A skeleton with the offsets of the recording's markers or sensors.
        take: The recording.
        method: "auto": gauss_newton if the take has markers of the skeleton, else
            playback; "gauss_newton": robust least squares of all markers and sensors
            within the joints' limits; "bfgs" (Bodenheimer1997, Sec. 3.2): plain least
            squares, limits by a penalty; "physics" (Zordan2003): the equilibrium of a
            figure that springs attach to its markers; "playback" (OBrien2000, Sec.
            3.4): the sensors' rotations, played through the skeleton.
        ignore: Frames and joints whose markers and sensors are left out, such as those
            that `marey.rig.lengths.find_outlier_joints` tags.
        contacts: Whether contacts of feet and other points are found and kept;
            `Motion.contacts` then has them. See `marey.pose.contact.ground_contacts`.
        **options: Fields of the method's options.

    Raises:
        OptionError: If the method or an option is not known.
        DataError: If the recording holds none of the skeleton's markers or sensors, or
            `ignore` is not of its size.
    """
    return fit_pose(
        skeleton, take, method=method, ignore=ignore, contacts=contacts, **options
    )[0]


@one_blas_thread()
def fit_pose(
    skeleton: Skeleton,
    take: Take,
    *,
    method: str = "auto",
    ignore: Bool[np.ndarray, "frame joint"] | None = None,
    contacts: bool = False,
    floor: GroundPlane | None = None,
    **options: Any,
) -> tuple[Motion, tuple[Finding, ...]]:
    """Return the motion as `solve_pose` does, and the findings about it.

    Findings name frames without targets, unseen joints and markers that do not fit;
    with `contacts` also contacts, foot skate and penetration, on `floor` if given.
    """
    if method == "auto":
        method = choose_method(skeleton, take)
    if method not in REGISTRY:
        needed = f"one of auto, {', '.join(REGISTRY)}"
        raise OptionError("method", found=method, needed=needed)
    measured = take.measured
    if ignore is not None:
        measured = mask_joints(skeleton, measured, ignore)
    motion: Motion
    findings: tuple[Finding, ...]
    solve = import_module(REGISTRY[method]).solve
    motion, findings = solve(skeleton, measured, **options)
    estimate = angle_sd_of_playback if method == "playback" else angle_sd_of_targets
    motion = replace(motion, angle_sd=estimate(motion, measured))
    findings = (*findings, *unseen_joints(motion))
    if not contacts:
        return motion, findings
    motion, contact_findings = add_contacts(motion, measured, floor)
    return motion, (*findings, *contact_findings)


def choose_method(skeleton: Skeleton, take: Take) -> str:
    """Return the method "auto": gauss_newton for markers, playback for sensors alone.

    Raises:
        DataError: If a label matches several markers.
    """
    has_markers = (marker_columns(skeleton, take) >= 0).any()
    return "gauss_newton" if has_markers else "playback"


def mask_joints(
    skeleton: Skeleton, take: Take, ignore: Bool[np.ndarray, "frame joint"]
) -> Take:
    """Return the take without the markers and sensors of some joints in some frames."""
    needed = (take.n_frames, skeleton.n_joints)
    if ignore.shape != needed:
        raise DataError("ignore", found=ignore.shape, needed=needed)
    points, T_world_sensor = take.points.copy(), take.T_world_sensor.copy()
    marker_column = marker_columns(skeleton, take)
    sensor_column = match_labels(skeleton.sensor_names, take.sensor_names)
    for values, columns, joints in (
        (points, marker_column, skeleton.marker_joint),
        (T_world_sensor, sensor_column, skeleton.sensor_joint),
    ):
        for column, joint in zip(columns, joints, strict=True):
            if column >= 0:
                values[ignore[:, joint], column] = np.nan
    return replace(take, points=points, T_world_sensor=T_world_sensor)
