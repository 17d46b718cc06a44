"""Joint centres that move once: the likelihood ratio at every frame."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.cleaning.slips.long_run_variance import long_run_variance
from marey.numerics import geometry

Array = np.ndarray

# Standard deviation per frame below which gaps are rounding, in metres.
ROUNDING = 1e-6

USUAL_TURN = 0.2
"""How far sensors turn when they slip, in radians, where joints do not tell."""

# Gaps this many standard deviations away from those around them have no say.
SPIKE = 8.0

# Frames of a batch, and the fewest batches, from which correlations are taken; and how
# much of each is put down to chance.
BATCH, FEWEST_BATCHES, MIX = 8, 20, 0.1

# Information per frame that is none: rounding.
EMPTY = 1e-9

# Frames at which the largest step is looked for.
MOST_TIMES = 400

# Standard deviation that spikes are measured by at least, in metres.
HARMLESS = 1e-4

# Median of a chi-square with three degrees of freedom.
MEDIAN = 2.36597


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One joint seen from one of its bodies, over the frames that show both.

    In the axes of that body the joint stands still, at `center`, unless the body's
    sensor slips: then it stands at `center` plus a shift from some frame on. The fit of
    the whole take spreads that over everything it may choose, the other centre too;
    the likelihood ratio below takes this into account.
    """

    rows: Int[Array, " seen"]
    """The frames used, ascending."""

    center: Float[Array, "3"]
    gap: Float[Array, "seen 3"]
    """What the fit of the whole take leaves, in the axes of the body."""

    turn: Float[Array, "seen 3 3"]
    """Orientation of the other body, in the axes of this one."""

    normal: Float[Array, "6 6"]
    """Inverse of the normal equations of both centres."""

    variance: float
    """Long-run variance of the gap per axis, in square metres."""

    freedoms: float
    """How well the variance is known, in degrees of freedom."""

    def at(
        self, frames: Int[Array, " time"]
    ) -> tuple[Float[Array, "time 3"], Float[Array, "time 3 3"]]:
        """Return the likeliest shift if it came at each frame, and its information.

        The information is per `variance`; zero where one side has too few frames.
        """
        n = len(self.rows)
        first = np.searchsorted(self.rows, frames)
        gap = _sums_from(self.gap, first)
        turn = _sums_from(self.turn.reshape(n, 9), first).reshape(-1, 3, 3)
        count = (n - first).astype(float)
        both = np.empty((len(frames), 6, 3))
        both[:, :3] = count[:, None, None] * np.eye(3)
        both[:, 3:] = -turn.swapaxes(1, 2)
        information = both[:, :3] - both.swapaxes(1, 2) @ self.normal @ both
        # Where the bodies turned once, at that very frame, nothing tells a shift.
        information += EMPTY * n * np.eye(3)
        enough = np.minimum(count, n - count) >= 2
        information[~enough] = 0.0
        shift = np.zeros((len(frames), 3))
        shift[enough] = np.linalg.solve(information[enough], gap[enough][..., None])[
            ..., 0
        ]
        return shift, information

    def ends(self, frame: int) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        """Return the joint before and after a shift at this frame."""
        shift = self.at(np.array([frame]))[0][0]
        after = self.rows >= frame
        both = np.concatenate(
            [after.sum() * np.eye(3), -self.turn[after].sum(axis=0).T]
        )
        before = self.center - (self.normal @ both @ shift)[:3]
        return before, before + shift

    def statistic(self, frames: Int[Array, " time"]) -> Float[Array, " time"]:
        """Return twice the log likelihood ratio of any shift at each frame."""
        shift, information = self.at(frames)
        square = np.einsum("ti,tij,tj->t", shift, information, shift)
        return np.asarray(square / self.variance)


def evidence(
    sides: Sequence[Side], together: Float[Array, "side side"], frames: Int[Array, " t"]
) -> tuple[Float[Array, " t"], Float[Array, " t"]]:
    """Return twice the log likelihood ratio of a slip at each frame.

    A sensor that moves by a small rigid motion shifts all its joints at once, each by
    where it is.

    Args:
        sides: All joints of one sensor, seen from it.
        together: Correlation of their gaps, see `correlation_of`.
        frames: First frames of the new place.

    Returns:
        The ratio as if joints were independent and their variances known, by which
        sensors compare; and the true one, whose variances are estimates: that of a t
        distribution.
    """
    J, y = (
        np.empty((len(sides), len(frames), 3, 6)),
        np.empty((len(sides), len(frames), 3)),
    )
    for k, side in enumerate(sides):
        shift, information = side.at(frames)
        root = np.linalg.cholesky(information / side.variance).swapaxes(1, 2)
        arm = np.concatenate([geometry.hat(side.center), -np.eye(3)], axis=1)
        J[k], y[k] = root @ arm, (root @ shift[..., None])[..., 0]
    plain, ratio = (_explained(J, y, C) for C in (np.eye(len(sides)), together))
    own = np.sum(y**2, axis=2) + 1e-12
    doubt = np.array([1.0 / side.freedoms for side in sides]) @ own + 1e-18
    freedoms = own.sum(axis=0) / doubt
    return plain, np.asarray(freedoms * np.log1p(ratio / freedoms))


def _explained(
    J: Float[Array, "side t 3 6"],
    y: Float[Array, "side t 3"],
    C: Float[Array, "side side"],
) -> Float[Array, " t"]:
    """Return how much of whitened shifts a motion of the sensor explains."""
    known = np.linalg.inv(C)
    A = np.einsum("jtia,jk,ktib->tab", J, known, J, optimize=True)
    A[:, :3, :3] += np.eye(3) / USUAL_TURN**2
    g = np.einsum("jtia,jk,kti->ta", J, known, y, optimize=True)
    return np.asarray(np.sum(g * np.linalg.solve(A, g[..., None])[..., 0], axis=1))


def correlation_of(sides: Sequence[Side]) -> Float[Array, "side side"]:
    """Return how far the gaps of one sensor's joints go together.

    They share the noise of the sensor itself, about half of all; without this, a
    sensor with many joints would seem to slip for nothing.
    """
    rows = sides[0].rows
    for side in sides[1:]:
        rows = np.intersect1d(rows, side.rows, assume_unique=True)
    count = len(rows) // BATCH
    if len(sides) < 2 or count < FEWEST_BATCHES:
        return np.eye(len(sides))
    steps = []
    for side in sides:
        gap = side.gap[np.searchsorted(side.rows, rows[: count * BATCH])]
        step = np.diff(gap.reshape(count, BATCH, 3).mean(axis=1), axis=0)
        size = np.linalg.norm(step, axis=1, keepdims=True)
        limit = 2.0 * np.median(size)
        steps.append((step * np.minimum(1.0, limit / np.maximum(size, 1e-300))).ravel())
    C = np.array(steps) @ np.array(steps).T
    scale = np.sqrt(np.maximum(np.diag(C), 1e-300))
    return np.asarray(
        MIX * np.eye(len(sides)) + (1.0 - MIX) * C / np.outer(scale, scale)
    )


def freedoms_of(sides: Sequence[Side]) -> int:
    """Return how many numbers of a sensor's motion its joints can tell."""
    return {0: 0, 1: 3, 2: 5}.get(len(sides), 6)


def _sums_from(values: Float[Array, "seen k"], first: Array) -> Float[Array, "time k"]:
    """Return the sums of all values from each place on."""
    sums = np.zeros((len(values) + 1, values.shape[1]))
    np.cumsum(values[::-1], axis=0, out=sums[1:])
    return np.asarray(sums[len(values) - first])


def sides_of(
    T_world_a: Float[Array, "frame 4 4"], T_world_b: Float[Array, "frame 4 4"]
) -> tuple[Side, Side] | None:
    """Return a joint as either of its bodies sees it; None without frames.

    Both get the same variance, the smaller: a slip of the one sensor, seen from the
    other, may look like noise.
    """
    a, b = side_of(T_world_a, T_world_b), side_of(T_world_b, T_world_a)
    if a is None or b is None:
        return None
    calm = min(a, b, key=lambda side: side.variance)
    return (
        replace(a, variance=calm.variance, freedoms=calm.freedoms),
        replace(b, variance=calm.variance, freedoms=calm.freedoms),
    )


def side_of(
    T_world_a: Float[Array, "frame 4 4"], T_world_b: Float[Array, "frame 4 4"]
) -> Side | None:
    """Return the joint of two bodies as seen from the first; None without frames.

    Args:
        T_world_a: The body whose sensor may have slipped.
        T_world_b: The other.
    """
    both = np.isfinite(T_world_a).all(axis=(1, 2)) & np.isfinite(T_world_b).all(
        axis=(1, 2)
    )
    rows = np.flatnonzero(both)
    if len(rows) < 2:
        return None
    A, B = T_world_a[rows, :3], T_world_b[rows, :3]
    back = A[..., :3].swapaxes(1, 2)
    turn = back @ B[..., :3]
    place = (back @ (B[..., 3:] - A[..., 3:]))[..., 0]
    kept = np.ones(len(rows), dtype=bool)
    for _ in range(2):
        center, normal, gap = _fitted(place[kept], turn[kept])
        alone = _isolated(gap)
        if not alone.any():
            break
        kept[np.flatnonzero(kept)[alone]] = False
    else:
        center, normal, gap = _fitted(place[kept], turn[kept])
    side = Side(rows[kept], center, gap, turn[kept], normal, 1.0, np.inf)
    variance, freedoms = long_run_variance(_without_step(side))
    if variance < ROUNDING**2:
        variance, freedoms = ROUNDING**2, np.inf
    return replace(side, variance=variance, freedoms=freedoms)


def _without_step(side: Side) -> Float[Array, "seen 3"]:
    """Return the gaps without their largest step, which is no noise."""
    n = len(side.rows)
    times = side.rows[n // 50 : n - n // 50 : max(n // MOST_TIMES, 1)]
    best = times[side.statistic(times).argmax()]
    shift = side.at(np.array([best]))[0][0]
    after = side.rows >= best
    return np.asarray(side.gap - shift * (after - after.mean())[:, None])


def _fitted(
    place: Float[Array, "seen 3"], turn: Float[Array, "seen 3 3"]
) -> tuple[Array, Array, Array]:
    """Return the joint in the first body, the inverse normal matrix and the gaps."""
    n, total = len(place), turn.sum(axis=0)
    A = np.empty((6, 6))
    A[:3, :3], A[:3, 3:], A[3:, :3] = n * np.eye(3), -total, -total.T
    A[3:, 3:] = np.einsum("fji,fjk->ik", turn, turn)
    right = np.concatenate([place.sum(axis=0), -np.einsum("fji,fj->i", turn, place)])
    normal = np.linalg.pinv(A, rcond=1e-9, hermitian=True)
    u = normal @ right
    gap = place - u[:3] + turn @ u[3:]
    return u[:3], normal, gap


def _isolated(gap: Float[Array, "seen 3"]) -> Bool[Array, " seen"]:
    """Return which gaps stand far out from those around them."""
    from scipy.ndimage import median_filter

    away = np.sum((gap - median_filter(gap, size=(5, 1), mode="mirror")) ** 2, axis=1)
    usual = float(np.median(away)) / MEDIAN
    return np.asarray(away > SPIKE**2 * max(usual, HARMLESS**2))
