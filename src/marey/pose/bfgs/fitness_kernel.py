r"""Fitness of a pose and its gradient (Bodenheimer1997, Sec. 3.2), compiled.

.. math:: F(x) = \sum_k w_k |P_k - \tilde P_k|^2 + \sum_k v_k \sum_{j=1}^2
    |o_{kj} - \tilde o_{kj}|^2 + u \sum_i C_i^2 + \sum_i 4 p_i \sin^2(\theta_i / 2)

sums positions P, two orientation vectors o of each sensor, angles C beyond their limits
and rotations :math:`\theta` from a reference. Its derivative along the angle of a joint
with unit axis u at position o is that of its subtree,

.. math:: \sum_k 2 w_k (P_k - \tilde P_k) \cdot (u \times (P_k - o)) + \dots,

which one pass from the leaves to the root collects as force f and torque :math:`\tau`
of each subtree: :math:`u \cdot (\tau - o \times f)`.
"""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from marey.articulated.kinematics_kernel import fill, forward_kinematics
from marey.articulated.limits_kernel import (
    hinge_angle,
    hinge_quaternion,
    retract,
    swing_twist_angles,
    swing_twist_axes,
)
from marey.numerics.jit import inner

MIN_SWING_DETERMINANT = 1e-6
"""Determinant of the swing-twist axes below which the penalty has no gradient: a swing
by half a turn has no direction. Higher drops more gradients. Chosen by hand."""

IDENTITY = np.eye(3)


class FitnessTerms(NamedTuple):
    """Terms of the fitness besides the targets, and the choice of unknowns."""

    euler: bool  # balls by XYZ Euler angles; else by rotation vectors from `base`
    limit: float  # weight of an angle beyond a limit, 1 / rad^2
    prior: np.ndarray  # (node): weight of the rotation from the reference, 1 / rad^2


class FitnessScratch(NamedTuple):
    """Scratch of one evaluation of the fitness."""

    R: np.ndarray  # (node, 3, 3): R_world_node
    c: np.ndarray  # (node, 3): position of the node in the world
    force: np.ndarray  # (node, 3): gradient by the position of the subtree
    torque: np.ndarray  # (node, 3): gradient by its rotation about the world's origin
    axes: np.ndarray  # (node, 3, 3): axes of the unknowns as rows, in the parent
    joint_torque: np.ndarray  # (node, 3): of limits and reference, in the parent
    start: np.ndarray  # (node + 1): the first unknown of each node


@no_type_check
def make_fitness_scratch(tree):
    """Return scratch for a tree. The first three unknowns are the root's position."""
    n = len(tree.parent)
    count = np.where(tree.is_hinge, 1, 3)
    return FitnessScratch(
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
def _write_euler(x, s, q, axes):
    """Write the quaternion of XYZ Euler angles and the axis of each, in the parent."""
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
def _write_rotation_vector(x, s, base, q, axes):
    """Write the retraction of a rotation vector at `base`, and the axes of its change.

    With u half the vector the k-th axis is (e_k + u x e_k) / (1 + |u|^2).
    """
    u0, u1, u2 = 0.5 * x[s], 0.5 * x[s + 1], 0.5 * x[s + 2]
    retract(base, x[s], x[s + 1], x[s + 2], q)
    k = 1.0 / (1.0 + u0 * u0 + u1 * u1 + u2 * u2)
    axes[0, 0], axes[0, 1], axes[0, 2] = k, k * u2, -k * u1
    axes[1, 0], axes[1, 1], axes[1, 2] = -k * u2, k, k * u0
    axes[2, 0], axes[2, 1], axes[2, 2] = k * u1, -k * u0, k


@no_type_check
@inner
def write_pose(tree, terms, scratch, x, base, root, q):
    """Write the pose of the unknowns x, and the axes of all rotations."""
    for k in range(3):
        root[k] = x[k]
    for i in range(len(q)):
        s, axes = scratch.start[i], scratch.axes[i]
        if tree.is_hinge[i]:
            hinge_quaternion(tree.axis[i], x[s], q[i])
            for k in range(3):
                axes[0, k] = tree.axis[i, k]
        elif terms.euler:
            _write_euler(x, s, q[i], axes)
        else:
            _write_rotation_vector(x, s, base[i], q[i], axes)
    forward_kinematics(tree, root, q, scratch.R, scratch.c)


@no_type_check
@inner
def _add_position(scratch, i, w, m, y0, y1, y2):
    """Add force and torque of a position's residual to its node; return its cost."""
    R, c = scratch.R[i], scratch.c[i]
    p0 = c[0] + R[0, 0] * m[0] + R[0, 1] * m[1] + R[0, 2] * m[2]
    p1 = c[1] + R[1, 0] * m[0] + R[1, 1] * m[1] + R[1, 2] * m[2]
    p2 = c[2] + R[2, 0] * m[0] + R[2, 1] * m[1] + R[2, 2] * m[2]
    r0, r1, r2 = p0 - y0, p1 - y1, p2 - y2
    square = r0 * r0 + r1 * r1 + r2 * r2
    if not square >= 0.0:
        return 0.0
    f, t = scratch.force[i], scratch.torque[i]
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
def _add_orientation(scratch, i, w, B, T):
    """Add the torque of a sensor's two orientation vectors; return their cost."""
    R, t, cost = scratch.R[i], scratch.torque[i], 0.0
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
def _add_limit_penalty(tree, i, q, weight, angles, torque):
    """Add the torque of angles beyond their limits; return their cost.

    The gradient by the rotation of a ball is A^-1 times that by swings and twist, with
    their axes as rows of A (`swing_twist_axes`).
    """
    hinge = tree.is_hinge[i]
    if hinge:
        angles[0] = hinge_angle(tree.axis[i], q)
    else:
        swing_twist_angles(tree.swing_frame[i], q, angles)
    cost, is_beyond = 0.0, False
    for x in range(1 if hinge else 3):
        over = max(angles[x] - tree.high[i, x], 0.0)
        over += min(angles[x] - tree.low[i, x], 0.0)
        is_beyond = is_beyond or over != 0.0
        cost += weight * over * over
        angles[x + 3] = 2.0 * weight * over
    if not is_beyond:
        return 0.0
    if hinge:
        for k in range(3):
            torque[k] += angles[3] * tree.axis[i, k]
        return cost
    A = np.empty((3, 3))
    swing_twist_axes(tree.swing_frame[i], angles, IDENTITY, A)
    a, b, c = A[0], A[1], A[2]
    det = a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2])
    det += a[2] * (b[0] * c[1] - b[1] * c[0])
    if abs(det) < MIN_SWING_DETERMINANT:
        return cost
    g, h, j = angles[3] / det, angles[4] / det, angles[5] / det
    torque[0] += g * (b[1] * c[2] - b[2] * c[1]) + h * (c[1] * a[2] - c[2] * a[1])
    torque[0] += j * (a[1] * b[2] - a[2] * b[1])
    torque[1] += g * (b[2] * c[0] - b[0] * c[2]) + h * (c[2] * a[0] - c[0] * a[2])
    torque[1] += j * (a[2] * b[0] - a[0] * b[2])
    torque[2] += g * (b[0] * c[1] - b[1] * c[0]) + h * (c[0] * a[1] - c[1] * a[0])
    torque[2] += j * (a[0] * b[1] - a[1] * b[0])
    return cost


@no_type_check
@inner
def _add_reference_penalty(q, p, weight, torque):
    """Add the torque of the rotation from a reference p to q; return its cost.

    The cost is 4 w sin^2(angle / 2), which is w angle^2 to third order.
    """
    w = q[0] * p[0] + q[1] * p[1] + q[2] * p[2] + q[3] * p[3]
    x = -q[0] * p[1] + q[1] * p[0] - q[2] * p[3] + q[3] * p[2]
    y = -q[0] * p[2] + q[1] * p[3] + q[2] * p[0] - q[3] * p[1]
    z = -q[0] * p[3] - q[1] * p[2] + q[2] * p[1] + q[3] * p[0]
    scale = 4.0 * weight * w
    torque[0] += scale * x
    torque[1] += scale * y
    torque[2] += scale * z
    return 4.0 * weight * (x * x + y * y + z * z)


@no_type_check
@inner
def fitness(
    tree, targets, terms, scratch, points, sensors, reference_q, x, base, pose, g
):
    """Return the fitness of the unknowns x; write its gradient g and the pose.

    Args:
        tree: The kinematic tree.
        targets: The table of targets.
        terms: The other terms.
        scratch: Scratch.
        points: Markers of the frame.
        sensors: Sensors of the frame.
        reference_q: Quaternions of the reference.
        x: Position of the root, then the unknowns of each node.
        base: Quaternions that rotation vectors start from.
        pose: Gets the position of the root and the quaternions.
        g: Gets the gradient.
    """
    root, q = pose
    write_pose(tree, terms, scratch, x, base, root, q)
    cost, n = 0.0, len(q)
    angles = np.zeros(6)
    for i in range(n):
        fill(scratch.force[i], 0.0)
        fill(scratch.torque[i], 0.0)
        fill(scratch.joint_torque[i], 0.0)
        for k in range(targets.start[i], targets.start[i + 1]):
            y = points[targets.column[k]]
            cost += _add_position(
                scratch, i, targets.weight[k], targets.position[k], y[0], y[1], y[2]
            )
        for k in range(targets.sensor_start[i], targets.sensor_start[i + 1]):
            T = sensors[targets.sensor_column[k]]
            if not np.isfinite(T[0, 0]):
                continue
            w = targets.sensor_weight[k]
            m = targets.sensor_position[k]
            cost += _add_position(scratch, i, w[0], m, T[0, 3], T[1, 3], T[2, 3])
            cost += _add_orientation(scratch, i, w[1], targets.sensor_rotation[k], T)
        torque = scratch.joint_torque[i]
        if tree.has_limits[i]:
            cost += _add_limit_penalty(tree, i, q[i], terms.limit, angles, torque)
        if terms.prior[i] > 0.0:
            cost += _add_reference_penalty(q[i], reference_q[i], terms.prior[i], torque)
    _write_gradient(tree, scratch, g)
    return cost


@no_type_check
@inner
def _write_gradient(tree, scratch, g):
    """Write the gradient along every unknown from the forces on all nodes."""
    n = len(scratch.c)
    for i in range(n - 1, 0, -1):
        p = tree.parent[i]
        for k in range(3):
            scratch.force[p, k] += scratch.force[i, k]
            scratch.torque[p, k] += scratch.torque[i, k]
    for k in range(3):
        g[k] = scratch.force[0, k]
    for i in range(n):
        f, t, c = scratch.force[i], scratch.torque[i], scratch.c[i]
        # The torque of the subtree about the node itself.
        t0 = t[0] - (c[1] * f[2] - c[2] * f[1])
        t1 = t[1] - (c[2] * f[0] - c[0] * f[2])
        t2 = t[2] - (c[0] * f[1] - c[1] * f[0])
        extra = scratch.joint_torque[i]
        if i > 0:
            R = scratch.R[tree.parent[i]]
            s0 = R[0, 0] * t0 + R[1, 0] * t1 + R[2, 0] * t2 + extra[0]
            s1 = R[0, 1] * t0 + R[1, 1] * t1 + R[2, 1] * t2 + extra[1]
            s2 = R[0, 2] * t0 + R[1, 2] * t1 + R[2, 2] * t2 + extra[2]
        else:
            s0, s1, s2 = t0 + extra[0], t1 + extra[1], t2 + extra[2]
        for k in range(1 if tree.is_hinge[i] else 3):
            a = scratch.axes[i, k]
            g[scratch.start[i] + k] = a[0] * s0 + a[1] * s1 + a[2] * s2


@no_type_check
@inner
def diagonal_hessian(tree, targets, scratch, points, sensors, out):
    """Write an estimate of the diagonal of the Hessian, for the start of BFGS.

    For a rotation: the squared distances of all targets of its subtree from the joint,
    as if they lay evenly around it. `scratch` holds the pose.
    """
    n = len(scratch.c)
    sums = np.zeros((n, 6))  # w, w p (3), w |p|^2, w of orientations
    for i in range(n):
        node = sums[i]
        for k in range(targets.start[i], targets.start[i + 1]):
            if np.isfinite(points[targets.column[k], 0]):
                _add_moments(scratch, i, targets.weight[k], targets.position[k], node)
        for k in range(targets.sensor_start[i], targets.sensor_start[i + 1]):
            if np.isfinite(sensors[targets.sensor_column[k], 0, 0]):
                w = targets.sensor_weight[k]
                _add_moments(scratch, i, w[0], targets.sensor_position[k], node)
                node[5] += 2.0 * w[1]
    for i in range(n - 1, 0, -1):
        for k in range(6):
            sums[tree.parent[i], k] += sums[i, k]
    for k in range(3):
        out[k] = 2.0 * sums[0, 0]
    for i in range(n):
        c, node = scratch.c[i], sums[i]
        levers = node[4] - 2.0 * (c[0] * node[1] + c[1] * node[2] + c[2] * node[3])
        levers += node[0] * (c[0] * c[0] + c[1] * c[1] + c[2] * c[2])
        for k in range(scratch.start[i], scratch.start[i + 1]):
            out[k] = 4.0 / 3.0 * (levers + node[5])


@no_type_check
@inner
def _add_moments(scratch, i, w, m, sums):
    """Add w, w p and w |p|^2 of a target at p in the world."""
    R, c = scratch.R[i], scratch.c[i]
    sums[0] += w
    for x in range(3):
        p = c[x] + R[x, 0] * m[0] + R[x, 1] * m[1] + R[x, 2] * m[2]
        sums[1 + x] += w * p
        sums[4] += w * p * p


@no_type_check
@njit(cache=True)
def evaluate_fitness(
    tree, targets, terms, scratch, points, sensors, reference_q, x, base
):
    """Return the fitness of the unknowns x and its gradient; see `fitness`."""
    n = len(tree.parent)
    g, pose = np.zeros(len(x)), (np.empty(3), np.empty((n, 4)))
    cost = fitness(
        tree, targets, terms, scratch, points, sensors, reference_q, x, base, pose, g
    )
    return cost, g
