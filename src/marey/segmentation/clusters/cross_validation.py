"""Leave-one-out error of markers: each is predicted from the other markers of its body.

A criterion that needs no ground truth. It compares whole solutions. It is no good for
splitting and merging sparse bodies: with two or three markers the error is mostly the
rotation that they leave undetermined.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from marey.segmentation.clusters.pair_log_odds import Members, Scales
from marey.segmentation.clusters.pair_statistics import PairStats, evenly_spaced

Array = np.ndarray

MAX_FRAMES = 150
"""Number of frames of a take that are predicted. Higher is slower. Chosen by hand."""

OUTSIDE_WEIGHT = 0.02
"""Weight of markers of other bodies in a pose, relative to the body's markers: enough
to determine a rotation that the body's markers leave open. Chosen by hand."""

MIN_RELATIVE_WEIGHT = 1e-4
"""Weight, relative to the largest, below which a marker is left out. Lower is slower.
Chosen by hand."""

MIN_OWN_MARKERS = 6
"""Number of markers that predict another one of their body without markers of other
bodies. Chosen by hand."""

N_POSE_ITERATIONS = 3
"""Number of alternations between shape and poses. Higher is slower. Chosen by hand."""

LOG_ODDS_WEIGHT = 0.1
"""Weight of the log odds of pairs beside the log prediction errors. Chosen by hand."""


class LeaveOneOut:
    """Prediction errors of markers, over a sample of the frames, cached."""

    def __init__(
        self,
        takes: Sequence[Float[Array, "_ marker 3"]],
        stats: PairStats,
        scales: Scales,
        odds: Float[Array, "marker marker"],
    ) -> None:
        self._takes = [
            points[evenly_spaced(len(points), MAX_FRAMES)] for points in takes
        ]
        self._outside_weight = outside_weights(stats.known_spread, scales)
        self._noise = scales.noise
        self._log_odds = odds
        self._errors: dict[tuple[int, bytes], float] = {}

    def cost(self, members: Members) -> float:
        """Return the cost of a solution: the sum over its bodies."""
        return sum(self.body_cost(body) for body in members)

    def body_cost(self, body: Bool[Array, " marker"]) -> float:
        """Return the log prediction errors of a body's markers, less its log odds."""
        pairs = np.ix_(body, body)
        total = -0.5 * LOG_ODDS_WEIGHT * float(np.sum(self._log_odds[pairs]))
        for marker in np.flatnonzero(body).tolist():
            others = body.copy()
            others[marker] = False
            total += float(np.log(self._error(marker, others) + self._noise))
        return total

    def _error(self, marker: int, others: Bool[Array, " marker"]) -> float:
        """Return the root mean square error of a marker in metres, cached."""
        key = (marker, others.tobytes())
        if key not in self._errors:
            self._errors[key] = self._predict(marker, others)
        return self._errors[key]

    def _predict(self, marker: int, others: Bool[Array, " marker"]) -> float:
        from marey.segmentation.clusters.cross_validation_kernel import (
            prediction_error,
        )

        weight = np.where(others, 1.0, self._outside_weight[marker])
        if others.sum() >= MIN_OWN_MARKERS:
            weight = others.astype(float)
        weight[marker] = 0.0
        used = weight > MIN_RELATIVE_WEIGHT * weight.max()
        sums = [
            prediction_error(
                points[:, used], weight[used], points[:, marker], N_POSE_ITERATIONS
            )
            for points in self._takes
        ]
        square, count = np.sum(sums, axis=0)
        return float(np.sqrt(square / count)) if count else 0.0


def outside_weights(
    spread: Float[Array, "*marker"], scales: Scales
) -> Float[Array, "*marker"]:
    """Return the weights of markers of other bodies: smaller for a larger spread."""
    return np.asarray(OUTSIDE_WEIGHT / (1.0 + (spread / scales.noise) ** 2))


def weighted_poses(
    points: Float[Array, "frame marker 3"], weight: Float[Array, " marker"]
) -> Float[Array, "frame 4 4"]:
    """Return poses that follow weighted markers, whether or not these are rigid.

    Generalised Procrustes analysis, a few iterations. NaN in frames that show fewer
    than three markers.
    """
    from marey.segmentation.clusters import cross_validation_kernel

    poses: Array = cross_validation_kernel.weighted_poses(
        points, weight, N_POSE_ITERATIONS
    )
    return poses
