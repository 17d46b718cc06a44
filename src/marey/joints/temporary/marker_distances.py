"""Distances between the markers of two bodies, which stay while the two hold together.

The rotation of a hand with two or three markers is uncertain by degrees, and by more
where its wrist serves as the third; the distances of its markers are not.
"""

from math import prod

import numpy as np

from marey.bodies import Bodies
from marey.joints.noise import PoseNoise
from marey.numerics import Array, Float, geometry
from marey.numerics.robust import mean_where
from marey.numerics.thresholds import MIN_POSE_POINTS

MIN_DISTANCES = MIN_POSE_POINTS
"""Smallest number of distances that show a grip: those of one marker from as many of a
prop as determine its pose. Raised, bodies with fewer are judged by their poses
instead."""


class MarkerDistances:
    """Distances between the markers of the bodies of one take."""

    def __init__(self, bodies: Bodies) -> None:
        self.points = [
            bodies.take.points[:, bodies.marker_body == body]
            for body in range(len(bodies.names))
        ]

    def determine(self, a: int, b: int) -> bool:
        """Return whether two bodies have markers enough to show a grip."""
        count: int = prod(self.points[body].shape[1] for body in (a, b))
        return count >= MIN_DISTANCES

    def of_pair(self, a: int, b: int) -> Float[Array, "frame distance"]:
        """Return the distances of all markers of a from all of b, in metres."""
        between = self.points[a][:, :, None] - self.points[b][:, None]
        return np.asarray(geometry.lengths(between)).reshape(len(between), -1)

    def window_variance(
        self, a: int, b: int, *, block: int, blocks: int
    ) -> Float[Array, " window"]:
        """Return the mean variance of the distances in the windows of `window_motions`.

        In square metres; NaN where no two markers of a and b are seen throughout.
        """
        distance = self.of_pair(a, b)
        whole = len(distance) // block * block
        by_block = distance[:whole].reshape(-1, block, distance.shape[1])
        starts = np.arange(max(len(by_block) - blocks + 1, 0))[:, None]
        windows = by_block[starts + np.arange(blocks)]
        variance = windows.reshape(len(starts), block * blocks, -1).var(axis=1)
        return mean_where(variance, np.isfinite(variance), axis=1)

    def noise_variance(self, noise: PoseNoise, a: int, b: int) -> float:
        """Return the variance of a distance that noise of the markers alone would show.

        The position of a body is that of the mean of its markers.
        """
        return float(
            sum(
                noise.position_variance[body] * self.points[body].shape[1]
                for body in (a, b)
            )
        )

    def deviations(self, a: int, b: int, core: slice) -> Float[Array, " frame"]:
        """Return how far the distances are from their means over a core, in metres.

        Root mean square over the markers that are seen; NaN if none are.
        """
        distance = self.of_pair(a, b)
        in_core = distance[core]
        known = np.isfinite(in_core).any(axis=0)
        mean = np.nanmean(in_core[:, known], axis=0)
        square = (distance[:, known] - mean) ** 2
        return np.asarray(np.sqrt(mean_where(square, np.isfinite(square), axis=1)))
