"""What can be chosen about fitting poses."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from marey.errors import OptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussNewtonOptions:
    """How poses are fitted."""

    marker_sd: float = 2e-3
    """Standard deviation of a marker's position along each axis, in metres; above 0."""

    sensor_sd: float = 3e-3
    """The same of a sensor's position."""

    turn_sd: float = 0.01
    """Standard deviation of a sensor's rotation about each axis, in radians."""

    weights: Mapping[str, float] = field(default_factory=dict)
    """How much markers and sensors count, by label; 1 when not named, 0 leaves out."""

    outlier: float = 6.0
    """Residuals beyond so many standard deviations hardly count (Geman-McClure, which
    redescends); 0 for plain least squares."""

    adapt: bool = True
    """Whether outliers are told by how far each marker usually strays, where that is
    more than its standard deviation."""

    limits: bool = True
    """Whether joints keep to the skeleton's limits."""

    drift: float = 1.0
    """How far a joint that is not seen may come from where it was expected in a
    second, in radians (its variance grows with time); the root in metres. Above 0."""

    smooth: float = 0.0
    """Standard deviation of the joints' angular acceleration, in rad/s^2, for poses
    drawn towards smooth paths over the whole take; 0: every frame on its own."""

    tolerance: float = 1e-4
    """A step that promises to lower the cost by less than this share is the last."""

    steps: int = 30
    """Most steps per frame; 1 or more."""

    def __post_init__(self) -> None:
        for name in ("marker_sd", "sensor_sd", "turn_sd", "drift"):
            self._check(name, "a number above 0", 0.0 < getattr(self, name) < np.inf)
        for name in ("outlier", "smooth", "tolerance"):
            self._check(name, "0 or more", 0.0 <= getattr(self, name) < np.inf)
        self._check("steps", "1 or more", self.steps >= 1)

    def _check(self, name: str, needed: str, good: bool) -> None:
        if not good:
            raise OptionError(name, found=getattr(self, name), needed=needed)


def options_of(given: Mapping[str, Any]) -> GaussNewtonOptions:
    """Return options by name.

    Raises:
        OptionError: If one is not known or out of range.
    """
    known = [f.name for f in fields(GaussNewtonOptions)]
    for name, value in given.items():
        if name not in known:
            raise OptionError(name, found=value, needed=f"one of {', '.join(known)}")
    return GaussNewtonOptions(**given)
