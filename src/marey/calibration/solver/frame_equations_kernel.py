"""One frame of the calibration, compiled: its normal equations and their factor.

The pose of a frame is the root's place and one rotation of every segment against the
world. A rotation then moves a marker only through the lever of its own segment, so the
markers below a joint enter through sums alone. The unknowns of a pose come in blocks
of three: block 0 is the root's place, block i + 1 turns segment i about the axes of the
world. The equations keep the shape of the tree: their factor has no fill.
"""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from marey.numerics.jit import lean

# Keeps a block that nothing is known of from being singular.
LEAST = 1e-9

HINGE = 0


class Tree(NamedTuple):
    """What stays: segments depth first, their markers and the columns of unknowns."""

    parent: np.ndarray
    chain: np.ndarray  # blocks on the way from the root's place to each block
    depth: np.ndarray  # how many, without the block itself
    first: np.ndarray  # first marker of each segment, one more at the end
    o_column: np.ndarray  # by segment; -1 for the root
    m_column: np.ndarray  # by marker
    low: np.ndarray  # by block: columns of the segments that it carries
    high: np.ndarray
    start: np.ndarray  # by block: where its square of sums begins
    axis_child: np.ndarray  # by axis row: the segment that turns
    axis_kind: np.ndarray  # 0: a hinge; 1: the two axes stay square
    axis_weight: np.ndarray
    axis_column: np.ndarray  # that of the parent's axis; the child's comes after it
    calm: np.ndarray  # by segment: weight that draws it to its usual turn
    tail: float  # freedoms of Student's t


class Shape(NamedTuple):
    """What is sought beside the poses, in one session."""

    o: np.ndarray  # each joint in its parent
    m: np.ndarray  # each marker in its segment
    a: np.ndarray  # axes in the parent
    b: np.ndarray  # axes in the child
    noise: np.ndarray  # scale of each marker
    usual: np.ndarray  # usual turn of each segment against its parent


class Work(NamedTuple):
    """Scratch of one frame."""

    c: np.ndarray  # place of each joint
    lever: np.ndarray  # each joint from its parent's, in the world
    weight: np.ndarray  # by marker
    r: np.ndarray  # by marker: what is left
    arm: np.ndarray  # by marker: from its joint, in the world
    below: np.ndarray  # by segment: weight, weighted levers (3), weighted rest (3)
    H: np.ndarray  # by block, by those on the way to it: 3 x 3
    g: np.ndarray  # by block: the slope, then the step
    Z: np.ndarray  # by block: 3 x columns
    ax: np.ndarray  # an axis of the parent, of the child, and across both
    bx: np.ndarray
    jx: np.ndarray
    P: np.ndarray  # where a segment usually is, 3 x 3


@no_type_check
@njit(cache=True)
def scratch(tree, n_markers, n_columns):
    """Return room for one frame."""
    n = len(tree.parent)
    blocks, longest = tree.chain.shape
    return Work(
        np.zeros((n, 3)),
        np.zeros((n, 3)),
        np.zeros(n_markers),
        np.zeros((n_markers, 3)),
        np.zeros((n_markers, 3)),
        np.zeros((n, 7)),
        np.zeros((blocks, longest, 3, 3)),
        np.zeros((blocks, 3)),
        np.zeros((blocks, 3, n_columns)),
        np.empty(3),
        np.empty(3),
        np.empty(3),
        np.empty((3, 3)),
    )


@no_type_check
@lean
def cross(a, b, out):
    """Write a x b."""
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@no_type_check
@lean
def turned(R, v, out):
    """Write R v."""
    for k in range(3):
        out[k] = R[k, 0] * v[0] + R[k, 1] * v[1] + R[k, 2] * v[2]


@no_type_check
@lean
def product(A, B, out):
    """Write A B."""
    for i in range(3):
        for j in range(3):
            out[i, j] = A[i, 0] * B[0, j] + A[i, 1] * B[1, j] + A[i, 2] * B[2, j]


@no_type_check
@lean
def cross_columns(v, M, factor, out, column):
    """Add factor [v]x M to three columns."""
    for j in range(3):
        x, y, z = factor * M[0, j], factor * M[1, j], factor * M[2, j]
        out[0, column + j] += v[1] * z - v[2] * y
        out[1, column + j] += v[2] * x - v[0] * z
        out[2, column + j] += v[0] * y - v[1] * x


@no_type_check
@lean
def add_square(v, factor, out):
    """Add factor [v]x^T [v]x."""
    size = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
    for i in range(3):
        out[i, i] += factor * size
        for j in range(3):
            out[i, j] -= factor * v[i] * v[j]


@no_type_check
@lean
def add_product(u, v, factor, out):
    """Add factor [u]x [v]x = factor (v u^T - (u . v) I)."""
    dot = u[0] * v[0] + u[1] * v[1] + u[2] * v[2]
    for i in range(3):
        out[i, i] -= factor * dot
        for j in range(3):
            out[i, j] += factor * v[i] * u[j]


@no_type_check
@lean
def residuals(tree, shape, y, t, R, work):
    """Write places, levers, rests and weights of a frame; return its cost."""
    c, lever = work.c, work.lever
    for i in range(len(tree.parent)):
        p = tree.parent[i]
        if p < 0:
            for k in range(3):
                c[i, k] = t[k]
                lever[i, k] = 0.0
        else:
            turned(R[p], shape.o[i], lever[i])
            for k in range(3):
                c[i, k] = c[p, k] + lever[i, k]
    return _marker_cost(tree, shape, y, R, work) + _axes_cost(tree, shape, R, work)


@no_type_check
@lean
def _marker_cost(tree, shape, y, R, work):
    # One call for all, and by index: tables and views cost more than the sums.
    m, arm, r, c, noise = shape.m, work.arm, work.r, work.c, shape.noise
    cost = 0.0
    for i in range(len(tree.parent)):
        for k in range(tree.first[i], tree.first[i + 1]):
            far = 0.0
            for x in range(3):
                arm[k, x] = (
                    R[i, x, 0] * m[k, 0] + R[i, x, 1] * m[k, 1] + R[i, x, 2] * m[k, 2]
                )
                r[k, x] = y[k, x] - c[i, x] - arm[k, x]
                far += r[k, x] * r[k, x]
            if np.isfinite(y[k, 0]):
                exact = 1.0 / (noise[k] * noise[k])
                far *= exact
                work.weight[k] = exact * (tree.tail + 3.0) / (tree.tail + far)
                cost += (tree.tail + 3.0) * np.log1p(far / tree.tail)
            else:
                work.weight[k] = 0.0
                r[k, 0], r[k, 1], r[k, 2] = 0.0, 0.0, 0.0
    return cost


@no_type_check
@lean
def _axes_cost(tree, shape, R, work):
    cost = 0.0
    ax, bx, P = work.ax, work.bx, work.P
    for h in range(len(tree.axis_child)):
        i = tree.axis_child[h]
        turned(R[tree.parent[i]], shape.a[h], ax)
        turned(R[i], shape.b[h], bx)
        if tree.axis_kind[h] == HINGE:
            far = (ax[0] - bx[0]) ** 2 + (ax[1] - bx[1]) ** 2 + (ax[2] - bx[2]) ** 2
        else:
            far = (ax[0] * bx[0] + ax[1] * bx[1] + ax[2] * bx[2]) ** 2
        cost += tree.axis_weight[h] * far
    for i in range(1, len(tree.parent)):
        product(R[tree.parent[i]], shape.usual[i], P)
        same = 0.0
        for x in range(3):
            for z in range(3):
                same += P[x, z] * R[i, x, z]
        cost += tree.calm[i] * (3.0 - same)
    return cost


@no_type_check
@lean
def pose_equations(tree, shape, R, work):
    """Write H and g of the pose: sums of what every joint carries."""
    n = len(tree.parent)
    below, lever, H, g = work.below, work.lever, work.H, work.g
    H[:] = 0.0
    g[:] = 0.0
    below[:] = 0.0
    push = work.jx
    for i in range(n - 1, -1, -1):
        own, sums = H[i + 1, tree.depth[i + 1]], below[i]
        for k in range(tree.first[i], tree.first[i + 1]):
            w = work.weight[k]
            sums[0] += w
            for x in range(3):
                sums[1 + x] += w * work.arm[k, x]
                sums[4 + x] += w * work.r[k, x]
            cross(work.arm[k], work.r[k], push)
            for x in range(3):
                g[i + 1, x] += w * push[x]
            add_square(work.arm[k], w, own)
        p = tree.parent[i]
        if p < 0:
            continue
        cross(lever[i], sums[4:], push)
        below[p, 0] += sums[0]
        for x in range(3):
            below[p, 1 + x] += sums[0] * lever[i, x]
            below[p, 4 + x] += sums[4 + x]
            g[p + 1, x] += push[x]
        add_square(lever[i], sums[0], H[p + 1, tree.depth[p + 1]])
    for x in range(3):
        H[0, 0, x, x] = below[0, 0]
        g[0, x] = below[0, 4 + x]
    for i in range(n):
        V, row, chain = below[i, 1:4], H[i + 1], tree.chain[i + 1]
        row[0, 0, 1], row[0, 0, 2], row[0, 1, 2] = -V[2], V[1], -V[0]
        row[0, 1, 0], row[0, 2, 0], row[0, 2, 1] = V[2], -V[1], V[0]
        for step in range(1, tree.depth[i + 1]):
            add_product(V, lever[chain[step + 1] - 1], -1.0, row[step])
    _axes_equations(tree, shape, R, work)


@no_type_check
@lean
def _axes_equations(tree, shape, R, work):
    H, g = work.H, work.g
    ax, bx, j, P = work.ax, work.bx, work.jx, work.P
    for h in range(len(tree.axis_child)):
        i, w = tree.axis_child[h], tree.axis_weight[h]
        p = tree.parent[i]
        turned(R[p], shape.a[h], ax)
        turned(R[i], shape.b[h], bx)
        own, up = H[i + 1, tree.depth[i + 1]], H[p + 1, tree.depth[p + 1]]
        side = H[i + 1, tree.depth[i + 1] - 1]
        cross(ax, bx, j)
        if tree.axis_kind[h] == HINGE:
            add_square(ax, w, up)
            add_square(bx, w, own)
            add_product(bx, ax, w, side)
            miss = 1.0
        else:
            for x in range(3):
                for z in range(3):
                    up[x, z] += w * j[x] * j[z]
                    own[x, z] += w * j[x] * j[z]
                    side[x, z] -= w * j[x] * j[z]
            miss = -(ax[0] * bx[0] + ax[1] * bx[1] + ax[2] * bx[2])
        for x in range(3):
            g[p + 1, x] += w * miss * j[x]
            g[i + 1, x] -= w * miss * j[x]
    for i in range(1, len(tree.parent)):
        p, w = tree.parent[i], tree.calm[i]
        Q = R[i]
        product(R[p], shape.usual[i], P)
        for x in range(3):
            y, z = (x + 1) % 3, (x + 2) % 3
            twist = 0.0
            for k in range(3):
                twist += Q[z, k] * P[y, k] - Q[y, k] * P[z, k]
            g[i + 1, x] -= 0.5 * w * twist
            g[p + 1, x] += 0.5 * w * twist
            H[i + 1, tree.depth[i + 1], x, x] += w
            H[p + 1, tree.depth[p + 1], x, x] += w
            H[i + 1, tree.depth[i + 1] - 1, x, x] -= w


@no_type_check
@lean
def _root3(D, damping):
    """Turn a block into its lower Cholesky factor."""
    for x in range(3):
        D[x, x] += damping * D[x, x] + LEAST
    for j in range(3):
        for k in range(j):
            D[j, j] -= D[j, k] * D[j, k]
        D[j, j] = np.sqrt(max(D[j, j], LEAST * LEAST))
        for i in range(j + 1, 3):
            for k in range(j):
                D[i, j] -= D[i, k] * D[j, k]
            D[i, j] /= D[j, j]


@no_type_check
@lean
def _halved(D, B, low, high):
    """Turn columns of B into D^-1 B, D lower triangular."""
    d0, d1, d2 = 1.0 / D[0, 0], 1.0 / D[1, 1], 1.0 / D[2, 2]
    l10, l20, l21 = D[1, 0], D[2, 0], D[2, 1]
    for j in range(low, high):
        x = d0 * B[0, j]
        y = d1 * (B[1, j] - l10 * x)
        B[0, j], B[1, j] = x, y
        B[2, j] = d2 * (B[2, j] - l20 * x - l21 * y)


@no_type_check
@lean
def _passed_on(X, B, low, high, out):
    """Take X^T B from the columns of another block."""
    for i in range(3):
        x, y, z = X[0, i], X[1, i], X[2, i]
        for j in range(low, high):
            out[i, j] -= x * B[0, j] + y * B[1, j] + z * B[2, j]


@no_type_check
@lean
def factored(tree, work, damping):
    """Turn H into its factor, leaves first."""
    H = work.H
    for b in range(len(tree.depth) - 1, -1, -1):
        own = tree.depth[b]
        D = H[b, own]
        _root3(D, damping)
        for step in range(own):
            _halved(D, H[b, step], 0, 3)
        for step in range(own):
            u = tree.chain[b, step]
            for other in range(step + 1):
                _passed_on(H[b, step], H[b, other], 0, 3, H[u, other])


@no_type_check
@lean
def forward(tree, work):
    """Turn the slope g into L^-1 g."""
    H, g = work.H, work.g
    for b in range(len(tree.depth) - 1, -1, -1):
        own = tree.depth[b]
        D = H[b, own]
        g[b, 0] /= D[0, 0]
        g[b, 1] = (g[b, 1] - D[1, 0] * g[b, 0]) / D[1, 1]
        g[b, 2] = (g[b, 2] - D[2, 0] * g[b, 0] - D[2, 1] * g[b, 1]) / D[2, 2]
        for step in range(own):
            u, X = tree.chain[b, step], H[b, step]
            for i in range(3):
                g[u, i] -= X[0, i] * g[b, 0] + X[1, i] * g[b, 1] + X[2, i] * g[b, 2]


@no_type_check
@lean
def backward(tree, work):
    """Turn L^-1 g into the step."""
    H, g = work.H, work.g
    for b in range(len(tree.depth)):
        own = tree.depth[b]
        D = H[b, own]
        for step in range(own):
            u, X = tree.chain[b, step], H[b, step]
            for i in range(3):
                g[b, i] -= X[i, 0] * g[u, 0] + X[i, 1] * g[u, 1] + X[i, 2] * g[u, 2]
        g[b, 2] /= D[2, 2]
        g[b, 1] = (g[b, 1] - D[2, 1] * g[b, 2]) / D[1, 1]
        g[b, 0] = (g[b, 0] - D[1, 0] * g[b, 1] - D[2, 0] * g[b, 2]) / D[0, 0]
