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

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from marey.numerics.arrays.reference_kernel import by_reference
from marey.numerics.jit import inlined, lean, njit
from marey.numerics.kabsch_kernel import Scratch, scratch
from marey.numerics.vector3_kernel import (
    copy_rows,
    cross,
    dot,
    multiply_quaternions,
    place,
    rotate,
    rotation_columns,
    set_diagonal,
    set_values,
    set_vector,
)


@by_reference
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


@by_reference
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
    horn: Scratch  # of Horn's method, for the initial pose
    body_sums: np.ndarray  # (22): as `node_sums`, of one body, for the same


@lean
def copy_pose(pose, out):
    """Copy the position of the root and the quaternions of a pose into another."""
    set_vector(out[0], pose[0])
    copy_rows(pose[1], out[1])


@lean
def place_node(tree, i, root, q, R, c):
    r"""Write rotation R and position c of one node in the world.

    .. math:: R_i = R_p R(q_i), \qquad c_i = c_p + R_p o_i

    with parent p, quaternion q_i (wxyz) and offset o_i of the node in its parent.
    """
    a, b, d = rotation_columns(q[i])
    p = tree.parent[i]
    if p < 0:
        set_vector(c[i], root)
    else:
        set_vector(c[i], place(R[p], c[p], tree.offset[i]))
        a, b, d = rotate(R[p], a), rotate(R[p], b), rotate(R[p], d)
    R[i, 0, 0], R[i, 0, 1], R[i, 0, 2] = a[0], b[0], d[0]
    R[i, 1, 0], R[i, 1, 1], R[i, 1, 2] = a[1], b[1], d[1]
    R[i, 2, 0], R[i, 2, 1], R[i, 2, 2] = a[2], b[2], d[2]


@lean
def forward_kinematics(tree, root, q, R, c):
    """Write rotation R and position c of every node in the world."""
    for i in range(len(q)):
        place_node(tree, i, root, q, R, c)


@lean
def sum_subtrees(tree, work):
    r"""Write the sums of every node's subtree in the world, from leaves to root.

    With p = c + R m the position of a target in the world:

    .. math:: \sum w, \; \sum w p, \; \sum w p p^T, \; f = \sum w r, \;
        \tau = \sum w \, p \times y,

    the last two being force and torque of the residuals about the origin.
    """
    for i in range(len(work.c)):
        sums, out = work.node_sums[i], work.subtree_sums[i]
        place_sums(work.R[i], work.c[i], sums, out)
    for i in range(len(work.c) - 1, 0, -1):
        for k in range(16):
            work.subtree_sums[tree.parent[i], k] += work.subtree_sums[i, k]


@lean
def place_sums(R, c, sums, out):
    """Write the sums of one node's targets in the world; see `sum_subtrees`."""
    w, c0, c1, c2 = sums[0], c[0], c[1], c[2]
    s0, s1, s2 = rotate(R, sums[1:])
    u0, u1, u2 = s0 + w * c0, s1 + w * c1, s2 + w * c2
    X = (sums[4], sums[5], sums[6]), (sums[5], sums[7], sums[8])
    Z = sums[6], sums[8], sums[9]
    t = dot(X[0], R[0]), dot(X[1], R[0]), dot(Z, R[0])
    out[0], out[1], out[2], out[3] = w, u0, u1, u2
    out[4] = dot(t, R[0]) + s0 * c0 + c0 * u0
    out[5] = dot(t, R[1]) + s0 * c1 + c0 * u1
    out[6] = dot(t, R[2]) + s0 * c2 + c0 * u2
    t = dot(X[0], R[1]), dot(X[1], R[1]), dot(Z, R[1])
    out[7] = dot(t, R[1]) + s1 * c1 + c1 * u1
    out[8] = dot(t, R[2]) + s1 * c2 + c1 * u2
    t = dot(X[0], R[2]), dot(X[1], R[2]), dot(Z, R[2])
    out[9] = dot(t, R[2]) + s2 * c2 + c2 * u2
    y, m = (sums[10], sums[11], sums[12]), sums[13:]
    out[10], out[11], out[12] = y[0] - u0, y[1] - u1, y[2] - u2
    # Columns of sum w (R m) y^T.
    a = rotate(R, (m[0], m[3], m[6]))
    b = rotate(R, (m[1], m[4], m[7]))
    d = rotate(R, (m[2], m[5], m[8]))
    x0, x1, x2 = cross(c, y)
    out[13], out[14], out[15] = d[1] - b[2] + x0, a[2] - d[0] + x1, b[0] - a[1] + x2


@lean
def write_gradient(work):
    r"""Write the negative half gradient :math:`g = J^T W r` along every unknown.

    The force on the whole tree for the position of the root; for axis a of node i the
    torque of its subtree about the node: :math:`a \cdot (\tau_i - c_i \times f_i)`.
    """
    set_vector(work.g[0], work.subtree_sums[0, 10:13])
    for i in range(len(work.c)):
        u = work.subtree_sums[i]
        x, y, z = cross(work.c[i], u[10:])
        set_vector(
            work.g[i + 1], rotate(work.A[i + 1], (u[13] - x, u[14] - y, u[15] - z))
        )


@lean
def write_hessian(tree, work):
    r"""Write the Gauss-Newton Hessian :math:`H = J^T W J` along all ancestors.

    A unit rotation about axis a of node i moves its subtree with the weighted sum of
    velocities v and angular momentum x about the origin; the entry with axis b of the
    ancestor at c_j is :math:`b \cdot (x - c_j \times v)`.
    """
    A, c, H = work.A, work.c, work.H
    for i in range(len(c)):
        u = work.subtree_sums[i]
        w, s, here = u[0], (u[1], u[2], u[3]), c[i]
        trace = u[4] + u[7] + u[9] - dot(s, here)
        f = s[0] - w * here[0], s[1] - w * here[1], s[2] - w * here[2]
        for k in range(1 if tree.is_hinge[i] else 3):
            a = A[i + 1, k]
            v, along = cross(a, f), dot(s, a)
            x0 = trace * a[0] - (u[4] * a[0] + u[5] * a[1] + u[6] * a[2])
            x1 = trace * a[1] - (u[5] * a[0] + u[7] * a[1] + u[8] * a[2])
            x2 = trace * a[2] - (u[6] * a[0] + u[8] * a[1] + u[9] * a[2])
            x0, x1, x2 = (
                x0 + here[0] * along,
                x1 + here[1] * along,
                x2 + here[2] * along,
            )
            _write_hessian_row(tree, work, i, v, (x0, x1, x2), H[3 * i + 3 + k])
    set_diagonal(H, 3, work.subtree_sums[0, 0])


@inlined
def _write_hessian_row(tree, work, i, v, x, row):
    """Write the entries of one axis of node i with the root and all ancestors."""
    set_vector(row, v)
    column, chain = len(v), tree.chain[i + 1]
    for step in range(1, tree.depth[i + 1] + 1):
        b = chain[step]
        y = cross(work.c[b - 1], v)
        z = x[0] - y[0], x[1] - y[1], x[2] - y[2]
        for k in range(1 if tree.is_hinge[b - 1] else 3):
            row[column] = dot(work.A[b, k], z)
            column += 1


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
                set_values(to, b)
            else:
                set_values(to, multiply_quaternions(a, b))


def make_workspace(
    tree: KinematicTree, n_markers: int, n_sensors: int
) -> PoseWorkspace:
    """Return scratch for a tree and a number of markers and sensors."""
    n = len(tree.parent)
    g, A = np.zeros((n + 1, 3)), np.zeros((n + 1, 3, 3))
    A[0] = np.eye(3)
    return PoseWorkspace(
        R=np.zeros((n, 3, 3)),
        c=np.zeros((n, 3)),
        marker_weight=np.zeros(n_markers),
        sensor_weight=np.zeros((n_sensors, 2)),
        node_sums=np.zeros((n, 22)),
        subtree_sums=np.zeros((n, 16)),
        A=A,
        # Three columns more, because `factor_kernel` works on four entries at a time.
        H=np.zeros((3 * n + 3, tree.ancestor_unknowns.shape[1] + 3)),
        g=g,
        flat=g.reshape(-1),
        prior_residual=np.zeros((n + 1, 3)),
        prior_share=np.ones(n + 1),
        information=np.zeros(n + 1),
        angles=np.zeros((n, 3)),
        limit_side=np.zeros((n + 1, 3), dtype=np.int64),
        is_fixed=np.zeros((n + 1, 3), dtype=np.bool_),
        horn=scratch(),
        body_sums=np.zeros(22),
    )
