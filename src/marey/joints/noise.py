"""How well the pose of each body is known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from marey.bodies import Bodies

Array = np.ndarray

# A smooth motion all but vanishes in its fourth difference; white noise stays, its
# variance multiplied by the sum of squares.
FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0])

# Windows of five frames looked at: enough to know a variance to about two per cent.
MOST_WINDOWS = 8192
FEWEST_WINDOWS = 8

# Of a chi-square with three degrees of freedom: its median, the place where the sums
# are cut off to keep out bursts and spikes, and the share of its mean left below.
MEDIAN = 2.36597
CUT = 12.0
SHARE = 0.97239


@dataclass(frozen=True, slots=True, eq=False)
class PoseNoise:
    """Noise of every body's pose, independent from frame to frame."""

    turn: Float[Array, "body 3 3"]
    """Covariance of the rotation vector w in R exp(w), body axes, in square radians."""

    shift: Float[Array, " body"]
    """Variance per axis of the position of `anchor`, in square metres."""

    anchor: Float[Array, "body 3"]
    """The point of the body where turn and shift are independent, in metres."""

    def scaled(self, factor: Float[Array, " body"]) -> "PoseNoise":
        """Return the noise with each body's variances multiplied by a factor."""
        turn = self.turn * factor[:, None, None]
        return replace(self, turn=turn, shift=self.shift * factor)

    def only(self, body: int) -> "PoseNoise":
        """Return the noise of one body."""
        one = [body]
        return PoseNoise(self.turn[one], self.shift[one], self.anchor[one])

    def shrinkage(self) -> Float[Array, "body 3 3"]:
        """Return how much each body's mean orientation is shortened by the noise."""
        return shrinkage(self.turn)

    def gap(
        self, pair: Int[Array, "pair 2"], u: Float[Array, "pair 6"]
    ) -> Float[Array, " pair"]:
        """Return the mean square gap that the noise leaves between two points.

        Args:
            pair: Bodies (a, b).
            u: The points in the two bodies, seen from their anchors.
        """
        square = np.zeros(len(pair))
        for body, point in zip(pair.T, (u[:, :3], u[:, 3:]), strict=True):
            C = self.turn[body]
            trace = np.trace(C, axis1=1, axis2=2)
            along = np.einsum("pi,pij,pj->p", point, C, point)
            # The trace of [x] C [x]^T.
            square += trace * np.sum(point**2, axis=1) - along
            square += 3.0 * self.shift[body]
        return square


def shrinkage(turn: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 3 3"]:
    """Return K of E[R exp(w)] = R K, to second order, for the covariance of w."""
    trace = np.trace(turn, axis1=-2, axis2=-1)[..., None, None]
    return np.asarray(np.eye(3) - 0.5 * (trace * np.eye(3) - turn))


def no_noise(n_bodies: int) -> PoseNoise:
    """Return the noise of bodies whose poses are exact."""
    zero = np.zeros(n_bodies)
    return PoseNoise(np.zeros((n_bodies, 3, 3)), zero, np.zeros((n_bodies, 3)))


def measure_noise(
    takes: Sequence[Bodies], *, noise: float | None, turn_noise: float | None
) -> PoseNoise:
    """Return the noise of every body's pose.

    For a body of three or more markers it follows from how far they are from rigid:
    the covariance of a rigid fit about their centroid. For any other body it is taken
    from what is left of the poses after four differences, spikes kept out.

    Args:
        takes: The bodies, in one or several takes.
        noise: Standard deviation per axis of a sensor's position or of a marker, in
            metres; None = measured.
        turn_noise: Standard deviation per axis of a sensor's orientation, in radians;
            None = measured.
    """
    n = len(takes[0].names)
    clusters = [_cluster(takes, body, noise) for body in range(n)]
    turn, shift, anchor = np.zeros((n, 3, 3)), np.zeros(n), np.zeros((n, 3))
    measured = np.zeros((2, n))
    open_ = [body for body, cluster in enumerate(clusters) if cluster is None]
    if open_ and (noise is None or turn_noise is None):
        measured[:, open_] = _left_after_differences(takes, open_)
    for body, cluster in enumerate(clusters):
        if cluster is not None:
            turn[body], shift[body], anchor[body] = cluster
            continue
        tilt = measured[0, body] if turn_noise is None else turn_noise**2
        turn[body] = tilt * np.eye(3)
        shift[body] = measured[1, body] if noise is None else noise**2
    return PoseNoise(turn, shift, anchor)


def _cluster(
    takes: Sequence[Bodies], body: int, noise: float | None
) -> tuple[Array, float, Array] | None:
    """Return turn covariance, shift variance and centroid of a body of markers."""
    first = takes[0]
    mine = (first.marker_body == body) & np.isfinite(first.marker_offset).all(axis=1)
    places = first.marker_offset[mine]
    count = len(places)
    if count < 3 or not first.determined[body]:
        return None
    off = np.array([take.rms[body] for take in takes])
    square = float(np.mean(off[np.isfinite(off)] ** 2)) if np.isfinite(off).any() else 0
    # Six of the 3 count coordinates go into the pose and leave no residual.
    variance = square * count / (3 * count - 6) if noise is None else noise**2
    centroid = places.mean(axis=0)
    arm = places - centroid
    inertia = np.sum(arm**2) * np.eye(3) - arm.T @ arm
    if np.linalg.eigvalsh(inertia)[0] < 1e-9 * np.trace(inertia):
        return None
    return variance * np.linalg.inv(inertia), variance / count, centroid


def _left_after_differences(
    takes: Sequence[Bodies], bodies: list[int]
) -> Float[Array, "2 body"]:
    """Return the variances per axis of orientation and position of some bodies."""
    turns, shifts = [], []
    budget = MOST_WINDOWS // len(takes)
    for take in takes:
        T = take.T_world_body[:, bodies]
        last = len(T) - len(FOURTH) + 1
        if last < 1:
            continue
        step = -(-last // budget)
        D = np.zeros_like(T[:last:step, :, :3])
        for k, c in enumerate(FOURTH / np.sqrt(np.sum(FOURTH**2))):
            D += c * T[k : k + last : step, :, :3]
        shifts.append(np.sum(D[..., 3] ** 2, axis=-1))
        turns.append(_turn_square(T[2 : 2 + last : step, :, :3, :3], D[..., :3]))
    n = len(bodies)
    return np.stack([_variance(turns, n), _variance(shifts, n)])


def _turn_square(R: Array, D: Array) -> Float[Array, "frame body"]:
    """Return |w|^2 of D = R [w], the part of a difference that is a turn."""
    square = np.zeros(R.shape[:2])
    for i, j in ((1, 2), (2, 0), (0, 1)):
        upper = np.sum(R[..., i] * D[..., j], axis=-1)
        lower = np.sum(R[..., j] * D[..., i], axis=-1)
        square += (0.5 * (lower - upper)) ** 2
    return square


def _variance(squares: list[Array], n_bodies: int) -> Float[Array, " body"]:
    """Return the variance per axis behind squared lengths, without the largest."""
    variance = np.zeros(n_bodies)
    rows = np.concatenate(squares) if squares else np.zeros((0, n_bodies))
    for body in range(n_bodies):
        column = rows[:, body][np.isfinite(rows[:, body])]
        if len(column) < FEWEST_WINDOWS:
            continue
        rough = float(np.median(column)) / MEDIAN
        kept = column[column <= CUT * rough]
        variance[body] = kept.mean() / (3.0 * SHARE) if len(kept) else rough
    return variance
