r"""Static equilibrium of a spring system, frame by frame; compiled.

The energy is explained in `marey.pose.physics.equilibrium`: springs, torques to the
neutral posture, gravity, and contact. Each frame takes Gauss-Newton steps with
Levenberg-Marquardt damping on the tree-sparse factor, within the limits of the joints.
"""

from typing import no_type_check

import numpy as np
from numba import njit

from marey.articulated.factor_kernel import solve_normal_equations
from marey.articulated.kinematics_kernel import (
    copy,
    copy_rows,
    fill,
    forward_kinematics,
    write_gradient,
    write_hessian,
)
from marey.articulated.limits_kernel import (
    activate_limits,
    apply_step,
    clamp_to_limits,
    rotation_difference,
)
from marey.articulated.targets_kernel import sum_targets, weight_targets
from marey.numerics.jit import lean
from marey.pose.gauss_newton.lm_kernel import (
    COST_ROUNDING,
    DAMPING_DECREASE,
    DAMPING_INCREASE,
    INITIAL_DAMPING,
    MAX_ACTIVE_SET_ROUNDS,
    MIN_STEP,
    assemble_gradient,
)
from marey.pose.physics.contact_springs_kernel import (
    add_contact_gradient,
    apply_woodbury_update,
    measure_gaps,
)

# Share of the energy; a step that is predicted to lower it by less is the last. Raising
# it stops earlier. Chosen by hand.
MIN_RELATIVE_DECREASE = 1e-12

# Damping below this is set to zero.
MIN_DAMPING = 1e-6


@no_type_check
@lean
def chord_to_rotation_vector(out):
    """Scale a vector of length 2 sin(angle / 2) along an axis to length angle."""
    half = 0.5 * np.sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2])
    if half > 1e-9:
        scale = np.arctan2(half, np.sqrt(max(1.0 - half * half, 0.0))) / half
        for k in range(3):
            out[k] *= scale


@no_type_check
@lean
def _write_neutral_errors(tree, work, q, neutral):
    """Write the rotation vectors to the neutral posture, in the world."""
    for k in range(3):
        work.prior_residual[0, k] = work.prior_residual[1, k] = 0.0
    for i in range(1, len(q)):
        error, R = work.prior_residual[i + 1], work.R[tree.parent[i]]
        rotation_difference(neutral[i], q[i], error)
        chord_to_rotation_vector(error)
        x, y, z = error[0], error[1], error[2]
        for k in range(3):
            error[k] = R[k, 0] * x + R[k, 1] * y + R[k, 2] * z


@no_type_check
@lean
def _torque_and_gravity_energy(work, neutral_weight, gravity, centres):
    """Return twice the energy of the neutral posture's torques and of gravity."""
    total = 0.0
    for b in range(2, len(neutral_weight)):
        e = work.prior_residual[b]
        total += neutral_weight[b] * (e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
    for i in range(len(gravity)):
        R, c, m = work.R[i], work.c[i], centres[i]
        for k in range(3):
            x = c[k] + R[k, 0] * m[0] + R[k, 1] * m[1] + R[k, 2] * m[2]
            total -= 2.0 * gravity[i, k] * x
    return total


@no_type_check
@lean
def _add_gravity(work, gravity, centres):
    """Add constant forces to the sums of the nodes: a gradient without a Hessian."""
    for i in range(len(gravity)):
        sums = work.node_sums[i]
        for k in range(3):
            sums[10 + k] += gravity[i, k]
            for j in range(3):
                sums[13 + 3 * j + k] += centres[i, j] * gravity[i, k]


@no_type_check
@lean
def _compute_step(tree, work, springs, frame, origin, neutral_weight, damping):
    """Write a step within the limits; return the decrease of energy it predicts.

    A limit is active by all forces on it, including torques and contact springs.
    """
    has_contact = len(springs.gap) > 0
    assemble_gradient(tree, work, neutral_weight)
    if has_contact:
        add_contact_gradient(tree, work, springs)
    activate_limits(tree, work)
    decrease = 0.0
    for _ in range(MAX_ACTIVE_SET_ROUNDS):
        write_gradient(work)
        write_hessian(tree, work)
        decrease = solve_normal_equations(tree, work, neutral_weight, False, damping)
        if has_contact:
            measure_gaps(springs, frame, origin, work)
            decrease -= apply_woodbury_update(tree, work, springs)
        if not activate_limits(tree, work):
            break
    return decrease


@no_type_check
@lean
def _energy_without_targets(tree, work, springs, frame, origin, q, forces):
    """Return twice the energy of torques, gravity and contact at the current pose."""
    neutral, neutral_weight, gravity, centres = forces
    _write_neutral_errors(tree, work, q, neutral)
    energy = _torque_and_gravity_energy(work, neutral_weight, gravity, centres)
    return energy + measure_gaps(springs, frame, origin, work)


@no_type_check
@lean
def _minimise_frame(
    tree, targets, work, springs, seen, frame, origin, pose, forces, max_steps
):
    """Move a pose to the least energy; return the steps, and if it has converged.

    `seen` is points and sensors. `forces` is the neutral posture, its weight, gravity
    and the centres of mass it acts on.
    """
    points, sensors = seen
    root, q, new_root, new_q = pose
    clamp_to_limits(tree, work, q)
    forward_kinematics(tree, root, q, work.R, work.c)
    cost = weight_targets(targets, points, sensors, origin, work, 0.0)
    sum_targets(targets, points, sensors, origin, work)
    _add_gravity(work, forces[2], forces[3])
    damping = 0.0
    for step in range(max_steps):
        before = cost + _energy_without_targets(
            tree, work, springs, frame, origin, q, forces
        )
        decrease = _compute_step(tree, work, springs, frame, origin, forces[1], damping)
        moved = apply_step(tree, work, root, q, new_root, new_q)
        changed = clamp_to_limits(tree, work, new_q)
        is_last = decrease < MIN_RELATIVE_DECREASE * abs(before) or moved < MIN_STEP
        if not changed and is_last:
            copy(new_root, root)
            copy_rows(new_q, q)
            return step + 1, True
        forward_kinematics(tree, new_root, new_q, work.R, work.c)
        new_cost = weight_targets(targets, points, sensors, origin, work, 0.0)
        after = new_cost + _energy_without_targets(
            tree, work, springs, frame, origin, new_q, forces
        )
        if after <= before + COST_ROUNDING * abs(before):
            copy(new_root, root)
            copy_rows(new_q, q)
            cost = new_cost
            damping = DAMPING_DECREASE * damping if damping > MIN_DAMPING else 0.0
        else:
            clamp_to_limits(tree, work, q)
            forward_kinematics(tree, root, q, work.R, work.c)
            damping = max(DAMPING_INCREASE * damping, INITIAL_DAMPING)
    return max_steps, False


@no_type_check
@njit(cache=True)
def minimise_frames(
    tree,
    targets,
    work,
    springs,
    points,
    sensors,
    neutral,
    neutral_weight,
    gravity,
    centres,
    max_steps,
    root,
    q,
    info,
):
    """Move the poses of all frames to the least energy.

    `info` gets per frame: steps, and 1 where these were not enough.
    """
    here, new_root, new_q = np.empty(3), np.empty(3), np.empty((len(tree.parent), 4))
    origin = np.empty(3)
    for f in range(len(q)):
        copy(root[f], origin)
        fill(here, 0.0)
        pose = (here, q[f], new_root, new_q)
        forces = (neutral[f], neutral_weight[f], gravity, centres)
        seen = (points[f], sensors[f])
        steps, converged = _minimise_frame(
            tree, targets, work, springs, seen, f, origin, pose, forces, max_steps
        )
        info[f, 0], info[f, 1] = steps, 0.0 if converged else 1.0
        for k in range(3):
            root[f, k] = origin[k] + here[k]
