"""Options of the methods that solve poses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from marey.motion import Motion
from marey.options import Options, choice, number

MAX_RMS_RESIDUAL_M = 0.05
"""Largest weighted root mean square residual of a frame that fits, in metres. Beyond
it, the frame is solved again from scratch and reported as lost. Higher accepts worse
poses. Chosen by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseOptions(Options):
    """Options of all methods that fit poses to markers and sensors."""

    marker_sd: float = number(2e-3, above=0.0)
    """Standard deviation of a marker's position along each axis, in metres; above 0."""

    sensor_sd: float = number(3e-3, above=0.0)
    """Standard deviation of a sensor's position along each axis, in metres; above 0."""

    rotation_sd: float = number(0.01, above=0.0)
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

    reference_sd: float = number(0.5, above=0.0, infinite=True)
    """Standard deviation of joints from the reference, in radians; above 0. Infinite
    uses the reference as a start only."""

    def __post_init__(self) -> None:
        # Not super(): a class with slots is made twice, and the first is forgotten.
        Options.__post_init__(self)
        has_reference = self.reference is not None
        self.check("keys", "a reference", good=has_reference or not self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussNewtonOptions(PoseOptions):
    """Options of `gauss_newton`."""

    outlier: float = number(6.0, low=0.0)
    """Scale of the Geman-McClure loss, in standard deviations: larger residuals lose
    their weight. 0 for least squares."""

    adapt: bool = True
    """Whether the scale of a marker is estimated from its residuals, where these are
    larger than its standard deviation."""

    drift: float = number(1.0, above=0.0)
    """Standard deviation of an unseen joint from its predicted rotation after one
    second, in radians, and of the root in metres; the variance grows with time. Above
    0."""

    smooth: float = number(0.0, low=0.0)
    """Standard deviation of the joints' angular acceleration, in rad/s^2, for smooth
    paths over the whole take; 0 solves every frame on its own."""

    tolerance: float = number(1e-2, low=0.0)
    """Relative decrease of the cost below which a step is the last."""

    steps: int = number(30, low=1)
    """Largest number of steps per frame; 1 or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BfgsOptions(PoseOptions):
    """Options of `bfgs`."""

    rotation: str = choice("quaternion", "euler")
    """Unknowns of a ball joint. "quaternion": rotation vectors from the quaternion of
    the last frame, which have no singularity; "euler": XYZ Euler angles, as in the
    paper."""

    limit_sd: float = number(0.01, above=0.0)
    """Standard deviation of the penalty for angles beyond their limits, in radians;
    above 0. Lower keeps limits more strictly."""

    tolerance: float = number(1e-14, low=0.0)
    """Predicted decrease of the fitness, in squared standard deviations, below half of
    which a step is the last."""

    steps: int = number(500, low=1)
    """Largest number of steps per frame; 1 or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackOptions(Options):
    """Options of `playback`: there are none."""
