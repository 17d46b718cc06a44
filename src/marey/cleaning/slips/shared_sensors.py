"""Slips of sensors that share their bodies with markers, which show them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.bodies import Bodies
from marey.cleaning.slips import change_point
from marey.cleaning.slips.markers import MIN_SLIP_M
from marey.cleaning.slips.sensor_likelihood import (
    JointInSensor,
    fit_marker_in_sensor,
)
from marey.cleaning.slips.sensor_search import SlipSearch
from marey.cleaning.slips.sensors import SensorSlip
from marey.numerics import geometry
from marey.numerics.thresholds import FEW, MIN_POSE_POINTS


def find_shared_sensor_slips(
    takes: Sequence[Bodies], *, level: float = change_point.FALSE_ALARM_LEVEL
) -> tuple[SensorSlip, ...]:
    """Return the slips of sensors on bodies that have markers, in the order of time.

    In the axes of a sensor the markers of its body are constant, as joint centres are
    (`find_sensor_slips`). A slip displaces all of them at once; one marker that slips
    by itself is none. A body of fewer than three markers determines no slip.

    Args:
        takes: Bodies of markers and sensors. Each take is searched alone: markers may
            have been attached again between them.
        level: Accepted probability of a false alarm, above 0 and below 1.

    Raises:
        OptionError: If the level is out of range.
    """
    change_point.check_level(level)
    slips: list[SensorSlip] = []
    for number, bodies in enumerate(takes):
        if not bodies.take.sensor_names:
            continue
        search = _SharedSlipSearch(bodies, level)
        found = search.in_time_order(search.find_all())
        slips += [replace(slip, take=number) for slip in found]
    return tuple(slips)


class _SharedSlipSearch(SlipSearch):
    """The sensors of a take that have markers beside them on their bodies."""

    # Skin moves markers and sensors by less all the time.
    min_displacement = MIN_SLIP_M

    def __init__(self, bodies: Bodies, level: float) -> None:
        take = bodies.take
        owner = dict(zip(bodies.sensor_names, bodies.sensor_body, strict=True))
        markers = {
            name: np.flatnonzero(bodies.marker_body == owner[name])
            for name in take.sensor_names
            if name in owner
        }
        enough = {k: v for k, v in markers.items() if len(v) >= MIN_POSE_POINTS}
        super().__init__((bodies,), np.zeros((0, 2), dtype=np.int64), level)
        self.names = tuple(enough)
        self.markers = list(enough.values())
        columns = [take.sensor_names.index(name) for name in self.names]
        self.T = take.T_world_sensor[:, columns].copy()
        self.points, self.labels = take.measured.points, take.full_labels
        self.adjacent = {sensor: [] for sensor in range(len(self.names))}
        self.fitted: dict[tuple[int, int], dict[int, JointInSensor]] = {}

    def joints_of(self, body: int) -> dict[int, JointInSensor]:
        """Return the markers on the body of a sensor in its axes, by their columns."""
        key = body, len(self.corrections)
        if key not in self.fitted:
            fits = {
                marker: fit_marker_in_sensor(self.T[:, body], self.points[:, marker])
                for marker in self.markers[body].tolist()
            }
            self.fitted[key] = {k: v for k, v in fits.items() if v is not None}
        found = self.fitted[key]
        return found if len(found) >= MIN_POSE_POINTS else {}

    def _find_slip(self, bodies: Sequence[int]) -> SensorSlip | None:
        """Return the most likely slip, if it displaces three markers or more as one."""
        slip = super()._find_slip(bodies)
        if slip is None:
            return None
        joints = self.joints_of(self.names.index(slip.sensor)).values()
        changes = [joint.change_of_center(slip.frame)[:2] for joint in joints]
        before, after = (np.array(side) for side in zip(*changes, strict=True))
        left = before - geometry.apply(slip.T_before_after, after)
        displaced = np.linalg.norm(before - after, axis=1)
        n_displaced = np.count_nonzero(displaced > self.min_displacement)
        is_rigid = np.sum(left**2) < FEW * np.sum(displaced**2)
        return slip if is_rigid and n_displaced >= MIN_POSE_POINTS else None

    def names_of_others(self, others: Sequence[int]) -> dict[str, tuple[str, ...]]:
        """Return what shows a slip: markers."""
        return {"markers": tuple(self.labels[marker] for marker in others)}
