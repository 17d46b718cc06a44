"""What the ground does to simulated soles at one moment, compiled; see `fit.py`."""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from marey.pose.physics.forces_kernel import pull_at, spot_of


class Grounded(NamedTuple):
    """Soles in the simulator, and what they bear, which goes on from step to step."""

    body: np.ndarray
    place: np.ndarray
    stiff: np.ndarray  # of the ground under each, in N/m
    normal: np.ndarray
    lossy: float  # seconds: what it takes from a sole's speed, by its stiffness
    friction: float  # by what presses a sole down
    presses: np.ndarray  # what the ground has come to bear, in N
    drags: np.ndarray  # and along itself
    last: np.ndarray  # where each sole was a step ago; NaN at first
    anchor: np.ndarray  # where each sole sticks; NaN where it does not


@no_type_check
@njit(cache=True)
def bear(soles, floor, planted, gain, seconds, pos, mat, com, force):
    """Add the force of the ground on every sole (Zordan2003, Sec. 3).

    The ground pushes and never draws: a spring along its normal, and what has come to
    bear on it, so that nothing stays below; and it takes away speed. Along the ground
    a planted sole sticks to where it came down, as far as friction goes; beyond that
    it slides, and sticks where it gets to: a force against its motion that does not
    turn around with every swing, as one by the direction of the speed would.

    Returns how far any sole is below the ground, or above it where it bears.
    """
    at, way, speed, gap = np.empty(3), np.empty(3), np.zeros(3), 0.0
    n = soles.normal
    for s in range(len(soles.body)):
        b, k = soles.body[s], soles.stiff[s]
        spot_of(pos[b], mat[b], soles.place[s], at)
        deep = floor[s] - (n[0] * at[0] + n[1] * at[1] + n[2] * at[2])
        if not np.isnan(soles.last[s, 0]):
            speed[:] = (at - soles.last[s]) / seconds
        soles.last[s] = at
        soles.presses[s] = max(soles.presses[s] + gain * k * deep, 0.0)
        press = soles.presses[s] + k * max(deep, 0.0)
        if press > 0.0:
            rising = n[0] * speed[0] + n[1] * speed[1] + n[2] * speed[2]
            press = max(press - soles.lossy * k * rising, 0.0)
        gap = max(gap, deep)
        if soles.presses[s] > 0.0:
            gap = max(gap, abs(deep))
        pull_at(force, b, press * n[0], press * n[1], press * n[2], at, com[b])
        if not planted[s] or soles.friction == np.inf:
            soles.anchor[s] = np.nan
            soles.drags[s] = 0.0
            continue
        if np.isnan(soles.anchor[s, 0]):
            soles.anchor[s] = at
        _drag(soles, s, at, speed, soles.friction * press, gain, way)
        pull_at(force, b, way[0], way[1], way[2], at, com[b])
    return gap


@no_type_check
@njit(cache=True)
def _drag(soles, s, at, speed, most, gain, way):
    """Write the friction of a sole: nothing where nothing presses it down."""
    n, drag, anchor, k = soles.normal, soles.drags[s], soles.anchor[s], soles.stiff[s]
    along, rising, size = 0.0, 0.0, 0.0
    for x in range(3):
        along += n[x] * (anchor[x] - at[x])
        rising += n[x] * speed[x]
    for x in range(3):
        off = anchor[x] - at[x] - along * n[x]
        drag[x] += gain * k * off
        way[x] = drag[x] + k * off - soles.lossy * k * (speed[x] - rising * n[x])
        size += way[x] * way[x]
    if size > most * most:
        share = most / np.sqrt(size)
        for x in range(3):
            way[x] *= share
            drag[x] = way[x]
            if most > 0.0:
                anchor[x] = at[x]
