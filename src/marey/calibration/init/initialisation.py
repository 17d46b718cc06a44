"""What a bundle adjustment starts from: a model, its parameters, and its priors."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from marey.calibration.model import ModelParameters
from marey.calibration.priors import Prior

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Initialisation:
    """Initial parameters of a kinematic model and priors on them."""

    parameters: ModelParameters
    prior: Prior
    order: Int[Array, " marker"]
    """Number of each marker of the model among the markers of the problem."""

    min_noise: float
    """Smallest scale of a marker, in metres."""

    is_anatomical: bool = False
    """Whether the z axes of arm segments point along the bones. Otherwise they point up
    when the arms are in a T-pose."""

    landmark_joints: tuple[str, ...] = ()
    """Joints whose initial position comes from landmarks. That of the others comes from
    the skeleton that is calibrated."""

    undetermined: Mapping[int, Float[Array, "3 3"]] = field(default_factory=dict)
    """By segment: additional covariance of joints whose position the motion does not
    determine, in square metres."""
