"""Initialisations without landmarks: generic, and from a known skeleton.

Generic models are mechanisms and animals.
"""

from collections.abc import Collection

import numpy as np

from marey.anatomy.names import SHOULDER, both_sides
from marey.calibration.priors import (
    GAUGE_SD_M,
    Initialisation,
    Prior,
)
from marey.calibration.problem import CalibrationProblem
from marey.numerics.thresholds import SKIN_MOTION_M

JOINT_SD_OF_SIZE = 0.1
"""Standard deviation of an initial joint position, as a share of the size of the model.
Lower trusts the initial positions more. Chosen by hand."""

ROUNDING_SD = 1e-6
"""Standard deviation of joints and axes that stay as they are, in metres and radians:
as stiff as rounding allows."""

REPLACED_MARKER_SD_M = 0.005
"""Standard deviation of a marker on known bones from where it sat before, or from its
place on a template, in metres. Lower keeps more of it and fits the take less closely.
Chosen on templates of generated people and on skeletons of CMU 02 from another take,
whose residual rises by 1 %."""

SHOULDER_GIRDLE = both_sides(SHOULDER)

FREE_AXIS_SD_RAD = 1.0
"""Standard deviation of the axis of a hinge before the fit, in radians: so wide that
it decides nothing."""


def init_generic(
    problem: CalibrationProblem, immobile: frozenset[int] = frozenset()
) -> Initialisation:
    """Return the parameters of the problem with weak priors around them.

    What the frames leave undetermined stays as it is. Along the axis of a hinge a joint
    is placed nearest to the joint before, so that the bone is as long as the distance
    of the axes.

    Args:
        problem: What is calibrated.
        immobile: Segments that did not rotate relative to their parents; their joints
            stay.
    """
    model, parameters = problem.model, problem.parameters
    size = parameters.size
    prior = weak_prior(problem, JOINT_SD_OF_SIZE * size, immobile)
    anywhere = np.stack([size * np.eye(3), np.zeros((3, 3))])
    undetermined = dict.fromkeys(immobile, anywhere)
    for n, hinge in enumerate(model.axes):
        a = parameters.axis[n, 0]
        undetermined[hinge.child] = size * parameters.axis[n, :, None]
        prior.add_axis_prior(n, parameters, FREE_AXIS_SD_RAD)
        along_axis = [(model.columns.joint_offset[hinge.child], a[None])]
        prior.add(along_axis, np.zeros(1), GAUGE_SD_M, constraint=True)
    return Initialisation(problem, parameters, prior, undetermined=undetermined)


def weak_prior(
    problem: CalibrationProblem,
    joint_sd: float,
    immobile: frozenset[int] = frozenset(),
) -> Prior:
    """Return the choice of axes, and weak priors of markers and joints.

    Args:
        problem: What is calibrated.
        joint_sd: Standard deviation of a joint from its initial position, in metres.
        immobile: Segments whose joints stay.
    """
    parameters = problem.parameters
    m, prior = parameters.marker_offset[0], Prior(problem.model)
    prior.add_gauge_constraints(m, problem.seen[0])
    prior.add_marker_priors(m, parameters.size)
    for i in range(1, len(problem.model.names)):
        fixed = i in immobile
        sd = ROUNDING_SD if fixed else joint_sd
        prior.add_joint_prior(i, parameters.joint_offset[i], sd, constraint=fixed)
    return prior


def init_from_known_skeleton(
    problem: CalibrationProblem, known_markers: Collection[str] = ()
) -> Initialisation:
    """Return the parameters of the problem with fixed bones and free markers.

    The markers of a segment as a whole sit on it as they do on the known skeleton, up
    to what their replacement changes: a short take hardly determines how head, hands
    and feet lie between their markers. If some markers are known, these determine it.

    Only the joints between chest and clavicles may move a little, if they are known as
    an estimate: they are no bone lengths, and a recording with little arm motion hardly
    determines them.

    Args:
        problem: What is calibrated.
        known_markers: Labels of markers that stay where they are.
    """
    model, parameters = problem.model, problem.parameters
    m = parameters.marker_offset[0]
    prior = Prior(model)
    prior.add_marker_priors(m, parameters.size)
    if not known_markers:
        prior.add_cluster_priors(m, REPLACED_MARKER_SD_M)
    for k in np.flatnonzero(np.isin(model.labels, list(known_markers))):
        column = model.columns.marker_offset[k]
        prior.add([(column, np.eye(3))], m[k], ROUNDING_SD, constraint=True)
    for i in range(len(model.names)):
        offset = parameters.joint_offset[i]
        if is_movable_girdle(problem, i):
            prior.add_joint_prior(i, offset, SKIN_MOTION_M)
        elif i > 0:
            prior.add_joint_prior(i, offset, ROUNDING_SD, constraint=True)
    for n in range(len(model.axes)):
        prior.add_axis_prior(n, parameters, ROUNDING_SD)
    return Initialisation(problem, parameters, prior)


def is_movable_girdle(problem: CalibrationProblem, segment: int) -> bool:
    """Return whether a segment is a clavicle whose joint was estimated, not given.

    One on a chest that was divided belongs to a whole person, whose bones all stay.
    """
    skeleton, joint = problem.skeleton, problem.segment_joint[segment]
    is_clavicle = problem.model.names[segment] in SHOULDER_GIRDLE
    is_divided = skeleton.kind[skeleton.parent[joint]] == "fixed"
    is_known = bool(np.isfinite(skeleton.covariance[joint]).all())
    return is_clavicle and is_known and not is_divided
