"""The true scale of a volume."""

from dataclasses import replace

import numpy as np

from marey.errors import OptionError
from marey.report import Finding
from marey.take import Take


def rescale(take: Take, factor: float) -> Take:
    """Return the take with all lengths multiplied by a factor.

    The instrument of OBrien2000 (Sec. 4) measured lengths 0.94 times the true ones;
    `marey.joints.rigid_pair` finds the factor from two sensors on one stick.

    Args:
        take: The recording.
        factor: What takes recorded to true lengths, above 0.

    Raises:
        OptionError: If the factor is not above 0.
    """
    if not 0.0 < factor < np.inf:
        raise OptionError("factor", found=factor, needed="a number above 0")
    T = take.T_world_sensor.copy()
    T[..., :3, 3] *= factor
    note = f"lengths multiplied by {factor:.6g}"
    found = Finding("take-scaled", "clean", "info", note, value=factor)
    return replace(
        take,
        points=take.points * factor,
        T_world_sensor=T,
        source=replace(take.source, findings=(*take.source.findings, found)),
        history=(*take.history, note),
    )
