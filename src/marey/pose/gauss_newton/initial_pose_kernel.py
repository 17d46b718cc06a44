"""Initial pose of a frame without help of other frames, compiled.

One rigid body, the anchor, is placed by Horn's closed-form solution of absolute
orientation (1987); then every joint from the root outward is rotated so that the
targets of its own node lie best (Wahba's problem), limits left aside. The result starts
Levenberg-Marquardt.
"""

# mypy: ignore-errors

import numpy as np

from marey.articulated.factor_kernel import least_eigenvalue_bound
from marey.articulated.kinematics_kernel import forward_kinematics
from marey.articulated.limits_kernel import hinge_quaternion
from marey.articulated.targets_kernel import sum_targets, weight_targets
from marey.numerics.jit import lean
from marey.numerics.kabsch_kernel import diagonalise_4x4, fill_horn_matrix, is_tied
from marey.numerics.vector3_kernel import dot, fill, rotate, set_values


@lean
def horn_rotation(work, near):
    """Write the best rotation of a cross moment; return whether it is unique.

    Horn's method: the eigenvector of the largest eigenvalue of a 4 x 4 matrix. Its sign
    is that of the quaternion `near`.
    """
    N, V, q = work.horn.N, work.horn.V, work.horn.q
    fill_horn_matrix(work.horn.H, N)
    diagonalise_4x4(N, V)
    best = 0
    for k in range(1, 4):
        if N[k, k] > N[best, best]:
            best = k
    if is_tied(N, best):
        return False
    sign, n = 0.0, 0.0
    for k in range(4):
        sign += V[k, best] * near[k]
        n += V[k, best] * V[k, best]
    n = np.sqrt(n) if sign >= 0.0 else -np.sqrt(n)
    for k in range(4):
        q[k] = V[k, best] / n
    return True


@lean
def rotation_information(sums):
    """Return the least information of a node's targets on its rotation, in 1 / rad^2.

    A lower bound of the least moment of inertia of the targets about their centre.
    """
    w = sums[0]
    if not w > 0.0:
        return 0.0
    x, y, z = sums[1] / w, sums[2] / w, sums[3] / w
    xx, yy = sums[4] - w * x * x, sums[7] - w * y * y
    zz = sums[9] - w * z * z
    d, e, f = -(sums[5] - w * x * y), -(sums[6] - w * x * z), -(sums[8] - w * y * z)
    return least_eigenvalue_bound(yy + zz, xx + zz, xx + yy, d, e, f)


@lean
def _centre_cross_moment(sums, H):
    """Write the cross moment of model and seen positions about their centres."""
    for j in range(3):
        for k in range(3):
            H[j, k] = sums[13 + 3 * j + k] - sums[1 + j] * sums[10 + k] / sums[0]


@lean
def _sums_in_root(work, anchor, sums):
    """Write the sums of the anchor (of all nodes if -1) in the root's frame."""
    fill(sums, 0.0)
    for i in range(len(work.c)):
        if anchor not in (-1, i):
            continue
        R, c, node = work.R[i], work.c[i], work.node_sums[i]
        sums[0] += node[0]
        for j in range(3):
            sums[1 + j] += dot(R[j], node[1:4]) + node[0] * c[j]
            sums[10 + j] += node[10 + j]
            for k in range(3):
                rotated = dot(R[j], (node[13 + k], node[16 + k], node[19 + k]))
                sums[13 + 3 * j + k] += rotated + c[j] * node[10 + k]


@lean
def choose_anchor(work):
    """Return the node whose targets determine its pose best; -1 if none does."""
    best, information = -1, 1.0  # a standard deviation of 1 rad determines nothing
    for i in range(len(work.c)):
        other = rotation_information(work.node_sums[i])
        if other > information:
            best, information = i, other
    return best


@lean
def place_root(tree, work, anchor, root, q):
    """Write the root's pose that places the anchor, or the rigid figure, best."""
    sums = work.body_sums
    q[0, 0], q[0, 1], q[0, 2], q[0, 3] = 1.0, 0.0, 0.0, 0.0
    fill(root, 0.0)
    forward_kinematics(tree, root, q, work.R, work.c)
    _sums_in_root(work, anchor, sums)
    if not sums[0] > 0.0:
        return
    _centre_cross_moment(sums, work.horn.H)
    if horn_rotation(work, q[0]):
        set_values(q[0], work.horn.q)
    forward_kinematics(tree, root, q, work.R, work.c)
    rotated = rotate(work.R[0], sums[1:])
    for j in range(3):
        root[j] = (sums[10 + j] - rotated[j]) / sums[0]


@lean
def hinge_angle(H, a):
    """Return the best angle about a unit axis a, of a cross moment, in radians."""
    skew = H[1, 2] - H[2, 1], H[2, 0] - H[0, 2], H[0, 1] - H[1, 0]
    cosine = H[0, 0] + H[1, 1] + H[2, 2] - dot(a, rotate(H, a))
    return np.arctan2(dot(a, skew), cosine)


@lean
def _rotate_joints(tree, work, prior, root, q):
    """Rotate every joint, from the root outward, so that its own targets lie best.

    By Horn's method, or by the closed form of the best angle about a hinge's axis.
    """
    H = work.horn.H
    for i in range(1, len(q)):
        sums = work.node_sums[i]
        if not sums[4] + sums[7] + sums[9] > 0.0:
            continue
        forward_kinematics(tree, root, q, work.R, work.c)
        p = tree.parent[i]
        R_parent, c, R = work.R[p], work.c[i], work.R[i]
        for j in range(3):
            for k in range(3):
                # Half the prior keeps directions that the targets leave undetermined.
                H[j, k] = 0.0
                for m in range(3):
                    moment = sums[13 + 3 * j + m] - sums[1 + j] * c[m]
                    moment += 0.5 * prior[i + 1] * R[m, j]
                    H[j, k] += moment * R_parent[m, k]
        if tree.is_hinge[i]:
            a = tree.axis[i]
            hinge_quaternion(a, hinge_angle(H, a), q[i])
        elif horn_rotation(work, q[i]):
            set_values(q[i], work.horn.q)


@lean
def find_initial_pose(problem, seen, origin, pose, prior):
    """Write a pose found from one frame alone: the root, then joints outward.

    Args:
        problem: The kinematic tree, the table of targets and a `PoseWorkspace`.
        seen: Markers and sensors of the frame.
        origin: Origin of the position of the root.
        pose: Gets the position of the root and the quaternions; joints without targets
            keep theirs.
        prior: Information on each block that keeps its present rotation, 1 / rad^2.
    """
    tree, targets, work = problem
    weight_targets(targets, seen[0], seen[1], origin, work, 0.0)
    sum_targets(targets, seen[0], seen[1], origin, work)
    place_root(tree, work, choose_anchor(work), pose[0], pose[1])
    _rotate_joints(tree, work, prior, pose[0], pose[1])
