r"""Levenberg-Marquardt with an active set of limits on one frame, compiled.

The cost is that of the targets (`targets_kernel`) plus a Gaussian prior towards an
expected pose,

.. math:: E(x) = \sum_k \rho(r_k) + \sum_b s_b \pi_b |e_b|^2,

with residual e_b from the pose of block b to the expected one, information
:math:`\pi_b` of the prior and its share s_b (`factor_kernel.solve_normal_equations`).
Every step solves the normal equations :math:`(J^T W J + s \pi + \lambda D) \,
\Delta = J^T W r + s \pi e`, fixes angles that would leave their limits, and solves
again until no more are fixed.

With `springs` (`marey.pose.physics`) the cost is twice the energy of a spring system:
the prior is the torque to the neutral posture, gravity and contact springs are added.
Without them, `springs` is None, and what concerns them is not compiled.
"""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from marey.articulated.contact_springs_kernel import (
    add_contact_gradient,
    add_gravity,
    apply_woodbury_update,
    measure_gaps,
)
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
    rotation_vector,
    write_rotation_axes,
)
from marey.articulated.targets_kernel import sum_targets, weight_targets
from marey.numerics.jit import inlined, lean
from marey.numerics.vector3_kernel import add_vector, dot, place, rotate, set_vector

INITIAL_DAMPING, DAMPING_FACTOR = 1e-2, 10.0
"""Damping after the first step that raised the cost, as a share of the mean diagonal of
a block, and its factor after each later step: published, Marquardt 1963. Higher
shortens steps more."""

COST_ROUNDING = 1e-10
"""Relative increase of the cost that counts as rounding. Higher accepts worse steps.
Chosen by hand."""

MIN_STEP = 1e-10
"""Step, in radians or metres, below which the iteration has converged. Chosen by
hand, above rounding."""

MAX_ITERATIONS_ACTIVE_SET = 4
"""Largest number of rounds of fixing angles within one step. Higher solves more often
near several limits. Chosen by hand."""


class FrameSettings(NamedTuple):
    """How one frame is solved; `TrackSettings` has the same fields and more."""

    prior: np.ndarray  # (block): information, of the root 1 / m^2, of nodes 1 / rad^2
    robust: bool  # whether weights depend on the pose: the loss is Geman-McClure
    tolerance: float  # relative decrease of the cost below which a step is the last
    guided: bool  # whether the prior counts fully, however well targets are seen


class FrameScratch(NamedTuple):
    """Poses of one frame: pairs of root position (from `origin`) and quaternions."""

    origin: np.ndarray
    pose: tuple[np.ndarray, np.ndarray]  # as it moves
    expected: tuple[np.ndarray, np.ndarray]  # of the prior
    new: tuple[np.ndarray, np.ndarray]  # scratch


@lean
def write_prior_residuals(tree, work, pose, expected, exact):
    """Write the residual of the prior: from the pose to the expected one.

    Metres for the root, rotation vectors in the world for the nodes: exact ones, or
    chords of length 2 sin(angle / 2), which take no arc functions.
    """
    for k in range(3):
        work.prior_residual[0, k] = expected[0][k] - pose[0][k]
    for i in range(len(work.c)):
        residual = work.prior_residual[i + 1]
        if exact:
            rotation_vector(expected[1][i], pose[1][i], residual)
        else:
            rotation_difference(expected[1][i], pose[1][i], residual)
        if i > 0:
            set_vector(residual, rotate(work.R[tree.parent[i]], residual))


@lean
def prior_cost(work, prior):
    """Return the cost of the prior, by the share of it that counts in each block."""
    total = 0.0
    for b in range(len(prior)):
        e = work.prior_residual[b]
        total += work.prior_share[b] * prior[b] * dot(e, e)
    return total


@inlined
def assemble_gradient(tree, work, prior, springs):
    """Write the gradient that decides which limits become active.

    It is the gradient of the targets, plus that of the prior for joints at a limit,
    by the share that the prior had in the step before.
    """
    sum_subtrees(tree, work)
    write_rotation_axes(tree, work)
    write_gradient(work)
    for b in range(2, len(prior)):
        if tree.has_limits[b - 1] and is_at_limit(work, b - 1):
            pull = rotate(work.A[b], work.prior_residual[b])
            add_vector(work.g[b], work.prior_share[b] * prior[b], pull)
    if springs is not None:
        add_contact_gradient(tree, work, springs)


@inlined
def compute_step(tree, work, prior, fades, damping, springs, frame, origin):
    """Write the step within the limits into `work.g`; return the predicted decrease.

    Active-set method: solve, fix the angles that the step would push beyond their
    limits, and solve again.
    """
    assemble_gradient(tree, work, prior, springs)
    activate_limits(tree, work)
    decrease = 0.0
    for _ in range(MAX_ITERATIONS_ACTIVE_SET):
        write_gradient(work)
        write_hessian(tree, work)
        decrease = solve_normal_equations(tree, work, prior, fades, damping)
        if springs is not None:
            measure_gaps(springs, frame, origin, work)
            decrease -= apply_woodbury_update(tree, work, springs)
        if not activate_limits(tree, work):
            break
    return decrease


@lean
def _other_energy(springs, frame, origin, work):
    """Return twice the energy of gravity and contact; 0 without springs."""
    if springs is None:
        return 0.0
    total = measure_gaps(springs, frame, origin, work)
    for i in range(len(springs.gravity)):
        centre = place(work.R[i], work.c[i], springs.centre[i])
        total -= 2.0 * dot(springs.gravity[i], centre)
    return total


@lean
def levenberg_marquardt(
    problem, seen, scratch, settings, robustness, max_steps, springs, frame
):
    """Move a pose to the least cost.

    Args:
        problem: The kinematic tree, the table of targets and a `PoseWorkspace`.
        seen: Markers and sensors of the frame.
        scratch: A `FrameScratch` or `TrackScratch`.
        settings: A `FrameSettings` or `TrackSettings`.
        robustness: As in `weight_targets`.
        max_steps: Largest number of steps.
        springs: `ContactSprings`, or None.
        frame: Number of the frame, for `springs`.

    Returns:
        The cost of the targets, the steps, and whether they were enough.
    """
    tree, targets, work = problem
    points, sensors = seen
    origin, pose = scratch.origin, scratch.pose
    new, expected = scratch.new, scratch.expected
    prior, fades, exact = settings.prior, not settings.guided, springs is not None
    clamp_to_limits(tree, work, pose[1])
    forward_kinematics(tree, pose[0], pose[1], work.R, work.c)
    cost = weight_targets(targets, points, sensors, origin, work, robustness)
    sum_targets(targets, points, sensors, origin, work)
    if springs is not None:
        add_gravity(springs, work)
    write_prior_residuals(tree, work, pose, expected, exact)
    other, damping = _other_energy(springs, frame, origin, work), 0.0
    for step in range(max_steps):
        decrease = compute_step(
            tree, work, prior, fades, damping, springs, frame, origin
        )
        total = cost + other + prior_cost(work, prior)
        moved = apply_step(tree, work, pose[0], pose[1], new[0], new[1])
        changed = clamp_to_limits(tree, work, new[1])
        small = decrease < settings.tolerance * abs(total) or moved < MIN_STEP
        if not changed and small:
            copy_pose(new, pose)
            return cost, step + 1, True
        forward_kinematics(tree, new[0], new[1], work.R, work.c)
        new_cost = weight_targets(targets, points, sensors, origin, work, robustness)
        write_prior_residuals(tree, work, new, expected, exact)
        new_other = _other_energy(springs, frame, origin, work)
        new_total = new_cost + new_other + prior_cost(work, prior)
        if new_total <= total + COST_ROUNDING * abs(total):
            copy_pose(new, pose)
            cost, other = new_cost, new_other
            damping /= DAMPING_FACTOR
            if settings.robust:
                sum_targets(targets, points, sensors, origin, work)
        else:
            clamp_to_limits(tree, work, pose[1])
            forward_kinematics(tree, pose[0], pose[1], work.R, work.c)
            if settings.robust:  # callers read the weights of the pose they get
                weight_targets(targets, points, sensors, origin, work, robustness)
            write_prior_residuals(tree, work, pose, expected, exact)
            _other_energy(springs, frame, origin, work)
            damping = max(DAMPING_FACTOR * damping, INITIAL_DAMPING)
    return cost, max_steps, False
