"""Fitness of a pose and its slope, compiled; `fit.py` explains them."""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from marey.articulated.kinematics_kernel import fill, place
from marey.articulated.limits_kernel import (
    ball_angles,
    ball_axes,
    hinge_angle,
    hinge_turn,
    retract,
)
from marey.numerics.jit import inner

# The swing of a ball that points straight back has no direction: limits have no slope.
BACKWARDS = 1e-6

UPRIGHT = np.eye(3)


class Wishes(NamedTuple):
    """What a pose is to fulfil besides its targets, and how it is written down."""

    euler: bool  # balls as XYZ angles; else as turns away from where they were
    limit: float  # weight of a square radian beyond a limit
    prior: np.ndarray  # by node: weight of a square radian away from the reference


class Slopes(NamedTuple):
    """Scratch of one fitness."""

    R: np.ndarray
    c: np.ndarray
    force: np.ndarray
    torque: np.ndarray  # about the world's origin
    axes: np.ndarray  # by node: axes of its turns, in the parent's frame
    own: np.ndarray  # by node: torque of limits and reference, in the parent's frame
    start: np.ndarray  # by node: its first number among the unknowns


@no_type_check
def slopes_of(tree):
    """Return scratch for a tree."""
    n = len(tree.parent)
    count = np.where(tree.hinge, 1, 3)
    return Slopes(
        np.zeros((n, 3, 3)),
        np.zeros((n, 3)),
        np.zeros((n, 3)),
        np.zeros((n, 3)),
        np.zeros((n, 3, 3)),
        np.zeros((n, 3)),
        np.concatenate([[3], 3 + np.cumsum(count)]),
    )


@no_type_check
@inner
def _by_euler(x, s, q, axes):
    """Write the rotation of XYZ angles and the axis of each, in the parent's frame."""
    a, b, c = x[s], x[s + 1], x[s + 2]
    ca, sa, cb, sb = np.cos(a), np.sin(a), np.cos(b), np.sin(b)
    ha, hb, hc = 0.5 * a, 0.5 * b, 0.5 * c
    cx, sx, cy, sy = np.cos(ha), np.sin(ha), np.cos(hb), np.sin(hb)
    cz, sz = np.cos(hc), np.sin(hc)
    q[0] = cx * cy * cz - sx * sy * sz
    q[1] = sx * cy * cz + cx * sy * sz
    q[2] = cx * sy * cz - sx * cy * sz
    q[3] = cx * cy * sz + sx * sy * cz
    axes[0, 0], axes[0, 1], axes[0, 2] = 1.0, 0.0, 0.0
    axes[1, 0], axes[1, 1], axes[1, 2] = 0.0, ca, sa
    axes[2, 0], axes[2, 1], axes[2, 2] = sb, -sa * cb, ca * cb


@no_type_check
@inner
def _by_turn(x, s, base, q, axes):
    """Write a rotation turned by a vector, and the axes along which it turns on."""
    u0, u1, u2 = 0.5 * x[s], 0.5 * x[s + 1], 0.5 * x[s + 2]
    retract(base, x[s], x[s + 1], x[s + 2], q)
    k = 1.0 / (1.0 + u0 * u0 + u1 * u1 + u2 * u2)
    axes[0, 0], axes[0, 1], axes[0, 2] = k, k * u2, -k * u1
    axes[1, 0], axes[1, 1], axes[1, 2] = -k * u2, k, k * u0
    axes[2, 0], axes[2, 1], axes[2, 2] = k * u1, -k * u0, k


@no_type_check
@inner
def pose_at(tree, wishes, slopes, x, base, root, q):
    """Write the pose of some unknowns, and the axes of all turns."""
    for k in range(3):
        root[k] = x[k]
    for i in range(len(q)):
        s, axes = slopes.start[i], slopes.axes[i]
        if tree.hinge[i]:
            hinge_turn(tree.axis[i], x[s], q[i])
            for k in range(3):
                axes[0, k] = tree.axis[i, k]
        elif wishes.euler:
            _by_euler(x, s, q[i], axes)
        else:
            _by_turn(x, s, base[i], q[i], axes)
    place(tree, root, q, slopes.R, slopes.c)


@no_type_check
@inner
def _pull(slopes, i, w, m, y0, y1, y2):
    """Add a point's pull on its node; return what it costs."""
    R, c = slopes.R[i], slopes.c[i]
    p0 = c[0] + R[0, 0] * m[0] + R[0, 1] * m[1] + R[0, 2] * m[2]
    p1 = c[1] + R[1, 0] * m[0] + R[1, 1] * m[1] + R[1, 2] * m[2]
    p2 = c[2] + R[2, 0] * m[0] + R[2, 1] * m[1] + R[2, 2] * m[2]
    r0, r1, r2 = p0 - y0, p1 - y1, p2 - y2
    square = r0 * r0 + r1 * r1 + r2 * r2
    if not square >= 0.0:
        return 0.0
    f, t = slopes.force[i], slopes.torque[i]
    w2 = 2.0 * w
    f[0] += w2 * r0
    f[1] += w2 * r1
    f[2] += w2 * r2
    t[0] += w2 * (p1 * r2 - p2 * r1)
    t[1] += w2 * (p2 * r0 - p0 * r2)
    t[2] += w2 * (p0 * r1 - p1 * r0)
    return w * square


@no_type_check
@inner
def _twist(slopes, i, w, B, T):
    """Add the pull of a sensor's two orientation vectors; return what it costs."""
    R, t, cost = slopes.R[i], slopes.torque[i], 0.0
    for k in range(2):
        o0 = R[0, 0] * B[0, k] + R[0, 1] * B[1, k] + R[0, 2] * B[2, k]
        o1 = R[1, 0] * B[0, k] + R[1, 1] * B[1, k] + R[1, 2] * B[2, k]
        o2 = R[2, 0] * B[0, k] + R[2, 1] * B[1, k] + R[2, 2] * B[2, k]
        d0, d1, d2 = o0 - T[0, k], o1 - T[1, k], o2 - T[2, k]
        cost += w * (d0 * d0 + d1 * d1 + d2 * d2)
        t[0] += 2.0 * w * (o1 * d2 - o2 * d1)
        t[1] += 2.0 * w * (o2 * d0 - o0 * d2)
        t[2] += 2.0 * w * (o0 * d1 - o1 * d0)
    return cost


@no_type_check
@inner
def _beyond(tree, i, q, weight, angles, own):
    """Add the torque of angles beyond their limits; return what they cost."""
    hinge = tree.hinge[i]
    if hinge:
        angles[0] = hinge_angle(tree.axis[i], q)
    else:
        ball_angles(tree.frame[i], q, angles)
    cost, some = 0.0, False
    for x in range(1 if hinge else 3):
        over = max(angles[x] - tree.high[i, x], 0.0)
        over += min(angles[x] - tree.low[i, x], 0.0)
        some = some or over != 0.0
        cost += weight * over * over
        angles[x + 3] = 2.0 * weight * over
    if not some:
        return 0.0
    if hinge:
        for k in range(3):
            own[k] += angles[3] * tree.axis[i, k]
        return cost
    # Of the torque, the share along each angle's own axis is what the angle asks for.
    A = np.empty((3, 3))
    ball_axes(tree.frame[i], angles, UPRIGHT, A)
    a, b, c = A[0], A[1], A[2]
    det = a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2])
    det += a[2] * (b[0] * c[1] - b[1] * c[0])
    if abs(det) < BACKWARDS:
        return cost
    g, h, j = angles[3] / det, angles[4] / det, angles[5] / det
    own[0] += g * (b[1] * c[2] - b[2] * c[1]) + h * (c[1] * a[2] - c[2] * a[1])
    own[0] += j * (a[1] * b[2] - a[2] * b[1])
    own[1] += g * (b[2] * c[0] - b[0] * c[2]) + h * (c[2] * a[0] - c[0] * a[2])
    own[1] += j * (a[2] * b[0] - a[0] * b[2])
    own[2] += g * (b[0] * c[1] - b[1] * c[0]) + h * (c[0] * a[1] - c[1] * a[0])
    own[2] += j * (a[0] * b[1] - a[1] * b[0])
    return cost


@no_type_check
@inner
def _unlike(q, p, weight, own):
    """Add the torque towards a reference; return what the way to it costs."""
    w = q[0] * p[0] + q[1] * p[1] + q[2] * p[2] + q[3] * p[3]
    x = -q[0] * p[1] + q[1] * p[0] - q[2] * p[3] + q[3] * p[2]
    y = -q[0] * p[2] + q[1] * p[3] + q[2] * p[0] - q[3] * p[1]
    z = -q[0] * p[3] - q[1] * p[2] + q[2] * p[1] + q[3] * p[0]
    scale = 4.0 * weight * w
    own[0] += scale * x
    own[1] += scale * y
    own[2] += scale * z
    return 4.0 * weight * (x * x + y * y + z * z)


@no_type_check
@inner
def fitness(tree, targets, wishes, slopes, points, sensors, given, x, base, pose, g):
    """Return the fitness of some unknowns, the less the better; write its slope.

    `given` is the rotations of the reference, `base` those that turns start from;
    `pose`, the root's place and the rotations, is written as well.
    """
    root, q = pose
    pose_at(tree, wishes, slopes, x, base, root, q)
    cost, n = 0.0, len(q)
    angles = np.zeros(6)
    for i in range(n):
        fill(slopes.force[i], 0.0)
        fill(slopes.torque[i], 0.0)
        fill(slopes.own[i], 0.0)
        for k in range(targets.start[i], targets.start[i + 1]):
            y = points[targets.column[k]]
            cost += _pull(
                slopes, i, targets.weight[k], targets.place[k], y[0], y[1], y[2]
            )
        for k in range(targets.sensor_start[i], targets.sensor_start[i + 1]):
            T = sensors[targets.sensor_column[k]]
            if not np.isfinite(T[0, 0]):
                continue
            w = targets.sensor_weight[k]
            m = targets.sensor_place[k]
            cost += _pull(slopes, i, w[0], m, T[0, 3], T[1, 3], T[2, 3])
            cost += _twist(slopes, i, w[1], targets.sensor_turn[k], T)
        if tree.limited[i]:
            cost += _beyond(tree, i, q[i], wishes.limit, angles, slopes.own[i])
        if wishes.prior[i] > 0.0:
            cost += _unlike(q[i], given[i], wishes.prior[i], slopes.own[i])
    _write_slope(tree, slopes, g)
    return cost


@no_type_check
@inner
def _write_slope(tree, slopes, g):
    """Turn the pulls on all nodes into the slope along every unknown."""
    n = len(slopes.c)
    for i in range(n - 1, 0, -1):
        p = tree.parent[i]
        for k in range(3):
            slopes.force[p, k] += slopes.force[i, k]
            slopes.torque[p, k] += slopes.torque[i, k]
    for k in range(3):
        g[k] = slopes.force[0, k]
    for i in range(n):
        f, t, c = slopes.force[i], slopes.torque[i], slopes.c[i]
        # Of all that the node carries, the torque about the node itself.
        t0 = t[0] - (c[1] * f[2] - c[2] * f[1])
        t1 = t[1] - (c[2] * f[0] - c[0] * f[2])
        t2 = t[2] - (c[0] * f[1] - c[1] * f[0])
        own = slopes.own[i]
        if i > 0:
            R = slopes.R[tree.parent[i]]
            s0 = R[0, 0] * t0 + R[1, 0] * t1 + R[2, 0] * t2 + own[0]
            s1 = R[0, 1] * t0 + R[1, 1] * t1 + R[2, 1] * t2 + own[1]
            s2 = R[0, 2] * t0 + R[1, 2] * t1 + R[2, 2] * t2 + own[2]
        else:
            s0, s1, s2 = t0 + own[0], t1 + own[1], t2 + own[2]
        for k in range(1 if tree.hinge[i] else 3):
            a = slopes.axes[i, k]
            g[slopes.start[i] + k] = a[0] * s0 + a[1] * s1 + a[2] * s2


@no_type_check
@inner
def curvatures(tree, targets, slopes, points, sensors, out):
    """Write about how curved the fitness is along every unknown, one by one.

    Of a turn, the squared levers of all targets that it moves, as if they lay all
    around; `slopes` holds the pose.
    """
    n = len(slopes.c)
    sums = np.zeros((n, 6))  # w, w p (3), w |p|^2, w of orientations
    for i in range(n):
        own = sums[i]
        for k in range(targets.start[i], targets.start[i + 1]):
            if np.isfinite(points[targets.column[k], 0]):
                _add_lever(slopes, i, targets.weight[k], targets.place[k], own)
        for k in range(targets.sensor_start[i], targets.sensor_start[i + 1]):
            if np.isfinite(sensors[targets.sensor_column[k], 0, 0]):
                w = targets.sensor_weight[k]
                _add_lever(slopes, i, w[0], targets.sensor_place[k], own)
                own[5] += 2.0 * w[1]
    for i in range(n - 1, 0, -1):
        for k in range(6):
            sums[tree.parent[i], k] += sums[i, k]
    for k in range(3):
        out[k] = 2.0 * sums[0, 0]
    for i in range(n):
        c, own = slopes.c[i], sums[i]
        levers = own[4] - 2.0 * (c[0] * own[1] + c[1] * own[2] + c[2] * own[3])
        levers += own[0] * (c[0] * c[0] + c[1] * c[1] + c[2] * c[2])
        for k in range(slopes.start[i], slopes.start[i + 1]):
            out[k] = 4.0 / 3.0 * (levers + own[5])


@no_type_check
@inner
def _add_lever(slopes, i, w, m, own):
    R, c = slopes.R[i], slopes.c[i]
    own[0] += w
    for x in range(3):
        p = c[x] + R[x, 0] * m[0] + R[x, 1] * m[1] + R[x, 2] * m[2]
        own[1 + x] += w * p
        own[4] += w * p * p


@no_type_check
@njit(cache=True)
def fitness_of(tree, targets, wishes, slopes, points, sensors, given, x, base):
    """Return the fitness of some unknowns and its slope."""
    n = len(tree.parent)
    g, pose = np.zeros(len(x)), (np.empty(3), np.empty((n, 4)))
    cost = fitness(
        tree, targets, wishes, slopes, points, sensors, given, x, base, pose, g
    )
    return cost, g
