"""Compiled composition of joint angles: channels in, quaternions out."""

# mypy: ignore-errors

from math import floor, pi

from marey.numerics.jit import njit

RADIANS_PER_DEGREE = pi / 180.0

# Minimax polynomials of sine and cosine within 45 degrees, to the last bit but one.
SINE = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
COSINE = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)


@njit(cache=True, inline="always")
def polynomial(coefficients, x):
    """Return a polynomial of degree five by Horner's rule, lowest power first."""
    value = coefficients[5]
    for k in range(4, -1, -1):
        value = coefficients[k] + x * value
    return value


@njit(cache=True, inline="always")
def cos_sin(degrees):
    """Return cosine and sine of degrees, exact at every right angle.

    Argument reduction by 90 degrees has no rounding in degrees, which makes this
    several times faster than the general functions.
    """
    quarter = floor(degrees / 90.0 + 0.5)
    x = (degrees - 90.0 * quarter) * RADIANS_PER_DEGREE
    z = x * x
    s = x + x * z * polynomial(SINE, z)
    c = 1.0 - 0.5 * z + z * z * polynomial(COSINE, z)
    quadrant = quarter - 4.0 * floor(quarter * 0.25)
    if quadrant == 1.0:
        return -s, c
    if quadrant == 2.0:
        return -c, -s
    if quadrant == 3.0:
        return s, -c
    return c, s


@njit(cache=True)
def compose_rotations(angles, first, column, axis, R_joint_file, wxyz):
    """Fill the rotation of every joint in every frame.

    Args:
        angles: Channels in degrees (frame, channel).
        first: Where each joint's rotations begin in `column` and `axis` (joint + 1).
        column: Channel of each rotation, in the order R = R_1 @ R_2 @ ...
        axis: Axis of each rotation, 0 to 2.
        R_joint_file: Axes of the answer from those of the angles (joint, 3, 3).
        wxyz: Output (frame, joint, 4).
    """
    for frame in range(angles.shape[0]):
        for joint in range(first.size - 1):
            q = wxyz[frame, joint]
            q[0], q[1], q[2], q[3] = 1.0, 0.0, 0.0, 0.0
            for k in range(first[joint], first[joint + 1]):
                c, s = cos_sin(0.5 * angles[frame, column[k]])
                a = 1 + axis[k]
                b, d = 1 + a % 3, 1 + (a + 1) % 3
                w, x, y, z = q[0], q[a], q[b], q[d]
                q[0] = w * c - x * s
                q[a] = x * c + w * s
                q[b] = y * c + z * s
                q[d] = z * c - y * s
            R = R_joint_file[joint]
            x, y, z = q[1], q[2], q[3]
            for row in range(3):
                q[1 + row] = R[row, 0] * x + R[row, 1] * y + R[row, 2] * z
