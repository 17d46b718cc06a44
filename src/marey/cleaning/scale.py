"""Correction of the scale of the measuring volume."""

import numpy as np

from marey.cleaning.repairs import record_repair
from marey.errors import OptionError
from marey.report import Finding
from marey.take import Take


def rescale(take: Take, factor: float) -> Take:
    """Return the take with all lengths multiplied by a factor.

    The instrument of OBrien2000 (Sec. 4) measured lengths 0.94 times the true ones.
    `marey.joints.rigid_pair` estimates the factor from two sensors on one stick.

    Args:
        take: The recording.
        factor: True length divided by recorded length, above 0.

    Raises:
        OptionError: If the factor is not above 0.
    """
    if not 0.0 < factor < np.inf:
        raise OptionError("factor", found=factor, needed="a number above 0")
    T = take.T_world_sensor.copy()
    T[..., :3, 3] *= factor
    note = f"lengths multiplied by {factor:.6g}"
    finding = Finding("take-scaled", "clean", "info", note, value=factor)
    points = take.points * factor
    return record_repair(take, [finding], [note], points=points, T_world_sensor=T)
