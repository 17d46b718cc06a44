"""Noise of every marker, and the share of it that is white."""

from collections.abc import Sequence

import numpy as np

from marey.calibration.init.poses import initial_poses
from marey.calibration.model import Estimate, ModelParameters
from marey.calibration.solver.levenberg_marquardt import fit_poses, residuals
from marey.numerics import Array, Float, geometry

MIN_ALL_WHITE_SHARE = 0.75
"""An estimated white share from this on is taken for 1. A few hundred pairs of frames
do not estimate it better, and the rest would still reduce the weight of each frame.
Higher reduces it more often. Chosen by hand."""

TINY_FREEDOM = 1e-9
"""Smallest number of degrees of freedom by which is divided."""

TINY_ANGLE_RAD = 1e-4
"""Smallest rms angle of a joint, in radians, by which is divided."""

MAX_ROUNDING_M = 1e-6
"""Residuals below this, rms in metres, are rounding and count as white. Not their
median: of exact markers most fit, and those of a knee that is no perfect joint do not.
Chosen by hand."""

POOLING = 0.3
"""Weight of the median variance of all markers, as a share of the marker's own number
of coordinates. Higher makes markers more equal. Chosen by hand."""


def estimate_marker_noise(
    estimate: Estimate, leverage: tuple[Float[Array, "_ marker"], ...], min_noise: float
) -> Float[Array, "session marker"]:
    r"""Return the scale of every marker in every session, in metres.

    .. math:: \sigma_k^2 = \frac{\sum_f w_{fk}\,|r_{fk}|^2 + a\,n_k\,\sigma_0^2}
                                {\sum_f (3 - h_{fk}) + a\,n_k}

    over the `KinematicModel.freedom` of its coordinates, with robust weights w, n
    coordinates, and a share a = `POOLING` of the median
    variance :math:`\sigma_0^2` of all markers. The pose absorbs the leverage h of every
    residual. Without that correction the markers of segments that have few would seem
    more accurate in every round.

    Args:
        estimate: Parameters and poses, with the present scales.
        leverage: Leverage of every marker in every frame, 0 to 3.
        min_noise: Smallest scale of a marker, in metres.
    """
    scale = estimate.parameters.marker_scale
    squares, freedom, count = np.zeros((3, *scale.shape))
    for session, (vector, weight, _) in enumerate(residuals(estimate)):
        seen, n_axes = weight > 0.0, vector.shape[-1]
        relative_weight = weight * scale[session] ** 2
        squares[session] = np.sum(relative_weight * np.sum(vector**2, axis=-1), axis=0)
        freedom[session] = np.sum(
            np.where(seen, n_axes - leverage[session], 0.0), axis=0
        )
        count[session] = n_axes * seen.sum(axis=0)
    variance = squares / np.maximum(freedom, TINY_FREEDOM)
    # The median, because one marker with a wrong label must not change the others.
    pooled = float(np.median(variance[count > 0.0]))
    prior = POOLING * count
    variance = (squares + prior * pooled) / np.maximum(freedom + prior, TINY_FREEDOM)
    variance = np.where(count > 0.0, variance, pooled) / estimate.model.freedom
    return np.asarray(np.sqrt(np.maximum(variance, min_noise**2)))


def white_share(
    parameters: ModelParameters, pairs: Sequence[Float[Array, "_ 2 marker _"]]
) -> float:
    r"""Return the share of the residual variance that is white noise, 0 to 1.

    .. math:: \phi = \frac{\mathrm{E}\,|r_{f+1} - r_f|^2 / 2}{\mathrm{E}\,|r_f|^2}

    Camera noise is independent in consecutive frames; soft-tissue artefact hardly
    changes between them. Residuals are in the frame of the segment. Means are used and
    not medians: where one limb moves at a time, most markers show only noise, and the
    few that move are those that determine the joints. Outliers have the same weight as
    in the fit.

    Args:
        parameters: The parameters of the model.
        pairs: Per session, pairs of consecutive frames.
    """
    step, size, weights = 0.0, 0.0, np.zeros(2)
    for session, points in enumerate(pairs):
        session_parameters = parameters.of_session(session)
        poses = initial_poses(session_parameters, points.reshape(-1, *points.shape[2:]))
        estimate = fit_poses(Estimate(session_parameters, (poses,)))
        ((vector, weight, _),) = residuals(estimate)
        R = estimate.poses[0].R_world_segment[:, parameters.model.marker_segment]
        vector = np.where(weight[..., None] > 0.0, vector, 0.0)
        local = np.einsum("fkji,fkj->fki", R, vector)
        local = local.reshape(*points.shape[:3], 3)
        weight = weight.reshape(points.shape[:3])
        pair_weight = weight.prod(axis=1) * session_parameters.marker_scale**2
        change = np.diff(local, axis=1)[:, 0]
        step += float(np.sum(pair_weight * np.sum(change**2, axis=-1)))
        size += float(np.sum(weight * np.sum(local**2, axis=-1)))
        weights += pair_weight.sum(), weight.sum()
    if not weights[0] or size < MAX_ROUNDING_M**2 * weights[1]:
        return 1.0
    share = 0.5 * step / weights[0] / (size / weights[1])
    return float(min(share / MIN_ALL_WHITE_SHARE, 1.0))


def mean_relative_rotations(estimate: Estimate) -> Float[Array, "segment 3 3"]:
    """Return the mean R_parent_segment of every segment, over all frames of all takes.

    The mean is the rotation nearest to the arithmetic mean of the matrices.
    """
    R = np.concatenate([session.R_world_segment for session in estimate.poses])
    parent = np.maximum(estimate.model.parent, 0)
    total = np.einsum("fsji,fsjk->sik", R[:, parent], R)
    return geometry.nearest_rotation(total)


def rotation_spread(estimate: Estimate) -> Float[Array, " segment"]:
    """Return the mean square angle of every segment from its mean rotation, in rad^2.

    The rotation is that relative to the parent; angles are at least `TINY_ANGLE_RAD`.
    """
    R = np.concatenate([session.R_world_segment for session in estimate.poses])
    parent = np.maximum(estimate.model.parent, 0)
    mean = mean_relative_rotations(estimate)
    trace = np.einsum("fsji,fsjk,sik->fs", R[:, parent], R, mean, optimize=True)
    angle = np.arccos(np.clip(0.5 * (trace - 1.0), -1.0, 1.0))
    return np.asarray(np.maximum(np.mean(angle**2, axis=0), TINY_ANGLE_RAD**2))
