"""Options of poses by physics."""

from dataclasses import dataclass

import numpy as np

from marey.options import choice, number
from marey.pose.contact.ground import GroundPlane
from marey.pose.contact.holds import Hold
from marey.pose.options import PoseOptions


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
    spring is (marker_sd / sensor_sd)^2 times that."""

    damping: float = number(30.0, low=0.0)
    """Damping rate of every body, in 1/s: force against its velocity, by its mass."""

    torque: float = number(20.0, low=0.0)
    """Stiffness of the torque to the neutral posture, by the inertia that the joint
    carries, in 1/s^2 (N m per rad and kg m^2); 0 or more."""

    torque_damping: float = number(0.2, low=0.0)
    """Damping rate of joints, by the same inertia, in 1/s; 0 or more."""

    pull: str = choice("open", "all")
    """Which joints the neutral posture pulls: "open": those of which markers do not
    determine every rotation; "all", which draws every joint a little off its
    markers."""

    cutoff: float = number(0.25, above=0.0, infinite=True)
    """Length in metres beyond which a spring is an outlier and off, measured at the
    pose of a robust fit; infinite for never. Above 0."""

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
    """Speed in m/s below which the simulation is at rest; above 0."""

    steps: int = number(4000, low=1)
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
