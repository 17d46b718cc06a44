"""Leave-one-out error of markers: each is predicted from the other markers of its body.

A criterion that needs no ground truth. It compares whole solutions, and merges dense
bodies. It is no good for splitting and merging sparse bodies: with two or three markers
the error is mostly the rotation that they leave undetermined.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from marey.numerics import Array, Bool, Float, Int, geometry
from marey.numerics.procrustes import points_in_body
from marey.numerics.resampling import symmetric_sample
from marey.numerics.robust import column_medians
from marey.numerics.thresholds import FEW, OUTLIER_SD, SAMPLE_FRAMES
from marey.segmentation.clusters.pair_statistics import (
    MIN_GAIN,
    MIN_RIGID_MARKERS,
    ROUNDING_M,
    Members,
    PairStats,
    members_of_labels,
)

OUTSIDE_WEIGHT = 0.02
"""Weight of markers of other bodies in a pose, relative to the body's markers: enough
to determine a rotation that the body's markers leave open. Higher lets other bodies
disturb it. Chosen by hand."""

TINY_WEIGHT = 1e-4
"""Weight, relative to the largest, that changes no pose which larger weights determine.
Guards poses that they leave open."""

N_POSE_ITERATIONS = 3
"""Number of alternations between shape and poses. Higher is slower. Chosen by hand."""

LOG_ODDS_WEIGHT = 0.1
"""Weight of the log odds of pairs beside the log prediction errors. Higher trusts pairs
of markers more than whole bodies. Chosen by hand."""

MIN_DENSITY = 5.0
"""Mean number of markers per body from which merges are tried. Lower merges bodies of
sparse sets wrongly. Chosen by hand."""


class PredictionErrors:
    """Leave-one-out errors of markers, over a sample of the frames, cached."""

    def __init__(
        self, takes: Sequence[Float[Array, "_ marker 3"]], stats: PairStats
    ) -> None:
        self._takes = [
            points[symmetric_sample(len(points), SAMPLE_FRAMES // 2)]
            for points in takes
        ]
        self._outside_weight = outside_weights(stats)
        self._errors: dict[bytes, Float[Array, " own"]] = {}

    def of_body(self, body: Bool[Array, " marker"]) -> Float[Array, " own"]:
        """Return the root mean square errors of a body's markers in metres."""
        key = body.tobytes()
        if key not in self._errors:
            is_large = body.sum() > 2 * MIN_RIGID_MARKERS
            squares = self._own_squares(body) if is_large else self._squares(body)
            total, count = np.array(squares)
            self._errors[key] = np.sqrt(total / np.maximum(count, 1))
        return self._errors[key]

    def _squares(self, body: Bool[Array, " marker"]) -> tuple[list[float], list[int]]:
        """Return sum and number of squared errors of markers predicted one by one.

        Markers of other bodies determine what the other markers of the body leave open.
        """
        sums, counts = [], []
        for marker in np.flatnonzero(body).tolist():
            weight = np.where(body, 1.0, self._outside_weight[marker])
            weight[marker] = 0.0
            used = weight > TINY_WEIGHT * weight.max()
            errors = [
                _deviations(
                    weighted_poses(points[:, used], weight[used]), points, marker
                )
                for points in self._takes
            ]
            sums.append(sum(float(np.sum(error**2)) for error in errors))
            counts.append(sum(map(len, errors)))
        return sums, counts

    def _own_squares(
        self, body: Bool[Array, " marker"]
    ) -> tuple[Float[Array, " own"], Int[Array, " own"]]:
        r"""Return sum and number of squared errors of markers of a large body.

        One pose of all its markers is enough: leaving out marker i enlarges its
        residual :math:`e_i` by its leverage (first order in :math:`e`),

        .. math:: (I - H_i)^{-1} e_i, \qquad
                  H_i = \tfrac{1}{n} I - [r_i]_\times J^{-1} [r_i]_\times

        with the position :math:`r_i` from the centre and the inertia :math:`J` of the
        :math:`n` markers. Where some are not seen, the others have more leverage.
        """
        sums, counts = np.zeros(body.sum()), np.zeros(body.sum(), dtype=int)
        for points in self._takes:
            own = points[:, body]
            T = weighted_poses(own, np.ones(own.shape[1]))
            local = points_in_body(T, own)
            shape = column_medians(local)
            known = np.isfinite(local[..., 0])
            leverage = _leverage(shape) / max(known.mean(), FEW)
            factor = np.linalg.pinv(np.eye(3) - leverage)
            errors = np.einsum("mij,fmj->fmi", factor, local - shape)
            sums += np.where(known[..., None], errors**2, 0.0).sum(axis=(0, 2))
            counts += known.sum(axis=0)
        return sums, counts


class LeaveOneOut:
    """Cost of bodies by the prediction errors and the log odds of their markers."""

    def __init__(
        self,
        errors: PredictionErrors,
        noise: float,
        odds: Float[Array, "marker marker"],
    ) -> None:
        self._errors = errors
        self._noise = noise
        self._log_odds = odds

    def cost(self, members: Members) -> float:
        """Return the cost of a solution: the sum over its bodies."""
        return sum(self.body_cost(body) for body in members)

    def body_cost(self, body: Bool[Array, " marker"]) -> float:
        """Return the log prediction errors of a body's markers, less its log odds."""
        pairs = np.ix_(body, body)
        log_odds = 0.5 * float(np.sum(self._log_odds[pairs]))
        errors = np.log(self._errors.of_body(body) + self._noise)
        return float(errors.sum()) - LOG_ODDS_WEIGHT * log_odds


def without_redundant_bodies(
    members: Members, errors: PredictionErrors
) -> Bool[Array, "fewer marker"]:
    """Return the bodies without those that other bodies explain better.

    A body is redundant if each of its markers is on another body as well, and all
    others of that one predict it better. Markers on the axis of a joint, such as the
    condyles of a knee and a point between them, keep their distances and yet are
    on two bodies. The one of largest ratio of the errors is left out first.
    """
    while len(members) > 1:
        gain = [_gain_without(body, members, errors) for body in range(len(members))]
        best = int(np.argmax(gain))
        if gain[best] <= 0.0:
            break
        members = np.delete(members, best, axis=0)
    return members


def _gain_without(body: int, members: Members, errors: PredictionErrors) -> float:
    """Return the least log ratio of the errors of a body's markers on it and others.

    -inf for a body that has a marker of its own.
    """
    shared = members & members[body]
    if not np.delete(shared, body, axis=0).any(axis=0)[members[body]].all():
        return -np.inf
    error = np.full(members.shape, np.inf)
    for other in np.flatnonzero(shared.any(axis=1)):
        error[other, members[other]] = errors.of_body(members[other])
    on_body = error[body, members[body]]
    elsewhere = np.delete(error, body, axis=0)[:, members[body]].min(axis=0)
    ratio = np.maximum(on_body, ROUNDING_M) / np.maximum(elsewhere, ROUNDING_M)
    return float(np.log(ratio).min())


def _deviations(
    T: Float[Array, "frame 4 4"], points: Float[Array, "frame marker 3"], marker: int
) -> Float[Array, "seen 3"]:
    """Return how far a marker is from its median position in the axes of poses."""
    local = points_in_body(T, points[:, [marker]])[:, 0]
    local = local[np.isfinite(local[:, 0])]
    return np.asarray(local - np.median(local, axis=0)) if len(local) else local


def _leverage(shape: Float[Array, "marker 3"]) -> Float[Array, "marker 3 3"]:
    """Return the share of each marker's residual that a rigid fit takes up."""
    known = np.isfinite(shape).all(axis=1)
    center = np.where(known[:, None], shape, 0.0).sum(axis=0) / max(known.sum(), 1)
    from_center = np.where(known[:, None], shape - center, 0.0)
    cross = geometry.hat(from_center)
    inverse = np.linalg.pinv(-(cross @ cross).sum(axis=0))
    return np.asarray(np.eye(3) / max(known.sum(), 1) - cross @ inverse @ cross)


def outside_weights(stats: PairStats) -> Float[Array, "marker marker"]:
    """Return the weight of each marker in the pose of another one's body.

    Smaller for a larger spread between the two.
    """
    return np.asarray(OUTSIDE_WEIGHT / (1.0 + (stats.known_spread / stats.noise) ** 2))


def weighted_poses(
    points: Float[Array, "frame marker 3"], weight: Float[Array, " marker"]
) -> Float[Array, "frame 4 4"]:
    """Return poses that follow weighted markers, whether or not these are rigid.

    Generalised Procrustes analysis: poses are fitted to a shape (Kabsch), and the shape
    is the mean over frames in these poses. The first shape is that of `_typical_frame`.
    NaN in frames that show fewer than three markers.
    """
    shape = points[_typical_frame(points, weight)]
    for _ in range(N_POSE_ITERATIONS - 1):
        T = geometry.kabsch(shape, points, weight)
        local = points_in_body(T, points)
        known = np.isfinite(local)
        with np.errstate(invalid="ignore"):
            shape = np.where(known, local, 0.0).sum(axis=0) / known.sum(axis=0)
    return geometry.kabsch(shape, points, weight)


def _typical_frame(
    points: Float[Array, "frame marker 3"], weight: Float[Array, " marker"]
) -> int:
    """Return the frame of median size, of those that show the largest weight.

    The size is the weighted sum of squared distances from the centre: neither the
    direction of time nor a motion of all markers decides.
    """
    seen = np.isfinite(points[..., 0]) * weight
    shown = seen.sum(axis=1)
    largest = shown.max()
    if largest == 0.0:
        return 0
    frames = np.flatnonzero(np.isclose(shown, largest))
    share = seen[frames] / shown[frames, None]
    some = np.nan_to_num(points[frames])
    center = np.einsum("fm,fmi->fi", share, some)
    size = np.einsum("fm,fmi,fmi->f", share, some, some) - np.sum(center**2, axis=1)
    return int(frames[np.argsort(size, kind="stable")[(len(size) - 1) // 2]])


def is_dense(labels: Int[Array, " marker"]) -> bool:
    """Return whether bodies have enough markers to try merges."""
    return len(labels) >= MIN_DENSITY * (int(labels.max(initial=0)) + 1)


def merge_clusters(
    labels: Int[Array, " marker"],
    stats: PairStats,
    criterion: LeaveOneOut,
) -> Int[Array, " marker"]:
    """Return the labels after all merges and moves that lower the cost.

    Greedy descent: each step makes the change of largest gain. Log odds of pairs count
    distance against markers that are far apart, which divides large bodies with many
    markers; spectral clustering misses the number of bodies. With three or more markers
    on each body, the leave-one-out error detects both. On sparse sets it does not, and
    is not used: a chest and hips that hardly move against each other predict each other
    well.
    """
    for _ in range(2 * len(labels)):
        better = _best_change(labels, stats, criterion)
        if better is None:
            return labels
        labels = np.unique(better, return_inverse=True)[1]
    return labels


def _best_change(
    labels: Int[Array, " marker"], stats: PairStats, criterion: LeaveOneOut
) -> Int[Array, " marker"] | None:
    """Return the labels after the change of largest gain; None if none gains."""
    cost = [criterion.body_cost(body) for body in members_of_labels(labels)]
    best_gain, best = MIN_GAIN, None
    for a, b, changed in _candidates(labels, stats):
        after = sum(criterion.body_cost(changed == body) for body in {a, b})
        gain = cost[a] + cost[b] - after
        if gain > best_gain:
            best_gain, best = gain, changed
    return best


def _candidates(
    labels: Int[Array, " marker"], stats: PairStats
) -> Iterator[tuple[int, int, Int[Array, " marker"]]]:
    """Yield two bodies and the labels after their merge, or after a move to the second.

    Bodies whose spread is hardly larger between than inside may merge. A marker may
    move to the other body of smallest median spread to it.
    """
    spread, bodies = stats.known_spread, members_of_labels(labels)
    size = bodies.sum(axis=1)
    large = np.flatnonzero(size >= MIN_RIGID_MARKERS)
    inside = {}
    for body in large.tolist():
        pairs = spread[np.ix_(bodies[body], bodies[body])]
        pairs = pairs[~np.eye(len(pairs), dtype=bool)]
        inside[body] = max(float(np.median(pairs)), stats.noise)
    for a, b in combinations(inside, 2):
        between = np.median(spread[np.ix_(bodies[a], bodies[b])])
        if between < OUTLIER_SD * max(inside[a], inside[b]):
            yield a, b, np.where(labels == b, a, labels)
    to_body = np.stack([np.median(spread[:, bodies[b]], axis=1) for b in large], axis=1)
    for marker, body in enumerate(labels.tolist()):
        to_other = np.where(large == body, np.inf, to_body[marker])
        nearest = int(np.argmin(to_other))
        own = max(float(np.median(spread[marker, bodies[body]])), stats.noise)
        if size[body] > MIN_RIGID_MARKERS and to_other[nearest] < OUTLIER_SD * own:
            other = int(large[nearest])
            moved = np.where(np.arange(len(labels)) == marker, other, labels)
            yield body, other, moved
