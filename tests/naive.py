"""Slow, obviously right versions. Loops only; never import a kernel under test."""

import math
from itertools import combinations, pairwise, product

import numpy as np
from scipy.linalg import expm
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation, Slerp
from scipy.stats import chi2


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


def seen_from(poses, points):
    """Points of every frame as the body of that frame sees them."""
    frames = zip(poses, points, strict=True)
    return np.array([[T[:3, :3].T @ (p - T[:3, 3]) for p in ps] for T, ps in frames])


def rigid_turn(points, shape, weights, poses, *, medians, outlier=3.0):
    """Shape, weights and poses after one turn of a rigid fit, marker by marker."""
    n_frames, n_markers = points.shape[:2]
    local = seen_from(poses, points)
    shape = shape.copy()
    for k in range(n_markers):
        seen = [f for f in range(n_frames) if np.isfinite(local[f, k]).all()]
        if medians:
            shape[k] = np.median(local[seen, k], axis=0)
        else:
            shape[k] = np.average(local[seen, k], axis=0, weights=weights[seen, k])
    off = np.sum((local - shape) ** 2, axis=2)
    median_over_mean = chi2.median(3) / chi2.mean(3)
    typical = np.array([np.nanmedian(row) / median_over_mean for row in off.T])
    variance = 0.5 * (typical + typical.mean())
    trust = np.maximum((1.0 + off / (outlier**2 * variance)) ** -2, 1e-12)
    weights = typical.mean() / variance * trust
    weights = np.nan_to_num(weights)
    poses = [kabsch(shape, p, w) for p, w in zip(points, weights, strict=True)]
    return shape, weights, np.array(poses)


def slack(points, T_body, own, theirs, noise, usual):
    """How far the markers of one body stray from the best point of another.

    All markers seen in all frames; as much noise on every one of them.
    """
    local = seen_from(T_body, points)
    gap = {
        (i, j): np.mean([np.linalg.norm(frame[i] - frame[j]) for frame in points])
        for i in own
        for j in theirs
    }
    near = min(gap, key=gap.get)
    guess = 0.5 * sum(local[:, k].mean(axis=0) for k in near)
    hold = (noise / max(gap[near], 0.3 * usual)) ** 2
    A, g = hold * np.eye(3), hold * guess
    for k in theirs:
        path, mean = local[:, k], local[:, k].mean(axis=0)
        far = np.mean(np.sum((path - guess) ** 2, axis=1))
        for p in path:
            # Knight2007: |p - c|^2 is constant, so 2 (p - mean) c = |p|^2 - its mean.
            row = 2.0 * (p - mean)
            side = p @ p - np.mean(np.sum(path**2, axis=1))
            weight = 1.0 / max(far, (5.0 * noise) ** 2) / len(path)
            A += weight * np.outer(row, row)
            g += weight * row * side
    center = np.linalg.solve(A, g)
    square = [np.var(np.linalg.norm(local[:, k] - center, axis=1)) for k in theirs]
    return np.sqrt(np.mean(square) / (2.0 * noise**2))


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


def joint_shift(T_world_a, T_world_b, frame):
    """Where a joint is in body a, how far it shifts at a frame, and what that explains.

    Two least-squares fits of all frames, row by row: two centres, and two centres and a
    shift of the first from the frame on. What the shift explains is the fall of the sum
    of squared gaps.
    """
    plain, shifted, right = [], [], []
    for k, (A, B) in enumerate(zip(T_world_a, T_world_b, strict=True)):
        if np.isnan(A).any() or np.isnan(B).any():
            continue
        R = A[:3, :3].T @ B[:3, :3]
        late = np.eye(3) if k >= frame else np.zeros((3, 3))
        plain.append(np.hstack([np.eye(3), -R]))
        shifted.append(np.hstack([np.eye(3), -R, late]))
        right.append(A[:3, :3].T @ (B[:3, 3] - A[:3, 3]))
    y = np.hstack(right)
    squares = []
    for rows in (np.vstack(plain), np.vstack(shifted)):
        u = np.linalg.lstsq(rows, y, rcond=1e-9)[0]
        squares.append(np.sum((rows @ u - y) ** 2))
    return u[:3], u[6:], squares[0] - squares[1]


def swing_twist(x, y, angles):
    """One ball's rotation: swing about a vector across the bone, after a twist."""
    a, b, c = angles
    return rotation(a * x + b * y) @ rotation(c * np.cross(x, y))


def articulated(skeleton, root, turns):
    """R and place of every joint of one frame, by recursion from the root.

    `turns` holds the rotation matrix of every joint in its parent.
    """
    R, place = [], []
    for joint, parent in enumerate(skeleton.parent):
        if parent < 0:
            R.append(turns[joint])
            place.append(np.asarray(root, dtype=float))
        else:
            R.append(R[parent] @ turns[joint])
            place.append(place[parent] + R[parent] @ skeleton.offset[joint])
    return np.array(R), np.array(place)


def freedoms(skeleton):
    """Every unknown as (joint, kind, axis): the root's place, then turns."""
    found = [(0, "place", axis) for axis in np.eye(3)]
    for joint, kind in enumerate(skeleton.kind):
        if kind in ("root", "ball"):
            found += [(joint, "turn", axis) for axis in np.eye(3)]
        elif kind == "hinge":
            found.append((joint, "hinge", skeleton.axes[joint, 0]))
        elif kind == "universal":
            found.append((joint, "before", skeleton.axes[joint, 0]))
            found.append((joint, "hinge", skeleton.axes[joint, 1]))
    return found


def moved(skeleton, root, turns, step):
    """The pose one step on: balls turn about the world, hinges about their axes."""
    R, _ = articulated(skeleton, root, turns)
    root, turns = np.array(root, dtype=float), np.array(turns)
    balls = {}
    for (joint, kind, axis), d in zip(freedoms(skeleton), step, strict=True):
        if kind == "place":
            root = root + d * axis
        elif kind == "turn":
            balls[joint] = balls.get(joint, np.zeros(3)) + d * axis
        elif kind == "before":
            turns[joint] = rotation(d * axis) @ turns[joint]
        else:
            turns[joint] = turns[joint] @ rotation(d * axis)
    for joint, w in balls.items():
        parent = skeleton.parent[joint]
        R_world_parent = R[parent] if parent >= 0 else np.eye(3)
        turns[joint] = rotation(R_world_parent.T @ w) @ turns[joint]
    return root, turns


def target_residuals(skeleton, root, turns, points, sensors, sds):
    """How far every target is off, in standard deviations, one frame.

    A sensor's rotation counts by its three axes, which move sqrt(2) of its turn.
    """
    marker_sd, sensor_sd, turn_sd = sds
    R, place = articulated(skeleton, root, turns)
    rows = []
    for joint, offset, y in zip(
        skeleton.marker_joint, skeleton.marker_offset, points, strict=True
    ):
        if np.isfinite(y).all():
            rows.append((place[joint] + R[joint] @ offset - y) / marker_sd)
    for joint, own, T in zip(
        skeleton.sensor_joint, skeleton.T_joint_sensor, sensors, strict=True
    ):
        if np.isfinite(T).all():
            rows.append((place[joint] + R[joint] @ own[:3, 3] - T[:3, 3]) / sensor_sd)
            axes = R[joint] @ own[:3, :3] - T[:3, :3]
            rows.append(axes.T.ravel() / (np.sqrt(2.0) * turn_sd))
    return np.hstack(rows)


def carries(skeleton, joint, other):
    """Whether turning a joint moves what is fixed to another."""
    while other >= 0:
        if other == joint:
            return True
        other = skeleton.parent[other]
    return False


def target_jacobian(skeleton, root, turns, points, sensors, sds):
    """Derivative of `target_residuals` by the step of `moved`, target by target."""
    marker_sd, sensor_sd, turn_sd = sds
    R, place = articulated(skeleton, root, turns)
    columns = []
    for joint, kind, axis in freedoms(skeleton):
        parent = skeleton.parent[joint]
        before = R[parent] if parent >= 0 else np.eye(3)
        world = {"before": before @ axis, "hinge": R[joint] @ axis}.get(kind, axis)

        def velocity(point, on, kind=kind, joint=joint, world=world):
            if kind == "place":
                return world
            return np.cross(world, point - place[joint]) * carries(skeleton, joint, on)

        rows = []
        for on, offset, y in zip(
            skeleton.marker_joint, skeleton.marker_offset, points, strict=True
        ):
            if np.isfinite(y).all():
                rows.append(velocity(place[on] + R[on] @ offset, on) / marker_sd)
        for on, own, T in zip(
            skeleton.sensor_joint, skeleton.T_joint_sensor, sensors, strict=True
        ):
            if np.isfinite(T).all():
                rows.append(velocity(place[on] + R[on] @ own[:3, 3], on) / sensor_sd)
                turns_it = kind != "place" and carries(skeleton, joint, on)
                axes = np.cross(world, (R[on] @ own[:3, :3]).T) * turns_it
                rows.append(axes.ravel() / (np.sqrt(2.0) * turn_sd))
        columns.append(np.hstack(rows))
    return np.array(columns).T


def joint_rotation_sd(skeleton, root, turns, points, sensors, sds):
    """Standard deviation of every joint rotation about the axes of its own frame.

    The covariance of all freedoms is the dense inverse of the normal matrix.
    """
    J = target_jacobian(skeleton, root, turns, points, sensors, sds)
    covariance = np.linalg.inv(J.T @ J)
    R, _ = articulated(skeleton, root, turns)
    sd = np.zeros((len(turns), 3))
    for joint, parent in enumerate(skeleton.parent):
        before = R[parent] if parent >= 0 else np.eye(3)
        turning = np.zeros((3, len(covariance)))
        for k, (other, kind, axis) in enumerate(freedoms(skeleton)):
            world = {"before": before @ axis, "hinge": R[joint] @ axis}.get(kind, axis)
            if other == joint and kind != "place":
                turning[:, k] = R[joint].T @ world
        sd[joint] = np.sqrt(np.diag(turning @ covariance @ turning.T))
    return sd


def best_pose(skeleton, root, turns, points, sensors, sds):
    """The pose of least squares of one frame, from a start near it: Gauss-Newton."""
    given = (points, sensors, sds)
    for _ in range(30):
        J = target_jacobian(skeleton, root, turns, *given)
        r = target_residuals(skeleton, root, turns, *given)
        step = np.linalg.lstsq(J, -r, rcond=None)[0]
        root, turns = moved(skeleton, root, turns, step)
        if np.abs(step).max() < 1e-10:
            break
    return root, turns, target_residuals(skeleton, root, turns, *given)


# --- bodies of markers ----------------------------------------------------------------


def moving_median(values, median_frames):
    """Median of the known values around each frame; NaN where it is not known."""
    half = median_frames // 2
    return np.array(
        [
            np.nanmedian(values[max(f - half, 0) : f + half + 1])
            if np.isfinite(values[f])
            else np.nan
            for f in range(len(values))
        ]
    )


def pair_statistics(points, n_blocks=10, median_frames=1):
    """Spread and median of all distances, part by part of the take."""
    n_markers = points.shape[1]
    spread, distance = np.zeros((2, n_markers, n_markers))
    for i in range(n_markers):
        for j in range(n_markers):
            if i == j:
                continue
            away = np.linalg.norm(points[:, i] - points[:, j], axis=-1)
            away = moving_median(away, median_frames)
            away = away[np.isfinite(away)]
            n = len(away)
            cuts = [b * n / n_blocks for b in range(n_blocks + 1)]
            parts = [
                np.sort(away[math.floor(a) : math.ceil(b)]) for a, b in pairwise(cuts)
            ]
            medians = [part[len(part) // 2] for part in parts]
            middle = np.sort(medians)[n_blocks // 2]
            total = 0.0
            for part, median in zip(parts, medians, strict=True):
                low, high = (
                    part[int(share * (len(part) - 1) + 0.5)] for share in (0.05, 0.95)
                )
                wide = (high - low) / (2.0 * 1.6448536269514722)
                total += len(part) * (wide**2 + (median - middle) ** 2)
            n = sum(map(len, parts))
            spread[i, j], distance[i, j] = np.sqrt(total / n), middle
    return spread, distance


def cover_worth(odds, cover, price):
    """Evidence of all pairs that share a body, less the price of memberships."""
    together = (cover.T.astype(int) @ cover) > 0
    return np.triu(odds * together, 1).sum() - price * cover.sum()


def cover_neighbours(cover, most_bodies):
    """Every cover one change away: join, leave, move, merge, open."""
    yield from _other_memberships(cover, most_bodies)
    for a, b in combinations(range(len(cover)), 2):
        merged = cover.copy()
        merged[a] |= merged[b]
        yield np.delete(merged, b, axis=0)
    worn = cover.sum(axis=0)
    for i, j in combinations(np.flatnonzero(worn < most_bodies), 2):
        opened = np.zeros((1, cover.shape[1]), dtype=bool)
        opened[0, [i, j]] = True
        yield np.concatenate([cover, opened])


def _other_memberships(cover, most_bodies):
    worn = cover.sum(axis=0)
    for body, marker in product(*map(range, cover.shape)):
        other = cover.copy()
        other[body, marker] ^= True
        if cover[body, marker]:
            if worn[marker] > 1:
                yield other
            continue
        if worn[marker] < most_bodies:
            yield other
        for old in np.flatnonzero(cover[:, marker]):
            moved = other.copy()
            moved[old, marker] = False
            yield moved


def adjusted_rand(one, two):
    """Agreement of two labellings: 1 = the same, 0 = as by chance."""
    rows, columns = (np.unique(x, return_inverse=True)[1] for x in (one, two))
    count = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(count, (rows, columns), 1)

    def pairs(x):
        return float((x * (x - 1) / 2).sum())

    both, a, b = pairs(count), pairs(count.sum(1)), pairs(count.sum(0))
    chance = a * b / pairs(np.array([len(rows)]))
    return 1.0 if both == a == b else (both - chance) / ((a + b) / 2 - chance)


def swap_history(take, changes):
    """The marker that each label stands on in every frame, swap after swap."""
    marker = np.tile(np.arange(len(take.labels)), (take.n_frames, 1))
    for change in changes:
        for frame in range(change.first, change.last + 1):
            a, b = change.index, change.other
            marker[frame, a], marker[frame, b] = marker[frame, b], marker[frame, a]
    return marker


# --- calibration ----------------------------------------------------------------------


def bundle_rests(parent, segment, axes, y, pose, shape):
    """What is left of one frame's markers and axes: y - x, row after row.

    `pose` is the root's place and a world rotation per segment; `shape` is joints o,
    markers m and axes a, b; `axes` lists (child, is a hinge, weight).
    """
    (t, R), (o, m, a, b) = pose, shape
    c = [t]
    for i in range(1, len(parent)):
        c.append(c[parent[i]] + R[parent[i]] @ o[i])
    rows = [y[k] - c[i] - R[i] @ m[k] for k, i in enumerate(segment)]
    for (child, hinge, weight), one, other in zip(axes, a, b, strict=True):
        u, v = R[parent[child]] @ one, R[child] @ other
        rows.append(np.sqrt(weight) * (v - u if hinge else np.array([-(u @ v)])))
    return rows


def bundle_equations(frames, rests_of, weights, calm, n_pose, n_shared):
    """Equations of the shared unknowns with all poses eliminated, by differences.

    Args:
        frames: One entry per frame, whatever `rests_of` takes.
        rests_of: rests_of(frame, dq, dp) gives the rows of a frame after a step.
        weights: Square roots of the weights of a frame's rows.
        calm: calm(frame, dq) is a cost of the pose alone; its curvature is given.
        n_pose, n_shared: How many unknowns.

    Returns:
        The matrix and the slope.
    """
    A, b = np.zeros((n_shared, n_shared)), np.zeros(n_shared)
    step = 1e-6
    for frame, scale in zip(frames, weights, strict=True):

        def rows(d, frame=frame, scale=scale):
            return scale * np.concatenate(rests_of(frame, d[:n_pose], d[n_pose:]))

        J = np.array(
            [
                (rows(-step * e) - rows(step * e)) / (2 * step)
                for e in np.eye(n_pose + n_shared)
            ]
        ).T
        r = rows(np.zeros(n_pose + n_shared))
        H, g = J.T @ J, J.T @ r
        H[:n_pose, :n_pose] += calm(frame)[0] + 1e-9 * np.eye(n_pose)
        g[:n_pose] += calm(frame)[1]
        tie = H[n_pose:, :n_pose] @ np.linalg.inv(H[:n_pose, :n_pose])
        A += H[n_pose:, n_pose:] - tie @ H[:n_pose, n_pose:]
        b += g[n_pose:] - tie @ g[:n_pose]
    return A, b


def calm_equations(parent, R, usual, weight):
    """Curvature and slope of weight |R_parent usual - R|^2 / 2 over all segments."""
    n = 3 + 3 * len(parent)
    H, g = np.zeros((n, n)), np.zeros(n)
    for i in range(1, len(parent)):
        own, above = slice(3 + 3 * i, 6 + 3 * i), 3 + 3 * parent[i]
        above = slice(above, above + 3)
        M = R[i] @ (R[parent[i]] @ usual[i]).T
        twist = np.array([M[2, 1] - M[1, 2], M[0, 2] - M[2, 0], M[1, 0] - M[0, 1]])
        g[own] -= weight * twist / 2
        g[above] += weight * twist / 2
        H[own, own] += weight * np.eye(3)
        H[above, above] += weight * np.eye(3)
        H[own, above] -= weight * np.eye(3)
        H[above, own] -= weight * np.eye(3)
    return H, g


def cheapest_sequence(cost, parts):
    """The sequence of solutions of least cost, of all that there are.

    Args:
        cost: Of every solution in every frame.
        parts: Weights, and vectors or quaternions by solution and frame, whose changes
            from frame to frame count.
    """

    def change(a, f, b):
        total = 0.0
        for weight, x in parts:
            one, two = x[a, f - 1], x[b, f]
            if len(one) == 4:  # 2 sin(angle / 2), squared
                total += 4.0 * weight * (1.0 - float(one @ two) ** 2)
            else:
                total += weight * float((two - one) @ (two - one))
        return total

    def price(way):
        own = sum(cost[k, f] for f, k in enumerate(way))
        return own + sum(change(way[f - 1], f, way[f]) for f in range(1, len(way)))

    n_solutions, n_frames = cost.shape
    return min(product(range(n_solutions), repeat=n_frames), key=price)


def place_skeleton(skeleton, points, sd):
    """Root to leaf: each bone a rigid fit of its markers and of the joint above it.

    Rotations of all joints in the world, where every joint is a root, ball or hinge and
    every bone has two markers or more, and the position of the root.
    """
    n, known = len(skeleton.names), np.isfinite(points).all(axis=-1)
    R, c, mean = np.zeros((n, 3, 3)), np.zeros((n, 3)), np.zeros((n, 3))
    variance, C = np.zeros(n), np.zeros((n, 3, 3))
    for i, above in enumerate(skeleton.parent):
        on_bone = (skeleton.marker_joint == i) & known
        m, y = skeleton.marker_offset[on_bone], points[on_bone]
        w, R_parent, axis = np.full(len(m), sd**-2), np.eye(3), None
        if above >= 0:
            R_parent = R[above]
            joint = c[above] + R_parent @ skeleton.offset[i]
            lever = cross_matrix(joint - mean[above])
            spread = variance[above] + np.trace(lever @ C[above] @ lever.T) / 3.0
            m, y = np.vstack([m, np.zeros(3)]), np.vstack([y, joint])
            w = np.append(w, 1.0 / (sd**2 + spread))
        if skeleton.kind[i] == "hinge":
            axis = R_parent @ skeleton.axes[i, 0]
        m_mean, mean[i] = w @ m / w.sum(), w @ y / w.sum()
        R[i] = bone_rotation(w, m - m_mean, y - mean[i], R_parent, axis)
        C[i] = bone_covariance(w, (m - m_mean) @ R[i].T, C[above], axis)
        c[i], variance[i] = mean[i] - R[i] @ m_mean, 1.0 / w.sum()
    return R, c[0]


def bone_rotation(w, arms, seen, R_parent, axis):
    """The best rotation of arms onto what was seen; about the world axis of a hinge."""
    if axis is None:
        U, _, Vt = np.linalg.svd((w[:, None] * seen).T @ arms)
        return U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt

    def misfit(angle):
        turned = arms @ (rotation(angle[0] * axis) @ R_parent).T
        return np.ravel(np.sqrt(w)[:, None] * (turned - seen))

    exact = {"xtol": 1e-15, "gtol": 1e-15, "ftol": 1e-15}
    found = [least_squares(misfit, [start], **exact) for start in (-2.0, 0.0, 2.0)]
    best = min(found, key=lambda one: one.cost)
    return rotation(best.x[0] * axis) @ R_parent


def bone_covariance(w, arms, C_parent, axis):
    """The covariance of a bone's rotation, with one radian where nothing is known."""
    J = sum(
        -k * cross_matrix(a) @ cross_matrix(a) for k, a in zip(w, arms, strict=True)
    )
    if axis is None:
        return np.linalg.inv(J + np.eye(3))
    P = np.eye(3) - np.outer(axis, axis)
    return P @ C_parent @ P + np.outer(axis, axis) / (axis @ J @ axis + 1.0)


def ground_heights(time, contacts, T_world_foot, tip):
    """Height of a tip on the ground where a foot is planted, frame by frame, else NaN.

    The median over the contacts of the run of planted frames.
    """
    frames = [
        [
            f
            for f, t in enumerate(time)
            if start <= t <= end and np.isfinite(T_world_foot[f]).all()
        ]
        for start, end, _ in contacts
    ]
    heights = []
    for own, (_, _, anchor) in zip(frames, contacts, strict=True):
        in_foot = [
            T_world_foot[f, :3, :3].T @ (anchor - T_world_foot[f, :3, 3]) for f in own
        ]
        heights.append((anchor - np.median(in_foot, axis=0) + tip)[2] if own else 0.0)
    ground = np.full(len(time), np.nan)
    planted = sorted({f for own in frames for f in own})
    run = []
    for f in planted:
        run = [*run, f] if run and run[-1] == f - 1 else [f]
        if f + 1 not in planted:
            on_run = [
                z for z, own in zip(heights, frames, strict=True) if set(own) & set(run)
            ]
            ground[run] = np.median(on_run)
    return ground


def midpoints(q, is_weak, walk):
    """Rotations by frame, with midpoints of the frames beside in place of weak ones.

    Where the chord from a rotation to its midpoint is more than a standard deviation
    of the random walk; only of frames with any.
    """
    frames = {}
    for f in range(1, len(q) - 1):
        for i in range(q.shape[1]):
            three = Rotation.from_quat(np.roll(q[f - 1 : f + 2, i], -1, axis=1))
            middle = Slerp([0.0, 1.0], three[[0, 2]])(0.5)
            chord = 2.0 * np.sin(0.5 * (three[1].inv() * middle).magnitude())
            if is_weak[f, i + 1] and chord > walk[i + 1] ** -0.5:
                frames.setdefault(f, q[f].copy())[i] = np.roll(middle.as_quat(), 1)
    return frames
