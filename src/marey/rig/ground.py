"""The height of a level ground, from the lowest points that hold still."""

from dataclasses import dataclass

import numpy as np

from marey.motion import GroundPlane
from marey.numerics import Array, Float, Int, geometry
from marey.numerics.thresholds import FEW, MIN_SAMPLES, MOST
from marey.take import Take, rotate_take

MAX_STILL_SPEED = FEW
"""Largest speed of a point that holds still, in extents of the recording per
second."""

MAX_HEIGHT_ERROR = FEW
"""Largest distance of the ground from z = 0, and largest range of the heights of still
points, as fractions of the recording's extent."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GroundEstimate(GroundPlane):
    """A level ground as a recording shows it.

    The floor is a little lower: markers sit on top of shoes.
    """

    height: float = 0.0
    """Height above z = 0, in metres."""

    spread: float
    """Range of the heights of most still points, in metres: from the 10 % to the 90 %
    quantile."""

    extent: float
    """Median over frames of the height from the lowest to the highest point, in
    metres."""

    @property
    def is_far_from_zero(self) -> bool:
        """Whether the ground is far from z = 0."""
        return abs(self.height) > MAX_HEIGHT_ERROR * self.extent

    @property
    def is_uneven(self) -> bool:
        """Whether the still points are at heights too different for one floor."""
        return self.spread > MAX_HEIGHT_ERROR * self.extent

    @property
    def is_at_zero(self) -> bool:
        """Whether the ground is level and near z = 0."""
        return not (self.is_far_from_zero or self.is_uneven)


def stands_on_zero(take: Take) -> bool:
    """Return whether the lowest points of a recording stand on a ground at z = 0."""
    ground = estimate_ground(take)
    return ground is not None and ground.is_at_zero


def estimate_ground(take: Take) -> GroundEstimate | None:
    """Return the ground of a recording, None if its lowest points never hold still.

    In most frames of most recordings a foot stands still on the ground. So the heights
    of the lowest point are collected over the frames in which that point is slow.
    """
    points = take.positions
    has_points = np.isfinite(points[..., 2]).any(axis=1)
    points = points if has_points.all() else points[has_points]
    if len(points) < 3:
        return None
    height = points[..., 2]
    seen = np.isfinite(height)
    above = np.where(seen, height, np.inf)
    lowest = above.min(axis=1)
    highest = np.where(seen, height, -np.inf).max(axis=1)
    extent = float(np.median(highest - lowest))
    lowest_speed = _speeds(points, above.argmin(axis=1)) * take.rate
    with np.errstate(invalid="ignore"):
        still = lowest[lowest_speed <= MAX_STILL_SPEED * extent]
    if len(still) < MIN_SAMPLES:
        return None
    low, high = np.quantile(still, [FEW, MOST])  # the few below are taken for noise
    return GroundEstimate(
        height=float(low),
        spread=float(high - low),
        extent=extent,
    )


def _speeds(
    points: Float[Array, "frame point 3"], chosen: Int[Array, " frame"]
) -> Float[Array, " frame"]:
    """Return the speed of one point in each frame, in metres per frame."""
    frame = np.arange(len(points))
    before, after = np.maximum(frame - 1, 0), np.minimum(frame + 1, len(points) - 1)
    moved = geometry.lengths(points[after, chosen] - points[before, chosen])
    return np.asarray(moved / (after - before))


def find_other_up_axis(take: Take) -> str:
    """Return an axis of the file along which the ground is level and at zero.

    It is another axis than the one that was up in the file, `take.source.up`. If there
    are several, it is the one along which the recording is tallest; "" if there is
    none.
    """
    extents = {}
    for axis in ("y", "-y", "x", "-x", "-z"):
        ground = estimate_ground(rotate_take(take, geometry.R_Z_UP[axis]))
        if ground is not None and ground.is_at_zero:
            extents[axis] = ground.extent
    if not extents:
        return ""
    best = max(extents, key=lambda axis: extents[axis])
    R_read = geometry.R_Z_UP[take.source.up.value or "z"]
    return geometry.nearest_axis(R_read.T @ geometry.R_Z_UP[best][2])
