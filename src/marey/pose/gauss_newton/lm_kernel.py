r"""Levenberg-Marquardt with an active set of limits on one frame, compiled.

The cost is that of the targets (`targets_kernel`) plus a Gaussian prior towards an
expected pose,

.. math:: E(x) = \sum_k \rho(r_k) + \sum_b s_b \pi_b |e_b|^2,

with residual e_b from the pose of block b to the expected one, information
:math:`\pi_b` of the prior and its share s_b (`factor_kernel.solve_normal_equations`).
Every step solves the normal equations :math:`(J^T W J + s \pi + \lambda D) \,
\Delta = J^T W r + s \pi e`, fixes angles that would leave their limits, and solves
again until no more are fixed.
"""

from typing import no_type_check

from marey.articulated.factor_kernel import solve_normal_equations
from marey.articulated.kinematics_kernel import (
    copy_pose,
    forward_kinematics,
    sum_subtrees,
    write_gradient,
    write_hessian,
)
from marey.articulated.limits_kernel import (
    activate_limits,
    apply_step,
    clamp_to_limits,
    is_at_limit,
    rotation_difference,
    write_rotation_axes,
)
from marey.articulated.targets_kernel import sum_targets, weight_targets
from marey.numerics.jit import inlined, lean

INITIAL_DAMPING = 1e-2
"""Damping after the first step that raised the cost, as a share of the mean diagonal of
a block. Higher shortens the next step more. Chosen by hand."""

DAMPING_DECREASE = 0.1
"""Factor of the damping after a step that lowered the cost. Higher keeps steps short
for longer. Chosen by hand."""

DAMPING_INCREASE = 10.0
"""Factor of the damping after a step that raised the cost. Chosen by hand."""

MIN_DAMPING = 1e-6
"""Damping below which it becomes zero: pure Gauss-Newton. Chosen by hand."""

COST_ROUNDING = 1e-10
"""Relative increase of the cost that counts as rounding. Higher accepts worse steps.
Chosen by hand."""

MIN_STEP = 1e-10
"""Step, in radians or metres, below which the iteration has converged. Chosen by
hand, above rounding."""

MAX_ACTIVE_SET_ROUNDS = 4
"""Largest number of rounds of fixing angles within one step. Higher solves more often
near several limits. Chosen by hand."""


@no_type_check
@lean
def write_prior_residuals(tree, work, root, q, expected_root, expected_q):
    """Write the residual of the prior: from the pose to the expected one.

    Metres for the root, rotation vectors in the world for the nodes.
    """
    for k in range(3):
        work.prior_residual[0, k] = expected_root[k] - root[k]
    for i in range(len(q)):
        p, residual = tree.parent[i], work.prior_residual[i + 1]
        rotation_difference(expected_q[i], q[i], residual)
        if p >= 0:
            R, x, y, z = work.R[p], residual[0], residual[1], residual[2]
            for k in range(3):
                residual[k] = R[k, 0] * x + R[k, 1] * y + R[k, 2] * z


@no_type_check
@lean
def prior_cost(work, prior):
    """Return the cost of the prior, by the share of it that counts in each block."""
    total = 0.0
    for b in range(len(prior)):
        e = work.prior_residual[b]
        square = e[0] * e[0] + e[1] * e[1] + e[2] * e[2]
        total += work.prior_share[b] * prior[b] * square
    return total


@no_type_check
@inlined
def assemble_gradient(tree, work, prior):
    """Write the gradient that decides which limits become active.

    It is the gradient of the targets, plus that of the prior for joints at a limit,
    by the share that the prior had in the step before.
    """
    sum_subtrees(tree, work)
    write_rotation_axes(tree, work)
    write_gradient(work)
    for b in range(2, len(prior)):
        if tree.has_limits[b - 1] and is_at_limit(work, b - 1):
            A, e, weight = (
                work.A[b],
                work.prior_residual[b],
                work.prior_share[b] * prior[b],
            )
            for k in range(3):
                along = A[k, 0] * e[0] + A[k, 1] * e[1] + A[k, 2] * e[2]
                work.g[b, k] += weight * along


@no_type_check
@inlined
def compute_step(tree, work, prior, gated, damping):
    """Write the step within the limits into `work.g`; return the predicted decrease.

    Active-set method: solve, fix the angles that the step would push beyond their
    limits, and solve again.
    """
    assemble_gradient(tree, work, prior)
    activate_limits(tree, work)
    decrease = 0.0
    for _ in range(MAX_ACTIVE_SET_ROUNDS):
        write_gradient(work)
        write_hessian(tree, work)
        decrease = solve_normal_equations(tree, work, prior, gated, damping)
        if not activate_limits(tree, work):
            break
    return decrease


@no_type_check
@lean
def levenberg_marquardt(problem, seen, scratch, settings, robustness, max_steps):
    """Move a pose to the least cost; return the cost of the targets and the steps.

    Args:
        problem: The kinematic tree, the table of targets and a `PoseWorkspace`.
        seen: Markers and sensors of the frame.
        scratch: A `TrackScratch`: moves `pose`, with the prior at `expected`.
        settings: A `TrackSettings`.
        robustness: As in `weight_targets`.
        max_steps: Largest number of steps.
    """
    tree, targets, work = problem
    points, sensors = seen
    origin, pose, new = scratch.origin, scratch.pose, scratch.new
    root, q = pose
    new_root, new_q = new
    expected_root, expected_q = scratch.expected
    prior, gated = settings.prior, not settings.guided
    clamp_to_limits(tree, work, q)
    forward_kinematics(tree, root, q, work.R, work.c)
    cost = weight_targets(targets, points, sensors, origin, work, robustness)
    sum_targets(targets, points, sensors, origin, work)
    write_prior_residuals(tree, work, root, q, expected_root, expected_q)
    damping = 0.0
    for step in range(max_steps):
        decrease = compute_step(tree, work, prior, gated, damping)
        total = cost + prior_cost(work, prior)
        moved = apply_step(tree, work, root, q, new_root, new_q)
        changed = clamp_to_limits(tree, work, new_q)
        small = decrease < settings.tolerance * total or moved < MIN_STEP
        if not changed and small:
            copy_pose(new, pose)
            return cost, step + 1
        forward_kinematics(tree, new_root, new_q, work.R, work.c)
        new_cost = weight_targets(targets, points, sensors, origin, work, robustness)
        write_prior_residuals(tree, work, new_root, new_q, expected_root, expected_q)
        if new_cost + prior_cost(work, prior) <= total * (1.0 + COST_ROUNDING):
            copy_pose(new, pose)
            cost = new_cost
            damping = DAMPING_DECREASE * damping if damping > MIN_DAMPING else 0.0
            if settings.robust:
                sum_targets(targets, points, sensors, origin, work)
        else:
            clamp_to_limits(tree, work, q)
            forward_kinematics(tree, root, q, work.R, work.c)
            write_prior_residuals(tree, work, root, q, expected_root, expected_q)
            damping = max(DAMPING_INCREASE * damping, INITIAL_DAMPING)
    return cost, max_steps
