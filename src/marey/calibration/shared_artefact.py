r"""Soft-tissue artefact that all markers of a segment share.

Skin moves over a bone as a whole more than it changes its shape (Andersen et al. 2012,
Grimpampi et al. 2014), and with the rotation of the joints beside it (Bonci et al.
2014). No residual shows that, because it looks like another joint centre: a
displacement of :math:`B\varphi` for a rotation vector :math:`\varphi`, with independent
elements of B of standard deviation s, moves the centre that frames show by s along each
axis, however many there are and however far the joint rotates. So the frames measure
the centre as that of the bone plus e, of variance

.. math:: s^2 = \kappa^2\,\frac{\tau_\mathrm{parent}^2 + \tau_\mathrm{child}^2}
                               {\mathrm{E}|\varphi|^2}

with the residuals :math:`\tau` of the markers of both segments that are not white, and
the rotation :math:`\varphi` from its mean. At the mean rotation nothing else moves: in
the segment below, whose origin is the centre, markers and further joints lie by e the
other way. A knee that seems higher shortens the thigh and lengthens the shank. That
holds in the equations of the frames, before marker offsets and the motion of centres
are eliminated; else the priors of these would keep what the frames do not know.
"""

from dataclasses import replace

import numpy as np

from marey.anatomy.names import LOWER_ARM, LOWER_LEG, UPPER_ARM, UPPER_LEG
from marey.calibration.moving_centers import follow_centers
from marey.calibration.noise_model import rotation_spread
from marey.calibration.solver.bundle_adjustment import CalibrationFit
from marey.calibration.solver.levenberg_marquardt import (
    ReducedEquations,
    reduced_equations,
    solve_step,
)
from marey.numerics import Array, Float

JOINTS = (UPPER_LEG, LOWER_LEG, UPPER_ARM, LOWER_ARM)
"""Names of the segments below hips, knees, shoulders and elbows, the joints beside the
muscles of thighs and upper arms. A spine has many joints and no one centre, and ankles
have little soft tissue."""

SHARED_OF_RESIDUAL = 1.32
"""Artefact that all markers of a segment share along each axis, over the residual that
they show. Higher trusts the motion less about joint centres, and priors more. Takes of
14 people agree best from 2 to 2.8 with any one laboratory left out, and hardly worse
from 1.4; more than 1.34 moves ankles of one walk by a millimetre with its static."""


def shared_artefact_variance(fit: CalibrationFit) -> Float[Array, " segment"]:
    """Return how far frames show the joint of each segment elsewhere: variances in m^2.

    They are zero but for `JOINTS`, and for all that is no person: the priors of other
    skeletons know nothing that the frames do not.
    """
    model, parameters = fit.estimate.model, fit.estimate.parameters
    if not fit.initial.problem.is_person:
        return np.zeros(len(model.names))
    square = parameters.marker_noise**2 - fit.initial.min_noise**2
    square = 3.0 * (1.0 - fit.white_share) * np.maximum(square, 0.0).mean(axis=0)
    count = np.bincount(model.marker_segment, minlength=len(model.names))
    total = np.bincount(model.marker_segment, square, len(model.names))
    artefact = total / np.maximum(count, 1)
    artefact += artefact[np.maximum(model.parent, 0)]
    artefact /= rotation_spread(fit.estimate)
    soft = [name.endswith(JOINTS) for name in model.names]
    return np.where(soft, SHARED_OF_RESIDUAL**2 * artefact, 0.0)


def shared_artefact(fit: CalibrationFit) -> Float[Array, "all displacement"] | None:
    """Return how far frames show all unknowns elsewhere; None if they do not.

    The columns are independent displacements of one standard deviation, in metres: each
    joint along the axes of its parent, with what is below it at the mean rotation. The
    rows are the columns of a session, then the motion of centres, which stays.
    """
    model, parameters = fit.estimate.model, fit.estimate.parameters
    sd = np.sqrt(shared_artefact_variance(fit))
    joints = np.flatnonzero(sd).tolist()
    if not joints:
        return None
    columns = model.columns
    D = np.zeros((columns.count + parameters.center_motion.size, len(joints), 3))
    for n, i in enumerate(joints):
        in_segment = sd[i] * parameters.mean_rotation[i].T
        D[columns.joint_offset[i], n] = sd[i] * np.eye(3)
        D[columns.joint_offset[model.children(i)], n] = -in_segment
        D[columns.marker_offset[model.markers_of(i)], n] = -in_segment
    return D.reshape(len(D), -1)


def temper_shared_artefact(fit: CalibrationFit) -> CalibrationFit:
    """Return the fit after a step to the bones that frames show within this artefact.

    At the least cost frames and priors pull a joint with equal force; with what is left
    of that of the frames it is elsewhere. One more step of marker offsets and poses
    follows, so they are those of least cost with these bones.
    """
    displacement = shared_artefact(fit)
    if displacement is None:
        return fit
    fit, as_shown = _linearise(fit)
    _, tempered = _linearise(fit, displacement / np.sqrt(fit.prior_weight))
    of_bones = replace(as_shown, A=tempered.A, b=tempered.b)
    fit = replace(fit, estimate=solve_step(fit.estimate, 0.0, of_bones))
    fit, adapted = _linearise(fit)
    still = replace(adapted, A=np.eye(len(adapted.b)), b=np.zeros_like(adapted.b))
    return replace(fit, estimate=solve_step(fit.estimate, 0.0, still))


def _linearise(
    fit: CalibrationFit,
    displacement: Float[Array, "all displacement"] | None = None,
) -> tuple[CalibrationFit, ReducedEquations]:
    """Return the fit with centres at its poses, and its equations.

    Args:
        fit: The fit.
        displacement: By how much frames show all unknowns elsewhere, if they do.
    """
    if fit.initial.fits_center_motion:
        fit = replace(fit, estimate=follow_centers(fit.estimate))
    return fit, reduced_equations(
        fit.estimate,
        fit.initial.prior,
        fit.prior_weight,
        damping=0.0,
        displacement=displacement,
    )
