r"""A skeleton placed in one frame, root to leaf and in closed form, compiled.

Knight2007, Sec. 2.6: with the joints as constants, a frame needs no inverse kinematics.
Each bone is a rigid body whose points are its own targets and the joint to its parent.
With positions m on the bone, seen at y, the weighted means of both and the rotation R_p
of the parent it rotates by the R of

.. math:: \max_R \operatorname{tr}(R H), \qquad
          H = \sum_k w_k (m_k - \bar m) (y_k - \bar y)^T R_p

and is placed where the means agree. A ball has Horn's solution; a hinge, the closed
form of its angle; the two angles of a universal joint alternate. The joints that a bone
carries move with it as it was placed, so that errors do not grow along a limb. Their
variance follows from the covariance of the bone's rotation: a joint at the end of a
long lever has less weight than a marker.
"""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from marey.articulated.kinematics_kernel import place_node
from marey.articulated.limits_kernel import hinge_quaternion
from marey.articulated.targets_kernel import sum_targets, weight_targets
from marey.numerics.arrays.reference_kernel import by_reference
from marey.numerics.jit import FAST, lean, njit
from marey.numerics.vector3_kernel import (
    copy_rows,
    cross,
    dot,
    multiply_quaternions,
    rotate,
    rotate_back,
    set_values,
    set_vector,
)
from marey.pose.gauss_newton.initial_pose_kernel import (
    choose_anchor,
    hinge_angle,
    horn_rotation,
    place_root,
    rotation_information,
)

REST_SHARE = float(np.sqrt(np.finfo(np.float64).eps))
"""Weight of the rest pose over that of a joint's targets: the square root of rounding,
so that it decides only what targets leave open, such as the twist of one marker."""


REST_INFORMATION = 1.0
"""Information of the rest pose on a rotation, in 1 / rad^2: a standard deviation of one
radian, which is that of no knowledge."""

MAX_ITERATIONS_UNIVERSAL = 20
"""Largest number of times that the two angles of a universal joint alternate."""

TINY_ANGLE = 1e-9
"""Change of an angle below which the alternation has converged, in radians."""


@by_reference
class BoneUncertainty(NamedTuple):
    """How well each bone was placed, in world axes, by node."""

    mean: np.ndarray  # (node, 3): weighted mean of the points of the bone, in metres
    variance: np.ndarray  # (node): of that mean along each axis, in square metres
    rotation: np.ndarray  # (node, 3, 3): covariance of the rotation, in square radians


@lean
def _joint_variance(uncertainty, parent, joint):
    """Return the variance of a joint that its parent carries, in square metres."""
    C, mean = uncertainty.rotation[parent], uncertainty.mean[parent]
    arm = joint[0] - mean[0], joint[1] - mean[1], joint[2] - mean[2]
    lever = (C[0, 0] + C[1, 1] + C[2, 2]) * dot(arm, arm) - dot(arm, rotate(C, arm))
    return uncertainty.variance[parent] + lever / 3.0


@lean
def _write_inertia(sums, total, J):
    """Write the inertia of a bone's points about their mean, in its own frame."""
    x, y, z = sums[1], sums[2], sums[3]
    a, b, c = sums[4] - x * x / total, sums[7] - y * y / total, sums[9] - z * z / total
    J[0, 0], J[1, 1], J[2, 2] = b + c, a + c, a + b
    J[0, 1] = J[1, 0] = x * y / total - sums[5]
    J[0, 2] = J[2, 0] = x * z / total - sums[6]
    J[1, 2] = J[2, 1] = y * z / total - sums[8]


@lean
def _write_free_covariance(J, R, C):
    """Write R (J + 1)^-1 R^T: the covariance of a free rotation, in world axes."""
    a, b = J[0, 0] + REST_INFORMATION, J[1, 1] + REST_INFORMATION
    c = J[2, 2] + REST_INFORMATION
    d, e, f = J[0, 1], J[0, 2], J[1, 2]
    A = b * c - f * f, e * f - d * c, d * f - e * b
    B = A[1], a * c - e * e, d * e - a * f
    D = A[2], B[2], a * b - d * d
    determinant = a * A[0] + d * A[1] + e * A[2]
    for j in range(3):
        row = dot(R[j], A), dot(R[j], B), dot(R[j], D)
        for k in range(3):
            C[j, k] = dot(row, R[k]) / determinant


@lean
def _measure_about_axis(J, R, axis, C):
    r"""Replace the variance about a hinge's axis by that of the bone's points.

    .. math:: P C P + n n^T / (n^T J n + 1), \qquad P = I - n n^T
    """
    inside = rotate_back(R, axis)
    variance = 1.0 / (dot(inside, rotate(J, inside)) + REST_INFORMATION)
    u = rotate(C, axis)
    about = dot(axis, u) + variance
    for j in range(3):
        for k in range(3):
            C[j, k] += about * axis[j] * axis[k] - u[j] * axis[k] - axis[j] * u[k]


@lean
def _cross_moment(sums, joint, weight, R_parent, H):
    """Write the cross moment of a bone's targets and its joint; return their size.

    In the parent's frame, with a share of the rest pose, in which both agree. The joint
    is at the origin of the bone; it was seen where the parent carries it.
    """
    total = sums[0] + weight
    size = sums[4] + sums[7] + sums[9] - dot(sums[1:], sums[1:]) / total
    for j in range(3):
        for k in range(3):
            H[j, k] = REST_SHARE * size if j == k else 0.0
            for m in range(3):
                mean = (sums[10 + m] + weight * joint[m]) / total
                moment = sums[13 + 3 * j + m] - sums[1 + j] * mean
                H[j, k] += moment * R_parent[m, k]
    return size


@lean
def _place_bone(sums, weight, R, c, mean):
    """Move a bone to where the means of its targets and its joint agree, in place."""
    total = sums[0] + weight
    model = rotate(R, sums[1:])
    for k in range(3):
        mean[k] = (sums[10 + k] + weight * c[k]) / total
        c[k] = mean[k] - model[k] / total


@lean
def _rotate_back_by_quaternion(q, v):
    """Return the vector R(q)^T v."""
    u = -q[1], -q[2], -q[3]
    t = cross(u, v)
    s = cross(u, t)
    return (
        v[0] + 2.0 * (q[0] * t[0] + s[0]),
        v[1] + 2.0 * (q[0] * t[1] + s[1]),
        v[2] + 2.0 * (q[0] * t[2] + s[2]),
    )


@lean
def _rotate_universal(H, axes, work, q_first, q_second):
    """Write both angles of a universal joint, R = R_1 R_2, from a cross moment.

    The best free rotation R gives the start, because R^T a_1 = R_2^T a_1. Then each
    angle is fitted while the other is kept: the fit of a hinge with the cross moment
    R_2 H or H R_1.
    """
    first, second = axes
    if not horn_rotation(work, q_first):
        return
    v = _rotate_back_by_quaternion(work.horn.q, first)
    cosine = dot(v, first) - dot(v, second) * dot(first, second)
    angle = np.arctan2(dot(second, cross(v, first)), cosine)
    hinge_quaternion(second, angle, q_second)
    G = work.horn.V
    for _ in range(MAX_ITERATIONS_UNIVERSAL):
        inverse = q_second[0], -q_second[1], -q_second[2], -q_second[3]
        for k in range(3):
            column = H[0, k], H[1, k], H[2, k]
            G[0, k], G[1, k], G[2, k] = _rotate_back_by_quaternion(inverse, column)
        hinge_quaternion(first, hinge_angle(G, first), q_first)
        for j in range(3):
            set_vector(G[j], _rotate_back_by_quaternion(q_first, H[j]))
        before, angle = angle, hinge_angle(G, second)
        hinge_quaternion(second, angle, q_second)
        if abs(angle - before) <= TINY_ANGLE:
            break


@lean
def _rotate_joint(tree, work, i, last, q):
    """Rotate a joint by the cross moment of its bone.

    Args:
        tree: The kinematic tree.
        work: Scratch, with the cross moment.
        i: First node of the joint.
        last: Its last node: another one for a universal joint.
        q: Quaternions of all nodes.
    """
    H = work.horn.H
    if last != i:
        _rotate_universal(H, (tree.axis[i], tree.axis[last]), work, q[i], q[last])
    elif tree.is_hinge[i]:
        hinge_quaternion(tree.axis[i], hinge_angle(H, tree.axis[i]), q[i])
    elif horn_rotation(work, q[i]):
        set_values(q[i], work.horn.q)


@lean
def _place_joint(tree, work, i, last, sd, uncertainty, q):
    """Rotate and place the bone of a joint; unseen, it keeps its rotation."""
    R, c, sums, p = work.R, work.c, work.node_sums[last], tree.parent[i]
    place_node(tree, i, c[0], q, R, c)
    variance = _joint_variance(uncertainty, p, c[i])
    weight = 1.0 / (sd * sd + variance)
    size = _cross_moment(sums, c[i], weight, R[p], work.horn.H)
    if size > 0.0:
        _rotate_joint(tree, work, i, last, q)
        place_node(tree, i, c[0], q, R, c)
    if last != i:
        place_node(tree, last, c[0], q, R, c)
    C, J = uncertainty.rotation[last], work.horn.V
    copy_rows(uncertainty.rotation[p], C)
    total = sums[0] + weight
    uncertainty.variance[last] = 1.0 / total
    if not size > 0.0:
        set_vector(uncertainty.mean[last], c[last])
        for k in range(3):
            C[k, k] += 1.0 / REST_INFORMATION
        return
    _place_bone(sums, weight, R[last], c[last], uncertainty.mean[last])
    _write_inertia(sums, total, J)
    if tree.is_hinge[last]:
        _measure_about_axis(J, R[last], rotate(R[p], tree.axis[i]), C)
    else:
        _write_free_covariance(J, R[last], C)
    if last != i:
        _measure_about_axis(J, R[last], rotate(R[i], tree.axis[last]), C)


@lean
def _place_root(tree, work, uncertainty, root, q):
    """Place the root by its own targets, or by those of the bone that is seen best."""
    sums, c, mean = work.node_sums[0], work.c, uncertainty.mean[0]
    total = 0.0
    for i in range(len(q)):
        total += work.node_sums[i, 0]
    if total > 0.0:
        # No knowledge of the rotation.
        is_placed = rotation_information(sums) > REST_INFORMATION
        place_root(tree, work, 0 if is_placed else choose_anchor(work), root, q)
    place_node(tree, 0, root, q, work.R, c)
    total = max(sums[0], REST_INFORMATION)
    model = rotate(work.R[0], sums[1:])
    for k in range(3):
        mean[k] = c[0, k] + model[k] / total
    uncertainty.variance[0] = 1.0 / total
    _write_inertia(sums, total, work.horn.V)
    _write_free_covariance(work.horn.V, work.R[0], uncertainty.rotation[0])


@njit(cache=True, fastmath=FAST, error_model="numpy")
def place_frame(problem, joints, frame, uncertainty, pose, out):
    """Write the pose of one frame: position of the root, then joints outward.

    Args:
        problem: The kinematic tree, the table of targets and a `PoseWorkspace`.
        joints: Numbers of the joints that rotate, first and last node of each, and the
            standard deviation of a joint as a point of its bone, in metres.
        frame: Markers and sensors of the frame, and the world's origin.
        uncertainty: Gets the `BoneUncertainty`.
        pose: Position of the root, kept where nothing is seen, and quaternions of the
            nodes, kept where a joint is unseen.
        out: Gets R_parent_joint of every joint as quaternions.
    """
    tree, targets, work = problem
    points, sensors, origin = frame
    root, q = pose
    weight_targets(targets, points, sensors, origin, work, 0.0)
    sum_targets(targets, points, sensors, origin, work)
    _place_root(tree, work, uncertainty, root, q)
    moving, first, last, sd = joints
    for j in moving:
        a, b = first[j], last[j]
        if a > 0:
            _place_joint(tree, work, a, b, sd, uncertainty, q)
        if b != a:
            set_values(out[j], multiply_quaternions(q[a], q[b]))
        else:
            set_values(out[j], q[a])
