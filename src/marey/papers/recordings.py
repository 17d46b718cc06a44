"""Recordings of the experiments: real ones on disk, and people in magnetic sensors."""

import os
from pathlib import Path
from typing import Any

import numpy as np

import marey
from marey import synth
from marey.synth import Figure, Recording

DATA_VARIABLE = "MAREY_DATA"
"""Environment variable that lists folders of real recordings, separated as in PATH."""

HOW_TO_GET_RECORDINGS = (
    f"Set {DATA_VARIABLE} to folders of recordings, one of which holds the recordings "
    "of the CMU graphics lab in cmu; without them the table is empty."
)


def find_recording(path: str) -> Path | None:
    """Return the first file or folder of this name below the folders of real data.

    Args:
        path: Path below a folder of `MAREY_DATA`, such as "cmu/02_01.c3d".

    Returns:
        The path in the first folder that holds it; None if no folder does.
    """
    listed = os.environ.get(DATA_VARIABLE, "").split(os.pathsep)
    paths = (Path(folder) / path for folder in listed if folder)
    return next((found for found in paths if found.exists()), None)


def record_sensors(
    figure: Figure,
    motion: str = "",
    *,
    seconds: float,
    rate: float = 60.0,
    seed: int,
    **noise: Any,
) -> Recording:
    """Return a generated performance in 6-DoF sensors, one on every body.

    Args:
        figure: The performer.
        motion: A key of `marey.synth.MOTIONS`. Default: the first of the figure.
        seconds: Length of the performance.
        rate: Frames per second.
        seed: Draws the performance, the positions of the sensors and the noise.
        noise: Options of `marey.synth.Corruption`.
    """
    performance = figure.perform(motion, seconds=seconds, rate=rate, seed=seed)
    return capture_sensors(figure, performance, seed=seed, **noise)


def capture_sensors(
    figure: Figure, motion: marey.Motion, *, seed: int, **noise: Any
) -> Recording:
    """Return a given motion as 6-DoF sensors record it, one on every body.

    Args:
        figure: The performer.
        motion: What the performer does.
        seed: Draws the positions of the sensors and the noise.
        noise: Options of `marey.synth.Corruption`.
    """
    return synth.capture(
        (figure,),
        (motion,),
        names=("",),
        markers="none",
        sensors=True,
        seed=seed,
        corruption=synth.Corruption(**noise),
    )


def true_bodies(take: Recording, n_markers: int | None = None) -> marey.Bodies:
    """Return the true bodies, each with its true markers.

    Args:
        take: A recording of one figure.
        n_markers: Number of markers that a body may use, 4 on the root; None = all.
    """
    truth = take.truth
    template = {}
    for joint in np.unique(truth.marker_joint).tolist():
        most = 4 if n_markers and joint == 0 else n_markers
        markers = np.flatnonzero(truth.marker_joint == joint)[:most]
        template[truth.skeleton.names[joint]] = [take.labels[m] for m in markers]
    return marey.segment(take, method="template", template=template)
