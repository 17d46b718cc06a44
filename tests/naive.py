"""Slow, obviously right versions. Loops only; never import a kernel under test."""

import numpy as np
from scipy.linalg import expm
from scipy.optimize import least_squares


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


def sphere_center(points):
    """Centre of one marker's sphere: the linear least squares of Kåsa, row by row."""
    rows = [[*(2.0 * x), 1.0] for x in points if np.isfinite(x).all()]
    right = [x @ x for x in points if np.isfinite(x).all()]
    return np.linalg.lstsq(np.array(rows), np.array(right), rcond=None)[0][:3]


def radius_variance(points, center):
    """Variance of the squared distances of one marker: what Knight2007 minimises."""
    square = [(x - center) @ (x - center) for x in points if np.isfinite(x).all()]
    return np.mean([(s - np.mean(square)) ** 2 for s in square])


def least_turning(directions):
    """Rotations whose x axis follows unit vectors, each by the shortest turn on."""
    R, last, out = np.eye(3), np.array([1.0, 0.0, 0.0]), []
    for d in directions:
        axis = np.cross(last, d)
        sine = np.linalg.norm(axis)
        if sine > 1e-12:
            R = rotation(axis / sine * np.arctan2(sine, last @ d)) @ R
        out.append(R)
        last = d
    return np.array(out)


def ball_joint(T_world_a, T_world_b):
    """Stack Eq. 13 of OBrien2000 row by row and call lstsq."""
    rows, gaps = [], []
    for A, B in zip(T_world_a, T_world_b, strict=True):
        if np.isnan(A).any() or np.isnan(B).any():
            continue
        rows.append(np.hstack([A[:3, :3], -B[:3, :3]]))
        gaps.append(B[:3, 3] - A[:3, 3])
    Q, d = np.vstack(rows), np.hstack(gaps)
    u = np.linalg.lstsq(Q, d, rcond=1e-6)[0]
    spread = np.linalg.svd(Q, compute_uv=False)[::-1] / np.sqrt(len(rows))
    return u[:3], u[3:], np.sqrt(np.sum((Q @ u - d) ** 2) / len(rows)), spread


def mediation(T_world_body, a, b):
    """Gap of a pair over its gap with a vector in the third body that helps most."""
    best = 1.0
    for third in range(T_world_body.shape[1]):
        if third in (a, b):
            continue
        six, nine, gaps = [], [], []
        for poses in T_world_body:
            if np.isnan(poses[[a, b, third]]).any():
                continue
            R = poses[:, :3, :3]
            six.append(np.hstack([R[a], -R[b]]))
            nine.append(np.hstack([R[a], -R[b], R[third]]))
            gaps.append(poses[b, :3, 3] - poses[a, :3, 3])
        d = np.hstack(gaps)
        costs = []
        for rows in (np.vstack(six), np.vstack(nine)):
            u = np.linalg.lstsq(rows, d, rcond=1e-9)[0]
            costs.append(np.sqrt(np.sum((rows @ u - d) ** 2)))
        best = max(best, costs[0] / costs[1])
    return best


def closest_poses(T_world_a, T_world_b, turn_noise, noise, start):
    """Centres for which the least change of all poses, in sds, closes every gap.

    Two turns per frame are unknown beside the six coordinates; the positions take up
    what is left.
    """
    n = len(T_world_a)

    def off(unknown):
        u, w = unknown[:6], unknown[6:].reshape(n, 2, 3)
        rows = []
        for A, B, (w_a, w_b) in zip(T_world_a, T_world_b, w, strict=True):
            x_a = A[:3, :3] @ rotation(turn_noise * w_a) @ u[:3] + A[:3, 3]
            x_b = B[:3, :3] @ rotation(turn_noise * w_b) @ u[3:] + B[:3, 3]
            rows += [w_a, w_b, (x_a - x_b) / (np.sqrt(2.0) * noise)]
        return np.hstack(rows)

    first = np.hstack([start, np.zeros(6 * n)])
    return least_squares(off, first, x_scale="jac", xtol=1e-9, ftol=1e-9).x[:6]
