"""Takes in which the markers sit where they sat before."""

import numpy as np

from marey.bodies import Bodies

PUT_ON_ANEW = 3e-3
"""Metres by which markers sit elsewhere, in the median, when they were put on anew."""

STRAYS = 2.0
"""The same in how far they stray anyway."""


def of_one_session(takes: tuple[Bodies, ...]) -> tuple[Bodies, ...]:
    """Return the takes whose markers sit on the bodies as in the first.

    Markers that were put on anew give a body other axes, which would pass for motion of
    its joints. All takes, if some body is not seen in these.
    """
    same = tuple(take for take in takes if _moved(take, takes[0]) <= _limit(takes[0]))
    shown = np.any([take.seen.any(axis=0) for take in same], axis=0)
    ever = np.any([take.seen.any(axis=0) for take in takes], axis=0)
    return same if (shown >= ever).all() else takes


def _moved(take: Bodies, first: Bodies) -> float:
    """Return how far markers sit from where they were on the first take's bodies."""
    there = dict(zip(first.marker_names, first.marker_offset, strict=True))
    firm = [
        np.linalg.norm(offset - there[name])
        for name, offset, body in zip(
            take.marker_names, take.marker_offset, take.marker_body, strict=True
        )
        if body >= 0 and take.determined[body] and first.determined[body]
        if name in there and np.isfinite(offset + there[name]).all()
    ]
    return float(np.median(firm)) if firm else 0.0


def _limit(first: Bodies) -> float:
    strays = first.rms[np.isfinite(first.rms)]
    usual = float(np.median(strays)) if len(strays) else 0.0
    return max(PUT_ON_ANEW, STRAYS * usual)
