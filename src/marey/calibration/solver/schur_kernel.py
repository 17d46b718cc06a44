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
from marey.numerics.arrays.new_kernel import empty, zeros
from marey.numerics.jit import FAST, lean, njit
from marey.numerics.lanes_kernel import LANES, as_lanes, spread
from marey.numerics.vector3_kernel import dot


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
    tables, scratch, start, products, b, index, Y, square, moving, moving_rows
):
    """Replace Z by Y = L^-1 Z and add Y^T Y; write the squares of its columns.

    The rows of moving joints lose their products.
    """
    g, (Y, beside) = scratch.g, Y
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
        _add_products(beside, count, products[start[block] :])
        _subtract_rows(Y, index[:count], low, n_path, moving, moving_rows)


@lean
def _subtract_rows(Y, index, low, n_path, moving, rows):
    """Subtract the rows of Y^T Y of the columns of moving joints.

    Columns on the path are looked for one by one; the others are adjacent.
    """
    n = len(index)
    for m in range(len(moving)):
        i = n_path + moving[m] - low
        if i < n_path or i >= n:
            i = 0
            while i < n_path and index[i] != moving[m]:
                i += 1
            if i == n_path:
                continue
        x, y, z = Y[0, i], Y[1, i], Y[2, i]
        out = rows[m]
        for j in range(n_path):
            out[index[j]] -= x * Y[0, j] + y * Y[1, j] + z * Y[2, j]
        adjacent = out[low:]
        for j in range(n_path, n):
            adjacent[j - n_path] -= x * Y[0, j] + y * Y[1, j] + z * Y[2, j]


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
    """Add the lower triangle of Y^T Y, four rows at a time, by lanes of columns."""
    beside, at = as_lanes(Y), 0
    for n in range(1, (count + LANES - 1) // LANES + 1):
        a, b, c, d = (
            _spread_column(Y, n - 1, 0),
            _spread_column(Y, n - 1, 1),
            _spread_column(Y, n - 1, 2),
            _spread_column(Y, n - 1, 3),
        )
        for j in range(n):
            column = beside[0, j], beside[1, j], beside[2, j]
            products[at] += dot(a, column)
            products[at + 1] += dot(b, column)
            products[at + 2] += dot(c, column)
            products[at + 3] += dot(d, column)
            at += LANES


@lean
def _spread_column(Y, block, lane):
    """Return a column of Y, each number in all lanes."""
    return (
        spread(Y[0, block, lane]),
        spread(Y[1, block, lane]),
        spread(Y[2, block, lane]),
    )


@lean
def _product_starts(tables, index, start):
    """Write where the products of every block start; last, where they end."""
    start[0] = 0
    for block in range(len(tables.depth)):
        n = (_coupled_columns(tables, block, index) + LANES - 1) // LANES
        start[block + 1] = start[block] + LANES * n * (n + 1) // 2


@lean
def _subtract_products(tables, start, products, index, A):
    """Subtract the products of every block from the lower triangle."""
    for block in range(len(tables.depth)):
        count = _coupled_columns(tables, block, index)
        for i in range(count):
            above = i // LANES
            first = start[block] + LANES * above * (above + 1) // 2 + i % LANES
            for j in range(i + 1):
                n = first + j // LANES * LANES
                row, column = index[i], index[j]
                A[max(row, column), min(row, column)] -= products[n, j % LANES]


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
    square, index = empty(len(b)), np.empty(len(b), dtype=np.int64)
    start = np.empty(len(tables.depth) + 1, dtype=np.int64)
    _product_starts(tables, index, start)
    products = zeros((start[-1], LANES))
    beside = zeros((3, (len(b) + LANES - 1) // LANES, LANES))
    Y = beside.reshape((3, beside.shape[1] * LANES)), beside
    A[:] = 0.0
    b[:] = 0.0
    cost, lanes = 0.0, as_lanes(products)
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
            tables, scratch, start, lanes, b, index, Y, square, moving, of_frame
        )
        for n in range(len(moving)):
            right[f, n] += b[moving[n]]
        for k in range(points.shape[1]):
            leverage[f, k] = 0.0
            w = scratch.weight[k]
            if w > 0.0:
                j = tables.marker_column[k]
                leverage[f, k] = (square[j] + square[j + 1] + square[j + 2]) / w
    _subtract_products(tables, start, products, index, A)
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
