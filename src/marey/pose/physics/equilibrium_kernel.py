"""Where a figure on springs comes to rest, without running time, compiled.

`fit.py` explains it. The energy is that of the springs, of torques that lead to
the neutral posture, and of gravity.
"""

from typing import no_type_check

import numpy as np
from numba import njit

from marey.articulated.factor_kernel import solve
from marey.articulated.kinematics_kernel import (
    copy,
    copy_rows,
    curve,
    fill,
    place,
    slope,
)
from marey.articulated.limits_kernel import advance, confine, difference, hold
from marey.articulated.targets_kernel import reduce, weigh
from marey.numerics.jit import lean
from marey.pose.gauss_newton.lm_kernel import (
    FADES,
    FIRST_DAMPING,
    GROWS,
    HOLDS,
    ROUNDING,
    STILL,
    reckon,
)
from marey.pose.physics.contact_springs_kernel import bend, measure, press

# A step that promises to lower the energy by less than this share is the last.
ENOUGH = 1e-12


@no_type_check
@lean
def to_log(out):
    """Turn 2 sin(angle / 2) about an axis into the angle about it."""
    half = 0.5 * np.sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2])
    if half > 1e-9:
        scale = np.arctan2(half, np.sqrt(max(1.0 - half * half, 0.0))) / half
        for k in range(3):
            out[k] *= scale


@no_type_check
@lean
def _pulls(tree, work, q, neutral):
    """Write the turns, in the world, that lead to the neutral posture."""
    for k in range(3):
        work.pull[0, k] = work.pull[1, k] = 0.0
    for i in range(1, len(q)):
        pull, R = work.pull[i + 1], work.R[tree.parent[i]]
        difference(neutral[i], q[i], pull)
        to_log(pull)
        x, y, z = pull[0], pull[1], pull[2]
        for k in range(3):
            pull[k] = R[k, 0] * x + R[k, 1] * y + R[k, 2] * z


@no_type_check
@lean
def _strain(work, worth, pushes, centres):
    """Return twice the energy of the neutral posture's torques and of gravity."""
    total = 0.0
    for b in range(2, len(worth)):
        e = work.pull[b]
        total += worth[b] * (e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
    for i in range(len(pushes)):
        R, c, m = work.R[i], work.c[i], centres[i]
        for k in range(3):
            x = c[k] + R[k, 0] * m[0] + R[k, 1] * m[1] + R[k, 2] * m[2]
            total -= 2.0 * pushes[i, k] * x
    return total


@no_type_check
@lean
def _push(work, pushes, centres):
    """Add constant forces to the sums of the nodes: they have slope, no curve."""
    for i in range(len(pushes)):
        sums = work.local[i]
        for k in range(3):
            sums[10 + k] += pushes[i, k]
            for j in range(3):
                sums[13 + 3 * j + k] += centres[i, j] * pushes[i, k]


@no_type_check
@lean
def _take_step(tree, work, bonds, frame, origin, worth, damping):
    """Turn the sums into a step within the limits; return the fall it promises.

    What a limit holds is told by all that bears on it, torques and bonds included.
    """
    some = len(bonds.gap) > 0
    reckon(tree, work, worth)
    if some:
        press(tree, work, bonds)
    hold(tree, work)
    fall = 0.0
    for _ in range(HOLDS):
        slope(work)
        curve(tree, work)
        fall = solve(tree, work, worth, False, damping)
        if some:
            measure(bonds, frame, origin, work)
            fall -= bend(tree, work, bonds)
        if not hold(tree, work):
            break
    return fall


@no_type_check
@lean
def _energy(tree, work, bonds, frame, origin, q, pull):
    """Return twice the energy of all but the targets, having measured it."""
    neutral, worth, pushes, centres = pull
    _pulls(tree, work, q, neutral)
    strain = _strain(work, worth, pushes, centres)
    return strain + measure(bonds, frame, origin, work)


@no_type_check
@lean
def _rest(tree, targets, work, bonds, seen, frame, origin, pose, pull, most):
    """Move a pose to the least energy; return the steps, and if it rests.

    `seen` is points and sensors, `pull` the neutral posture, its worth, and forces with
    the points they act on.
    """
    points, sensors = seen
    root, q, new_root, new_q = pose
    confine(tree, work, q)
    place(tree, root, q, work.R, work.c)
    cost = weigh(targets, points, sensors, origin, work, 0.0)
    reduce(targets, points, sensors, origin, work)
    _push(work, pull[2], pull[3])
    damping = 0.0
    for step in range(most):
        before = cost + _energy(tree, work, bonds, frame, origin, q, pull)
        fall = _take_step(tree, work, bonds, frame, origin, pull[1], damping)
        moved = advance(tree, work, root, q, new_root, new_q)
        changed = confine(tree, work, new_q)
        if not changed and (fall < ENOUGH * abs(before) or moved < STILL):
            copy(new_root, root)
            copy_rows(new_q, q)
            return step + 1, True
        place(tree, new_root, new_q, work.R, work.c)
        new_cost = weigh(targets, points, sensors, origin, work, 0.0)
        after = new_cost + _energy(tree, work, bonds, frame, origin, new_q, pull)
        if after <= before + ROUNDING * abs(before):
            copy(new_root, root)
            copy_rows(new_q, q)
            cost = new_cost
            damping = FADES * damping if damping > 1e-6 else 0.0
        else:
            confine(tree, work, q)
            place(tree, root, q, work.R, work.c)
            damping = max(GROWS * damping, FIRST_DAMPING)
    return most, False


@no_type_check
@njit(cache=True)
def rest_poses(
    tree,
    targets,
    work,
    bonds,
    points,
    sensors,
    neutral,
    worth,
    pushes,
    centres,
    most,
    root,
    q,
    info,
):
    """Move all frames from where they are to rest.

    `info` gets per frame: steps, and 1 where that was not enough.
    """
    here, new_root, new_q = np.empty(3), np.empty(3), np.empty((len(tree.parent), 4))
    origin = np.empty(3)
    for f in range(len(q)):
        copy(root[f], origin)
        fill(here, 0.0)
        pose = (here, q[f], new_root, new_q)
        pull = (neutral[f], worth[f], pushes, centres)
        seen = (points[f], sensors[f])
        steps, still = _rest(
            tree, targets, work, bonds, seen, f, origin, pose, pull, most
        )
        info[f, 0], info[f, 1] = steps, 0.0 if still else 1.0
        for k in range(3):
            root[f, k] = origin[k] + here[k]
