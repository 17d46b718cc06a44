"""Slow, obviously right versions. Loops only; never import a kernel under test."""

import numpy as np
from scipy.linalg import expm


def cross_matrix(v):
    """The matrix of the cross product with v."""
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def rotation(rotvec):
    """One rotation matrix of one rotation vector, by the matrix exponential."""
    return expm(cross_matrix(rotvec))


def transform(twist):
    """One 4 x 4 transform of one twist (translation part first)."""
    generator = np.zeros((4, 4))
    generator[:3, :3] = cross_matrix(twist[3:])
    generator[:3, 3] = twist[:3]
    return expm(generator)


def axis_rotation(axis, angle):
    """One turn about the axis "X", "Y" or "Z"."""
    i = "XYZ".index(axis)
    j, k = (i + 1) % 3, (i + 2) % 3
    R = np.eye(3)
    R[j, j] = R[k, k] = np.cos(angle)
    R[k, j] = np.sin(angle)
    R[j, k] = -np.sin(angle)
    return R


def euler(angles, order):
    """One rotation of moving-axes Euler angles: the product of three turns."""
    R = np.eye(3)
    for angle, axis in zip(angles, order, strict=True):
        R = R @ axis_rotation(axis, angle)
    return R


def quat_matrix(wxyz):
    """One rotation matrix, column by column: q (0, e) q*."""

    def product(p, q):
        w = p[0] * q[0] - p[1:] @ q[1:]
        return np.array([w, *(p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:]))])

    conjugate = wxyz * [1, -1, -1, -1]
    columns = [
        product(product(wxyz, np.array([0.0, *e])), conjugate)[1:] for e in np.eye(3)
    ]
    return np.array(columns).T


def slerp(start, end, share):
    """One rotation between two unit quaternions, by the formula of sines."""
    if start @ end < 0.0:
        end = -end
    angle = np.arccos(np.clip(start @ end, -1.0, 1.0))
    if angle < 1e-9:
        return start
    ahead, behind = np.sin(share * angle), np.sin((1.0 - share) * angle)
    return (behind * start + ahead * end) / np.sin(angle)


def kabsch(points_b, points_a, weights):
    """One rigid transform by singular value decomposition, NaN where undetermined."""
    pairs = [
        (b, a, w)
        for b, a, w in zip(points_b, points_a, weights, strict=True)
        if w > 0.0 and np.isfinite(b).all() and np.isfinite(a).all()
    ]
    if len(pairs) < 3:
        return np.full((4, 4), np.nan)
    total = sum(w for _, _, w in pairs)
    mean_b = sum(w * b for b, _, w in pairs) / total
    mean_a = sum(w * a for _, a, w in pairs) / total
    H = sum(w * np.outer(b - mean_b, a - mean_a) for b, a, w in pairs)
    U, s, Vt = np.linalg.svd(H)
    mirror = np.sign(np.linalg.det(U) * np.linalg.det(Vt))
    if s[1] < 1e-9 * s[0]:
        return np.full((4, 4), np.nan)
    R = Vt.T @ np.diag([1.0, 1.0, mirror]) @ U.T
    T = np.eye(4)
    T[:3, :3] = R
    T[:3, 3] = mean_a - R @ mean_b
    return T


def forward(parent, offset, T_world_root, wxyz):
    """T_world_joint of one frame, each joint from its parent by recursion."""

    def pose(joint):
        if parent[joint] < 0:
            return T_world_root
        T = np.eye(4)
        T[:3, :3] = quat_matrix(wxyz[joint])
        T[:3, 3] = offset[joint]
        return pose(parent[joint]) @ T

    return np.array([pose(joint) for joint in range(len(parent))])
