"""The ground that contact points stand on, found from their foot plants.

The ground is a `GroundPlane` for each contact point, through the positions at which
that point stands: markers sit above the sole. `GroundContacts` are the foot plants of a
motion with these planes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from marey.motion import Contact, GroundPlane, Motion
from marey.numerics import Array, Float, Int, geometry
from marey.numerics.resampling import stack_spans
from marey.numerics.thresholds import SKIN_MOTION_M
from marey.pose.contact.foot_plants import FootPlant
from marey.pose.contact.points import (
    SAME_PLACE,
    ContactPoints,
    MotionPoses,
    PointTracks,
)

SLOPE_SD = 0.02
"""Prior standard deviation of the ground's slope, in metres per metre. Raising it lets
feet in a line tilt the ground across that line. Chosen by hand."""

ANCHOR_SD_M = 0.5 * SKIN_MOTION_M
"""Standard deviation of an anchor's distance from its contact plane, in metres: skin
moves less on a foot. Raising it makes the two priors stronger."""

MIN_STEP_HEIGHT_M = 0.025
"""Smallest distance from the ground of a plant on a step or a box, in metres; also the
scale of the robust loss. Raising it moves plants on low steps to the ground. Chosen by
hand."""

POINT_HEIGHT_SD_M = MIN_STEP_HEIGHT_M
"""Prior standard deviation of a point's standing height above the ground, in metres: a
point that stands on a box only is hardly a high point on the ground."""

COARSE_LOWEST_TOLERANCE = 0.06
"""Height above the lowest point up to which a still point may be a plant, as a share of
the figure's height, while standing heights are unknown. Raising it keeps hands and
lifted feet. Chosen by hand."""

IRLS_ITERATIONS = 10
"""Rounds of iteratively reweighted least squares. Chosen by hand."""

ORIGIN_HEIGHT_WEIGHT = 1e-9
"""Prior weight of height zero, only to keep the system solvable without plants."""


def plant_height(ground: GroundPlane, plant: FootPlant) -> float:
    """Return the height of a plant's anchor above its plane along z, in metres."""
    x, y, z = plant.anchor
    rise = ground.slope[0] * x + ground.slope[1] * y
    return float(z - rise - np.atleast_1d(ground.height)[plant.point])


def is_level(ground: GroundPlane, plant: FootPlant) -> bool:
    """Return whether a plant is on the ground, rather than on a step or a box."""
    return abs(plant_height(ground, plant)) < MIN_STEP_HEIGHT_M


@dataclass(frozen=True, slots=True, eq=False)
class GroundContacts:
    """The foot plants of a motion, and the ground they stand on."""

    points: ContactPoints
    """The points that are planted at least once."""

    plants: tuple[FootPlant, ...]
    ground: GroundPlane

    def contacts(self, motion: Motion) -> tuple[Contact, ...]:
        """Return the plants on the clock of a motion."""
        names = self.points.names
        return tuple(
            Contact(names[plant.point], *plant.times(motion), plant.anchor)
            for plant in self.plants
        )

    def skate(self, motion: Motion, poses: MotionPoses | None = None) -> float:
        """Return the mean speed of planted points, in m/s; NaN without plants.

        Args:
            motion: A motion of the same skeleton.
            poses: The poses of the motion, if they are at hand.
        """
        speed, _ = self.planted_speeds(motion, poses or MotionPoses(motion))
        return float(np.nanmean(speed)) if len(speed) else float("nan")

    def planted_speeds(
        self, motion: Motion, poses: MotionPoses
    ) -> tuple[Float[Array, " step"], Int[Array, " step"]]:
        """Return the speeds of planted points between frames in m/s, and the points."""
        frame, plant = stack_spans([plant.frames for plant in self.plants])
        point = np.array([p.point for p in self.plants], dtype=np.int64)[plant]
        T = poses.at(frame, self.points.joint[point])
        moved = np.diff(geometry.apply(T, self.points.offset[point]), axis=0)
        is_step = plant[1:] == plant[:-1]
        return motion.rate * geometry.lengths(moved[is_step]), point[1:][is_step]

    def penetration(self, motion: Motion, poses: MotionPoses | None = None) -> float:
        """Return the largest depth of a bone's end below the ground, in metres.

        Args:
            motion: A motion of the same skeleton.
            poses: The poses of the motion, if they are at hand.
        """
        poses = poses or MotionPoses(motion)
        soles = self.points.is_sole
        positions = poses.map(self.points.select(soles).positions)
        heights = self.ground_heights(len(positions))[:, soles]
        depth = heights - positions @ self.ground.normal
        return float(np.nanmax(depth, initial=0.0))

    def ground_heights(self, n_frames: int) -> Float[Array, "frame point"]:
        """Return the ground under each point along its normal in metres.

        The ground is lower than the plane between two plants of which one is on a step
        down. It is -inf for markers.
        """
        step_down = np.zeros((n_frames, len(self.points.joint)))
        step_down[:, ~self.points.is_sole] = -np.inf
        frames = np.arange(n_frames)
        for point in np.flatnonzero(self.points.is_sole):
            plants = [plant for plant in self.plants if plant.point == point]
            if not plants:
                continue
            height = np.array([plant_height(self.ground, plant) for plant in plants])
            height = np.where(height < -MIN_STEP_HEIGHT_M, height, 0.0)
            starts = [plant.start for plant in plants]
            following = np.searchsorted(starts, frames, side="right")
            before = (following - 1).clip(min=0)
            after = following.clip(max=len(height) - 1)
            step_down[:, point] = np.minimum(height[before], height[after])
        return np.asarray((self.ground.height + step_down) * self.ground.normal[2])


def place_on_ground(contacts: GroundContacts, ground: GroundPlane) -> GroundContacts:
    """Return contacts with the slope of a known ground, and no plane below it.

    The height of each plane is the median of its point's plants on the ground: a
    marker or joint that sits above the sole still does. If one is below the ground, all
    are raised together, so that a foot keeps its shape.
    """
    slope, height = np.array(ground.slope), np.empty(len(contacts.points.joint))
    for point in range(len(height)):
        plants = [plant for plant in contacts.plants if plant.point == point]
        level = [plant for plant in plants if is_level(contacts.ground, plant)]
        heights = [p.anchor[2] - slope @ p.anchor[:2] for p in level or plants]
        height[point] = np.median(heights)
    height += max(float(np.max(ground.height)) - height.min(initial=np.inf), 0.0)
    return replace(contacts, ground=GroundPlane(slope=slope, height=height))


def fit_contact_planes(plants: Sequence[FootPlant], n_points: int) -> GroundPlane:
    r"""Return the planes on which most plants stand.

    The unknowns are the common slope, the height of the ground and the height of every
    point above it. They minimise

    .. math:: \sum_i w_i \,\rho(z_i - \hat z_i) + \text{priors},
              \qquad \rho(r) = \frac{r^2}{1 + (r / 0.025)^2},

    where :math:`w_i` is the duration of plant :math:`i`. The loss :math:`\rho`
    (Geman-McClure) gives plants on a box or a step little weight. The prior on the
    slope decides where feet stand in a line. Iteratively reweighted least squares
    starts once from all plants and once from level ground, so that a box and the floor
    beside it do not make a slope; the solution with the lower cost is taken.
    """
    anchor = np.array([plant.anchor for plant in plants]).reshape(-1, 3)
    weight = np.array([plant.end - plant.start + 1.0 for plant in plants])
    weight = weight * len(weight) / max(weight.sum(), 1.0)
    centre = weight @ anchor[:, :2] / max(len(plants), 1)
    plane = np.concatenate([anchor[:, :2] - centre, np.ones((len(plants), 1))], axis=1)
    point = np.array([plant.point for plant in plants], dtype=np.int64)
    regression = _PlaneRegression(plane, point, n_points, anchor[:, 2], weight)
    level = np.zeros(3 + n_points)
    level[2] = np.quantile(anchor[:, 2], 0.5, method="lower") if plants else 0.0
    starts = (level, regression.solve(weight))
    best = min(map(regression.refine, starts), key=regression.cost)
    return GroundPlane(slope=best[:2], height=best[2] + best[3:] - best[:2] @ centre)


class _PlaneRegression(NamedTuple):
    """Robust linear regression of anchors' heights on slope, height and point."""

    plane: Float[Array, "plant 3"]
    """Design of the common plane: x, y and 1."""

    point: Int[Array, " plant"]
    n_points: int
    height: Float[Array, " plant"]
    weight: Float[Array, " plant"]

    @property
    def prior(self) -> Float[Array, " unknown"]:
        """Prior weights: level ground, any height, points as high as others."""
        weight = np.full(3 + self.n_points, (ANCHOR_SD_M / POINT_HEIGHT_SD_M) ** 2)
        weight[:2] = (ANCHOR_SD_M / SLOPE_SD) ** 2
        weight[2] = ORIGIN_HEIGHT_WEIGHT
        return weight

    def solve(self, weight: Float[Array, " plant"]) -> Float[Array, " unknown"]:
        """Return the weighted least-squares solution.

        A plant is at one point, so the heights of points are eliminated from the normal
        equations (Schur complement) and three unknowns remain.
        """
        prior, weighted = self.prior, weight[:, None] * self.plane
        own = self._sum_by_point(weight) + prior[3:]
        shared = np.stack([self._sum_by_point(column) for column in weighted.T])
        heights = self._sum_by_point(weight * self.height)
        normal = self.plane.T @ weighted + np.diag(prior[:3])
        normal -= (shared / own) @ shared.T
        right = weighted.T @ self.height - (shared / own) @ heights
        common = np.linalg.solve(normal, right)
        return np.concatenate([common, (heights - common @ shared) / own])

    def _sum_by_point(self, values: Float[Array, " plant"]) -> Float[Array, " point"]:
        """Return the sum of the values over the plants of each point."""
        sums = np.bincount(self.point, values, self.n_points)
        return sums.astype(float, copy=False)  # whole numbers without plants

    def residual(self, unknowns: Float[Array, " unknown"]) -> Float[Array, " plant"]:
        """Return how far anchors are above their planes along z, in metres."""
        modelled = self.plane @ unknowns[:3] + unknowns[3:][self.point]
        return np.asarray(self.height - modelled)

    def refine(self, unknowns: Float[Array, " unknown"]) -> Float[Array, " unknown"]:
        """Return the solution after reweighting by the Geman-McClure loss."""
        for _ in range(IRLS_ITERATIONS):
            ratio = self.residual(unknowns) / MIN_STEP_HEIGHT_M
            unknowns = self.solve(self.weight / (1.0 + ratio**2) ** 2)
        return unknowns

    def cost(self, unknowns: Float[Array, " unknown"]) -> float:
        """Return the robust cost with the priors, in units of the anchors' variance."""
        square = self.residual(unknowns) ** 2
        loss = square / (1.0 + square / MIN_STEP_HEIGHT_M**2)
        total = self.weight @ loss + self.prior @ unknowns**2
        return float(total / ANCHOR_SD_M**2)


def select_ground_plants(
    plants: Sequence[FootPlant], tracks: PointTracks, lowest: Float[Array, " frame"]
) -> tuple[list[FootPlant], GroundPlane]:
    """Return the plants on ground, steps or boxes, and the planes they stand on.

    A still point may be a hand in the air. A point that stands on something is the
    lowest of the figure in at least one frame.

    Args:
        plants: Intervals in which points are still.
        tracks: All points through time.
        lowest: Height of the lowest joint in every frame, in metres.
    """
    positions, n_points = tracks.positions, tracks.positions.shape[1]
    coarse, fine = (
        tolerance * tracks.figure_height
        for tolerance in (COARSE_LOWEST_TOLERANCE, SAME_PLACE)
    )
    kept = _lowest_plants(plants, positions[..., 2], lowest, coarse)
    planes = fit_contact_planes(kept, n_points)
    is_unused = ~np.isin(np.arange(n_points), [plant.point for plant in kept])
    height = np.where(is_unused, np.inf, planes.heights_above(positions))
    low = set(_lowest_plants(kept, height, np.full(len(positions), np.inf), fine))
    kept = [p for p in kept if p in low or plant_height(planes, p) < MIN_STEP_HEIGHT_M]
    return kept, fit_contact_planes(kept, n_points)


def _lowest_plants(
    plants: Sequence[FootPlant],
    height: Float[Array, "frame point"],
    lowest: Float[Array, " frame"],
    tolerance: float,
) -> list[FootPlant]:
    """Return the plants that are the lowest of all in some frame, or nearly."""
    least = np.fmin(lowest, np.fmin.reduce(height, axis=1, initial=np.inf))
    return [
        plant
        for plant in plants
        if (height[plant.frames, plant.point] < least[plant.frames] + tolerance).any()
    ]
