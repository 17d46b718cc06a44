r"""Initialisation of a person without landmarks: weak priors, and joints on their axes.

Where a joint rotated about one axis only, noise feigns rotations about the others, and
with them a centre. The place of the joint on its axis therefore follows from the joints
around it: an axis across a limb, as that of a knee, is about perpendicular to its
bones. A knee with a marker on either side is midway between the two, as one with labels
is.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from marey.anatomy.names import LOWER_LEG, both_sides
from marey.calibration.hinges import SingleAxis, main_axes
from marey.calibration.init.generic import FREE_AXIS_SD_RAD, weak_prior
from marey.calibration.init.joint_regression import ALONG_LINE_SD_M
from marey.calibration.init.place_on_axis import place_on_axis
from marey.calibration.model import (
    KNEE_CENTER_SD_M,
    MECHANICAL_HINGE_SD_RAD,
    MIN_NOISE_M,
    MIN_SKIN_NOISE_M,
    AxisConstraint,
    KinematicModel,
    ModelParameters,
)
from marey.calibration.priors import (
    GAUGE_SD_M,
    JOINT_SD_M,
    Initialisation,
    Prior,
    Terms,
    add_symmetry_and_proportions,
)
from marey.calibration.problem import CalibrationProblem
from marey.numerics import Array, Float
from marey.numerics.thresholds import FEW

TO_THE_LEFT = np.eye(3)[[1, 1]]
"""Initial axis of a knee in thigh and shank, which rest in a T-pose."""

HINGE_SD_RAD = FEW * MECHANICAL_HINGE_SD_RAD
"""Standard deviation of the axis of a hinge in one frame, in radians. Of a hinge that
leaves its axis by less than that of others, more would take noise for rotation: it
moves the centre along the axis, and the joints around it. Less slows convergence."""

MAX_OFF_AXIS = 0.5
"""Largest distance from the axis of a knee of two markers on either side of it, as a
share of the distance of the nearer one along it. Higher takes markers for landmarks
that are above or below the knee. Chosen by hand; in computed walks it is 0.3 to 0.5."""


def init_unlabelled_person(
    problem: CalibrationProblem, axes: Sequence[SingleAxis]
) -> Initialisation:
    """Return the parameters of a person without landmarks, with weak priors.

    Bones have symmetry and the usual proportions. The centres of knees move with their
    angle as those of `init_person`. Unless markers on either side of them hold them,
    that makes the knees more uncertain and does not move them.

    Args:
        problem: What is calibrated.
        axes: Joints that rotated about one axis only.
    """
    hinges = [
        axis
        for axis in axes
        if axis.is_hinge and _is_in_limb(problem.model, axis.child)
    ]
    hinged = [axis.child for axis in hinges]
    knees = [problem.model.index(name) for name in both_sides(LOWER_LEG)]
    knees = [i for i in knees if i > 0 and i not in hinged]
    parameters = problem.parameters.with_axes(
        [
            *(AxisConstraint(i, "hinge", HINGE_SD_RAD) for i in hinged),
            *(
                AxisConstraint(i, "hinge", FREE_AXIS_SD_RAD, KNEE_CENTER_SD_M)
                for i in knees
            ),
        ],
        [*(axis.direction for axis in hinges), *(TO_THE_LEFT for _ in knees)],
    )
    problem = replace(problem, parameters=parameters)
    prior = weak_prior(problem, JOINT_SD_M)
    add_symmetry_and_proportions(prior, mirror=False)
    for n in range(len(parameters.model.axes)):
        prior.add_axis_prior(n, parameters, FREE_AXIS_SD_RAD)
    between = [
        terms
        for i, axis in main_axes(problem, knees).items()
        if (terms := _off_middle(parameters, i, axis))
    ]
    for terms in between:
        prior.add(terms, np.zeros(1), ALONG_LINE_SD_M["knee"])
    sd = dict.fromkeys((axis.child for axis in axes), JOINT_SD_M)
    sd |= {axis.child: _hold_on_axis(prior, parameters, axis) for axis in hinges}
    undetermined = {
        axis.child: sd[axis.child] * axis.direction[:, None] for axis in axes
    }
    held = 0 < len(between) == len(knees)
    return Initialisation(
        problem,
        parameters,
        prior,
        min_noise=MIN_SKIN_NOISE_M if held else MIN_NOISE_M,
        undetermined=undetermined,
        fits_center_motion=held,
    )


def _off_middle(
    parameters: ModelParameters, child: int, axis: Float[Array, "2 3"]
) -> Terms:
    """Return how far a joint is along its axis from the middle of markers beside it.

    They are the two markers of one segment, one on either side of the joint, that are
    nearest to the axis relative to their distance. Empty if there are none.

    Args:
        parameters: The parameters of the model.
        child: The segment below the joint.
        axis: The axis of the joint in parent and child.
    """
    model, m = parameters.model, parameters.marker_offset[0]
    o, column = parameters.joint_offset[child], parameters.model.columns
    parent = int(model.parent[child])
    terms, least = [], MAX_OFF_AXIS
    for segment, joint, a in zip((parent, child), (o, 0.0 * o), axis, strict=True):
        for pair in combinations(model.markers_of(segment), 2):
            off = m[[*pair]] - joint
            along = off @ a
            across = np.linalg.norm(off - along[:, None] * a, axis=1)
            nearest = float(np.abs(along).min())
            if along.prod() >= 0.0 or across.max() >= least * nearest:
                continue
            least = float(across.max()) / nearest
            terms = [(column.marker_offset[k], -0.5 * a[None]) for k in pair]
            if segment == parent:
                terms.append((column.joint_offset[child], a[None]))
    return terms


def _is_in_limb(model: KinematicModel, child: int) -> bool:
    """Return whether the bone above a joint has no branches: not at trunk and head."""
    parent = int(model.parent[child])
    return parent > 0 and model.children(parent) == [child]


def _hold_on_axis(prior: Prior, parameters: ModelParameters, axis: SingleAxis) -> float:
    """Add where a joint of a limb is on its axis; return the sd of that, in metres.

    It is that of the middle of its neighbours, with half their distance along the axis.
    """
    place = place_on_axis(parameters, axis.child, axis.direction)
    prior.add(place.terms, np.zeros(1), GAUGE_SD_M, constraint=True)
    return float(np.hypot(place.sd, np.std(place.neighbours)))
