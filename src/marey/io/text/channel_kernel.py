"""Compiled composition of joint angles: channels in, quaternions out."""

from math import floor, pi
from typing import no_type_check

from numba import njit

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


@no_type_check
@njit(cache=True, inline="always")
def cos_sin(degrees):
    """Return cosine and sine of degrees, exact at every right angle.

    Argument reduction by 90 degrees has no rounding in degrees, which makes this
    several times faster than the general functions.
    """
    quarter = floor(degrees / 90.0 + 0.5)
    x = (degrees - 90.0 * quarter) * RADIANS_PER_DEGREE
    z = x * x
    s = x + x * z * (
        SINE[0]
        + z * (SINE[1] + z * (SINE[2] + z * (SINE[3] + z * (SINE[4] + z * SINE[5]))))
    )
    c = (
        1.0
        - 0.5 * z
        + z
        * z
        * (
            COSINE[0]
            + z
            * (
                COSINE[1]
                + z * (COSINE[2] + z * (COSINE[3] + z * (COSINE[4] + z * COSINE[5])))
            )
        )
    )
    quadrant = quarter - 4.0 * floor(quarter * 0.25)
    if quadrant == 1.0:
        return -s, c
    if quadrant == 2.0:
        return -c, -s
    if quadrant == 3.0:
        return s, -c
    return c, s


@no_type_check
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
            w, x, y, z = 1.0, 0.0, 0.0, 0.0
            for k in range(first[joint], first[joint + 1]):
                c, s = cos_sin(0.5 * angles[frame, column[k]])
                if axis[k] == 0:
                    w, x, y, z = (
                        w * c - x * s,
                        x * c + w * s,
                        y * c + z * s,
                        z * c - y * s,
                    )
                elif axis[k] == 1:
                    w, x, y, z = (
                        w * c - y * s,
                        x * c - z * s,
                        y * c + w * s,
                        z * c + x * s,
                    )
                else:
                    w, x, y, z = (
                        w * c - z * s,
                        x * c + y * s,
                        y * c - x * s,
                        z * c + w * s,
                    )
            R = R_joint_file[joint]
            wxyz[frame, joint, 0] = w
            wxyz[frame, joint, 1] = R[0, 0] * x + R[0, 1] * y + R[0, 2] * z
            wxyz[frame, joint, 2] = R[1, 0] * x + R[1, 1] * y + R[1, 2] * z
            wxyz[frame, joint, 3] = R[2, 0] * x + R[2, 1] * y + R[2, 2] * z
