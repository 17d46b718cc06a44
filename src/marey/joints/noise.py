"""Measurement noise of the pose of each body."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from marey.bodies import Bodies
from marey.joints.ball.normal_equations import FRAMES_PER_CHUNK
from marey.numerics import Array, Bool, Float, Int
from marey.numerics.noise import SMOOTH_ORDER, trimmed_variance, white_difference
from marey.numerics.thresholds import FEW, MIN_SAMPLES

FALSE_ALARM_RATE = 1e-3
"""Probability of taking pure noise for motion, or for a take that differs. Higher calls
fewer joints fixed, fewer joints hinges, and reports more takes. Chosen by hand."""

MIN_INERTIA_SHARE = 1e-9
"""Smallest eigenvalue of the inertia of a body's markers over its trace. Below it the
markers are on a line and leave one rotation undetermined. Chosen by hand."""

MIN_INFORMATION_SHARE = FEW
"""Smallest share of the apparent information about a joint centre that is taken as
real; noise of the orientations may have produced the rest. A higher share gives
smaller covariances where a joint hardly moves."""


@dataclass(frozen=True, slots=True, eq=False)
class BodyNoise:
    """Noise of the pose of one body; the fields are those of `PoseNoise`."""

    rotation_covariance: Float[Array, "3 3"]
    position_variance: float
    anchor: Float[Array, " 3"]


@dataclass(frozen=True, slots=True, eq=False)
class PoseNoise:
    """Noise of every body's pose."""

    rotation_covariance: Float[Array, "body 3 3"]
    """Covariance of the rotation vector w in R exp(w), body axes, in square radians."""

    position_variance: Float[Array, " body"]
    """Variance per axis of the position of `anchor`, in square metres."""

    anchor: Float[Array, "body 3"]
    """The point of the body, in its own axes, at which the noise of the position and
    that of the rotation are independent; in metres. For a marker body it is the
    centroid of the markers, for a sensor the origin."""

    white_only: Bool[Array, " body"]
    """Whether noise that is correlated from frame to frame is left out, as differences
    over time leave it out."""

    def scale(self, factor: Float[Array, " body"]) -> "PoseNoise":
        """Return the noise with each body's variances multiplied by a factor."""
        return replace(
            self,
            rotation_covariance=self.rotation_covariance * factor[:, None, None],
            position_variance=self.position_variance * factor,
        )

    def of_body(self, body: int) -> BodyNoise:
        """Return the noise of one body."""
        covariance, variance = self.rotation_covariance[body], self.position_variance
        return BodyNoise(covariance, float(variance[body]), self.anchor[body])

    def mean_square_residual(
        self, pair: Int[Array, "pair 2"], u: Float[Array, "pair 6"]
    ) -> Float[Array, " pair"]:
        r"""Return the expected squared residual of joints between noisy bodies.

        For centres x at the anchors' distance the sum over both bodies of

        .. math:: \mathrm{tr}([x]_\times C [x]_\times^T) + 3 \sigma^2,

        with the rotation covariance C and the position variance of each body; in
        square metres.

        Args:
            pair: Bodies (a, b).
            u: Joint centres (center_a, center_b) relative to the bodies' anchors.
        """
        square = np.zeros(len(pair))
        for body, point in zip(pair.T, (u[:, :3], u[:, 3:]), strict=True):
            C = self.rotation_covariance[body]
            trace = np.trace(C, axis1=1, axis2=2)
            along = np.einsum("pi,pij,pj->p", point, C, point)
            # tr([x] C [x]^T) = tr(C) |x|^2 - x^T C x.
            square += trace * np.sum(point**2, axis=1) - along
            square += point.shape[1] * self.position_variance[body]
        return square


def rotation_shrinkage(
    rotation_covariance: Float[Array, "*batch 3 3"],
) -> Float[Array, "*batch 3 3"]:
    r"""Return the factor K by which noise shrinks a mean rotation.

    To second order in the noise w, a rotation vector with covariance C,

    .. math:: E[R \exp(w)] = R K, \quad K = I - (\mathrm{tr}(C) I - C) / 2,

    because :math:`\exp(w) = I + [w]_\times + [w]_\times^2 / 2 + \dots` and
    :math:`[w]_\times^2 = w w^T - |w|^2 I`.
    """
    identity = np.eye(3)
    trace = np.einsum("...ii->...", rotation_covariance)[..., None, None]
    return np.asarray(identity - 0.5 * (trace * identity - rotation_covariance))


def estimate_pose_noise(
    takes: Sequence[Bodies],
    *,
    noise: float | None = None,
    turn_noise: float | None = None,
) -> PoseNoise:
    """Return the noise of every body's pose.

    For a body of three or more markers the noise follows from the residual of its
    rigid fit: with the marker variance s^2, the covariance of the rotation is s^2
    times the inverse inertia of the markers about their centroid, and the variance of
    the centroid is s^2 over their number. For any other body the noise is what remains
    of its poses in the fourth difference over time, without spikes.

    Args:
        takes: The bodies, in one or several takes.
        noise: Standard deviation per axis of a sensor's position or of a marker, in
            metres; None = estimated.
        turn_noise: Standard deviation per axis of a sensor's orientation, in radians;
            None = estimated.
    """
    n = len(takes[0].names)
    from_markers = [_marker_body_noise(takes, body, noise) for body in range(n)]
    rotation, position, anchor = np.zeros((n, 3, 3)), np.zeros(n), np.zeros((n, 3))
    estimated = np.zeros((2, n))
    sensors = [body for body, found in enumerate(from_markers) if found is None]
    if sensors and (noise is None or turn_noise is None):
        estimated[:, sensors] = _fourth_difference_variances(takes, sensors)
    for body, found in enumerate(from_markers):
        if found is not None:
            rotation[body], position[body], anchor[body] = found
            continue
        variance = estimated[0, body] if turn_noise is None else turn_noise**2
        rotation[body] = variance * np.eye(3)
        position[body] = estimated[1, body] if noise is None else noise**2
    white_only = np.array([found is None for found in from_markers])
    white_only &= noise is None or turn_noise is None
    return PoseNoise(rotation, position, anchor, white_only)


def _marker_body_noise(
    takes: Sequence[Bodies], body: int, noise: float | None
) -> tuple[Array, float, Array] | None:
    """Return rotation covariance, position variance and centroid of a marker body.

    None for a body of fewer than three markers, or of markers on a line.
    """
    first = takes[0]
    on_body = (first.marker_body == body) & np.isfinite(first.marker_offset).all(axis=1)
    offsets = first.marker_offset[on_body]
    count = len(offsets)
    if not count or not first.determined[body]:
        return None
    centroid = offsets.mean(axis=0)
    arm = offsets - centroid
    inertia = np.sum(arm**2) * np.eye(3) - arm.T @ arm
    if np.linalg.eigvalsh(inertia)[0] <= MIN_INERTIA_SHARE * np.trace(inertia):
        return None
    rms = np.array([take.rms[body] for take in takes])
    square = float(np.mean(rms[np.isfinite(rms)] ** 2)) if np.isfinite(rms).any() else 0
    # The pose uses up six of the degrees of freedom, rotation and position.
    freedom = offsets.size - 2 * len(centroid)
    variance = square * count / freedom if noise is None else noise**2
    return variance * np.linalg.inv(inertia), variance / count, centroid


def _fourth_difference_variances(
    takes: Sequence[Bodies], bodies: list[int]
) -> Float[Array, "2 body"]:
    """Return the variances per axis of the orientations and positions of some bodies.

    In square radians and square metres.
    """
    rotations, positions = [], []
    windows_per_take = FRAMES_PER_CHUNK // len(takes)
    for take in takes:
        T = take.T_world_body[:, bodies]
        last = len(T) - SMOOTH_ORDER
        if last < 1:
            continue
        step = -(-last // windows_per_take)
        D = white_difference(T[:, :, :3], SMOOTH_ORDER, step)
        positions.append(np.sum(D[..., 3] ** 2, axis=-1))
        rotations.append(_squared_angle(T[2 : 2 + last : step, :, :3, :3], D[..., :3]))
    if not positions:
        return np.zeros((2, len(bodies)))
    squares = np.stack([np.concatenate(rotations), np.concatenate(positions)])
    variance = [[trimmed_variance(x) for x in of_kind.T] for of_kind in squares]
    return np.where(np.isfinite(squares).sum(axis=1) < MIN_SAMPLES, 0.0, variance)


def _squared_angle(R: Array, D: Array) -> Float[Array, "frame body"]:
    """Return |w|^2 of the rotation vector w in D = R [w]."""
    square = np.zeros(R.shape[:2])
    for i, j in ((1, 2), (2, 0), (0, 1)):
        upper = np.sum(R[..., i] * D[..., j], axis=-1)
        lower = np.sum(R[..., j] * D[..., i], axis=-1)
        square += (0.5 * (lower - upper)) ** 2
    return square
