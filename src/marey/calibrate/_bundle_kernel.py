"""All frames of a session at once, compiled: poses are eliminated frame by frame.

Of the unknowns that all frames share, a block of the pose sees those of the segments
it carries, which stand side by side as segments come depth first, and the joints on
the way to it. Their sums are kept by block.
"""

from typing import no_type_check

import numpy as np
from numba import njit

from marey.calibrate._frame_kernel import (
    FAST,
    HINGE,
    backward,
    cross_columns,
    factored,
    forward,
    inner,
    pose_equations,
    residuals,
    scratch,
    turned,
)

# A rotation turns by no more than this in one step, in radians.
LARGEST_TURN = 0.6

# Damping of one pose: its start, and how it falls and rises.
FIRST, EASED, RAISED, MOST = 1e-3, 0.2, 10.0, 1e6


@no_type_check
@inner
def _down(tree, block, M, factor, work, column):
    """Add the columns of what shifts all that a block's segment carries.

    Rows of the blocks on the way to it: factor M for the root's place, and
    factor [lever]x M for every segment above.
    """
    Z, chain = work.Z, tree.chain[block]
    for i in range(3):
        for j in range(3):
            Z[0, i, column + j] += factor * M[i, j]
    for step in range(1, tree.depth[block]):
        lever = work.lever[chain[step + 1] - 1]
        cross_columns(lever, M, factor, Z[chain[step]], column)


@no_type_check
@inner
def columns(tree, shape, R, work):
    """Write Z: how poses and shared unknowns go together."""
    work.Z[:] = 0.0
    for i in range(len(tree.parent)):
        for k in range(tree.first[i], tree.first[i + 1]):
            w, column = work.weight[k], tree.m_column[k]
            _down(tree, i + 1, R[i], w, work, column)
            cross_columns(work.arm[k], R[i], w, work.Z[i + 1], column)
        p = tree.parent[i]
        if p >= 0:
            _down(tree, i + 1, R[p], work.below[i, 0], work, tree.o_column[i])
            # A joint on the way to a segment shifts all that the segment carries.
            for step in range(2, tree.depth[i + 1] + 1):
                a = tree.chain[i + 1, step] - 1
                above = R[tree.parent[a]]
                moved = work.below[i, 1:4]
                cross_columns(moved, above, 1.0, work.Z[i + 1], tree.o_column[a])
    ax, bx = np.empty(3), np.empty(3)
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
@inner
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
@inner
def _add_turned(P, Q, factor, A, row, column):
    """Add factor P^T Q."""
    for i in range(3):
        for j in range(3):
            s = P[0, i] * Q[0, j] + P[1, i] * Q[1, j] + P[2, i] * Q[2, j]
            A[row + i, column + j] += factor * s


@no_type_check
@inner
def _add_back(P, v, factor, b, row):
    """Add factor P^T v."""
    for i in range(3):
        b[row + i] += factor * (P[0, i] * v[0] + P[1, i] * v[1] + P[2, i] * v[2])


@no_type_check
@inner
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
    _axis_equations(tree, shape, R, A, b)


@no_type_check
@inner
def _axis_equations(tree, shape, R, A, b):
    ax, bx, miss = np.empty(3), np.empty(3), np.empty(3)
    ja = np.empty(6)
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
            continue
        off = ax[0] * bx[0] + ax[1] * bx[1] + ax[2] * bx[2]
        for k in range(3):
            ja[k] = P[0, k] * bx[0] + P[1, k] * bx[1] + P[2, k] * bx[2]
            ja[3 + k] = Q[0, k] * ax[0] + Q[1, k] * ax[1] + Q[2, k] * ax[2]
        for x in range(6):
            b[row + x] -= w * off * ja[x]
            for z in range(x + 1):
                A[row + x, row + z] += w * ja[x] * ja[z]


@no_type_check
@inner
def _eliminated(tree, work, sums, b, packed, size):
    """Turn Z into L^-1 Z, and add its products; `size` gets each column's square."""
    Z, g = work.Z, work.g
    size[:] = 0.0
    for block in range(len(tree.depth) - 1, -1, -1):
        own = tree.depth[block]
        D, mine = work.H[block, own], Z[block]
        d0, d1, d2 = 1.0 / D[0, 0], 1.0 / D[1, 1], 1.0 / D[2, 2]
        l10, l20, l21 = D[1, 0], D[2, 0], D[2, 1]
        count = 0
        low, high = tree.low[block], tree.high[block]
        for step in range(2, own):
            column = tree.o_column[tree.chain[block, step] - 1]
            for j in range(column, column + 3):
                for x in range(3):
                    packed[x, count] = mine[x, j]
                count += 1
        for x in range(3):
            for j in range(low, high):
                packed[x, count + j - low] = mine[x, j]
        total = count + high - low
        for j in range(total):
            x = d0 * packed[0, j]
            y = d1 * (packed[1, j] - l10 * x)
            packed[0, j], packed[1, j] = x, y
            packed[2, j] = d2 * (packed[2, j] - l20 * x - l21 * y)
        for step in range(own):
            X, out = work.H[block, step], Z[tree.chain[block, step]]
            for i in range(3):
                x, y, z = X[0, i], X[1, i], X[2, i]
                for j in range(low, high):
                    at = count + j - low
                    out[i, j] -= (
                        x * packed[0, at] + y * packed[1, at] + z * packed[2, at]
                    )
                for q in range(count):
                    o = tree.o_column[tree.chain[block, 2 + q // 3] - 1] + q % 3
                    out[i, o] -= x * packed[0, q] + y * packed[1, q] + z * packed[2, q]
        g0, g1, g2 = g[block, 0], g[block, 1], g[block, 2]
        for j in range(low, high):
            at = count + j - low
            x, y, z = packed[0, at], packed[1, at], packed[2, at]
            size[j] += x * x + y * y + z * z
            b[j] -= x * g0 + y * g1 + z * g2
        for q in range(count):
            o = tree.o_column[tree.chain[block, 2 + q // 3] - 1] + q % 3
            b[o] -= packed[0, q] * g0 + packed[1, q] * g1 + packed[2, q] * g2
        at = tree.start[block]
        for i in range(total):
            x, y, z = packed[0, i], packed[1, i], packed[2, i]
            row = sums[at : at + i + 1]
            for j in range(i + 1):
                row[j] += x * packed[0, j] + y * packed[1, j] + z * packed[2, j]
            at += i + 1


@no_type_check
@inner
def _spread(tree, sums, A):
    """Take the products of every block from the lower triangle."""
    index = np.empty(A.shape[0], dtype=np.int64)
    for block in range(len(tree.depth)):
        count = 0
        for step in range(2, tree.depth[block]):
            column = tree.o_column[tree.chain[block, step] - 1]
            for j in range(3):
                index[count] = column + j
                count += 1
        for j in range(tree.low[block], tree.high[block]):
            index[count] = j
            count += 1
        at = tree.start[block]
        for i in range(count):
            for j in range(i + 1):
                row, column = index[i], index[j]
                A[max(row, column), min(row, column)] -= sums[at]
                at += 1


@no_type_check
@njit(cache=True, fastmath=FAST)
def reduced(tree, shape, points, t, R, damping, A, b, leverage):
    """Write the equations of the shared unknowns with the poses eliminated.

    Args:
        tree: The segments.
        shape: Their shape.
        points: Frames x markers x 3.
        t: The root's place in each frame.
        R: All rotations in each frame.
        damping: Share of each pose's diagonal added to it.
        A: Out: the lower triangle, columns x columns.
        b: Out: the slope.
        leverage: Out: frames x markers, how much of each position its pose takes up,
            0 to 3.

    Returns:
        The cost of all frames.
    """
    work = scratch(tree, points.shape[1], len(b))
    sums = np.zeros(tree.start[len(tree.depth)])
    packed, size = np.empty((3, len(b))), np.empty(len(b))
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
        _eliminated(tree, work, sums, b, packed, size)
        for k in range(points.shape[1]):
            leverage[f, k] = 0.0
            if work.weight[k] > 0.0:
                j = tree.m_column[k]
                leverage[f, k] = (size[j] + size[j + 1] + size[j + 2]) / work.weight[k]
    _spread(tree, sums, A)
    return cost


@no_type_check
@inner
def _turn(w, R, out):
    """Write exp(w) R; w no longer than `LARGEST_TURN`."""
    angle = np.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    shrink = min(1.0, LARGEST_TURN / max(angle, 1e-300))
    x, y, z = w[0] * shrink, w[1] * shrink, w[2] * shrink
    angle *= shrink
    s, c = 1.0 - angle * angle / 6.0, 0.5 - angle * angle / 24.0
    if angle > 1e-3:
        s, c = np.sin(angle) / angle, (1.0 - np.cos(angle)) / (angle * angle)
    e = np.empty((3, 3))
    e[0, 0], e[1, 1] = 1 - c * (y * y + z * z), 1 - c * (x * x + z * z)
    e[2, 2] = 1 - c * (x * x + y * y)
    e[0, 1], e[1, 0] = c * x * y - s * z, c * x * y + s * z
    e[0, 2], e[2, 0] = c * x * z + s * y, c * x * z - s * y
    e[1, 2], e[2, 1] = c * y * z - s * x, c * y * z + s * x
    for i in range(3):
        for j in range(3):
            out[i, j] = e[i, 0] * R[0, j] + e[i, 1] * R[1, j] + e[i, 2] * R[2, j]


@no_type_check
@inner
def _retracted(t, R, g, t_out, R_out):
    for k in range(3):
        t_out[k] = t[k] + g[0, k]
    for i in range(len(R)):
        _turn(g[i + 1], R[i], R_out[i])


@no_type_check
@njit(cache=True, fastmath=FAST)
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
        _retracted(t[f], R[f], work.g, t_out[f], R_out[f])


@no_type_check
@njit(cache=True, fastmath=FAST)
def costs(tree, shape, points, t, R, rest, weight):
    """Return the cost of all frames; write what is left of every marker, its weight."""
    work = scratch(tree, points.shape[1], 0)
    cost = 0.0
    for f in range(len(points)):
        cost += residuals(tree, shape, points[f], t[f], R[f], work)
        for k in range(points.shape[1]):
            weight[f, k] = work.weight[k]
            for x in range(3):
                rest[f, k, x] = work.r[k, x]
    return cost


@no_type_check
@njit(cache=True, fastmath=FAST)
def settled(tree, shape, points, t, R, most, enough):
    """Bring the pose of every frame to the least cost, the shape kept; in place."""
    work = scratch(tree, points.shape[1], 0)
    t_new, R_new = np.empty(3), np.empty((len(tree.parent), 3, 3))
    for f in range(len(points)):
        damping = FIRST
        cost = residuals(tree, shape, points[f], t[f], R[f], work)
        for _ in range(most):
            pose_equations(tree, shape, R[f], work)
            factored(tree, work, damping)
            forward(tree, work)
            backward(tree, work)
            _retracted(t[f], R[f], work.g, t_new, R_new)
            new = residuals(tree, shape, points[f], t_new, R_new, work)
            if new <= cost:
                gain = cost - new
                cost = new
                t[f] = t_new
                R[f] = R_new
                damping *= EASED
                if gain < enough * max(cost, 1.0):
                    break
            else:
                residuals(tree, shape, points[f], t[f], R[f], work)
                damping *= RAISED
                if damping > MOST:
                    break
