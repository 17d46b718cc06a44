"""Compiled composition of joint angles: channels in, quaternions out."""

from math import floor, pi
from typing import no_type_check

from numba import njit

RADIAN = pi / 180.0

# Minimax polynomials of sine and cosine within 45 degrees, to the last bit but one.
S = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
C = (
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

    Whole quarter turns come off without rounding in degrees, which makes this several
    times faster than the general functions.
    """
    quarter = floor(degrees / 90.0 + 0.5)
    x = (degrees - 90.0 * quarter) * RADIAN
    z = x * x
    s = x + x * z * (
        S[0] + z * (S[1] + z * (S[2] + z * (S[3] + z * (S[4] + z * S[5]))))
    )
    c = (
        1.0
        - 0.5 * z
        + z * z * (C[0] + z * (C[1] + z * (C[2] + z * (C[3] + z * (C[4] + z * C[5])))))
    )
    turn = quarter - 4.0 * floor(quarter * 0.25)
    if turn == 1.0:
        return -s, c
    if turn == 2.0:
        return -c, -s
    if turn == 3.0:
        return s, -c
    return c, s


@no_type_check
@njit(cache=True)
def compose(angles, first, column, axis, turn, wxyz):
    """Fill the rotation of every joint in every frame.

    Args:
        angles: Channels in degrees (frame, channel).
        first: Where each joint's turns begin in `column` and `axis` (joint + 1).
        column: Channel of each turn, in the order R = R_1 @ R_2 @ ...
        axis: Axis of each turn, 0 to 2.
        turn: R_joint_file (joint, 3, 3): axes of the answer from those of the angles.
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
            R = turn[joint]
            wxyz[frame, joint, 0] = w
            wxyz[frame, joint, 1] = R[0, 0] * x + R[0, 1] * y + R[0, 2] * z
            wxyz[frame, joint, 2] = R[1, 0] * x + R[1, 1] * y + R[1, 2] * z
            wxyz[frame, joint, 3] = R[2, 0] * x + R[2, 1] * y + R[2, 2] * z
