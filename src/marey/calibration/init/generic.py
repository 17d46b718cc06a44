"""Initialisations without landmarks: generic, and from a known skeleton.

Generic models are mechanisms, animals, and people whose markers have unknown labels.
"""

import numpy as np

from marey.anatomy.names import SHOULDER, both_sides
from marey.calibration.priors import (
    GAUGE_SD_M,
    Initialisation,
    Prior,
    add_symmetry_and_proportions,
)
from marey.calibration.problem import CalibrationProblem

MIN_CAMERA_NOISE_M = 1e-5
"""Smallest scale of a marker on a rigid body, in metres: no camera is more accurate.
Chosen by hand."""

JOINT_SD_OF_SIZE = 0.1
"""Standard deviation of an initial joint position, as a share of the size of the model.
Lower trusts the initial positions more. Chosen by hand."""

PERSON_JOINT_SD_M = 0.050
"""Standard deviation of an initial joint position of a person, in metres. Lower trusts
the initial positions more. Chosen by hand."""

FIXED_JOINT_SD_M, FIXED_AXIS_SD_RAD = 1e-6, 1e-3
"""Standard deviations of joints and axes that stay as they are, in metres and radians.
Chosen by hand."""

REPLACED_MARKER_SD_M = 0.050
"""Standard deviation of a marker's position when it is attached again, in metres. Lower
keeps markers nearer to their previous positions. Chosen by hand."""

SHOULDER_GIRDLE = both_sides(SHOULDER)
SHOULDER_GIRDLE_SD_M = 0.015
"""Standard deviation of the joint between chest and clavicle of a known skeleton, in
metres. Lower keeps it nearer to its previous position. Chosen by hand."""

FREE_AXIS_SD_RAD = 1.0
"""Standard deviation of the axis of a hinge before the fit, in radians: so wide that
it decides nothing. Chosen by hand."""


def init_generic(
    problem: CalibrationProblem, immobile: frozenset[int] = frozenset()
) -> Initialisation:
    """Return the parameters of the problem with weak priors around them.

    What the frames leave undetermined stays as it is. Along the axis of a hinge a joint
    is placed nearest to the joint before, so that the bone is as long as the distance
    of the axes. The bones of a person have symmetry and the usual proportions.

    Args:
        problem: What is calibrated.
        immobile: Segments that did not rotate relative to their parents; their joints
            stay.
    """
    model, parameters = problem.model, problem.parameters
    m = parameters.marker_offset[0]
    prior = Prior(model)
    rest = parameters.rest_markers()
    deviation = rest - rest.mean(axis=0)
    size = float(np.sqrt(np.mean(np.sum(deviation**2, axis=1)))) + 1e-3
    prior.add_gauge_constraints(m)
    prior.add_marker_priors(m, size)
    joint_sd = PERSON_JOINT_SD_M if problem.is_person else JOINT_SD_OF_SIZE * size
    for i in range(1, len(model.names)):
        fixed = i in immobile
        sd = FIXED_JOINT_SD_M if fixed else joint_sd
        prior.add_joint_prior(i, parameters.joint_offset[i], sd, constraint=fixed)
    if problem.is_person:
        add_symmetry_and_proportions(prior, mirror=False)
    undetermined = {i: size**2 * np.eye(3) for i in immobile}
    for n, hinge in enumerate(model.axes):
        a = parameters.axis[n, 0]
        undetermined[hinge.child] = size**2 * np.outer(a, a)
        prior.add_axis_prior(n, parameters, FREE_AXIS_SD_RAD)
        along_axis = [(model.columns.joint_offset[hinge.child], a[None])]
        prior.add(along_axis, np.zeros(1), GAUGE_SD_M, constraint=True)
    return Initialisation(
        problem, parameters, prior, MIN_CAMERA_NOISE_M, undetermined=undetermined
    )


def init_from_known_skeleton(problem: CalibrationProblem) -> Initialisation:
    """Return the parameters of the problem with fixed bones and free markers.

    Only the joints between chest and clavicles may move a little: they are no bone
    lengths, and a recording with little arm motion hardly determines them.
    """
    model, parameters = problem.model, problem.parameters
    m = parameters.marker_offset[0]
    prior = Prior(model)
    prior.add_marker_priors(m, REPLACED_MARKER_SD_M)
    for i, name in enumerate(model.names):
        offset = parameters.joint_offset[i]
        if name in SHOULDER_GIRDLE:
            prior.add_joint_prior(i, offset, SHOULDER_GIRDLE_SD_M)
        elif i > 0:
            prior.add_joint_prior(i, offset, FIXED_JOINT_SD_M, constraint=True)
    for n in range(len(model.axes)):
        prior.add_axis_prior(n, parameters, FIXED_AXIS_SD_RAD)
    return Initialisation(problem, parameters, prior, MIN_CAMERA_NOISE_M)
