"""Options of the methods that solve poses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from marey.errors import OptionError
from marey.motion import Motion

MAX_RMS_RESIDUAL_M = 0.05
"""Largest weighted root mean square residual of a frame that fits, in metres. Beyond
it, the frame is solved again from scratch and reported as lost. Higher accepts worse
poses. Chosen by hand."""

NUMBER_TYPES: Mapping[Any, tuple[type, str]] = {
    float: (Real, "a number"),
    int: (Integral, "a whole number"),
}
"""Types that a field of numbers accepts, NumPy's included, and their description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseOptions:
    """Options of all methods that fit poses to markers and sensors."""

    marker_sd: float = 2e-3
    """Standard deviation of a marker's position along each axis, in metres; above 0."""

    sensor_sd: float = 3e-3
    """Standard deviation of a sensor's position along each axis, in metres; above 0."""

    rotation_sd: float = 0.01
    """Standard deviation of a sensor's rotation about each axis, in rad; above 0."""

    weights: Mapping[str, float] = field(default_factory=dict)
    """Factors of the weights of markers and sensors, by label, or by joint for all
    that are attached to its bone. 1 if not named, 0 leaves out. A label's own factor
    comes before that of its joint."""

    limits: bool = True
    """Whether the limits of the skeleton's joints apply."""

    reference: Motion | None = None
    """A similar motion with joints of the same names. Its rotations are the start and
    a weak prior; see `marey.pose.reference`."""

    keys: Sequence[tuple[float, float]] = ()
    """Pairs of corresponding times (in the reference, in the take), in seconds on the
    clock of each. Without pairs, dynamic time warping finds them."""

    reference_sd: float = 0.5
    """Standard deviation of joints from the reference, in radians; above 0. Infinite
    uses the reference as a start only."""

    def __post_init__(self) -> None:
        for one in fields(self):
            kind, needed = NUMBER_TYPES.get(one.type, (object, ""))
            self._check(one.name, needed, isinstance(getattr(self, one.name), kind))
        for name in self._positive():
            self._check(name, "a number above 0", 0.0 < getattr(self, name) < np.inf)
        for name in self._not_negative():
            self._check(name, "0 or more", 0.0 <= getattr(self, name) < np.inf)
        self._check("reference_sd", "above 0", self.reference_sd > 0.0)
        self._check("keys", "a reference", self.reference is not None or not self.keys)
        if hasattr(self, "steps"):
            self._check("steps", "1 or more", self.steps >= 1)

    def _positive(self) -> tuple[str, ...]:
        return ("marker_sd", "sensor_sd", "rotation_sd")

    def _not_negative(self) -> tuple[str, ...]:
        return ("tolerance",)

    def _check(self, name: str, needed: str, good: bool) -> None:
        if not good:
            raise OptionError(name, found=getattr(self, name), needed=needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussNewtonOptions(PoseOptions):
    """Options of `gauss_newton`."""

    outlier: float = 6.0
    """Scale of the Geman-McClure loss, in standard deviations: larger residuals lose
    their weight. 0 for least squares."""

    adapt: bool = True
    """Whether the scale of a marker is estimated from its residuals, where these are
    larger than its standard deviation."""

    drift: float = 1.0
    """Standard deviation of an unseen joint from its predicted rotation after one
    second, in radians, and of the root in metres; the variance grows with time. Above
    0."""

    smooth: float = 0.0
    """Standard deviation of the joints' angular acceleration, in rad/s^2, for smooth
    paths over the whole take; 0 solves every frame on its own."""

    tolerance: float = 1e-2
    """Relative decrease of the cost below which a step is the last."""

    steps: int = 30
    """Largest number of steps per frame; 1 or more."""

    def _positive(self) -> tuple[str, ...]:
        return ("marker_sd", "sensor_sd", "rotation_sd", "drift")

    def _not_negative(self) -> tuple[str, ...]:
        return ("outlier", "smooth", "tolerance")


@dataclass(frozen=True, slots=True, kw_only=True)
class BfgsOptions(PoseOptions):
    """Options of `bfgs`."""

    rotation: str = "quaternion"
    """Unknowns of a ball joint. "quaternion": rotation vectors from the quaternion of
    the last frame, which have no singularity; "euler": XYZ Euler angles, as in the
    paper."""

    limit_sd: float = 0.01
    """Standard deviation of the penalty for angles beyond their limits, in radians;
    above 0. Lower keeps limits more strictly."""

    tolerance: float = 1e-14
    """Predicted decrease of the fitness, in squared standard deviations, below half of
    which a step is the last."""

    steps: int = 500
    """Largest number of steps per frame; 1 or more."""

    def __post_init__(self) -> None:
        # Not super(): a class with slots is made twice, and the first is forgotten.
        PoseOptions.__post_init__(self)
        known = ("quaternion", "euler")
        self._check("rotation", " or ".join(known), self.rotation in known)

    def _positive(self) -> tuple[str, ...]:
        return ("marker_sd", "sensor_sd", "rotation_sd", "limit_sd")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackOptions:
    """Options of `playback`: there are none."""
