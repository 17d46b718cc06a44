r"""Forward kinematics, gradient and Hessian of a kinematic tree, compiled.

A target k on node n has position m_k in its node and was seen at y_k with weight w_k.
The cost is

.. math:: E = \sum_k w_k |r_k|^2, \qquad r_k = y_k - (c_n + R_n m_k).

The targets enter only through sums over each node (`targets_kernel.sum_targets`), and a
joint moves the targets of its whole subtree. The sums of all subtrees come from one
pass from leaves to root, as in the composite-rigid-body algorithm (Featherstone,
Rigid Body Dynamics Algorithms, 2008, Sec. 6.2), so that a Gauss-Newton step costs the
same for any number of targets.

World positions are relative to an origin near the figure, so that large coordinates
cost no precision. `KinematicTree` holds constants, `PoseWorkspace` is scratch.
"""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from marey.numerics.jit import lean


class KinematicTree(NamedTuple):
    """Rotating nodes, parents first: node 0 is free, the others are balls or hinges.

    The unknowns come in blocks of three: block 0 is the position of the root, block
    i + 1 the rotation of node i. Unknown 3 b + k is the k-th of block b. A hinge uses
    only the first; its other two axes are zero. Lengths are in metres, angles in
    radians.
    """

    parent: np.ndarray  # (node); -1 for the root
    offset: np.ndarray  # (node, 3): in the parent node
    is_hinge: np.ndarray  # (node)
    axis: np.ndarray  # (node, 3): of a hinge, in the parent node
    chain: np.ndarray  # (block, step): blocks from the root to each block, itself last
    depth: np.ndarray  # (block): number of ancestors in `chain`
    ancestor_unknowns: np.ndarray  # (block, step): the same by unknowns, own ones last
    n_ancestor_unknowns: np.ndarray  # (block): without the own unknowns
    has_limits: np.ndarray  # (node)
    swing_frame: np.ndarray  # (node, 3, 3): rows are swing axes x and y, and the bone
    low: np.ndarray  # (node, 3): least angles
    high: np.ndarray  # (node, 3): greatest angles
    low_half_sine: np.ndarray  # (node): limits of the sine of half the hinge angle
    high_half_sine: np.ndarray  # or half the twist; see `limits_kernel`


class PoseWorkspace(NamedTuple):
    """Scratch of one frame."""

    R: np.ndarray  # (node, 3, 3): R_world_node
    c: np.ndarray  # (node, 3): position of the node in the world
    marker_weight: np.ndarray  # (marker): with the robust factor; 0 where unseen
    sensor_weight: np.ndarray  # (sensor, 2): of position and rotation, as above
    node_sums: np.ndarray  # (node, 22): w, w m (3), w m m^T (6), w y (3), w m y^T (9)
    subtree_sums: np.ndarray  # (node, 16): w, w p (3), w p p^T (6), force, torque
    A: np.ndarray  # (block, 3, 3): rows are axes in the world; zero where fixed
    H: np.ndarray  # (unknown, step): Hessian by `ancestor_unknowns`, then the factor
    g: np.ndarray  # (block, 3): the negative half gradient, then the step
    flat: np.ndarray  # (unknown): a view of g
    prior_residual: np.ndarray  # (block, 3): from the pose to the expected one
    prior_share: np.ndarray  # (block): share of the prior that counts, 0 to 1
    information: np.ndarray  # (block): of the targets, 1 / m^2 or 1 / rad^2
    angles: np.ndarray  # (node, 3): hinge angle, or two swings and the twist
    limit_side: np.ndarray  # (block, 3): -1 at the lower limit, 1 at the upper, else 0
    is_fixed: np.ndarray  # (block, 3): unknowns held at a limit or unused (active set)
    body_sums: np.ndarray  # (22): as `node_sums`, of one body, for the initial pose
    cross_moment: np.ndarray  # (3, 3): of model and seen positions
    horn_matrix: np.ndarray  # (4, 4): of the cross moment
    eigenvectors: np.ndarray  # (4, 4): of Horn's matrix
    rotation: np.ndarray  # (4): the quaternion of the largest eigenvalue


@no_type_check
@lean
def dot(a, b):
    """Return the dot product of two vectors."""
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@no_type_check
@lean
def copy(values, out):
    """Copy a vector into another; a slice would take long to compile."""
    for k in range(len(values)):
        out[k] = values[k]


@no_type_check
@lean
def copy_rows(values, out):
    """Copy the rows of a matrix into another."""
    for i in range(values.shape[0]):
        for k in range(values.shape[1]):
            out[i, k] = values[i, k]


@no_type_check
@lean
def copy_pose(pose, out):
    """Copy the position of the root and the quaternions of a pose into another."""
    copy(pose[0], out[0])
    copy_rows(pose[1], out[1])


@no_type_check
@lean
def fill(out, value):
    """Set all elements of a vector to one value."""
    for k in range(len(out)):
        out[k] = value


@no_type_check
@lean
def forward_kinematics(tree, root, q, R, c):
    r"""Write rotation R and position c of every node in the world.

    .. math:: R_i = R_p R(q_i), \qquad c_i = c_p + R_p o_i

    with parent p, quaternion q_i (wxyz) and offset o_i of the node in its parent.
    """
    for i in range(len(q)):
        w, x, y, z = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
        a00, a11 = 1 - 2 * (y * y + z * z), 1 - 2 * (x * x + z * z)
        a22 = 1 - 2 * (x * x + y * y)
        a01, a10 = 2 * (x * y - w * z), 2 * (x * y + w * z)
        a02, a20 = 2 * (x * z + w * y), 2 * (x * z - w * y)
        a12, a21 = 2 * (y * z - w * x), 2 * (y * z + w * x)
        p = tree.parent[i]
        if p < 0:
            R[i, 0, 0], R[i, 0, 1], R[i, 0, 2] = a00, a01, a02
            R[i, 1, 0], R[i, 1, 1], R[i, 1, 2] = a10, a11, a12
            R[i, 2, 0], R[i, 2, 1], R[i, 2, 2] = a20, a21, a22
            for k in range(3):
                c[i, k] = root[k]
            continue
        o0, o1, o2 = tree.offset[i, 0], tree.offset[i, 1], tree.offset[i, 2]
        for k in range(3):
            r0, r1, r2 = R[p, k, 0], R[p, k, 1], R[p, k, 2]
            c[i, k] = c[p, k] + r0 * o0 + r1 * o1 + r2 * o2
            R[i, k, 0] = r0 * a00 + r1 * a10 + r2 * a20
            R[i, k, 1] = r0 * a01 + r1 * a11 + r2 * a21
            R[i, k, 2] = r0 * a02 + r1 * a12 + r2 * a22


@no_type_check
@lean
def sum_subtrees(tree, work):
    r"""Write the sums of every node's subtree in the world, from leaves to root.

    With p = c + R m the position of a target in the world:

    .. math:: \sum w, \; \sum w p, \; \sum w p p^T, \; f = \sum w r, \;
        \tau = \sum w \, p \times y,

    the last two being force and torque of the residuals about the origin.
    """
    for i in range(len(work.c)):
        R, sums, out = work.R[i], work.node_sums[i], work.subtree_sums[i]
        c0, c1, c2 = work.c[i, 0], work.c[i, 1], work.c[i, 2]
        r00, r01, r02 = R[0, 0], R[0, 1], R[0, 2]
        r10, r11, r12 = R[1, 0], R[1, 1], R[1, 2]
        r20, r21, r22 = R[2, 0], R[2, 1], R[2, 2]
        w, S0, S1, S2 = sums[0], sums[1], sums[2], sums[3]
        s0 = r00 * S0 + r01 * S1 + r02 * S2
        s1 = r10 * S0 + r11 * S1 + r12 * S2
        s2 = r20 * S0 + r21 * S1 + r22 * S2
        xx, xy, xz = sums[4], sums[5], sums[6]
        yy, yz, zz = sums[7], sums[8], sums[9]
        t00, t01 = r00 * xx + r01 * xy + r02 * xz, r00 * xy + r01 * yy + r02 * yz
        t02, t10 = r00 * xz + r01 * yz + r02 * zz, r10 * xx + r11 * xy + r12 * xz
        t11, t12 = r10 * xy + r11 * yy + r12 * yz, r10 * xz + r11 * yz + r12 * zz
        t20, t21 = r20 * xx + r21 * xy + r22 * xz, r20 * xy + r21 * yy + r22 * yz
        t22 = r20 * xz + r21 * yz + r22 * zz
        u0, u1, u2 = s0 + w * c0, s1 + w * c1, s2 + w * c2
        out[0], out[1], out[2], out[3] = w, u0, u1, u2
        out[4] = t00 * r00 + t01 * r01 + t02 * r02 + s0 * c0 + c0 * u0
        out[5] = t00 * r10 + t01 * r11 + t02 * r12 + s0 * c1 + c0 * u1
        out[6] = t00 * r20 + t01 * r21 + t02 * r22 + s0 * c2 + c0 * u2
        out[7] = t10 * r10 + t11 * r11 + t12 * r12 + s1 * c1 + c1 * u1
        out[8] = t10 * r20 + t11 * r21 + t12 * r22 + s1 * c2 + c1 * u2
        out[9] = t20 * r20 + t21 * r21 + t22 * r22 + s2 * c2 + c2 * u2
        y0, y1, y2 = sums[10], sums[11], sums[12]
        out[10], out[11], out[12] = y0 - u0, y1 - u1, y2 - u2
        m = sums[13:]
        out[13] = (r10 * m[2] + r11 * m[5] + r12 * m[8]) + c1 * y2
        out[13] -= (r20 * m[1] + r21 * m[4] + r22 * m[7]) + c2 * y1
        out[14] = (r20 * m[0] + r21 * m[3] + r22 * m[6]) + c2 * y0
        out[14] -= (r00 * m[2] + r01 * m[5] + r02 * m[8]) + c0 * y2
        out[15] = (r00 * m[1] + r01 * m[4] + r02 * m[7]) + c0 * y1
        out[15] -= (r10 * m[0] + r11 * m[3] + r12 * m[6]) + c1 * y0
    for i in range(len(work.c) - 1, 0, -1):
        p = tree.parent[i]
        for k in range(16):
            work.subtree_sums[p, k] += work.subtree_sums[i, k]


@no_type_check
@lean
def write_gradient(work):
    r"""Write the negative half gradient :math:`g = J^T W r` along every unknown.

    The force on the whole tree for the position of the root; for axis a of node i the
    torque of its subtree about the node: :math:`a \cdot (\tau_i - c_i \times f_i)`.
    """
    g, A = work.g, work.A
    for k in range(3):
        g[0, k] = work.subtree_sums[0, 10 + k]
    for i in range(len(work.c)):
        c, u = work.c[i], work.subtree_sums[i]
        t0 = u[13] - (c[1] * u[12] - c[2] * u[11])
        t1 = u[14] - (c[2] * u[10] - c[0] * u[12])
        t2 = u[15] - (c[0] * u[11] - c[1] * u[10])
        for k in range(3):
            a = A[i + 1, k]
            g[i + 1, k] = a[0] * t0 + a[1] * t1 + a[2] * t2


@no_type_check
@lean
def write_hessian(tree, work):
    r"""Write the Gauss-Newton Hessian :math:`H = J^T W J` along all ancestors.

    A unit rotation about axis a of node i moves its subtree with the weighted sum of
    velocities v and angular momentum x about the origin; the entry with axis b of the
    ancestor at c_j is :math:`b \cdot (x - c_j \times v)`.
    """
    A, c, H = work.A, work.c, work.H
    for i in range(len(c)):
        u, chain = work.subtree_sums[i], tree.chain[i + 1]
        w, s0, s1, s2 = u[0], u[1], u[2], u[3]
        c0, c1, c2 = c[i, 0], c[i, 1], c[i, 2]
        trace = u[4] + u[7] + u[9] - (s0 * c0 + s1 * c1 + s2 * c2)
        f0, f1, f2 = s0 - w * c0, s1 - w * c1, s2 - w * c2
        for k in range(1 if tree.is_hinge[i] else 3):
            a0, a1, a2 = A[i + 1, k, 0], A[i + 1, k, 1], A[i + 1, k, 2]
            v0, v1, v2 = a1 * f2 - a2 * f1, a2 * f0 - a0 * f2, a0 * f1 - a1 * f0
            along = s0 * a0 + s1 * a1 + s2 * a2
            x0 = trace * a0 - (u[4] * a0 + u[5] * a1 + u[6] * a2) + c0 * along
            x1 = trace * a1 - (u[5] * a0 + u[7] * a1 + u[8] * a2) + c1 * along
            x2 = trace * a2 - (u[6] * a0 + u[8] * a1 + u[9] * a2) + c2 * along
            r, column = 3 * i + 3 + k, 3
            H[r, 0], H[r, 1], H[r, 2] = v0, v1, v2
            for step in range(1, tree.depth[i + 1] + 1):
                b = chain[step]
                d0, d1, d2 = c[b - 1, 0], c[b - 1, 1], c[b - 1, 2]
                z0, z1 = x0 - (d1 * v2 - d2 * v1), x1 - (d2 * v0 - d0 * v2)
                z2 = x2 - (d0 * v1 - d1 * v0)
                for x in range(1 if tree.is_hinge[b - 1] else 3):
                    H[r, column] = A[b, x, 0] * z0 + A[b, x, 1] * z1 + A[b, x, 2] * z2
                    column += 1
    for k in range(3):
        for x in range(3):
            H[k, x] = work.subtree_sums[0, 0] if k == x else 0.0


@no_type_check
@njit(cache=True)
def write_joint_rotations(moving, first, last, q, out):
    """Write the quaternion of every joint: its node's, or the product of two hinges'.

    Args:
        moving: Numbers of the joints that rotate.
        first: The first node of each joint.
        last: The last node of each joint; the same as `first` but for universal joints.
        q: Quaternions of the nodes, by frame.
        out: Gets the quaternions of the joints, by frame.
    """
    for f in range(len(q)):
        for j in moving:
            a, b, to = q[f, first[j]], q[f, last[j]], out[f, j]
            if first[j] == last[j]:
                copy(b, to)
                continue
            to[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3]
            to[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2]
            to[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1]
            to[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]


@no_type_check
def make_workspace(tree, n_markers, n_sensors):
    """Return scratch for a tree and a number of markers and sensors."""
    n = len(tree.parent)
    G = np.zeros((n + 1, 3))
    A = np.zeros((n + 1, 3, 3))
    A[0] = np.eye(3)
    return PoseWorkspace(
        np.zeros((n, 3, 3)),
        np.zeros((n, 3)),
        np.zeros(n_markers),
        np.zeros((n_sensors, 2)),
        np.zeros((n, 22)),
        np.zeros((n, 16)),
        A,
        np.zeros((3 * n + 3, tree.ancestor_unknowns.shape[1])),
        G,
        G.reshape(-1),
        np.zeros((n + 1, 3)),
        np.ones(n + 1),
        np.zeros(n + 1),
        np.zeros((n, 3)),
        np.zeros((n + 1, 3), dtype=np.int64),
        np.zeros((n + 1, 3), dtype=np.bool_),
        np.zeros(22),
        np.zeros((3, 3)),
        np.zeros((4, 4)),
        np.zeros((4, 4)),
        np.zeros(4),
    )
