"""Positions of magnetic sensors in the wrong hemisphere of their transmitter.

The field of a magnetic dipole is the same at a point and at its reflection through the
dipole, B(-p) = B(p). A tracker that loses the hemisphere of a sensor reports -p instead
of p, with the right orientation.
"""

import numpy as np

from marey.cleaning.arrays import Array
from marey.cleaning.options import CleanOptions
from marey.cleaning.repairs import record_repair, repair_warning
from marey.numerics import Bool, Float
from marey.numerics.thresholds import FEW
from marey.take import Take


def undo_hemisphere_flips(take: Take, options: CleanOptions | None = None) -> Take:
    """Return the take with all positions of each sensor in one hemisphere.

    A step from p to nearly -p is a change of hemisphere. Positions in the hemisphere
    with fewer frames are reflected through the origin, where the transmitter is.

    Args:
        take: The recording.
        options: Thresholds.
    """
    min_jump = (options or CleanOptions()).min_jump
    T_world_sensor = take.T_world_sensor.copy()
    findings = []
    for sensor, name in enumerate(take.sensor_names):
        flipped = _find_flipped(take.T_world_sensor[:, sensor, :3, 3], min_jump)
        if not flipped.any():
            continue
        T_world_sensor[flipped, sensor, :3, 3] *= -1.0
        frames = np.flatnonzero(flipped).tolist()
        message = (
            f"is in the other hemisphere of the transmitter in {len(frames)} frames; "
            "reflected. Keep it on one side, or state the hemisphere"
        )
        span = frames[0], frames[-1]
        count = float(len(frames))
        findings.append(repair_warning("sensor-hemisphere", message, name, span, count))
    if not findings:
        return take
    notes = [f"reflected {len(findings)} sensors to one hemisphere"]
    return record_repair(take, findings, notes, T_world_sensor=T_world_sensor)


def _find_flipped(
    position: Float[Array, "frame 3"], min_jump: float
) -> Bool[Array, " frame"]:
    """Return the frames in the hemisphere that has fewer of them.

    Args:
        position: Positions relative to the transmitter, in metres; NaN where unseen.
        min_jump: Smallest step to the other hemisphere, in metres.
    """
    flipped = np.zeros(len(position), dtype=bool)
    seen = np.flatnonzero(np.isfinite(position).all(axis=1))
    before, after = position[seen[:-1]], position[seen[1:]]
    step = np.linalg.norm(after - before, axis=1)
    mirrored_step = np.linalg.norm(after + before, axis=1)
    changes = (step >= min_jump) & (mirrored_step < FEW * step)
    is_odd = np.concatenate([[0], np.cumsum(changes)])[: len(seen)] % 2 == 1
    flipped[seen] = is_odd if 2 * is_odd.sum() <= len(seen) else ~is_odd
    return flipped
