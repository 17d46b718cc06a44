"""Keypoints of an HDF5 file, read in a process of their own.

The HDF5 library may hang, crash or fill the memory on a damaged file, so only a worker
with limited time and memory imports this module.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import h5py
import numpy as np

from marey.errors import DataError
from marey.numerics import Array

Facts = dict[str, Any]

MAX_INFLATION = 1032
"""Bytes that deflate makes of one byte at most; arrays that claim more are damage."""


def read_keypoints(path: str) -> tuple[Facts, Array, Array]:
    """Return facts, positions (frame, point, 3) and confidences of a file.

    Raises:
        DataError: If it holds no 3-D keypoints.
    """
    with h5py.File(path, "r") as file:
        limit = MAX_INFLATION * Path(path).stat().st_size
        if "tracks" in file:
            return read_sleap(file, limit)
        if "position" in file:
            return read_movement(file, limit)
        refuse("the dataset tracks (SLEAP) or position (movement)", sorted(file))


def refuse(needed: str, found: object) -> NoReturn:
    """Say that the file holds something else."""
    raise DataError("HDF5", found=found, needed=needed)


def read_array(file: h5py.File, name: str, limit: int) -> Array:
    """Return a dataset as numbers; the file must be able to hold it."""
    dataset = file[name]
    if dataset.size * 8 > limit:
        refuse(f"at most {limit} bytes in {name}", f"shape {dataset.shape}")
    return np.asarray(dataset[()], dtype=float)


def read_names(file: h5py.File, name: str, limit: int) -> list[str]:
    """Return a dataset of words; none if there is no such dataset."""
    if name not in file:
        return []
    if file[name].size * 8 > limit:
        refuse(f"at most {limit} bytes in {name}", f"shape {file[name].shape}")
    return [as_text(value) for value in np.ravel(file[name][()])]


def as_text(value: Any) -> str:
    """Return a word of the file."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def read_sleap(file: h5py.File, limit: int) -> tuple[Facts, Array, Array]:
    """Return facts, positions (frame, point, 3) and scores of a file of SLEAP.

    `tracks` is (track, space, node, frame); sleap-anipose writes it as (frame, track,
    node, space).
    """
    tracks = read_array(file, "tracks", limit)
    nodes = read_names(file, "node_names", limit)
    if tracks.ndim != 4:
        refuse("tracks with 4 dimensions", f"shape {tracks.shape}")
    if tracks.shape[1] == 3 and (not nodes or tracks.shape[2] == len(nodes)):
        order = (3, 0, 2, 1)
    elif tracks.shape[3] == 3:
        order = (0, 1, 2, 3)
    else:
        refuse("keypoints with x, y and z", f"tracks of shape {tracks.shape}")
    positions = tracks.transpose(order)
    scores = np.full(positions.shape[:3], np.nan)
    if "point_scores" in file:
        stored = read_array(file, "point_scores", limit)
        if stored.ndim == 3 and order[0] == 3:
            stored = stored.transpose(2, 0, 1)
        if stored.shape != scores.shape:
            refuse(f"point_scores of shape {scores.shape}", f"{stored.shape}")
        scores = stored
    individuals = read_names(file, "track_names", limit)
    return arrange(positions, scores, nodes, individuals, {})


def read_movement(file: h5py.File, limit: int) -> tuple[Facts, Array, Array]:
    """Return facts, positions (frame, point, 3) and confidences of a netCDF file."""
    axes = ("time", "individual", "keypoint", "space")
    positions = by_axis(file, "position", axes, limit)
    scores = np.full(positions.shape[:3], np.nan)
    if "confidence" in file:
        scores = by_axis(file, "confidence", axes[:3], limit)
    if scores.shape != positions.shape[:3] or positions.shape[3] != 3:
        found = f"position {positions.shape}, confidence {scores.shape}"
        refuse("position with x, y and z, and its confidence", found)
    facts: Facts = {}
    for key in ("fps", "space_unit", "up", "time_unit"):
        if key in file.attrs:
            facts[key] = as_text(np.ravel(file.attrs[key])[0])
    if "time" in file:
        facts["times"] = read_array(file, "time", limit).ravel().tolist()[:2]
    keypoints, individuals = (
        read_names(file, name, limit) or read_names(file, f"{name}s", limit)
        for name in ("keypoint", "individual")
    )
    return arrange(positions, scores, keypoints, individuals, facts)


def by_axis(file: h5py.File, name: str, axes: Sequence[str], limit: int) -> Array:
    """Return a dataset with its axes in this order, by their names."""
    values = read_array(file, name, limit)
    scales = [dim[0].name.strip("/") if len(dim) else "" for dim in file[name].dims]
    found = [scale.removesuffix("s") for scale in scales]
    if sorted(found) != sorted(axes):
        refuse(f"{name} with the dimensions {', '.join(axes)}", scales)
    return values.transpose([found.index(axis) for axis in axes])


def arrange(
    positions: Array,
    scores: Array,
    keypoints: list[str],
    individuals: list[str],
    facts: Facts,
) -> tuple[Facts, Array, Array]:
    """Return facts, positions and scores with one column for each point."""
    n_frames, n_individuals, n_keypoints = scores.shape
    keypoints = (keypoints + [""] * n_keypoints)[:n_keypoints]
    if n_individuals == 1:
        individuals = [""]
    else:
        numbered = [f"animal{i + 1}" for i in range(n_individuals)]
        individuals = (individuals + numbered[len(individuals) :])[:n_individuals]
    facts["names"] = [f"{i}:{k}" if i else k for i in individuals for k in keypoints]
    columns = n_individuals * n_keypoints
    return (
        facts,
        positions.reshape(n_frames, columns, 3),
        scores.reshape(n_frames, columns),
    )
