"""Recordings and motions as labelled arrays of xarray, and as tables of pandas.

Datasets have the dimensions of `movement`: time, space, keypoint and individual, and
its attributes; one name may belong to several individuals. Lengths are metres, times
seconds, +z is up.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from marey.errors import import_extra
from marey.numerics import Array, Float, geometry

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from marey.motion import Motion
    from marey.solution import Solution
    from marey.take import Take


SPACE = ("x", "y", "z")
QUATERNION = ("w", "x", "y", "z")
POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")
EXTRA = "tables"


def take_to_xarray(take: "Take") -> "xr.Dataset":
    """Return markers and sensors as a dataset: see `Take.to_xarray`."""
    T = take.T_world_sensor
    names = [*take.labels, *take.sensor_names]
    owners = [*take.subjects, *[""] * len(take.sensor_names)]
    points = np.concatenate([take.points, T[..., :3, 3]], axis=1)
    wxyz = np.full((*points.shape[:2], 4), np.nan)
    wxyz[:, len(take.labels) :] = geometry.quat_from_matrix(T[..., :3, :3])
    confidence = np.full(points.shape[:2], np.nan)
    confidence[:, : len(take.labels)] = take.confidence
    facts = _facts(take)
    return _dataset(take.times, names, owners, points, wxyz, facts, confidence)


def motion_to_xarray(motion: "Motion", individual: str = "") -> "xr.Dataset":
    """Return the joints of a motion as a dataset: see `Motion.to_xarray`."""
    T = motion.T_world_joint()
    names = list(motion.skeleton.names)
    wxyz = geometry.quat_continuous(geometry.quat_from_matrix(T[..., :3, :3]))
    owners = [individual] * len(names)
    facts = _facts(motion)
    parents = [names[p] if p >= 0 else "" for p in motion.skeleton.parent]
    dataset = _dataset(motion.times, names, owners, T[..., :3, 3], wxyz, facts)
    return dataset.assign_coords(parent=("keypoint", parents))


def solution_to_pandas(solution: "Solution") -> "pd.DataFrame":
    """Return the poses of all joints as a table: see `Solution.to_pandas`."""
    pandas = import_extra("pandas", EXTRA)
    tables = []
    for number, take in enumerate(solution.takes):
        columns: dict[tuple[str, str, str], Array] = {}
        for subject in solution.subjects:
            columns |= _pose_columns(subject.name, subject.motions[number])
        names = ["take", "time"]
        index = pandas.MultiIndex.from_product([[number], take.times], names=names)
        table = pandas.DataFrame(columns, index=index)
        table.columns.names = ["subject", "joint", "component"]
        tables.append(table)
    return pandas.concat(tables)


def _pose_columns(
    subject: str, motion: "Motion"
) -> dict[tuple[str, str, str], Float[Array, " frame"]]:
    """Return position and quaternion of every joint, by subject, joint, component."""
    T = motion.T_world_joint()
    wxyz = geometry.quat_continuous(geometry.quat_from_matrix(T[..., :3, :3]))
    pose = np.concatenate([T[..., :3, 3], wxyz], axis=-1)
    return {
        (subject, name, part): pose[:, joint, k]
        for joint, name in enumerate(motion.skeleton.names)
        for k, part in enumerate(POSE)
    }


def columns_to_pandas(
    times: Float[Array, " frame"],
    names: Sequence[str],
    values: Float[Array, "frame column"],
    attributes: Mapping[str, str],
) -> "pd.DataFrame":
    """Return columns of numbers over time as a table; the index is the time.

    Args:
        times: Seconds.
        names: Names of the columns.
        values: The numbers.
        attributes: What the table says of itself, in `DataFrame.attrs`.
    """
    pandas = import_extra("pandas", EXTRA)
    index = pandas.Index(times, name="time")
    table = pandas.DataFrame(values, index=index, columns=list(names))
    table.attrs.update(attributes)
    return table


def _facts(thing: "Take | Motion") -> dict[str, Any]:
    return {
        "fps": float(thing.rate),
        "source_software": "marey",
        "source_file": thing.source.path,
        "ds_type": "poses",
        "time_unit": "seconds",
        "space_unit": "metres",
        "up": "z",
    }


def _dataset(
    times: Float[Array, " frame"],
    names: Sequence[str],
    owners: Sequence[str],
    points: Float[Array, "frame point 3"],
    wxyz: Float[Array, "frame point 4"],
    attributes: Mapping[str, Any],
    confidence: Float[Array, "frame point"] | None = None,
) -> "xr.Dataset":
    """Return positions and rotations by name and individual, NaN where there is none.

    Args:
        times: Seconds.
        names: Name of each point.
        owners: Individual of each point; those without one are of the first.
        points: Positions in metres.
        wxyz: Rotations; NaN for points that have none.
        attributes: Attributes of the dataset.
        confidence: Of each position, from 0 to 1; NaN where it is not known.
    """
    xarray = import_extra("xarray", EXTRA)
    individuals = list(dict.fromkeys(o for o in owners if o)) or ["id_0"]
    keypoints = list(dict.fromkeys(names))
    shape = (len(times), len(keypoints), len(individuals))
    position = np.full((shape[0], 3, *shape[1:]), np.nan)
    rotation = np.full((shape[0], 4, *shape[1:]), np.nan)
    certain = np.full(shape, np.nan)
    for k, (name, owner) in enumerate(zip(names, owners, strict=True)):
        at = keypoints.index(name), individuals.index(owner or individuals[0])
        position[:, :, at[0], at[1]] = points[:, k]
        rotation[:, :, at[0], at[1]] = wxyz[:, k]
        if confidence is not None:
            certain[:, at[0], at[1]] = confidence[:, k]
    dims = ("keypoint", "individual")
    variables = {
        "position": (("time", "space", *dims), position, {"units": "m"}),
        "confidence": (("time", *dims), certain),
    }
    coords = {"time": times, "space": list(SPACE), "keypoint": keypoints}
    coords |= {"individual": individuals}
    if np.isfinite(rotation).any():
        variables["rotation"] = (("time", "quaternion", *dims), rotation)
        coords |= {"quaternion": list(QUATERNION)}
    dataset: xr.Dataset = xarray.Dataset(variables, coords, dict(attributes))
    return dataset
