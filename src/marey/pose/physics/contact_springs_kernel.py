"""Springs between two bodies and the ground under soles, compiled; see `fit.py`.

Neither is alike in all directions at one place of one body, so neither fits into the
sums by which targets enter a step. They are few, and join the step afterwards: a
correction of low rank (Woodbury), exact for springs of any stiffness.
"""

from typing import NamedTuple, no_type_check

import numpy as np

from marey.articulated.factor_kernel import again
from marey.articulated.kinematics_kernel import dot, fill
from marey.numerics.jit import lean

# Most rounds in which soles come to bear on the ground, or let go, within one step, by
# their number.
ROUNDS = 4

# Soles that would sink by less than this, in metres, stay as they are.
SINKS = 1e-12


class Bonds(NamedTuple):
    """Points that hold each other, and soles, with scratch for their rows.

    Every pair has three rows, every sole one.
    """

    node: np.ndarray  # by pair and side: the nodes
    place: np.ndarray  # the places in them, metres
    weight: np.ndarray  # by pair
    on: np.ndarray  # by frame and pair
    sole_node: np.ndarray
    sole_place: np.ndarray
    sole_weight: np.ndarray
    normal: np.ndarray  # out of the ground
    floor: np.ndarray  # by frame and sole: the ground along the normal; -inf: none
    B: np.ndarray  # by row: how far each unknown moves it
    Y: np.ndarray  # the steps that a unit force along each row makes
    S: np.ndarray  # by two rows: how far one gives way to the other
    factor: np.ndarray
    gap: np.ndarray  # by row: how far it has to go
    force: np.ndarray  # by row: what it comes to bear
    balance: np.ndarray
    bears: np.ndarray  # by row: whether it is at work
    spot: np.ndarray


@no_type_check
@lean
def _where(work, node, place, out):
    R, c = work.R[node], work.c[node]
    for k in range(3):
        out[k] = c[k] + R[k, 0] * place[0] + R[k, 1] * place[1] + R[k, 2] * place[2]


@no_type_check
@lean
def _row(tree, work, node, spot, way, sign, out):
    """Add how far each unknown moves a spot of a node along a direction."""
    chain, A = tree.chain[node + 1], work.A
    d0, d1, d2 = sign * way[0], sign * way[1], sign * way[2]
    out[0] += d0
    out[1] += d1
    out[2] += d2
    for step in range(1, tree.depth[node + 1] + 1):
        b = chain[step]
        c = work.c[b - 1]
        x, y, z = spot[0] - c[0], spot[1] - c[1], spot[2] - c[2]
        t0, t1, t2 = y * d2 - z * d1, z * d0 - x * d2, x * d1 - y * d0
        for k in range(3):
            out[3 * b + k] += A[b, k, 0] * t0 + A[b, k, 1] * t1 + A[b, k, 2] * t2


@no_type_check
@lean
def measure(bonds, frame, origin, work):
    """Write how far every row has to go; return what that costs."""
    spot, gap, cost, r = bonds.spot, bonds.gap, 0.0, 0
    for p in range(len(bonds.weight)):
        _where(work, bonds.node[p, 0], bonds.place[p, 0], spot[0])
        _where(work, bonds.node[p, 1], bonds.place[p, 1], spot[1])
        for k in range(3):
            gap[r] = spot[1, k] - spot[0, k]
            bonds.bears[r] = bonds.on[frame, p]
            if bonds.on[frame, p]:
                cost += bonds.weight[p] * gap[r] * gap[r]
            r += 1
    n = bonds.normal
    for s in range(len(bonds.sole_weight)):
        _where(work, bonds.sole_node[s], bonds.sole_place[s], spot[0])
        gap[r] = bonds.floor[frame, s]
        for k in range(3):
            gap[r] -= n[k] * (spot[0, k] + origin[k])
        bonds.bears[r] = gap[r] > 0.0
        if bonds.bears[r]:
            cost += bonds.sole_weight[s] * gap[r] * gap[r]
        r += 1
    return cost


@no_type_check
@lean
def _rows(tree, work, bonds):
    """Write how far every unknown moves every row, from where the pose has them."""
    spot, r = bonds.spot, 0
    for p in range(len(bonds.weight)):
        for side in range(2):
            _where(work, bonds.node[p, side], bonds.place[p, side], spot[side])
        for k in range(3):
            fill(bonds.B[r], 0.0)
            fill(spot[2], 0.0)
            spot[2, k] = 1.0
            for side in range(2):
                sign, node = 1.0 - 2.0 * side, bonds.node[p, side]
                _row(tree, work, node, spot[side], spot[2], sign, bonds.B[r])
            r += 1
    for s in range(len(bonds.sole_weight)):
        fill(bonds.B[r], 0.0)
        _where(work, bonds.sole_node[s], bonds.sole_place[s], spot[0])
        _row(tree, work, bonds.sole_node[s], spot[0], bonds.normal, 1.0, bonds.B[r])
        r += 1


@no_type_check
@lean
def _stiffness(bonds, r):
    pairs = 3 * len(bonds.weight)
    return bonds.weight[r // 3] if r < pairs else bonds.sole_weight[r - pairs]


@no_type_check
@lean
def press(tree, work, bonds):
    """Add the slope of all bonds, as measured, to that of the sums."""
    _rows(tree, work, bonds)
    for r in range(len(bonds.gap)):
        if bonds.bears[r]:
            force = _stiffness(bonds, r) * bonds.gap[r]
            for x in range(len(work.flat)):
                work.flat[x] += force * bonds.B[r, x]


@no_type_check
@lean
def bend(tree, work, bonds):
    """Turn the step of the sums into one with all bonds; return what that costs.

    It costs so much of the fall that the step of the sums alone has promised.

    A sole that the step would bring below the ground bears on it at once: pushed back
    in the next, it would have to be pushed through first.
    """
    g, count, cost = work.flat, len(bonds.gap), 0.0
    _rows(tree, work, bonds)
    for r in range(count):
        for x in range(len(g)):
            bonds.Y[r, x] = bonds.B[r, x]
        again(tree, work, bonds.Y[r])
    for r in range(count):
        for s in range(count):
            bonds.S[r, s] = dot(bonds.B[r], bonds.Y[s])
        weight = _stiffness(bonds, r)
        bonds.S[r, r] += 1.0 / weight
        if bonds.bears[r]:
            cost -= weight * bonds.gap[r] * bonds.gap[r]
        bonds.gap[r] -= dot(bonds.B[r], g)
    _share_out(bonds)
    for r in range(count):
        if bonds.bears[r]:
            cost += bonds.force[r] * bonds.gap[r]
            for x in range(len(g)):
                g[x] += bonds.force[r] * bonds.Y[r, x]
    return cost


@no_type_check
@lean
def _share_out(bonds):
    """Write the forces of all rows; those of the ground push.

    Least squares with bounds, after Lawson and Hanson: the sole that would sink most
    comes to bear, those that would be drawn down let go on the way, until none is left.
    """
    first, force, bears = 3 * len(bonds.weight), bonds.force, bonds.bears
    fill(force, 0.0)
    for r in range(first, len(force)):
        bears[r] = False
    for _ in range(1 + ROUNDS * (len(force) - first)):
        _balance(bonds)
        if _let_go(bonds, first):
            continue
        most, worst = SINKS, -1
        for r in range(first, len(force)):
            if not bears[r]:
                left = bonds.gap[r]
                for s in range(len(force)):
                    left -= bonds.S[r, s] * force[s]
                if left > most:
                    most, worst = left, r
        if worst < 0:
            break
        bears[worst] = True


@no_type_check
@lean
def _let_go(bonds, first):
    """Take forces as far as balance as soles push; return whether any has let go."""
    force, balance, bears, share = bonds.force, bonds.balance, bonds.bears, 1.0
    for r in range(first, len(force)):
        if bears[r] and balance[r] < 0.0:
            share = min(share, force[r] / (force[r] - balance[r]))
    for r in range(len(force)):
        drawn = bears[r] and r >= first and balance[r] < 0.0
        force[r] += share * (balance[r] - force[r])
        if drawn and force[r] <= 1e-12 * abs(balance[r]):
            bears[r], force[r] = False, 0.0
    return share < 1.0


@no_type_check
@lean
def _balance(bonds):
    """Write the forces at which all rows at work balance: a Cholesky factor."""
    L, S, f, on = bonds.factor, bonds.S, bonds.balance, bonds.bears
    for i in range(len(f)):
        f[i] = 0.0
        if not on[i]:
            continue
        total = bonds.gap[i]
        for j in range(i + 1):
            if not on[j]:
                continue
            value = S[i, j]
            for k in range(j):
                if on[k]:
                    value -= L[i, k] * L[j, k]
            L[i, j] = value / L[j, j] if j < i else max(value, 1e-300) ** 0.5
            if j < i:
                total -= L[i, j] * f[j]
        f[i] = total / L[i, i]
    for i in range(len(f) - 1, -1, -1):
        if not on[i]:
            continue
        for j in range(i + 1, len(f)):
            if on[j]:
                f[i] -= L[j, i] * f[j]
        f[i] /= L[i, i]
