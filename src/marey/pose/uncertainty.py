"""Uncertainty of joint angles over time, from the noise of markers and sensors."""

from typing import TYPE_CHECKING

import numpy as np

from marey.articulated.tables import make_nodes
from marey.articulated.targets import (
    TargetMatches,
    TargetNames,
    make_targets,
    marker_residuals,
    match_targets,
    recording_of,
)
from marey.motion import Motion
from marey.numerics import Array, Bool, Float
from marey.numerics.noise import SMOOTH_ORDER, trimmed_variance, white_difference
from marey.numerics.resampling import evenly_spaced, frame_blocks
from marey.numerics.thresholds import CERTAIN_SD, MIN_SAMPLES
from marey.pose.options import PoseOptions
from marey.take import Take, match_labels
from marey.tree import ancestors_of

if TYPE_CHECKING:
    from marey.articulated.kinematics_kernel import KinematicTree, PoseWorkspace
    from marey.articulated.targets_kernel import Targets


UNKNOWN_ANGLE_SD = np.pi / np.sqrt(3.0)
"""Standard deviation of an angle of which nothing is known, in radians: uniform over a
turn, as published for that distribution. An angle that is determined no better is
unobserved."""

WEAK_PRIOR = 0.1 / UNKNOWN_ANGLE_SD**2
"""Information on every angle beside that of the targets, in 1 / rad^2: so little that
an angle of which nothing is known stays unknown. Higher reports it as known. Chosen by
hand."""

MAX_WEIGHT = 1e6
"""Largest weight of a target beside that prior, in 1 / m^2 and 1 / rad^2. Weights above
it are scaled down together: the inverse of a block that targets leave undetermined has
errors of its condition number times rounding. Higher lets these in."""

SMALLEST_NOISE_M = float(np.sqrt(np.finfo(float).eps))
"""Noise of markers whose residuals are rounding only, in metres."""

SensorWeights = Float[Array, "attached 2"]
"""One over the variances of position (m) and rotation (rad) of every sensor."""

Weights = tuple[Float[Array, " marker"], SensorWeights]
"""One over the variance of every marker along an axis (m), and those of sensors."""


def angle_sd_of_targets(motion: Motion, take: Take) -> Float[Array, "frame joint 3"]:
    r"""Return the standard deviation of every joint rotation of fitted poses.

    For the joint rotation R the error is the rotation vector e, in the joint's frame,
    of :math:`R_\mathrm{true} = R \exp(e)`. The covariance of all unknowns of a frame is
    :math:`(J^T \Sigma^{-1} J)^{-1}` at the solved pose, the inverse of the Gauss-Newton
    normal matrix. The noise :math:`\Sigma` of the markers on a bone is that of their
    residuals, each with the degrees of freedom that the pose leaves it (leverage);
    that of sensors is their white noise. Residuals beyond `CERTAIN_SD` are outliers and
    do not count.

    Skin moves all markers of a bone together. This motion does not show in residuals
    and is not included. The uncertainty of the bones is not included either.

    Args:
        motion: Poses fitted to the take by any method.
        take: The recording.

    Returns:
        Radians about the x, y and z axes of the joint's frame, 0 about axes on which
        the joint cannot rotate, NaN where nothing that is seen determines the angle.
    """
    fitted = FittedTargets(motion, take)
    sensor_weight = _sensor_weights(take, fitted.matches)
    noise, outlier = fitted.estimate_noise(sensor_weight)
    scale, weights = _limit_weights((noise**-2.0, sensor_weight))
    sd = fitted.rotation_sd(weights, WEAK_PRIOR, outlier)
    sd *= np.sqrt(scale)
    return sd


def _limit_weights(weights: Weights) -> tuple[float, Weights]:
    """Return a factor, and the weights times it, of which none is above `MAX_WEIGHT`.

    Variances with these weights, times the factor, are those with the given ones.
    """
    largest = max(MAX_WEIGHT, *(values.max(initial=0.0) for values in weights))
    scale = MAX_WEIGHT / largest
    return scale, (scale * weights[0], scale * weights[1])


class FittedTargets:
    """The poses of a motion, and the markers and sensors that they were fitted to."""

    def __init__(self, motion: Motion, take: Take) -> None:
        self.motion, self.recording = motion, recording_of(take)
        self.nodes = make_nodes(motion.skeleton, limits=False)
        names = TargetNames.of(take)
        self.matches = match_targets(motion.skeleton, self.nodes, names)

    def rotation_sd(
        self,
        weights: Weights,
        prior: float,
        outlier: Bool[Array, "frame marker"] | None = None,
    ) -> Float[Array, "frame joint 3"]:
        """Return the standard deviations of `angle_sd_of_targets` for given variances.

        Frames are worked on in blocks: the poses of all nodes are as large as the take.

        Args:
            weights: Of matched markers and sensors.
            prior: Information on every angle beside the targets, in 1 / rad^2.
            outlier: Matched markers that do not count; none when left out.
        """
        # numba is slow to import
        from marey.articulated.covariance_kernel import write_rotation_variances

        tables, nodes = self._tables(weights), self.nodes
        sd = np.zeros((self.motion.n_frames, self.motion.skeleton.n_joints, 3))
        joints = nodes.moving_joints, nodes.first_node_of_joint, nodes.node_of_joint
        priors = np.full(len(nodes.tree.parent) + 1, prior)
        for frames in frame_blocks(self.motion.n_frames):
            points, sensors = (values[frames] for values in self.recording)
            if outlier is not None:
                points = points.copy()
                frame, marker = np.nonzero(outlier[frames])
                points[frame, self.matches.column[marker]] = np.nan
            pose, seen, variance = self._poses(frames), (points, sensors), sd[frames]
            write_rotation_variances(tables, seen, pose, priors, joints, variance)
            variance[:] = _mask_unknown(np.sqrt(np.maximum(variance, 0.0)))
        return sd

    def estimate_noise(
        self, sensor_weight: SensorWeights
    ) -> tuple[Float[Array, " marker"], Bool[Array, "frame marker"] | None]:
        r"""Return the noise of every marker along an axis, and which are outliers.

        The markers of a bone share their noise, :math:`s^2 = \sum r^2 / \sum (3 - h)`
        over a sample of frames, with residuals r and leverages h. One degree of freedom
        of the noise of all bones is added, for bones whose markers the pose follows
        exactly.
        """
        n_markers = len(self.matches.marker)
        residual_m = self._residuals()
        if not np.isfinite(residual_m).any():
            return np.ones(n_markers), None
        sample = evenly_spaced(self.motion.n_frames)
        rough = max(float(np.nanmedian(residual_m)), SMALLEST_NOISE_M)
        weights = np.full(n_markers, rough**-2.0), sensor_weight
        freedom = self._freedom(sample, _limit_weights(weights)[1])
        bone = self.motion.skeleton.marker_joint[self.matches.marker]
        noise = _pool(residual_m[sample], freedom, bone)
        outlier = residual_m > CERTAIN_SD * noise
        if not outlier.any():
            return noise, None
        residual_m[outlier] = np.nan
        return _pool(residual_m[sample], freedom, bone), outlier

    def _residuals(self) -> Float[Array, "frame marker"]:
        """Return the distance of every marker from its model position, in metres."""
        n_targets = len(self.matches.marker), len(self.matches.sensor)
        no_weights = np.zeros(n_targets[0]), np.zeros((n_targets[1], 2))
        tree, targets, _ = self._tables(no_weights)
        parts = (
            marker_residuals(targets, tree, self.recording[0][f], *self._poses(f))
            for f in frame_blocks(self.motion.n_frames)
        )
        return np.concatenate(list(parts))

    def _freedom(self, sample: slice, weights: Weights) -> Float[Array, "frame marker"]:
        """Return the degrees of freedom of every residual, 0 to 3, in some frames."""
        # numba is slow to import
        from marey.articulated.covariance_kernel import write_leverages

        tables, pose = self._tables(weights), self._poses(sample)
        points, sensors = (np.ascontiguousarray(x[sample]) for x in self.recording)
        leverage = np.zeros((len(points), len(weights[0])))
        prior = np.full(len(self.nodes.tree.parent) + 1, WEAK_PRIOR)
        write_leverages(tables, (points, sensors), pose, prior, leverage)
        return np.clip(3.0 - leverage, 0.0, 3.0)

    def _tables(
        self, weights: Weights
    ) -> "tuple[KinematicTree, Targets, PoseWorkspace]":
        """Return the tables that the kernels take, without limits of joints."""
        from marey.articulated.kinematics_kernel import make_workspace  # numba is slow

        nodes, skeleton = self.nodes, self.motion.skeleton
        targets = make_targets(skeleton, nodes, self.matches, *weights)
        return nodes.tree, targets, make_workspace(nodes.tree, *map(len, weights))

    def _poses(self, frames: slice) -> tuple[Array, Array]:
        """Return positions of the root and rotations of the nodes, for the kernels."""
        root = np.ascontiguousarray(self.motion.T_world_root[frames, :3, 3])
        q = self.nodes.node_rotations(self.motion.wxyz[frames])
        return root, np.ascontiguousarray(q)


def angle_sd_of_playback(motion: Motion, take: Take) -> Float[Array, "frame joint 3"]:
    r"""Return the standard deviation (rad) of every joint rotation of a playback.

    The rotation of a joint is that between two sensors, its own and the next one
    towards the root, so that :math:`\sigma^2 = \sigma_a^2 + \sigma_b^2` about every
    axis, with the white noise of their rotations.

    Returns:
        As `angle_sd_of_targets`; NaN for joints without a sensor, and where one of the
        two sensors is not seen.
    """
    skeleton = motion.skeleton
    variance = np.full((motion.n_frames, skeleton.n_joints), np.nan)
    column = match_labels(skeleton.sensor_names, take.sensor_names)
    noise = _rotation_noise(take.T_world_sensor)
    of_sensor = np.where(take.sensor_seen, noise**2, np.nan)
    matched = column >= 0
    variance[:, skeleton.sensor_joint[matched]] = of_sensor[:, column[matched]]
    total = variance.copy()
    has_sensor = np.isin(range(skeleton.n_joints), skeleton.sensor_joint[matched])
    for joint in range(1, skeleton.n_joints):
        above = [a for a in ancestors_of(skeleton.parent, joint)[1:] if has_sensor[a]]
        if above:
            total[:, joint] += variance[:, above[0]]
    total[:, ~skeleton.rotates] = 0.0
    return _mask_unknown(np.repeat(np.sqrt(total)[..., None], 3, axis=-1))


def _mask_unknown(sd: Float[Array, "frame joint 3"]) -> Float[Array, "frame joint 3"]:
    """Return standard deviations, NaN where they are those of an unknown angle."""
    return np.where(sd < UNKNOWN_ANGLE_SD, sd, np.nan)


def _pool(
    residual_m: Float[Array, "frame marker"],
    freedom: Float[Array, "frame marker"],
    bone: Array,
) -> Float[Array, " marker"]:
    """Return the noise (m) of each marker along an axis, pooled over its bone."""
    seen = np.isfinite(residual_m)
    square = np.where(seen, residual_m**2, 0.0).sum(axis=0)
    free = np.where(seen, freedom, 0.0).sum(axis=0)
    of_all = square.sum() / max(free.sum(), 1.0)
    of_bone = (np.bincount(bone, square) + of_all) / (np.bincount(bone, free) + 1.0)
    return np.asarray(np.sqrt(of_bone[bone]).clip(SMALLEST_NOISE_M))


def _sensor_weights(take: Take, matches: TargetMatches) -> SensorWeights:
    """Return one over the variances of position and rotation of every sensor."""
    T = take.T_world_sensor[:, matches.sensor_column]
    usual = PoseOptions()
    position = _white_noise(T[..., :3, 3], usual.sensor_sd)
    return np.stack([position, _rotation_noise(T)], axis=-1) ** -2.0


def _rotation_noise(T: Float[Array, "frame sensor 4 4"]) -> Float[Array, " sensor"]:
    """Return the white noise of rotations about each axis, in radians."""
    R = T[..., :3, :3].reshape(*T.shape[:2], 9)
    # A small rotation w changes the matrix by |w| sqrt(2), in the Frobenius norm.
    return _white_noise(R / np.sqrt(2.0), PoseOptions().rotation_sd)


def _white_noise(
    values: Float[Array, "frame sensor number"], usual: float
) -> Float[Array, " sensor"]:
    """Return the white noise of each sensor, per number and in its unit.

    Takes too short to show it get the usual one.
    """
    square = np.sum(white_difference(values, SMOOTH_ORDER) ** 2, axis=-1)
    noise = np.full(values.shape[1], usual)
    for sensor, of_sensor in enumerate(square.T):
        finite = of_sensor[np.isfinite(of_sensor)]
        if len(finite) >= MIN_SAMPLES:
            noise[sensor] = np.sqrt(trimmed_variance(finite))
    return noise.clip(SMALLEST_NOISE_M)
