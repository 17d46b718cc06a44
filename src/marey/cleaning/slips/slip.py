"""One sensor that moved on its body."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.numerics import geometry
from marey.report import Finding, mark_name

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Slip:
    """One sensor that moved on its body, once."""

    sensor: str
    frame: int
    """First frame of the new place."""

    T_before_after: Float[Array, "4 4"]
    """Pose of the sensor after the slip, in the axes it had before, in metres."""

    p_value: float
    """Probability of so much evidence without a slip, over all frames and sensors."""

    joints: tuple[str, ...]
    """The bodies at the other end of the joints that show it, the clearest first."""

    turn_known: bool
    """Whether the joints tell how the sensor turned: three or more. One joint tells of
    no turn, two of none about the line between them."""

    take: int = 0
    """Which of several takes."""

    @property
    def shift(self) -> Float[Array, "3"]:
        """The way that the sensor moved, in its own axes before, in metres."""
        return np.asarray(self.T_before_after[:3, 3])

    @property
    def size(self) -> float:
        """Length of the way, in metres."""
        return float(np.linalg.norm(self.shift))

    @property
    def turn(self) -> float:
        """Angle by which the sensor turned, in radians."""
        rotvec = geometry.rotation_log(self.T_before_after[:3, :3])
        return float(np.linalg.norm(rotvec))

    def __str__(self) -> str:
        return (
            f"slipped by {1e3 * self.size:.1f} mm and {np.degrees(self.turn):.1f} deg "
            f"at frame {self.frame}"
        )

    @property
    def finding(self) -> Finding:
        """What to tell the user."""
        doubt = "" if self.turn_known else "; how far it turned is not fully seen"
        message = (
            f"{self}, seen at the joint to {', '.join(map(mark_name, self.joints))} "
            f"(p = {self.p_value:.0e}): the frames after are taken back{doubt}; fasten "
            "it better, or record again"
        )
        frames = (self.frame, self.frame)
        return Finding(
            "sensor-slipped",
            "clean",
            "warning",
            message,
            self.sensor,
            frames,
            self.size,
        )
