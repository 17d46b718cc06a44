"""All frames of a session at once, compiled: poses are eliminated frame by frame.

Of the unknowns that all frames share, a block of the pose sees those of the segments
it carries, which stand side by side as segments come depth first, and the joints on
the way to it. Their sums are kept by block.
"""

from typing import no_type_check

import numpy as np
from numba import njit

from marey.calibration.solver.frame_equations_kernel import (
    HINGE,
    backward,
    cross_columns,
    factored,
    forward,
    pose_equations,
    residuals,
    scratch,
    turned,
)
from marey.calibration.solver.pose_kernel import retracted
from marey.numerics.jit import FAST, lean


@no_type_check
@lean
def _down(chain, depth, lever, R, i, factor, Z, column):
    """Add the columns of what shifts all that a segment carries, by axes R[i].

    Rows of the blocks on the way to it: factor R for the root's place, and
    factor [lever]x R for every segment above.
    """
    for j in range(3):
        x, y, z = factor * R[i, 0, j], factor * R[i, 1, j], factor * R[i, 2, j]
        to = column + j
        Z[0, 0, to] += x
        Z[0, 1, to] += y
        Z[0, 2, to] += z
        for step in range(1, depth):
            a, row = chain[step + 1] - 1, chain[step]
            Z[row, 0, to] += lever[a, 1] * z - lever[a, 2] * y
            Z[row, 1, to] += lever[a, 2] * x - lever[a, 0] * z
            Z[row, 2, to] += lever[a, 0] * y - lever[a, 1] * x


@no_type_check
@lean
def columns(tree, shape, R, work):
    """Write Z: how poses and shared unknowns go together."""
    Z, arm, lever, below = work.Z, work.arm, work.lever, work.below
    Z[:] = 0.0
    for i in range(len(tree.parent)):
        chain, depth, p = tree.chain[i + 1], tree.depth[i + 1], tree.parent[i]
        own = Z[i + 1]
        for k in range(tree.first[i], tree.first[i + 1]):
            w, column = work.weight[k], tree.m_column[k]
            _down(chain, depth, lever, R, i, w, Z, column)
            cross_columns(arm[k], R[i], w, own, column)
        if p < 0:
            continue
        _down(chain, depth, lever, R, p, below[i, 0], Z, tree.o_column[i])
        # A joint on the way to a segment shifts all that the segment carries.
        for step in range(2, depth + 1):
            a = chain[step] - 1
            column = tree.o_column[a]
            cross_columns(below[i, 1:4], R[tree.parent[a]], 1.0, own, column)
    ax, bx = work.ax, work.bx
    for h in range(len(tree.axis_child)):
        i, w, column = tree.axis_child[h], tree.axis_weight[h], tree.axis_column[h]
        p = tree.parent[i]
        turned(R[p], shape.a[h], ax)
        turned(R[i], shape.b[h], bx)
        if tree.axis_kind[h] == HINGE:
            cross_columns(ax, R[p], w, work.Z[p + 1], column)
            cross_columns(bx, R[p], -w, work.Z[i + 1], column)
            cross_columns(ax, R[i], -w, work.Z[p + 1], column + 3)
            cross_columns(bx, R[i], w, work.Z[i + 1], column + 3)
        else:
            _square_columns(R[p], R[i], ax, bx, w, work.Z[p + 1], column)
            _square_columns(R[p], R[i], ax, bx, -w, work.Z[i + 1], column)


@no_type_check
@lean
def _square_columns(P, Q, ax, bx, w, out, column):
    """Add the columns of two axes that stay square."""
    j0 = ax[1] * bx[2] - ax[2] * bx[1]
    j1 = ax[2] * bx[0] - ax[0] * bx[2]
    j2 = ax[0] * bx[1] - ax[1] * bx[0]
    for k in range(3):
        a = w * (P[0, k] * bx[0] + P[1, k] * bx[1] + P[2, k] * bx[2])
        b = w * (Q[0, k] * ax[0] + Q[1, k] * ax[1] + Q[2, k] * ax[2])
        out[0, column + k] += j0 * a
        out[1, column + k] += j1 * a
        out[2, column + k] += j2 * a
        out[0, column + 3 + k] += j0 * b
        out[1, column + 3 + k] += j1 * b
        out[2, column + 3 + k] += j2 * b


@no_type_check
@lean
def _add_turned(P, Q, factor, A, row, column):
    """Add factor P^T Q."""
    for i in range(3):
        for j in range(3):
            s = P[0, i] * Q[0, j] + P[1, i] * Q[1, j] + P[2, i] * Q[2, j]
            A[row + i, column + j] += factor * s


@no_type_check
@lean
def _add_back(P, v, factor, b, row):
    """Add factor P^T v."""
    for i in range(3):
        b[row + i] += factor * (P[0, i] * v[0] + P[1, i] * v[1] + P[2, i] * v[2])


@no_type_check
@lean
def shared_equations(tree, shape, R, work, A, b):
    """Add the shared unknowns' own part, the lower triangle."""
    for i in range(len(tree.parent)):
        p, chain = tree.parent[i], tree.chain[i + 1]
        if p >= 0:
            row, W = tree.o_column[i], work.below[i, 0]
            _add_back(R[p], work.below[i, 4:], 1.0, b, row)
            for step in range(2, tree.depth[i + 1] + 1):
                a = chain[step] - 1
                _add_turned(R[p], R[tree.parent[a]], W, A, row, tree.o_column[a])
        for k in range(tree.first[i], tree.first[i + 1]):
            row, w = tree.m_column[k], work.weight[k]
            _add_back(R[i], work.r[k], w, b, row)
            for x in range(3):
                A[row + x, row + x] += w
            for step in range(2, tree.depth[i + 1] + 1):
                a = chain[step] - 1
                _add_turned(R[i], R[tree.parent[a]], w, A, row, tree.o_column[a])
    _axis_equations(tree, shape, R, work, A, b)


@no_type_check
@lean
def _axis_equations(tree, shape, R, work, A, b):
    ax, bx, miss = work.ax, work.bx, work.jx
    for h in range(len(tree.axis_child)):
        i, w, row = tree.axis_child[h], tree.axis_weight[h], tree.axis_column[h]
        P, Q = R[tree.parent[i]], R[i]
        turned(P, shape.a[h], ax)
        turned(Q, shape.b[h], bx)
        if tree.axis_kind[h] == HINGE:
            for x in range(3):
                miss[x] = ax[x] - bx[x]
                A[row + x, row + x] += w
                A[row + 3 + x, row + 3 + x] += w
            _add_turned(Q, P, -w, A, row + 3, row)
            _add_back(P, miss, -w, b, row)
            _add_back(Q, miss, w, b, row + 3)
        else:
            _square_equations(P, Q, ax, bx, w, A, b, row)


@no_type_check
@lean
def _square_equations(P, Q, ax, bx, w, A, b, row):
    """Add what two axes that stay square tell of themselves."""
    off = ax[0] * bx[0] + ax[1] * bx[1] + ax[2] * bx[2]
    for x in range(6):
        M, v, k = (P, bx, x) if x < 3 else (Q, ax, x - 3)
        one = M[0, k] * v[0] + M[1, k] * v[1] + M[2, k] * v[2]
        b[row + x] -= w * off * one
        for z in range(x + 1):
            M, v, k = (P, bx, z) if z < 3 else (Q, ax, z - 3)
            two = M[0, k] * v[0] + M[1, k] * v[1] + M[2, k] * v[2]
            A[row + x, row + z] += w * one * two


@no_type_check
@lean
def _indices(tree, block, index):
    """Write the columns that a block sees; return how many."""
    count = 0
    for step in range(2, tree.depth[block]):
        column = tree.o_column[tree.chain[block, step] - 1]
        for j in range(3):
            index[count] = column + j
            count += 1
    for j in range(tree.low[block], tree.high[block]):
        index[count] = j
        count += 1
    return count


@no_type_check
@lean
def _packed(tree, work, block, index, count, Y):
    """Write L^-1 Z of one block, column beside column."""
    own, mine = work.H[block, tree.depth[block]], work.Z[block]
    d0, d1, d2 = 1.0 / own[0, 0], 1.0 / own[1, 1], 1.0 / own[2, 2]
    l10, l20, l21 = own[1, 0], own[2, 0], own[2, 1]
    for x in range(3):
        for j in range(count):
            Y[x, j] = mine[x, index[j]]
    for j in range(count):
        x = d0 * Y[0, j]
        y = d1 * (Y[1, j] - l10 * x)
        Y[0, j], Y[1, j] = x, y
        Y[2, j] = d2 * (Y[2, j] - l20 * x - l21 * y)


@no_type_check
@lean
def _eliminated(tree, work, sums, b, index, Y, size):
    """Turn Z into L^-1 Z and add its products; `size` gets each column's square."""
    g = work.g
    size[:] = 0.0
    for block in range(len(tree.depth) - 1, -1, -1):
        count = _indices(tree, block, index)
        # Joints on the way come first, then columns side by side.
        low, few = tree.low[block], count - (tree.high[block] - tree.low[block])
        _packed(tree, work, block, index, count, Y)
        for step in range(tree.depth[block]):
            X, out = work.H[block, step], work.Z[tree.chain[block, step]]
            for i in range(3):
                x, y, z = X[0, i], X[1, i], X[2, i]
                for j in range(few):
                    out[i, index[j]] -= x * Y[0, j] + y * Y[1, j] + z * Y[2, j]
                row = out[i, low:]
                for j in range(few, count):
                    row[j - few] -= x * Y[0, j] + y * Y[1, j] + z * Y[2, j]
        x, y, z = g[block, 0], g[block, 1], g[block, 2]
        for j in range(count):
            size[index[j]] += Y[0, j] * Y[0, j] + Y[1, j] * Y[1, j] + Y[2, j] * Y[2, j]
            b[index[j]] -= x * Y[0, j] + y * Y[1, j] + z * Y[2, j]
        _added(Y, count, sums[tree.start[block] :])


@no_type_check
@lean
def _added(Y, count, sums):
    """Add the products of all columns, row after row of the lower triangle."""
    at = 0
    for i in range(count):
        x, y, z = Y[0, i], Y[1, i], Y[2, i]
        row = sums[at : at + i + 1]
        for j in range(i + 1):
            row[j] += x * Y[0, j] + y * Y[1, j] + z * Y[2, j]
        at += i + 1


@no_type_check
@lean
def _spread(tree, sums, index, A):
    """Take the products of every block from the lower triangle."""
    for block in range(len(tree.depth)):
        count = _indices(tree, block, index)
        at = tree.start[block]
        for i in range(count):
            for j in range(i + 1):
                row, column = index[i], index[j]
                A[max(row, column), min(row, column)] -= sums[at]
                at += 1


@no_type_check
@njit(cache=True, fastmath=FAST, nogil=True)
def reduced(tree, shape, points, t, R, damping, A, b, leverage):
    """Write the equations of the shared unknowns with the poses eliminated.

    Args:
        tree: The segments.
        shape: Their shape.
        points: Frames x markers x 3.
        t: The root's place in each frame.
        R: All rotations in each frame.
        damping: Share of each pose's diagonal added to it.
        A: Out: columns x columns.
        b: Out: the slope.
        leverage: Out: frames x markers, how much of each position its pose takes up,
            0 to 3.

    Returns:
        The cost of all frames.
    """
    work = scratch(tree, points.shape[1], len(b))
    sums = np.zeros(tree.start[len(tree.depth)])
    Y = np.empty((3, len(b)))
    size, index = np.empty(len(b)), np.empty(len(b), dtype=np.int64)
    A[:] = 0.0
    b[:] = 0.0
    cost = 0.0
    for f in range(len(points)):
        cost += residuals(tree, shape, points[f], t[f], R[f], work)
        pose_equations(tree, shape, R[f], work)
        columns(tree, shape, R[f], work)
        shared_equations(tree, shape, R[f], work, A, b)
        factored(tree, work, damping)
        forward(tree, work)
        _eliminated(tree, work, sums, b, index, Y, size)
        for k in range(points.shape[1]):
            leverage[f, k] = 0.0
            if work.weight[k] > 0.0:
                j = tree.m_column[k]
                leverage[f, k] = (size[j] + size[j + 1] + size[j + 2]) / work.weight[k]
    _spread(tree, sums, index, A)
    for i in range(len(A)):
        for j in range(i):
            A[j, i] = A[i, j]
    return cost


@no_type_check
@njit(cache=True, fastmath=FAST, nogil=True)
def followed(tree, shape, points, t, R, damping, step, t_out, R_out):
    """Write the poses that go with a step of the shared unknowns."""
    work = scratch(tree, points.shape[1], len(step))
    for f in range(len(points)):
        residuals(tree, shape, points[f], t[f], R[f], work)
        pose_equations(tree, shape, R[f], work)
        columns(tree, shape, R[f], work)
        for block in range(len(tree.depth)):
            for x in range(3):
                for j in range(len(step)):
                    work.g[block, x] -= work.Z[block, x, j] * step[j]
        factored(tree, work, damping)
        forward(tree, work)
        backward(tree, work)
        retracted(t[f], R[f], work.g, t_out[f], R_out[f])
