"""Measures that several experiments report: errors, accelerations and run times."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from jaxtyping import Float

from marey.motion import Motion
from marey.synth import Recording

Array = np.ndarray

Cells = tuple[str | float, ...]
"""One row of a table; an empty string where there is nothing to report."""


@dataclass(frozen=True, slots=True, eq=False)
class TimedMotion:
    """A motion that a pose solver found, and what the search cost."""

    motion: Motion
    seconds: float
    steps: int | float = float("nan")
    """Iterations over all frames or per frame, as the caller counts; NaN = unknown."""


def joint_distances(one: Motion, other: Motion) -> Float[Array, "frame joint"]:
    """Return the distance between equal joints of two motions, in metres."""
    difference = (one.T_world_joint() - other.T_world_joint())[..., :3, 3]
    return np.asarray(np.linalg.norm(difference, axis=-1))


def joint_errors(motion: Motion, take: Recording) -> Float[Array, "frame joint"]:
    """Return the distance of every joint from its true position, in metres."""
    return joint_distances(motion, take.truth.motion)


def rms_acceleration(motion: Motion) -> float:
    """Return the root mean square acceleration of all joints, in m/s^2.

    Accelerations are second differences, which noise makes large.
    """
    positions = motion.T_world_joint()[..., :3, 3]
    acceleration = np.diff(positions, n=2, axis=0) * motion.rate**2
    return float(np.sqrt(np.mean(np.sum(acceleration**2, axis=-1))))


def rms(values: Any) -> float:
    """Return the root mean square of all values; NaN are left out."""
    return float(np.sqrt(np.nanmean(np.square(values))))


def round_to_digits(value: float, digits: int = 3) -> float:
    """Return a number rounded to some significant digits."""
    return float(f"{value:.{digits}g}")


def time_calls(call: Callable[[], object], repeats: int) -> Float[Array, " run"]:
    """Return the seconds of each of several calls."""
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        call()
        seconds.append(perf_counter() - start)
    return np.array(seconds)
