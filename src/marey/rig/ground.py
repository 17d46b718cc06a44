"""Where the ground is, from the lowest points that hold still."""

from dataclasses import dataclass, replace

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

# Shares of the recording's height: how far from zero the ground may be, how uneven.
ASTRAY, UNEVEN = 0.1, 0.1

# The other axes that may be up, each with the world's axes as it has them.
OTHERS = {
    "y": [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]],
    "-y": [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]],
    "x": [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
    "-x": [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]],
    "-z": [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]],
}


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

    @property
    def astray(self) -> bool:
        """Whether it is far from z = 0."""
        return abs(self.height) > ASTRAY * self.tall

    @property
    def uneven(self) -> bool:
        """Whether not all that stands can stand on it."""
        return self.spread > UNEVEN * self.tall


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


def other_up(take: Take) -> str:
    """Return another axis along which all stand on a ground at zero; "" = none.

    Of several, the one along which the recording is tallest.
    """
    found = {}
    for axis, R in OTHERS.items():
        T = np.eye(4)
        T[:3, :3] = R
        sensors = T @ take.T_world_sensor
        points = take.points @ np.transpose(R)
        ground = ground_of(replace(take, points=points, T_world_sensor=sensors))
        if ground is not None and not (ground.astray or ground.uneven):
            found[axis] = ground.tall
    return max(found, key=lambda axis: found[axis], default="")


def _places(take: Take) -> Float[Array, "frame item 3"]:
    sensors = take.T_world_sensor[..., :3, 3]
    if not take.labels:
        return np.asarray(sensors)
    if not take.sensor_names:
        return take.points
    return np.concatenate([take.points, sensors], axis=1)
