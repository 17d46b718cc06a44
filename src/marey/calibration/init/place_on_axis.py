r"""The place of a joint on its axis, by the joints before and after it.

Where a joint rotated about one axis only, the frames say little about where it lies
along it. An axis across a limb, as that of a knee, is about perpendicular to its bones.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from marey.calibration.model import SOFT_HINGE_SD_RAD, ModelParameters
from marey.calibration.priors import Terms
from marey.numerics import Float


class PlaceOnAxis(NamedTuple):
    """Where a joint of a limb is on its axis."""

    terms: Terms
    """Parameters and their matrix: the middle of the neighbours from the joint along
    the axis, which is zero, in metres."""

    neighbours: Float[np.ndarray, " joint"]
    """The joint before and, if there is one, the joint after, from the joint along the
    axis, in metres."""

    sd: float
    """Standard deviation of the middle, in metres, with that of the angle of axis and
    bone."""


def place_on_axis(
    parameters: ModelParameters, child: int, axis: Float[np.ndarray, "2 3"]
) -> PlaceOnAxis:
    r"""Return where a joint is on its axis: midway between its neighbours.

    These are the n places nearest to the joint before and, if there is one, to the
    joint after. With the standard deviation :math:`\kappa` of the angle of axis and
    bone from 90 degrees, and distances d of these joints from the axis, the variance of
    the middle is

    .. math:: \frac{\kappa^2}{n^2} \sum d^2

    Args:
        parameters: The parameters of the model.
        child: The segment below the joint.
        axis: The axis in parent and child.
    """
    o, column = parameters.joint_offset, parameters.model.columns.joint_offset
    along = {child: -axis[0]}
    if len(after := parameters.model.children(child)) == 1:
        along[after[0]] = axis[1]
    n = len(along)
    terms = [(column[joint], row[None] / n) for joint, row in along.items()]
    place = np.array([row @ o[joint] for joint, row in along.items()])
    square = float(np.sum(o[[*along]] ** 2) - place @ place)
    sd = SOFT_HINGE_SD_RAD / n * np.sqrt(max(square, 0.0))
    return PlaceOnAxis(terms, place, float(sd))


def move_to_middle(
    parameters: ModelParameters, child: int, axis: Float[np.ndarray, "2 3"]
) -> ModelParameters:
    """Return the parameters with a joint moved there along its axis, and nothing else.

    Args:
        parameters: The parameters of the model.
        child: The segment below the joint.
        axis: The axis in parent and child.
    """
    model, o = parameters.model, parameters.joint_offset.copy()
    m = parameters.marker_offset.copy()
    step = float(place_on_axis(parameters, child, axis).neighbours.mean())
    o[child] += step * axis[0]
    o[model.children(child)] -= step * axis[1]
    m[:, model.markers_of(child)] -= step * axis[1]
    return replace(parameters, joint_offset=o, marker_offset=m)
