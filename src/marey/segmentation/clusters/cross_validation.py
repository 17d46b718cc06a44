"""How well the others of a body foretell where a marker is: a judge without truth.

It chooses between whole solutions. Splitting and merging by it does harm: where a body
has two or three markers the error is mostly the twist that they leave open.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from marey.segmentation.clusters.pair_log_odds import Members, Scales
from marey.segmentation.clusters.pair_statistics import PairStats, thinned

Array = np.ndarray

MOST_FRAMES = 150

OUTSIDERS = 0.02
"""Weight of markers of other bodies: enough to fix a turn that the own leave open."""

NEGLIGIBLE = 1e-4
"""Share of the largest weight below which a marker is left out."""

ENOUGH = 6
"""Mates that foretell a marker without the help of other bodies."""

ROUNDS = 3

KINSHIP = 0.1
"""How much the evidence of pairs counts beside the errors of foretelling."""


class Foretelling:
    """Errors of markers foretold from others, over a sample of the frames."""

    def __init__(
        self,
        takes: Sequence[Float[Array, "_ marker 3"]],
        stats: PairStats,
        scales: Scales,
        odds: Float[Array, "marker marker"],
    ) -> None:
        self._takes = [points[thinned(len(points), MOST_FRAMES)] for points in takes]
        spread = np.where(stats.known, stats.spread, np.inf)
        self._outside = OUTSIDERS / (1.0 + (spread / scales.noise) ** 2)
        self._noise = scales.noise
        self._odds = odds
        self._done: dict[tuple[int, bytes], float] = {}

    def cost(self, members: Members) -> float:
        """Return the sum of the log errors of all markers, less what evidence says."""
        return sum(self.body_cost(body) for body in members)

    def body_cost(self, body: Bool[Array, " marker"]) -> float:
        """Return what one body adds to the cost."""
        total = -0.5 * KINSHIP * float(np.sum(self._odds[np.ix_(body, body)]))
        for marker in np.flatnonzero(body).tolist():
            mates = body.copy()
            mates[marker] = False
            total += float(np.log(self._error(marker, mates) + self._noise))
        return total

    def _error(self, marker: int, mates: Array) -> float:
        key = (marker, mates.tobytes())
        if key not in self._done:
            self._done[key] = self._measure(marker, mates)
        return self._done[key]

    def _measure(self, marker: int, mates: Array) -> float:
        from marey.segmentation.clusters.cross_validation_kernel import stray

        weight = np.where(mates, 1.0, self._outside[marker])
        if mates.sum() >= ENOUGH:
            weight = mates.astype(float)
        weight[marker] = 0.0
        used = weight > NEGLIGIBLE * weight.max()
        parts = [
            stray(points[:, used], weight[used], points[:, marker], ROUNDS)
            for points in self._takes
        ]
        square, count = np.sum(parts, axis=0)
        return float(np.sqrt(square / count)) if count else 0.0


def soft_poses(
    points: Float[Array, "frame marker 3"], weight: Float[Array, " marker"]
) -> Float[Array, "frame 4 4"]:
    """Return poses that follow markers by their weights, whatever their shape does.

    NaN in frames where fewer than three markers were seen.
    """
    from marey.segmentation.clusters.cross_validation_kernel import (
        soft_poses as compiled,
    )

    poses: Array = compiled(points, weight, ROUNDS)
    return poses
