"""Options of the methods that solve poses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from marey.motion import GroundPlane, Motion
from marey.numerics.thresholds import MOTION_TIME_S
from marey.options import Options, choice, number
from marey.pose.contact.holds import Hold

UNSEEN_S = MOTION_TIME_S
"""Time without targets, in seconds: beyond it a pose is found from scratch, and a joint
is reported; what reappears moves to its measured rotation within it."""

ANGLE_SD = 0.01
"""Standard deviation of a measured angle, in radians. Higher lets angles deviate more.
Chosen by hand."""

MAX_ITERATIONS_GAUSS_NEWTON, MAX_ITERATIONS_BFGS, MAX_ITERATIONS_PHYSICS = 30, 500, 4000

MAX_RMS_RESIDUAL_M = 0.05
"""Largest weighted root mean square residual of a frame that fits, in metres. Beyond
it, the frame is solved again from scratch and reported as lost. Higher accepts worse
poses. Chosen by hand."""

MIN_PRIOR = 1e-9
"""Information of a prior that is to have no weight, in 1 / rad^2: the kernel divides by
it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseOptions(Options):
    """Options of all methods that fit poses to markers and sensors."""

    marker_sd: float = number(2e-3, above=0.0)
    """Standard deviation of a marker's position along each axis, in metres; above 0.
    Higher follows markers less. Chosen by hand."""

    sensor_sd: float = number(3e-3, above=0.0)
    """Standard deviation of a sensor's position along each axis, in metres; above 0.
    Higher follows sensors less. Chosen by hand."""

    rotation_sd: float = number(ANGLE_SD, above=0.0)
    """Standard deviation of a sensor's rotation about each axis, in rad; above 0."""

    weights: Mapping[str, float] = field(default_factory=dict)
    """Factors of the weights of markers and sensors, by label, or by joint for all
    that are attached to its bone. 1 if not named, 0 leaves out. A label's own factor
    comes before that of its joint."""

    limits: bool = True
    """Whether the limits of the skeleton's joints apply."""

    both_ways: bool = True
    """Whether the take is solved in both directions of time, and every limb keeps to
    the better solution. Else every frame starts where the one before it ended,
    as in a stream."""

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
    their weight. Higher lets gross errors draw the pose; 0 for least squares. Chosen by
    hand."""

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
    """Relative decrease of the cost below which a step is the last. Higher stops
    earlier. Chosen by hand."""

    steps: int = number(MAX_ITERATIONS_GAUSS_NEWTON, low=1)
    """Largest number of steps per frame; 1 or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BfgsOptions(PoseOptions):
    """Options of `bfgs`."""

    rotation: str = choice("quaternion", "euler")
    """Unknowns of a ball joint. "quaternion": rotation vectors from the quaternion of
    the last frame, which have no singularity; "euler": XYZ Euler angles, as in the
    paper."""

    limit_sd: float = number(ANGLE_SD, above=0.0)
    """Standard deviation of the penalty for angles beyond their limits, in radians;
    above 0. Lower keeps limits more strictly."""

    tolerance: float = number(1e-14, low=0.0)
    """Predicted decrease of the fitness, in squared standard deviations, below half of
    which a step is the last."""

    steps: int = number(MAX_ITERATIONS_BFGS, low=1)
    """Largest number of steps per frame; 1 or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackOptions(Options):
    """Options of `playback`: there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicsOptions(PoseOptions):
    """Springs, torques, ground and solver of poses by physics.

    A `reference` is the posture that torques lead to, instead of arms at the side; its
    weight follows from `torque`, not from `reference_sd`.
    """

    settle: str = choice("direct", "simulation")
    """How the rest pose is found: "direct" minimises the energy; "simulation" runs the
    dynamics until they come to rest, which needs MuJoCo."""

    stiffness: float = number(2000.0, above=0.0)
    """Stiffness of a marker's spring, in N/m; above 0. The stiffness of a sensor's
    spring is (marker_sd / sensor_sd)^2 times that. Higher follows markers more, against
    torques and gravity. Chosen by hand."""

    damping: float = number(30.0, low=0.0)
    """Damping rate of every body, in 1/s: force against its velocity, by its mass.
    Higher comes to rest more slowly, without swinging. Chosen by hand."""

    torque: float = number(20.0, low=0.0)
    """Stiffness of the torque to the neutral posture, by the inertia that the joint
    carries, in 1/s^2 (N m per rad and kg m^2); 0 or more. Higher draws unseen joints
    nearer to it. Chosen by hand."""

    torque_damping: float = number(0.2, low=0.0)
    """Damping rate of joints, by the same inertia, in 1/s; 0 or more. Higher comes to
    rest more slowly. Chosen by hand."""

    pull: str = choice("open", "all")
    """Which joints the neutral posture pulls: "open": those of which markers do not
    determine every rotation; "all", which draws every joint a little off its
    markers."""

    cutoff: float = number(0.25, above=0.0, infinite=True)
    """Length in metres beyond which a spring is an outlier and off, measured at the
    pose of a robust fit; infinite for never. Above 0. Higher keeps more gross errors.
    Chosen by hand."""

    shared_within: float = number(0.0, low=0.0)
    """Distance from a joint in metres within which markers pull both bodies that meet
    there; 0 for none."""

    gravity: float = number(0.0, low=0.0)
    """Acceleration of gravity, downwards along z, in m/s^2; 0 or more."""

    holds: tuple[Hold, ...] = ()
    """Points held to the world or to another bone."""

    ground: GroundPlane | str = "none"
    """The ground that pushes the soles up: "none"; "found": the ground of the foot
    plants in the motion; or a plane that is known."""

    friction: float = number(np.inf, low=0.0, infinite=True)
    """Coefficient of friction of planted soles, 0 or more. Infinite: plants keep to
    their anchors. A finite coefficient above 0 makes a pose depend on the frames before
    it, and needs a simulation."""

    rest_speed: float = number(2e-5, above=0.0)
    """Speed in m/s below which the simulation is at rest; above 0. Higher stops
    earlier. Chosen by hand."""

    steps: int = number(MAX_ITERATIONS_PHYSICS, low=1)
    """Most steps per frame; 1 or more."""

    def __post_init__(self) -> None:
        # Not super(): a class with slots is made twice, and the first is forgotten.
        PoseOptions.__post_init__(self)
        is_plane = isinstance(self.ground, GroundPlane)
        is_known = is_plane or self.ground in ("none", "found")
        self.check("ground", "none, found or a GroundPlane", good=is_known)
        needed = "0 or infinite, or a simulation and 0 or more"
        is_static = self.friction in (0.0, np.inf)
        self.check("friction", needed, good=is_static or self.settle == "simulation")
