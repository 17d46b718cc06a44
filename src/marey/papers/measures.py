"""Measures that several experiments report: errors, accelerations and run times."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np

import marey
from marey.numerics import Array, Float
from marey.synth import Recording

Answer = TypeVar("Answer")


class TimedMotion(NamedTuple):
    """A motion that a pose solver found, and what the search cost."""

    motion: marey.Motion
    seconds: float
    steps: int | float = float("nan")
    """Iterations over all frames or per frame, as the caller counts; NaN = unknown."""


def timed(
    call: Callable[..., Answer], *arguments: Any, **options: Any
) -> tuple[Answer, float]:
    """Return what a call returns, and its seconds."""
    start = perf_counter()
    answer = call(*arguments, **options)
    return answer, perf_counter() - start


def time_calls(call: Callable[[], object], repeats: int) -> Float[Array, " run"]:
    """Return the seconds of each of several calls."""
    return np.array([timed(call)[1] for _ in range(repeats)])


def joint_distances(
    one: marey.Motion, other: marey.Motion
) -> Float[Array, "frame joint"]:
    """Return the distance between equal joints of two motions, in metres."""
    difference = (one.T_world_joint() - other.T_world_joint())[..., :3, 3]
    return np.asarray(np.linalg.norm(difference, axis=-1))


def joint_errors(motion: marey.Motion, take: Recording) -> Float[Array, "frame joint"]:
    """Return the distance of every joint from its true position, in metres."""
    return joint_distances(motion, take.truth.motion)


def rms_acceleration(motion: marey.Motion) -> float:
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


def rounded(*values: float, digits: int = 3) -> tuple[float, ...]:
    """Return numbers rounded to some significant digits."""
    return tuple(round_to_digits(value, digits) for value in values)
