"""Recordings of the experiments: real ones on disk, and people in magnetic sensors."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from marey import synth
from marey.motion import Motion
from marey.skeleton import Skeleton
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
    return next((f / path for f in _data_folders() if (f / path).exists()), None)


def _data_folders() -> Iterator[Path]:
    listed = os.environ.get(DATA_VARIABLE, "").split(os.pathsep)
    return (Path(folder) for folder in listed if folder)


def record_sensors(
    figure: Figure, motion: str, *, seconds: float, rate: float, seed: int, **noise: Any
) -> Recording:
    """Return a generated performance in 6-DoF sensors, one on every body.

    Args:
        figure: The performer.
        motion: A key of `marey.synth.MOTIONS`.
        seconds: Length of the performance.
        rate: Frames per second.
        seed: Draws the performance, the positions of the sensors and the noise.
        noise: Options of `marey.synth.Corruption`.
    """
    return figure.record(
        motion,
        sensors=True,
        markers="none",
        seconds=seconds,
        rate=rate,
        seed=seed,
        **noise,
    )


def capture_sensors(
    figure: Figure, motion: Motion, *, seed: int, **noise: Any
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


def skeleton_with_sensors(take: Recording) -> Skeleton:
    """Return the true skeleton of a recording with its sensors where they are."""
    truth = take.truth
    return replace(
        truth.skeleton,
        sensor_names=take.sensor_names,
        sensor_joint=truth.sensor_joint,
        T_joint_sensor=truth.T_body_sensor,
    )
