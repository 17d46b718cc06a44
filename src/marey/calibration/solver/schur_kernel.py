r"""Normal equations of the parameters of a session, poses eliminated, compiled.

The normal equations of one frame couple its pose q to the parameters p. Elimination of
q leaves its Schur complement, which is summed over the frames:

.. math:: \begin{pmatrix} H_{qq} & Z \\ Z^T & H_{pp} \end{pmatrix}
          \begin{pmatrix} \delta q \\ \delta p \end{pmatrix} =
          \begin{pmatrix} g_q \\ g_p \end{pmatrix}
          \;\Rightarrow\;
          \sum_f (H_{pp} - Z^T H_{qq}^{-1} Z)\, \delta p =
          \sum_f (g_p - Z^T H_{qq}^{-1} g_q)

With the Cholesky factor :math:`H_{qq} = L L^T` and :math:`Y = L^{-1} Z` the correction
is :math:`Y^T Y`. A block of the pose is coupled to the parameters of its subtree, which
are adjacent because segments are sorted depth first, and to the joint offsets on its
path to the root. The products of these columns are summed block by block.
"""

# mypy: ignore-errors

import numpy as np

from marey.calibration.solver.frame_equations_kernel import (
    add_cross_columns,
    add_rotated_back,
    add_transposed_product,
    factorize,
    frame_residuals,
    new_scratch,
    pose_equations,
    retract,
    solve_lower,
    substitute_backward,
)
from marey.numerics.jit import FAST, lean, njit


@lean
def _add_translation_columns(path, depth, bone, R, i, factor, Z, column):
    """Add the columns of an offset along the axes R[i] that moves a whole subtree.

    The rows of the root position receive factor R, those of every segment on the path
    factor [bone]x R.
    """
    for j in range(3):
        x, y, z = factor * R[i, 0, j], factor * R[i, 1, j], factor * R[i, 2, j]
        to = column + j
        Z[0, 0, to] += x
        Z[0, 1, to] += y
        Z[0, 2, to] += z
        for step in range(1, depth):
            a, row = path[step + 1] - 1, path[step]
            Z[row, 0, to] += bone[a, 1] * z - bone[a, 2] * y
            Z[row, 1, to] += bone[a, 2] * x - bone[a, 0] * z
            Z[row, 2, to] += bone[a, 0] * y - bone[a, 1] * x


@lean
def _coupling(tables, R, scratch):
    """Write Z, the coupling of pose and parameters."""
    Z, lever, bone, subtree = scratch.Z, scratch.lever, scratch.bone, scratch.subtree
    Z[:] = 0.0
    for i in range(len(tables.parent)):
        path, depth, p = tables.path[i + 1], tables.depth[i + 1], tables.parent[i]
        rotation_rows = Z[i + 1]
        for k in range(tables.first_marker[i], tables.first_marker[i + 1]):
            w, column = scratch.weight[k], tables.marker_column[k]
            _add_translation_columns(path, depth, bone, R, i, w, Z, column)
            add_cross_columns(lever[k], R[i], w, rotation_rows, column)
        if p < 0:
            continue
        w, column = subtree[i, 0], tables.joint_column[i]
        _add_translation_columns(path, depth, bone, R, p, w, Z, column)
        # A joint offset on the path to a segment moves the subtree of that segment.
        for step in range(2, depth + 1):
            a = path[step] - 1
            column = tables.joint_column[a]
            add_cross_columns(
                subtree[i, 1:4], R[tables.parent[a]], 1.0, rotation_rows, column
            )
    for h in range(len(tables.axis_child)):
        i = tables.axis_child[h]
        rows, rotations = scratch.axis_rows[h], (tables.parent[i] + 1, i + 1)
        for n in range(2):
            out = Z[rotations[n]]
            for axis in range(2):
                column = tables.axis_column[h, axis]
                add_transposed_product(rows[n], rows[2 + axis], 1.0, out, 0, column)


@lean
def _add_parameter_equations(tables, R, scratch, A, b):
    """Add H_pp and g_p of a frame, the lower triangle."""
    for i in range(len(tables.parent)):
        p = tables.parent[i]
        if p >= 0:
            row, w = tables.joint_column[i], scratch.subtree[i, 0]
            add_rotated_back(R[p], scratch.subtree[i, 4:], 1.0, b, row)
            _add_path_products(tables, R, i, R[p], w, A, row)
        for k in range(tables.first_marker[i], tables.first_marker[i + 1]):
            row, w = tables.marker_column[k], scratch.weight[k]
            add_rotated_back(R[i], scratch.residual[k], w, b, row)
            for x in range(3):
                A[row + x, row + x] += w
            _add_path_products(tables, R, i, R[i], w, A, row)
    for h in range(len(tables.axis_child)):
        rows, column = scratch.axis_rows[h, 2:], tables.axis_column[h]
        for n in range(2):
            add_rotated_back(rows[n], scratch.axis_residual[h], -1.0, b, column[n])
            for m in range(n + 1):
                add_transposed_product(rows[n], rows[m], 1.0, A, column[n], column[m])


@lean
def _add_path_products(tables, R, i, axes, w, A, row):
    """Add the products of an offset with the joint offsets on the path to segment i."""
    for step in range(2, tables.depth[i + 1] + 1):
        a = tables.path[i + 1, step] - 1
        column = tables.joint_column[a]
        add_transposed_product(axes, R[tables.parent[a]], w, A, row, column)


@lean
def _coupled_columns(tables, block, index):
    """Write the columns that a block is coupled to; return how many.

    Joint offsets on the path to the root come first, then the adjacent columns of the
    subtree.
    """
    count = 0
    for step in range(2, tables.depth[block]):
        column = tables.joint_column[tables.path[block, step] - 1]
        for j in range(3):
            index[count] = column + j
            count += 1
    for j in range(tables.low[block], tables.high[block]):
        index[count] = j
        count += 1
    return count


@lean
def _eliminate_pose(
    tables, scratch, products, b, index, Y, square, moving, moving_rows
):
    """Replace Z by Y = L^-1 Z and add Y^T Y; write the squares of its columns.

    The rows of moving joints lose their products.
    """
    g = scratch.g
    square[:] = 0.0
    for block in range(len(tables.depth) - 1, -1, -1):
        count = _coupled_columns(tables, block, index)
        low = tables.low[block]
        n_path = count - (tables.high[block] - low)
        rows = scratch.Z[block]
        for x in range(3):
            for j in range(count):
                Y[x, j] = rows[x, index[j]]
        solve_lower(scratch.H[block, tables.depth[block]], Y[:, :count])
        for step in range(tables.depth[block]):
            X, out = scratch.H[block, step], scratch.Z[tables.path[block, step]]
            _subtract_product(X, Y, index[:n_path], low, count, out)
        x, y, z = g[block, 0], g[block, 1], g[block, 2]
        for j in range(count):
            square[index[j]] += (
                Y[0, j] * Y[0, j] + Y[1, j] * Y[1, j] + Y[2, j] * Y[2, j]
            )
            b[index[j]] -= x * Y[0, j] + y * Y[1, j] + z * Y[2, j]
        _add_products(Y, count, products[tables.product_start[block] :])
        _subtract_rows(Y, index[:count], moving, moving_rows)


@lean
def _subtract_rows(Y, index, moving, rows):
    """Subtract the rows of Y^T Y of the columns of moving joints."""
    for n in range(len(moving)):
        for i in range(len(index)):
            if index[i] == moving[n]:
                x, y, z = Y[0, i], Y[1, i], Y[2, i]
                for j in range(len(index)):
                    rows[n, index[j]] -= x * Y[0, j] + y * Y[1, j] + z * Y[2, j]


@lean
def _add_rows(A, factor, moving, rows):
    """Add the rows of moving joints of a symmetric matrix, of its lower triangle."""
    for n in range(len(moving)):
        row = moving[n]
        for j in range(len(A)):
            rows[n, j] += factor * A[max(row, j), min(row, j)]


@lean
def _subtract_product(X, Y, path_index, low, count, out):
    """Subtract X^T Y from the columns of a block: on the path, and adjacent ones."""
    n_path = len(path_index)
    for i in range(3):
        x, y, z = X[0, i], X[1, i], X[2, i]
        for j in range(n_path):
            out[i, path_index[j]] -= x * Y[0, j] + y * Y[1, j] + z * Y[2, j]
        row = out[i, low:]
        for j in range(n_path, count):
            row[j - n_path] -= x * Y[0, j] + y * Y[1, j] + z * Y[2, j]


@lean
def _add_products(Y, count, products):
    """Add the lower triangle of Y^T Y, row after row."""
    first = 0
    for i in range(count):
        x, y, z = Y[0, i], Y[1, i], Y[2, i]
        row = products[first : first + i + 1]
        for j in range(i + 1):
            row[j] += x * Y[0, j] + y * Y[1, j] + z * Y[2, j]
        first += i + 1


@lean
def _subtract_products(tables, products, index, A):
    """Subtract the products of every block from the lower triangle."""
    for block in range(len(tables.depth)):
        count = _coupled_columns(tables, block, index)
        n = tables.product_start[block]
        for i in range(count):
            for j in range(i + 1):
                row, column = index[i], index[j]
                A[max(row, column), min(row, column)] -= products[n]
                n += 1


@njit(cache=True, fastmath=FAST, nogil=True)
def eliminate_poses(
    tables, parameters, points, t, R, damping, A, b, leverage, moving, rows, right
):
    """Write the equations of the parameters with all poses eliminated.

    Args:
        tables: The kinematic model.
        parameters: Its parameters.
        points: Markers, frames x markers x 3.
        t: Root position in each frame.
        R: Rotations of all segments in each frame.
        damping: Share of each pose's diagonal that is added to it.
        A: Out: Schur complement, columns x columns.
        b: Out: its right side.
        leverage: Out: frames x markers; the trace of d(fitted position) / d(measured
            position), 0 to 3, which is what the pose absorbs of a residual.
        moving: Columns of the offsets of joints whose centre moves.
        rows: Out: frames x moving x columns; their rows of A in each frame.
        right: Out: frames x moving; their right side in each frame.

    Returns:
        The cost of all frames.
    """
    scratch = new_scratch(tables, points.shape[1], len(b))
    products = np.zeros(tables.product_start[len(tables.depth)])
    Y = np.empty((3, len(b)))
    square, index = np.empty(len(b)), np.empty(len(b), dtype=np.int64)
    A[:] = 0.0
    b[:] = 0.0
    cost = 0.0
    for f in range(len(points)):
        cost += frame_residuals(tables, parameters, points[f], t[f], R[f], scratch)
        pose_equations(tables, parameters, R[f], scratch)
        _coupling(tables, R[f], scratch)
        of_frame = rows[f]
        of_frame[:] = 0.0
        _add_rows(A, -1.0, moving, of_frame)
        for n in range(len(moving)):
            right[f, n] = -b[moving[n]]
        _add_parameter_equations(tables, R[f], scratch, A, b)
        _add_rows(A, 1.0, moving, of_frame)
        factorize(tables, scratch, damping)
        _eliminate_pose(
            tables, scratch, products, b, index, Y, square, moving, of_frame
        )
        for n in range(len(moving)):
            right[f, n] += b[moving[n]]
        for k in range(points.shape[1]):
            leverage[f, k] = 0.0
            w = scratch.weight[k]
            if w > 0.0:
                j = tables.marker_column[k]
                leverage[f, k] = (square[j] + square[j + 1] + square[j + 2]) / w
    _subtract_products(tables, products, index, A)
    for i in range(len(A)):
        for j in range(i):
            A[j, i] = A[i, j]
    return cost


@njit(cache=True, fastmath=FAST, nogil=True)
def step_poses(tables, parameters, points, t, R, damping, step, t_out, R_out):
    """Write the poses after the step dq = H_qq^-1 (g_q - Z dp) of a parameter step.

    The step of the parameters, frames x columns, differs by the motion of centres.
    """
    scratch = new_scratch(tables, points.shape[1], step.shape[1])
    for f in range(len(points)):
        frame_residuals(tables, parameters, points[f], t[f], R[f], scratch)
        pose_equations(tables, parameters, R[f], scratch)
        _coupling(tables, R[f], scratch)
        for block in range(len(tables.depth)):
            for x in range(3):
                for j in range(step.shape[1]):
                    scratch.g[block, x] -= scratch.Z[block, x, j] * step[f, j]
        factorize(tables, scratch, damping)
        substitute_backward(tables, scratch)
        retract(t[f], R[f], scratch.g, t_out[f], R_out[f])
