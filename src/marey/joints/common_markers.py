"""Takes with the same markers and body axes, whatever each of them shows."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.bodies import Bodies, MarkerName
from marey.joints.stacked_takes import spread_out
from marey.take import Take

Array = np.ndarray


def levelled(takes: Sequence[Bodies]) -> tuple[Bodies, ...]:
    """Return the takes with all markers of all of them, and the axes of the first.

    A marker that a take lacks is NaN there, on the body where another has it, with the
    noise it has there.
    """
    takes = (takes[0], *(take.align_axes(takes[0]) for take in takes[1:]))
    names = [take.marker_names for take in takes]
    if all(own == names[0] for own in names):
        return tuple(takes)
    column = {
        name: i for i, name in enumerate(dict.fromkeys(n for own in names for n in own))
    }
    shared = np.zeros((len(column), len(takes[0].names)), dtype=bool)
    body = np.full(len(column), -1)
    noise = np.full(len(column), np.nan)
    for take, own in zip(reversed(takes), reversed(names), strict=True):
        rows = [column[name] for name in own]
        shared[rows] |= take.shared
        worn = take.marker_body >= 0
        body[np.array(rows, dtype=int)[worn]] = take.marker_body[worn]
        if len(take.marker_noise):
            noise[rows] = take.marker_noise
    told = noise if np.isfinite(noise).any() else np.zeros(0)
    return tuple(
        replace(
            take,
            take=_widened(take, column),
            shared=shared,
            marker_body=body,
            marker_noise=told,
            marker_offset=_in_columns(take.marker_offset, take, column, np.nan),
            marker_confidence=_in_columns(take.marker_confidence, take, column, 0.0),
        )
        for take in takes
    )


def _widened(take: Bodies, column: dict[MarkerName, int]) -> Take:
    return Take(
        rate=take.take.rate,
        points=spread_out(take, column),
        labels=tuple(label for label, _ in column),
        T_world_sensor=take.take.T_world_sensor,
        sensor_names=take.take.sensor_names,
    )


def _in_columns(
    values: Array, take: Bodies, column: dict[MarkerName, int], other: float
) -> Array:
    """Return what is known of a take's markers in given rows."""
    rows = np.full((len(column), *values.shape[1:]), other)
    rows[[column[name] for name in take.marker_names]] = values
    return rows
