"""All takes of a subject as one."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.bodies import Bodies
from marey.joints import levelled
from marey.take import Take


def pooled(takes: Sequence[Bodies]) -> Bodies:
    """Return the bodies of all takes, one take after the other.

    A marker's place is that of the first take that shows it. Sensors are bodies by now,
    and left out of the take itself.
    """
    if len(takes) == 1:
        return takes[0]
    level = levelled(takes)
    offset = level[0].marker_offset
    for take in level[1:]:
        offset = np.where(np.isfinite(offset), offset, take.marker_offset)
    first = level[0].take
    return replace(
        level[0],
        take=Take(
            rate=first.rate,
            points=np.concatenate([take.take.points for take in level]),
            labels=first.full_labels,
        ),
        T_world_body=np.concatenate([take.T_world_body for take in level]),
        marker_offset=offset,
    )
