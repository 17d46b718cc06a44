"""Levenberg-Marquardt on one frame, compiled; `fit.py` explains it."""

from typing import no_type_check

from marey.articulated.factor_kernel import solve
from marey.articulated.kinematics_kernel import (
    copy,
    copy_rows,
    curve,
    gather,
    place,
    slope,
)
from marey.articulated.limits_kernel import (
    advance,
    at_limit,
    confine,
    difference,
    hold,
    write_axes,
)
from marey.articulated.targets_kernel import reduce, weigh
from marey.numerics.jit import inlined, lean

# Damping after a step that made things worse: share of what is known of a joint.
FIRST_DAMPING = 1e-2
FADES = 0.1
GROWS = 10.0

# Of the cost, what rounding may add to it.
ROUNDING = 1e-10

# A step this small, in radians or metres, is rounding.
STILL = 1e-10

# Rounds of holding angles at their limits within one step.
HOLDS = 4


@no_type_check
@lean
def pulls(tree, work, root, q, expected_root, expected_q):
    """Write what leads from a pose to the expected one."""
    for k in range(3):
        work.pull[0, k] = expected_root[k] - root[k]
    for i in range(len(q)):
        p, pull = tree.parent[i], work.pull[i + 1]
        difference(expected_q[i], q[i], pull)
        if p >= 0:
            R, x, y, z = work.R[p], pull[0], pull[1], pull[2]
            for k in range(3):
                pull[k] = R[k, 0] * x + R[k, 1] * y + R[k, 2] * z


@no_type_check
@lean
def strain(work, prior):
    """Return the cost of being elsewhere than expected, as far as the prior counts."""
    total = 0.0
    for b in range(len(prior)):
        e = work.pull[b]
        square = e[0] * e[0] + e[1] * e[1] + e[2] * e[2]
        total += work.gate[b] * prior[b] * square
    return total


@no_type_check
@inlined
def reckon(tree, work, prior):
    """Write all that bears on the joints: the slope of the sums, and the pull.

    What a limit holds is told by both, so the pull is added where one is reached. It
    counts as it did in the step before.
    """
    gather(tree, work)
    write_axes(tree, work)
    slope(work)
    for b in range(2, len(prior)):
        if tree.limited[b - 1] and at_limit(work, b - 1):
            A, e, worth = work.A[b], work.pull[b], work.gate[b] * prior[b]
            for k in range(3):
                along = A[k, 0] * e[0] + A[k, 1] * e[1] + A[k, 2] * e[2]
                work.g[b, k] += worth * along


@no_type_check
@inlined
def take_step(tree, work, prior, gated, damping):
    """Turn the sums into a step within the limits; return the fall it promises."""
    reckon(tree, work, prior)
    hold(tree, work)
    fall = 0.0
    for _ in range(HOLDS):
        slope(work)
        curve(tree, work)
        fall = solve(tree, work, prior, gated, damping)
        if not hold(tree, work):
            break
    return fall


@no_type_check
@lean
def settle(
    tree,
    targets,
    work,
    points,
    sensors,
    origin,
    pose,
    expected,
    habits,
    ease,
    most,
):
    """Move a pose to the least cost; return the cost and the steps taken."""
    root, q, new_root, new_q = pose
    expected_root, expected_q = expected
    prior, gated = habits.prior, not habits.guided
    confine(tree, work, q)
    place(tree, root, q, work.R, work.c)
    cost = weigh(targets, points, sensors, origin, work, ease)
    reduce(targets, points, sensors, origin, work)
    pulls(tree, work, root, q, expected_root, expected_q)
    damping = 0.0
    for step in range(most):
        fall = take_step(tree, work, prior, gated, damping)
        before = cost + strain(work, prior)
        moved = advance(tree, work, root, q, new_root, new_q)
        changed = confine(tree, work, new_q)
        if not changed and (fall < habits.tolerance * before or moved < STILL):
            copy(new_root, root)
            copy_rows(new_q, q)
            return cost, step + 1
        place(tree, new_root, new_q, work.R, work.c)
        new_cost = weigh(targets, points, sensors, origin, work, ease)
        pulls(tree, work, new_root, new_q, expected_root, expected_q)
        if new_cost + strain(work, prior) <= before * (1.0 + ROUNDING):
            copy(new_root, root)
            copy_rows(new_q, q)
            cost = new_cost
            damping = FADES * damping if damping > 1e-6 else 0.0
            if habits.robust:
                reduce(targets, points, sensors, origin, work)
        else:
            confine(tree, work, q)
            place(tree, root, q, work.R, work.c)
            pulls(tree, work, root, q, expected_root, expected_q)
            damping = max(GROWS * damping, FIRST_DAMPING)
    return cost, most
