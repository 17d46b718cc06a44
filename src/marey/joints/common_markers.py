"""Several takes with the same markers and the same body axes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.bodies import Bodies, MarkerName
from marey.joints.stacked_takes import points_in_columns
from marey.take import Take

Array = np.ndarray


def with_common_markers(takes: Sequence[Bodies]) -> tuple[Bodies, ...]:
    """Return the takes with the markers of all takes, and the axes of the first.

    A marker that a take lacks is NaN there. It belongs to the body, and has the noise,
    that it has in the first take which contains it.
    """
    takes = (takes[0], *(take.align_axes(takes[0]) for take in takes[1:]))
    if all(take.marker_names == takes[0].marker_names for take in takes):
        return takes
    names = dict.fromkeys(name for take in takes for name in take.marker_names)
    column = {name: i for i, name in enumerate(names)}
    shared = np.zeros((len(column), len(takes[0].names)), dtype=bool)
    body = np.full(len(column), -1)
    noise = np.full(len(column), np.nan)
    # The first take comes last, and so overwrites the others.
    for take in reversed(takes):
        rows = np.array([column[name] for name in take.marker_names], dtype=int)
        shared[rows] |= take.shared
        has_body = take.marker_body >= 0
        body[rows[has_body]] = take.marker_body[has_body]
        if len(take.marker_noise):
            noise[rows] = take.marker_noise
    marker_noise = noise if np.isfinite(noise).any() else np.zeros(0)
    return tuple(
        replace(
            take,
            take=_with_columns(take, column),
            shared=shared,
            marker_body=body,
            marker_noise=marker_noise,
            marker_offset=_in_columns(take.marker_offset, take, column, np.nan),
            marker_confidence=_in_columns(take.marker_confidence, take, column, 0.0),
        )
        for take in takes
    )


def _with_columns(bodies: Bodies, column: dict[MarkerName, int]) -> Take:
    """Return the recording with its markers in given columns."""
    return Take(
        rate=bodies.take.rate,
        points=points_in_columns(bodies, column),
        labels=tuple(label for label, _ in column),
        T_world_sensor=bodies.take.T_world_sensor,
        sensor_names=bodies.take.sensor_names,
    )


def _in_columns(
    values: Array, bodies: Bodies, column: dict[MarkerName, int], missing: float
) -> Array:
    """Return one value per marker in given columns, or `missing`."""
    rows = np.full((len(column), *values.shape[1:]), missing)
    rows[[column[name] for name in bodies.marker_names]] = values
    return rows
