"""What can be chosen about poses by physics."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from marey.errors import OptionError
from marey.pose.contact.ground import Floor
from marey.pose.options import PoseOptions

SETTLES = ("direct", "simulation")
PULLS = ("open", "all")
GROUNDS = ("none", "found")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Hold:
    """A point of the figure that is held for a while: a hand on a rail, or on a hip."""

    joint: str
    """Name of the joint whose bone is held."""

    point: Float[np.ndarray, " 3"] = field(default_factory=lambda: np.zeros(3))
    """The place on it, in the joint's frame, in metres."""

    to: Float[np.ndarray, "*frame 3"]
    """Where it is held: in the world, or in the frame of `other`, in metres; in the
    world also by frame, for what moves."""

    other: str = ""
    """Name of the joint whose bone holds it; none when it is held by the world."""

    start: float = -np.inf
    """Second at which the hold begins, on the take's clock."""

    end: float = np.inf
    """Second at which it ends."""

    strength: float = 10.0
    """Stiffness of the spring that holds, as a multiple of a marker's; above 0."""

    def __post_init__(self) -> None:
        if not 0.0 < self.strength < np.inf:
            raise OptionError(
                "strength", found=self.strength, needed="a number above 0"
            )
        fixed = self.to.ndim == 1
        good = np.isfinite(self.point).all() and (
            np.isfinite(self.to).all() or not fixed
        )
        if not good or self.to.ndim > 2 or (self.other and not fixed):
            raise OptionError(
                f"hold of {self.joint}",
                found=[self.point.tolist(), np.round(self.to, 3).tolist()][:2],
                needed="finite numbers, and one place in the frame of another bone",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicsOptions(PoseOptions):
    """How a figure is pulled into its poses.

    A `reference` is the posture that torques lead to, instead of arms at the side;
    what it is worth follows from `torque`, not from `reference_sd`.
    """

    settle: str = "direct"
    """"direct": the posture at rest, found as the least energy; "simulation": found by
    running the simulation until it rests, which needs MuJoCo."""

    stiffness: float = 2000.0
    """Of a marker's spring, in N/m; above 0. Those of sensors follow from the
    variances: a place is held by (marker_sd / sensor_sd)^2 of it."""

    damping: float = 30.0
    """What slows every body down, in 1/s: a force against its speed, by its mass."""

    torque: float = 20.0
    """What turns joints to the neutral posture, in 1/s^2, by the inertia of all that
    the joint carries (N m per rad and kg m^2); 0 or more."""

    torque_damping: float = 0.2
    """What slows joints down, in 1/s, by the same inertia; 0 or more."""

    pull: str = "open"
    """Which joints the neutral posture pulls: "open": those of which markers leave
    some turn open; "all", which draws every joint a little off its markers."""

    cutoff: float = 0.25
    """A spring longer than this, in metres, is off; measured where an outlier-proof
    fit has the figure. Infinite for never. Above 0."""

    shared_within: float = 0.0
    """Markers nearer than this to a joint, in metres, pull both bodies that meet
    there; 0 for none."""

    gravity: float = 0.0
    """In m/s^2, downwards along z; 0 or more."""

    holds: tuple[Hold, ...] = ()
    """Points held to the world or to another bone."""

    ground: Floor | str = "none"
    """What bears the ends of bones from below: "none"; "found": the ground of the
    plants that are found in the motion; or a floor that is known."""

    friction: float = np.inf
    """What holds a planted sole along the ground, by what presses it down: 0 or more;
    infinite: plants keep to their anchors. Anything between depends on the frames
    before, and needs a simulation."""

    rest_speed: float = 2e-5
    """The simulation rests when nothing is faster than this, in m/s; above 0."""

    steps: int = 4000
    """Most steps per frame; 1 or more."""

    def __post_init__(self) -> None:
        # Not super(): a class with slots is made twice, and the first is forgotten.
        PoseOptions.__post_init__(self)
        self._check("settle", " or ".join(SETTLES), self.settle in SETTLES)
        self._check("pull", " or ".join(PULLS), self.pull in PULLS)
        self._check("cutoff", "above 0", self.cutoff > 0.0)
        known = isinstance(self.ground, str) and self.ground in GROUNDS
        known = known or isinstance(self.ground, Floor)
        self._check("ground", "none, found or a Floor", known)
        needed = "0 or infinite, or a simulation and 0 or more"
        timeless = self.friction in (0.0, np.inf)
        good = self.friction >= 0.0 and (timeless or self.settle == "simulation")
        self._check("friction", needed, good)

    def _positive(self) -> tuple[str, ...]:
        return ("marker_sd", "sensor_sd", "turn_sd", "stiffness", "rest_speed")

    def _not_negative(self) -> tuple[str, ...]:
        return ("damping", "torque", "torque_damping", "shared_within", "gravity")
