"""Several takes of one subject: concatenated, and those of one session selected."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.bodies import Bodies
from marey.calibration.sessions import group_takes
from marey.joints import with_common_markers
from marey.numerics.robust import finite_median
from marey.take import Take


def concatenate_takes(takes: Sequence[Bodies]) -> Bodies:
    """Return the bodies of all takes as one take, frames one after the other.

    The offset of a marker or of a sensor is that of the first take that has it. The
    take itself holds markers only.
    """
    if len(takes) == 1:
        return takes[0]
    common = with_common_markers(takes)
    offset = common[0].marker_offset
    for take in common[1:]:
        offset = np.where(np.isfinite(offset), offset, take.marker_offset)
    first = common[0].take
    sensors = {
        name: (take, k)
        for take in reversed(common)
        for k, name in enumerate(take.sensor_names)
    }
    return replace(
        common[0],
        take=Take(
            rate=first.rate,
            points=np.concatenate([take.take.points for take in common]),
            labels=first.full_labels,
        ),
        T_world_body=np.concatenate([take.T_world_body for take in common]),
        marker_offset=offset,
        sensor_names=tuple(sensors),
        sensor_body=np.array(
            [take.sensor_body[k] for take, k in sensors.values()], dtype=np.int64
        ),
        T_body_sensor=np.array(
            [take.T_body_sensor[k] for take, k in sensors.values()]
        ).reshape(-1, 4, 4),
    )


def takes_of_first_session(takes: tuple[Bodies, ...]) -> tuple[Bodies, ...]:
    """Return the takes whose markers sit on the bodies as in the first take.

    Markers that were attached again give a body other axes, which would pass for motion
    of its joints, and so would the axes of sensors in takes without markers. If these
    takes do not show every body, all takes are returned.
    """
    marked = tuple(take for take in takes if take.shared.any()) or takes

    def displacement(i: int, j: int) -> float:
        return _displacement(marked[j], marked[i])

    rms = [finite_median(take.rms) for take in marked]
    session = group_takes(len(marked), displacement, rms)
    same = tuple(
        take for take, k in zip(marked, session, strict=True) if k == session[0]
    )
    shown = np.any([take.seen.any(axis=0) for take in same], axis=0)
    ever = np.any([take.seen.any(axis=0) for take in takes], axis=0)
    return same if (shown >= ever).all() else takes


def _displacement(take: Bodies, first: Bodies) -> float:
    """Return the median distance, in metres, of markers from their first offsets."""
    first_offset = dict(zip(first.marker_names, first.marker_offset, strict=True))
    distances = [
        np.linalg.norm(offset - first_offset[name])
        for name, offset, body in zip(
            take.marker_names, take.marker_offset, take.marker_body, strict=True
        )
        if body >= 0 and take.determined[body] and first.determined[body]
        if name in first_offset and np.isfinite(offset + first_offset[name]).all()
    ]
    return float(np.median(distances)) if distances else 0.0
