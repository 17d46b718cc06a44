"""Where the ground is, from the lowest points that hold still."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.take import Take

Array = np.ndarray

SLOW = 0.2
"""Share of the recording's height per second below which a point holds still."""

LOWEST = 10.0
"""Per cent of the lowest still points that may be below the ground, as noise is."""

FEWEST = 0.02
"""Share of the frames that must have a still point, to tell."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A level ground."""

    height: float
    """Metres above z = 0. Markers sit on top of shoes: the floor is a little lower."""

    spread: float
    """How far the lowest still points of different frames are apart, in metres: the
    middle half of them."""

    share: float
    """Share of the frames in which the lowest point held still, 0 to 1."""

    tall: float
    """Metres from the lowest to the highest point, usually."""


def ground_of(take: Take) -> Ground | None:
    """Return where the ground is, None when no low point ever holds still.

    Feet stand still on the ground in most frames of most recordings: the height of the
    lowest point in each frame in which it hardly moves.
    """
    points = _places(take)
    height = points[..., 2]
    seen = np.isfinite(height)
    frames = seen.any(axis=1)
    if frames.sum() < 3:
        return None
    points, height, seen = points[frames], height[frames], seen[frames]
    low = np.where(seen, height, np.inf).min(axis=1)
    high = np.where(seen, height, -np.inf).max(axis=1)
    tall = float(np.median(high - low))
    which = np.where(seen, height, np.inf).argmin(axis=1)
    speed = np.linalg.norm(np.gradient(points, axis=0), axis=-1) * take.rate
    own = speed[np.arange(len(which)), which]
    with np.errstate(invalid="ignore"):
        still = low[own <= SLOW * tall]
    if len(still) < max(FEWEST * len(take.times), 1.0):
        return None
    quarter, most = np.percentile(still, [25.0, 75.0])
    return Ground(
        height=float(np.percentile(still, LOWEST)),
        spread=float(most - quarter),
        share=len(still) / len(take.times),
        tall=tall,
    )


def _places(take: Take) -> Float[Array, "frame item 3"]:
    sensors = take.T_world_sensor[..., :3, 3]
    if not take.labels:
        return np.asarray(sensors)
    if not take.sensor_names:
        return take.points
    return np.concatenate([take.points, sensors], axis=1)
