"""One slip of a sensor."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.cleaning.repairs import repair_warning
from marey.numerics import geometry
from marey.report import Finding, mark_name

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SensorSlip:
    """One sensor that moved on its body once and stayed there."""

    sensor: str
    frame: int
    """First frame after the slip."""

    T_before_after: Float[Array, "4 4"]
    """Pose of the sensor after the slip in its axes before it, in metres."""

    p_value: float
    """Probability of such a likelihood ratio without a slip, over all frames and
    sensors."""

    joints: tuple[str, ...]
    """The other bodies of the joints that show the slip, the clearest first."""

    rotation_known: bool
    """Whether the joints determine the rotation: three or more do. One joint determines
    no rotation, two leave that about the line between them open."""

    take: int = 0
    """Index of the take."""

    @property
    def displacement(self) -> Float[Array, "3"]:
        """Displacement of the sensor in its axes before the slip, in metres."""
        return np.asarray(self.T_before_after[:3, 3])

    @property
    def size(self) -> float:
        """Length of the displacement, in metres."""
        return float(np.linalg.norm(self.displacement))

    @property
    def angle(self) -> float:
        """Angle of the rotation, in radians."""
        rotvec = geometry.rotation_log(self.T_before_after[:3, :3])
        return float(np.linalg.norm(rotvec))

    def __str__(self) -> str:
        return (
            f"slipped by {1e3 * self.size:.1f} mm and {np.degrees(self.angle):.1f} deg "
            f"at frame {self.frame}"
        )

    @property
    def finding(self) -> Finding:
        """The finding for the report."""
        joints = ", ".join(map(mark_name, self.joints))
        rotation = "" if self.rotation_known else ", rotation uncertain"
        message = (
            f"{self} (joint to {joints}); undone{rotation}; fasten it better or record "
            "again"
        )
        frames = (self.frame, self.frame)
        return repair_warning("sensor-slipped", message, self.sensor, frames, self.size)
