r"""Normal equations of the pose of one frame, compiled.

The unknowns q of a pose are the position of the root and one rotation of every segment
in the world. A rotation moves a marker only through the bone or the lever of its own
segment:

.. math:: \frac{\partial x_k}{\partial t} = I, \qquad
          \frac{\partial x_k}{\partial \omega_a} = -[R_a\,\ell]_\times

where :math:`\ell` is the offset of the next joint on the path to the marker, or of the
marker itself. Descendants of a joint therefore enter the equations as sums.

The unknowns form blocks of three: block 0 is the root position, block i + 1 the
rotation of segment i about the axes of the world. The rotation of a segment relative to
its parent has a standard deviation of 1 rad around its mean, so wide that it decides
only rotations that markers leave undetermined. A block is coupled only to the blocks
on its path to the root. Elimination from the leaves to the root creates no fill-in
(Featherstone 2005, factorisation for branched kinematic trees).

Markers have the loss of Student's t with :math:`\nu` degrees of freedom in three
dimensions. Each iteration solves a weighted least-squares problem (iteratively
reweighted least squares):

.. math:: \rho(e) = (\nu + 3) \log(1 + e / \nu), \qquad
          w(e) = \frac{1}{\sigma^2}\,\frac{\nu + 3}{\nu + e}, \qquad
          e = \frac{|r|^2}{\sigma^2}

A marker of confidence c has :math:`\sigma^2 / c` in place of :math:`\sigma^2`.
"""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from marey.articulated.targets_kernel import confidence_of
from marey.numerics.arrays.new_kernel import empty, zeros
from marey.numerics.arrays.reference_kernel import by_reference
from marey.numerics.jit import NO_WRAPPERS, inlined, lean, njit
from marey.numerics.vector3_kernel import add_vector, cross, dot, rotate, set_vector

# Added to each diagonal element of a pose, so that blocks without data stay positive
# definite; far below the weight of any marker. Chosen by hand.
MIN_DIAGONAL = 1e-9

# Largest rotation of a segment in one step, in radians; higher may overshoot, lower
# takes more steps. Chosen by hand.
MAX_ROTATION_STEP_RAD = 0.5

# Smallest angle by which is divided, in radians.
TINY = 1e-300


@by_reference
class CalibrationTables(NamedTuple):
    """The kinematic model as the kernels read it."""

    parent: np.ndarray
    path: np.ndarray  # by block: the blocks from the root position to it
    depth: np.ndarray  # by block: length of its path, without itself
    first_marker: np.ndarray  # by segment, one more at the end
    joint_column: np.ndarray  # by segment; -1 for the root
    marker_column: np.ndarray
    low: np.ndarray  # by block: first column of its subtree
    high: np.ndarray  # one after the last
    axis_child: np.ndarray  # by axis constraint: the segment below the joint
    axis_is_hinge: np.ndarray  # else universal: the two axes stay perpendicular
    axis_weight: np.ndarray
    axis_column: np.ndarray  # of the axis in the parent, and of that in the child
    student_t_dof: float


@by_reference
class KernelParameters(NamedTuple):
    """`ModelParameters` of one session."""

    joint_offset: np.ndarray
    marker_offset: np.ndarray
    axis: np.ndarray
    marker_noise: np.ndarray
    mean_rotation: np.ndarray


class CalibrationScratch(NamedTuple):
    """Intermediate results of one frame, in the frame of the world."""

    joint_position: np.ndarray  # by segment
    bone: np.ndarray  # by segment: its joint minus its parent's joint
    weight: np.ndarray  # by marker
    residual: np.ndarray  # by marker
    lever: np.ndarray  # by marker: its position minus its segment's joint
    subtree: np.ndarray  # by segment: sums of weight, weighted lever (3), residual (3)
    H: np.ndarray  # by block, by the blocks on its path: 3 x 3
    g: np.ndarray  # by block: the gradient, then the step
    Z: np.ndarray  # by block: 3 x columns, coupling of pose and parameters
    axis_residual: np.ndarray  # by axis constraint, divided by its sd
    axis_rows: np.ndarray  # its Jacobian by rotations of parent and child, both axes
    mean_pose: np.ndarray  # rotation of a segment if it had its mean rotation


@njit(cache=True, **NO_WRAPPERS)
def new_scratch(tables, n_markers, n_columns):
    """Return scratch arrays for one frame."""
    n = len(tables.parent)
    blocks, longest = tables.path.shape
    return CalibrationScratch(
        zeros((n, 3)),
        zeros((n, 3)),
        zeros(n_markers),
        zeros((n_markers, 3)),
        zeros((n_markers, 3)),
        zeros((n, 7)),
        zeros((blocks, longest, 3, 3)),
        zeros((blocks, 3)),
        zeros((blocks, 3, n_columns)),
        zeros((len(tables.axis_child), 3)),
        zeros((len(tables.axis_child), 4, 3, 3)),
        empty((3, 3)),
    )


@lean
def _multiply(A, B, out):
    """Write A B."""
    for i in range(3):
        for j in range(3):
            out[i, j] = A[i, 0] * B[0, j] + A[i, 1] * B[1, j] + A[i, 2] * B[2, j]


@lean
def add_cross_columns(v, M, factor, out, column):
    """Add factor [v]x M to three columns."""
    for j in range(3):
        x, y, z = factor * M[0, j], factor * M[1, j], factor * M[2, j]
        out[0, column + j] += v[1] * z - v[2] * y
        out[1, column + j] += v[2] * x - v[0] * z
        out[2, column + j] += v[0] * y - v[1] * x


@lean
def _add_cross_product(u, v, factor, out):
    """Add factor [u]x [v]x = factor (v u^T - (u . v) I)."""
    product = factor * dot(u, v)
    for i in range(3):
        out[i, i] -= product
        for j in range(3):
            out[i, j] += factor * v[i] * u[j]


@lean
def add_transposed_product(P, Q, factor, out, row, column):
    """Add factor P^T Q, of two 3 x 3 matrices, from a row and a column on."""
    for i in range(3):
        for j in range(3):
            s = P[0, i] * Q[0, j] + P[1, i] * Q[1, j] + P[2, i] * Q[2, j]
            out[row + i, column + j] += factor * s


@lean
def add_rotated_back(P, v, factor, out, row):
    """Add factor P^T v from a row on."""
    for i in range(3):
        out[row + i] += factor * (P[0, i] * v[0] + P[1, i] * v[1] + P[2, i] * v[2])


@lean
def frame_residuals(tables, parameters, points, t, R, scratch):
    """Write joints, levers, residuals and weights of a frame; return its cost."""
    joint, bone = scratch.joint_position, scratch.bone
    for i in range(len(tables.parent)):
        p = tables.parent[i]
        if p < 0:
            for k in range(3):
                joint[i, k] = t[k]
                bone[i, k] = 0.0
        else:
            set_vector(bone[i], rotate(R[p], parameters.joint_offset[i]))
            for k in range(3):
                joint[i, k] = joint[p, k] + bone[i, k]
    markers = _marker_cost(tables, parameters, points, R, scratch)
    return markers + _rotation_cost(tables, parameters, R, scratch)


@lean
def _marker_cost(tables, parameters, points, R, scratch):
    # One function for all markers, and by index: calls and views of arrays take longer
    # than the arithmetic.
    m, noise = parameters.marker_offset, parameters.marker_noise
    lever, r, joint = scratch.lever, scratch.residual, scratch.joint_position
    dof, power = tables.student_t_dof, tables.student_t_dof + 3.0
    cost = 0.0
    for i in range(len(tables.parent)):
        for k in range(tables.first_marker[i], tables.first_marker[i + 1]):
            square = 0.0
            for x in range(3):
                lever[k, x] = (
                    R[i, x, 0] * m[k, 0] + R[i, x, 1] * m[k, 1] + R[i, x, 2] * m[k, 2]
                )
                r[k, x] = points[k, x] - joint[i, x] - lever[k, x]
                square += r[k, x] * r[k, x]
            if np.isfinite(points[k, 0]):
                precision = confidence_of(points[k]) / (noise[k] * noise[k])
                square *= precision
                scratch.weight[k] = precision * power / (dof + square)
                cost += power * np.log1p(square / dof)
            else:
                scratch.weight[k] = 0.0
                r[k, 0], r[k, 1], r[k, 2] = 0.0, 0.0, 0.0
    return cost


@lean
def _rotation_cost(tables, parameters, R, scratch):
    """Return the cost of axis constraints and of rotations away from the mean.

    A rotation by an angle away from the mean costs 3 - trace = 2 (1 - cos angle).
    """
    cost, mean = 0.0, scratch.mean_pose
    for h in range(len(tables.axis_child)):
        e = scratch.axis_residual[h]
        _write_axis_rows(tables, parameters, R, scratch, h)
        cost += e[0] * e[0] + e[1] * e[1] + e[2] * e[2]
    for i in range(1, len(tables.parent)):
        _multiply(R[tables.parent[i]], parameters.mean_rotation[i], mean)
        for x in range(3):
            cost += 1.0
            for z in range(3):
                cost -= mean[x, z] * R[i, x, z]
    return cost


@lean
def _write_axis_rows(tables, parameters, R, scratch, h):
    """Write residual and Jacobian of an axis constraint, divided by its sd.

    With the axes a = R_p a_p and b = R_c b_c in the world, the residual of a hinge is
    a - b, that of a universal joint a . b. The columns are the rotations of parent and
    child, then the axis in the parent and the axis in the child.
    """
    i, factor = tables.axis_child[h], np.sqrt(tables.axis_weight[h])
    P, Q = R[tables.parent[i]], R[i]
    a, b = rotate(P, parameters.axis[h, 0]), rotate(Q, parameters.axis[h, 1])
    e, rows, j = scratch.axis_residual[h], scratch.axis_rows[h], cross(a, b)
    if not tables.axis_is_hinge[h]:
        rows[:] = 0.0
        e[0] = factor * dot(a, b)
        for x in range(3):
            rows[0, 0, x], rows[1, 0, x] = factor * j[x], -factor * j[x]
            for y in range(3):
                rows[2, 0, x] += factor * P[y, x] * b[y]
                rows[3, 0, x] += factor * Q[y, x] * a[y]
        return
    for x in range(3):
        y, z = x - 2, x - 1
        e[x] = factor * (a[x] - b[x])
        rows[0, x, y], rows[0, x, z] = factor * a[z], -factor * a[y]
        rows[1, x, y], rows[1, x, z] = -factor * b[z], factor * b[y]
        for k in range(3):
            rows[2, x, k], rows[3, x, k] = factor * P[x, k], -factor * Q[x, k]


@lean
def pose_equations(tables, parameters, R, scratch):
    """Write H and g of the pose: sums over the subtree of each segment."""
    subtree, bone, H, g = scratch.subtree, scratch.bone, scratch.H, scratch.g
    H[:] = 0.0
    g[:] = 0.0
    subtree[:] = 0.0
    _sum_subtrees(tables, scratch)
    for x in range(3):
        H[0, 0, x, x] = subtree[0, 0]
        g[0, x] = subtree[0, 4 + x]
    for i in range(len(tables.parent)):
        V, row, path = subtree[i, 1:4], H[i + 1], tables.path[i + 1]
        row[0, 0, 1], row[0, 0, 2], row[0, 1, 2] = -V[2], V[1], -V[0]
        row[0, 1, 0], row[0, 2, 0], row[0, 2, 1] = V[2], -V[1], V[0]
        for step in range(1, tables.depth[i + 1]):
            _add_cross_product(V, bone[path[step + 1] - 1], -1.0, row[step])
    _add_rotation_equations(tables, parameters, R, scratch)


@inlined
def _sum_subtrees(tables, scratch):
    """Add markers to the sums of their segments and these to the parents' sums.

    The sums are weight, weighted levers and weighted residuals; torques and the
    diagonal blocks of rotations enter g and H.
    """
    subtree, bone, H, g = scratch.subtree, scratch.bone, scratch.H, scratch.g
    for i in range(len(tables.parent) - 1, -1, -1):
        diagonal, sums = H[i + 1, tables.depth[i + 1]], subtree[i]
        for k in range(tables.first_marker[i], tables.first_marker[i + 1]):
            w = scratch.weight[k]
            sums[0] += w
            add_vector(sums[1:], w, scratch.lever[k])
            add_vector(sums[4:], w, scratch.residual[k])
            add_vector(g[i + 1], w, cross(scratch.lever[k], scratch.residual[k]))
            _add_cross_product(scratch.lever[k], scratch.lever[k], -w, diagonal)
        p = tables.parent[i]
        if p < 0:
            continue
        subtree[p, 0] += sums[0]
        add_vector(subtree[p, 1:], sums[0], bone[i])
        add_vector(subtree[p, 4:], 1.0, sums[4:])
        add_vector(g[p + 1], 1.0, cross(bone[i], sums[4:]))
        _add_cross_product(bone[i], bone[i], -sums[0], H[p + 1, tables.depth[p + 1]])


@lean
def _add_rotation_equations(tables, parameters, R, scratch):
    """Add axis constraints and the prior towards the mean rotation to H and g."""
    H, g, mean = scratch.H, scratch.g, scratch.mean_pose
    for h in range(len(tables.axis_child)):
        i, e = tables.axis_child[h], scratch.axis_residual[h]
        p, depth = tables.parent[i], tables.depth[i + 1]
        of_parent, of_child = scratch.axis_rows[h, 0], scratch.axis_rows[h, 1]
        add_transposed_product(of_parent, of_parent, 1.0, H[p + 1, depth - 1], 0, 0)
        add_transposed_product(of_child, of_child, 1.0, H[i + 1, depth], 0, 0)
        add_transposed_product(of_child, of_parent, 1.0, H[i + 1, depth - 1], 0, 0)
        add_rotated_back(of_parent, e, -1.0, g[p + 1], 0)
        add_rotated_back(of_child, e, -1.0, g[i + 1], 0)
    for i in range(1, len(tables.parent)):
        p, Q, depth = tables.parent[i], R[i], tables.depth[i + 1]
        _multiply(R[p], parameters.mean_rotation[i], mean)
        for x in range(3):
            y, z = x - 2, x - 1
            angle = 0.0
            for k in range(3):
                angle += Q[z, k] * mean[y, k] - Q[y, k] * mean[z, k]
            g[i + 1, x] -= 0.5 * angle
            g[p + 1, x] += 0.5 * angle
            H[i + 1, depth, x, x] += 1.0
            H[p + 1, depth - 1, x, x] += 1.0
            H[i + 1, depth - 1, x, x] -= 1.0


@lean
def _factorize_block(D, damping):
    """Replace a damped 3 x 3 block by its lower Cholesky factor."""
    for x in range(3):
        D[x, x] += damping * D[x, x] + MIN_DIAGONAL
    for j in range(3):
        for k in range(j):
            D[j, j] -= D[j, k] * D[j, k]
        D[j, j] = np.sqrt(max(D[j, j], MIN_DIAGONAL * MIN_DIAGONAL))
        for i in range(j + 1, 3):
            for k in range(j):
                D[i, j] -= D[i, k] * D[j, k]
            D[i, j] /= D[j, j]


@lean
def solve_lower(D, B):
    """Replace B by D^-1 B, D lower triangular."""
    d0, d1, d2 = 1.0 / D[0, 0], 1.0 / D[1, 1], 1.0 / D[2, 2]
    l10, l20, l21 = D[1, 0], D[2, 0], D[2, 1]
    for j in range(B.shape[1]):
        x = d0 * B[0, j]
        y = d1 * (B[1, j] - l10 * x)
        B[0, j], B[1, j] = x, y
        B[2, j] = d2 * (B[2, j] - l20 * x - l21 * y)


@lean
def _subtract_product(X, B, out):
    """Subtract X^T B from a block."""
    for i in range(3):
        x, y, z = X[0, i], X[1, i], X[2, i]
        for j in range(3):
            out[i, j] -= x * B[0, j] + y * B[1, j] + z * B[2, j]


@lean
def factorize(tables, scratch, damping):
    """Replace H by its block Cholesky factor L, leaves first, and g by L^-1 g."""
    H, g = scratch.H, scratch.g
    for b in range(len(tables.depth) - 1, -1, -1):
        depth = tables.depth[b]
        D = H[b, depth]
        _factorize_block(D, damping)
        g[b, 0] /= D[0, 0]
        g[b, 1] = (g[b, 1] - D[1, 0] * g[b, 0]) / D[1, 1]
        g[b, 2] = (g[b, 2] - D[2, 0] * g[b, 0] - D[2, 1] * g[b, 1]) / D[2, 2]
        for step in range(depth):
            solve_lower(D, H[b, step])
        for step in range(depth):
            u, X = tables.path[b, step], H[b, step]
            for i in range(3):
                g[u, i] -= X[0, i] * g[b, 0] + X[1, i] * g[b, 1] + X[2, i] * g[b, 2]
            for other in range(step + 1):
                _subtract_product(X, H[b, other], H[u, other])


@lean
def substitute_backward(tables, scratch):
    """Replace L^-1 g by the step L^-T L^-1 g."""
    H, g = scratch.H, scratch.g
    for b in range(len(tables.depth)):
        depth = tables.depth[b]
        D = H[b, depth]
        for step in range(depth):
            u, X = tables.path[b, step], H[b, step]
            for i in range(3):
                g[b, i] -= X[i, 0] * g[u, 0] + X[i, 1] * g[u, 1] + X[i, 2] * g[u, 2]
        g[b, 2] /= D[2, 2]
        g[b, 1] = (g[b, 1] - D[2, 1] * g[b, 2]) / D[1, 1]
        g[b, 0] = (g[b, 0] - D[1, 0] * g[b, 1] - D[2, 0] * g[b, 2]) / D[0, 0]


# --- poses ----------------------------------------------------------------------------


@lean
def _rotate_by(w, R, out):
    """Write exp([w]x) R by Rodrigues' formula; the angle is clipped."""
    angle = np.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    shrink = min(1.0, MAX_ROTATION_STEP_RAD / max(angle, TINY))
    x, y, z = w[0] * shrink, w[1] * shrink, w[2] * shrink
    half = 0.5 * max(angle * shrink, TINY)
    s, c = np.sin(2.0 * half) / (2.0 * half), 0.5 * (np.sin(half) / half) ** 2
    xx, yy = 1 - c * (y * y + z * z), 1 - c * (x * x + z * z)
    zz = 1 - c * (x * x + y * y)
    xy, yx = c * x * y - s * z, c * x * y + s * z
    xz, zx = c * x * z + s * y, c * x * z - s * y
    yz, zy = c * y * z - s * x, c * y * z + s * x
    for j in range(3):
        out[0, j] = xx * R[0, j] + xy * R[1, j] + xz * R[2, j]
        out[1, j] = yx * R[0, j] + yy * R[1, j] + yz * R[2, j]
        out[2, j] = zx * R[0, j] + zy * R[1, j] + zz * R[2, j]


@lean
def retract(t, R, step, t_out, R_out):
    """Write a pose after a step of its unknowns."""
    for k in range(3):
        t_out[k] = t[k] + step[0, k]
    for i in range(len(R)):
        _rotate_by(step[i + 1], R[i], R_out[i])
