"""What a recording shows, before anything is solved."""

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from marey.anatomy.names import without_subject
from marey.errors import FormatError, reason
from marey.io import read
from marey.io.file import hash_file
from marey.numerics import Float, Int
from marey.numerics.robust import mean_where
from marey.numerics.thresholds import SAMPLE_FRAMES
from marey.take import Take


def describe_take(library: str, name: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hashes of a recording, how much it shows and what moves in it.

    Args:
        library: Folder of the recordings.
        name: Relative path of the recording.
        known: What an earlier run found; a file that did not change is not read again,
            unless it is read with others.

    Raises:
        FormatError: If it cannot be read.
    """
    path = Path(library) / name
    try:
        sha256 = hash_file(path)
    except OSError as error:
        expected = "a readable file"
        raise FormatError(path, expected=expected, found=reason(error)) from None
    if known.get("inputs") == {name: sha256}:
        return dict(known)
    take = read(path)
    seen = int(take.seen.sum()) + int(take.sensor_seen.sum())
    return {
        "inputs": inputs_of(take, library),
        "positions": seen,
        "labelled": is_labelled(take),
        "spread": measure_spread(take),
    }


def is_labelled(take: Take) -> bool:
    """Return whether markers have names, and not numbers only ("M001", "*12").

    A take without markers, of sensors, counts as labelled.
    """
    stems = Counter(label.rstrip("0123456789") for label in take.labels)
    return not stems or 2 * max(stems.values()) <= len(take.labels)


def inputs_of(take: Take, library: str) -> dict[str, str]:
    """Return the hash of every file that a take was read from, by relative path."""
    hashes = {take.source.path: take.source.sha256, **take.source.others}
    paths = {path: Path(os.path.relpath(path, library)) for path in hashes}
    return {paths[path].as_posix(): sha256 for path, sha256 in hashes.items()}


def read_unchanged(library: str, name: str, inputs: Mapping[str, str]) -> Take:
    """Return a recording as it was when the work was planned.

    Args:
        library: Folder of the recordings.
        name: Relative path of the recording.
        inputs: Hashes of its files then, and perhaps of others.

    Raises:
        FormatError: If it cannot be read, or changed meanwhile.
    """
    path = Path(library) / name
    take = read(path)
    if not inputs_of(take, library).items() <= inputs.items():
        raise FormatError(
            path, expected="the file that was found", found="one that has changed since"
        )
    return take


def measure_spread(take: Take) -> dict[str, float]:
    """Return by how much each marker and sensor moves against the others, in mm.

    It is the root mean square, over the others, of the standard deviation of their
    distance: 0 on a figure that keeps its pose.
    """
    frames = sample_frames(take)
    spread = _distance_spread(take.positions[frames])
    names = (*map(without_subject, take.labels), *take.sensor_names)
    return {
        name: round(1e3 * value, 1)
        for name, value in zip(names, spread.tolist(), strict=True)
    }


def sample_frames(take: Take) -> Int[np.ndarray, " frame"]:
    """Return evenly spaced frames of a take, first and last among them."""
    frames = np.linspace(0, take.n_frames - 1, SAMPLE_FRAMES)
    return np.unique(frames.astype(np.int64))


def _distance_spread(
    points: Float[np.ndarray, "frame item 3"],
) -> Float[np.ndarray, " item"]:
    spread = np.zeros(points.shape[1])
    for i in range(points.shape[1]):
        distance = np.linalg.norm(points - points[:, i : i + 1], axis=-1)
        known = np.isfinite(distance)
        mean = mean_where(distance, known, default=0.0)
        square = mean_where((distance - mean) ** 2, known, default=0.0)
        spread[i] = np.sqrt(square.mean())
    return spread
