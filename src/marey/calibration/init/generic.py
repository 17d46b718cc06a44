"""Initialisations without landmarks: generic, and from a known skeleton.

Generic models are mechanisms, animals, and people whose markers have unknown labels.
"""

import numpy as np

from marey.calibration.init.initialisation import Initialisation
from marey.calibration.init.person_priors import add_symmetry_and_proportions
from marey.calibration.model import ModelParameters
from marey.calibration.priors import GAUGE_SD_M, Prior

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

SHOULDER_GIRDLE = ("LeftShoulder", "RightShoulder")
SHOULDER_GIRDLE_SD_M = 0.015
"""Standard deviation of the joint between chest and clavicle of a known skeleton, in
metres. Lower keeps it nearer to its previous position. Chosen by hand."""

FREE_AXIS_SD_RAD = 1.0
"""Standard deviation of the axis of a hinge before the fit, in radians: so wide that
it decides nothing. Chosen by hand."""


def init_generic(
    parameters: ModelParameters,
    *,
    is_person: bool,
    immobile: frozenset[int] = frozenset(),
) -> Initialisation:
    """Return the given parameters with weak priors around them.

    What the frames leave undetermined stays as it is. Along the axis of a hinge a joint
    is placed nearest to the joint before, so that the bone is as long as the distance
    of the axes. The bones of a person have symmetry and the usual proportions.

    Args:
        parameters: Initial parameters of the model.
        is_person: Whether it is a person.
        immobile: Segments that did not rotate relative to their parents; their joints
            stay.
    """
    model, m = parameters.model, parameters.marker_offset[0]
    prior = Prior(model)
    rest = parameters.rest_markers()
    deviation = rest - rest.mean(axis=0)
    size = float(np.sqrt(np.mean(np.sum(deviation**2, axis=1)))) + 1e-3
    prior.add_gauge_constraints(m)
    prior.add_marker_priors(m, size)
    joint_sd = PERSON_JOINT_SD_M if is_person else JOINT_SD_OF_SIZE * size
    for i in range(1, len(model.names)):
        fixed = i in immobile
        sd = FIXED_JOINT_SD_M if fixed else joint_sd
        prior.add_joint_prior(i, parameters.joint_offset[i], sd, constraint=fixed)
    if is_person:
        add_symmetry_and_proportions(prior, mirror=False)
    undetermined = {i: size**2 * np.eye(3) for i in immobile}
    for n, hinge in enumerate(model.axes):
        a = parameters.axis_in_parent[n]
        undetermined[hinge.child] = size**2 * np.outer(a, a)
        prior.add_axis_prior(n, parameters, FREE_AXIS_SD_RAD)
        column = int(model.columns.joint_offset[hinge.child])
        along_axis = [(column + x, float(a[x])) for x in range(3)]
        prior.add(along_axis, 0.0, GAUGE_SD_M, constraint=True)
    return Initialisation(
        parameters,
        prior,
        np.arange(len(m)),
        MIN_CAMERA_NOISE_M,
        undetermined=undetermined,
    )


def init_from_known_skeleton(parameters: ModelParameters) -> Initialisation:
    """Return the given parameters with fixed bones and free markers.

    Only the joints between chest and clavicles may move a little: they are no bone
    lengths, and a recording with little arm motion hardly determines them.
    """
    model, m = parameters.model, parameters.marker_offset[0]
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
    return Initialisation(parameters, prior, np.arange(len(m)), MIN_CAMERA_NOISE_M)
