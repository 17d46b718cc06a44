"""One frame of a stream: markers and sensors at one moment, with its own clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from math import nan

import numpy as np

from marey.errors import DataError
from marey.numerics import Array, Float, empty_array
from marey.take import MAX_COORDINATE_M

MAX_NAMES = 1024
"""Markers, and as many sensors, of one sender; further names are left out. Higher takes
more memory when a sender makes up names, or sees many reflections."""

UNLABELLED = "unlabelled"
"""Begin of the label of a point that the sender does not know: "unlabelled3"."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Frame:
    """Markers and sensors at one moment, in metres and +Z up.

    A position or pose of which any component is not finite, or beyond
    `marey.take.MAX_COORDINATE_M`, counts as missing and is NaN in all components.
    """

    number: int
    """Number that the sender counts frames by; lost frames leave gaps in it."""

    time: float = nan
    """Seconds on the clock of the sender; NaN if it sends no time."""

    arrival: float = nan
    """Seconds on the monotonic clock of this machine when the packet came; NaN if it
    did not come by a stream."""

    points: Float[Array, "marker 3"] = empty_array(0, 3)
    """Positions of the markers in metres; NaN where a marker was not seen."""

    labels: tuple[str, ...] = ()
    """One label or id per marker, "JOE:RTHI" with the subject."""

    T_world_sensor: Float[Array, "sensor 4 4"] = empty_array(0, 4, 4)
    """Pose of each sensor in metres; NaN where it was not seen."""

    sensor_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, names, values in (
            ("points", self.labels, self.points),
            ("T_world_sensor", self.sensor_names, self.T_world_sensor),
        ):
            if len(names) != len(values):
                found = f"{len(values)} with {len(names)} names"
                raise DataError(f"frame.{name}", found=found, needed="one name each")
            object.__setattr__(self, name, _mask_missing(values))

    def rename(self, labels: Mapping[str, str]) -> "Frame":
        """Return the frame with other labels of some markers.

        Markers that had one of these labels before are left out.
        """
        new = set(labels.values())
        others = self.select([name not in new for name in self.labels])
        names = tuple(labels.get(name, name) for name in others.labels)
        return replace(others, labels=names)

    def leave_out_unlabelled(self) -> "Frame":
        """Return the frame without the points that the sender does not know."""
        return self.select([not x.startswith(UNLABELLED) for x in self.labels])

    def select(self, wanted: Sequence[bool]) -> "Frame":
        """Return the frame with the markers that are wanted."""
        names = tuple(compress(self.labels, wanted))
        return replace(self, points=self.points[list(wanted)], labels=names)

    @property
    def n_seen(self) -> int:
        """Number of markers and sensors that were seen."""
        markers = np.isfinite(self.points[:, 0]).sum()
        return int(markers + np.isfinite(self.T_world_sensor[:, 0, 0]).sum())


def _mask_missing(values: Array) -> Array:
    """Return values with NaN in all components where one is no measurement."""
    if not values.size or np.abs(values).max() <= MAX_COORDINATE_M:  # no NaN either
        return values
    axes = tuple(range(1, values.ndim))
    known = (np.abs(values) <= MAX_COORDINATE_M).all(axis=axes)  # NaN is not <=
    masked = values.copy()
    masked[~known] = np.nan
    return masked
