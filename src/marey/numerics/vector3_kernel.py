"""Products of vectors, rotations and quaternions for kernels; forward kinematics.

Vectors have three elements and may be rows of arrays or tuples; results are tuples, so
that nothing is allocated. Loops over three elements are written out: Numba does not
know the length of a row, and would count.
"""

# mypy: ignore-errors

import numpy as np

from marey.numerics.jit import lean, njit


@lean
def dot(a, b):
    """Return the dot product of two vectors."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@lean
def cross(a, b):
    """Return the cross product a x b."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


@lean
def scale_vector(factor, v):
    """Return the vector times a number."""
    return factor * v[0], factor * v[1], factor * v[2]


@lean
def rotate(R, v):
    """Return the vector R v."""
    return (
        R[0, 0] * v[0] + R[0, 1] * v[1] + R[0, 2] * v[2],
        R[1, 0] * v[0] + R[1, 1] * v[1] + R[1, 2] * v[2],
        R[2, 0] * v[0] + R[2, 1] * v[1] + R[2, 2] * v[2],
    )


@lean
def rotate_back(R, v):
    """Return the vector R^T v."""
    return (
        R[0, 0] * v[0] + R[1, 0] * v[1] + R[2, 0] * v[2],
        R[0, 1] * v[0] + R[1, 1] * v[1] + R[2, 1] * v[2],
        R[0, 2] * v[0] + R[1, 2] * v[1] + R[2, 2] * v[2],
    )


@lean
def place(R, c, v):
    """Return the point c + R v."""
    x, y, z = rotate(R, v)
    return c[0] + x, c[1] + y, c[2] + z


@lean
def rotation_columns(q):
    """Return the three columns of the rotation matrix of a unit quaternion (wxyz)."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)),
        (2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)),
        (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)),
    )


@lean
def multiply_quaternions(a, b):
    """Return the product of two quaternions (wxyz)."""
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


@lean
def set_vector(out, v):
    """Write a vector into the first three elements of an array."""
    out[0], out[1], out[2] = v[0], v[1], v[2]


@lean
def set_matrices(out, values):
    """Copy matrices of 3 x 3; slices would compile messages on wrong shapes."""
    for n in range(len(values)):
        for i in range(3):
            for j in range(3):
                out[n, i, j] = values[n, i, j]


@lean
def add_vector(out, factor, v):
    """Add a multiple of a vector to the first three elements of an array."""
    out[0] += factor * v[0]
    out[1] += factor * v[1]
    out[2] += factor * v[2]


@lean
def sum_products(a, b):
    """Return the sum of the products of two arrays of any length."""
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@lean
def set_values(out, values):
    """Write values of any number into an array; a slice would take long to compile."""
    for k in range(len(values)):
        out[k] = values[k]


@lean
def copy_rows(values, out):
    """Copy the rows of a matrix into another."""
    for i in range(values.shape[0]):
        for k in range(values.shape[1]):
            out[i, k] = values[i, k]


@lean
def add_values(out, factor, values):
    """Add a multiple of values of any number to an array."""
    for k in range(len(values)):
        out[k] += factor * values[k]


@lean
def largest_of(values):
    """Return the largest of some numbers; NaN if one of them is."""
    found = values[0]
    for i in range(1, len(values)):
        if values[i] > found or np.isnan(values[i]):
            found = values[i]
    return found


@lean
def fill(out, value):
    """Set all elements of an array to one value."""
    for k in range(len(out)):
        out[k] = value


@lean
def set_diagonal(out, n, value):
    """Write a multiple of the identity into the first n rows and columns."""
    for i in range(n):
        for j in range(n):
            out[i, j] = value if i == j else 0.0


# --- forward kinematics ---------------------------------------------------------------


@njit(cache=True)
def place_joints(parent, offset, T_world_root, wxyz, out):
    """Fill out (frame, joint, 4, 4) with T_world_joint, from root to leaves.

    Parents come before their children. Where a rotation, an offset or the pose of the
    parent is not known, the pose is NaN throughout.
    """
    for n in range(len(out)):
        _place_joints_of_frame(parent, offset, T_world_root[n], wxyz[n], out[n])


@lean
def _place_joints_of_frame(parent, offset, T_world_root, wxyz, out):
    for joint in range(len(parent)):
        if parent[joint] < 0:
            copy_rows(T_world_root, out[joint])
        else:
            place_joint(out[parent[joint]], offset[joint], wxyz[joint], out[joint])


@lean
def place_joint(T_parent, offset, q, out):
    """Fill T_world_joint from that of the parent (OBrien2000, Eqs. 4-5)."""
    a, b, d = rotation_columns(q)
    a, b, d = rotate(T_parent, a), rotate(T_parent, b), rotate(T_parent, d)
    c = place(T_parent, T_parent[:3, 3], offset)
    is_known = np.isfinite(a[0] + b[0] + d[0] + c[0] + c[1] + c[2])
    for i in range(3):
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = a[i], b[i], d[i], c[i]
        out[3, i] = 0.0
    out[3, 3] = 1.0
    if not is_known:
        for i in range(4):
            fill(out[i], np.nan)
