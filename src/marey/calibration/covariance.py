"""Covariance of the calibrated joint offsets."""

import numpy as np
from jaxtyping import Float

from marey.calibration.noise_model import robust_covariance_factor
from marey.calibration.solver.bundle_adjustment import CalibrationFit
from marey.calibration.solver.levenberg_marquardt import reduced_equations, residuals

Array = np.ndarray

SOFT_TISSUE_SD_FACTOR = 1.5
"""Factor of standard deviations where soft tissue moves. Higher gives larger standard
deviations. Found on walks (CMU 02) with synthetic soft-tissue artefact of known size:
all frames together are worth a little less than one sample."""


def estimate_joint_covariance(
    fit: CalibrationFit,
) -> Float[Array, "segment segment 3 3"]:
    r"""Return the covariance of all pairs of joint offsets, in square metres.

    That of the root is zero.

    .. math:: \Sigma = c^2 \left(\frac{A_\mathrm{data}}{T\,\kappa}
                       + A_\mathrm{prior}\right)^{-1}

    The information A of the frames is divided by the weight T of the prior, so that all
    frames count as the samples they are worth, and by the factor :math:`\kappa` of the
    robust fit. The factor c goes from 1 (white noise) to `SOFT_TISSUE_SD_FACTOR`.
    """
    model, scale = fit.estimate.model, fit.estimate.parameters.marker_noise
    square, freedom = [], []
    for n, session in enumerate(residuals(fit.estimate)):
        relative = np.sum(session.vector**2, axis=-1) / scale[n] ** 2
        square.append(relative[session.seen])
        freedom.append(3.0 - fit.leverage[n][session.seen])
    factor = robust_covariance_factor(
        np.concatenate(square), np.concatenate(freedom), model.columns.count
    )
    equations = reduced_equations(
        fit.estimate,
        fit.initial.prior,
        prior_weight=1.0,
        damping=0.0,
        data_weight=1.0 / (fit.prior_weight * factor),
    )
    matrix = np.linalg.inv(equations.A)
    matrix *= fit.white_share + (1.0 - fit.white_share) * SOFT_TISSUE_SD_FACTOR**2
    matrix = 0.5 * (matrix + matrix.T)
    start = np.searchsorted(model.columns.shared, model.columns.joint_offset[1:])
    row = start[:, None] + np.arange(3)
    covariance = np.zeros((len(model.names), len(model.names), 3, 3))
    covariance[1:, 1:] = matrix[row[:, None, :, None], row[None, :, None, :]]
    for i, undetermined in fit.initial.undetermined.items():
        covariance[i, i] += undetermined
    return covariance
