r"""Rotations, swing-twist limits and steps of joints, compiled.

The rotation of a ball joint is split into swing and twist,

.. math:: R = \exp(a x + b y) \exp(t z),

with swing axes x and y and the bone z. Limits bound a, b and t; those of a hinge bound
its angle. They are kept exactly by an active-set method: an angle at its limit that the
gradient would push beyond is fixed, and released when the gradient points back. While
any of a, b, t is at its limit, these three are the unknowns of the joint instead of
rotations about the axes of the world, so that fixing one of them keeps the limit.
"""

# mypy: ignore-errors

import numpy as np

from marey.numerics.jit import inlined, lean, njit
from marey.numerics.lanes_kernel import select_positive
from marey.numerics.vector3_kernel import (
    cross,
    dot,
    fill,
    multiply_quaternions,
    rotate,
    rotate_back,
    set_diagonal,
    set_vector,
)

MIN_LIMIT_RANGE_RAD = 1e-9
"""Range between two limits, in radians, below which the angle is locked; also the
distance from a limit at which an angle counts as there. Higher locks more. Chosen by
hand, above rounding."""

TINY = 1e-12
"""Sine of an angle, or determinant of three axes, below which no direction is read from
it; above rounding."""

TINY_ANGLE_RAD = 1e-4
"""Angle below which the first terms of series are exact up to rounding."""

LOCKED = 2
"""Value of `limit_side` for an angle whose two limits are equal."""


@lean
def retraction(q, d):
    r"""Return the retraction of a rotation vector d at the quaternion q.

    :math:`(1, d / 2) / |(1, d / 2)| \otimes q`, which equals exp(d) q to second order.
    """
    w, i, j, k = multiply_quaternions((1.0, 0.5 * d[0], 0.5 * d[1], 0.5 * d[2]), q)
    n = 1.0 / np.sqrt(w * w + i * i + j * j + k * k)
    return w * n, i * n, j * n, k * n


@lean
def retract(q, x, y, z, out):
    """Write the retraction of a rotation vector (x, y, z) at the quaternion q."""
    out[0], out[1], out[2], out[3] = retraction(q, (x, y, z))


@lean
def rotation_difference(q, p, out):
    r"""Write the difference of two quaternions, :math:`2 \, \mathrm{vec}(q p^{-1})`.

    It is the rotation vector from p to q to second order; its length is
    2 sin(angle / 2). The sign is that of the shorter rotation.
    """
    w, x, y, z = multiply_quaternions(q, (p[0], -p[1], -p[2], -p[3]))
    s = 2.0 if w >= 0.0 else -2.0
    out[0], out[1], out[2] = s * x, s * y, s * z


@lean
def rotation_vector(q, p, out):
    """Write the rotation vector from p to q in the parent's axes: log(q p^-1)."""
    rotation_difference(q, p, out)
    half = 0.5 * np.sqrt(dot(out, out))
    if half > TINY:
        scale = np.arctan2(half, np.sqrt(max(1.0 - half * half, 0.0))) / half
        for k in range(3):
            out[k] *= scale


@lean
def write_change(b, pose, old, exact, out):
    """Write the change of block b between two poses, in metres or radians.

    Exact, or by the chord of the rotation, which takes no arc functions.
    """
    if b == 0:
        for k in range(3):
            out[k] = pose[0][k] - old[0][k]
    elif exact:
        rotation_vector(pose[1][b - 1], old[1][b - 1], out)
    else:
        rotation_difference(pose[1][b - 1], old[1][b - 1], out)


@lean
def wrap_angle(angle):
    """Return an angle wrapped into [-pi, pi)."""
    return angle - 2.0 * np.pi * np.floor((angle + np.pi) / (2.0 * np.pi))


@lean
def hinge_angle(axis, q):
    """Return the rotation angle of q about an axis, in [-pi, pi)."""
    return wrap_angle(2.0 * np.arctan2(dot(axis, q[1:]), q[0]))


@lean
def hinge_quaternion(axis, angle, q):
    """Write the quaternion of a rotation by an angle about a unit axis."""
    s = np.sin(0.5 * angle)
    q[0] = np.cos(0.5 * angle)
    q[1], q[2], q[3] = s * axis[0], s * axis[1], s * axis[2]


@lean
def swing_twist_angles(frame, q, out):
    """Write the swings about x and y and the twist about the bone, in radians.

    The twist is the part of q about the bone z; what is left is the swing, written as
    a rotation vector in the plane of x and y.
    """
    w = q[0]
    x, y, z = rotate(frame, q[1:])
    n = np.sqrt(w * w + z * z)
    c, s = (w / n, z / n) if n > 0.0 else (1.0, 0.0)
    a, b = c * x - s * y, c * y + s * x
    sine = np.sqrt(a * a + b * b)
    scale = 2.0 * np.arctan2(sine, n) / sine if sine > TINY else 2.0
    out[0], out[1] = scale * a, scale * b
    out[2] = wrap_angle(2.0 * np.arctan2(z, w))


@lean
def swing_twist_quaternion(frame, angles, q):
    """Write the quaternion of two swings and a twist; inverts `swing_twist_angles`."""
    swing = np.sqrt(angles[0] ** 2 + angles[1] ** 2)
    scale = np.sin(0.5 * swing) / swing if swing > TINY else 0.5
    n, a, b = np.cos(0.5 * swing), scale * angles[0], scale * angles[1]
    c, s = np.cos(0.5 * angles[2]), np.sin(0.5 * angles[2])
    q[0] = n * c
    set_vector(q[1:], rotate_back(frame, (a * c + b * s, b * c - a * s, n * s)))


@lean
def swing_twist_axes(frame, angles, R, A):
    r"""Write the world axes of infinitesimal changes of swings and twist.

    For the swings these are columns of the left Jacobian of the rotation vector
    v = (a, b, 0) with angle t,

    .. math:: J = I + \frac{1 - \cos t}{t^2} [v]_\times
        + \frac{t - \sin t}{t^3} [v]_\times^2,

    for the twist the bone after the swing.

    Args:
        frame: Swing axes and bone, as rows, in the parent.
        angles: Two swings and the twist.
        R: R_world_parent.
        A: Gets the three axes as rows.
    """
    a, b = angles[0], angles[1]
    square = a * a + b * b
    t = np.sqrt(square)
    if t < TINY_ANGLE_RAD:
        first, second, sine = 0.5, 1.0 / 6.0, 1.0
    else:
        first, sine = (1.0 - np.cos(t)) / square, np.sin(t) / t
        second = (t - np.sin(t)) / (square * t)
    columns = (
        (1.0 - second * b * b, second * a * b, -first * b),
        (second * a * b, 1.0 - second * a * a, first * a),
        (sine * b, -sine * a, np.cos(t)),
    )
    for i in range(3):
        set_vector(A[i], rotate(R, rotate_back(frame, columns[i])))


@lean
def torque_axis(A, x):
    """Return the torque that does work on one of three angles alone.

    The axes of the angles are the rows of A: a rotation by the axis of another angle
    does no work, and one by its own does unit work. Zero if they lie in a plane.
    """
    t = cross(A[(x + 1) % 3], A[(x + 2) % 3])
    work = dot(A[x], t)
    scale = 1.0 / work if abs(work) > TINY else 0.0
    return scale * t[0], scale * t[1], scale * t[2]


@lean
def is_at_limit(work, i):
    """Return whether any angle of node i is at a limit."""
    side = work.limit_side[i + 1]
    return side[0] != 0 or side[1] != 0 or side[2] != 0


@lean
def write_rotation_axes(tree, work):
    """Write the world axes of all rotational unknowns and release all active limits.

    The axes of a ball are those of the world, or those of swing and twist at a limit.
    The two unused unknowns of a hinge stay fixed.
    """
    for i in range(len(work.c)):
        A, is_fixed, p = work.A[i + 1], work.is_fixed[i + 1], tree.parent[i]
        hinge = tree.is_hinge[i]
        is_fixed[0], is_fixed[1], is_fixed[2] = False, hinge, hinge
        if hinge:
            set_vector(A[0], rotate(work.R[p], tree.axis[i]))
        elif tree.has_limits[i] and is_at_limit(work, i):
            swing_twist_axes(tree.swing_frame[i], work.angles[i], work.R[p], A)
        else:
            set_diagonal(A, 3, 1.0)


@lean
def lesser(a, b):
    """Return the lesser of two numbers."""
    return select_positive(a - b, b, a)


@lean
def limit_margin(tree, i, q):
    """Return a number that is positive if a joint is certainly within its limits.

    Conservative test without arc functions: with s the sine of half the swing, the
    angle of the swing lies between 2 s and 2 s (1 + (pi / 2 - 1) s^2). A joint that
    fails is looked at by `swing_twist_angles`.
    """
    low, high = tree.low_half_sine[i], tree.high_half_sine[i]
    w = q[0]
    if tree.is_hinge[i]:
        z = dot(tree.axis[i], (q[1], q[2], q[3]))
        z = select_positive(-w, -z, z)
        return lesser(z - low, high - z)
    x, y, z = rotate(tree.swing_frame[i], (q[1], q[2], q[3]))
    n = np.sqrt(w * w + z * z)
    most = 2.0 + (np.pi - 2.0) * (x * x + y * y)
    # Sines of half the swings, times n: the twist is removed without a division.
    a, b = w * x - z * y, w * y + z * x
    z = select_positive(-w, -z, z)
    margin = lesser(z - low * n, high * n - z)
    for k in range(2):
        sine = a if k == 0 else b
        least = sine * select_positive(sine, 0.0 * most + 2.0, most)
        greatest = sine * select_positive(sine, most, 0.0 * most + 2.0)
        margin = lesser(margin, least - (tree.low[i, k] + MIN_LIMIT_RANGE_RAD) * n)
        margin = lesser(margin, (tree.high[i, k] - MIN_LIMIT_RANGE_RAD) * n - greatest)
    return margin


@lean
def _clamp_angle(angle, low, high):
    """Return an angle within its limits, and the value of `limit_side` for it."""
    side = 0
    if angle <= low + MIN_LIMIT_RANGE_RAD:
        angle, side = low, -1
    elif angle >= high - MIN_LIMIT_RANGE_RAD:
        angle, side = high, 1
    return angle, LOCKED if high - low < MIN_LIMIT_RANGE_RAD else side


@inlined
def _clamp_joint(tree, work, i, q):
    """Clamp a joint near its limits; return whether its active set changed."""
    angles, side, hinge = work.angles[i], work.limit_side[i + 1], tree.is_hinge[i]
    if hinge:
        angles[0] = hinge_angle(tree.axis[i], q)
    else:
        swing_twist_angles(tree.swing_frame[i], q, angles)
    beyond = changed = False
    for x in range(1 if hinge else 3):
        low, high = tree.low[i, x], tree.high[i, x]
        beyond = beyond or angles[x] < low or angles[x] > high
        angles[x], new_side = _clamp_angle(angles[x], low, high)
        changed = changed or new_side != side[x]
        side[x] = new_side
    if beyond and hinge:
        hinge_quaternion(tree.axis[i], angles[0], q)
    elif beyond:
        swing_twist_quaternion(tree.swing_frame[i], angles, q)
    return changed


@lean
def clamp_to_limits(tree, work, q):
    """Clamp every joint to its limits, in place; return whether the active set changed.

    `work.limit_side` gets the limits that are reached, `work.angles` the angles of
    joints near a limit.
    """
    changed = False
    for i in range(1, len(q)):
        if not tree.has_limits[i]:
            continue
        if limit_margin(tree, i, q[i]) > 0.0:
            changed = changed or is_at_limit(work, i)
            fill(work.limit_side[i + 1], 0)
        else:
            joint_changed = _clamp_joint(tree, work, i, q[i])
            changed = changed or joint_changed
    return changed


@njit(cache=True)
def mark_reached_limits(tree, work, q, reached):
    """Write for all frames and nodes whether any angle is at a limit; clamps q."""
    for f in range(len(q)):
        clamp_to_limits(tree, work, q[f])
        for i in range(len(tree.parent)):
            reached[f, i] = tree.has_limits[i] and is_at_limit(work, i)


@lean
def activate_limits(tree, work):
    """Fix unknowns at a limit that `work.g` would push beyond; return whether any was.

    `work.g` is the negative gradient or a step. The axis of a fixed unknown becomes
    zero, and with it its row of the normal equations.
    """
    any_fixed = False
    for i in range(1, len(work.c)):
        if not tree.has_limits[i]:
            continue
        side, is_fixed, A = work.limit_side[i + 1], work.is_fixed[i + 1], work.A[i + 1]
        for x in range(3):
            if side[x] == 0 or is_fixed[x]:
                continue
            if side[x] == LOCKED or work.g[i + 1, x] * side[x] > 0.0:
                is_fixed[x] = any_fixed = True
                A[x, 0] = A[x, 1] = A[x, 2] = 0.0
    return any_fixed


@lean
def apply_step(tree, work, root, q, new_root, new_q):
    """Write the pose after the step in `work.g`; return its largest component.

    The step is a rotation about the axes of the world, about a hinge's axis, or a
    change of swings and twist for a ball at a limit. In radians and metres.
    """
    largest = 0.0
    for k in range(3):
        new_root[k] = root[k] + work.g[0, k]
    for i in range(len(work.g)):
        for k in range(3):
            largest = max(largest, abs(work.g[i, k]))
    for i in range(len(q)):
        d = work.g[i + 1]
        if tree.is_hinge[i]:
            a = tree.axis[i]
            retract(q[i], d[0] * a[0], d[0] * a[1], d[0] * a[2], new_q[i])
        elif i == 0:
            retract(q[i], d[0], d[1], d[2], new_q[i])
        elif tree.has_limits[i] and is_at_limit(work, i):
            angles = work.angles[i]
            for x in range(3):
                angles[x] += d[x]
            swing_twist_quaternion(tree.swing_frame[i], angles, new_q[i])
        else:
            x, y, z = rotate_back(work.R[tree.parent[i]], d)
            retract(q[i], x, y, z, new_q[i])
    return largest
