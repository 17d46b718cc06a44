"""The ground under plants: a plane, and how high each point stands above it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from marey.errors import OptionError
from marey.pose.contact.stance import Plant

Array = np.ndarray

# The ground is expected to be level to about this slope, in radians, points to sit
# about as high above it as others, to so many metres, and anchors to be on it to so
# many.
SLOPE, SITS, ROUGH = 0.02, 0.03, 0.005

# A plant further than this from the plane stands on something else, in metres.
STEP = 0.025

# A still point is on the ground when, for a moment, none is lower by more than this
# share of the figure's height; the second, once it is known how high each one sits.
MUCH_LOWER, LOWER = 0.06, 0.018

ROUNDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A floor that is known: a plane."""

    height: float = 0.0
    """Over the origin, in metres."""

    slope: tuple[float, float] = (0.0, 0.0)
    """Rise along x and y."""

    def __post_init__(self) -> None:
        if not np.isfinite([self.height, *self.slope]).all():
            raise OptionError(
                "floor", found=[self.height, *self.slope], needed="finite numbers"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """A plane, and the height of each point above it when it stands."""

    slope: Float[Array, " 2"]
    """Rise along x and y."""

    height: Float[Array, " spot"]
    """Of each standing point over the origin, in metres."""

    def above(
        self, places: Float[Array, "*batch spot 3"]
    ) -> Float[Array, "*batch spot"]:
        """Return how far above its stand each point is, along z."""
        return np.asarray(places[..., 2] - places[..., :2] @ self.slope - self.height)

    def off(self, plant: Plant) -> float:
        """Return how far above the plane a plant is, along z."""
        x, y, z = plant.anchor
        rise = self.slope @ np.array([x, y])
        return float(z - rise - self.height[plant.spot])

    @property
    def normal(self) -> Float[Array, " 3"]:
        """Unit vector out of the ground."""
        up = np.array([-self.slope[0], -self.slope[1], 1.0])
        return np.asarray(up / np.linalg.norm(up))

    @property
    def angle(self) -> float:
        """Slope in radians."""
        return float(np.arctan(np.linalg.norm(self.slope)))


def over(floor: Floor, ground: Ground, plants: Sequence[Plant]) -> Ground:
    """Return the ground with the slope of a floor that is known, and no lower.

    Each point stands as high as its plants on the ground do: a marker or joint that
    sits above the sole still does.
    """
    slope, height = np.array(floor.slope), ground.height.copy()
    for spot in range(len(height)):
        mine = [plant for plant in plants if plant.spot == spot]
        near = [plant for plant in mine if abs(ground.off(plant)) < STEP] or mine
        stands = [plant.anchor[2] - slope @ plant.anchor[:2] for plant in near]
        height[spot] = max(float(np.median(stands)), floor.height)
    return replace(ground, slope=slope, height=height)


def ground_of(plants: Sequence[Plant], n_spots: int) -> Ground:
    """Return the plane on which most plants stand, every point at a height of its own.

    Markers sit above the sole by different amounts, so each point has its own height;
    the slope is common. It is found by weighted least squares with a wish for level
    ground, which decides where feet stand in a line; plants elsewhere, on a box or a
    step, lose their weight (Geman-McClure). Begun once from all plants and once from
    level ground, so that a box and the floor beside it do not make a slope.
    """
    anchor = np.array([plant.anchor for plant in plants]).reshape(-1, 3)
    weight = np.array([plant.end - plant.start + 1.0 for plant in plants])
    weight = weight * len(weight) / max(weight.sum(), 1.0)
    middle = weight @ anchor[:, :2] / max(len(plants), 1)
    spot = np.array([plant.spot for plant in plants], dtype=np.int64)
    rows = np.zeros((len(plants), 3 + n_spots))
    rows[:, :2] = anchor[:, :2] - middle
    rows[:, 2] = 1.0
    rows[np.arange(len(plants)), 3 + spot] = 1.0
    level = np.zeros(3 + n_spots)
    level[2] = np.percentile(anchor[:, 2], 50.0, method="lower") if plants else 0.0
    all_alike = _plane(rows, anchor[:, 2], weight)
    starts = [_refined(rows, anchor[:, 2], weight, s) for s in (level, all_alike)]
    found = min(starts, key=lambda p: _cost(rows, anchor[:, 2], weight, p))
    return Ground(found[:2], found[2] + found[3:] - found[:2] @ middle)


def _worth(unknowns: int) -> Float[Array, " unknown"]:
    """Return what wishes are worth: level, any height, points as high as others."""
    worth = np.full(unknowns, (ROUGH / SITS) ** 2)
    worth[:2], worth[2] = (ROUGH / SLOPE) ** 2, 1e-9
    return worth


def _plane(
    rows: Float[Array, "plant unknown"],
    height: Float[Array, " plant"],
    weight: Float[Array, " plant"],
) -> Float[Array, " unknown"]:
    """Return slopes, height, and the points' own by least squares."""
    normal = rows.T @ (weight[:, None] * rows) + np.diag(_worth(rows.shape[1]))
    return np.asarray(np.linalg.solve(normal, rows.T @ (weight * height)))


def _refined(
    rows: Float[Array, "plant unknown"],
    height: Float[Array, " plant"],
    weight: Float[Array, " plant"],
    start: Float[Array, " unknown"],
) -> Float[Array, " unknown"]:
    """Return the plane with plants far off it let go."""
    found = start
    for _ in range(ROUNDS):
        off = height - rows @ found
        found = _plane(rows, height, weight / (1.0 + (off / STEP) ** 2) ** 2)
    return found


def _cost(
    rows: Float[Array, "plant unknown"],
    height: Float[Array, " plant"],
    weight: Float[Array, " plant"],
    found: Float[Array, " unknown"],
) -> float:
    """Return what a plane leaves unexplained and how odd it is, in squared sd."""
    off2 = (height - rows @ found) ** 2
    far = off2 / (1.0 + off2 / STEP**2)
    return float((weight @ far + _worth(len(found)) @ found**2) / ROUGH**2)


def on_ground(
    plants: Sequence[Plant],
    paths: Float[Array, "frame spot 3"],
    lowest: Float[Array, " frame"],
    tall: float,
) -> tuple[list[Plant], Ground]:
    """Return the plants that something stands on, and the ground.

    A still point may be a hand in the air. A point that stands on something, be it
    ground, slope, step or box, is for a moment at least the lowest of all.

    Args:
        plants: Points that stand still.
        paths: Where all points are.
        lowest: Height of the lowest joint in every frame.
        tall: Height of the figure, in metres.
    """
    held = _lowest(plants, paths[..., 2], lowest, MUCH_LOWER * tall)
    ground = ground_of(held, paths.shape[1])
    unused = np.ones(paths.shape[1], dtype=bool)
    unused[[plant.spot for plant in held]] = False
    above = np.where(unused, np.inf, ground.above(paths))
    low = _lowest(held, above, np.full(len(paths), np.inf), LOWER * tall)
    held = [plant for plant in held if plant in low or ground.off(plant) < STEP]
    return held, ground_of(held, paths.shape[1])


def _lowest(
    plants: Sequence[Plant],
    height: Float[Array, "frame spot"],
    lowest: Float[Array, " frame"],
    slack: float,
) -> list[Plant]:
    """Return the plants that are at some time the lowest of all, or nearly."""
    least = np.fmin(lowest, np.fmin.reduce(height, axis=1, initial=np.inf))
    return [
        plant
        for plant in plants
        if (height[plant.frames, plant.spot] < least[plant.frames] + slack).any()
    ]
