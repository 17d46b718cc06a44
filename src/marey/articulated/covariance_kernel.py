r"""Covariance of the unknowns of a kinematic tree at a solved pose, compiled.

The inverse of the Gauss-Newton Hessian :math:`H = J^T W J`, with weights that are one
over variances, is the covariance C of the unknowns. Only entries between an unknown and
its ancestors are needed, and these follow from the factor :math:`H = L^T D L` of
`factor_kernel` from the root to the leaves (Takahashi, Fagan and Chin, 1973: the sparse
inverse). With a block b, its ancestors a and :math:`Y = D_b^{-1} L_{ba}`,

.. math:: C_{ba} = -Y C_{aa}, \qquad C_{bb} = D_b^{-1} - C_{ba} Y^T.
"""

# mypy: ignore-errors

from marey.articulated.factor_kernel import eliminate_tree
from marey.articulated.kinematics_kernel import (
    forward_kinematics,
    sum_subtrees,
    write_hessian,
)
from marey.articulated.limits_kernel import write_rotation_axes
from marey.articulated.targets_kernel import sum_targets, weight_targets
from marey.numerics.arrays.new_kernel import empty, zeros
from marey.numerics.jit import lean, njit
from marey.numerics.vector3_kernel import cross, dot, place, set_diagonal


@lean
def _n_unknowns(tree, b):
    """Return the number of unknowns of a block: one of a hinge, else three."""
    return 1 if b > 0 and tree.is_hinge[b - 1] else 3


@lean
def _write_sparse_inverse(tree, H, C):
    """Write the covariance between every unknown and its ancestors, by the factor H."""
    for b in range(len(tree.n_ancestor_unknowns)):
        n, r, ancestors = tree.n_ancestor_unknowns[b], 3 * b, tree.ancestor_unknowns[b]
        count = _n_unknowns(tree, b)
        for k in range(count):
            _write_ancestor_covariance(H[r + k], C, r + k, ancestors[:n])
        for k in range(count):
            for j in range(k + 1):
                total = H[r + k, n + j]
                for o in range(n):
                    total -= C[r + k, ancestors[o]] * H[r + j, o]
                C[r + k, r + j] = C[r + j, r + k] = total


@lean
def _write_ancestor_covariance(Y, C, row, ancestors):
    """Write the covariance of one unknown with its ancestors: -Y C_aa."""
    for p in range(len(ancestors)):
        total = 0.0
        for o in range(len(ancestors)):
            total -= Y[o] * C[ancestors[o], ancestors[p]]
        C[row, ancestors[p]] = C[ancestors[p], row] = total


@lean
def _write_covariance(problem, seen, root, q, prior, origin, C):
    """Write the covariance of one frame's unknowns; see `_write_sparse_inverse`."""
    tree, targets, work = problem
    forward_kinematics(tree, root, q, work.R, work.c)
    weight_targets(targets, seen[0], seen[1], origin, work, 0.0)
    sum_targets(targets, seen[0], seen[1], origin, work)
    sum_subtrees(tree, work)
    write_rotation_axes(tree, work)
    write_hessian(tree, work)
    eliminate_tree(tree, work, prior, False, 0.0)
    _write_sparse_inverse(tree, work.H, C)


@lean
def _rotation_variance(tree, work, C, first, last, x):
    """Return the variance of a joint's rotation about axis x of its own frame.

    The joint rotates by the nodes from `first` to `last`.
    """
    R, total = work.R[last], 0.0
    column = R[0, x], R[1, x], R[2, x]
    for i in range(first, last + 1):
        for k in range(_n_unknowns(tree, i + 1)):
            a = dot(work.A[i + 1, k], column)
            for j in range(first, last + 1):
                for m in range(_n_unknowns(tree, j + 1)):
                    b = dot(work.A[j + 1, m], column)
                    total += a * C[3 * i + 3 + k, 3 * j + 3 + m] * b
    return total


@njit(cache=True, nogil=True)
def write_rotation_variances(problem, recording, pose, prior, joints, variance):
    """Write the variance of every joint's rotation about the axes of its own frame.

    Args:
        problem: The kinematic tree, the table of targets (weights are one over
            variances) and a `PoseWorkspace`.
        recording: Markers of the take, in metres, and sensors.
        pose: Positions of the root and quaternions of the nodes, by frame.
        prior: Information that is added to every block, in 1 / m^2 and 1 / rad^2.
        joints: Numbers of the joints that rotate, and the first and the last node of
            every joint.
        variance: Gets rad^2 by frame, joint and axis; other joints are left alone.
    """
    n, zero = len(problem[2].g), zeros(3)
    C = zeros((3 * n, 3 * n))
    for f in range(len(variance)):
        seen, at = (recording[0][f], recording[1][f]), (pose[0][f], pose[1][f])
        _write_variances(problem, seen, at, prior, joints, zero, C, variance[f])


@lean
def _write_variances(problem, seen, at, prior, joints, origin, C, variance):
    """Write the variances of one frame; see `write_rotation_variances`."""
    tree, _, work = problem
    moving, first, last = joints
    _write_covariance(problem, seen, at[0], at[1], prior, origin, C)
    for j in moving:
        for x in range(3):
            v = _rotation_variance(tree, work, C, first[j], last[j], x)
            variance[j, x] = v


@lean
def _position_variance(tree, work, C, node, p, J):
    """Return the sum of the variances along x, y and z of a point fixed to a node."""
    n = tree.n_ancestor_unknowns[node + 1] + _n_unknowns(tree, node + 1)
    unknowns, chain = tree.ancestor_unknowns[node + 1], tree.chain[node + 1]
    set_diagonal(J, 3, 1.0)
    column = 3
    for step in range(1, tree.depth[node + 1] + 1):
        b = chain[step]
        c = work.c[b - 1]
        for k in range(_n_unknowns(tree, b)):
            v = cross(work.A[b, k], (p[0] - c[0], p[1] - c[1], p[2] - c[2]))
            J[0, column], J[1, column], J[2, column] = v
            column += 1
    total = 0.0
    for i in range(n):
        for j in range(n):
            product = J[0, i] * J[0, j] + J[1, i] * J[1, j] + J[2, i] * J[2, j]
            total += product * C[unknowns[i], unknowns[j]]
    return total


@njit(cache=True)
def write_leverages(problem, recording, pose, prior, leverage):
    r"""Write the leverage of every marker: the part of it that the pose follows.

    .. math:: h_k = w_k \operatorname{tr}(J_k C J_k^T)

    From 0 to 3 coordinates; the residual of a marker has 3 - h degrees of freedom.
    Arguments are those of `write_rotation_variances`.
    """
    tree, targets, work = problem
    n, zero = len(work.g), zeros(3)
    C, J = zeros((3 * n, 3 * n)), empty((3, 3 * n))
    for f in range(len(leverage)):
        seen = recording[0][f], recording[1][f]
        root, q = pose[0][f], pose[1][f]
        _write_covariance(problem, seen, root, q, prior, zero, C)
        for i in range(len(work.c)):
            for k in range(targets.start[i], targets.start[i + 1]):
                p = place(work.R[i], work.c[i], targets.position[k])
                total = _position_variance(tree, work, C, i, p, J)
                leverage[f, k] = work.marker_weight[k] * total
