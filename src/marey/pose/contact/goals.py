"""Goals of contact points: the anchors of their plants, and the ground below them.

A correction fades in before a plant and out after it. The anchors of one foot are first
moved so that it can reach all of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from marey.motion import Motion
from marey.numerics import Array, Float, Int
from marey.numerics.thresholds import MOTION_TIME_S
from marey.pose.contact.foot_plants import FootPlant
from marey.pose.contact.ground import GroundContacts, is_level, plant_height
from marey.pose.contact.points import VELOCITY_WINDOW_S

BLEND_S = MOTION_TIME_S
"""Time in which a correction fades in before a plant and out after it, in seconds."""

GOAL_WEIGHT = float(1.0 / np.sqrt(np.finfo(float).eps))
"""Weight of a goal inside a plant, relative to keeping the pose: so large that half of
the digits are left to the pose. The weight at the edges of the plant is the square root
of this, and where the correction ends one over that root. Between these it changes
geometrically: if the goals of heel and toe conflict, the one that is being released
fades."""

PROJECTION_ITERATIONS = 50
"""Sweeps of the projection of anchors onto their constraints. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class PointGoals:
    """Positions that points should have, in a frame aligned with the ground."""

    axes: Float[Array, "3 3"]
    """Rows: two directions along the ground, and its normal."""

    position: Float[Array, "frame point 3"]
    """Goals in the world, in metres; read only where `share` is above 0."""

    share: Float[Array, "frame point"]
    """Fraction of the distance to its goal that each point moves, 0 to 1."""

    ground_height: Float[Array, "frame point"]
    """Lowest allowed coordinate of each point along the normal, in metres; -inf for no
    ground."""

    def at(self, frames: Int[Array, " some"]) -> "PointGoals":
        """Return the goals of some frames."""
        return replace(
            self,
            position=self.position[frames],
            share=self.share[frames],
            ground_height=self.ground_height[frames],
        )


def project_anchors(
    contacts: GroundContacts, distance_m: Float[Array, "point point"]
) -> GroundContacts:
    """Return plants on the ground whose anchors are as far apart as their points are.

    Otherwise a foot that stands on heel and toe could not reach both anchors, and would
    jump when one of them is released. A plant on a step or a box keeps its height.

    The method is successive projection (Gauss-Seidel, as in position-based dynamics):
    each sweep moves every two simultaneous anchors of one body by half of their excess
    distance, then puts anchors back onto their planes.

    Args:
        contacts: The plants by start, and the ground.
        distance_m: Distances of points in metres; constant between points of one body.
    """
    plants, planes = contacts.plants, contacts.ground
    anchor = np.array([plant.anchor for plant in plants]).reshape(-1, 3)
    level = [i for i, plant in enumerate(plants) if is_level(planes, plant)]
    pairs = list(_simultaneous_pairs(contacts))
    for _ in range(PROJECTION_ITERATIONS):
        for i, k in pairs:
            between = anchor[k] - anchor[i]
            length = max(np.linalg.norm(between), 1e-9)
            excess = 1.0 - distance_m[plants[i].point, plants[k].point] / length
            anchor[i] += 0.5 * excess * between
            anchor[k] -= 0.5 * excess * between
        for i in level:
            anchor[i, 2] -= plant_height(planes, replace(plants[i], anchor=anchor[i]))
    projected = [replace(p, anchor=a) for p, a in zip(plants, anchor, strict=True)]
    return replace(contacts, plants=tuple(projected))


def _simultaneous_pairs(contacts: GroundContacts) -> Iterator[tuple[int, int]]:
    """Yield pairs of plants of one body that overlap in time; plants are by start."""
    plants, body = contacts.plants, contacts.points.body
    for i, plant in enumerate(plants):
        for k in range(i + 1, len(plants)):
            if plants[k].start > plant.end:
                break
            same_body = body[plant.point] == body[plants[k].point]
            if same_body and plant.point != plants[k].point:
                yield i, k


def contact_goals(contacts: GroundContacts, motion: Motion) -> PointGoals:
    """Return the goals of all points: at an anchor, near a plant, and above ground.

    Where corrections of two plants of one point overlap, the goal is their mean,
    weighted by their shares.
    """
    positions = contacts.points.positions(motion.T_world_joint())
    share_sum, share_max = np.zeros((2, *positions.shape[:2]))
    correction_sum = np.zeros_like(positions)
    for plant in contacts.plants:
        k = plant.point
        share, correction = _fade_correction(plant, positions[:, k], motion.rate)
        share_sum[:, k] += share
        share_max[:, k] = np.maximum(share_max[:, k], share)
        correction_sum[:, k] += share[:, None] * correction
    correction_sum /= np.maximum(share_sum, 1e-12)[..., None]
    return PointGoals(
        axes=_ground_axes(contacts.ground.normal),
        position=positions + correction_sum,
        share=share_max,
        ground_height=contacts.ground_heights(len(positions)),
    )


def _fade_correction(
    plant: FootPlant, positions: Float[Array, "frame 3"], rate: float
) -> tuple[Float[Array, " frame"], Float[Array, "frame 3"]]:
    """Return the share of a plant in every frame, and its correction in metres.

    The share is w / (1 + w) for a goal of weight w. Outside the plant the correction is
    that of its edge.
    """
    frames = plant.frames
    time = np.arange(len(positions))
    outside = np.maximum(frames[0] - time, time - frames[-1])
    outside = outside.clip(0) / (BLEND_S * rate)
    inside = np.minimum(frames - frames[0], frames[-1] - frames)
    inside = inside / (VELOCITY_WINDOW_S * rate)
    weight = GOAL_WEIGHT ** (0.5 - outside)
    weight[frames] = GOAL_WEIGHT ** (0.5 + 0.5 * inside.clip(max=1.0))
    share = np.where(outside < 1.0, weight / (1.0 + weight), 0.0)
    correction = plant.anchor - positions
    n = max(round(2.0 * VELOCITY_WINDOW_S * rate), 2)
    correction[: frames[0]] = _first_of_line(correction[frames[:n]])
    correction[frames[-1] + 1 :] = _first_of_line(correction[frames[-n:]][::-1])
    return share, np.where(share[:, None] > 0.0, correction, 0.0)


def _first_of_line(values: Float[Array, "frame 3"]) -> Float[Array, " 3"]:
    """Return the first value of the least-squares line through values."""
    known = np.isfinite(values).all(axis=1)
    time, values = np.flatnonzero(known), values[known]
    if not len(time):
        return np.zeros(3)
    degree = 1 if len(time) > 2 else 0
    return np.asarray(np.polynomial.polynomial.polyfit(time, values, degree)[0])


def _ground_axes(normal: Float[Array, " 3"]) -> Float[Array, "3 3"]:
    """Return two directions along the ground, and its normal, as rows."""
    along = np.cross([0.0, 1.0, 0.0], normal)
    along = along / np.linalg.norm(along)
    return np.stack([along, np.cross(normal, along), normal])
