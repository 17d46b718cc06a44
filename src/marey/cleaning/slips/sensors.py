"""Slips of sensors, found and undone.

OBrien2000 (Sec. 5) expects that a sensor that moves on its limb changes the residual,
and advises to record again. Here the frame, the sensor and the change of its pose are
estimated, so the recording can be kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marey.cleaning.arrays import Array
from marey.cleaning.repairs import record_repair, repair_warning
from marey.cleaning.slips import change_point
from marey.numerics import Float, geometry
from marey.report import Finding, mark_name
from marey.take import Take


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

    joints: tuple[str, ...] = ()
    """The other bodies of the joints that show the slip, the clearest first."""

    rotation_known: bool
    """Whether the joints determine the rotation: three or more do. One joint determines
    no rotation, two leave that about the line between them open."""

    take: int = 0
    """Index of the take."""

    markers: tuple[str, ...] = ()
    """Markers on the same body that show the slip, if it is not shown by joints."""

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
        degrees = round(float(np.degrees(self.angle)), 1)
        turned = f" and {degrees:.1f} deg"
        if not self.rotation_known:
            turned = f"{turned} or more" if degrees else ""
        return f"slipped by {1e3 * self.size:.1f} mm{turned} at frame {self.frame}"

    @property
    def finding(self) -> Finding:
        """The finding for the report."""
        shown = f"joint to {', '.join(map(mark_name, self.joints))}"
        if self.markers:
            shown = f"by {len(self.markers)} markers on its body"
        rotation = "" if self.rotation_known else " as far as its joints show it"
        message = f"{self} ({shown}); undone{rotation}; {change_point.ADVICE}"
        frames = (self.frame, self.frame)
        return repair_warning("sensor-slipped", message, self.sensor, frames, self.size)


def undo_sensor_slips(
    takes: Sequence[Take], slips: Sequence[SensorSlip]
) -> tuple[Take, ...]:
    """Return the takes with sensors in the axes they had before they slipped.

    Poses after each slip are transformed, also those of later takes. Each slip is a
    finding of the take in which it happened.

    Args:
        takes: The takes in which the slips were found.
        slips: From `find_sensor_slips`.
    """
    repaired = []
    for number, take in enumerate(takes):
        T = take.T_world_sensor.copy()
        for slip in reversed(slips):
            if slip.take <= number and slip.sensor in take.sensor_names:
                sensor = take.sensor_names.index(slip.sensor)
                first = slip.frame if slip.take == number else 0
                T_after_before = geometry.inverse(slip.T_before_after)
                T[first:, sensor] = T[first:, sensor] @ T_after_before
        of_take = [slip for slip in slips if slip.take == number]
        notes = [f"undid slip: {slip.sensor} {slip}" for slip in of_take]
        findings = [slip.finding for slip in of_take]
        repaired.append(record_repair(take, findings, notes, T_world_sensor=T))
    return tuple(repaired)
