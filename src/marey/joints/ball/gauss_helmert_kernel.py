"""Compiled parts of the Gauss-Helmert fit of one joint.

`gauss_helmert.py` explains the method. Matrices of one frame are tuples of rows, which
stay in registers. Frames are side by side: the last axis of their arrays has one number
per lane. Lanes beyond the last frame count nothing.
"""

# mypy: ignore-errors

import numpy as np

from marey.numerics.arrays.new_kernel import empty
from marey.numerics.jit import FAST, lean, njit
from marey.numerics.lanes_kernel import any_positive, as_lanes, select_positive, spread
from marey.numerics.median_kernel import median_of_five
from marey.numerics.vector3_kernel import dot, scale_vector, set_vector

# Squared angle, in square radians, below which five terms of the series of the sine are
# exact to rounding, and several times faster. Noise of orientations is far smaller.
SMALL_SQUARE = 0.01


@njit(cache=True)
def write_relative_poses(T, frames, a, b, anchor_a, anchor_b, R_a_b, t_a_b):
    """Write R_a^T R_b and R_a^T (anchor_b - anchor_a) of some frames."""
    d = empty(3)
    for row in range(len(frames)):
        A, B = T[frames[row], a], T[frames[row], b]
        for i in range(3):
            d[i] = B[i, 3] - A[i, 3]
            for j in range(3):
                d[i] += B[i, j] * anchor_b[j] - A[i, j] * anchor_a[j]
        for i in range(3):
            t_a_b[row, i] = A[0, i] * d[0] + A[1, i] * d[1] + A[2, i] * d[2]
            for j in range(3):
                R_a_b[row, i, j] = (
                    A[0, i] * B[0, j] + A[1, i] * B[1, j] + A[2, i] * B[2, j]
                )


@lean
def _rows(M):
    return (
        (M[0, 0], M[0, 1], M[0, 2]),
        (M[1, 0], M[1, 1], M[1, 2]),
        (M[2, 0], M[2, 1], M[2, 2]),
    )


@lean
def _sine_over_angle(square):
    """Return sin(x) / x of a squared angle; of small ones by a series, to rounding."""
    last = 1.0 - square / 42.0 * (1.0 - square / 72.0)
    ratio = 1.0 - square / 6.0 * (1.0 - square / 20.0 * last)
    excess = square - SMALL_SQUARE
    if any_positive(excess):
        angle = np.sqrt(select_positive(excess, square, SMALL_SQUARE + 0.0 * square))
        ratio = select_positive(excess, np.sin(angle) / angle, ratio)
    return ratio


@lean
def _rotation(x, y, z):
    """Return the rotation matrix of a rotation vector (Rodrigues' formula)."""
    square = x * x + y * y + z * z
    s, half = _sine_over_angle(square), _sine_over_angle(square / 4.0)
    c = 0.5 * half * half
    xy, xz, yz = c * x * y, c * x * z, c * y * z
    return (
        (1.0 - c * (y * y + z * z), xy - s * z, xz + s * y),
        (xy + s * z, 1.0 - c * (x * x + z * z), yz - s * x),
        (xz - s * y, yz + s * x, 1.0 - c * (x * x + y * y)),
    )


@lean
def _hat(x):
    """Return the matrix of the cross product with x."""
    zero = 0.0 * x[0]
    return ((zero, -x[2], x[1]), (x[2], zero, -x[0]), (-x[1], x[0], zero))


@lean
def _row_product(r, Y):
    """Return the row r Y."""
    return (
        r[0] * Y[0][0] + r[1] * Y[1][0] + r[2] * Y[2][0],
        r[0] * Y[0][1] + r[1] * Y[1][1] + r[2] * Y[2][1],
        r[0] * Y[0][2] + r[1] * Y[1][2] + r[2] * Y[2][2],
    )


@lean
def _product(X, Y):
    return _row_product(X[0], Y), _row_product(X[1], Y), _row_product(X[2], Y)


@lean
def _times(X, v):
    return dot(X[0], v), dot(X[1], v), dot(X[2], v)


@lean
def _symmetric_product(B, C):
    """Return B C B^T, symmetric: xx, yy, zz, xy, xz, yz."""
    BC = _product(B, C)
    return (
        dot(BC[0], B[0]),
        dot(BC[1], B[1]),
        dot(BC[2], B[2]),
        dot(BC[0], B[1]),
        dot(BC[0], B[2]),
        dot(BC[1], B[2]),
    )


@lean
def _inverse_of_sum(s, t, variance):
    """Return the inverse of s + t + variance I, and the determinant of that sum.

    All three matrices are symmetric; s and t are in the order of `_symmetric_product`.
    """
    xx, yy, zz = s[0] + t[0] + variance, s[1] + t[1] + variance, s[2] + t[2] + variance
    xy, xz, yz = s[3] + t[3], s[4] + t[4], s[5] + t[5]
    a, b, c = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    det = xx * a + xy * b + xz * c
    d = 1.0 / det
    e, f, g = d * (xx * zz - xz * xz), d * (xy * xz - xx * yz), d * (xx * yy - xy * xy)
    a, b, c = d * a, d * b, d * c
    return ((a, b, c), (b, e, f), (c, f, g)), det


@lean
def _add_information(B, P, out):
    """Add B^T P B to `out`."""
    PB = _product(P, B)
    for i in range(3):
        for j in range(3):
            out[i, j] += B[0][i] * PB[0][j] + B[1][i] * PB[1][j] + B[2][i] * PB[2][j]


@lean
def _write(X, out):
    for j in range(3):
        out[0, j] = X[0][j]
        out[1, j] = X[1][j]
        out[2, j] = X[2][j]


@njit(cache=True)
def linearise(poses, u, adjustments, covariances, stretches, variance, model, info):
    """Write the constraint of every frame, linearised at the adjusted poses.

    Args:
        poses: R_a_b, t_a_b, and 1 for a frame, 0 for a lane without one.
        u: Both centres.
        adjustments: Rotation vectors of the two poses.
        covariances: Of the orientations of a and b.
        stretches: Factors of both centres.
        variance: Of the positions, per axis.
        model: Out: A (3 x 6), the derivative of the constraint by the centres; B_a and
            B_b, its derivatives by the rotation vectors of the two poses; P, the
            inverse covariance of the residual; m, the residual at zero adjustment.
        info: Out: the sums over frames of B_a^T P B_a and B_b^T P B_b, what the
            residuals determine of each body's rotations.

    Return False if the covariance of a residual is singular.
    """
    R, t, is_frame = poses
    w_a, w_b = adjustments
    A, B_a, B_b, P, m = model
    info[:] = 0.0
    return _linearise_all(
        (as_lanes(R), as_lanes(t), as_lanes(is_frame)),
        (as_lanes(w_a), as_lanes(w_b)),
        ((u[0], u[1], u[2]), (u[3], u[4], u[5])),
        (_rows(covariances[0]), _rows(covariances[1])),
        (_rows(stretches[0]), _rows(stretches[1])),
        variance,
        (as_lanes(A), as_lanes(B_a), as_lanes(B_b), as_lanes(P), as_lanes(m)),
        as_lanes(info),
    )


@lean
def _linearise_all(poses, adjustments, u, covariances, stretches, variance, out, info):
    R, t, is_frame = poses
    for k in range(len(R)):
        at = (_rows(R[k]), t[k], is_frame[k])
        w = (_vector(adjustments[0][k]), _vector(adjustments[1][k]))
        model = out[0][k], out[1][k], out[2][k], out[3][k], out[4][k]
        det = _linearise(at, w, u, covariances, stretches, variance, model, info)
        if any_positive(select_positive(det, -1.0 + 0.0 * det, spread(1.0))):
            return False
    return True


@lean
def _vector(x):
    return x[0], x[1], x[2]


@lean
def _linearise(at, w, u, covariances, stretches, variance, model, info):
    """Linearise the constraint of one frame; return a determinant, above 0 if known."""
    N, t, is_frame = at
    v_a, v_b = w
    A, B_a, B_b, P, m = model
    E_a = _product(_rotation(v_a[0], v_a[1], v_a[2]), stretches[0])
    E_b = _product(_rotation(v_b[0], v_b[1], v_b[2]), stretches[1])
    x_a, x_b = _times(E_a, u[0]), _times(E_b, u[1])
    hat_a, hat_b = _hat((-x_a[0], -x_a[1], -x_a[2])), _product(N, _hat(x_b))
    NE = _product(N, E_b)
    S_a = _symmetric_product(hat_a, covariances[0])
    S_b = _symmetric_product(hat_b, covariances[1])
    Q, det = _inverse_of_sum(S_a, S_b, variance)
    Q = (
        scale_vector(is_frame, Q[0]),
        scale_vector(is_frame, Q[1]),
        scale_vector(is_frame, Q[2]),
    )
    _write(E_a, A)
    _write(hat_a, B_a)
    _write(hat_b, B_b)
    _write(Q, P)
    _add_information(hat_a, Q, info[0])
    _add_information(hat_b, Q, info[1])
    in_a, by_a, by_b = _times(N, x_b), _times(hat_a, v_a), _times(hat_b, v_b)
    for i in range(3):
        m[i] = x_a[i] - t[i] - in_a[i] - by_a[i] - by_b[i]
        for j in range(3):
            A[i, 3 + j] = -NE[i][j]
    return det


@njit(cache=True, fastmath=FAST)
def squared_norms(m, P, out):
    """Write every m^T P m."""
    for k in range(len(m)):
        x, y, z = m[k, 0], m[k, 1], m[k, 2]
        out[k] = (
            x * x * P[k, 0, 0]
            + y * y * P[k, 1, 1]
            + z * z * P[k, 2, 2]
            + 2.0 * (x * y * P[k, 0, 1] + x * z * P[k, 0, 2] + y * z * P[k, 1, 2])
        )


@njit(cache=True)
def sum_normal_equations(A, P, m, weight, sums):
    """Write the weighted sums of A^T P A, -A^T P m and m^T P m.

    They are the columns of `sums`, (6, 8): the first in six columns, its lower
    triangle, the second in one, and the third in the last row of one more.
    """
    sums[:] = 0.0
    _sum_all(as_lanes(A), as_lanes(P), as_lanes(m), as_lanes(weight), as_lanes(sums))


@lean
def _sum_all(A, P, m, weight, sums):
    for k in range(len(A)):
        w, Q, one, misfit = weight[k], _rows(P[k]), A[k], _vector(m[k])
        Pm = _times(Q, misfit)
        sums[5, 7] += w * dot(misfit, Pm)
        for i in range(6):
            column = (w * one[0, i], w * one[1, i], w * one[2, i])
            row = _times(Q, column)
            sums[i, 6] -= dot(column, Pm)
            for j in range(i + 1):
                other = one[0, j], one[1, j], one[2, j]
                sums[i, j] += dot(row, other)


@lean
def _rotation_step(B, C, multiplier):
    """Return C B^T times a Lagrange multiplier: the rotation vector of least cost."""
    x, y, z = B
    gradient = (
        x[0] * multiplier[0] + y[0] * multiplier[1] + z[0] * multiplier[2],
        x[1] * multiplier[0] + y[1] * multiplier[1] + z[1] * multiplier[2],
        x[2] * multiplier[0] + y[2] * multiplier[1] + z[2] * multiplier[2],
    )
    return _times(C, gradient)


@njit(cache=True)
def adjust(model, du, covariances, adjustments):
    """Rotate the poses of every frame so that its constraint holds at least cost."""
    A, B_a, B_b, P, m = model
    w_a, w_b = adjustments
    _adjust_all(
        (as_lanes(A), as_lanes(B_a), as_lanes(B_b), as_lanes(P), as_lanes(m)),
        ((du[0], du[1], du[2]), (du[3], du[4], du[5])),
        (_rows(covariances[0]), _rows(covariances[1])),
        (as_lanes(w_a), as_lanes(w_b)),
    )


@lean
def _adjust_all(model, du, covariances, adjustments):
    A, B_a, B_b, P, m = model
    w_a, w_b = adjustments
    for k in range(len(A)):
        x, y, z = A[k, 0], A[k, 1], A[k, 2]
        misfit = (
            -m[k, 0] - dot(x, du[0]) - dot(x[3:], du[1]),
            -m[k, 1] - dot(y, du[0]) - dot(y[3:], du[1]),
            -m[k, 2] - dot(z, du[0]) - dot(z[3:], du[1]),
        )
        multiplier = _times(_rows(P[k]), misfit)
        set_vector(w_a[k], _rotation_step(_rows(B_a[k]), covariances[0], multiplier))
        set_vector(w_b[k], _rotation_step(_rows(B_b[k]), covariances[1], multiplier))


@njit(cache=True)
def subtract_medians(residual, out):
    """Write every residual minus the median of the five around it, axis by axis."""
    n = len(residual)
    for k in range(n):
        window = residual[max(k - 2, 0) :][:5]
        if len(window) < len(residual[:5]):
            window = residual[-5:]
        for i in range(3):
            x = window[:, i]
            out[k, i] = residual[k, i] - median_of_five(x[0], x[1], x[2], x[3], x[4])
