"""The normal equations of a tree, solved without fill, compiled; see `solve`."""

from typing import no_type_check

from marey.numerics.jit import lean

# An unknown that the targets leave open by more than about 30 rad, or 30 m, stays.
SINGULAR = 1e-3


@no_type_check
@lean
def solve(tree, work, prior, gated, damping):
    """Turn the slope into the step: a tree-sparse factor, leaves first, without fill.

    An unknown's row begins like those of all that it carries, so that rows are
    subtracted from their beginnings on, in fours; what this leaves beyond the diagonal
    is not read. A block that is eliminated leaves its inverse on the diagonal, for
    `again`. Before a block is eliminated it holds what the targets know of it,
    whatever the nodes it carries do. Where that is less than the prior knows, or always
    if not `gated`, the prior joins.

    Returns:
        By how much the step lowers the cost if the cost is as curved as it looks.
    """
    g, H, A, way, before = work.flat, work.H, work.A, tree.way, tree.before
    fall = 0.0
    for b in range(len(before) - 1, -1, -1):
        n, hinge = before[b], b > 0 and tree.hinge[b - 1]
        known = _known(work.held[b], H, 3 * b, n, hinge, prior[b])
        gate = min(max(2.0 - known / prior[b], 0.0), 1.0) if gated else 1.0
        work.gate[b], work.known[b] = gate, known
        weight = gate * prior[b]
        if hinge:
            fall += _eliminate_hinge(H, g, A, work.pull, way, n, b, weight, damping)
        else:
            fall += _eliminate(H, g, A, work.pull, way, n, b, weight, damping)
    _spread(tree, H, g)
    return fall


@no_type_check
@lean
def _spread(tree, H, g):
    """Take from every unknown what those on the way to it have done, root first."""
    way, before = tree.way, tree.before
    for b in range(1, len(before)):
        for k in range(1 if tree.hinge[b - 1] else 3):
            total = 0.0
            for p in range(before[b]):
                total += H[3 * b + k, p] * g[way[b, p]]
            g[3 * b + k] -= total


@no_type_check
@lean
def again(tree, work, g):
    """Turn another slope into its step, by the factor that `solve` has left."""
    H, way, before = work.H, tree.way, tree.before
    for b in range(len(before) - 1, -1, -1):
        n, r = before[b], 3 * b
        if b > 0 and tree.hinge[b - 1]:
            own = g[r]
            for p in range(n):
                g[way[b, p]] -= H[r, p] * own
            g[r] = H[r, n] * own
            continue
        x, y, z = g[r], g[r + 1], g[r + 2]
        for p in range(n):
            g[way[b, p]] -= H[r, p] * x + H[r + 1, p] * y + H[r + 2, p] * z
        d, e, f = H[r + 1, n], H[r + 2, n], H[r + 2, n + 1]
        g[r] = H[r, n] * x + d * y + e * z
        g[r + 1] = d * x + H[r + 1, n + 1] * y + f * z
        g[r + 2] = e * x + f * y + H[r + 2, n + 2] * z
    _spread(tree, H, g)


@no_type_check
@lean
def _eliminate_hinge(H, g, A, pull, way, n, b, weight, damping):
    r, a0, a1, a2 = 3 * b, A[b, 0, 0], A[b, 0, 1], A[b, 0, 2]
    own = g[r] + weight * (a0 * pull[b, 0] + a1 * pull[b, 1] + a2 * pull[b, 2])
    extra = weight + damping * H[r, n] / 3.0
    size = a0 * a0 + a1 * a1 + a2 * a2
    inverse = 1.0 / (H[r, n] + extra * size + SINGULAR)
    step = inverse * own
    g[r] = step
    # The later unknowns of the way first: their rows still need the earlier ones.
    for p in range(n - 1, -1, -1):
        to, u = way[b, p], H[r, p]
        y = inverse * u
        g[to] -= u * step
        for o in range(0, p + 1, 4):
            w0, w1, w2, w3 = H[r, o], H[r, o + 1], H[r, o + 2], H[r, o + 3]
            h0, h1, h2, h3 = H[to, o], H[to, o + 1], H[to, o + 2], H[to, o + 3]
            H[to, o], H[to, o + 1] = h0 - y * w0, h1 - y * w1
            H[to, o + 2], H[to, o + 3] = h2 - y * w2, h3 - y * w3
        H[r, p] = y
    H[r, n] = inverse
    return own * step


@no_type_check
@lean
def _eliminate(H, g, A, pull, way, n, i, weight, damping):
    r0, r1, r2 = 3 * i, 3 * i + 1, 3 * i + 2
    a, b, c = H[r0, n], H[r1, n + 1], H[r2, n + 2]
    d, e, f = H[r1, n], H[r2, n], H[r2, n + 1]
    extra = weight + damping * (a + b + c) / 3.0
    p0, p1, p2 = pull[i, 0], pull[i, 1], pull[i, 2]
    x0, x1, x2 = A[i, 0, 0], A[i, 0, 1], A[i, 0, 2]
    y0, y1, y2 = A[i, 1, 0], A[i, 1, 1], A[i, 1, 2]
    z0, z1, z2 = A[i, 2, 0], A[i, 2, 1], A[i, 2, 2]
    g0 = g[r0] + weight * (x0 * p0 + x1 * p1 + x2 * p2)
    g1 = g[r1] + weight * (y0 * p0 + y1 * p1 + y2 * p2)
    g2 = g[r2] + weight * (z0 * p0 + z1 * p1 + z2 * p2)
    # What is held has a row of zeros; the small number keeps the block invertible.
    a += extra * (x0 * x0 + x1 * x1 + x2 * x2) + SINGULAR
    b += extra * (y0 * y0 + y1 * y1 + y2 * y2) + SINGULAR
    c += extra * (z0 * z0 + z1 * z1 + z2 * z2) + SINGULAR
    d += extra * (x0 * y0 + x1 * y1 + x2 * y2)
    e += extra * (x0 * z0 + x1 * z1 + x2 * z2)
    f += extra * (y0 * z0 + y1 * z1 + y2 * z2)
    i00, i11, i22 = b * c - f * f, a * c - e * e, a * b - d * d
    i01, i02, i12 = e * f - d * c, d * f - b * e, d * e - a * f
    scale = 1.0 / (a * i00 + d * i01 + e * i02)
    i00, i11, i22 = scale * i00, scale * i11, scale * i22
    i01, i02, i12 = scale * i01, scale * i02, scale * i12
    v0 = i00 * g0 + i01 * g1 + i02 * g2
    v1 = i01 * g0 + i11 * g1 + i12 * g2
    v2 = i02 * g0 + i12 * g1 + i22 * g2
    g[r0], g[r1], g[r2] = v0, v1, v2
    for k in range(n - 1, -1, -1):
        to, u0, u1, u2 = way[i, k], H[r0, k], H[r1, k], H[r2, k]
        g[to] -= u0 * v0 + u1 * v1 + u2 * v2
        y0 = i00 * u0 + i01 * u1 + i02 * u2
        y1 = i01 * u0 + i11 * u1 + i12 * u2
        y2 = i02 * u0 + i12 * u1 + i22 * u2
        for o in range(0, k + 1, 4):
            w0, w1, w2, w3 = H[r0, o], H[r0, o + 1], H[r0, o + 2], H[r0, o + 3]
            x0, x1, x2, x3 = H[r1, o], H[r1, o + 1], H[r1, o + 2], H[r1, o + 3]
            z0, z1, z2, z3 = H[r2, o], H[r2, o + 1], H[r2, o + 2], H[r2, o + 3]
            h0, h1, h2, h3 = H[to, o], H[to, o + 1], H[to, o + 2], H[to, o + 3]
            H[to, o] = h0 - (y0 * w0 + y1 * x0 + y2 * z0)
            H[to, o + 1] = h1 - (y0 * w1 + y1 * x1 + y2 * z1)
            H[to, o + 2] = h2 - (y0 * w2 + y1 * x2 + y2 * z2)
            H[to, o + 3] = h3 - (y0 * w3 + y1 * x3 + y2 * z3)
        H[r0, k], H[r1, k], H[r2, k] = y0, y1, y2
    H[r0, n], H[r1, n + 1], H[r2, n + 2] = i00, i11, i22
    H[r1, n], H[r2, n], H[r2, n + 1] = i01, i02, i12
    return g0 * v0 + g1 * v1 + g2 * v2


@no_type_check
@lean
def _known(held, H, r, n, hinge, prior):
    """Return the information on the least known unknown of a block, roughly."""
    sure = 1e6 * prior
    a = sure if held[0] else H[r, n]
    if hinge:
        return a
    b, c = H[r + 1, n + 1], H[r + 2, n + 2]
    d, e, f = H[r + 1, n], H[r + 2, n], H[r + 2, n + 1]
    if held[1]:
        b = sure
    if held[2]:
        c = sure
    minors = a * b - d * d + a * c - e * e + b * c - f * f
    det = a * (b * c - f * f) - d * (d * c - e * f) + e * (d * f - b * e)
    # One over the trace of the inverse: at most the least eigenvalue.
    return det / minors if det > 0.0 and minors > 0.0 else 0.0
