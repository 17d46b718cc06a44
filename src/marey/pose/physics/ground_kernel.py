"""Forces of the ground on simulated soles at one moment; compiled."""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from marey.pose.physics.forces_kernel import add_force_at, world_position


class SoleForces(NamedTuple):
    """Soles in the simulator, and their forces, which persist from step to step."""

    body: np.ndarray
    offset: np.ndarray
    stiffness: np.ndarray  # of the ground under each, in N/m
    normal: np.ndarray
    damping_time: float  # damping by stiffness, in seconds
    friction: float  # Coulomb coefficient
    normal_force: np.ndarray  # integral part of the force, in N
    drag: np.ndarray  # the same along the ground
    last: np.ndarray  # position a step ago; NaN at first
    anchor: np.ndarray  # position at which each sole sticks; NaN where it does not


@no_type_check
@njit(cache=True)
def add_ground_forces(
    soles, ground_height, is_planted, gain, seconds, pos, mat, com, force
):
    """Add the force of the ground on every sole (Zordan2003, Sec. 3).

    The normal force F_z is that of a unilateral spring and damper, with an integral
    part so that nothing stays below the ground; it never pulls. Along the ground a
    planted sole sticks to the position where it came down, by a spring of at most
    mu F_z (Coulomb friction). Beyond that it slides, and its anchor moves with it.
    A force against the direction of the velocity, as printed, would change its sign
    with every oscillation.

    Returns the largest distance of a sole below the ground, or above it under load.
    """
    at, tangent, velocity, gap = np.empty(3), np.empty(3), np.zeros(3), 0.0
    n = soles.normal
    for s in range(len(soles.body)):
        b, k = soles.body[s], soles.stiffness[s]
        world_position(pos[b], mat[b], soles.offset[s], at)
        depth = ground_height[s] - (n[0] * at[0] + n[1] * at[1] + n[2] * at[2])
        if not np.isnan(soles.last[s, 0]):
            velocity[:] = (at - soles.last[s]) / seconds
        soles.last[s] = at
        soles.normal_force[s] = max(soles.normal_force[s] + gain * k * depth, 0.0)
        press = soles.normal_force[s] + k * max(depth, 0.0)
        if press > 0.0:
            rising = n[0] * velocity[0] + n[1] * velocity[1] + n[2] * velocity[2]
            press = max(press - soles.damping_time * k * rising, 0.0)
        gap = max(gap, depth)
        if soles.normal_force[s] > 0.0:
            gap = max(gap, abs(depth))
        add_force_at(force, b, press * n[0], press * n[1], press * n[2], at, com[b])
        if not is_planted[s] or soles.friction == np.inf:
            soles.anchor[s] = np.nan
            soles.drag[s] = 0.0
            continue
        if np.isnan(soles.anchor[s, 0]):
            soles.anchor[s] = at
        _write_friction(soles, s, at, velocity, soles.friction * press, gain, tangent)
        add_force_at(force, b, tangent[0], tangent[1], tangent[2], at, com[b])
    return gap


@no_type_check
@njit(cache=True)
def _write_friction(soles, s, at, velocity, limit, gain, out):
    """Write the friction of a sole, at most `limit` newtons."""
    n, drag, anchor = soles.normal, soles.drag[s], soles.anchor[s]
    k = soles.stiffness[s]
    along, rising, size = 0.0, 0.0, 0.0
    for x in range(3):
        along += n[x] * (anchor[x] - at[x])
        rising += n[x] * velocity[x]
    for x in range(3):
        gap = anchor[x] - at[x] - along * n[x]
        drag[x] += gain * k * gap
        slip_speed = velocity[x] - rising * n[x]
        out[x] = drag[x] + k * gap - soles.damping_time * k * slip_speed
        size += out[x] * out[x]
    if size > limit * limit:
        share = limit / np.sqrt(size)
        for x in range(3):
            out[x] *= share
            drag[x] = out[x]
            if limit > 0.0:
                anchor[x] = at[x]
