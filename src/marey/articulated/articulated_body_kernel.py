r"""The step of Gauss-Newton on a kinematic tree by articulated bodies, compiled.

The targets of a node pull on it like springs. To second order its energy is a quadratic
form of the rotation :math:`\omega` of the node and the displacement v of its joint,

.. math:: \tfrac12 \begin{pmatrix}\omega\\v\end{pmatrix}^T
    \begin{pmatrix}J & F\\F^T & M\end{pmatrix}
    \begin{pmatrix}\omega\\v\end{pmatrix} - \tau \cdot \omega - f \cdot v.

The rotation of a joint is eliminated from the form of its node, and what is left is
added to that of its parent, from the leaves to the root: the articulated-body algorithm
(Featherstone, Rigid Body Dynamics Algorithms, 2008, Ch. 7). Every node costs the same,
however deep, and no matrix of all unknowns is formed. The solution is that of the
normal equations, and the form of a node before its elimination is the Schur complement
over its descendants, as in `factor_kernel`.

The kernels compile for single numbers and for lanes (`numerics.lanes_kernel`).
"""

# mypy: ignore-errors

from marey.numerics.jit import lean
from marey.numerics.lanes_kernel import select_positive
from marey.numerics.vector3_kernel import cross, dot

J, F, M = slice(0, 6), slice(6, 15), slice(15, 21)
TORQUE, FORCE = slice(21, 24), slice(24, 27)
"""Numbers of a form; those of J and M are xx, xy, xz, yy, yz, zz."""

N_BODY = FORCE.stop
"""How many these are."""


@lean
def symmetric_times(a, b, c, d, e, f, v):
    """Return the symmetric matrix (a b c, b d e, c e f) times a vector."""
    return (
        a * v[0] + b * v[1] + c * v[2],
        b * v[0] + d * v[1] + e * v[2],
        c * v[0] + e * v[1] + f * v[2],
    )


@lean
def inverse_symmetric(a, b, c, d, e, f):
    """Return the inverse of the symmetric matrix (a b c, b d e, c e f) as six."""
    i0, i1, i2 = d * f - e * e, c * e - b * f, b * e - c * d
    scale = 1.0 / (a * i0 + b * i1 + c * i2)
    return (
        scale * i0,
        scale * i1,
        scale * i2,
        scale * (a * f - c * c),
        scale * (b * c - a * e),
        scale * (a * d - b * b),
    )


@lean
def subtract_scaled(v, factor, w):
    """Return v - factor w."""
    return v[0] - factor * w[0], v[1] - factor * w[1], v[2] - factor * w[2]


@lean
def subtract_symmetric(A, v, w):
    """Return A - v w^T, which is symmetric, as six numbers."""
    return (
        A[0] - v[0] * w[0],
        A[1] - v[0] * w[1],
        A[2] - v[0] * w[2],
        A[3] - v[1] * w[1],
        A[4] - v[1] * w[2],
        A[5] - v[2] * w[2],
    )


@lean
def prior_share(information, prior, fades):
    """Return the share of the prior: 1 to 0 for information of 1 to 2 times it."""
    if not fades:
        return 0.0 * information + 1.0
    share = 2.0 - information / prior
    share = select_positive(share, share, 0.0 * share)
    return select_positive(share - 1.0, 0.0 * share + 1.0, share)


@lean
def eliminate_ball(body, extra, pull):
    """Eliminate the rotation of a ball; leave its solution in place of its form.

    Args:
        body: Gets the solution: K (9), G F (9), x (3), for `substitute_ball`.
        extra: Information added to each axis.
        pull: Torque of the prior, as three numbers.

    Returns:
        Decrease of the energy, twice; and what is left of J, F, M, torque and force.
    """
    f00, f01, f02 = body[6], body[7], body[8]
    f10, f11, f12 = body[9], body[10], body[11]
    f20, f21, f22 = body[12], body[13], body[14]
    G = inverse_symmetric(
        body[0] + extra, body[1], body[2], body[3] + extra, body[4], body[5] + extra
    )
    a, b, d = (
        symmetric_times(*G, (f00, f10, f20)),
        symmetric_times(*G, (f01, f11, f21)),
        symmetric_times(*G, (f02, f12, f22)),
    )
    t = body[21] + pull[0], body[22] + pull[1], body[23] + pull[2]
    x = symmetric_times(*G, t)
    M = (
        body[15] - dot((f00, f10, f20), a),
        body[16] - dot((f00, f10, f20), b),
        body[17] - dot((f00, f10, f20), d),
        body[18] - dot((f01, f11, f21), b),
        body[19] - dot((f01, f11, f21), d),
        body[20] - dot((f02, f12, f22), d),
    )
    force = (
        body[24] - dot((f00, f10, f20), x),
        body[25] - dot((f01, f11, f21), x),
        body[26] - dot((f02, f12, f22), x),
    )
    torque = (extra * x[0] - pull[0], extra * x[1] - pull[1], extra * x[2] - pull[2])
    k0, k1, k2 = extra * G[0], extra * G[1], extra * G[2]
    k3, k4, k5 = extra * G[3], extra * G[4], extra * G[5]
    J = (
        extra * (1.0 - k0),
        -extra * k1,
        -extra * k2,
        extra * (1.0 - k3),
        -extra * k4,
        extra * (1.0 - k5),
    )
    F = (
        (extra * a[0], extra * b[0], extra * d[0]),
        (extra * a[1], extra * b[1], extra * d[1]),
        (extra * a[2], extra * b[2], extra * d[2]),
    )
    body[0], body[1], body[2] = 1.0 - k0, -k1, -k2
    body[3], body[4], body[5] = -k1, 1.0 - k3, -k4
    body[6], body[7], body[8] = -k2, -k4, 1.0 - k5
    body[9], body[10], body[11] = a[0], b[0], d[0]
    body[12], body[13], body[14] = a[1], b[1], d[1]
    body[15], body[16], body[17] = a[2], b[2], d[2]
    body[18], body[19], body[20] = x
    return dot(t, x), (J, F, M, torque, force)


@lean
def eliminate_hinge(body, axis, extra, pull):
    """Eliminate the angle of a hinge likewise; see `eliminate_ball`.

    The solution is the gains of rotation (3) and displacement (3) of the parent, and
    the angle; `pull` is one number.
    """
    J = body[0], body[1], body[2], body[3], body[4], body[5]
    rows = (
        (body[6], body[7], body[8]),
        (body[9], body[10], body[11]),
        (body[12], body[13], body[14]),
    )
    u = symmetric_times(*J, axis)
    k = (
        dot(axis, (rows[0][0], rows[1][0], rows[2][0])),
        dot(axis, (rows[0][1], rows[1][1], rows[2][1])),
        dot(axis, (rows[0][2], rows[1][2], rows[2][2])),
    )
    t = dot(axis, (body[21], body[22], body[23])) + pull
    g = 1.0 / (dot(axis, u) + extra)
    x = g * t
    a, b = (g * u[0], g * u[1], g * u[2]), (g * k[0], g * k[1], g * k[2])
    M = body[15], body[16], body[17], body[18], body[19], body[20]
    left = (
        subtract_symmetric(J, a, u),
        (
            subtract_scaled(rows[0], a[0], k),
            subtract_scaled(rows[1], a[1], k),
            subtract_scaled(rows[2], a[2], k),
        ),
        subtract_symmetric(M, b, k),
        subtract_scaled((body[21], body[22], body[23]), x, u),
        subtract_scaled((body[24], body[25], body[26]), x, k),
    )
    body[0], body[1], body[2] = a
    body[3], body[4], body[5] = b
    body[6] = x
    return t * x, left


@lean
def add_to_parent(parent, left, r):
    """Add what is left of a node to the form of its parent, whose joint is at -r."""
    J, F, M, torque, force = left
    a = cross(r, (M[0], M[1], M[2]))
    b = cross(r, (M[1], M[3], M[4]))
    d = cross(r, (M[2], M[4], M[5]))
    new = (
        (F[0][0] + a[0], F[0][1] + b[0], F[0][2] + d[0]),
        (F[1][0] + a[1], F[1][1] + b[1], F[1][2] + d[1]),
        (F[2][0] + a[2], F[2][1] + b[2], F[2][2] + d[2]),
    )
    x, y, z = cross(r, new[0]), cross(r, new[1]), cross(r, new[2])
    i, j, k = cross(r, F[0]), cross(r, F[1]), cross(r, F[2])
    t = cross(r, force)
    parent[0] += J[0] + x[0] + i[0]
    parent[1] += J[1] + x[1] + j[0]
    parent[2] += J[2] + x[2] + k[0]
    parent[3] += J[3] + y[1] + j[1]
    parent[4] += J[4] + y[2] + k[1]
    parent[5] += J[5] + z[2] + k[2]
    for row in range(3):
        for column in range(3):
            parent[6 + 3 * row + column] += new[row][column]
    for n in range(6):
        parent[15 + n] += M[n]
    for n in range(3):
        parent[21 + n] += torque[n] + t[n]
        parent[24 + n] += force[n]


@lean
def solve_root(left, extra, pull):
    """Return the displacement of the root, and the decrease of the energy, twice."""
    M, f = left[2], left[4]
    t = f[0] + pull[0], f[1] + pull[1], f[2] + pull[2]
    G = inverse_symmetric(M[0] + extra, M[1], M[2], M[3] + extra, M[4], M[5] + extra)
    x = symmetric_times(*G, t)
    return x, dot(t, x)


@lean
def substitute_ball(body, w, v):
    """Return the rotation of a ball whose parent rotates by w; v moves the joint."""
    return (
        body[18]
        - dot((body[0], body[1], body[2]), w)
        - dot((body[9], body[10], body[11]), v),
        body[19]
        - dot((body[3], body[4], body[5]), w)
        - dot((body[12], body[13], body[14]), v),
        body[20]
        - dot((body[6], body[7], body[8]), w)
        - dot((body[15], body[16], body[17]), v),
    )


@lean
def substitute_hinge(body, w, v):
    """Return the change of a hinge's angle, likewise."""
    a, b = (body[0], body[1], body[2]), (body[3], body[4], body[5])
    return body[6] - dot(a, w) - dot(b, v)
