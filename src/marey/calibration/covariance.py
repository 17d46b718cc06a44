"""Covariance of the calibrated joint offsets."""

import numpy as np

from marey.calibration.model import STUDENT_T_DOF, Estimate, KinematicModel
from marey.calibration.moving_centers import follow_centers
from marey.calibration.shared_artefact import shared_artefact
from marey.calibration.solver.bundle_adjustment import CalibrationFit
from marey.calibration.solver.levenberg_marquardt import (
    frame_part,
    reduced_equations,
    residuals,
)
from marey.numerics import Array, Float
from marey.numerics.thresholds import FEW

SOFT_TISSUE_SD_FACTOR = 1.9
"""Factor of the errors of all frames together where soft tissue moves: they are worth a
quarter of a sample. Higher gives larger standard deviations where frames and not priors
decide. Chosen on generated people with four kinds of soft-tissue artefact; without any
one kind it is 1.9, too."""


def estimate_joint_covariance(
    fit: CalibrationFit,
) -> Float[Array, "segment segment 3 3"]:
    r"""Return the covariance of all pairs of joint offsets, in square metres.

    That of the root is zero.

    .. math:: \Sigma = A^{-1} (c^2 A_\mathrm{data} + A_\mathrm{prior}) A^{-1},
              \quad A = A_\mathrm{data} + A_\mathrm{prior}

    The information of the frames in :math:`A_\mathrm{data}` is divided by the weight T
    of the prior, so that all frames count as one sample, and by the factor
    :math:`\kappa` of the robust fit. Their errors are larger by a factor c, from 1
    (white noise) to `SOFT_TISSUE_SD_FACTOR`; those of the priors are not. This is the
    covariance of an estimate whose weights are not those of its errors. What is left of
    the frames' information by the artefact that all markers of a segment share stands
    for :math:`A_\mathrm{data}`, see `shared_artefact`. Centres may move here even where
    the fit keeps them fixed.
    """
    model, scale = fit.estimate.model, fit.estimate.parameters.marker_scale
    square, freedom = [], []
    for n, session in enumerate(residuals(fit.estimate)):
        precision = fit.estimate.poses[n].confidence / scale[n] ** 2
        relative = precision * np.sum(session.vector**2, axis=-1)
        n_axes = session.vector.shape[-1]
        square.append(relative[session.seen])
        freedom.append(n_axes - fit.leverage[n][session.seen])
    factor = _robust_covariance_factor(
        np.concatenate(square), np.concatenate(freedom), n_axes, model.columns.count
    )
    equations = reduced_equations(
        follow_centers(fit.estimate),
        fit.initial.prior,
        prior_weight=1.0,
        damping=0.0,
        data_weight=1.0 / (fit.prior_weight * factor),
        displacement=shared_artefact(fit),
    )
    frames, _ = frame_part(equations, model.columns)
    matrix = np.linalg.inv(equations.A)
    excess = (1.0 - fit.white_share) * (SOFT_TISSUE_SD_FACTOR**2 - 1.0)
    matrix += excess * matrix @ frames @ matrix.T
    matrix = 0.5 * (matrix + matrix.T)
    row = np.searchsorted(model.columns.shared, model.columns.joint_offset[1:])
    covariance = np.zeros((len(model.names), len(model.names), 3, 3))
    covariance[1:, 1:] = matrix[row[:, None, :, None], row[None, :, None, :]]
    for i, displacement in fit.initial.undetermined.items():
        missing = _missing_sd(covariance[i, i], displacement[0])
        _add_displacement(covariance, model, i, *(missing[:, None] * displacement))
    _add_center_motion(fit.estimate, covariance)
    return covariance


def _add_center_motion(
    estimate: Estimate, covariance: Float[Array, "segment segment 3 3"]
) -> None:
    """Add how far centres move; the axes of both bones are parallel at rest."""
    if not estimate.motion:
        return
    model, motion = estimate.model, estimate.parameters.center_motion
    moved = np.concatenate([one.in_parent(motion) for one in estimate.motion])
    for n, of_center in zip(model.moving_centers, moved.swapaxes(0, 1), strict=True):
        rms = of_center / np.sqrt(len(moved))
        _add_displacement(covariance, model, model.axes[n].child, rms, rms)


def _missing_sd(
    covariance: Float[Array, "3 3"], displacement: Float[Array, "displacement 3"]
) -> Float[Array, " displacement"]:
    """Return the share of each displacement that the covariance does not contain."""
    square = np.sum(displacement**2, axis=1)
    along = np.einsum("dx,xy,dy->d", displacement, covariance, displacement)
    return np.asarray(np.sqrt(np.maximum(1.0 - along / square**2, 0.0)))


def _add_displacement(
    covariance: Float[Array, "segment segment 3 3"],
    model: KinematicModel,
    segment: int,
    in_parent: Float[Array, "displacement 3"],
    in_segment: Float[Array, "displacement 3"],
) -> None:
    """Add that a joint is elsewhere: what the bone above gains, those below lose.

    Args:
        covariance: Covariances of all pairs of joint offsets; it is changed.
        model: The model.
        segment: The segment below the joint.
        in_parent: Independent displacements of one standard deviation, in metres.
        in_segment: The same in the frame of the segment.
    """
    above, cross = in_parent.T @ in_parent, in_parent.T @ in_segment
    covariance[segment, segment] += above
    for below in model.children(segment):
        covariance[below, below] += in_segment.T @ in_segment
        covariance[segment, below] -= cross
        covariance[below, segment] -= cross.T


def _robust_covariance_factor(
    square: Float[Array, " position"],
    freedom: Float[Array, " position"],
    n_axes: int,
    n_shared: int,
) -> float:
    r"""Return the ratio of the covariance of a robust fit to that of its weights.

    This is the asymptotic variance of an M-estimator,
    :math:`\mathrm{E}[\psi^2] / \mathrm{E}[\psi']^2`, for Student's t in three
    dimensions, relative to the inverse of the weighted normal matrix. Residuals are
    taken for at least a tenth of the assumed scale: markers that fit to the last digit
    do not determine joints to the last digit.

    Args:
        square: Squared residuals over the squared scale.
        freedom: Degrees of freedom of each position that the pose leaves, 0 to 3.
        n_axes: Coordinates of a position.
        n_shared: Parameters that all frames share.
    """
    w = (STUDENT_T_DOF + n_axes) / (STUDENT_T_DOF + square)
    total = float(w @ freedom)
    total *= max(1.0 - n_shared / max(float(freedom.sum()), 1.0), FEW)
    slope = w * (1.0 - 2.0 / n_axes * square / (STUDENT_T_DOF + square))
    if not total > 0.0:
        return 1.0
    ratio = float(w**2 @ square) / total * float(w.mean() / slope.mean()) ** 2
    return max(ratio, FEW**2)
