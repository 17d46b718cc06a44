"""Poses of subjects in several takes, of which some may not show them."""

from typing import Any

import numpy as np

from marey.motion import Motion, motion_on_clock
from marey.pose import fit_pose
from marey.report import Finding, mark_name
from marey.skeleton import Skeleton, marker_columns
from marey.take import Take


def pose_where_seen(
    name: str, skeleton: Skeleton, take: Take, **options: Any
) -> tuple[Motion, tuple[Finding, ...]]:
    """Return the motion of a subject in a take, and findings about it.

    A prop that lies outside one of several takes has a motion without poses (NaN)
    there, and the others keep theirs.

    Args:
        name: The subject.
        skeleton: Its skeleton, with the markers where they are attached in this take.
        take: The recording.
        options: Those of `fit_pose`.
    """
    if is_seen(skeleton, take):
        return fit_pose(skeleton, take, **options)
    T_world_root = np.full((take.n_frames, 4, 4), np.nan)
    wxyz = np.full((take.n_frames, skeleton.n_joints, 4), np.nan)
    unknown = motion_on_clock(take, skeleton, T_world_root, wxyz)
    where = take.source.path or "a take"
    message = f"{mark_name(name)} is not seen in {where} and has no motion there"
    return unknown, (Finding("subject-unseen", "pose", "info", message),)


def is_seen(skeleton: Skeleton, take: Take) -> bool:
    """Return whether any frame shows a marker or a sensor of the skeleton."""
    columns = marker_columns(skeleton, take)
    sensors = np.isin(take.sensor_names, skeleton.sensor_names)
    markers = take.seen[:, columns[columns >= 0]].any()
    return bool(markers or take.sensor_seen[:, sensors].any())
