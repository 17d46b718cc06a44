r"""Initialisation of a person without landmarks: weak priors, and joints on their axes.

Where a joint rotated about one axis only, noise feigns rotations about the others, and
with them a centre. The place of the joint on its axis therefore follows from the joints
around it: an axis across a limb, as that of a knee, is about perpendicular to its
bones.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.calibration.hinges import SingleAxis
from marey.calibration.init.generic import FREE_AXIS_SD_RAD, weak_prior
from marey.calibration.model import (
    MECHANICAL_HINGE_SD_RAD,
    SOFT_HINGE_SD_RAD,
    AxisConstraint,
    KinematicModel,
    ModelParameters,
)
from marey.calibration.priors import (
    GAUGE_SD_M,
    JOINT_SD_M,
    Initialisation,
    Prior,
    add_symmetry_and_proportions,
)
from marey.calibration.problem import CalibrationProblem
from marey.numerics.thresholds import FEW

HINGE_SD_RAD = FEW * MECHANICAL_HINGE_SD_RAD
"""Standard deviation of the axis of a hinge in one frame, in radians. Of a hinge that
leaves its axis by less than that of others, more would take noise for rotation: it
moves the centre along the axis, and the joints around it. Less slows convergence."""


def init_unlabelled_person(
    problem: CalibrationProblem, axes: Sequence[SingleAxis]
) -> Initialisation:
    """Return the parameters of a person without landmarks, with weak priors.

    Bones have symmetry and the usual proportions.

    Args:
        problem: What is calibrated.
        axes: Joints that rotated about one axis only.
    """
    hinges = [
        axis
        for axis in axes
        if axis.is_hinge and _is_in_limb(problem.model, axis.child)
    ]
    parameters = problem.parameters.with_axes(
        [AxisConstraint(a.child, "hinge", HINGE_SD_RAD) for a in hinges],
        [axis.direction for axis in hinges],
    )
    problem = replace(problem, parameters=parameters)
    prior = weak_prior(problem, JOINT_SD_M)
    add_symmetry_and_proportions(prior, mirror=False)
    for n in range(len(hinges)):
        prior.add_axis_prior(n, parameters, FREE_AXIS_SD_RAD)
    sd = dict.fromkeys((axis.child for axis in axes), JOINT_SD_M)
    sd |= {axis.child: _place_on_axis(prior, parameters, axis) for axis in hinges}
    undetermined = {
        axis.child: sd[axis.child] * axis.direction[:, None] for axis in axes
    }
    return Initialisation(problem, parameters, prior, undetermined=undetermined)


def _is_in_limb(model: KinematicModel, child: int) -> bool:
    """Return whether the bone above a joint has no branches: not at trunk and head."""
    parent = int(model.parent[child])
    return parent > 0 and model.children(parent) == [child]


def _place_on_axis(
    prior: Prior, parameters: ModelParameters, axis: SingleAxis
) -> float:
    r"""Add where a joint of a limb is on its axis; return the sd of that, in metres.

    It is at the mean of the n places nearest to the joint before and, if there is one,
    to the joint after. With the standard deviation :math:`\kappa` of the angle of axis
    and bone from 90 degrees, distances d of these joints from the axis and their places
    p along it, its variance is

    .. math:: \frac{\kappa^2}{n^2} \sum d^2 + \mathrm{var}(p)
    """
    o, column = parameters.joint_offset, parameters.model.columns.joint_offset
    (a, b), child = axis.direction, axis.child
    neighbours = [(child, a, -o[child])]
    if len(after := parameters.model.children(child)) == 1:
        neighbours.append((after[0], b, o[after[0]]))
    n = len(neighbours)
    terms = [
        (column[i], sign * x[None] / n)
        for (i, x, _), sign in zip(neighbours, (-1.0, 1.0), strict=False)
    ]
    prior.add(terms, np.zeros(1), GAUGE_SD_M, constraint=True)
    place = np.array([x @ bone for _, x, bone in neighbours])
    square = np.array([bone @ bone for _, _, bone in neighbours]) - place**2
    across = SOFT_HINGE_SD_RAD / n * np.sqrt(square.sum())
    return float(np.hypot(across, np.std(place)))
