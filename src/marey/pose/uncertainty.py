"""Uncertainty of joint angles over time, from the noise of markers and sensors."""

from typing import TYPE_CHECKING

import numpy as np

from marey.articulated.tables import Nodes, make_nodes
from marey.articulated.targets import (
    Recording,
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
from marey.skeleton import Skeleton
from marey.take import Take, match_labels

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


def angle_sd_of_targets(motion: Motion, take: Take) -> Float[Array, "frame joint 3"]:
    r"""Return the standard deviation of every joint rotation of fitted poses.

    For the joint rotation R the error is the rotation vector e, in the joint's frame,
    of :math:`R_\mathrm{true} = R \exp(e)`. The covariance of all unknowns of a frame is
    :math:`(J^T \Sigma^{-1} J)^{-1}` at the solved pose, the inverse of the Gauss-Newton
    normal matrix. The noise :math:`\Sigma` of the markers on a bone is that of their
    residuals, each with the degrees of freedom that the pose leaves it (leverage);
    that of sensors is their white noise. Residuals beyond `CERTAIN_SD` are outliers and
    do not count.

    What moves all markers of a bone alike, as skin does, does not show in residuals and
    is not included; nor is the uncertainty of the bones.

    Args:
        motion: Poses fitted to the take by any method.
        take: The recording.

    Returns:
        Radians about the x, y and z axes of the joint's frame, 0 about axes on which
        the joint cannot rotate, NaN where nothing that is seen determines the angle.
    """
    nodes = make_nodes(motion.skeleton, limits=False)
    matches = match_targets(motion.skeleton, nodes, TargetNames.of(take))
    weights = _sensor_weights(take, matches)
    recording = recording_of(take)
    noise, outlier = _noise_of_bones(motion, recording, matches, weights)
    scale, scaled = _limit_weights(noise**-2.0, weights)
    sd = rotation_sd(motion, recording, matches, *scaled, WEAK_PRIOR, outlier)
    sd *= np.sqrt(scale)
    return sd


def _limit_weights(
    weight: Float[Array, " marker"], sensor_weight: Float[Array, "attached 2"]
) -> tuple[float, tuple[Array, Array]]:
    """Return a factor, and the weights times it, of which none is above `MAX_WEIGHT`.

    Variances with these weights, times the factor, are those with the given ones.
    """
    largest = max(weight.max(initial=0.0), sensor_weight.max(initial=0.0), MAX_WEIGHT)
    scale = MAX_WEIGHT / largest
    return scale, (scale * weight, scale * sensor_weight)


def rotation_sd(
    motion: Motion,
    recording: Recording,
    matches: TargetMatches,
    weight: Float[Array, " marker"],
    sensor_weight: Float[Array, "attached 2"],
    prior: float,
    outlier: Bool[Array, "frame marker"] | None = None,
) -> Float[Array, "frame joint 3"]:
    """Return the standard deviations of `angle_sd_of_targets` for given variances.

    Frames are worked on in blocks: the poses of all nodes are as large as the take.

    Args:
        motion: The poses.
        recording: Markers and sensors, NaN where they do not count.
        matches: The targets that the skeleton and the recording share.
        weight: One over the variance of each marker along an axis, 1 / m^2.
        sensor_weight: The same of each sensor's position and rotation.
        prior: Information on every angle beside the targets, in 1 / rad^2.
        outlier: Matched markers that do not count; none when left out.
    """
    # numba is slow to import
    from marey.articulated.covariance_kernel import write_rotation_variances

    problem, nodes = _problem(motion.skeleton, matches, weight, sensor_weight)
    sd = np.zeros((motion.n_frames, motion.skeleton.n_joints, 3))
    joints = nodes.moving_joints, nodes.first_node_of_joint, nodes.node_of_joint
    priors = np.full(len(nodes.tree.parent) + 1, prior)
    for frames in frame_blocks(motion.n_frames):
        points, sensors = recording[0][frames], recording[1][frames]
        if outlier is not None:
            points = points.copy()
            frame, marker = np.nonzero(outlier[frames])
            points[frame, matches.column[marker]] = np.nan
        pose, variance = _node_pose(motion, nodes, frames), sd[frames]
        seen = points, sensors
        write_rotation_variances(problem, seen, pose, priors, joints, variance)
        variance[:] = _mask_unknown(np.sqrt(np.maximum(variance, 0.0)))
    return sd


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
        above = int(skeleton.parent[joint])
        while above >= 0 and not has_sensor[above]:
            above = int(skeleton.parent[above])
        if above >= 0:
            total[:, joint] += variance[:, above]
    total[:, ~skeleton.rotates] = 0.0
    return _mask_unknown(np.repeat(np.sqrt(total)[..., None], 3, axis=-1))


def _mask_unknown(sd: Float[Array, "frame joint 3"]) -> Float[Array, "frame joint 3"]:
    """Return standard deviations, NaN where they say no more than nothing would."""
    return np.where(sd < UNKNOWN_ANGLE_SD, sd, np.nan)


def _node_pose(motion: Motion, nodes: Nodes, frames: slice) -> tuple[Array, Array]:
    """Return positions of the root and rotations of the nodes, for the kernels."""
    root = np.ascontiguousarray(motion.T_world_root[frames, :3, 3])
    return root, np.ascontiguousarray(nodes.node_rotations(motion.wxyz[frames]))


def _problem(
    skeleton: Skeleton,
    matches: TargetMatches,
    weight: Float[Array, " marker"],
    sensor_weight: Float[Array, "attached 2"],
) -> "tuple[tuple[KinematicTree, Targets, PoseWorkspace], Nodes]":
    """Return the tables that the kernels take, without limits of joints."""
    from marey.articulated.kinematics_kernel import make_workspace  # numba is slow

    nodes = make_nodes(skeleton, limits=False)
    targets = make_targets(skeleton, nodes, matches, weight, sensor_weight)
    work = make_workspace(nodes.tree, len(weight), len(sensor_weight))
    return (nodes.tree, targets, work), nodes


def _noise_of_bones(
    motion: Motion,
    recording: Recording,
    matches: TargetMatches,
    sensor_weight: Float[Array, "attached 2"],
) -> tuple[Float[Array, " marker"], Bool[Array, "frame marker"] | None]:
    r"""Return the noise of every marker along an axis, and what are outliers.

    The markers of a bone share their noise, :math:`s^2 = \sum r^2 / \sum (3 - h)` over
    a sample of frames, with residuals r and leverages h. One degree of freedom of the
    noise of all bones is added, for bones whose markers the pose follows exactly.
    """
    residual_m = _residuals(motion, recording, matches, sensor_weight)
    if not np.isfinite(residual_m).any():
        return np.ones(len(matches.marker)), None
    sample = evenly_spaced(motion.n_frames)
    rough = max(float(np.nanmedian(residual_m)), SMALLEST_NOISE_M)
    part = recording[0][sample], recording[1][sample]
    weight = np.full(len(matches.marker), rough**-2.0)
    freedom = _freedom(motion, sample, part, matches, weight, sensor_weight)
    bone = motion.skeleton.marker_joint[matches.marker]
    noise = _pool(residual_m[sample], freedom, bone)
    outlier = residual_m > CERTAIN_SD * noise
    if not outlier.any():
        return noise, None
    residual_m[outlier] = np.nan
    return _pool(residual_m[sample], freedom, bone), outlier


def _residuals(
    motion: Motion,
    recording: Recording,
    matches: TargetMatches,
    sensor_weight: Float[Array, "attached 2"],
) -> Float[Array, "frame marker"]:
    """Return the distance of every marker from its model position, in metres."""
    unit = np.ones(len(matches.marker))
    (tree, targets, _), nodes = _problem(motion.skeleton, matches, unit, sensor_weight)
    parts = (
        marker_residuals(
            targets, tree, recording[0][frames], *_node_pose(motion, nodes, frames)
        )
        for frames in frame_blocks(motion.n_frames)
    )
    return np.concatenate(list(parts))


def _freedom(
    motion: Motion,
    sample: slice,
    recording: Recording,
    matches: TargetMatches,
    weight: Float[Array, " marker"],
    sensor_weight: Float[Array, "attached 2"],
) -> Float[Array, "frame marker"]:
    """Return the degrees of freedom of every residual, 0 to 3, in some frames."""
    # numba is slow to import
    from marey.articulated.covariance_kernel import write_leverages

    _, weights = _limit_weights(weight, sensor_weight)
    problem, nodes = _problem(motion.skeleton, matches, *weights)
    pose = _node_pose(motion, nodes, sample)
    points, sensors = map(np.ascontiguousarray, recording)
    leverage = np.zeros((len(pose[0]), len(weight)))
    prior = np.full(len(nodes.tree.parent) + 1, WEAK_PRIOR)
    write_leverages(problem, (points, sensors), pose, prior, leverage)
    return np.clip(3.0 - leverage, 0.0, 3.0)


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


def _sensor_weights(take: Take, matches: TargetMatches) -> Float[Array, "attached 2"]:
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
