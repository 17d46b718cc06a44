r"""Fitness of a pose and its gradient (Bodenheimer1997, Sec. 3.2), compiled.

.. math:: F(x) = \sum_k w_k |P_k - \tilde P_k|^2 + \sum_k v_k \sum_{j=1}^2
    |o_{kj} - \tilde o_{kj}|^2 + u \sum_i C_i^2 + \sum_i 4 p_i \sin^2(\theta_i / 2)

sums positions P, two orientation vectors o of each sensor, angles C beyond their limits
and rotations :math:`\theta` from a reference. Its derivative along the angle of a joint
with unit axis u at position o is that of its subtree,

.. math:: \sum_k 2 w_k (P_k - \tilde P_k) \cdot (u \times (P_k - o)) + \dots,

which the sums of `marey.articulated` collect as force f and torque :math:`\tau` of each
subtree: :math:`u \cdot (\tau - o \times f)`. Unknowns are numbered as in
`KinematicTree`: the two that a hinge does not use have no gradient, and stay.
"""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from marey.articulated.kinematics_kernel import (
    forward_kinematics,
    sum_subtrees,
    write_gradient,
)
from marey.articulated.limits_kernel import (
    hinge_angle,
    hinge_quaternion,
    retract,
    swing_twist_angles,
    swing_twist_axes,
    torque_axis,
)
from marey.articulated.targets_kernel import sum_targets, weight_targets
from marey.numerics.arrays.reference_kernel import by_reference
from marey.numerics.jit import inner, njit
from marey.numerics.vector3_kernel import (
    add_values,
    add_vector,
    dot,
    fill,
    multiply_quaternions,
    rotate,
    set_vector,
)

IDENTITY = np.eye(3)
ORIGIN = np.zeros(3)


@by_reference
class FitnessTerms(NamedTuple):
    """Terms of the fitness besides the targets, and the choice of unknowns."""

    euler: bool  # balls by XYZ Euler angles; else by rotation vectors from `base`
    limit: float  # weight of an angle beyond a limit, 1 / rad^2
    prior: np.ndarray  # (node): weight of the rotation from the reference, 1 / rad^2


@inner
def _write_euler(x, q, axes):
    """Write the quaternion of XYZ Euler angles and the axis of each, in the parent."""
    ca, sa, cb, sb = np.cos(x[0]), np.sin(x[0]), np.cos(x[1]), np.sin(x[1])
    ha, hb, hc = 0.5 * x[0], 0.5 * x[1], 0.5 * x[2]
    cx, sx, cy, sy = np.cos(ha), np.sin(ha), np.cos(hb), np.sin(hb)
    cz, sz = np.cos(hc), np.sin(hc)
    q[0] = cx * cy * cz - sx * sy * sz
    q[1] = sx * cy * cz + cx * sy * sz
    q[2] = cx * sy * cz - sx * cy * sz
    q[3] = cx * cy * sz + sx * sy * cz
    set_vector(axes[0], (1.0, 0.0, 0.0))
    set_vector(axes[1], (0.0, ca, sa))
    set_vector(axes[2], (sb, -sa * cb, ca * cb))


@inner
def _write_rotation_vector(x, base, q, axes):
    """Write the retraction of a rotation vector at `base`, and the axes of its change.

    With u half the vector the k-th axis is (e_k + u x e_k) / (1 + |u|^2).
    """
    u0, u1, u2 = 0.5 * x[0], 0.5 * x[1], 0.5 * x[2]
    retract(base, x[0], x[1], x[2], q)
    k = 1.0 / (1.0 + u0 * u0 + u1 * u1 + u2 * u2)
    set_vector(axes[0], (k, k * u2, -k * u1))
    set_vector(axes[1], (-k * u2, k, k * u0))
    set_vector(axes[2], (k * u1, -k * u0, k))


@inner
def _write_rotation(tree, terms, i, x, base, q, axes):
    """Write the rotation of a node by its unknowns, and their axes in the parent."""
    if tree.is_hinge[i]:
        hinge_quaternion(tree.axis[i], x[0], q)
        set_vector(axes[0], tree.axis[i])
    elif terms.euler:
        _write_euler(x, q, axes)
    else:
        _write_rotation_vector(x, base, q, axes)


@inner
def _add_limit_penalty(tree, i, q, weight, torque):
    """Add the torque of angles beyond their limits; return their cost."""
    angles, A = np.empty(3), np.empty((3, 3))
    if tree.is_hinge[i]:
        angles[0] = hinge_angle(tree.axis[i], q)
    else:
        swing_twist_angles(tree.swing_frame[i], q, angles)
        swing_twist_axes(tree.swing_frame[i], angles, IDENTITY, A)
    cost = 0.0
    for x in range(1 if tree.is_hinge[i] else 3):
        over = max(angles[x] - tree.high[i, x], 0.0)
        over += min(angles[x] - tree.low[i, x], 0.0)
        if over != 0.0:
            cost += weight * over * over
            if tree.is_hinge[i]:
                add_vector(torque, 2.0 * weight * over, tree.axis[i])
            else:
                add_vector(torque, 2.0 * weight * over, torque_axis(A, x))
    return cost


@inner
def _add_reference_penalty(q, p, weight, torque):
    """Add the torque of the rotation from a reference p to q; return its cost.

    The cost is 4 w sin^2(angle / 2), which is w angle^2 to third order.
    """
    w, x, y, z = multiply_quaternions(q, (p[0], -p[1], -p[2], -p[3]))
    add_vector(torque, 4.0 * weight * w, (x, y, z))
    return 4.0 * weight * (x * x + y * y + z * z)


@inner
def fitness(problem, frame, terms, x, base, pose, g):
    """Return the fitness of the unknowns x; write its gradient g and the pose.

    Args:
        problem: The kinematic tree, the table of targets and a `PoseWorkspace`.
        frame: Markers and sensors of the frame, and quaternions of the reference.
        terms: The other terms.
        x: Position of the root, then the unknowns of each node.
        base: Quaternions that rotation vectors start from.
        pose: Gets the position of the root and the quaternions.
        g: Gets the gradient.
    """
    tree, targets, work = problem
    points, sensors, reference_q = frame
    root, q = pose
    cost, torque = 0.0, np.empty(3)
    set_vector(root, x[:3])
    for i in range(len(q)):
        axes, own = work.A[i + 1], 3 * i + 3
        _write_rotation(tree, terms, i, x[own:], base[i], q[i], axes)
        fill(torque, 0.0)
        if tree.has_limits[i]:
            cost += _add_limit_penalty(tree, i, q[i], terms.limit, torque)
        if terms.prior[i] > 0.0:
            cost += _add_reference_penalty(q[i], reference_q[i], terms.prior[i], torque)
        set_vector(g[own:], rotate(axes, torque))
    forward_kinematics(tree, root, q, work.R, work.c)
    for i in range(1, len(q)):
        for k in range(1 if tree.is_hinge[i] else 3):
            axis = work.A[i + 1, k]
            set_vector(axis, rotate(work.R[tree.parent[i]], axis))
    cost += weight_targets(targets, points, sensors, ORIGIN, work, 0.0)
    sum_targets(targets, points, sensors, ORIGIN, work)
    sum_subtrees(tree, work)
    write_gradient(work)
    fill(g[:3], 0.0)
    add_values(g, -2.0, work.flat)
    return cost


@inner
def diagonal_hessian(work):
    """Return an estimate of the diagonal of the Hessian, for the start of BFGS.

    For a rotation: the squared distances of all targets of its subtree from the joint,
    as if they lay evenly around it. `work` holds the last pose.
    """
    out = np.empty(len(work.flat))
    fill(out[:3], 2.0 * work.subtree_sums[0, 0])
    for i in range(len(work.c)):
        c, sums = work.c[i], work.subtree_sums[i]
        levers = sums[4] + sums[7] + sums[9] - 2.0 * dot(c, sums[1:4])
        levers += sums[0] * dot(c, c)
        fill(out[3 * i + 3 : 3 * i + 6], 4.0 / 3.0 * levers)
    return out


@njit(cache=True)
def evaluate_fitness(problem, frame, terms, x, base):
    """Return the fitness of the unknowns x and its gradient; see `fitness`."""
    g, pose = np.zeros(len(x)), (np.empty(3), np.empty_like(base))
    return fitness(problem, frame, terms, x, base, pose, g), g
