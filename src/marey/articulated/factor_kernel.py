r"""Tree-sparse factor of the normal equations of a kinematic tree, compiled.

The Gauss-Newton Hessian :math:`H = J^T W J` of a kinematic tree couples an unknown only
with its ancestors and its descendants. Eliminated from the leaves to the root,

.. math:: H = L^T D L,

the factor L has non-zeros only where H has them (no fill): the LTL factorisation of
Featherstone, Rigid Body Dynamics Algorithms (2008), Sec. 6.5, here by blocks of one
unknown (hinge) or three (ball joint, position of the root).

Row r of `work.H` holds the entries of unknown r with its ancestors, in the order of
`tree.ancestor_unknowns`, then with its own block. Rows of a descendant begin like the
row of its ancestor, so that a row is subtracted from its beginning on, four entries at
a time; entries beyond the diagonal are filled with meaningless numbers and never read.

`marey.calibration` has a factor of its own, by Cholesky, with the same sparsity. Its
unknowns are rotations of segments in the world, which move only the next joints, not
whole subtrees; all its blocks have three unknowns; and it needs the half-solved
:math:`L^{-1} Z` of its parameters, which the LTL factor does not give. Here a step must
take microseconds: a hinge has one unknown, and the share of the prior follows from the
Schur complement of each block while it is eliminated.
"""

# mypy: ignore-errors

from marey.numerics.jit import lean
from marey.numerics.lanes_kernel import select_positive
from marey.numerics.vector3_kernel import add_vector, dot, rotate

TINY_INFORMATION = 1e-4
"""Information added to every diagonal entry, in 1 / rad^2 or 1 / m^2.

It keeps blocks invertible: an unknown that the targets determine no better than to
about 100 rad or 100 m does not move. Higher slows poorly determined unknowns.
"""


@lean
def solve_normal_equations(tree, work, prior, fades, damping):
    r"""Turn the gradient in `work.g` into the step; return the predicted decrease.

    Solves :math:`(H + P + \lambda D) x = g + P e`: P is the weight of the prior, e its
    residual, D the mean diagonal of each block (Levenberg-Marquardt damping). The
    factor stays in `work.H`, for other right-hand sides; see `eliminate_tree`.
    """
    eliminate_tree(tree, work, prior, fades, damping)
    for b in range(len(prior)):
        pull = rotate(work.A[b], work.prior_residual[b])
        add_vector(work.g[b], work.prior_share[b] * prior[b], pull)
    return substitute_tree(tree, work, work.flat)


@lean
def eliminate_tree(tree, work, prior, fades, damping):
    r"""Replace `work.H` by its factor, from the leaves to the root.

    An eliminated block leaves its inverse on the diagonal and :math:`D^{-1} L` in its
    row, for `substitute_tree`.

    Before its elimination a block is the Schur complement over its descendants: the
    information of the targets on the block, whatever its descendants do. The share of
    the prior falls from 1 to 0 while that information grows from one to two times the
    prior's, so that a well-determined joint is free of the prior.

    Args:
        tree: The kinematic tree.
        work: Holds H; gets `prior_share` and `information`.
        prior: Information of the prior on each block, in 1 / m^2 and 1 / rad^2.
        fades: Whether the share of the prior depends on the information; else it is 1.
        damping: Factor of the mean diagonal that is added to each block.
    """
    H, n_ancestors = work.H, tree.n_ancestor_unknowns
    for b in range(len(n_ancestors) - 1, -1, -1):
        n, hinge, A = n_ancestors[b], b > 0 and tree.is_hinge[b - 1], work.A[b]
        information = _least_information(work.is_fixed[b], H, 3 * b, n, hinge, prior[b])
        share = min(max(2.0 - information / prior[b], 0.0), 1.0) if fades else 1.0
        work.prior_share[b], work.information[b] = share, information
        weight, ancestors = share * prior[b], tree.ancestor_unknowns[b]
        if hinge:
            _eliminate_hinge(H, A, ancestors, n, 3 * b, weight, damping)
        else:
            _eliminate_ball(H, A, ancestors, n, 3 * b, weight, damping)


@lean
def substitute_tree(tree, work, g):
    """Turn a right-hand side g into its solution x, by the factor in `work.H`.

    One substitution from the leaves to the root, one back. Returns the product of both.
    """
    H, ancestors, n_ancestors = work.H, tree.ancestor_unknowns, tree.n_ancestor_unknowns
    product = 0.0
    for b in range(len(n_ancestors) - 1, -1, -1):
        if b > 0 and tree.is_hinge[b - 1]:
            product += _substitute_hinge(H, ancestors[b], n_ancestors[b], 3 * b, g)
        else:
            product += _substitute_ball(H, ancestors[b], n_ancestors[b], 3 * b, g)
    for b in range(1, len(n_ancestors)):
        for k in range(1 if tree.is_hinge[b - 1] else 3):
            total = 0.0
            for p in range(n_ancestors[b]):
                total += H[3 * b + k, p] * g[ancestors[b, p]]
            g[3 * b + k] -= total
    return product


@lean
def _substitute_hinge(H, ancestors, n, r, g):
    """Subtract a hinge, of row r, from its ancestors; return the product."""
    x = g[r]
    for p in range(n):
        g[ancestors[p]] -= H[r, p] * x
    g[r] = H[r, n] * x
    return g[r] * x


@lean
def _substitute_ball(H, ancestors, n, r, g):
    """Subtract the three unknowns from row r on from their ancestors, likewise."""
    x, y, z = g[r], g[r + 1], g[r + 2]
    for p in range(n):
        g[ancestors[p]] -= H[r, p] * x + H[r + 1, p] * y + H[r + 2, p] * z
    d, e, f = H[r + 1, n], H[r + 2, n], H[r + 2, n + 1]
    g[r] = H[r, n] * x + d * y + e * z
    g[r + 1] = d * x + H[r + 1, n + 1] * y + f * z
    g[r + 2] = e * x + f * y + H[r + 2, n + 2] * z
    return g[r] * x + g[r + 1] * y + g[r + 2] * z


@lean
def _eliminate_hinge(H, A, ancestors, n, r, weight, damping):
    """Eliminate the one unknown of a hinge, of row r."""
    extra = weight + damping * H[r, n] / 3.0
    inverse = 1.0 / (H[r, n] + extra * dot(A[0], A[0]) + TINY_INFORMATION)
    # Later ancestors first: their rows still need the entries of the earlier ones.
    for p in range(n - 1, -1, -1):
        to, y = ancestors[p], inverse * H[r, p]
        for o in range(0, p + 1, 4):
            w0, w1, w2, w3 = H[r, o], H[r, o + 1], H[r, o + 2], H[r, o + 3]
            h0, h1, h2, h3 = H[to, o], H[to, o + 1], H[to, o + 2], H[to, o + 3]
            H[to, o], H[to, o + 1] = h0 - y * w0, h1 - y * w1
            H[to, o + 2], H[to, o + 3] = h2 - y * w2, h3 - y * w3
        H[r, p] = y
    H[r, n] = inverse


@lean
def _eliminate_ball(H, A, ancestors, n, r0, weight, damping):
    """Eliminate the three unknowns of a block, from row r0 on."""
    r1, r2 = r0 + 1, r0 + 2
    a, b, c = H[r0, n], H[r1, n + 1], H[r2, n + 2]
    extra = weight + damping * (a + b + c) / 3.0
    # A fixed unknown has a row of zeros: TINY_INFORMATION keeps the block invertible.
    a += extra * dot(A[0], A[0]) + TINY_INFORMATION
    b += extra * dot(A[1], A[1]) + TINY_INFORMATION
    c += extra * dot(A[2], A[2]) + TINY_INFORMATION
    d = H[r1, n] + extra * dot(A[0], A[1])
    e = H[r2, n] + extra * dot(A[0], A[2])
    f = H[r2, n + 1] + extra * dot(A[1], A[2])
    i00, i11, i22 = b * c - f * f, a * c - e * e, a * b - d * d
    i01, i02, i12 = e * f - d * c, d * f - b * e, d * e - a * f
    scale = 1.0 / (a * i00 + d * i01 + e * i02)
    i00, i11, i22 = scale * i00, scale * i11, scale * i22
    i01, i02, i12 = scale * i01, scale * i02, scale * i12
    for k in range(n - 1, -1, -1):
        to, u0, u1, u2 = ancestors[k], H[r0, k], H[r1, k], H[r2, k]
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


@lean
def least_eigenvalue_bound(a, b, c, d, e, f):
    """Return a lower bound of the least eigenvalue of a symmetric 3 x 3 matrix.

    One over the trace of its inverse, by cofactors; 0 if it is singular. The diagonal
    is a, b, c; the entries (1, 0), (2, 0), (2, 1) are d, e, f.
    """
    minors = a * b - d * d + a * c - e * e + b * c - f * f
    det = a * (b * c - f * f) - d * (d * c - e * f) + e * (d * f - b * e)
    bound = select_positive(minors, det / minors, minors)
    return select_positive(bound, bound, 0.0 * det)


@lean
def _least_information(is_fixed, H, r, n, hinge, prior):
    """Return a lower bound of the least eigenvalue of a diagonal block.

    A fixed unknown counts as determined.
    """
    determined = 1e6 * prior
    a = determined if is_fixed[0] else H[r, n]
    if hinge:
        return a
    b = determined if is_fixed[1] else H[r + 1, n + 1]
    c = determined if is_fixed[2] else H[r + 2, n + 2]
    d, e, f = H[r + 1, n], H[r + 2, n], H[r + 2, n + 1]
    return least_eigenvalue_bound(a, b, c, d, e, f)
