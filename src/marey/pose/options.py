"""What can be chosen about fitting poses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from marey.errors import OptionError
from marey.motion import Motion

Options = TypeVar("Options")

NUMBERS: Mapping[Any, tuple[type, str]] = {
    float: (Real, "a number"),
    int: (Integral, "a whole number"),
}
"""What fields of numbers may hold: those of NumPy as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseOptions:
    """What all methods that fit have in common."""

    marker_sd: float = 2e-3
    """Standard deviation of a marker's position along each axis, in metres; above 0."""

    sensor_sd: float = 3e-3
    """The same of a sensor's position."""

    turn_sd: float = 0.01
    """Standard deviation of a sensor's rotation about each axis, in radians."""

    weights: Mapping[str, float] = field(default_factory=dict)
    """How much markers and sensors count, by label, or by joint for all that sit on
    its bone; 1 when not named, 0 leaves out. Of two that fit, the label's own holds."""

    limits: bool = True
    """Whether joints keep to the skeleton's limits."""

    reference: Motion | None = None
    """A motion much like this one, of joints of the same names, whose use of its
    joints is taken as a start and a weak wish; see `marey.pose.reference`."""

    keys: Sequence[tuple[float, float]] = ()
    """Times that belong together, (in the reference, in the take), in seconds on the
    clock of each; found by comparing poses when empty."""

    reference_sd: float = 0.5
    """How far joints are expected from the reference, in radians; above 0, infinite
    to have it as a start only."""

    def __post_init__(self) -> None:
        for one in fields(self):
            kind, needed = NUMBERS.get(one.type, (object, ""))
            self._check(one.name, needed, isinstance(getattr(self, one.name), kind))
        for name in self._positive():
            self._check(name, "a number above 0", 0.0 < getattr(self, name) < np.inf)
        for name in self._not_negative():
            self._check(name, "0 or more", 0.0 <= getattr(self, name) < np.inf)
        self._check("reference_sd", "above 0", self.reference_sd > 0.0)
        self._check("keys", "a reference", self.reference is not None or not self.keys)
        steps = getattr(self, "steps", 1)
        if not steps >= 1:
            raise OptionError("steps", found=steps, needed="1 or more")

    def _positive(self) -> tuple[str, ...]:
        return ("marker_sd", "sensor_sd", "turn_sd")

    def _not_negative(self) -> tuple[str, ...]:
        return ("tolerance",)

    def _check(self, name: str, needed: str, good: bool) -> None:
        if not good:
            raise OptionError(name, found=getattr(self, name), needed=needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussNewtonOptions(PoseOptions):
    """How poses are fitted."""

    outlier: float = 6.0
    """Residuals beyond so many standard deviations hardly count (Geman-McClure, which
    redescends); 0 for plain least squares."""

    adapt: bool = True
    """Whether outliers are told by how far each marker usually strays, where that is
    more than its standard deviation."""

    drift: float = 1.0
    """How far a joint that is not seen may come from where it was expected in a
    second, in radians (its variance grows with time); the root in metres. Above 0."""

    smooth: float = 0.0
    """Standard deviation of the joints' angular acceleration, in rad/s^2, for poses
    drawn towards smooth paths over the whole take; 0: every frame on its own."""

    tolerance: float = 1e-2
    """A step that promises to lower the cost by less than this share is the last."""

    steps: int = 30
    """Most steps per frame; 1 or more."""

    def _positive(self) -> tuple[str, ...]:
        return ("marker_sd", "sensor_sd", "turn_sd", "drift")

    def _not_negative(self) -> tuple[str, ...]:
        return ("outlier", "smooth", "tolerance")


@dataclass(frozen=True, slots=True, kw_only=True)
class BfgsOptions(PoseOptions):
    """How poses are fitted by BFGS."""

    rotation: str = "quaternion"
    """The unknowns of a ball: "quaternion": turns away from that of the last frame,
    which have no singularity; "euler": XYZ Euler angles, as the paper has them."""

    limit_sd: float = 0.01
    """How far a joint goes beyond its limits where markers draw it as far as their
    standard deviation, in radians; above 0."""

    tolerance: float = 1e-14
    """A step is the last that promises to lower the fitness, in squared standard
    deviations, by less than half of this."""

    steps: int = 500
    """Most steps per frame; 1 or more."""

    def __post_init__(self) -> None:
        # Not super(): a class with slots is made twice, and the first is forgotten.
        PoseOptions.__post_init__(self)
        known = ("quaternion", "euler")
        self._check("rotation", " or ".join(known), self.rotation in known)

    def _positive(self) -> tuple[str, ...]:
        return ("marker_sd", "sensor_sd", "turn_sd", "limit_sd")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackOptions:
    """Nothing: rotations are played as they are."""


def options_of(kind: type[Options], given: Mapping[str, Any]) -> Options:
    """Return options by name.

    Raises:
        OptionError: If one is not known or out of range.
    """
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    for name, value in given.items():
        if name not in known:
            needed = f"one of {', '.join(known)}" if known else "no option at all"
            raise OptionError(name, found=value, needed=needed)
    return kind(**given)
