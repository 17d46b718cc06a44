"""Joints of bones between keypoints: the point that two bones share."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.joints.ball.pair_frames import center_gaps
from marey.numerics.noise import rms_length
from marey.numerics.procrustes import median_in_body


def set_keypoint_joints(takes: Sequence[Bodies], fits: JointFits) -> JointFits:
    r"""Return the joints, with the shared keypoint of two bones as their centre.

    The covariance of the two centres is :math:`\varepsilon^2 I` with their root mean
    square residual :math:`\varepsilon`: the error of a keypoint stays the same for
    long, so it does not average out over the frames.
    """
    T = np.concatenate([take.T_world_body for take in takes])
    points = np.concatenate([take.take.points for take in takes])
    center = np.stack([fits.center_a, fits.center_b], axis=1)
    residual, covariance = fits.residual.copy(), fits.covariance.copy()
    for row, pair in enumerate(fits.pair.tolist()):
        shared = np.flatnonzero(takes[0].shared[:, pair].all(axis=1))
        if len(shared) != 1 or not fits.fitted[row]:
            continue
        a, b = (median_in_body(T[:, body], points[:, shared])[0] for body in pair)
        if not np.isfinite([a, b]).all():
            continue
        center[row] = a, b
        residual[row] = rms_length(center_gaps(T, fits.pair[row], center[row]))
        covariance[row] = residual[row] ** 2 * np.eye(6)
    return replace(
        fits,
        center_a=center[:, 0],
        center_b=center[:, 1],
        residual=residual,
        covariance=covariance,
    )
