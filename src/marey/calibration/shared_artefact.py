r"""Soft-tissue artefact that all markers of a segment share.

Skin moves over a bone as a whole more than it changes its shape (Andersen et al. 2012,
Grimpampi et al. 2014), and with the rotation of the joints beside it (Bonci et al.
2014). No residual shows that, because it looks like another joint centre: a
displacement of :math:`B\varphi` for a rotation vector :math:`\varphi`, with independent
elements of B of standard deviation s, moves the centre that frames show by s along each
axis, however many there are and however far the joint rotates. So the frames measure
the centre o as that of the bone plus e, of variance

.. math:: s^2 = \kappa^2\,\frac{\tau_\mathrm{parent}^2 + \tau_\mathrm{child}^2}
                               {\mathrm{E}|\varphi|^2}

with the residuals :math:`\tau` of the markers of both segments that are not white, and
the rotation :math:`\varphi` from its mean. With the normal matrix A of the frames for
the parameters, the others eliminated, the information that remains is
:math:`(A^{-1} + \Sigma)^{-1} = P A` with :math:`P = (I + A \Sigma)^{-1}`.
"""

from dataclasses import replace

import numpy as np

from marey.anatomy.names import LOWER_ARM, LOWER_LEG, UPPER_ARM, UPPER_LEG
from marey.calibration.moving_centers import follow_centers
from marey.calibration.noise_model import rotation_spread
from marey.calibration.solver.bundle_adjustment import CalibrationFit
from marey.calibration.solver.levenberg_marquardt import (
    frame_part,
    reduced_equations,
    solve_step,
)
from marey.numerics import Array, Float

JOINTS = (UPPER_LEG, LOWER_LEG, UPPER_ARM, LOWER_ARM)
"""Names of the segments below hips, knees, shoulders and elbows, the joints beside the
muscles of thighs and upper arms. A spine has many joints and no one centre, and ankles
have little soft tissue."""

SHARED_OF_RESIDUAL = 2.0
"""Artefact that all markers of a segment share along each axis, over the residual that
they show. Higher trusts the motion less about joint centres, and priors more. Takes of
15 people agree alike from 1.6 to 6; with any one laboratory left out it is in there."""


def shared_artefact_variance(fit: CalibrationFit) -> Float[Array, " shared"]:
    """Return how far frames show each shared unknown elsewhere: a variance in m^2.

    It is zero but for the offsets of `JOINTS`, and for all that is no person: the
    priors of other skeletons know nothing that the frames do not.
    """
    model, parameters = fit.estimate.model, fit.estimate.parameters
    variance = np.zeros(len(model.columns.shared) + 1)
    if not fit.initial.problem.is_person:
        return variance
    square = parameters.marker_noise**2 - fit.initial.min_noise**2
    square = 3.0 * (1.0 - fit.white_share) * np.maximum(square, 0.0).mean(axis=0)
    count = np.bincount(model.marker_segment, minlength=len(model.names))
    total = np.bincount(model.marker_segment, square, len(model.names))
    artefact = total / np.maximum(count, 1)
    artefact += artefact[np.maximum(model.parent, 0)]
    artefact /= rotation_spread(fit.estimate)
    soft = [i for i, name in enumerate(model.names) if name.endswith(JOINTS)]
    row = np.searchsorted(model.columns.shared, model.columns.joint_offset[soft])
    variance[row] = SHARED_OF_RESIDUAL**2 * artefact[soft, None]
    return variance


def kept_share(
    frames: Float[Array, "shared shared"], variance: Float[Array, " shared"]
) -> Float[Array, "shared shared"]:
    """Return P, by which the information of frames is multiplied from the left.

    Args:
        frames: Normal matrix of the frames.
        variance: How far frames show each unknown elsewhere.
    """
    return np.asarray(np.linalg.inv(np.eye(len(variance)) + frames * variance))


def temper_shared_artefact(fit: CalibrationFit) -> CalibrationFit:
    """Return the fit after a step to the bones that frames show within this variance.

    At the least cost frames and priors pull a joint with equal force; with what is left
    of that of the frames it is elsewhere. Marker offsets and poses follow, so they are
    those of least cost with these bones.
    """
    variance = shared_artefact_variance(fit) / fit.prior_weight
    if not variance.any():
        return fit
    estimate = fit.estimate
    if fit.initial.fits_center_motion:
        estimate = follow_centers(estimate)
    equations = reduced_equations(estimate, fit.initial.prior, fit.prior_weight, 0.0)
    A, b = frame_part(equations, estimate.model.columns)
    lost = kept_share(A, variance) - np.eye(len(A))
    tempered = replace(equations, A=equations.A + lost @ A, b=equations.b + lost @ b)
    return replace(fit, estimate=solve_step(estimate, 0.0, tempered))
