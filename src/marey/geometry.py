"""Stacked rotations and rigid transforms: arrays in, arrays out.

Every function works over any leading axes. Rotations are 3 x 3 matrices R_a_b, unit
quaternions wxyz, rotation vectors in radians, or Euler angles in radians; transforms
are 4 x 4 matrices T_a_b with p_a = T_a_b @ p_b. NaN in, NaN out.
"""

import numpy as np
from jaxtyping import Float

from marey.errors import OptionError

Array = np.ndarray

# Below this angle (radians) sin(x)/x and its kin are taken from their series.
SMALL = 1e-4

# Sine of the middle angle below which the outer two Euler angles are one: gimbal lock.
GIMBAL = 1e-9


# --- rotation vectors and quaternions ------------------------------------------------


def quat_exp(rotvec: Float[Array, "*batch 3"]) -> Float[Array, "*batch 4"]:
    """Return the unit quaternions wxyz of rotation vectors."""
    half = 0.5 * np.linalg.norm(rotvec, axis=-1, keepdims=True)
    scale = 0.5 * np.sinc(half / np.pi)
    return np.concatenate([np.cos(half), scale * rotvec], axis=-1)


def quat_log(wxyz: Float[Array, "*batch 4"]) -> Float[Array, "*batch 3"]:
    """Return the rotation vectors, of at most pi, of unit quaternions."""
    wxyz = np.where(wxyz[..., :1] < 0.0, -wxyz, wxyz)
    w, v = wxyz[..., :1], wxyz[..., 1:]
    sine = np.linalg.norm(v, axis=-1, keepdims=True)
    small = sine < SMALL
    safe = np.where(small, 1.0, sine)
    series = 2.0 / w * (1.0 - sine**2 / (3.0 * w**2)) if small.any() else 2.0
    return np.asarray(v * np.where(small, series, 2.0 * np.arctan2(sine, w) / safe))


def quat_multiply(
    left: Float[Array, "*#batch 4"], right: Float[Array, "*#batch 4"]
) -> Float[Array, "*batch 4"]:
    """Return the quaternion of R_left @ R_right."""
    w, v = left[..., :1], left[..., 1:]
    W, V = right[..., :1], right[..., 1:]
    scalar = w * W - np.sum(v * V, axis=-1, keepdims=True)
    return np.concatenate([scalar, w * V + W * v + np.cross(v, V)], axis=-1)


def quat_conjugate(wxyz: Float[Array, "*batch 4"]) -> Float[Array, "*batch 4"]:
    """Return the quaternions of the inverse rotations."""
    return np.asarray(wxyz * np.array([1.0, -1.0, -1.0, -1.0]))


def quat_rotate(
    wxyz: Float[Array, "*#batch 4"], points: Float[Array, "*#batch 3"]
) -> Float[Array, "*batch 3"]:
    """Return points turned by unit quaternions."""
    w, v = wxyz[..., :1], wxyz[..., 1:]
    twice = 2.0 * np.cross(v, points)
    return points + w * twice + np.cross(v, twice)


def quat_continuous(
    wxyz: Float[Array, "frame *item 4"],
) -> Float[Array, "frame *item 4"]:
    """Return the same rotations with signs chosen so that no frame flips.

    q and -q are one rotation; along the first axis each quaternion takes the sign
    nearest to the last one known. The first is given a positive w.
    """
    if len(wxyz) == 0:
        return wxyz
    known = _forward_filled(wxyz)
    dots = np.sum(known[1:] * known[:-1], axis=-1, keepdims=True)
    first = np.where(known[:1, ..., :1] < 0.0, -1.0, 1.0)
    flips = np.concatenate([first, np.where(dots < 0.0, -1.0, 1.0)])
    return wxyz * np.cumprod(flips, axis=0)


def _forward_filled(values: Array) -> Array:
    """Return values with NaN rows replaced by the last known row of the first axis."""
    known = np.isfinite(values).all(axis=-1)
    if known.all():
        return values
    frame = np.arange(len(values)).reshape(-1, *[1] * (known.ndim - 1))
    last = np.maximum.accumulate(np.where(known, frame, 0), axis=0)
    return np.take_along_axis(values, last[..., None], axis=0)


def quat_slerp(
    start: Float[Array, "*#batch 4"],
    end: Float[Array, "*#batch 4"],
    share: Float[Array, "*#batch"],
) -> Float[Array, "*batch 4"]:
    """Return the rotation a share of the shortest way from start to end."""
    way = quat_log(quat_multiply(quat_conjugate(start), end))
    return quat_multiply(start, quat_exp(share[..., None] * way))


# --- matrices ------------------------------------------------------------------------


def matrix_from_quat(wxyz: Float[Array, "*batch 4"]) -> Float[Array, "*batch 3 3"]:
    """Return the rotation matrices of unit quaternions."""
    w, x, y, z = np.moveaxis(wxyz, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def quat_from_matrix(R: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 4"]:
    """Return the unit quaternions, w >= 0, of rotation matrices.

    Of the four forms of Shepperd the one with the largest divisor is taken, so the
    answer is exact to rounding at every angle.
    """
    d = np.diagonal(R, axis1=-2, axis2=-1)
    trace = np.sum(d, axis=-1, keepdims=True)
    size = np.concatenate([trace, 2.0 * d - trace], axis=-1)
    best = np.argmax(size, axis=-1)[..., None, None]
    r = R
    w = np.stack([1 + trace[..., 0], *_asymmetry(r)], axis=-1)
    rows = [w]
    for i, (j, k) in enumerate([(1, 2), (2, 0), (0, 1)]):
        row = np.empty_like(w)
        row[..., 0] = r[..., k, j] - r[..., j, k]
        row[..., 1 + i] = 1 + r[..., i, i] - r[..., j, j] - r[..., k, k]
        row[..., 1 + j] = r[..., i, j] + r[..., j, i]
        row[..., 1 + k] = r[..., i, k] + r[..., k, i]
        rows.append(row)
    q = np.take_along_axis(np.stack(rows, axis=-2), best, axis=-2)[..., 0, :]
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return np.asarray(np.where(q[..., :1] < 0.0, -q, q))


def _asymmetry(R: Array) -> tuple[Array, Array, Array]:
    return (
        R[..., 2, 1] - R[..., 1, 2],
        R[..., 0, 2] - R[..., 2, 0],
        R[..., 1, 0] - R[..., 0, 1],
    )


def rotation_exp(rotvec: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3 3"]:
    """Return the rotation matrices of rotation vectors."""
    return matrix_from_quat(quat_exp(rotvec))


def rotation_log(R: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 3"]:
    """Return the rotation vectors, of at most pi, of rotation matrices."""
    return quat_log(quat_from_matrix(R))


def hat(v: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3 3"]:
    """Return the matrices that take x to the cross product of v and x."""
    x, y, z = np.moveaxis(v, -1, 0)
    o = np.zeros_like(x)
    rows = [[o, -z, y], [z, o, -x], [-y, x, o]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


# --- rigid transforms ----------------------------------------------------------------


def transform(
    R: Float[Array, "*#batch 3 3"], t: Float[Array, "*#batch 3"]
) -> Float[Array, "*batch 4 4"]:
    """Assemble T = [R t; 0 1], NaN throughout where either is unknown."""
    batch = np.broadcast_shapes(R.shape[:-2], t.shape[:-1])
    T = np.zeros((*batch, 4, 4))
    T[..., :3, :3] = R
    T[..., :3, 3] = t
    T[..., 3, 3] = 1.0
    T[~np.isfinite(T).all(axis=(-1, -2))] = np.nan
    return T


def inverse(T: Float[Array, "*batch 4 4"]) -> Float[Array, "*batch 4 4"]:
    """Return T_b_a of rigid T_a_b."""
    R = np.swapaxes(T[..., :3, :3], -1, -2)
    return transform(R, -np.einsum("...ij,...j->...i", R, T[..., :3, 3]))


def apply(
    T: Float[Array, "*#batch 4 4"], points: Float[Array, "*#batch 3"]
) -> Float[Array, "*batch 3"]:
    """Return points_a = T_a_b @ points_b."""
    return np.asarray(
        np.einsum("...ij,...j->...i", T[..., :3, :3], points) + T[..., :3, 3]
    )


def transform_exp(twist: Float[Array, "*batch 6"]) -> Float[Array, "*batch 4 4"]:
    """Return the transforms of twists: translation part first, rotation vector last."""
    rotvec = twist[..., 3:]
    V = _left_jacobian(rotvec)
    return transform(
        rotation_exp(rotvec), np.einsum("...ij,...j->...i", V, twist[..., :3])
    )


def transform_log(T: Float[Array, "*batch 4 4"]) -> Float[Array, "*batch 6"]:
    """Return the twists (translation part first) whose exponentials are T."""
    rotvec = rotation_log(T[..., :3, :3])
    known = np.isfinite(rotvec).all(axis=-1)[..., None]
    V = _left_jacobian(np.where(known, rotvec, 0.0))
    v = np.linalg.solve(V, T[..., :3, 3, None])[..., 0]
    return np.concatenate([np.where(known, v, np.nan), rotvec], axis=-1)


def _left_jacobian(rotvec: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3 3"]:
    """Return the matrices V with t = V v for a twist (v, rotvec)."""
    angle = np.linalg.norm(rotvec, axis=-1)[..., None, None]
    small = angle < SMALL
    safe = np.where(small, 1.0, angle)
    a = np.where(small, 0.5 - angle**2 / 24.0, (1.0 - np.cos(angle)) / safe**2)
    b = np.where(small, 1.0 / 6.0 - angle**2 / 120.0, (angle - np.sin(angle)) / safe**3)
    K = hat(rotvec)
    return np.asarray(np.eye(3) + a * K + b * K @ K)


# --- Euler angles --------------------------------------------------------------------


def euler_axes(order: str) -> tuple[int, int, int]:
    """Return the axis numbers of an order such as "ZXY".

    Raises:
        OptionError: If the order does not name three axes, no two neighbours alike.
    """
    axes = tuple("XYZ".find(letter) for letter in order)
    if len(axes) != 3 or -1 in axes or axes[0] == axes[1] or axes[1] == axes[2]:
        raise OptionError(
            "order", found=order, needed='three of X, Y, Z such as "ZXY" or "ZXZ"'
        )
    return axes[0], axes[1], axes[2]


def matrix_from_euler(
    angles: Float[Array, "*batch 3"], order: str
) -> Float[Array, "*batch 3 3"]:
    """Return R = R_first @ R_second @ R_third of moving-axes Euler angles.

    Args:
        angles: Radians, in the order of `order`.
        order: Axes of the three turns, such as "ZXY" for Rz @ Rx @ Ry.
    """
    return matrix_from_quat(quat_from_euler(angles, order))


def quat_from_euler(
    angles: Float[Array, "*batch 3"], order: str
) -> Float[Array, "*batch 4"]:
    """Return the unit quaternions of moving-axes Euler angles (see above)."""
    first, second, third = (
        quat_exp(angles[..., i, None] * np.eye(3)[axis])
        for i, axis in enumerate(euler_axes(order))
    )
    return quat_multiply(quat_multiply(first, second), third)


def euler_from_quat(
    wxyz: Float[Array, "*batch 4"], order: str
) -> Float[Array, "*batch 3"]:
    """Return the principal Euler angles of unit quaternions.

    The middle angle lies within +-pi/2 (or 0 to pi where the outer axes are the same);
    in gimbal lock the last angle is zero. The half-angle form of Bernardes and Viollet
    (2022) serves all twelve orders.
    """
    i, j, k = euler_axes(order)[::-1]
    proper = i == k
    k = 3 - i - j if proper else k
    sign = float((i - j) * (j - k) * (k - i) // 2)
    w, x, y, z = (
        wxyz[..., 0],
        wxyz[..., 1 + i],
        wxyz[..., 1 + j],
        sign * wxyz[..., 1 + k],
    )
    a, b, c, d = (w, x, y, z) if proper else (w - y, x + z, y + w, z - x)
    middle = 2.0 * np.arctan2(np.hypot(c, d), np.hypot(a, b))
    total, difference = np.arctan2(b, a), np.arctan2(d, c)
    last, first = total - difference, total + difference
    low, high = np.abs(np.hypot(c, d)) < GIMBAL, np.abs(np.hypot(a, b)) < GIMBAL
    first = np.where(low, 2.0 * total, np.where(high, 2.0 * difference, first))
    last = np.where(low | high, 0.0, last)
    if not proper:
        first, middle = sign * first, middle - np.pi / 2.0
    return _wrapped(np.stack([first, middle, last], axis=-1))


def _wrapped(angles: Array) -> Array:
    return (angles + np.pi) % (2.0 * np.pi) - np.pi


def euler_continuous(
    wxyz: Float[Array, "frame *item 4"], order: str
) -> Float[Array, "frame *item 3"]:
    """Return Euler angles along the first axis without jumps.

    Every rotation has two sets of angles, plus whole turns. Which set is nearer to the
    frame before does not depend on the set chosen there, so the choice of all frames is
    one cumulative sum; whole turns are then unwrapped. In gimbal lock the last angle is
    kept from the frame before and the first takes the rest.
    """
    axes = euler_axes(order)
    principal = euler_from_quat(wxyz, order)
    if len(principal) < 2:
        return principal
    turned = _other_branch(principal, proper=axes[0] == axes[2])
    before = _forward_filled(principal)[:-1]
    stay = np.sum(_wrapped(principal[1:] - before) ** 2, axis=-1)
    switch = np.sum(_wrapped(turned[1:] - before) ** 2, axis=-1) < stay
    branch = np.cumsum(switch, axis=0) % 2 == 1
    angles = principal.copy()
    angles[1:] = np.where(branch[..., None], turned[1:], principal[1:])
    return _unwrapped(_unlocked(angles, wxyz, order))


def _other_branch(angles: Array, *, proper: bool) -> Array:
    middle = -angles[..., 1] if proper else np.pi - angles[..., 1]
    return np.stack([angles[..., 0] + np.pi, middle, angles[..., 2] + np.pi], axis=-1)


def _unlocked(angles: Array, wxyz: Array, order: str) -> Array:
    """Carry the last angle through frames in gimbal lock."""
    axes = euler_axes(order)
    middle = angles[..., 1]
    sine = np.sin(middle) if axes[0] == axes[2] else np.cos(middle)
    for index in zip(*np.nonzero(np.abs(sine) < 2.0 * GIMBAL), strict=True):
        frame, *item = index
        if frame == 0:
            continue
        angles[index][2] = angles[(frame - 1, *item)][2]
        outer = np.array([0.0, middle[index], angles[index][2]])
        rest = quat_multiply(wxyz[index], quat_conjugate(quat_from_euler(outer, order)))
        angles[index][0] = 2.0 * np.arctan2(rest[1 + axes[0]], rest[0])
    return angles


def _unwrapped(angles: Array) -> Array:
    """Remove whole turns along the first axis, stepping over unknown frames."""
    known = _forward_filled(angles)
    steps = np.diff(known, axis=0)
    turns = np.round(np.nan_to_num(steps) / (2.0 * np.pi))
    angles[1:] -= 2.0 * np.pi * np.cumsum(turns, axis=0)
    return angles


# --- fitting -------------------------------------------------------------------------


def kabsch(
    points_b: Float[Array, "*#batch point 3"],
    points_a: Float[Array, "*#batch point 3"],
    weights: Float[Array, "*#batch point"] | None = None,
) -> Float[Array, "*batch 4 4"]:
    """Return the rigid T_a_b that best carries points_b onto points_a.

    Minimises the weighted sum of squared distances over the points known in both sets
    (Kabsch 1976), by the largest eigenvector of Horn's symmetric 4 x 4 matrix, which
    never returns a reflection.

    Args:
        points_b: Points in b, any unit; NaN where unknown.
        points_a: The same points in a.
        weights: Weight of each point, >= 0; equal when left out.

    Returns:
        T_a_b; NaN where fewer than three points that are not on a line are known.
    """
    from marey._kabsch_kernel import fit_poses  # numba is slow to import

    batch = np.broadcast_shapes(points_b.shape[:-2], points_a.shape[:-2])
    count = points_b.shape[-2]
    shape = (*batch, count, 3)
    stack_b = np.broadcast_to(points_b, shape).reshape(-1, count, 3)
    stack_a = np.broadcast_to(points_a, shape).reshape(-1, count, 3)
    if weights is None:
        weights = np.ones(count)
    stack_w = np.broadcast_to(weights, shape[:-1]).reshape(-1, count)
    out = np.empty((len(stack_a), 4, 4))
    fit_poses(stack_b, stack_a, stack_w, out)
    return out.reshape(*batch, 4, 4)
