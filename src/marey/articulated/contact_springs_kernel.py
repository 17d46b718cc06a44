r"""Contact springs in a Gauss-Newton step, by a Woodbury update; compiled.

Springs between two bodies and the ground under soles have a direction, so they do not
fit into the isotropic sums by which markers enter a step. There are few of them, one
row of :math:`B` each (three for a hold, one for a sole), and they change the Hessian
:math:`H` of the other springs by a matrix of low rank. With stiffnesses :math:`W` and
gaps :math:`g`, the step with all springs follows from the factor of :math:`H` (Woodbury
identity):

.. math:: x = x_0 + Y^T f, \qquad S f = g - B x_0, \qquad
          Y^T = H^{-1} B^T, \qquad S = B H^{-1} B^T + W^{-1},

where :math:`x_0` is the step without contact springs and :math:`f` are the forces. It
is exact for any stiffness. Soles only push: their forces are bounded by
:math:`f \ge 0`, and are found by non-negative least squares (the active set method of
Lawson and Hanson).
"""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from marey.articulated.factor_kernel import substitute_tree
from marey.numerics.arrays.reference_kernel import by_reference
from marey.numerics.jit import lean
from marey.numerics.vector3_kernel import (
    add_values,
    add_vector,
    cross,
    dot,
    fill,
    place,
    rotate,
    set_values,
    set_vector,
    sum_products,
)

# Most rounds of the active set method in one step, by the number of soles.
MAX_ITERATIONS_PER_SOLE = 4

# A gap of less than this, in metres, does not activate a sole, and a force of less
# than this share of the balance is zero: both are rounding.
ROUNDING = 1e-12

# Least pivot of the Cholesky factor.
TINY = 1e-300


@by_reference
class ContactSprings(NamedTuple):
    """Rows of contact springs, with scratch arrays.

    Each row is a spring along one direction, from a point of a body to a point of
    another body or to the ground. A hold has three rows, a sole has one.
    """

    n_hold_rows: int  # rows of holds; rows of soles follow
    node: np.ndarray  # by row and side; the second is -1 for the ground
    offset: np.ndarray  # by row and side: position in the node, metres
    direction: np.ndarray  # by row: unit vector
    weight: np.ndarray  # by row: stiffness
    on: np.ndarray  # by frame and row
    height: np.ndarray  # by frame and row: of the ground, metres; 0 for holds
    B: np.ndarray  # Jacobian: by row and unknown
    Y: np.ndarray  # B times the inverse Hessian
    S: np.ndarray  # by two rows: compliance, B Y^T + 1 / stiffness
    L: np.ndarray  # Cholesky factor of the active part of S
    gap: np.ndarray  # by row: distance to close, metres
    force: np.ndarray  # by row
    balance: np.ndarray  # by row: force at which all active rows balance
    active: np.ndarray  # by row
    scratch: np.ndarray
    gravity: np.ndarray  # by node: constant force
    centre: np.ndarray  # by node: where it acts, in the node, metres


@lean
def add_gravity(springs, work):
    """Add constant forces to the sums of the nodes: a gradient without a Hessian."""
    for i in range(len(springs.gravity)):
        sums, force = work.node_sums[i], springs.gravity[i]
        add_vector(sums[10:], 1.0, force)
        for j in range(3):
            add_vector(sums[13 + 3 * j :], springs.centre[i, j], force)


@lean
def _add_jacobian_row(tree, work, node, position, direction, sign, out):
    """Add the derivative of a point's coordinate along a direction by the unknowns."""
    d = sign * direction[0], sign * direction[1], sign * direction[2]
    add_vector(out, 1.0, d)
    for step in range(1, tree.depth[node + 1] + 1):
        b = tree.chain[node + 1, step]
        c = work.c[b - 1]
        lever = position[0] - c[0], position[1] - c[1], position[2] - c[2]
        add_vector(out[3 * b :], 1.0, rotate(work.A[b], cross(lever, d)))


@lean
def measure_gaps(springs, frame, origin, work):
    """Write the gap of every row; return twice the energy of the active ones."""
    position, gap, cost = springs.scratch, springs.gap, 0.0
    for r in range(len(gap)):
        for k in range(3):
            position[1, k] = -origin[k]  # the ground is fixed in the world
        for side in range(2):
            node = springs.node[r, side]
            if node >= 0:
                point = place(work.R[node], work.c[node], springs.offset[r, side])
                set_vector(position[side], point)
        gap[r] = springs.height[frame, r]
        gap[r] -= dot(springs.direction[r], position[0])
        gap[r] += dot(springs.direction[r], position[1])
        is_hold = r < springs.n_hold_rows
        springs.active[r] = springs.on[frame, r] and (is_hold or gap[r] > 0.0)
        if springs.active[r]:
            cost += springs.weight[r] * gap[r] * gap[r]
    return cost


@lean
def _write_jacobian(tree, work, springs):
    """Write the Jacobian B of all rows at the current pose."""
    for r in range(len(springs.gap)):
        row = springs.B[r]
        fill(row, 0.0)
        for side in range(2):
            node, sign = springs.node[r, side], 1.0 - 2.0 * side
            if node >= 0:
                point = place(work.R[node], work.c[node], springs.offset[r, side])
                _add_jacobian_row(
                    tree, work, node, point, springs.direction[r], sign, row
                )


@lean
def add_contact_gradient(tree, work, springs):
    """Add the gradient of all active contact springs to that of the other springs."""
    _write_jacobian(tree, work, springs)
    for r in range(len(springs.gap)):
        if springs.active[r]:
            add_values(work.flat, springs.weight[r] * springs.gap[r], springs.B[r])


@lean
def apply_woodbury_update(tree, work, springs):
    """Correct the step of the other springs for contact (Woodbury update).

    A sole that the step would bring below the ground is active at once; otherwise it
    would have to pass through the ground before the next step pushes it back.

    Returns the loss in predicted decrease of the energy.
    """
    g, count, cost = work.flat, len(springs.gap), 0.0
    _write_jacobian(tree, work, springs)
    for r in range(count):
        set_values(springs.Y[r], springs.B[r])
        substitute_tree(tree, work, springs.Y[r])
    for r in range(count):
        for s in range(count):
            springs.S[r, s] = sum_products(springs.B[r], springs.Y[s])
        weight = springs.weight[r]
        springs.S[r, r] += 1.0 / weight
        if springs.active[r]:
            cost -= weight * springs.gap[r] * springs.gap[r]
        springs.gap[r] -= sum_products(springs.B[r], g)
    _solve_forces(springs)
    for r in range(count):
        if springs.active[r]:
            cost += springs.force[r] * springs.gap[r]
            add_values(g, springs.force[r], springs.Y[r])
    return cost


@lean
def _solve_forces(springs):
    """Write the forces of all rows; those of soles push (Lawson and Hanson).

    In each round the sole that would sink most becomes active; soles whose force would
    turn negative are released on the way, until no sole would sink.
    """
    first, force, active = springs.n_hold_rows, springs.force, springs.active
    fill(force, 0.0)
    for r in range(first, len(force)):
        active[r] = False
    for _ in range(1 + MAX_ITERATIONS_PER_SOLE * (len(force) - first)):
        _solve_active_rows(springs)
        if _release_soles(springs, first):
            continue
        deepest = _deepest_inactive_sole(springs, first)
        if deepest < 0:
            break
        active[deepest] = True


@lean
def _deepest_inactive_sole(springs, first):
    """Return the row of the inactive sole that would sink most; -1 if none would."""
    most, deepest = ROUNDING, -1
    for r in range(first, len(springs.force)):
        if not springs.active[r]:
            left = springs.gap[r]
            for s in range(len(springs.force)):
                left -= springs.S[r, s] * springs.force[s]
            if left > most:
                most, deepest = left, r
    return deepest


@lean
def _release_soles(springs, first):
    """Move forces towards balance while soles push; return whether any is released."""
    force, balance, active, share = springs.force, springs.balance, springs.active, 1.0
    for r in range(first, len(force)):
        if active[r] and balance[r] < 0.0:
            share = min(share, force[r] / (force[r] - balance[r]))
    for r in range(len(force)):
        pulls = active[r] and r >= first and balance[r] < 0.0
        force[r] += share * (balance[r] - force[r])
        if pulls and force[r] <= ROUNDING * abs(balance[r]):
            active[r], force[r] = False, 0.0
    return share < 1.0


@lean
def _solve_active_rows(springs):
    """Write the forces at which all active rows balance, by a Cholesky factor of S."""
    L, f, active, n = springs.L, springs.balance, springs.active, len(springs.gap)
    fill(f, 0.0)
    for i in range(n):
        if active[i]:
            _write_factor_row(L, springs.S, active, i)
            known = _sum_active_products(L[i], f, active, 0, i)
            f[i] = (springs.gap[i] - known) / L[i, i]
    for i in range(n - 1, -1, -1):
        if active[i]:
            known = _sum_active_products(L[:, i], f, active, i + 1, n)
            f[i] = (f[i] - known) / L[i, i]


@lean
def _write_factor_row(L, S, active, i):
    """Write row i of the Cholesky factor of the active part of S."""
    for j in range(i + 1):
        if active[j]:
            value = S[i, j] - _sum_active_products(L[i], L[j], active, 0, j)
            L[i, j] = value / L[j, j] if j < i else max(value, TINY) ** 0.5


@lean
def _sum_active_products(a, b, active, first, stop):
    """Return the sum of the products of two arrays over active rows of a range."""
    total = 0.0
    for k in range(first, stop):
        if active[k]:
            total += a[k] * b[k]
    return total
