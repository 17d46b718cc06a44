"""Likelihood ratio of a slip: all joint centres of a sensor change at one frame."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from marey.cleaning.arrays import Array, Frames, Poses, Values, Vectors
from marey.cleaning.outliers.runs import JUMP_RATIO
from marey.cleaning.slips import change_point
from marey.numerics import Bool, Float, Int, geometry
from marey.numerics.noise import median_variance, rms_length
from marey.numerics.thresholds import (
    FEW,
    MARKER_NOISE_M,
    MIN_SAMPLES,
    SAMPLE_FRAMES,
    SKIN_MOTION_M,
)

SLIP_ROTATION_SD = 0.2
"""Prior standard deviation of the rotation of a slip, in radians. It matters where
joints do not determine the rotation; higher allows larger ones. Chosen by hand."""

MIN_INFORMATION = 1e-9
"""Information per frame that is a rounding error."""

SKIN_GAIN_SD = 2.0 * SKIN_MOTION_M
"""Prior standard deviation of a coefficient of skin motion, in metres: `SKIN_MOTION_M`
per radian, as a component of a quaternion changes by half of the angle."""

Basis = Float[Array, "frame _"]
"""Functions of posture in every frame of the takes, the first of them constant."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class JointInSensor:
    r"""One joint in the axes of one of its sensors, over the frames that show both.

    The joint centre :math:`c_a` is constant there unless the sensor slips; then it is
    displaced by :math:`d` from some frame on. With the relative pose :math:`R_f, t_f`
    of the other body, both centres are the least-squares solution of
    :math:`c_a = R_f c_b + t_f`. That fit distributes a displacement over both centres;
    the likelihood ratio accounts for it.

    Skin moves a sensor with the posture of its joints. With functions of posture
    :math:`\phi_k, \psi_l` the centres are :math:`c_a + \sum_k \phi_k \alpha_k` and
    :math:`c_b + \sum_l \psi_l \beta_l`, with a ridge penalty on all
    :math:`\alpha_k, \beta_l`. What a change of posture explains is no slip.
    """

    frames: Int[Array, " seen"]
    """The frames used, ascending."""

    center: Float[Array, "3"]
    """The joint centre in the axes of the sensor, in metres."""

    residual: Float[Array, "seen 3"]
    """Residual of the fit over the whole take in the axes of the sensor, in metres."""

    rotation: Float[Array, "seen 3 3"]
    """Orientation of the other body in the axes of the sensor."""

    bases: tuple[Basis, Basis]
    """Functions of posture of the sensor and of the other body."""

    inverse_normal: Float[Array, "unknown unknown"]
    """Inverse of the normal matrix of both centres and all coefficients."""

    skin_rms: float
    """Rms of the fitted motion of the skin, in metres; 0 without functions of it."""

    variance: float
    """Long-run variance of the residual per axis, in square metres."""

    dof: float
    """Degrees of freedom of the variance."""

    @property
    def lever(self) -> Float[Array, "3 6"]:
        """Displacement of the centre by a small rotation and shift of the sensor."""
        return np.concatenate([geometry.hat(self.center), -np.eye(3)], axis=1)

    def estimate_displacement(
        self, frames: Frames
    ) -> tuple[Vectors, Float[Array, "time 3 3"]]:
        """Return the displacement of a slip at each frame, and its information.

        The displacement is in metres. The information is relative to `variance`, and
        zero if there are too few frames before or after the slip.
        """
        n = len(self.frames)
        first = np.searchsorted(self.frames, frames)
        residual = _sums_from(self.residual, first)
        count = (n - first).astype(float)
        design = self._design_sums(first)
        # Schur complement: the information left when all else is unknown.
        explained = design.swapaxes(1, 2) @ (self.inverse_normal @ design)
        information = count[:, None, None] * np.eye(3) - explained
        # If the bodies rotate only at that very frame, nothing determines a slip, and
        # what rounding leaves may be negative.
        lowest = np.linalg.eigvalsh(information)[:, :1, None]
        information += (MIN_INFORMATION * n - np.minimum(lowest, 0.0)) * np.eye(3)
        enough = np.minimum(count, n - count) >= 2
        information[~enough] = 0.0
        displacement = np.zeros((len(frames), 3))
        displacement[enough] = np.linalg.solve(
            information[enough], residual[enough][..., None]
        )[..., 0]
        return displacement, information

    def _design_sums(self, first: Frames) -> Float[Array, "time unknown 3"]:
        """Return the sums of the transposed design matrix from each index on."""
        a, b = (basis[self.frames] for basis in self.bases)
        n, n_b = b.shape
        rotated = (b[:, :, None] * self.rotation.reshape(n, 1, 9)).reshape(n, -1)
        sums_a = _sums_from(a, first)[:, :, None, None] * np.eye(3)
        sums_b = _sums_from(rotated, first).reshape(-1, n_b, 3, 3).swapaxes(2, 3)
        shape = len(first), -1, 3
        return np.concatenate([sums_a.reshape(shape), -sums_b.reshape(shape)], axis=1)

    def _change_of_unknowns(
        self, frame: int
    ) -> tuple[Float[Array, "3"], Float[Array, " unknown"], Float[Array, "3 3"]]:
        """Return the displacement of a slip, and the change of the other unknowns.

        Both in metres; the third is the information of the displacement, without unit:
        over the variance of the residual it is the inverse covariance.
        """
        displacement, information = self.estimate_displacement(np.array([frame]))
        design = self._design_sums(np.searchsorted(self.frames, [frame]))[0]
        change = self.inverse_normal @ (design @ displacement[0])
        return displacement[0], change, information[0]

    def change_of_center(
        self, frame: int
    ) -> tuple[Float[Array, "3"], Float[Array, "3"], Float[Array, "3 3"]]:
        """Return the joint centre before and after a slip at this frame, in metres.

        Also its information, the inverse of the covariance.
        """
        displacement, change, information = self._change_of_unknowns(frame)
        before = self.center - change[:3]
        return before, before + displacement, information / self.variance

    def deviations_around(
        self, frame: int, half: int
    ) -> tuple[Frames, Vectors, Float[Array, "3"]]:
        """Return frames near a slip, the centre there, and its lasting displacement.

        The position of the centre is relative to that before the slip, without the
        motion of the skin, in metres. Frames are counted from the slip.
        """
        displacement, change, _ = self._change_of_unknowns(frame)
        near = np.flatnonzero(np.abs(self.frames - frame) <= half)
        a, b = (basis[self.frames[near]] for basis in self.bases)
        explained = _predict(change, a, b, self.rotation[near])
        return self.frames[near] - frame, self.residual[near] + explained, displacement

    def slip_size(self, frame: int) -> float:
        """Return how far a slip at this frame displaces the centre, in metres."""
        displacement, _ = self.estimate_displacement(np.array([frame]))
        return float(np.linalg.norm(displacement[0]))

    def likelihood_ratio(self, frames: Frames) -> Values:
        """Return twice the log likelihood ratio of any displacement at each frame."""
        displacement, information = self.estimate_displacement(frames)
        square = np.einsum("ti,tij,tj->t", displacement, information, displacement)
        return np.asarray(square / self.variance)


def slip_likelihood_ratio(
    joints: Sequence[JointInSensor],
    correlation: Float[Array, "joint joint"],
    frames: Frames,
) -> tuple[Values, Values]:
    r"""Return twice the log likelihood ratio of a slip at each frame.

    A small rigid motion of the sensor displaces each of its joints, by its position.
    The second ratio is that of a t distribution, :math:`\nu \log(1 + x / \nu)`, because
    the variances have only :math:`\nu` degrees of freedom.

    Args:
        joints: All joints of one sensor.
        correlation: Correlation of their residuals, see `joint_correlation`.
        frames: First frames after the slip.

    Returns:
        The ratio as if joints were independent and their variances known, to compare
        sensors; and the ratio for the significance.
    """
    J = np.empty((len(joints), len(frames), 3, 6))
    y = np.empty((len(joints), len(frames), 3))
    for k, joint in enumerate(joints):
        displacement, information = joint.estimate_displacement(frames)
        root = np.linalg.cholesky(information / joint.variance).swapaxes(1, 2)
        J[k], y[k] = root @ joint.lever, (root @ displacement[..., None])[..., 0]
    independent, ratio = (
        _explained_by_motion(J, y, C) for C in (np.eye(len(joints)), correlation)
    )
    square = np.sum(y**2, axis=2) + 1e-12
    dof = square.sum(axis=0) / (
        np.array([1.0 / joint.dof for joint in joints]) @ square + 1e-18
    )
    return independent, np.asarray(dof * np.log1p(ratio / dof))


def _explained_by_motion(
    J: Float[Array, "joint time 3 6"],
    y: Float[Array, "joint time 3"],
    correlation: Float[Array, "joint joint"],
) -> Values:
    """Return how much of whitened displacements a motion of the sensor explains.

    Generalised least squares with a normal prior on the rotation.
    """
    weight = np.linalg.inv(correlation)
    A = np.einsum("jtia,jk,ktib->tab", J, weight, J, optimize=True)
    A[:, :3, :3] += np.eye(3) / SLIP_ROTATION_SD**2
    g = np.einsum("jtia,jk,kti->ta", J, weight, y, optimize=True)
    return np.asarray(np.sum(g * np.linalg.solve(A, g[..., None])[..., 0], axis=1))


def joint_correlation(joints: Sequence[JointInSensor]) -> Float[Array, "joint joint"]:
    """Return the correlation of the residuals of one sensor's joints.

    They share the noise of the sensor itself, about half of all. Without the
    correlation, sensors with many joints would have more false alarms. Steps between
    batch means are used, large ones shortened (Huber), with shrinkage to the identity.
    """
    frames = joints[0].frames
    for joint in joints[1:]:
        frames = np.intersect1d(frames, joint.frames, assume_unique=True)
    count = len(frames) // MIN_SAMPLES
    if len(joints) < 2 or count < 2 * MIN_SAMPLES:
        return np.eye(len(joints))
    steps = []
    for joint in joints:
        rows = np.searchsorted(joint.frames, frames[: count * MIN_SAMPLES])
        mean = joint.residual[rows].reshape(count, MIN_SAMPLES, 3).mean(axis=1)
        step = np.diff(mean, axis=0)
        size = np.linalg.norm(step, axis=1, keepdims=True)
        limit = 2.0 * np.median(size)
        steps.append((step * np.minimum(1.0, limit / np.maximum(size, 1e-300))).ravel())
    C = np.array(steps) @ np.array(steps).T
    scale = np.sqrt(np.maximum(np.diag(C), 1e-300))
    correlation = (1.0 - FEW) * C / np.outer(scale, scale)
    return np.asarray(correlation + FEW * np.eye(len(joints)))


def _sums_from(values: Float[Array, "seen k"], first: Array) -> Float[Array, "time k"]:
    """Return the sums of all values from each index on."""
    sums = np.zeros((len(values) + 1, values.shape[1]))
    np.cumsum(values[::-1], axis=0, out=sums[1:])
    return np.asarray(sums[len(values) - first])


def fit_joint_in_both(
    T_world_a: Poses, T_world_b: Poses, basis_a: Basis, basis_b: Basis
) -> tuple[JointInSensor, JointInSensor] | None:
    """Return a joint in the axes of both of its sensors; None without frames.

    Both get the smaller of the two variances, because a slip of one sensor looks like
    noise in the axes of the other.
    """
    a = fit_joint_in_sensor(T_world_a, T_world_b, (basis_a, basis_b))
    b = fit_joint_in_sensor(T_world_b, T_world_a, (basis_b, basis_a))
    if a is None or b is None:
        return None
    smaller = min(a, b, key=lambda joint: joint.variance)
    variance, dof = smaller.variance, smaller.dof
    return replace(a, variance=variance, dof=dof), replace(
        b, variance=variance, dof=dof
    )


def constant_basis(n_frames: int) -> Basis:
    """Return the basis of skin that does not move."""
    return np.ones((n_frames, 1))


def fit_joint_in_sensor(
    T_world_a: Poses, T_world_b: Poses, bases: tuple[Basis, Basis]
) -> JointInSensor | None:
    """Return the joint of two bodies in the axes of the first; None without frames.

    Frames with spikes of the residual are left out.

    Args:
        T_world_a: Poses of the sensor that may have slipped.
        T_world_b: Poses of the other.
        bases: Functions of posture of both, see `JointInSensor`.
    """
    frames = np.flatnonzero(np.isfinite(T_world_a + T_world_b).all(axis=(1, 2)))
    if len(frames) < 2:
        return None
    A, B = T_world_a[frames, :3], T_world_b[frames, :3]
    R_a_world = A[..., :3].swapaxes(1, 2)
    rotation = R_a_world @ B[..., :3]
    position = (R_a_world @ (B[..., 3:] - A[..., 3:]))[..., 0]
    return _fit_in_sensor(frames, position, rotation, bases)


def fit_marker_in_sensor(
    T_world_sensor: Poses, points: Vectors
) -> JointInSensor | None:
    """Return a marker in the axes of a sensor on its body; None without frames.

    It is constant there as a joint centre is, with no centre of its own in another
    body: the rotations of `JointInSensor` are zero.

    Args:
        T_world_sensor: Poses of the sensor that may have slipped.
        points: Positions of the marker in the world, in metres.
    """
    position = geometry.apply(geometry.inverse(T_world_sensor), points)
    frames = np.flatnonzero(np.isfinite(position).all(axis=1))
    if len(frames) < 2:
        return None
    still = constant_basis(len(position))
    rotation = np.zeros((len(frames), 3, 3))
    return _fit_in_sensor(frames, position[frames], rotation, (still, still))


def _fit_in_sensor(
    frames: Frames,
    position: Vectors,
    rotation: Float[Array, "seen 3 3"],
    bases: tuple[Basis, Basis],
) -> JointInSensor:
    """Return the centre, its residuals without spikes, and their long-run variance."""
    # The variance of the noise weights the prior of the motion of the skin.
    variance = MARKER_NOISE_M**2
    for _ in range(2):
        both = bases[0][frames], bases[1][frames]
        fit = _fit_centers(position, rotation, both, variance)
        kept = ~_find_spikes(fit.residual)
        frames, position, rotation = frames[kept], position[kept], rotation[kept]
        if max(basis.shape[1] for basis in bases) > 1:
            variance, _ = change_point.long_run_variance(fit.residual[kept])
    both = bases[0][frames], bases[1][frames]
    fit = _fit_centers(position, rotation, both, variance)
    joint = JointInSensor(
        frames=frames,
        center=fit.center,
        residual=fit.residual,
        rotation=rotation,
        bases=bases,
        inverse_normal=fit.inverse_normal,
        skin_rms=fit.skin_rms,
        variance=1.0,
        dof=np.inf,
    )
    variance, dof = change_point.long_run_variance(_residual_without_step(joint))
    minimum = change_point.ROUNDING_SD_M**2
    if variance < minimum:
        variance, dof = minimum, np.inf
    return replace(joint, variance=variance, dof=dof)


def _residual_without_step(joint: JointInSensor) -> Vectors:
    """Return the residual without its largest step, which is not noise, in metres."""
    n = len(joint.frames)
    margin = min(change_point.MIN_SIDE_FRAMES, (n - 1) // 2)
    stride = max(n // SAMPLE_FRAMES, 1)
    candidates = joint.frames[margin : n - margin : stride]
    best = candidates[joint.likelihood_ratio(candidates).argmax()]
    displacement = joint.estimate_displacement(np.array([best]))[0][0]
    after = joint.frames >= best
    return np.asarray(joint.residual - displacement * (after - after.mean())[:, None])


class _CenterFit(NamedTuple):
    """The centre of a joint, as in `JointInSensor`."""

    center: Float[Array, "3"]
    inverse_normal: Float[Array, "unknown unknown"]
    residual: Vectors
    skin_rms: float


def _fit_centers(
    position: Vectors,
    rotation: Float[Array, "seen 3 3"],
    bases: tuple[Float[Array, "seen _"], Float[Array, "seen _"]],
    variance: float,
) -> _CenterFit:
    """Return the centres and the coefficients of skin motion by ridge regression.

    Args:
        position: Position of the other body in the axes of the sensor, in metres.
        rotation: Its orientation.
        bases: Functions of posture of both.
        variance: Long-run variance of the noise, in square metres.
    """
    a, b = bases
    n, n_a, n_b = len(position), a.shape[1], b.shape[1]
    # The normal matrix of [a x I, -b x R], by blocks; R' R is a multiple of I.
    rotated = (b[:, :, None] * rotation.reshape(n, 1, 9)).reshape(n, -1)
    mixed = -(a.T @ rotated).reshape(n_a, n_b, 3, 3).swapaxes(1, 2)
    N = np.zeros((3 * (n_a + n_b), 3 * (n_a + n_b)))
    split = 3 * n_a
    N[:split, :split] = np.kron(a.T @ a, np.eye(3))
    N[:split, split:] = mixed.reshape(split, -1)
    N[split:, :split] = N[:split, split:].T
    square = np.sum(rotation**2, axis=(1, 2)) / 3.0
    N[split:, split:] = np.kron((b.T * square) @ b, np.eye(3))
    ridge = np.full(len(N), max(variance, MARKER_NOISE_M**2) / SKIN_GAIN_SD**2)
    ridge[:3] = ridge[split : split + 3] = 0.0
    N[np.diag_indices(len(N))] += ridge
    in_other = np.einsum("fji,fj->fi", rotation, position)
    g = np.concatenate([(a.T @ position).ravel(), -(b.T @ in_other).ravel()])
    inverse_normal = np.linalg.pinv(N, rcond=1e-9, hermitian=True)
    unknowns = inverse_normal @ g
    residual = position - _predict(unknowns, a, b, rotation)
    skin = np.where(ridge > 0.0, unknowns, 0.0)
    skin_rms = rms_length(_predict(skin, a, b, rotation))
    return _CenterFit(unknowns[:3], inverse_normal, residual, skin_rms)


def _predict(
    unknowns: Float[Array, " unknown"],
    a: Float[Array, "seen function_a"],
    b: Float[Array, "seen function_b"],
    rotation: Float[Array, "seen 3 3"],
) -> Vectors:
    """Return the product of the design matrix with centres and coefficients."""
    split = 3 * a.shape[1]
    in_other = b @ unknowns[split:].reshape(-1, 3)
    in_sensor = a @ unknowns[:split].reshape(-1, 3)
    return np.asarray(in_sensor - (rotation @ in_other[..., None])[..., 0])


def _find_spikes(residual: Vectors) -> Bool[Array, " seen"]:
    """Return which residuals are far from the median of five around them."""
    from scipy.ndimage import median_filter

    median = median_filter(residual, size=(5, 1), mode="mirror")
    square = np.sum((residual - median) ** 2, axis=1)
    variance = max(median_variance(square), MARKER_NOISE_M**2)
    return np.asarray(square > JUMP_RATIO**2 * variance)
